"""Train a task network with or without ELMo vectors, resume, save and load it."""
