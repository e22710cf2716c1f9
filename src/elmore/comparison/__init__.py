"""Comparisons with and without ELMo, and the report of what they found."""
