"""The networks of the tasks; they take plain arguments and return a loss or predictions."""
