"""Long jobs: what they write, and that a kill costs nothing but time."""

import json
import random
import sys

import h5py
import numpy as np
import pytest
import torch

import elmore
from elmore.embed import job, vector_file
from elmore.embed.embedder import Embedder
from elmore.embed.job import embed_to_file
from elmore.embed.vector_file import read_header, read_vectors
from elmore.errors import DataError, ElmoreError
from elmore.kernels.library import describe_kernel
from elmore.model.scalar_mix import ScalarMix
from tests import tiny
from tests.kernels import variants
from tests.killing import run_with_kills

SENTENCES = [[f"w{n % 13}"] * (n % 5) for n in range(60)]


@pytest.fixture(scope="module")
def model():
    return tiny.model(scale=0.4)


@pytest.mark.parametrize("suffix", [".h5", ".parquet", ".npz"])
@pytest.mark.parametrize("layers", ["all", "average"])
@pytest.mark.parametrize("state", ["reset", "document", "stream"])
def test_the_file_has_what_the_embedder_gives(tmp_path, model, suffix, layers, state):
    path = tmp_path / f"vectors{suffix}"
    embedder = Embedder(model, state=state)
    report = embed_to_file(embedder, SENTENCES, path, layers=layers)
    wanted = list(Embedder(model, state=state).stream(SENTENCES, layers=layers))
    found = list(read_vectors(path))
    assert [sentence.tokens for sentence in found] == SENTENCES
    for sentence, vectors in zip(found, wanted, strict=True):
        assert sentence.vectors.tobytes() == vectors.tobytes()
        assert sentence.vectors.shape == vectors.shape
    assert report.num_tokens == sum(map(len, SENTENCES))
    header = read_header(path)
    assert (header.state, header.layers) == (state, layers)
    assert header.model_hash == model.fingerprint()
    assert header.kernel == report.kernel == describe_kernel()
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


TEXT = "It rains. It pours.\n\nThe old man\nsnores.\n"


@pytest.mark.parametrize("suffix", [".h5", ".parquet", ".npz"])
@pytest.mark.parametrize(
    ("form", "lines"),
    [
        ("lines", [1, 2, 3, 4]),
        ("tokenized", [1, 2, 3, 4]),
        ("raw", [1, 1, 3, 4]),
        ("wrapped", [1, 1, 3]),
        (None, [1, 1, 3, 4]),
    ],
)
def test_a_file_is_embedded_with_the_lines_of_its_sentences(tmp_path, model, form, lines, suffix):
    (tmp_path / "text.txt").write_text(TEXT)
    out = tmp_path / f"vectors{suffix}"
    embed_to_file(Embedder(model), tmp_path / "text.txt", out, form=form)
    found = list(read_vectors(out))
    assert [sentence.line for sentence in found] == lines
    text = TEXT.splitlines()
    for sentence in found:
        first = sentence.tokens[0] if sentence.tokens else ""
        assert first in text[sentence.line - 1]


def test_sentences_of_a_list_are_numbered(tmp_path, model):
    embed_to_file(Embedder(model), ["It rains.", [], ["It", "pours"]], tmp_path / "v.npz")
    assert [sentence.line for sentence in read_vectors(tmp_path / "v.npz")] == [1, 2, 3]


def test_a_resumed_job_has_the_lines_of_all_its_sentences(tmp_path, model, monkeypatch):
    monkeypatch.setattr(job, "CHUNK_BYTES", 1)
    path = tmp_path / "text.txt"
    path.write_text("".join(f"w{number}\n\n" for number in range(20)))
    embedder = Embedder(model, tokens_per_batch=2)

    def stop(num_sentences, _):
        if num_sentences > 25:
            raise KeyboardInterrupt

    out = tmp_path / "v.npz"
    with pytest.raises(KeyboardInterrupt):
        embed_to_file(embedder, path, out, form="lines", on_progress=stop)
    report = embed_to_file(embedder, path, out, form="lines")
    assert report.num_resumed_sentences > 0
    assert [sentence.line for sentence in read_vectors(out)] == list(range(1, 41))


@pytest.mark.parametrize(
    ("sentences", "options", "complaint"),
    [
        ("The bank.", {}, "there is no file 'The bank.'; give the path of a text file, or a list"),
        ("a\0b", {}, "there is no file"),
        (None, {}, "got None where a list of sentences was expected"),
        (b"The bank.", {}, "got b'The bank.' where a list of sentences was expected"),
        (["a"], {"form": "lines"}, "form is 'lines', but a list of sentences was given"),
    ],
)
def test_input_that_is_neither_a_file_nor_sentences_is_refused(
    tmp_path, model, sentences, options, complaint
):
    with pytest.raises(ElmoreError, match=complaint):
        embed_to_file(Embedder(model), sentences, tmp_path / "v.npz", **options)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_form_is_refused(tmp_path, model):
    (tmp_path / "text.txt").write_text("a\n")
    with pytest.raises(ElmoreError, match="form is 'line'; choose one of: raw, wrapped"):
        embed_to_file(Embedder(model), tmp_path / "text.txt", tmp_path / "v.npz", form="line")


@pytest.mark.slow
@pytest.mark.parametrize("state", ["reset", "document", "stream"])
def test_a_job_interrupted_anywhere_resumes_with_the_same_result(
    tmp_path, model, state, monkeypatch
):
    monkeypatch.setattr(job, "CHUNK_BYTES", 1)  # a part a window
    whole = tmp_path / "whole.npz"
    make = {"state": state, "tokens_per_batch": 2}
    embed_to_file(Embedder(model, **make), SENTENCES, whole, layers="all")
    for stop in (1, 10, 31, 59):
        path = tmp_path / f"{stop}.npz"

        def broken(stop=stop):
            yield from SENTENCES[:stop]
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            embed_to_file(Embedder(model, **make), broken(), path, layers="all")
        assert not path.exists()
        report = embed_to_file(Embedder(model, **make), iter(SENTENCES), path, layers="all")
        assert 0 <= report.num_resumed_sentences <= stop
        assert report.num_tokens == sum(map(len, SENTENCES))
        assert path.read_bytes() == whole.read_bytes()
    assert report.num_resumed_sentences > 40


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("state", ["document", "stream"])
def test_a_job_resumes_in_the_precision_of_its_model(tmp_path, dtype, state, monkeypatch):
    monkeypatch.setattr(job, "CHUNK_BYTES", 1)
    make = {"model": tiny.model(scale=0.4).to(dtype), "state": state, "tokens_per_batch": 2}
    whole, path = tmp_path / "whole.npz", tmp_path / "resumed.npz"
    embed_to_file(Embedder(**make), SENTENCES, whole)
    break_off(Embedder(**make), path, monkeypatch)
    report = embed_to_file(Embedder(**make), SENTENCES, path)
    assert report.num_resumed_sentences > 20
    assert path.read_bytes() == whole.read_bytes()


def break_off(embedder, path, monkeypatch):
    """Leave a job half done."""
    monkeypatch.setattr(job, "CHUNK_BYTES", 1)

    def broken():
        yield from SENTENCES[:40]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        embed_to_file(embedder, broken(), path)


@pytest.mark.slow
def test_other_text_or_another_model_is_not_mixed_in(tmp_path, model, monkeypatch):
    path = tmp_path / "vectors.npz"
    embedder = Embedder(model, tokens_per_batch=2)
    break_off(embedder, path, monkeypatch)
    with pytest.raises(DataError, match="other text"):
        embed_to_file(embedder, SENTENCES[::-1], path)
    with pytest.raises(DataError, match="model_hash"):
        embed_to_file(Embedder(tiny.model(seed=1)), SENTENCES, path)
    with pytest.raises(DataError, match="state was 'reset' and is now 'stream'"):
        embed_to_file(Embedder(model, state="stream"), SENTENCES, path)
    embed_to_file(embedder, SENTENCES[::-1], path, restart=True)
    assert next(read_vectors(path)).tokens == SENTENCES[-1]


@pytest.mark.slow
@pytest.mark.parametrize(("before", "now"), [("avx2", "torch"), ("torch", "avx2")])
def test_vectors_of_two_kernels_are_not_mixed(tmp_path, before, now, monkeypatch):
    path = tmp_path / "vectors.npz"

    def make():
        return Embedder(tiny.model(scale=0.4), tokens_per_batch=2)

    with variants.using(before):
        break_off(make(), path, monkeypatch)
    with variants.using(now):
        wanted = f"kernel was '{before}' and is now '{now}'.*ELMORE_KERNEL={before}.*--restart"
        with pytest.raises(DataError, match=wanted):
            embed_to_file(make(), SENTENCES, path)
    with variants.using(before):
        assert embed_to_file(make(), SENTENCES, path).num_resumed_sentences > 20
    assert read_header(path).kernel == before


def test_a_job_that_recorded_no_kernel_is_not_resumed(tmp_path, model, monkeypatch):
    path = tmp_path / "vectors.npz"
    break_off(Embedder(model, tokens_per_batch=2), path, monkeypatch)
    job_path = tmp_path / "vectors.npz.partial" / "job.json"
    entries = json.loads(job_path.read_text())
    del entries["job"]["kernel"]
    job_path.write_text(json.dumps(entries))
    with pytest.raises(DataError, match="kernel was not recorded and is now"):
        embed_to_file(Embedder(model), SENTENCES, path)


def test_what_is_not_a_kernels_work_is_recorded_as_torchs(tmp_path):
    path = tmp_path / "vectors.npz"
    embed_to_file(Embedder(tiny.model().double()), SENTENCES, path)
    assert read_header(path).kernel == "torch"
    assert tiny.model().bilm.to("meta").kernel_name == "torch-meta"


@pytest.mark.slow
def test_restarting_deletes_nothing_but_an_earlier_job(tmp_path, model, monkeypatch):
    path = tmp_path / "vectors.npz"
    mine = tmp_path / "vectors.npz.partial" / "mine.txt"
    mine.parent.mkdir()
    mine.write_text("keep")
    with pytest.raises(DataError, match="not a folder of chunks"):
        embed_to_file(Embedder(model), SENTENCES, path, restart=True)
    assert mine.read_text() == "keep"
    mine.unlink()
    break_off(Embedder(model, tokens_per_batch=2), path, monkeypatch)
    report = embed_to_file(Embedder(model), SENTENCES, path, restart=True)
    assert report.num_resumed_sentences == 0


def test_a_job_cannot_resume_with_another_mix(tmp_path, model, monkeypatch):
    monkeypatch.setattr(job, "CHUNK_BYTES", 1)
    path = tmp_path / "vectors.npz"
    embedder = Embedder(model, tokens_per_batch=2, layers=ScalarMix(num_layers=3))
    break_off(embedder, path, monkeypatch)
    with pytest.raises(DataError, match="normalized"):
        embed_to_file(
            Embedder(model, layers=ScalarMix(num_layers=3, normalizes=True)), SENTENCES, path
        )


@pytest.mark.slow
def test_parts_are_stored_after_a_while_too(tmp_path, model, monkeypatch):
    monkeypatch.setattr(job, "CHUNK_SECONDS", 0.0)
    path = tmp_path / "vectors.npz"

    def broken():
        yield from SENTENCES[:40]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        embed_to_file(Embedder(model, tokens_per_batch=2), broken(), path)
    report = embed_to_file(Embedder(model), SENTENCES, path)
    assert report.num_resumed_sentences > 20


def test_a_job_does_not_leave_all_writing_to_the_disk_to_its_end(tmp_path, model, monkeypatch):
    monkeypatch.setattr(job, "FLUSH_BYTES", 1)
    flushed = []
    monkeypatch.setattr(vector_file, "flush_to_disk", flushed.append)
    embed_to_file(Embedder(model), SENTENCES, tmp_path / "vectors.h5")
    assert len(flushed) == sum(map(bool, SENTENCES))


def test_strings_are_split_and_paths_may_be_strings(tmp_path, model):
    path = str(tmp_path / "vectors.h5")
    embed_to_file(Embedder(model), ["Don't stop.", ["a b"]], path, compress=True)
    assert [s.tokens for s in read_vectors(path)] == [["Do", "n't", "stop", "."], ["a b"]]
    with h5py.File(path) as file:
        assert file["0"].compression == "gzip"


def test_a_message_counts_the_sentences_of_an_earlier_run(tmp_path, model, monkeypatch):
    path = tmp_path / "vectors.npz"
    break_off(Embedder(model, tokens_per_batch=2), path, monkeypatch)
    with pytest.raises(DataError, match="sentence 61 has 7 tokens"):
        embed_to_file(Embedder(model, max_sentence_tokens=6), [*SENTENCES, ["x"] * 7], path)


def test_a_mistake_leaves_nothing_behind(tmp_path, model):
    embedder = Embedder(model, max_sentence_tokens=3)
    for name, layers, sentences in (
        ("vectors.txt", "all", SENTENCES),
        ("vectors.h5", "seven", SENTENCES),
        ("vectors.h5", "all", [["a"] * 4]),
    ):
        with pytest.raises(ElmoreError):
            embed_to_file(embedder, sentences, tmp_path / name, layers=layers)
    assert list(tmp_path.iterdir()) == []


def test_no_sentences_make_a_file_of_none(tmp_path, model):
    embed_to_file(Embedder(model), [], tmp_path / "vectors.h5")
    assert list(read_vectors(tmp_path / "vectors.h5")) == []


@pytest.mark.slow
@pytest.mark.parametrize("state", ["reset", "stream"])
def test_killed_at_random_moments_the_command_ends_with_the_same_content(tmp_path, state):
    text = tmp_path / "text.txt"
    words = random.Random(0)
    text.write_text(
        "".join(
            " ".join(f"w{words.randint(0, 300)}" for _ in range(words.randint(0, 12))) + "\n"
            for _ in range(200)
        )
    )
    path = tmp_path / "vectors.h5"
    # Parts of some 10 ms each, so that kills fall between and into them.
    program = (
        "import elmore.embed.job as job, sys; job.CHUNK_BYTES = 20_000;"
        "from elmore.cli.app import main; main()"
    )
    command = [
        *(sys.executable, "-c", program, "embed", str(text), "--tokenized", "--layers", "all"),
        *("--model", str(tiny.TRAINED_MODEL), "--state", state),
        *("--tokens-per-batch", "64", "--out", str(path)),
    ]
    run_with_kills(
        command, has_started=path.with_name("vectors.h5.partial").exists, seed=len(state)
    )
    embedder = elmore.load(tiny.TRAINED_MODEL, state=state)
    lines = [line.split() for line in text.read_text().splitlines()]
    for found, wanted in zip(read_vectors(path), embedder.stream(lines, layers="all"), strict=True):
        assert np.array_equal(found.vectors, wanted)
