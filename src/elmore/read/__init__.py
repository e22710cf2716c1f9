"""The reading engine: sentences under a state policy, cut into batches, with a token cache."""
