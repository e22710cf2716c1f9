"""Let a biLM read a task's text as a language model first: the paper's domain transfer."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from elmore.atomic_file import replace_file
from elmore.errors import ConfigError, DataError
from elmore.pretrain.finetune import StartingPoint, finetune_model, load_start, make_settings
from elmore.pretrain.finish import REPORT
from elmore.pretrain.prepare import prepare_corpus
from elmore.pretrain.prepare_settings import PrepareSettings
from elmore.pretrain.run import MODEL
from elmore.text.files import TextForm
from elmore.text.vocabulary import write_entries
from elmore.weights.json_file import read_json, write_json

# As the command `elmore finetune`: gentler than training from nothing.
ROWS, LEARNING_RATE = 32, 0.001
ABOUT = "about.json"
_WHITESPACE = re.compile(r"[\t\r\n]")


@dataclass(frozen=True, kw_only=True)
class DomainModel:
    """A biLM that knows a task's text, and how well it predicts the development text."""

    folder: Path
    perplexity: dict[str, float]  # before and after, in the words it had before


def check_start(source: str | None, folder: Path) -> None:
    """Refuse a biLM that cannot be fine-tuned, unless it was already."""
    is_same = (folder / ABOUT).is_file() and read_json(folder / ABOUT) == {"elmo": source}
    if not is_same or _find_finished(folder / "run") is None:
        _load(source)


def transfer(
    source: str | None,
    folder: Path,
    *,
    train: Iterable[Sequence[str]],
    dev: Iterable[Sequence[str]],
    epochs: float,
) -> DomainModel:
    """Fine-tune a biLM on training sentences in `folder`, unless that was done before."""
    _check_source(folder, source)
    run = folder / "run"
    if (finished := _find_finished(run)) is not None:
        return finished
    start = _load(source)
    words = folder / "words.txt"
    if not words.is_file():
        _write(folder / "train.txt", train)
        _write(folder / "dev.txt", dev)
        with replace_file(words) as temporary:
            write_entries(temporary, start.words)
    corpus = prepare_corpus(
        [folder / "train.txt"],
        folder / "corpus",
        settings=PrepareSettings(form=TextForm.TOKENIZED, vocabulary=words),
        heldout_sources=[folder / "dev.txt"],
        num_processes=1,
    )
    settings = make_settings(
        start.elmo,
        {
            "training": {"num_epochs": epochs, "rows": ROWS},
            "optimizer": {"learning_rate": LEARNING_RATE},
        },
    )
    finetune_model(source, corpus, run, settings=settings)
    finished = _find_finished(run)
    assert finished is not None
    return finished


def _find_finished(run: Path) -> DomainModel | None:
    """Return what a run came to; a report without perplexities is of one that was killed."""
    if not (run / REPORT).is_file():
        return None
    found = read_json(run / REPORT).get("perplexity")
    if not isinstance(found, dict):
        return None
    try:
        perplexity = {name: float(found[name]) for name in ("before", "after")}
    except (KeyError, TypeError) as error:
        raise DataError(
            f"{run / REPORT} is damaged ({error!s:.100}); begin anew with --restart"
        ) from None
    return DomainModel(folder=run / MODEL, perplexity=perplexity)


def _load(source: str | None) -> StartingPoint:
    start = load_start(source)
    if not start.words:
        raise DataError(
            "this model has no softmax, so that it cannot be fine-tuned on the task's text; "
            "choose one that has, or set elmo.finetune_epochs = 0"
        )
    return start


def _check_source(folder: Path, source: str | None) -> None:
    """Refuse what was made of another model, where trainings share a folder."""
    about = {"elmo": source}
    if not (folder / ABOUT).is_file():
        with replace_file(folder / ABOUT) as temporary:
            write_json(temporary, about)
    elif read_json(folder / ABOUT) != about:
        raise ConfigError(
            f"{folder} has a biLM that was fine-tuned from another one; name another folder"
        )


def _write(path: Path, sentences: Iterable[Sequence[str]]) -> None:
    """Write each distinct sentence once: several questions share a text."""
    seen: set[bytes] = set()  # digests take less memory than a large task's text
    with replace_file(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        for sentence in sentences:
            # Tokens with a space in them are rare; without a tab they would be cut there.
            line = "\t".join(_WHITESPACE.sub(" ", token) for token in sentence)
            line = line.encode(errors="ignore").decode()  # lone surrogates, which UTF-8 has not
            digest = blake2b(line.encode(), digest_size=16).digest()
            if digest not in seen:
                seen.add(digest)
                file.write(line + "\n")
