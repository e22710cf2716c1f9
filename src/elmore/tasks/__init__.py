"""NLP tasks with and without ELMo vectors: data, networks, training and scores."""
