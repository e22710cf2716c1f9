"""The units of text that are pooled into one vector."""

from enum import StrEnum


class Unit(StrEnum):
    """What is pooled into one vector."""

    SENTENCE = "sentence"
    DOCUMENT = "document"
