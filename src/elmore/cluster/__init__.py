"""Embedding on many cores and machines: elmore's own processes, Ray, and other engines."""
