"""The commands as Python functions, with the same defaults, for notebooks and programs."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmore.config import StatePolicy
from elmore.errors import ConfigError
from elmore.settings import apply_change, find_config

if TYPE_CHECKING:
    from elmore.corpus.corpus import Corpus
    from elmore.embed.embedder import Embedder
    from elmore.embed.layer_choice import Layers
    from elmore.explore.neighbors import Neighbor
    from elmore.lm.finish import RunReport
    from elmore.lm.perplexity import LossTotals
    from elmore.tasks.fit.fit import FitReport
    from elmore.tasks.fit.model import TaskModel

PathLike = str | Path


def prepare(
    text: PathLike | Sequence[PathLike],
    out: PathLike,
    *,
    heldout_text: PathLike | Sequence[PathLike] = (),
    processes: int | None = None,
    restart: bool = False,
    **settings: Any,
) -> "Corpus":
    """Prepare text files for pretraining; like `elmore prepare`.

    `settings` are those of `PrepareSettings`, such as `max_words=50_000` or `heldout=0.02`. Several
    processes import the calling program, so protect its work with `if __name__ == "__main__"`.
    """
    from elmore.corpus.prepare import prepare_corpus  # noqa: PLC0415  brings numpy
    from elmore.corpus.settings import PrepareSettings  # noqa: PLC0415

    return prepare_corpus(
        text,
        out,
        settings=PrepareSettings(**settings),
        heldout_sources=heldout_text,
        num_processes=processes,
        restart=restart,
    )


def pretrain(
    corpus: "PathLike | Corpus",
    out: PathLike,
    *,
    config: PathLike = "small",
    settings: Mapping[str, Any] | None = None,
    weights: Mapping[str, int] | None = None,
    restart: bool = False,
    device: str = "cpu",
) -> "RunReport | None":
    """Train a biLM on a prepared corpus, or resume; like `elmore pretrain`.

    `config` is a TOML file or the name of one that comes with elmore. `settings` changes it:
    `{"training.rows": 64}`. `weights` says how often each source is read per epoch. The trained
    model is in `out/model`. Under torchrun, all processes but the first get None.
    """
    from elmore.lm.pretrain import pretrain_model  # noqa: PLC0415  brings torch
    from elmore.lm.settings import load_settings  # noqa: PLC0415

    changes = [*_to_changes(settings), *_to_changes(weights, prefix="training.weights.")]
    loaded = load_settings(find_config(str(config)), changes)
    return pretrain_model(loaded, corpus, out, restart=restart, device=device)


def evaluate(
    documents: Iterable[Sequence[Sequence[str]]],
    *,
    model: PathLike | None = None,
    state: StatePolicy | str = StatePolicy.DOCUMENT,
    max_tokens: int | None = None,
    device: str = "cpu",
) -> "LossTotals":
    """Measure the perplexity of documents, each a list of tokenized sentences.

    Documents of a corpus come from `corpus.heldout.documents()`. The result has `perplexity`,
    `forward_perplexity`, `backward_perplexity` and `bits_per_character`.
    """
    from elmore.jobs.device import read_device  # noqa: PLC0415  brings torch
    from elmore.lm.language_model import LanguageModel  # noqa: PLC0415
    from elmore.lm.perplexity import measure_losses  # noqa: PLC0415

    loaded = LanguageModel.load(model).to(read_device(device))
    return measure_losses(
        loaded.elmo,
        loaded.softmax,
        loaded.words,
        documents=documents,
        state=StatePolicy(state),
        max_tokens=max_tokens,
    )


def neighbors(
    word: str,
    sentences: Iterable[str | Sequence[str]],
    *,
    query: str | Sequence[str] | None = None,
    model: "PathLike | Embedder | None" = None,
    layers: "Layers | None" = None,
    top: int = 10,
) -> "list[Neighbor]":
    """Return the most similar uses of a word in some sentences; like `elmore neighbors`.

    With `query`, a sentence that has the word, the uses most similar to that one.
    """
    from elmore.embed.embedder import Embedder, load  # noqa: PLC0415  brings torch
    from elmore.explore.neighbors import nearest_pairs, nearest_to  # noqa: PLC0415
    from elmore.text.tokens import parse_sentence  # noqa: PLC0415

    embedder = model if isinstance(model, Embedder) else load(model)
    parsed = (parse_sentence(sentence, language=embedder.language) for sentence in sentences)
    if query is None:
        return nearest_pairs(embedder, word, parsed, layers=layers, top=top)
    tokens = parse_sentence(query, language=embedder.language)
    return nearest_to(embedder, word, parsed, query=tokens, layers=layers, top=top)


def fit(
    task: str,
    out: PathLike,
    *,
    data: PathLike | None = None,
    train: PathLike | None = None,
    dev: PathLike | None = None,
    test: PathLike | None = None,
    model: PathLike | None = None,
    words: PathLike | None = None,
    config: PathLike | None = None,
    settings: Mapping[str, Any] | None = None,
    accept: bool = False,
    restart: bool = False,
    device: str = "cpu",
) -> "FitReport":
    """Train a task network with ELMo vectors, or resume; like `elmore fit`.

    Give a folder (`data`), or `train` and `dev`. `model` is the biLM, `words` a file of word
    vectors, `settings` changes such as `{"elmo.where": "both"}`.
    """
    from elmore.tasks.data.parts import find_parts  # noqa: PLC0415
    from elmore.tasks.fit.elmo import ElmoChoice  # noqa: PLC0415  brings torch
    from elmore.tasks.fit.fit import fit_task  # noqa: PLC0415
    from elmore.tasks.fit.settings import load_settings  # noqa: PLC0415

    if data is None and (train is None or dev is None):
        raise ConfigError("there is no data to train on; give a folder (data), or train and dev")
    changes = _to_changes(settings)
    if words is not None:
        changes.append(f"words.file={json.dumps(str(words))}")
    loaded = load_settings(task, config=None if config is None else Path(config), changes=changes)
    named = {"train": train, "dev": dev, "test": test}
    parts = find_parts(
        None if data is None else Path(data),
        **{name: Path(path) for name, path in named.items() if path is not None},
    )
    return fit_task(
        loaded,
        parts,
        out,
        elmo=ElmoChoice(name=None if model is None else str(model)),
        accept=accept,
        restart=restart,
        device=device,
    )


def load_task(
    folder: PathLike, *, model: PathLike | None = None, device: str = "cpu"
) -> "TaskModel":
    """Load a task network that `fit` trained; `model` names its biLM if that has moved."""
    from elmore.tasks.fit.folder import load_task_model  # noqa: PLC0415  brings torch

    return load_task_model(folder, elmo=None if model is None else str(model), device=device)


def predict(
    folder: "PathLike | TaskModel",
    examples: Iterable[Any],
    *,
    model: PathLike | None = None,
    device: str = "cpu",
) -> list[Any]:
    """Return the predictions of a trained task for some examples, in their order.

    docs/guides/tasks.md lists what an example is in each task, such as a sentence for entities.
    """
    loaded = (
        load_task(folder, model=model, device=device) if isinstance(folder, str | Path) else folder
    )
    return [prediction for _, prediction in loaded.predict(examples)]


def _to_changes(settings: Mapping[str, Any] | None, *, prefix: str = "") -> list[str]:
    """Write settings as `--set` takes them, and check their form."""
    changes = [f"{prefix}{name}={json.dumps(value)}" for name, value in (settings or {}).items()]
    for change in changes:
        apply_change({}, change)
    return changes
