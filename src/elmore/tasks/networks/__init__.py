"""The networks of the tasks: plain arguments in, a loss or predictions out."""
