import pytest

from elmore.compat.model_files import find_file

URL = "https://example.org/models/elmo_weights.hdf5"


def test_a_url_is_looked_up_by_its_name(tmp_path, monkeypatch):
    monkeypatch.setenv("ELMORE_MODELS", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=f"download {URL} and set ELMORE_MODELS"):
        find_file(URL)
    (tmp_path / "elmo_weights.hdf5").touch()
    assert find_file(URL) == tmp_path / "elmo_weights.hdf5"


def test_a_path_is_itself(tmp_path):
    with pytest.raises(FileNotFoundError, match="not found"):
        find_file(str(tmp_path / "nothing"))
    (tmp_path / "file").touch()
    assert find_file(str(tmp_path / "file")) == tmp_path / "file"
