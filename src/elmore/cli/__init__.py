"""One file a verb of the command line, each a thin layer over one library function."""
