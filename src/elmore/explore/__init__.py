"""What the vectors show: contexts in which a word is used alike."""
