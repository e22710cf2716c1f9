"""Results stay the same, to the bit on machines of a recorded kind, and old files still load."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import elmore
from elmore.errors import ConfigError
from elmore.kernels.library import find_kernel
from tests.golden.results import (
    FOLDER,
    KERNELS,
    LAYERS,
    PRECISIONS,
    SENTENCES,
    STATES,
    TRAINED_MODEL,
    collect_numbers,
    describe_machine,
    digest,
    embed_text,
    kernel_set_to,
    predict_tags,
    prepare_text,
    pretrain_small,
    read_curve,
    run_command,
)

FILES = FOLDER / "files"
# On machines that nobody recorded. Instructions for bf16 and int8 round what they multiply too.
MOST_OFF = {"f32": 1e-5, "bf16": 0.2, "int8": 0.5}
MOST_NUMBERS_OFF = 2e-4


@pytest.fixture(params=KERNELS)
def kernel(request, monkeypatch):
    """Compute with each kernel that this machine has."""
    with kernel_set_to(request.param):
        try:
            find_kernel()
        except ConfigError as error:
            pytest.skip(str(error))
        yield request.param


@pytest.mark.slow
def test_vectors(kernel, tmp_path):
    found = embed_text(run_command, tmp_path)
    known = json.loads((FOLDER / "bits.json").read_text())
    machine = describe_machine(kernel)
    if machine in known:
        assert digest(found) == known[machine]
    recorded = np.load(FOLDER / "vectors.npz")
    for state in STATES:
        for precision in PRECISIONS:
            layers = recorded[f"{state}/{precision}/all"]
            choices = [layers, layers.mean(axis=0), layers[-1], layers[0], layers[1]]
            for name, expected in zip(LAYERS, choices, strict=True):
                vectors = found[f"{state}/{precision}/{name}"]
                np.testing.assert_allclose(vectors, expected, atol=MOST_OFF[precision], rtol=0)


@pytest.mark.slow
def test_training(kernel, tmp_path):
    found = collect_numbers(run_command, tmp_path)
    known = json.loads((FOLDER / "numbers.json").read_text())
    machine = describe_machine(kernel)
    if machine in known:
        assert found == known[machine]
    expected = next(iter(known.values()))
    assert found.keys() == expected.keys()
    for name, curve in expected.items():
        for point, old in zip(found[name], curve, strict=True):
            assert point == pytest.approx(old, rel=MOST_NUMBERS_OFF), (name, old["step"])


@pytest.mark.parametrize("ending", ["h5", "parquet", "npz"])
def test_vector_files_of_every_format_load(ending):
    sentences = [line.split() for line in SENTENCES.read_text().splitlines()]
    read = list(elmore.read_vectors(FILES / f"vectors.{ending}"))
    assert [list(sentence.tokens) for sentence in read] == sentences
    assert {sentence.line for sentence in read} == {None}  # written before lines were stored
    vectors = np.concatenate([sentence.vectors for sentence in read])
    expected = np.load(FOLDER / "vectors.npz")["reset/f32/all"][-1]
    np.testing.assert_allclose(vectors, expected, atol=2e-3)


@pytest.mark.slow
def test_a_corpus_opens_and_is_prepared_alike(tmp_path):
    perplexity = json.loads(
        run_command("evaluate", FILES / "corpus", "--model", TRAINED_MODEL, "--json")
    )
    again = prepare_text(run_command, tmp_path)
    assert perplexity == json.loads(
        run_command("evaluate", again, "--model", TRAINED_MODEL, "--json")
    )
    for path in sorted((FILES / "corpus").rglob("*")):
        if path.suffix in (".bin", ".txt"):
            other = again / path.relative_to(FILES / "corpus")
            assert other.read_bytes() == path.read_bytes(), path.name


@pytest.mark.slow
def test_a_checkpoint_is_resumed_to_the_recorded_end(tmp_path):
    shutil.copytree(FILES / "run", tmp_path / "run")
    folder = pretrain_small(run_command, tmp_path, FILES / "corpus", max_steps=20)
    known = json.loads((FOLDER / "numbers.json").read_text())
    expected = next(iter(known.values()))["pretrain small"]
    for point, old in zip(read_curve(folder), expected, strict=True):
        assert point == pytest.approx(old, rel=MOST_NUMBERS_OFF), old["step"]


def test_a_trained_model_folder_loads():
    vectors = elmore.load(FILES / "run" / "model").embed([["the", "bank"]])
    assert vectors[0].shape == (2, 10)
    assert np.isfinite(vectors[0]).all()


def test_a_task_folder_predicts_what_it_did():
    expected = (FILES / "predictions.txt").read_text(encoding="utf-8")
    assert predict_tags(run_command, FILES / "task") == expected


def test_nothing_recorded_names_a_folder_of_this_machine():
    for path in FOLDER.rglob("*"):
        if path.is_file() and path.suffix not in (".py", ".pyc"):
            data = path.read_bytes()
            assert str(Path.cwd()).encode() not in data, path
            assert b"/tmp/" not in data, path
