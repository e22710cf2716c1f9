"""The tasks themselves: for each its data, its network and its score, brought together."""
