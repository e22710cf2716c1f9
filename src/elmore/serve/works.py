"""What lanes compute: vectors, of several requests at once, and calls that run alone."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from elmore import ElmoreError, Embedder
from elmore.serve.encoding import Array
from elmore.serve.errors import RequestError
from elmore.serve.inputs import ParsedInputs
from elmore.serve.lanes import Outcome, Work


@dataclass(frozen=True, kw_only=True, eq=False)
class EmbedWork:
    """Sentences to embed; `encode` makes the body of the answer from one array per sentence."""

    embedder: Embedder
    inputs: ParsedInputs
    encode: Callable[[list[Array]], Iterable[bytes]]
    layers: Any = None
    """None: those of the embedder."""
    layers_key: Hashable = None
    """Equal for equal layers."""

    @property
    def num_tokens(self) -> int:
        """The tokens that the biLM reads."""
        return self.inputs.num_tokens

    @property
    def key(self) -> Hashable:
        """Sentences of one model share a batch if the same layers are asked for."""
        return id(self.embedder), self.layers_key


@dataclass(frozen=True, kw_only=True, eq=False)
class CallWork:
    """A call that shares nothing with others."""

    call: Callable[[], Iterable[bytes]]
    num_tokens: int

    @property
    def key(self) -> None:
        """It runs alone."""
        return


def run_works(works: Sequence[Work]) -> list[Outcome]:
    """Compute the works of one batch; an error affects only the work that causes it."""
    first = works[0]
    if not isinstance(first, EmbedWork):
        return [_catch(work.call) for work in works if isinstance(work, CallWork)]
    batch = [work for work in works if isinstance(work, EmbedWork)]
    sentences = [tokens for work in batch for tokens in work.inputs.token_lists]
    try:
        vectors = iter(first.embedder.embed(sentences, layers=first.layers))
    except Exception as error:
        if len(batch) == 1:
            return [_translate(error)]
        return [outcome for work in batch for outcome in run_works([work])]
    taken = [(work, list(islice(vectors, len(work.inputs.sentences)))) for work in batch]
    return [_catch(lambda w=work, v=found: w.encode(v)) for work, found in taken]  # type: ignore[misc]


def _catch(call: Callable[[], Iterable[bytes]]) -> Outcome:
    try:
        return list(call())
    except Exception as error:
        return _translate(error)


def _translate(error: Exception) -> Exception:
    """Return a mistake of the user as a refusal."""
    return RequestError(422, str(error)) if isinstance(error, ElmoreError) else error
