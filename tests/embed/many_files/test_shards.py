"""The same files give the same shards, and shards give the sentences of their files."""

import gzip
import os
import sys

import pytest

from elmore.embed.many_files.inputs import find_inputs
from elmore.embed.many_files.shards import plan_shards, read_shard
from elmore.errors import DataError
from elmore.text.excerpts import DocumentCuts
from elmore.text.files import read_text
from elmore.text.language import Language

LINE = "The old man sat by the river. It rained.\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "large.txt").write_text((LINE * 3 + "\n") * 20)
    for number in range(6):
        (tmp_path / "texts" / f"small{number}.txt").write_text(f"Text number {number}.\n")
    packed = gzip.compress(((LINE + "\n") * 30).encode())
    (tmp_path / "texts" / "packed.txt.gz").write_bytes(packed)
    return tmp_path / "texts"


def plan(folder, *, shard_bytes=600, documents=DocumentCuts.PREFERRED, **how):
    return plan_shards(
        find_inputs(str(folder), **how),
        shard_bytes=shard_bytes,
        language=Language.EN,
        documents=documents,
    )


def read(shard, **how):
    return list(read_shard(shard, language=Language.EN, **{"keeps_document_ends": False, **how}))


def test_shards_have_every_sentence_once_with_its_file_and_line(folder):
    made = plan(folder)
    found = [sentence for shard in made.shards for sentence in read(shard)]
    wanted = [
        sentence._replace(source=str(path))
        for path in sorted(folder.iterdir())
        for sentence in read_text(path)
    ]
    assert found == wanted
    assert max(shard.num_bytes for shard in made.shards) <= 600
    assert len(made.shards) > 5


def test_small_files_share_a_shard(folder):
    assert max(len(shard.spans) for shard in plan(folder).shards) >= 6


def test_the_plan_depends_on_the_files_alone(folder):
    assert plan(folder) == plan(folder)
    before = plan(folder)
    path = folder / "small2.txt"
    path.write_text(path.read_text().upper())
    changed = [a != b for a, b in zip(before.shards, plan(folder).shards, strict=True)]
    assert sum(changed) == 1


def test_text_that_changed_after_planning_is_refused(folder):
    made = plan(folder)
    text = (folder / "large.txt").read_text().replace("rained", "snowed", 1)
    (folder / "large.txt").write_text(text)
    with pytest.raises(DataError, match=r"large\.txt has changed since the job was planned"):
        read(made.shards[0])


def test_files_end_documents(folder):
    shared = next(shard for shard in plan(folder).shards if len(shard.spans) >= 6)
    sentences = [sentence.tokens for sentence in read(shared, keeps_document_ends=True)]
    small = [tokens for tokens in sentences if tokens[:2] in ([], ["Text", "number"])]
    assert small.count([]) >= 5


def test_a_damaged_file_is_listed_and_the_others_are_planned(folder):
    data = (folder / "packed.txt.gz").read_bytes()
    (folder / "packed.txt.gz").write_bytes(data[:-10])
    made = plan(folder)
    (name, reason) = next(iter(made.bad_inputs.items()))
    assert name.endswith("packed.txt.gz")
    assert "damaged" in reason
    assert sum(len(shard.spans) for shard in made.shards) >= 7


def test_inputs_are_paths_patterns_folders_and_lists(folder, tmp_path):
    by_folder = find_inputs(folder)
    by_pattern = find_inputs([f"{folder}/*.txt", f"{folder}/*.gz"])
    (tmp_path / "list.txt").write_text("".join(f"{text.name}\n" for text in by_folder))
    assert find_inputs([], files_from=tmp_path / "list.txt") == by_folder
    assert sorted(by_pattern, key=lambda text: text.name) == by_folder
    assert find_inputs([folder, f"{folder}/*.txt"]) == by_folder
    same = [f"{folder}/../{folder.name}/large.txt", os.path.relpath(folder / "large.txt")]
    assert len(find_inputs([folder / "large.txt", *same])) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="needs named pipes")
def test_pipes_and_devices_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/null"):
        with pytest.raises(DataError, match="is a pipe or a device"):
            find_inputs(path)


@pytest.mark.parametrize(
    ("texts", "complaint"),
    [
        ([], "no text files were given"),
        (["missing.txt"], "there is no file missing.txt"),
        (["none*.txt"], "no file matches"),
        (["memory://nothing/*.txt"], "no file matches"),
        (["memory://nothing/a.txt"], "there is nothing at"),
        (["nosuch://a"], "cannot use nosuch://a"),
    ],
)
def test_missing_inputs_are_one_sentence(texts, complaint):
    with pytest.raises(DataError, match=complaint):
        find_inputs(texts)
