import fcntl
import os
import stat
from contextlib import suppress
from pathlib import Path

import pytest

from elmore.errors import DataError
from elmore.files.atomic import (
    check_out,
    drop_from_memory,
    hold_lock,
    make_folder,
    replace_file,
)


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "folder" / "file"
    with replace_file(path) as temporary:
        temporary.write_text("new")
        assert not path.exists()
    assert path.read_text() == "new"
    with suppress(KeyboardInterrupt), replace_file(path) as temporary:
        temporary.write_text("half")
        raise KeyboardInterrupt
    assert path.read_text() == "new"
    assert [file.name for file in path.parent.iterdir()] == ["file"]


def test_a_file_dropped_from_memory_is_still_on_the_disk(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("kept")
    drop_from_memory(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "kept"
    monkeypatch.delattr(os, "posix_fadvise", raising=False)  # as on macOS
    drop_from_memory(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "kept"


def test_no_more_than_one_folder_is_made_for_a_file(tmp_path):
    (tmp_path / "link").symlink_to("missing/file")
    (tmp_path / "folder link").symlink_to("missing")
    for name in ("no/such/file", "link", "folder link/file"):
        with (
            pytest.raises(DataError, match=r"cannot write .*(no folder|broken link)"),
            replace_file(tmp_path / name),
        ):
            pytest.fail("nothing may be written")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder link", "link"]


def test_a_folder_is_not_made_behind_a_link_to_nothing(tmp_path):
    (tmp_path / "link").symlink_to("missing")
    for name in ("link", "link/deep", "link/deep/deeper"):
        with pytest.raises(DataError, match=r"link: it is a broken link \(to missing\)"):
            make_folder(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["link"]
    (tmp_path / "missing").mkdir()
    make_folder(tmp_path / "link" / "deep")
    assert (tmp_path / "missing" / "deep").is_dir()


def test_links_in_a_circle_are_a_sentence(tmp_path):
    (tmp_path / "one").symlink_to("other")
    (tmp_path / "other").symlink_to("one")
    for make in (make_folder, lambda path: replace_file(path).__enter__()):
        for name in ("one", "one/file"):
            with pytest.raises(DataError, match="one: it is a broken link"):
                make(tmp_path / name)


def test_others_may_read_the_file_if_they_may_read_its_neighbors(tmp_path):
    """Some writers make files private; a model is to be shared."""
    (tmp_path / "neighbor").touch()
    with replace_file(tmp_path / "file") as temporary:
        temporary.write_text("private")
        temporary.chmod(0o600)
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("file", "neighbor")]
    assert modes[0] == modes[1]


def test_a_lock_is_on_the_file_that_has_the_name(tmp_path, monkeypatch):
    path = tmp_path / "lock"
    lock = fcntl.flock

    def lose_the_race(descriptor, how):
        monkeypatch.setattr(fcntl, "flock", lock)
        path.rename(tmp_path / "renamed by its last holder")
        lock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", lose_the_race)
    release = hold_lock(path)
    with pytest.raises(DataError, match="another process"):
        hold_lock(path)
    release()


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("a/b/c", "there is no folder a; create it first, or correct the path"),
        ("a/b/c/d/e.h5", "there is no folder a; create it and the folders in it first "
                         "(mkdir -p a/b/c), or correct the path"),
        ("here/a b/c/d/e", "there is no folder here/a b; create it and the folders in it first "
                           "(mkdir -p 'here/a b/c'), or correct the path"),
        *((f"file{inner}", "file is not a folder; write elsewhere") for inner in ("/a", "/a/b/c")),
    ],
)  # fmt: skip
def test_a_path_far_from_any_folder_is_explained_by_what_to_create(
    tmp_path, monkeypatch, path, message
):
    monkeypatch.chdir(tmp_path)
    Path("here").mkdir()
    Path("file").touch()
    with pytest.raises(DataError) as caught:
        check_out(Path(path))
    assert str(caught.value) == f"cannot write {path}: {message}"
