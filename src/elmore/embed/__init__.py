"""From sentences to vectors: read, embed in batches, and keep the result in a file."""
