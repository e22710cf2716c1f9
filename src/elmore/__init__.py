"""ELMo, and more: deep contextualized word representations.

>>> import elmore
>>> embedder = elmore.load()
>>> embedder.embed("The bank of the river.").shape
(6, 512)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from elmore.errors import ElmoreError, MissingExtraError

if TYPE_CHECKING:
    from elmore.api import (
        compare,
        evaluate,
        finetune,
        fit,
        load_task,
        neighbors,
        predict,
        prepare,
        pretrain,
        tokenize,
    )
    from elmore.arguments import explain_calls
    from elmore.cluster.embed_files import embed_files
    from elmore.corpus.corpus import open_corpus
    from elmore.embed.arrow_embedder import ArrowEmbedder
    from elmore.embed.elmo import Elmo
    from elmore.embed.embedder import Embedder, load
    from elmore.embed.job import embed_to_file
    from elmore.embed.many_files.job import FilesJob, FilesReport, plan_files
    from elmore.embed.many_files.shards import TextShard
    from elmore.embed.projection import fit_projection
    from elmore.embed.vector_file import read_vectors
    from elmore.embed.word_export import export_words, word_vectors
    from elmore.explore.build_index import build_index
    from elmore.explore.token_similarity import token_similarity
    from elmore.explore.use_index import UseIndex, open_index
    from elmore.extras import require_extra
    from elmore.files.atomic import replace_file
    from elmore.lm.language_model import LanguageModel
    from elmore.model.scalar_mix import ScalarMix
    from elmore.text.characters import ByteAlphabet
    from elmore.weights.elmo_model import ElmoModel
    from elmore.weights.loading import load_model

__version__ = "0.1.0"

__all__ = [
    "ArrowEmbedder",
    "ByteAlphabet",
    "Elmo",
    "ElmoModel",
    "ElmoreError",
    "Embedder",
    "FilesJob",
    "FilesReport",
    "LanguageModel",
    "MissingExtraError",
    "ScalarMix",
    "TextShard",
    "UseIndex",
    "build_index",
    "compare",
    "embed_files",
    "embed_to_file",
    "evaluate",
    "explain_calls",
    "export_words",
    "finetune",
    "fit",
    "fit_projection",
    "load",
    "load_model",
    "load_task",
    "neighbors",
    "open_corpus",
    "open_index",
    "plan_files",
    "predict",
    "prepare",
    "pretrain",
    "read_vectors",
    "replace_file",
    "require_extra",
    "token_similarity",
    "tokenize",
    "word_vectors",
]

# Names that need torch are imported when first used, so that `import elmore` stays quick.
_HOMES = {
    "ArrowEmbedder": "elmore.embed.arrow_embedder",
    "ByteAlphabet": "elmore.text.characters",
    "Elmo": "elmore.embed.elmo",
    "ElmoModel": "elmore.weights.elmo_model",
    "Embedder": "elmore.embed.embedder",
    "FilesJob": "elmore.embed.many_files.job",
    "FilesReport": "elmore.embed.many_files.job",
    "LanguageModel": "elmore.lm.language_model",
    "ScalarMix": "elmore.model.scalar_mix",
    "TextShard": "elmore.embed.many_files.shards",
    "UseIndex": "elmore.explore.use_index",
    "build_index": "elmore.explore.build_index",
    "compare": "elmore.api",
    "embed_files": "elmore.cluster.embed_files",
    "embed_to_file": "elmore.embed.job",
    "evaluate": "elmore.api",
    "explain_calls": "elmore.arguments",
    "export_words": "elmore.embed.word_export",
    "finetune": "elmore.api",
    "fit": "elmore.api",
    "fit_projection": "elmore.embed.projection",
    "load": "elmore.embed.embedder",
    "load_model": "elmore.weights.loading",
    "load_task": "elmore.api",
    "neighbors": "elmore.api",
    "open_corpus": "elmore.corpus.corpus",
    "open_index": "elmore.explore.use_index",
    "plan_files": "elmore.embed.many_files.job",
    "predict": "elmore.api",
    "prepare": "elmore.api",
    "pretrain": "elmore.api",
    "read_vectors": "elmore.embed.vector_file",
    "replace_file": "elmore.files.atomic",
    "require_extra": "elmore.extras",
    "token_similarity": "elmore.explore.token_similarity",
    "tokenize": "elmore.api",
    "word_vectors": "elmore.embed.word_export",
}
# Earlier names, still understood.
_OLD_NAMES = {"load_task_model": "load_task"}


def __getattr__(name: str) -> Any:
    name = _OLD_NAMES.get(name, name)
    if name not in _HOMES:
        raise AttributeError(f"module 'elmore' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
