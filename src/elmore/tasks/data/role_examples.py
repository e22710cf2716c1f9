"""Predicates with their arguments (semantic roles), checked."""

from collections.abc import Sequence
from dataclasses import dataclass

from elmore.errors import DataError


@dataclass(frozen=True, kw_only=True, slots=True)
class RoleExample:
    """One predicate of a sentence: its index, and the role tags of all tokens."""

    tokens: tuple[str, ...]
    predicate: int
    lemma: str
    sense: str
    tags: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class RoleSentence:
    """A sentence and its predicates, if any."""

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
    """Make an example; raise an error if the predicate or the tags are invalid."""
    if not 0 <= predicate < len(tokens):
        raise DataError(
            f"{where}: predicate {lemma!r} has index {predicate}, but the sentence has tokens 0 to "
            f"{len(tokens) - 1}; fix its index"
        )
    if len(tags) != len(tokens):
        raise DataError(
            f"{where}: predicate {lemma!r} has {len(tags)} tags for {len(tokens)} tokens; give one "
            "per token"
        )
    for previous, tag in zip(["O", *tags], tags, strict=False):
        letter, _, role = tag.partition("-")
        is_inside = letter == "I" and previous != "O" and previous[2:] == role
        if tag != "O" and not (role and (letter == "B" or is_inside)):
            raise DataError(
                f"{where}: expected BIO tags, where B- begins an argument and I- continues it, got "
                f"{tag!r} after {previous!r} for predicate {lemma!r}; fix the tags"
            )
    return RoleExample(
        tokens=tokens, predicate=predicate, lemma=lemma, sense=sense, tags=tuple(tags)
    )
