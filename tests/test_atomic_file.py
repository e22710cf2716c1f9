import fcntl
import stat
from contextlib import suppress

import pytest

from elmore.atomic_file import hold_lock, replace_file
from elmore.errors import DataError


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
