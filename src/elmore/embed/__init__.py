"""From sentences to vectors: read, embed in batches, and write the results to a file."""
