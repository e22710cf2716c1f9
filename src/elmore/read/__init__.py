"""The reading engine: batches of sentences under a state policy, with a token cache."""
