"""Fine-tune the biLM as a language model on a task's text: the paper's domain transfer."""

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
from elmore.lm.finetune import finetune_model, make_settings
from elmore.lm.finish import REPORT
from elmore.lm.run import MODEL
from elmore.lm.starting_point import StartingPoint, load_start
from elmore.text.files import TextForm
from elmore.text.vocabulary import write_entries

# As in the command `elmore finetune`: smaller steps than in training from scratch.
ROWS, LEARNING_RATE = 32, 0.001
ABOUT = "about.json"
_WHITESPACE = re.compile(r"[\t\r\n]")


@dataclass(frozen=True, kw_only=True)
class DomainModel:
    """A biLM fine-tuned on a task's text, and its perplexity on the dev text."""

    folder: Path
    perplexity: dict[str, float]  # before and after, with the same vocabulary


@dataclass(frozen=True, kw_only=True)
class DomainText:
    """Functions that read the text, possibly several times; `dev` is not trained on."""

    train: Callable[[], Iterable[Sequence[str]]]
    dev: Callable[[], Iterable[Sequence[str]]]

    def digest(self) -> str:
        """Return a hash of the text."""
        hashed = blake2b(digest_size=16)
        for read in (self.train, self.dev):
            for sentence in read():
                hashed.update(repr(tuple(sentence)).encode())
            hashed.update(b"|")
        return hashed.hexdigest()


def check_start(source: str | None, folder: Path | None) -> None:
    """Refuse a biLM that cannot be fine-tuned, unless `folder` has it fine-tuned already."""
    if folder is None or _find_finished(folder / "run") is None:
        _load(source)


def check_text(folder: Path, text: DomainText, *, elmo: str) -> None:
    """Refuse a folder, which training runs may share, of another biLM or another text."""
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
    """Fine-tune a biLM on the training text in `folder`, unless that is already done.

    `elmo` is the fingerprint of the biLM before fine-tuning.
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
    """Return the result of a finished run; None if its report has no perplexities yet."""
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
            "this model has no LM head, so it cannot be fine-tuned on the task's text; choose one "
            "that has, or set elmo.finetune_epochs = 0"
        )
    return start


def _write(path: Path, sentences: Iterable[Sequence[str]]) -> None:
    """Write each distinct sentence once; several questions may share a passage."""
    seen: set[bytes] = set()  # hashes take less memory than the text of a large task
    with replace_file(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        for sentence in sentences:
            # Tabs, because a token may contain a space.
            line = "\t".join(_WHITESPACE.sub(" ", token) for token in sentence)
            line = line.encode(
                errors="ignore"
            ).decode()  # drop lone surrogates, which UTF-8 cannot encode
            digest = blake2b(line.encode(), digest_size=16).digest()
            if digest not in seen:
                seen.add(digest)
                file.write(line + "\n")
