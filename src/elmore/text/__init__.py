"""Text into sentences of tokens: from files or strings, without changing a character."""
