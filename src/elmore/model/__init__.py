"""The network: token encoder, biLM, mix; it knows no files, flags or settings."""
