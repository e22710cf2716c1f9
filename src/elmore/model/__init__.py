"""The network: token encoder, biLM and mix, independent of files, flags and settings."""
