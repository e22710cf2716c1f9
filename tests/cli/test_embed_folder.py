"""`elmore embed` with a folder as --out."""

import json
import os

import numpy as np
import pytest

import elmore
from tests.tiny import TRAINED_MODEL


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts").mkdir()
    for name in "ab":
        (tmp_path / "texts" / f"{name}.txt").write_text(f"The bank {name}.\n\nA bank.\n")
    return tmp_path


@pytest.fixture
def in_process(monkeypatch):
    """Embed without worker processes, which a quick test may not start."""

    def run(job, shards, *, num_workers, progress):
        for shard in shards:
            job.run(shard)
            progress.finish(shard)

    monkeypatch.setattr("elmore.cluster.embed_files.run_locally", run)


def test_a_folder_of_vectors_is_written_and_read(folder, elmore_command, in_process):
    result = elmore_command(
        *("embed", "texts/a.txt", "texts/b*.txt", "--model", TRAINED_MODEL, "--out", "v/"),
        *("--shard-bytes", 20, "--pool", "mean", "--per", "document", "--dtype", "f16"),
    )
    assert result.status == 0
    assert "v: 4 parts, 4 sentences, 14 tokens" in result.err
    found = list(elmore.read_vectors("v"))
    assert [(entry.source, entry.line) for entry in found] == [
        (f"texts/{name}.txt", line) for name in "ab" for line in (1, 3)
    ]
    assert found[0].vectors.shape == (1, 48)
    again = elmore_command(
        *("embed", "texts/a.txt", "texts/b*.txt", "--model", TRAINED_MODEL, "--out", "v/"),
        *("--shard-bytes", 20, "--pool", "mean", "--per", "document", "--dtype", "f16", "--json"),
    )
    assert (again.json["num_parts_before"], again.json["num_parts"]) == (4, 4)


def test_bad_text_gives_status_1_and_is_listed(folder, elmore_command, in_process):
    (folder / "texts" / "b.txt").write_bytes(b"A caf\xe9 in a long line.\n")
    result = elmore_command(
        "embed", "texts", "--model", TRAINED_MODEL, "--out", "v", "--shard-bytes", 30
    )
    assert result.status == 1
    assert "elmore: not embedded: part-00001-" in result.err
    assert "texts/b.txt, line 1: byte 0xe9 is not UTF-8" in result.err
    assert json.loads((folder / "v" / "manifest.json").read_text())["num_sentences"] == 2


def test_a_plan_embeds_nothing(folder, elmore_command):
    result = elmore_command("embed", "texts", "--model", TRAINED_MODEL, "--out", "v", "--plan")
    assert (result.status, result.err.splitlines()[-1]) == (0, "v: 1 part to embed")
    assert [path.name for path in (folder / "v").iterdir()] == ["job.json"]


def test_a_plan_lists_files_that_cannot_be_read(folder, elmore_command):
    (folder / "texts" / "c.txt.gz").write_bytes(b"no gzip")
    result = elmore_command("embed", "texts", "--model", TRAINED_MODEL, "--out", "v", "--plan")
    assert result.status == 1
    assert "elmore: not embedded: texts/c.txt.gz: cannot read" in result.err


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["texts/a.txt", "--workers", "2", "--out", "v.h5"], "--workers is for a folder"),
        (["texts/a.txt", "texts/b.txt", "--out", "v.h5"], "2 texts are embedded into a folder"),
        (["texts/a.txt", "--engine", "ray"], "--engine is for a folder"),
        (["texts/*.none", "--out", "v"], "no file matches"),
        ([], "give a text file"),
        (["texts", "--out", "v", "--state", "stream"], "cannot be embedded independently"),
        (["texts", "--out", "v", "--engine", "spark"], "choose one of: local, ray"),
        (["texts", "--out", "v", "--kernel", "neon"], "choose avx512, avx2 or torch"),
        (["texts/a.txt", "--words", "none.txt", "--out", "v.h5"], "cannot read none.txt"),
        (["texts/a.txt", "--dim", "8"], "--dim writes a vector file"),
    ],
)
def test_mistakes_are_one_sentence(folder, elmore_command, arguments, complaint):
    result = elmore_command("embed", *arguments, "--model", TRAINED_MODEL)
    assert result.status == 2
    assert complaint in " ".join(result.err.replace("│", " ").split())
    assert not (folder / "v").exists()


@pytest.mark.parametrize("before", [None, "avx2"])
@pytest.mark.parametrize("out", ["v", "v.h5"])
def test_the_kernel_of_a_command_is_its_own(
    folder, elmore_command, in_process, monkeypatch, before, out
):
    if before is None:
        monkeypatch.delenv("ELMORE_KERNEL", raising=False)
    else:
        monkeypatch.setenv("ELMORE_KERNEL", before)
    result = elmore_command(
        *("embed", "texts/a.txt", "--model", TRAINED_MODEL, "--out", out, "--kernel", "torch"),
        "--json",
    )
    assert result.json["kernel"] == "torch"
    assert os.environ.get("ELMORE_KERNEL") == before


@pytest.mark.parametrize("out", ["v", "v.parquet"])
def test_vectors_for_similarity_are_written(folder, elmore_command, in_process, out):
    embedder = elmore.load(TRAINED_MODEL)
    embedder.fit_similarity([[first, second] for first in "abcdefghij" for second in "klmnopqrst"])
    embedder.save("model")
    command = ("embed", "texts/a.txt", "--model", "model", "--pool", "similarity")
    assert elmore_command(*command, "--out", out).status == 0
    found = np.concatenate([entry.vectors for entry in elmore.read_vectors(out)])
    wanted = embedder.sentence_vectors(["The bank a.", "A bank."], pool="similarity")
    assert np.array_equal(found, wanted)
    refused = elmore_command(*command, "--layers", "top", "--out", "other.h5")
    assert refused.status == 2
    assert "has layers of its own" in " ".join(refused.err.split())


def test_a_projection_is_fitted_and_used(folder, elmore_command):
    (folder / "sample.txt").write_text("The bank of the river. He left the old man.\n" * 5)
    fitted = elmore_command(
        *("fit-projection", "sample.txt", "--model", TRAINED_MODEL, "--dim", 4, "--out", "small")
    )
    assert fitted.status == 0
    assert "which keep" in fitted.err
    result = elmore_command(
        *("embed", "texts/a.txt", "--model", "small", "--dim", 4, "--dtype", "int8"),
        *("--out", "v.parquet"),
    )
    assert result.status == 0
    assert next(elmore.read_vectors("v.parquet")).vectors.shape == (4, 4)
