"""Changed bytes in files that users get from others: one sentence or a result, no traceback.

tests/weights/test_damaged_files.py does the same with published models' own formats.
"""

import copy
import functools
import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elmore.embed.vector_file import (
    SentenceVectors,
    VectorHeader,
    read_header,
    read_vectors,
    write_vector_file,
)
from elmore.errors import ElmoreError
from elmore.tasks.fit.folder import load_task_model
from elmore.weights.loading import load_model
from tests import tiny
from tests.tasks.fit.made_up import Place
from tests.weights.test_damaged_files import change

pytestmark = pytest.mark.slow

NUM_CHANGES = 60
SENTENCES = [["a", "bad", "cafe"], ["dada"]]
TASK_FILES = ["settings.json", "words.txt", "weights.safetensors"]
MODEL_FILES = ["config.json", "model.safetensors", "vocabulary.txt", "characters.txt"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    made = Place(tmp_path_factory.mktemp("fuzz"))
    made.fit("plain", "training.max_epochs=1")
    made.fit("elmo", "training.max_epochs=1", "elmo.where=both")
    made.fit("trained", "training.max_epochs=1", "elmo.where=input", "elmo.training=task")
    return made


def assert_no_traceback(use: Callable[[], object], path: Path) -> None:
    """Change a file in many ways and use it each time."""
    whole = path.read_bytes()
    refusals: list[str] = []
    for seed in range(NUM_CHANGES):
        path.unlink()  # what was loaded may still look into the old file
        path.write_bytes(change(whole, random.Random(seed)))
        try:
            use()
        except ElmoreError as error:
            refusals.append(str(error))
    assert refusals, "not one change was noticed"
    assert [text for text in refusals if "\n" in text or len(text) > 800] == []


@pytest.mark.parametrize("run", ["plain", "elmo", "trained"])
@pytest.mark.parametrize("name", TASK_FILES)
def test_a_task_folder(place, tmp_path, run, name):
    folder = shutil.copytree(place.folder / run, tmp_path / "task")

    def use() -> None:
        model = load_task_model(folder)
        examples = list(model.read(place.data / "test.txt"))
        list(model.predict(examples[:2]))

    assert_no_traceback(use, folder / name)


def find_values(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to every value of an object, and to the first of every list."""
    parts = content.items() if isinstance(content, dict) else enumerate(content[:1])
    for key, value in parts:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from find_values(value, (*path, key))


def test_a_task_folder_with_other_settings(place, tmp_path):
    folder = shutil.copytree(place.folder / "elmo", tmp_path / "task")
    whole = json.loads((folder / "settings.json").read_text())
    outcomes = set()
    for *path, last in find_values(whole):
        for value in (None, [], {}, "", -1, 10**18):
            content = copy.deepcopy(whole)
            functools.reduce(lambda node, key: node[key], path, content)[last] = value
            (folder / "settings.json").write_text(json.dumps(content))
            try:
                load_task_model(folder)
                outcomes.add("loaded")
            except ElmoreError as error:
                outcomes.add("two lines" if "\n" in str(error) else "refused")
    assert outcomes == {"loaded", "refused"}


@pytest.mark.parametrize("name", MODEL_FILES)
def test_a_model_folder(tmp_path, name):
    tiny.model(tiny.word_and_char_config()).save_pretrained(tmp_path)
    assert_no_traceback(lambda: load_model(tmp_path), tmp_path / name)


# Not .h5: changed bytes can make libhdf5 itself loop for ever (docs/reference/models.md).
@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
def test_a_vector_file(tmp_path, suffix):
    path = tmp_path / f"vectors{suffix}"
    header = VectorHeader(
        model="tiny",
        model_hash="0" * 64,
        state="reset",
        layers="average",
        dtype="float32",
        num_layers=None,
        vector_dim=4,
        precision="f32",
    )
    sentences = [
        SentenceVectors(tokens=tokens, vectors=np.ones((len(tokens), 4), dtype=np.float32))
        for tokens in SENTENCES
    ]
    write_vector_file(path, sentences, header=header)
    assert_no_traceback(lambda: (read_header(path), list(read_vectors(path))), path)
