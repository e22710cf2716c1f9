"""The models of a server, by name."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from elmore import ElmoreError, Embedder, load
from elmore.serve.errors import RequestError
from elmore.serve.settings import ServeSettings

DEFAULT_NAME = "english"  # of the model shipped with elmore


@dataclass(frozen=True)
class ServedModel:
    """A loaded model and its name."""

    name: str
    embedder: Embedder

    @cached_property
    def has_lm_head(self) -> bool:
        """Whether it can score and predict words."""
        return self.embedder.has_lm_head


def load_models(settings: ServeSettings) -> list[ServedModel]:
    """Load all models."""
    return [
        ServedModel(
            name,
            load(
                source,
                device=settings.device,
                precision=settings.precision,
                language=settings.language,
                layers=settings.layers,
                max_sentence_tokens=settings.max_sentence_tokens,
                tokens_per_batch=max(settings.limits.batch_tokens, 64),
            ),
        )
        for name, source in name_models(settings.models)
    ]


def name_models(given: Sequence[str]) -> list[tuple[str, str | None]]:
    """Return a name and a source for each model: NAME=MODEL, or named after its path or hub id.

    >>> name_models(["owner/news", "law=models/2"])
    [('owner/news', 'owner/news'), ('law', 'models/2')]
    """
    if not given:
        return [(DEFAULT_NAME, None)]
    named: dict[str, str | None] = {}
    for text in given:
        name, equals, source = text.partition("=")
        if not equals or Path(text).exists():
            path = Path(text)
            name, source = (path.resolve().name if path.exists() else text), text
        if not name or not source:
            raise ElmoreError(f"--model {text!r:.200} has an empty part; give MODEL or NAME=MODEL")
        if name in named:
            raise ElmoreError(
                f"two models are called {name!r:.60}; name them with --model NAME=MODEL"
            )
        named[name] = source
    return list(named.items())


def find_model(models: Sequence[ServedModel], name: str | None) -> ServedModel:
    """Return the model that a request asks for, by default the first."""
    if name is None:
        return models[0]
    for model in models:
        if model.name == name:
            return model
    known = ", ".join(model.name for model in models)
    raise RequestError(
        404, f"there is no model {name[:60]!r}; this server has: {known}", field="model"
    )
