"""Readers of task data: a file a format, each a stream of frozen examples."""
