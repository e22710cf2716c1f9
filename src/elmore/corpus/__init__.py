"""Prepared corpora: text to shards, counts, an index and held-out parts."""
