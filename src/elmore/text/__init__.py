"""Split text from files or strings into sentences and tokens, without changing a character."""
