"""What a task network reads: words, characters and the layers of a biLM, side by side."""
