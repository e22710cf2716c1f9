"""The programs in examples/old_programs run unchanged, with elmore in place of what they import."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.compat.old_models import OldModel, assert_close

PROGRAMS = Path(__file__).parents[2] / "examples" / "old_programs"


@pytest.fixture
def old(tmp_path):
    return OldModel(tmp_path / "model")


def run(name, *arguments):
    result = subprocess.run(
        [sys.executable, "-m", "elmore.compat", PROGRAMS / name, *map(str, arguments)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_programs_import_the_old_libraries_and_no_elmore():
    paths = sorted(PROGRAMS.glob("*.py"))
    assert len(paths) >= 4
    for path in paths:
        text = path.read_text()
        nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
        assert {node.module.split(".")[0] for node in nodes} & {"allennlp", "simple_elmo"}
        assert "elmore" not in text


@pytest.mark.slow
def test_proteins_have_the_sum_of_the_layers(old, tmp_path):
    (tmp_path / "proteins.fasta").write_text(">one first\nMKV\nLA\n>two\nMUB\n>three\nACDEFG\n")
    out = tmp_path / "vectors.npz"
    printed = run("protein_vectors.py", tmp_path / "proteins.fasta", old.options, old.weights, out)
    assert "wrote 3 proteins" in printed
    found = np.load(out)
    batches = [[list("MXX"), list("MKVLA")], [list("ACDEFG")]]
    expected = [layers for batch in old.expected(batches) for layers in batch]
    for name, layers in zip(("two", "one", "three"), expected, strict=True):
        assert_close(found[name], layers.sum(axis=0).mean(axis=0))


@pytest.mark.slow
def test_texts_are_classified(old, tmp_path):
    lines = [
        f"good\ta fine {word}\nbad\tno {word} !\n" for word in ("book", "film", "day", "house")
    ]
    (tmp_path / "train.tsv").write_text("".join(lines))
    (tmp_path / "test.tsv").write_text("good\ta fine tree\nbad\tno tree !\n")
    files = (tmp_path / "train.tsv", tmp_path / "test.tsv")
    assert run("classify_texts.py", *files, old.options, old.weights) == (
        "accuracy 1.000 on 2 texts\n"
    )


@pytest.mark.slow
def test_a_tagger_learns_and_is_loaded_again(old, tmp_path):
    sentence = "The DT\nbank NN\nfell VB\n\nA DT\nriver NN\nruns VB\nfast RB\n\n"
    (tmp_path / "train.conll").write_text(sentence * 4)
    printed = run(
        "train_tagger.py", tmp_path / "train.conll", old.options, old.weights, tmp_path / "saved.th"
    )
    losses = [float(number) for number in re.findall(r"loss ([\d.]+)", printed)]
    assert losses[-1] < 0.5 * losses[0]
    weights = [float(number) for number in re.findall(r"-?\d\.\d+", printed.splitlines()[-1])]
    assert len(weights) == 3
    assert any(weights)


@pytest.mark.slow
def test_pairs_are_compared(old, tmp_path):
    words = ["a", "book", "fell", "the", "old", "river", "ran", "dry"]
    pairs = []
    for number in range(6):
        text = " ".join(words[number : number + 3])
        other = " ".join(f"{word}{number}xyz" for word in ("q", "zz", "77"))
        pairs += [f"1\t{text}\t{text} .", f"0\t{text}\t{other}"]
    (tmp_path / "pairs.tsv").write_text("\n".join(pairs) + "\n")
    printed = run("compare_pairs.py", "-i", tmp_path / "pairs.tsv", "-e", old.folder)
    assert "The model is now loaded." in printed
    high, low = (float(number) for number in re.findall(r"(-?\d\.\d+) of", printed))
    assert high > low
