"""The inputs of a task network: words, characters and the layers of a biLM, concatenated."""
