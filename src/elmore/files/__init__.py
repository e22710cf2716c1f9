"""Shared by all outputs: atomic writes, locks, folders owned by jobs, bounded JSON."""
