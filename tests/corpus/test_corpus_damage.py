"""A corpus opens with the data it was made with, or with a sentence about what is damaged."""

import hashlib
import json
import os
import random
import shutil
import warnings

import numpy as np
import pytest
from safetensors.numpy import load_file, save

from elmore.corpus.corpus import check_corpus, open_corpus
from elmore.corpus.shards import ARRAYS
from elmore.errors import DataError, DataWarning
from tests.corpus.corpora import make_documents, prepare, read_folder, write_tokenized

TEXT = write_tokenized(make_documents())
SMALL_FILES = [
    "vocabulary.txt",
    "counts.bin",
    "word_ids.bin",
    "train_segments.bin",
    "heldout_segments.bin",
    "train_documents.bin",
    "heldout_documents.bin",
]
SHARD = "shards/00000001.safetensors"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpora") / "corpus"
    return prepare(TEXT, folder, heldout=0.3, max_words=15, min_count=2, chunk_bytes=600)


@pytest.fixture
def copy(made, tmp_path):
    return shutil.copytree(made.folder, tmp_path / "copy")


def read_text(corpus):
    """All that a training takes from a corpus."""
    parts = [list(corpus.train.documents()), list(corpus.heldout.documents())]
    return corpus.vocabulary, corpus.counts.tolist(), corpus.fingerprint, parts


def change_summary(folder, change):
    """Change what corpus.json says, checksum included, as a program that made it wrong would."""
    path = folder / "corpus.json"
    content = json.loads(path.read_text())
    change(content)
    content.pop("checksum", None)
    text = json.dumps(content, sort_keys=True)
    content["checksum"] = hashlib.sha256(text.encode()).hexdigest()
    path.write_text(json.dumps(content))


def seal(folder):
    """Give all files the checksums they now have."""

    def note_checksums(content):
        for name, entry in content["files"].items():
            data = (folder / name).read_bytes()
            entry.update(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())
        entries = [*content["files"].values(), *content["shards"]]
        checksums = "\n".join(entry["sha256"] for entry in entries)
        content["fingerprint"] = hashlib.sha256(checksums.encode()).hexdigest()

    change_summary(folder, note_checksums)


def remove_checksum(folder):
    """Make corpus.json what older versions wrote."""
    path = folder / "corpus.json"
    content = json.loads(path.read_text())
    del content["checksum"], content["job"]
    path.write_text(json.dumps(content, indent=1) + "\n")


@pytest.mark.parametrize("name", [*SMALL_FILES, SHARD])
def test_damage_is_named_before_anything_is_read(copy, name):
    path = copy / name
    check_corpus(copy)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(DataError, match=f"{name} is damaged"):
        read_text(open_corpus(copy))
    with pytest.raises(DataError, match=rf"{name} is damaged.*; copy the corpus again, or prepare"):
        check_corpus(copy)
    os.truncate(path, len(data) - 1)
    for read in (open_corpus, check_corpus):
        with pytest.raises(DataError, match=f"{name} has .* bytes instead of"):
            read(copy)
    path.unlink()
    for read in (open_corpus, check_corpus):
        with pytest.raises(DataError, match=f"{name} is missing"):
            read(copy)


def test_a_check_names_every_damaged_file(copy):
    for name in ("counts.bin", SHARD):
        data = bytearray((copy / name).read_bytes())
        data[-8:] = bytes(byte ^ 0xFF for byte in data[-8:])
        (copy / name).write_bytes(data)
    (copy / "word_ids.bin").unlink()
    with pytest.raises(DataError) as error:
        check_corpus(copy)
    assert all(name in str(error.value) for name in ("counts.bin", "word_ids.bin", SHARD))


def damage(data, chooser):
    """Flip bits, zero or fill a stretch, insert a byte, cut the end off."""
    place = chooser.randrange(len(data))
    length = chooser.choice([1, 1, 1, 8, 40])
    match chooser.randrange(6):
        case 0 | 1:
            return (
                data[:place] + bytes([data[place] ^ 1 << chooser.randrange(8)]) + data[place + 1 :]
            )
        case 2:
            return data[:place] + bytes(min(length, len(data) - place)) + data[place + length :]
        case 3:
            filled = b"\xff" * min(length, len(data) - place)
            return data[:place] + filled + data[place + length :]
        case 4:
            return data[:place] + bytes([chooser.randrange(256)]) + data[place + 1 :]
        case _:
            return data[:place]


@pytest.mark.slow
@pytest.mark.parametrize("has_checksum", [True, False])
def test_random_damage_is_an_error_or_changes_nothing(made, copy, has_checksum):
    if not has_checksum:
        remove_checksum(copy)
    chooser = random.Random(0)
    expected = read_text(made)
    num_refused = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        for path in sorted(path for path in copy.rglob("*") if path.is_file()):
            whole = path.read_bytes()
            for _ in range(100 if path.name == "corpus.json" else 20):
                path.write_bytes(damage(whole, chooser))
                try:
                    corpus = open_corpus(copy)
                    found = read_text(corpus)
                except DataError:
                    num_refused += 1
                else:
                    assert found == expected, path
                    if has_checksum:
                        assert corpus.about == made.about, path
            path.write_bytes(whole)
        assert read_text(open_corpus(copy)) == expected
    assert num_refused > 200


def test_a_corpus_of_an_older_version_opens_with_one_warning(made, copy):
    remove_checksum(copy)
    with pytest.warns(DataWarning, match=r"corpus\.json .* has no checksum") as warned:
        older = open_corpus(copy)
    assert len(warned) == 1
    assert read_text(older) == read_text(made)  # with the fingerprint, which runs remember


def test_the_fingerprint_is_that_of_all_checksums(made):
    entries = [made.about["files"][name] for name in SMALL_FILES] + made.about["shards"]
    checksums = "\n".join(entry["sha256"] for entry in entries)
    assert made.fingerprint == hashlib.sha256(checksums.encode()).hexdigest()


@pytest.mark.parametrize(
    ("place", "possible"),
    [
        ("parts.train.symbols", []),
        ("parts.heldout.documents", []),
        ("parts.train.outside_share", [True]),
        ("parts.train", []),
        ("parts", []),
        ("vocabulary_size", []),
        ("files.counts$bin.bytes", []),
        ("files.counts$bin.sha256", []),
        ("files.counts$bin", []),
        ("files", []),
        ("shards.1.num_types", []),
        ("shards.1.bad_places", [[]]),
        ("shards.1.is_heldout", [True]),
        ("shards.1", []),
        ("shards", []),
        ("settings", [{}, {"a": 1}]),
        ("inputs", [[]]),
        ("notes", [[]]),
        ("bad_bytes", []),
        ("fingerprint", []),
    ],
)
def test_impossible_values_are_refused_even_under_a_right_checksum(copy, place, possible):
    whole = (copy / "corpus.json").read_bytes()
    *outer, last = [
        int(name) if name.isdigit() else name.replace("$", ".") for name in place.split(".")
    ]
    for value in (-1, 1 << 70, 1.5, "12", None, True, [], {}, 3, [[]], {"a": 1}):

        def change(content, value=value):
            for name in outer:
                content = content[name]
            content[last] = value

        if any(value == other and type(value) is type(other) for other in possible):
            continue
        (copy / "corpus.json").write_bytes(whole)
        change_summary(copy, change)
        with pytest.raises(DataError, match="damaged"):
            read_text(open_corpus(copy))


def test_only_the_files_of_a_corpus_are_looked_for(copy):
    def change(content):
        content["files"]["../outside"] = content["files"].pop("counts.bin")

    change_summary(copy, change)
    with pytest.raises(DataError, match=r"corpus\.json is damaged \(its files are"):
        open_corpus(copy)


@pytest.mark.parametrize(
    ("name", "dtype", "place", "value"),
    [
        ("counts.bin", "<i8", 0, -1),
        ("counts.bin", "<i8", 0, 1 << 62),
        ("word_ids.bin", "<u4", 3, 18),
        ("train_segments.bin", "<i8", 0, 1),
        ("train_segments.bin", "<i8", 1, -5),
        ("train_segments.bin", "<i8", -1, 1 << 60),
        ("heldout_documents.bin", "<i8", 0, -1),
        ("heldout_documents.bin", "<i8", 1, 1 << 62),
        ("heldout_documents.bin", "<i8", -1, 0),
    ],
)
def test_numbers_out_of_bounds_are_refused_even_under_right_checksums(
    copy, name, dtype, place, value
):
    numbers = np.fromfile(copy / name, dtype)
    numbers[place] = value
    numbers.tofile(copy / name)
    seal(copy)
    with pytest.raises(DataError, match=f"{name} is damaged"):
        open_corpus(copy)


@pytest.mark.parametrize("number", [-1, 99])
def test_a_segment_of_a_shard_that_does_not_exist_is_refused(copy, number):
    segments = np.fromfile(copy / "train_segments.bin", "<i8").reshape(3, -1)
    segments[1, -1] = number
    segments.tofile(copy / "train_segments.bin")
    seal(copy)
    with pytest.raises(DataError, match="shards that do not exist"):
        open_corpus(copy)


@pytest.mark.parametrize(
    ("array", "place", "value", "message"),
    [
        ("symbols", 1, 1 << 31, "symbols without a spelling"),
        ("symbols", 0, 2, "lack markers"),
        ("sentence_starts", 1, 1 << 31, "sentences overlap"),
        ("type_offsets", 1, 1 << 31, "spellings overlap"),
        ("type_bytes", 0, 0xFF, "not UTF-8"),
        ("type_bytes", 0, 0x0A, "not one per line"),
    ],
)
def test_a_shard_made_to_break_readers_is_refused(copy, array, place, value, message):
    path = copy / SHARD
    arrays = {name: values.copy() for name, values in load_file(path).items()}
    arrays[array][place] = value
    digest = hashlib.sha256(b"".join(arrays[name].tobytes() for name in ARRAYS)).hexdigest()
    header = path.read_bytes()[8:]
    about = json.loads(
        json.JSONDecoder().raw_decode(header.decode("latin-1"))[0]["__metadata__"]["elmore"]
    )
    about["facts"]["sha256"] = digest
    path.write_bytes(save(arrays, metadata={"elmore": json.dumps(about)}))
    change_summary(copy, lambda content: content["shards"][1].update(sha256=digest))
    seal(copy)
    with pytest.raises(DataError, match=message):
        read_text(open_corpus(copy))


def test_processes_share_the_check_of_all_shards(copy):
    data = bytearray((copy / SHARD).read_bytes())
    data[-1] ^= 1
    (copy / SHARD).write_bytes(data)
    corpus = open_corpus(copy)
    corpus.check_shards(rank=0, num_ranks=2)  # checks shards 0, 2, ...
    with pytest.raises(DataError, match=f"{SHARD} is damaged"):
        open_corpus(copy).check_shards(rank=1, num_ranks=2)


def test_a_shard_is_checked_once_and_not_kept_open_for_it(made, monkeypatch):
    corpus = open_corpus(made.folder)
    corpus.check_shards()
    assert corpus.shards.open.cache_info().currsize == 0
    monkeypatch.setattr("elmore.corpus.part.find_shard_damage", None)
    assert read_text(corpus) == read_text(made)


def test_a_damaged_summary_does_not_keep_from_starting_over(copy, made):
    (copy / "corpus.json").write_bytes(b"\0" * 100)
    settings = {"heldout": 0.3, "max_words": 15, "min_count": 2, "chunk_bytes": 600}
    with pytest.raises(DataError, match="damaged or not elmore's"):
        prepare(TEXT, copy, **settings)
    assert read_text(prepare(TEXT, copy, restart=True, **settings)) == read_text(made)


def test_a_resumed_preparation_makes_damaged_shards_again(copy, made):
    (copy / "corpus.json").unlink()
    data = bytearray((copy / SHARD).read_bytes())
    data[-1] ^= 1
    (copy / SHARD).write_bytes(data)
    prepare(TEXT, copy, heldout=0.3, max_words=15, min_count=2, chunk_bytes=600)
    assert read_folder(copy) == read_folder(made.folder)


def test_the_record_of_the_job_is_verified_too(made, copy):
    path = copy / "job.json"
    path.write_bytes(path.read_bytes() + b"x")
    assert read_text(open_corpus(copy)) == read_text(made)  # only resuming needs it
    with pytest.raises(DataError, match=r"job\.json has [\d,]+ bytes instead of"):
        check_corpus(copy)
    path.unlink()
    with pytest.raises(DataError, match=r"job\.json is missing; copy the corpus again"):
        check_corpus(copy)


def test_an_older_record_of_the_job_must_at_least_be_readable(copy):
    change_summary(copy, lambda content: content.pop("job"))
    check_corpus(copy)
    path = copy / "job.json"
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(DataError, match=r"job\.json is damaged; copy the corpus again"):
        check_corpus(copy)
