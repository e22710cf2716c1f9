"""Scores as the programs of the shared tasks count them: spans, clusters, answers, labels."""
