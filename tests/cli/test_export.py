"""`elmore export` writes an ONNX file, or explains in one sentence why not."""

import sys

import pytest

pytest.importorskip("onnx", reason="onnx is missing: pip install '.[onnx]'")

import onnxruntime

import elmore
from tests import tiny
from tests.export.onnx import runs
from tests.weights.peer_files import SENTENCES, largest_difference


@pytest.fixture
def folder(tmp_path, monkeypatch):
    tiny.model(scale=0.4).save_pretrained(tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("source", ["model", None], ids=["a folder", "the default"])
def test_the_file_gives_the_vectors_of_the_model(folder, elmore_command, source):
    named = [source] if source else []
    result = elmore_command("export", *named, "--to", "onnx", "--out", "model.onnx", "--json")
    assert result.json == {"written": ["model.onnx"]}
    embedder = elmore.load(source)
    session = onnxruntime.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
    found = runs.run(session, embedder.model, SENTENCES)
    assert largest_difference(found, embedder.embed(SENTENCES, layers="all")) < 1e-5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("none.hdf5", "--out", "x.onnx"), "no model at 'none.hdf5'"),
        (("model", "--out", "x.bin"), "ends in .onnx"),
        (("model", "--out", "missing/folder/x.onnx"), "there is no folder missing"),
        (("model", "--out", "x.onnx", "--to", "tflite"), "'tflite' is not"),
        (("model",), "Missing option"),
    ],
)
def test_a_mistake_is_one_sentence_and_status_two(folder, elmore_command, arguments, message):
    before = sorted(folder.iterdir())
    result = elmore_command("export", *arguments)
    assert (result.status, result.out) == (2, "")
    assert message in " ".join(result.err.split())
    assert sorted(folder.iterdir()) == before


def test_without_onnx_the_extra_is_named(folder, elmore_command, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("elmore.export.onnx")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr("elmore.extras._find_version", lambda _: None)
    result = elmore_command("export", "model", "--out", "x.onnx")
    assert result.status == 2
    assert "exporting to ONNX needs an optional library: pip install 'elmore[onnx]'" in result.err
