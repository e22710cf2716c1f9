"""Train a task network with or without ELMo vectors, keep it, use it, compare."""
