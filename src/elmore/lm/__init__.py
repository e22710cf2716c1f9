"""Language models: pretraining, fine-tuning, perplexity, scores, the rest state."""
