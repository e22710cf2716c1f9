"""Types of command-line arguments that both old commands have."""

import argparse


def read_size(text: str) -> int:
    """Return a number of sentences, at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number of sentences from 1, got {text!r:.60}")
    return int(text)


def read_layers(text: str) -> list[int]:
    """Return the numbers in a list such as "-1,0"."""
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected layers such as -1 or 0,1,2, got {text!r:.60}"
        ) from None
