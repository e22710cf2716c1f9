"""Prepare text, train a biLM on it, measure it."""
