"""Look into vectors and training runs: similar uses of a word, training curves."""
