"""Scores of spans, clusters, answers and labels, computed as by the shared tasks' programs."""
