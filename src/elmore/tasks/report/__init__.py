"""What `elmore compare` found, with against without ELMo: numbers, plots, a page and a table."""
