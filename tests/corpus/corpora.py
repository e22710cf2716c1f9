"""Small texts, corpora made of them, and the plainest way to read them."""

import io
import random
from pathlib import Path

from elmore.corpus.corpus import Corpus
from elmore.corpus.prepare import prepare_corpus
from elmore.corpus.settings import PrepareSettings
from elmore.text.files import TextForm

Document = list[list[str]]


def make_documents(num_documents: int = 12, *, seed: int = 0) -> list[Document]:
    """Documents of words of very different frequency, some of several bytes a character."""
    chooser = random.Random(seed)
    words = [f"w{number}" for number in range(40)] + ["é", "我们", "🙂", "<UNK>", "<S>", "</S>"]
    weights = [1 / (place + 1) for place in range(len(words))]
    return [
        [
            chooser.choices(words, weights, k=chooser.randint(1, 9))
            for _ in range(chooser.randint(1, 12))
        ]
        for _ in range(num_documents)
    ]


def write_tokenized(documents: list[Document]) -> str:
    return "\n\n".join("\n".join(" ".join(sentence) for sentence in d) for d in documents) + "\n"


def prepare(text: str | bytes, folder: Path, **settings) -> Corpus:
    """Prepare tokenized text in one process, in chunks of 100 bytes by default."""
    run = {
        name: settings.pop(name)
        for name in ("heldout_sources", "num_processes", "restart", "on_progress")
        if name in settings
    }
    data = text.encode() if isinstance(text, str) else text
    defaults = {"form": TextForm.TOKENIZED, "chunk_bytes": 100, "min_count": 1}
    return prepare_corpus(
        [io.BytesIO(data)],
        folder,
        settings=PrepareSettings(**{**defaults, **settings}),
        **{"num_processes": 1, **run},
    )


def read_folder(folder: Path) -> dict[str, bytes]:
    """Every file with its bytes."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
