"""What vectors in context are good for: tasks that show what a biLM knows of words."""
