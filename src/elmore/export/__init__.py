"""Models in the formats of other programs; uses only the public API."""
