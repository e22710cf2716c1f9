"""What each layer knows: linear probes and nearest neighbors."""
