"""The routes of the server, one file per group; each has a function `make_router`."""
