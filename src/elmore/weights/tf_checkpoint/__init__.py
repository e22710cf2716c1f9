"""TensorFlow checkpoints, read without TensorFlow: an index (a sorted table) and data files."""
