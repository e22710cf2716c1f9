"""Let a biLM read a task's text as a language model first: the paper's domain transfer."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from elmore.corpus.prepare import prepare_corpus
from elmore.corpus.settings import PrepareSettings
from elmore.errors import DataError
from elmore.files.atomic import make_folder, replace_file, replace_json
from elmore.files.owned_folder import ChangedJobError, find_changes
from elmore.files.untrusted import read_json
from elmore.lm.finetune import StartingPoint, finetune_model, load_start, make_settings
from elmore.lm.finish import REPORT
from elmore.lm.run import MODEL
from elmore.text.files import TextForm
from elmore.text.vocabulary import write_entries

# As the command `elmore finetune`: gentler than training from nothing.
ROWS, LEARNING_RATE = 32, 0.001
ABOUT = "about.json"
_WHITESPACE = re.compile(r"[\t\r\n]")


@dataclass(frozen=True, kw_only=True)
class DomainModel:
    """A biLM that knows a task's text, and how well it predicts the development text."""

    folder: Path
    perplexity: dict[str, float]  # before and after, in the words it had before


@dataclass(frozen=True, kw_only=True)
class DomainText:
    """What is read, as often as it is asked for; nothing is learned from `dev`."""

    train: Callable[[], Iterable[Sequence[str]]]
    dev: Callable[[], Iterable[Sequence[str]]]

    def digest(self) -> str:
        """Return what tells this text from others."""
        hashed = blake2b(digest_size=16)
        for read in (self.train, self.dev):
            for sentence in read():
                hashed.update(repr(tuple(sentence)).encode())
            hashed.update(b"|")
        return hashed.hexdigest()


def check_start(source: str | None, folder: Path | None) -> None:
    """Refuse a biLM that cannot be fine-tuned, unless it was already, in `folder`."""
    if folder is None or _find_finished(folder / "run") is None:
        _load(source)


def check_text(folder: Path, text: DomainText, *, elmo: str) -> None:
    """Refuse what was made of another biLM or text, where trainings share a folder."""
    if (folder / ABOUT).is_file():
        changes = find_changes(read_json(folder / ABOUT), _describe(text, elmo=elmo))
        if changes:
            phrases = {"elmo": "another biLM", "text": "other text"}
            raise ChangedJobError(folder, [phrases.get(name, changes[name]) for name in changes])


def _describe(text: DomainText, *, elmo: str) -> dict[str, str]:
    return {"elmo": elmo, "text": text.digest()}


def transfer(
    source: str | None,
    folder: Path,
    text: DomainText,
    *,
    elmo: str,
    epochs: float,
    device: str = "cpu",
) -> DomainModel:
    """Fine-tune a biLM on training sentences in `folder`, unless that was done before.

    `elmo` is the fingerprint of the one to start from.
    """
    check_text(folder, text, elmo=elmo)
    run = folder / "run"
    if (finished := _find_finished(run)) is not None:
        return finished
    make_folder(folder)
    replace_json(folder / ABOUT, _describe(text, elmo=elmo))
    start = _load(source)
    words = folder / "words.txt"
    if not words.is_file():
        _write(folder / "train.txt", text.train())
        _write(folder / "dev.txt", text.dev())
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
    finetune_model(source, corpus, run, settings=settings, device=device)
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
            f"{run / REPORT} is damaged ({error!s:.100}); start over with --restart"
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
