"""From the inputs of a request to tokenized sentences within the limits."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from elmore import Embedder
from elmore.serve.errors import RequestError
from elmore.serve.settings import NUM_MARKERS


@dataclass(frozen=True, slots=True)
class InputSentence:
    """The tokens of one input; offsets are None if it was given as tokens."""

    tokens: list[str]
    offsets: list[tuple[int, int]] | None


@dataclass(frozen=True)
class ParsedInputs:
    """All sentences of a request."""

    sentences: list[InputSentence]
    num_truncated: int = 0

    @property
    def num_tokens(self) -> int:
        """The tokens that the biLM reads."""
        return sum(len(sentence.tokens) + NUM_MARKERS for sentence in self.sentences)

    @property
    def token_lists(self) -> list[list[str]]:
        """The tokens of each sentence."""
        return [sentence.tokens for sentence in self.sentences]


def parse_inputs(
    embedder: Embedder,
    inputs: str | Sequence[str | Sequence[str]],
    *,
    field: str,
    max_tokens: int,
    truncate: bool = False,
    keep_end: bool = False,
    allows_empty: bool = True,
) -> ParsedInputs:
    """Return the sentences of a request, or refuse it; only `truncate` shortens a sentence."""
    listed = [inputs] if isinstance(inputs, str) else inputs
    if not listed:
        raise RequestError(422, f"{field} is an empty list; give at least one text", field=field)
    sentences = []
    num_truncated = num_tokens = 0
    for number, given in enumerate(listed):
        sentence = _split(embedder, given)
        longest = embedder.max_sentence_tokens
        if len(sentence.tokens) > longest:
            if not truncate:
                raise RequestError(
                    413,
                    f"{field}.{number} has {len(sentence.tokens)} tokens, more than the server's "
                    f"--max-sentence-tokens {longest}; split the text into sentences",
                    field=field,
                )
            sentence = _shorten(sentence, longest, keep_end=keep_end)
            num_truncated += 1
        if not sentence.tokens and not allows_empty:
            raise RequestError(
                422, f"{field}.{number} has no tokens; remove it, or give some text", field=field
            )
        sentences.append(sentence)
        num_tokens += len(sentence.tokens) + NUM_MARKERS
        check_cost(num_tokens, field=field, max_tokens=max_tokens)
    return ParsedInputs(sentences, num_truncated=num_truncated)


def check_cost(num_tokens: int, *, field: str, max_tokens: int) -> None:
    """Refuse a request that asks for too much."""
    if num_tokens > max_tokens:
        raise RequestError(
            413,
            f"{field} has at least {num_tokens} tokens, more than the server's "
            f"--max-request-tokens {max_tokens}; split the request",
            field=field,
        )


def _split(embedder: Embedder, given: str | Sequence[str]) -> InputSentence:
    if not isinstance(given, str):
        return InputSentence(list(given), None)
    offsets = embedder.token_offsets(given)
    return InputSentence([given[start:end] for start, end in offsets], offsets)


def _shorten(sentence: InputSentence, length: int, *, keep_end: bool) -> InputSentence:
    kept = slice(-length, None) if keep_end else slice(length)
    offsets = sentence.offsets
    return replace(
        sentence, tokens=sentence.tokens[kept], offsets=None if offsets is None else offsets[kept]
    )
