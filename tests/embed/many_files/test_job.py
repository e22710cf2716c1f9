"""A job over many files: complete, without duplicates, and only redone where needed."""

import json
import shutil
import warnings

import duckdb
import fsspec
import numpy as np
import polars
import pytest

import elmore
from elmore.embed.embedder import Embedder
from elmore.embed.many_files import shard_worker
from elmore.errors import ConfigError, DataWarning, ElmoreError
from tests import tiny

TEXT = "The old man sat by the river.\nIt rained all day. He left.\n\n"


@pytest.fixture(scope="module")
def embedder():
    return Embedder(tiny.model(scale=0.4))


@pytest.fixture
def texts(tmp_path):
    (tmp_path / "texts").mkdir()
    for number in range(3):
        text = TEXT.replace("river", f"river {number}") * (number + 1)
        (tmp_path / "texts" / f"{number}.txt").write_text(text)
    return tmp_path / "texts"


def run(embedder, texts, out, **how):
    job = elmore.plan_files(embedder, texts, out, shard_bytes=100, **how)
    for shard in job.find_pending():
        job.run(shard)
    return job, job.finish()


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.parametrize("file_format", ["parquet", "h5", "npz"])
@pytest.mark.parametrize("options", [{}, {"pool": "mean"}, {"words": ["river", "He"]}])
def test_the_folder_has_what_single_files_have(tmp_path, embedder, texts, file_format, options):
    job, report = run(embedder, texts, tmp_path / "v", file_format=file_format, **options)
    found = list(elmore.read_vectors(tmp_path / "v"))
    wanted = []
    for path in sorted(texts.iterdir()):
        elmore.embed_to_file(embedder, path, tmp_path / "one.npz", **options)
        wanted += [(str(path), sentence) for sentence in elmore.read_vectors(tmp_path / "one.npz")]
    assert len(job.shards) > 3
    for sentence, (source, other) in zip(found, wanted, strict=True):
        assert (sentence.source, sentence.line) == (source, other.line)
        assert (sentence.tokens, sentence.positions) == (other.tokens, other.positions)
        assert sentence.vectors.tobytes() == other.vectors.tobytes()
    assert report.is_complete
    assert report.num_parts == len(job.shards)
    assert report.num_tokens == sum(
        len(sentence.tokens) for path in texts.iterdir() for sentence in _read(embedder, path)
    )
    assert not (tmp_path / "v" / ".attempts").exists()


def _read(embedder, path):
    elmore.embed_to_file(embedder, path, path.parents[1] / "count.npz")
    return elmore.read_vectors(path.parents[1] / "count.npz")


def test_every_part_is_described(tmp_path, embedder, texts):
    job, report = run(embedder, texts, tmp_path / "v")
    for shard in job.shards:
        part = tmp_path / "v" / job.name_part(shard)
        facts = json.loads(part.with_suffix(".json").read_text())
        assert facts["input"]["sha256"] == shard.sha256
        assert facts["num_bytes"] == part.stat().st_size
        assert facts["kernel"] == embedder.kernel
        assert facts["elmore"] == elmore.__version__
        assert facts["settings"]["model_hash"] == embedder.model.fingerprint()
        assert facts["num_sentences"] == len(list(elmore.read_vectors(part)))
    manifest = json.loads((tmp_path / "v" / "manifest.json").read_text())
    assert len(manifest["parts"]) == report.num_parts
    assert manifest["num_tokens"] == report.num_tokens


def test_duckdb_and_polars_read_the_folder_as_one_dataset(tmp_path, embedder, texts):
    run(embedder, texts, tmp_path / "v")
    table = elmore.read_vectors(tmp_path / "v").to_arrow()
    pattern = f"{tmp_path}/v/*.parquet"
    rows = duckdb.sql(f"SELECT source, token, vector FROM '{pattern}'").fetchall()
    assert len(rows) == table.num_rows
    frame = polars.scan_parquet(pattern).filter(polars.col("token") == "river").collect()
    assert len(frame) == 6
    found = np.stack(frame["vector"].to_numpy())
    wanted = [
        sentence.vectors[sentence.tokens.index("river")]
        for sentence in elmore.read_vectors(tmp_path / "v")
        if "river" in sentence.tokens
    ]
    assert np.array_equal(found, wanted)


def test_a_rerun_does_nothing(tmp_path, embedder, texts):
    run(embedder, texts, tmp_path / "v")
    before = contents(tmp_path / "v")
    job, report = run(embedder, texts, tmp_path / "v")
    assert contents(tmp_path / "v") == before
    assert report.num_parts_before == len(job.shards)


def test_only_changed_text_is_embedded_again(tmp_path, embedder, texts):
    run(embedder, texts, tmp_path / "v")
    (texts / "2.txt").write_text(TEXT.replace("old", "young") * 3)
    second = elmore.plan_files(embedder, texts, tmp_path / "v", shard_bytes=100)
    assert not (tmp_path / "v" / "manifest.json").exists()
    pending = second.find_pending()
    assert 0 < len(pending) < len(second.shards)
    assert {span.source for shard in pending for span in shard.spans} == {str(texts / "2.txt")}
    for shard in pending:
        second.run(shard)
    second.finish()
    run(embedder, texts, tmp_path / "fresh")
    assert contents(tmp_path / "v") == contents(tmp_path / "fresh")


def test_other_settings_are_refused_and_redone_with_restart(tmp_path, embedder, texts):
    run(embedder, texts, tmp_path / "v")
    with pytest.raises(ElmoreError, match="pool was None and is now 'max'"):
        elmore.plan_files(embedder, texts, tmp_path / "v", shard_bytes=100, pool="max")
    _, report = run(embedder, texts, tmp_path / "v", pool="max", restart=True)
    run(embedder, texts, tmp_path / "fresh", pool="max")
    assert report.num_parts_before == 0
    assert contents(tmp_path / "v") == contents(tmp_path / "fresh")


@pytest.mark.parametrize("damage", ["no sidecar", "no part", "short part", "bad sidecar", "other"])
def test_a_part_counts_only_if_it_is_whole(tmp_path, embedder, texts, damage):
    job, _ = run(embedder, texts, tmp_path / "v")
    before = contents(tmp_path / "v")
    part = tmp_path / "v" / job.name_part(job.shards[1])
    match damage:
        case "no sidecar":
            part.with_suffix(".json").unlink()
        case "no part":
            part.unlink()
        case "short part":
            part.write_bytes(part.read_bytes()[:-1])
        case "bad sidecar":
            part.with_suffix(".json").write_text("{")
        case "other":
            other = tmp_path / "v" / job.name_part(job.shards[2])
            shutil.copy(other.with_suffix(".json"), part.with_suffix(".json"))
    again = elmore.plan_files(embedder, texts, tmp_path / "v", shard_bytes=100)
    (pending,) = again.find_pending()
    assert pending == job.shards[1]
    again.run(pending)
    again.finish()
    assert contents(tmp_path / "v") == before


def test_a_shard_that_is_embedded_twice_is_stored_once(tmp_path, embedder, texts):
    job, _ = run(embedder, texts, tmp_path / "v")
    before = contents(tmp_path / "v")
    for shard in job.shards:
        job.worker.run(shard)
    assert contents(tmp_path / "v") == before


def test_bad_text_is_listed_and_the_rest_is_embedded(tmp_path, embedder, texts):
    (texts / "1.txt").write_bytes(b"A line.\n\nCaf\xe9 " + b"x " * 40 + b"\n")
    _, report = run(embedder, texts, tmp_path / "v")
    ((name, reason),) = report.bad.items()
    assert name.startswith("part-")
    assert "1.txt, line 3: byte 0xe9 is not UTF-8" in reason
    assert report.is_complete
    with pytest.warns(DataWarning, match="lacks 1 of its texts or parts"):
        found = list(elmore.read_vectors(tmp_path / "v"))
    assert {sentence.source for sentence in found} >= {str(texts / "0.txt"), str(texts / "2.txt")}
    (texts / "1.txt").write_text("A line.\n\nCafe.\n")
    _, report = run(embedder, texts, tmp_path / "v")
    assert not report.bad
    assert len(list(elmore.read_vectors(tmp_path / "v"))) > len(found)


@pytest.mark.parametrize(
    ("bad", "complaint"),
    [
        (b"He left.\nCaf\xe9.\n", "bad.txt, line 2: byte 0xe9 is not UTF-8"),
        (b"He left.\n" + b"x " * 90, "bad.txt, line 2: a sentence has 90 tokens, more than"),
    ],
    ids=["not UTF-8", "too long"],
)
def test_a_bad_file_costs_the_others_in_its_shard_nothing(tmp_path, texts, bad, complaint):
    embedder = Embedder(tiny.model(scale=0.4), max_sentence_tokens=80)
    run(embedder, texts, tmp_path / "wanted", restart=True)
    (texts / "bad.txt").write_bytes(bad)
    counted = []
    job = elmore.plan_files(embedder, texts, tmp_path / "v")  # one shard
    for shard in job.find_pending():
        job.run(shard, on_tokens=lambda tokens, _: counted.append(tokens))
    report = job.finish()
    assert len(job.shards) == report.num_parts == 1
    assert complaint in report.bad[str(texts / "bad.txt")]
    assert sum(counted) == report.num_tokens
    with pytest.warns(DataWarning, match=r"such as .*bad\.txt"):
        found = list(elmore.read_vectors(tmp_path / "v"))
    for one, other in zip(found, elmore.read_vectors(tmp_path / "wanted"), strict=True):
        assert (one.source, one.line) == (other.source, other.line)
        assert one.vectors.tobytes() == other.vectors.tobytes()
    again = elmore.plan_files(embedder, texts, tmp_path / "v")
    assert again.find_pending() == job.shards  # the reason may be gone
    assert again.finish().bad == report.bad


def test_bad_files_of_other_shares_are_not_reported(tmp_path, embedder, texts):
    (texts / "0.txt").write_bytes(b"Caf\xe9.\n")
    (texts / "00.txt").write_text("He left.\n")
    job = elmore.plan_files(embedder, texts, tmp_path / "v", shard_bytes=100)
    for shard in job.find_pending(share=(1, 2)):
        job.run(shard)
    assert list(job.finish().bad) == [str(texts / "0.txt")]
    other = elmore.plan_files(embedder, texts, tmp_path / "v", shard_bytes=100)
    for shard in other.find_pending(share=(2, 2)):
        other.run(shard)
    assert not other.finish().bad
    manifest = json.loads((tmp_path / "v" / "manifest.json").read_text())
    assert list(manifest["bad"]) == [str(texts / "0.txt")]


def test_vectors_are_no_texts_of_the_next_run(tmp_path, embedder, texts):
    run(embedder, texts, texts / "v")
    before = contents(texts / "v")
    _, report = run(embedder, texts, texts / "v")
    assert (report.num_parts_before, report.bad) == (report.num_parts, {})
    assert contents(texts / "v") == before
    with pytest.raises(ElmoreError, match="all texts are in"):
        elmore.plan_files(embedder, texts / "v" / "*.json", texts / "v")


def test_two_jobs_in_one_folder_are_noticed_and_leave_no_rows_of_the_first(
    tmp_path, embedder, texts
):
    first = elmore.plan_files(embedder, texts, tmp_path / "v", shard_bytes=100)
    first.run(first.shards[0])
    second = elmore.plan_files(embedder, texts / "2.txt", tmp_path / "v", shard_bytes=100)
    first.run(first.shards[1])
    for shard in second.find_pending():
        second.run(shard)
    second.finish()
    first.run(first.shards[2])
    with pytest.raises(ElmoreError, match=r"another command has used .*v for other texts"):
        first.finish()
    run(embedder, texts / "2.txt", tmp_path / "wanted")
    assert contents(tmp_path / "v") == contents(tmp_path / "wanted")


def test_a_full_disk_is_no_bad_text(tmp_path, embedder, texts, monkeypatch):
    job = elmore.plan_files(embedder, texts, tmp_path / "v", shard_bytes=100)

    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shard_worker, "write_vector_file", fail)
    with pytest.raises(ElmoreError, match="disk or your quota is full"):
        job.run(job.shards[0])


def test_an_unfinished_folder_is_not_read(tmp_path, embedder, texts):
    job = elmore.plan_files(embedder, texts, tmp_path / "v", shard_bytes=100)
    job.run(job.shards[0])
    with pytest.raises(ElmoreError, match="is not finished; rerun its command"):
        elmore.read_vectors(tmp_path / "v")
    with pytest.raises(ElmoreError, match=r"no manifest\.json"):
        elmore.read_vectors(texts)


def test_shares_are_disjoint_and_complete(tmp_path, embedder, texts):
    job = elmore.plan_files(embedder, texts, tmp_path / "v", shard_bytes=100)
    shares = [job.find_pending(share=(number, 3)) for number in (1, 2, 3)]
    numbers = sorted(shard.number for share in shares for shard in share)
    assert numbers == list(range(len(job.shards)))
    for shard in shares[0]:
        job.run(shard)
    assert not job.finish().is_complete


def test_unsegmented_chinese_is_noticed_once(tmp_path, embedder):
    (tmp_path / "zh.txt").write_text("我们希望中国的经济发展得更快。\n\n" * 50)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default")
        job = elmore.plan_files(embedder, tmp_path / "zh.txt", tmp_path / "v", shard_bytes=100)
        assert [str(warning.message)[:25] for warning in seen] == ["the text contains Chinese"]
        for shard in job.find_pending():
            job.run(shard)
    assert len(seen) == 1


def test_stream_state_is_refused(tmp_path, texts):
    embedder = Embedder(tiny.model(scale=0.4), state="stream")
    with pytest.raises(ConfigError, match="carries the state from one file into the next"):
        elmore.plan_files(embedder, texts, tmp_path / "v")
    assert not (tmp_path / "v").exists()


@pytest.mark.parametrize("state", ["document", "reset"])
def test_documents_stay_whole(tmp_path, texts, state):
    embedder = Embedder(tiny.model(scale=0.4), state=state)
    run(embedder, texts, tmp_path / "v", pool="mean", per="document")
    found = list(elmore.read_vectors(tmp_path / "v"))
    wanted = []
    for path in sorted(texts.iterdir()):
        elmore.embed_to_file(embedder, path, tmp_path / "one.npz", pool="mean", per="document")
        wanted += list(elmore.read_vectors(tmp_path / "one.npz"))
    assert len(found) == len(wanted) == 6
    for one, other in zip(found, wanted, strict=True):
        assert (one.tokens, one.line) == (other.tokens, other.line)
        assert one.vectors.tobytes() == other.vectors.tobytes()


def test_a_worker_with_another_kernel_refuses(tmp_path, embedder, texts, monkeypatch):
    job = elmore.plan_files(embedder, texts, tmp_path / "v", kernel=None)
    monkeypatch.setenv("ELMORE_KERNEL", "torch")
    if embedder.kernel == "torch":
        pytest.skip("there is no other kernel here")
    with pytest.raises(ConfigError, match="computes with the kernel torch, but the job"):
        job.run(job.shards[0])


def test_workers_can_be_held_to_one_kernel(tmp_path, texts):
    tiny.model(scale=0.4).save_pretrained(tmp_path / "model")
    job = elmore.plan_files(str(tmp_path / "model"), texts, tmp_path / "v", kernel="torch")
    job.run(job.shards[0])
    assert job.finish().kernel == "torch"
    if job.worker.header.kernel != Embedder(tiny.model(scale=0.4)).kernel:
        with pytest.raises(ConfigError, match="kernel is 'torch', but this embedder uses"):
            elmore.plan_files(
                elmore.load(tmp_path / "model"), texts, tmp_path / "w", kernel="torch"
            )


def test_files_of_others_are_not_touched(tmp_path, embedder, texts):
    (tmp_path / "v").mkdir()
    (tmp_path / "v" / "part-notes.txt").write_text("mine")
    with pytest.raises(ElmoreError, match="contains other files"):
        elmore.plan_files(embedder, texts, tmp_path / "v")
    assert contents(tmp_path / "v") == {"part-notes.txt": b"mine"}


def test_urls_are_read_and_written(tmp_path, embedder, texts):
    memory = fsspec.filesystem("memory")
    for path in texts.iterdir():
        memory.pipe_file(f"/job/texts/{path.name}", path.read_bytes())
    try:
        job, report = run(embedder, "memory://job/texts/*.txt", "memory://job/v")
        assert report.is_complete
        memory.get("/job/v/", str(tmp_path / "copy") + "/", recursive=True)
        again, _ = run(embedder, "memory://job/texts", "memory://job/v")
        assert again.num_before == len(job.shards)
    finally:
        memory.rm("/job", recursive=True)
    run(embedder, texts, tmp_path / "v")
    found = list(elmore.read_vectors(tmp_path / "copy"))
    wanted = list(elmore.read_vectors(tmp_path / "v"))
    assert [sentence.tokens for sentence in found] == [sentence.tokens for sentence in wanted]
    assert all(
        a.vectors.tobytes() == b.vectors.tobytes() for a, b in zip(found, wanted, strict=True)
    )
    assert found[0].source == "memory:///job/texts/0.txt"
