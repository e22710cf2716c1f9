"""Models in the formats of other programs; stands on the public API alone."""
