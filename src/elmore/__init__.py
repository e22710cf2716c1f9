"""ELMo, and more: deep contextualized word representations.

>>> import elmore
>>> embedder = elmore.load()
>>> [vectors.shape for vectors in embedder.embed(["The bank of the river.", "A bank."])]
[(6, 512), (3, 512)]
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from elmore.errors import ElmoreError

if TYPE_CHECKING:
    from elmore.embed.elmo import Elmo
    from elmore.embed.embedder import Embedder, load
    from elmore.embed.job import embed_to_file
    from elmore.embed.vector_file import read_vectors
    from elmore.model.scalar_mix import ScalarMix
    from elmore.tasks.fit.folder import load_task_model
    from elmore.weights.elmo_model import ElmoModel
    from elmore.weights.loading import load_model

__version__ = "0.1.0"

__all__ = [
    "Elmo",
    "ElmoModel",
    "ElmoreError",
    "Embedder",
    "ScalarMix",
    "embed_to_file",
    "load",
    "load_model",
    "load_task_model",
    "read_vectors",
]

# Names that need torch are imported when first used, so that `import elmore` stays quick.
_HOMES = {
    "Elmo": "elmore.embed.elmo",
    "ElmoModel": "elmore.weights.elmo_model",
    "Embedder": "elmore.embed.embedder",
    "ScalarMix": "elmore.model.scalar_mix",
    "embed_to_file": "elmore.embed.job",
    "load": "elmore.embed.embedder",
    "load_model": "elmore.weights.loading",
    "load_task_model": "elmore.tasks.fit.folder",
    "read_vectors": "elmore.embed.vector_file",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'elmore' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
