"""Nothing is downloaded silently: an error says what to download, and from where."""

import pytest

import elmore
from elmore.errors import ModelError
from elmore.weights.published import advise_on_download

S3 = "https://allennlp.s3.amazonaws.com/models/elmo/"
SMALL = "2x1024_128_2048cnn_1xhighway/elmo_2x1024_128_2048cnn_1xhighway_"


@pytest.mark.parametrize("name", ["small", "Small", "original", "large", "5.5B", "pt", "pubmed"])
def test_names_of_other_libraries_are_explained(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelError, match=r"does not download .*weights.*\.hdf5 and .*options") as e:
        elmore.load(name)
    assert S3 in str(e.value)
    assert len(str(e.value)) < 800


def test_the_files_of_a_name():
    advice = advise_on_download("small")
    assert f"{S3}{SMALL}weights.hdf5" in advice
    assert f"{S3}{SMALL}options.json" in advice


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (f"{S3}{SMALL}weights.hdf5", f"{S3}{SMALL}options.json"),
        ("https://example.org/model.zip", "download https://example.org/model.zip"),
        ("https://tfhub.dev/google/elmo/3", "elmo_2x4096_512_2048cnn_2xhighway_weights.hdf5"),
        ("https://huggingface.co/a/b", "hub id 'a/b'"),
        ("seqvec", "rostlab.org"),
    ],
)
def test_addresses_are_explained(source, expected, elmore_command, tmp_path):
    with pytest.raises(ModelError) as error:
        elmore.load(source)
    assert expected in str(error.value)
    refused = elmore_command("info", source)
    assert refused.status == 2


def test_a_folder_of_that_name_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small").mkdir()
    with pytest.raises(ModelError, match="0 HDF5 files"):
        elmore.load("small")


@pytest.mark.parametrize("source", ["smal", "owner/name", "C:/models/x", "a.hdf5"])
def test_other_names_are_left_alone(source):
    assert advise_on_download(source) is None
