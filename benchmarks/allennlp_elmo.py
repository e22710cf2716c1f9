"""AllenNLP's own `Elmo` module on today's torch, with stand-ins for what it imports but needs not.

`Elmo` needs a few of AllenNLP's files. Importing its packages brings the rest of it, spaCy 2 among
others, so the packages are replaced by empty ones, and what their files import by stand-ins.
"""

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

PACKAGES = ("", ".common", ".data", ".data.token_indexers", ".data.tokenizers", ".modules", ".nn")


class _Absent:
    """Stands in for a class that is imported, inherited from or annotated, but not used."""

    def __class_getitem__(cls, item: object) -> type:
        return cls

    @classmethod
    def register(cls, _name: str) -> Any:
        return lambda registered: registered


def load_elmo(options: Path, weights: Path) -> Any:
    """Return AllenNLP's module; its mix is the average of the layers."""
    _replace_packages()
    from allennlp.modules.elmo import Elmo  # noqa: PLC0415  from another environment

    # The mix applies softmax to zeros: equal weights.
    module = Elmo(str(options), str(weights), 1, dropout=0.0, scalar_mix_parameters=[0.0] * 3)
    return module.eval()


def spell(sentences: Sequence[Sequence[str]]) -> Tensor:
    """Return padded (B, T, 50) ids, by AllenNLP's own mapping."""
    from allennlp.data.token_indexers.elmo_indexer import ELMoCharacterMapper  # noqa: PLC0415

    longest = max(map(len, sentences))
    mapper = ELMoCharacterMapper({})
    empty = [0] * mapper.max_word_length
    return torch.tensor(
        [
            [mapper.convert_word_to_char_ids(token) for token in sentence]
            + [empty] * (longest - len(sentence))
            for sentence in sentences
        ]
    )


@torch.inference_mode()
def embed(module: Any, sentences: Sequence[Sequence[str]], *, batch_size: int = 32) -> list[Tensor]:
    """Return (tokens, D) per sentence; each batch starts from a zero state, as elmore's do."""
    found = []
    for start in range(0, len(sentences), batch_size):
        batch = sentences[start : start + batch_size]
        module._elmo_lstm._elmo_lstm.reset_states()
        vectors = module(spell(batch))["elmo_representations"][0]
        found += [row[: len(sentence)] for row, sentence in zip(vectors, batch, strict=True)]
    return found


def _replace_packages() -> None:
    if "allennlp" in sys.modules:
        return
    found = find_spec("allennlp")
    assert found is not None
    assert found.submodule_search_locations is not None
    root = Path(found.submodule_search_locations[0])
    # It checks that a method of the class above is overridden, which a stand-in does not have.
    sys.modules["overrides"] = ModuleType("overrides")
    sys.modules["overrides"].overrides = lambda method: method  # type: ignore[attr-defined]
    for name in PACKAGES:
        package = ModuleType(f"allennlp{name}")
        package.__path__ = [str(root.joinpath(*name.split(".")[1:]))]
        sys.modules[package.__name__] = package
    _fill("common", Params=_Absent)
    _fill("common.file_utils", cached_path=lambda path: path)
    _fill("common.util", lazy_groups_of=_lazy_groups_of, pad_sequence_to_length=None)
    _fill("data", Token=_Absent, Vocabulary=_Absent, Instance=_Absent)
    _fill("data.dataset", Batch=_Absent)
    _fill("data.fields", TextField=_Absent)
    _fill("data.tokenizers.token", Token=_Absent)
    _fill("data.token_indexers.token_indexer", TokenIndexer=_Absent)
    _fill("data.vocabulary", Vocabulary=_Absent)
    # Weights are read from the file, so nothing needs to be initialized.
    _fill("nn.initializers", block_orthogonal=lambda *_: None)


def _fill(name: str, **contents: Any) -> None:
    full_name = f"allennlp.{name}"
    module = sys.modules.setdefault(full_name, ModuleType(full_name))
    for key, value in contents.items():
        setattr(module, key, value)


def _lazy_groups_of(items: Any, size: int) -> Any:
    iterator = iter(items)
    return iter(lambda: list(islice(iterator, size)), [])
