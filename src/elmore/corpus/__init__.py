"""Prepared corpora: shards of text, word counts, an index and held-out parts."""
