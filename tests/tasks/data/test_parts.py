import pytest

from elmore.errors import DataError
from elmore.tasks.data.parts import find_parts


def names(files):
    return [path.name for path in files]


@pytest.mark.parametrize(
    ("train", "dev", "test"),
    [
        ("eng.train", "eng.testa", "eng.testb"),
        ("train-v1.1.json.gz", "dev-v1.1.json", "test.json"),
        ("en_ewt-ud-train.conllu", "en_ewt-ud-dev.conllu", "en_ewt-ud-test.conllu"),
        ("snli_1.0_train.jsonl", "snli_1.0_dev.jsonl", "snli_1.0_test.jsonl"),
        ("Training.tsv", "VALIDATION.tsv", "Test2.tsv"),
        ("weiboNER_2nd_conll.train", "weiboNER_2nd_conll.dev", "weiboNER_2nd_conll.test"),
    ],
)
def test_parts_are_recognized_by_name(tmp_path, train, dev, test):
    for name in (train, dev, test, "README.md", ".train.swp", "vocabulary.txt", "restrain.txt"):
        (tmp_path / name).touch()
    parts = find_parts(tmp_path)
    assert [names(files) for files in vars(parts).values()] == [[train], [dev], [test]]


def test_a_part_may_be_a_folder_whose_files_are_read_by_name(tmp_path):
    for name in ("train/b.txt", "train/a.txt", "train/.hidden", "dev/c.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "train" / "old").mkdir()
    parts = find_parts(tmp_path)
    assert names(parts.train) == ["a.txt", "b.txt"]
    assert names(parts.dev) == ["c.txt"]
    assert parts.test == ()


def test_a_part_that_is_named_is_that(tmp_path):
    for name in ("train.txt", "dev.txt", "other.txt"):
        (tmp_path / name).touch()
    parts = find_parts(tmp_path, dev=tmp_path / "other.txt", test=tmp_path / "dev.txt")
    assert names(parts.dev + parts.test) == ["other.txt", "dev.txt"]
    alone = find_parts(None, train=tmp_path / "train.txt", dev=tmp_path / "dev.txt")
    assert (names(alone.train), names(alone.dev), alone.test) == (["train.txt"], ["dev.txt"], ())


def test_a_name_of_two_parts_is_ignored(tmp_path):
    for name in ("train-dev.txt", "train.txt", "dev.txt"):
        (tmp_path / name).touch()
    parts = find_parts(tmp_path)
    assert names(parts.train + parts.dev) == ["train.txt", "dev.txt"]
    (tmp_path / "dev.txt").unlink()
    with pytest.raises(DataError, match=r"has no file for dev .*give one with --dev"):
        find_parts(tmp_path)


def test_what_is_missing_or_there_twice_is_reported(tmp_path):
    with pytest.raises(DataError, match="is not a folder"):
        find_parts(tmp_path / "none")
    (tmp_path / "train.txt").touch()
    with pytest.raises(DataError, match=r"no file for dev \(with one of dev, development, .*--dev"):
        find_parts(tmp_path)
    for name in ("dev.txt", "valid.txt"):
        (tmp_path / name).touch()
    with pytest.raises(DataError, match=r"several files for dev: dev.txt, valid.txt; .*--dev"):
        find_parts(tmp_path)
    with pytest.raises(DataError, match=r"there is no file .*absent"):
        find_parts(tmp_path, dev=tmp_path / "absent")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"has no files"):
        find_parts(tmp_path, dev=tmp_path / "empty")
