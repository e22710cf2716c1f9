"""The models of a server, by name."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from elmore import Embedder, load
from elmore.serve.errors import RequestError
from elmore.serve.named_sources import name_sources
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
    """Return a name and a source for each model; None is the model shipped with elmore."""
    return [*name_sources(given, what="model").items()] or [(DEFAULT_NAME, None)]


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
