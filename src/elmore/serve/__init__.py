"""An HTTP server for vectors in context; `elmore serve` starts it."""
