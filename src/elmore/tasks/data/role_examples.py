"""Predicates with their arguments (semantic roles), as tasks use them, and what they cannot be."""

from collections.abc import Sequence
from dataclasses import dataclass

from elmore.errors import DataError


@dataclass(frozen=True, kw_only=True, slots=True)
class RoleExample:
    """One predicate of a sentence: which token it is, and the part of every token in it."""

    tokens: tuple[str, ...]
    predicate: int
    lemma: str
    sense: str
    tags: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class RoleSentence:
    """A sentence and its predicates, of which there may be none."""

    tokens: tuple[str, ...]
    examples: tuple[RoleExample, ...]


def make_example(
    tokens: tuple[str, ...],
    *,
    predicate: int,
    lemma: str,
    sense: str,
    tags: Sequence[str],
    where: str,
) -> RoleExample:
    """Put an example together; refuse what cannot be."""
    if not 0 <= predicate < len(tokens):
        raise DataError(
            f"{where}: predicate {lemma!r} is said to be token {predicate}, but the sentence has "
            f"tokens 0 to {len(tokens) - 1}; mend its place"
        )
    if len(tags) != len(tokens):
        raise DataError(
            f"{where}: predicate {lemma!r} has {len(tags)} tags for {len(tokens)} tokens; give one "
            "a token"
        )
    for previous, tag in zip(["O", *tags], tags, strict=False):
        letter, _, role = tag.partition("-")
        is_inside = letter == "I" and previous != "O" and previous[2:] == role
        if tag != "O" and not (role and (letter == "B" or is_inside)):
            raise DataError(
                f"{where}: of predicate {lemma!r}, the tag {tag!r} cannot follow {previous!r}; "
                "wanted BIO, where B- begins an argument and I- goes on with it: mend the tags"
            )
    return RoleExample(
        tokens=tokens, predicate=predicate, lemma=lemma, sense=sense, tags=tuple(tags)
    )
