"""An ONNX file says how to spell tokens, and is only written if its vectors are right."""

import json

import pytest

pytest.importorskip("onnx", reason="onnx is missing: pip install '.[onnx]'")

import onnx
import onnxruntime

import elmore
from elmore.export.onnx import file, make_onnx, write_onnx
from tests import tiny


def read_facts(path):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.get_modelmeta().custom_metadata_map


def test_a_byte_model_says_how_to_spell(tmp_path):
    model = tiny.model()
    write_onnx(model, tmp_path / "model.onnx")
    facts = read_facts(tmp_path / "model.onnx")
    assert facts["fingerprint"] == model.fingerprint()
    assert json.loads(facts["spelling"]) == {
        "units": "bytes",
        "max_chars": 9,
        "splits_characters": True,
        "characters": [],
    }
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]


def test_lists_of_characters_and_words_are_in_the_file(tmp_path):
    model = tiny.model(tiny.word_and_char_config())
    write_onnx(model, tmp_path / "model.onnx")
    spelling = json.loads(read_facts(tmp_path / "model.onnx")["spelling"])
    assert (spelling["characters"], spelling["words"]) == (tiny.LETTERS, tiny.WORDS)
    assert (spelling["unknown_word"], spelling["max_word_chars"]) == ("<oov>", 5)


@pytest.fixture
def old(tmp_path):
    """A file that must survive a failed export."""
    (tmp_path / "model.onnx").write_text("old")
    return tmp_path / "model.onnx"


def expect_refusal(path, match):
    with pytest.raises(elmore.ElmoreError, match=match):
        write_onnx(tiny.model(), path)
    assert [other.name for other in path.parent.iterdir()] == ["model.onnx"]
    assert (path.parent / "model.onnx").read_text() == "old"


def test_wrong_vectors_are_not_written(old, monkeypatch):
    other = make_onnx(tiny.model(seed=1))
    monkeypatch.setattr(file, "make_onnx", lambda model: other)
    expect_refusal(old, r"vectors differ from elmore's by \d.*nothing was written")


def test_vectors_that_are_not_numbers_are_not_written(old, monkeypatch):
    made = make_onnx(tiny.model())
    for weight in made.graph.initializer:
        if weight.name.endswith("projection.bias"):
            weight.raw_data = b"\xff" * len(weight.raw_data)
    monkeypatch.setattr(file, "make_onnx", lambda model: made)
    expect_refusal(old, "vectors differ from elmore's by nan")


def test_another_suffix_is_refused(old):
    expect_refusal(old.with_name("model.bin"), r"ends in \.onnx; .*model.bin does not")


def test_a_model_of_more_than_2_gb_is_refused(old, monkeypatch):
    monkeypatch.setattr(file, "MAX_BYTES", 1000)
    expect_refusal(old, r"the weights take 0.0 GB, and an ONNX file has at most 2 GB")


def test_the_file_passes_the_checker(tmp_path):
    write_onnx(tiny.model(), tmp_path / "model.onnx")
    onnx.checker.check_model(onnx.load(tmp_path / "model.onnx"), full_check=True)


def test_an_embedder_is_written_like_its_model(tmp_path):
    model = tiny.model()
    write_onnx(model, tmp_path / "model.onnx")
    write_onnx(elmore.Embedder(model), tmp_path / "embedder.onnx")
    assert (tmp_path / "embedder.onnx").read_bytes() == (tmp_path / "model.onnx").read_bytes()
