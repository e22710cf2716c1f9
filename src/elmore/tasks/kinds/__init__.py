"""The tasks: each combines its data, its network and its score."""
