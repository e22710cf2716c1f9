"""Readers of task data, one file per format; each yields frozen examples."""
