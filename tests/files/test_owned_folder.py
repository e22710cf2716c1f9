"""A job writes only into folders that elmore made, and continues only what is the same job."""

import json

import pytest

from elmore.errors import ConfigError, DataError
from elmore.files.owned_folder import ChangedJobError, FolderKind, find_changes, read_marker

KIND = FolderKind(
    holds="a job", markers=("job.json",), makes=("first.txt", "parts"), ignores=("given.txt",)
)


@pytest.mark.parametrize("names", [(), ("given.txt",), (".lock", ".part.tmp"), ("job.json", "x")])
def test_a_new_an_empty_and_its_own_folder_are_accepted(tmp_path, names):
    KIND.check(tmp_path / "new" / "deep")
    for name in names:
        (tmp_path / name).touch()
    KIND.check(tmp_path)


def test_a_foreign_folder_is_refused_and_nothing_is_written(tmp_path):
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(DataError, match="contains other files and is not a job; choose a new"):
        KIND.lock(tmp_path)
    with pytest.raises(DataError, match=r"thesis\.txt is a file, not a job; choose another"):
        KIND.lock(tmp_path / "thesis.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_work_that_leaves_no_marker_leaves_no_folder(tmp_path):
    with KIND.hold(tmp_path / "new" / "deep"):
        pass
    assert list(tmp_path.iterdir()) == []
    with KIND.hold(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []
    with KIND.hold(tmp_path):
        with pytest.raises(DataError, match="another process is working on"):
            KIND.lock(tmp_path)
        (tmp_path / "job.json").touch()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "job.json"]


def test_clearing_deletes_what_the_job_made_and_nothing_else(tmp_path):
    (tmp_path / "parts").mkdir()
    for name in ("job.json", "first.txt", "parts/1", "mine.txt"):
        (tmp_path / name).touch()
    KIND.clear(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_kill_while_clearing_leaves_the_marker(tmp_path, monkeypatch):
    for name in ("job.json", "first.txt"):
        (tmp_path / name).touch()

    def die(path, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr("elmore.files.owned_folder.shutil.rmtree", die)
    (tmp_path / "parts").mkdir()
    with pytest.raises(KeyboardInterrupt):
        KIND.clear(tmp_path)
    assert KIND.is_ours(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "damaged or not elmore's .not JSON"),
        ("[]", "not a JSON object"),
        ('{"kind": "other", "format": 2}', "its kind is 'other'"),
        (
            '{"kind": "job", "format": 1}',
            "has format 1, this version of elmore reads format 2; start over",
        ),
        ('{"kind": "job"}', "has format None"),
    ],
)
def test_a_marker_that_cannot_be_used_is_explained(tmp_path, content, message):
    (tmp_path / "job.json").write_text(content)
    with pytest.raises(DataError, match=message):
        read_marker(tmp_path / "job.json", kind="job", wanted_format=2)


def test_a_marker_of_any_format_can_be_asked_for(tmp_path):
    content = {"kind": "job", "format": 1, "seed": 3}
    (tmp_path / "job.json").write_text(json.dumps(content))
    read = read_marker(tmp_path / "job.json", kind="job", wanted_format=2, any_format=True)
    assert read == content


def test_changes_are_named_in_full():
    before = {"training": {"seed": 1, "sizes": [1, 2]}, "inputs": [{"form": "raw"}], "old": 3}
    now = {"training": {"seed": 2, "sizes": (1, 2)}, "inputs": [{"form": "xml"}], "new": "x"}
    assert find_changes(before, {**before, "unset": None}) == {}
    assert find_changes(before, now) == {
        "inputs[0].form": "inputs[0].form was 'raw' and is now 'xml'",
        "new": "new was not recorded and is now 'x'",
        "old": "old was 3 and is now None",
        "training.seed": "training.seed was 1 and is now 2",
    }


def test_a_refusal_is_one_sentence_however_much_changed(tmp_path):
    error = ChangedJobError(tmp_path, [f"a{number} was 1 and is now 2" for number in range(8)])
    assert isinstance(error, ConfigError)
    assert isinstance(error, DataError)
    assert str(error).startswith(f"{tmp_path} was started with other settings or data: a0 was 1")
    assert str(error).endswith(
        "a4 was 1 and is now 2 and 3 more; use another folder, or --restart to start over"
    )
