"""ELMoForManyLangs folders; what they must compute comes from `tests/reference.py`."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from elmore.errors import ModelError
from elmore.weights.entry_files import read_dic
from elmore.weights.many_langs import read_many_langs
from tests import reference
from tests.weights import peer_files
from tests.weights.peer_files import (
    CHAR_DIC,
    SENTENCES,
    WORD_DIC,
    largest_difference,
    make_architecture,
    make_many_langs,
    run,
    write_many_langs_folder,
)

VARIANTS: dict[str, dict[str, Any]] = {
    "words and characters": make_architecture(),
    "characters only": make_architecture(word_dim=0),
    "words only": make_architecture(char_dim=0),
    "tanh": make_architecture(activation="tanh"),
    "no highway": make_architecture(n_highway=0),
    "two highways": make_architecture(n_highway=2),
    "one layer": make_architecture(encoder={"n_layers": 1}),
    "three layers": make_architecture(encoder={"n_layers": 3}),
    "clips null": make_architecture(encoder={"cell_clip": None, "proj_clip": None}),
    "projection as wide as the cells": make_architecture(encoder={"dim": 4}),
    "a widening projection": make_architecture(encoder={"dim": 3}),
    "fifty characters": make_architecture(max_characters_per_token=50),
}


def expect(
    architecture: dict[str, Any], embedder: peer_files.Arrays, encoder: peer_files.Arrays
) -> list[np.ndarray]:
    token = architecture["token_embedder"]
    return reference.many_langs_layers(
        embedder,
        encoder,
        architecture,
        SENTENCES,
        char_dic=reference.read_dic(CHAR_DIC) if token["char_dim"] else None,
        word_dic=reference.read_dic(WORD_DIC) if token["word_dim"] else None,
    )


@pytest.mark.parametrize("is_zip", [False, True], ids=["torch 0.4", "zip"])
@pytest.mark.parametrize("architecture", VARIANTS.values(), ids=VARIANTS)
def test_every_variant_gives_the_vectors_of_the_formulas(architecture, is_zip, tmp_path):
    embedder, encoder = make_many_langs(architecture)
    write_many_langs_folder(tmp_path, architecture, embedder, encoder, is_zip=is_zip)
    model = read_many_langs(tmp_path)
    expected = expect(architecture, embedder, encoder)
    assert largest_difference(run(model, SENTENCES, dtype=torch.float32), expected) < 1e-5
    assert largest_difference(run(model, SENTENCES), expected) < 1e-9


@pytest.mark.parametrize("has_other_json", [False, True], ids=["alone", "beside other JSON"])
def test_a_missing_architecture_is_inferred_with_the_clips_of_the_published_models(
    has_other_json, tmp_path
):
    published = {"cell_clip": 3, "proj_clip": 3}
    architecture = make_architecture(encoder=published, max_characters_per_token=50)
    embedder, encoder = make_many_langs(architecture)
    encoder = {name: 4 * weight for name, weight in encoder.items()}  # so that a clip of 3 binds
    write_many_langs_folder(tmp_path, architecture, embedder, encoder, has_architecture=False)
    if has_other_json:
        (tmp_path / "sentences.json").write_text('[["a"]]')
        (tmp_path / "results.json").write_text('{"f1": 90}')
    model = read_many_langs(tmp_path)
    assert "no architecture file" in (model.config.about.notes or "")
    expected = expect(architecture, embedder, encoder)
    unclipped = make_architecture(encoder={"cell_clip": None, "proj_clip": None})
    unclipped["token_embedder"]["max_characters_per_token"] = 50
    assert largest_difference(expect(unclipped, embedder, encoder), expected) > 0.1
    assert largest_difference(run(model, SENTENCES), expected) < 1e-9


@pytest.mark.parametrize(
    "place", ["cnn_tiny.json", "configs/cnn_tiny.json", "../configs/cnn_tiny.json", "renamed.json"]
)
def test_the_architecture_is_found_wherever_archives_have_it(place, tmp_path):
    folder, architecture = tmp_path / "model", make_architecture()
    write_many_langs_folder(folder, architecture, *make_many_langs(architecture))
    (folder / place).parent.mkdir(exist_ok=True)
    (folder / "cnn_tiny.json").rename(folder / place)
    assert read_many_langs(folder).config.lstm.cell_clip == 0.3


def test_the_architecture_may_stand_in_config_json_itself(tmp_path):
    architecture = make_architecture()
    write_many_langs_folder(
        tmp_path, architecture, *make_many_langs(architecture), has_architecture=False
    )
    (tmp_path / "config.json").write_text(json.dumps(architecture))
    assert read_many_langs(tmp_path).config.lstm.cell_clip == 0.3


@pytest.mark.parametrize("path", ["", "x" * 10_000, "a\x00b", "..", "/", "config.json", None, {}])
def test_an_odd_config_path_only_leaves_the_architecture_unknown(path, tmp_path):
    architecture = make_architecture()
    write_many_langs_folder(
        tmp_path, architecture, *make_many_langs(architecture), has_architecture=False
    )
    (tmp_path / "config.json").write_text(json.dumps({"config_path": path}))
    assert "no architecture file" in (read_many_langs(tmp_path).config.about.notes or "")


def test_a_file_saved_from_a_gpu_is_read(tmp_path):
    # The published models were trained on GPUs; rewrite a file's names to say so, as none is here.
    architecture = make_architecture()
    embedder, encoder = make_many_langs(architecture)
    write_many_langs_folder(tmp_path, architecture, embedder, encoder)
    for name in ("token_embedder.pkl", "encoder.pkl"):
        content = (tmp_path / name).read_bytes()
        for ours, theirs in (
            (b"ctorch\nFloatStorage\n", b"ctorch.cuda\nFloatStorage\n"),
            (b"X\x03\x00\x00\x00cpu", b"X\x06\x00\x00\x00cuda:0"),
        ):
            assert ours in content
            content = content.replace(ours, theirs)
        (tmp_path / name).write_bytes(content)
    expected = expect(architecture, embedder, encoder)
    assert largest_difference(run(read_many_langs(tmp_path), SENTENCES), expected) < 1e-9


def test_parameters_and_half_precision_are_read_as_float32(tmp_path):
    architecture = make_architecture()
    embedder, encoder = make_many_langs(architecture)
    embedder = {name: array.astype(np.float16) for name, array in embedder.items()}
    write_many_langs_folder(tmp_path, architecture, embedder, encoder)
    tensors = {name: torch.nn.Parameter(torch.from_numpy(a)) for name, a in encoder.items()}
    torch.save(tensors, tmp_path / "encoder.pkl")
    model = read_many_langs(tmp_path)
    assert {weight.dtype for weight in model.bilm.parameters()} == {torch.float32}
    expected = expect(architecture, embedder, encoder)
    assert largest_difference(run(model, SENTENCES), expected) < 1e-9


# char.dic and word.dic.


def test_a_line_with_a_lone_field_is_the_ideographic_space(tmp_path):
    (tmp_path / "char.dic").write_text("a\t0\n\u3000\t1\n\u2028\u2029\t2\n", encoding="utf-8")
    assert read_dic(tmp_path / "char.dic", size=3) == ["a", "", "\u3000"]


def test_entries_stand_at_their_ids_in_whatever_order_the_lines_are(tmp_path):
    (tmp_path / "word.dic").write_text('b\t2\r\n"\t0\r\n\r\na b\t1', encoding="utf-8")
    assert read_dic(tmp_path / "word.dic", size=3) == ['"', "a b", "b"]


def test_an_ideographic_space_is_spelled_with_its_own_vector(tmp_path):
    architecture = make_architecture(word_dim=0)
    embedder, encoder = make_many_langs(architecture)
    write_many_langs_folder(tmp_path, architecture, embedder, encoder)
    model = read_many_langs(tmp_path)
    assert "\u3000" in model.characters  # the dic has a line whose entry is a space
    space, unknown = run(model, [["\u3000"], ["?"]])
    assert np.abs(space - unknown).max() > 1e-3
    dic = reference.read_dic(CHAR_DIC)
    expected = reference.many_langs_layers(
        embedder, encoder, architecture, [["\u3000"]], char_dic=dic, word_dic=None
    )
    assert largest_difference([space], expected) < 1e-9


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"a\tb\n", "line 1"),
        (b"ok\t0\na\t1\t2\n", "line 2"),
        (b"a\t-1\n", "line 1"),
        (b"a\t1.0\n", "line 1"),
        (b"a\t99999999999\n", "line 1"),
        ("a\t²\n".encode(), "line 1"),
        (b"a\r\t0\n", "line 1"),
        (b"a\t0\nb\t1\nc\t5\n", "has id 5"),
        (b"a\t0\nb\t1\nc\t0\n", "the same id 0"),
        (b"a\t0\nb\t1\n", "2 entries for 3 vectors"),
        (b"\xff\t0\n", "not UTF-8"),
    ],
)
def test_a_dic_that_is_none_is_refused_in_a_sentence(content, complaint, tmp_path):
    (tmp_path / "char.dic").write_bytes(content)
    with pytest.raises(ModelError, match=rf"char\.dic.*{complaint}"):
        read_dic(tmp_path / "char.dic", size=3)


@pytest.mark.parametrize("entry", ["<oov>", "<bow>", "<pad>", "<bos>"])
def test_a_char_dic_without_its_marks_is_refused(entry, tmp_path):
    architecture = make_architecture()
    write_many_langs_folder(tmp_path, architecture, *make_many_langs(architecture))
    (tmp_path / "char.dic").write_text(CHAR_DIC.replace(entry, "x"), encoding="utf-8")
    with pytest.raises(ModelError, match=f"lacks '{entry}'"):
        read_many_langs(tmp_path)


# Folders that are none.


@pytest.mark.parametrize(
    "name", ["config.json", "token_embedder.pkl", "encoder.pkl", "char.dic", "word.dic"]
)
@pytest.mark.parametrize("kind", ["missing", "folder", "empty"])
def test_a_missing_part_is_named(name, kind, tmp_path):
    architecture = make_architecture()
    write_many_langs_folder(tmp_path, architecture, *make_many_langs(architecture))
    (tmp_path / name).unlink()
    if kind == "folder":
        (tmp_path / name).mkdir()
    if kind == "empty":
        (tmp_path / name).touch()
    with pytest.raises(ModelError) as caught:
        read_many_langs(tmp_path)
    assert name in str(caught.value) or kind == "empty"


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("token_embedder", "name", "lstm"),
        ("encoder", "name", "lstm"),
        ("encoder", "name", {}),
        ("encoder", "cell_clip", "3"),
        ("encoder", "proj_clip", -1),
        ("token_embedder", "activation", "gelu"),
        ("token_embedder", "activation", []),
        ("token_embedder", "max_characters_per_token", "50"),
        ("token_embedder", "max_characters_per_token", None),
        ("token_embedder", "max_characters_per_token", 2),
        ("token_embedder", "max_characters_per_token", 10**12),
    ],
)
def test_an_architecture_that_no_network_has_is_refused(part, name, value, tmp_path):
    architecture = make_architecture()
    write_many_langs_folder(tmp_path, architecture, *make_many_langs(architecture))
    architecture[part][name] = value
    (tmp_path / "cnn_tiny.json").write_text(json.dumps(architecture))
    with pytest.raises(ModelError) as caught:
        read_many_langs(tmp_path)
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize("part", ["token_embedder", "encoder"])
@pytest.mark.parametrize("value", [[], "cnn", 3, None])
def test_a_part_of_the_architecture_that_is_not_an_object_is_refused(part, value, tmp_path):
    architecture = make_architecture()
    write_many_langs_folder(tmp_path, architecture, *make_many_langs(architecture))
    architecture[part] = value
    (tmp_path / "cnn_tiny.json").write_text(json.dumps(architecture))
    with pytest.raises(ModelError, match="must be an object"):
        read_many_langs(tmp_path)


def each_weight() -> list[tuple[str, str]]:
    embedder, encoder = make_many_langs(make_architecture())
    return [
        *(("token_embedder.pkl", name) for name in embedder),
        *(("encoder.pkl", name) for name in encoder if "layer_1" in name),
    ]


@pytest.mark.parametrize(("file", "name"), each_weight())
def test_a_weight_that_is_missing_or_of_another_shape_is_refused(file, name, tmp_path):
    architecture = make_architecture()
    write_many_langs_folder(tmp_path, architecture, *make_many_langs(architecture))
    weights = torch.load(tmp_path / file, weights_only=True)
    whole = weights[name]
    for changed in (whole[:-1], whole[0], whole[None], whole[..., None], torch.zeros(()), None):
        weights[name] = changed
        if changed is None:
            del weights[name]
        torch.save(weights, tmp_path / file)
        with pytest.raises(ModelError):
            read_many_langs(tmp_path)


def test_a_weight_nobody_asked_for_is_refused(tmp_path):
    architecture = make_architecture()
    embedder, encoder = make_many_langs(architecture)
    encoder["forward_layer_3.input_linearity.weight"] = np.zeros((2, 2), np.float32)
    write_many_langs_folder(tmp_path, architecture, embedder, encoder)
    with pytest.raises(ModelError, match=r"unexpected weight 'forward_layer_3"):
        read_many_langs(tmp_path)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_are_not_finite_are_refused(number, tmp_path):
    architecture = make_architecture()
    embedder, encoder = make_many_langs(architecture)
    encoder["backward_layer_1.state_linearity.bias"][3] = number
    write_many_langs_folder(tmp_path, architecture, embedder, encoder)
    with pytest.raises(ModelError, match=r"'backward_layer_1.state_linearity.bias' .* not finite"):
        read_many_langs(tmp_path)


def test_reading_changes_nothing_in_the_folder(tmp_path):
    architecture = make_architecture()
    folder = write_many_langs_folder(tmp_path / "a", architecture, *make_many_langs(architecture))
    before = shutil.copytree(folder, tmp_path / "b")
    read_many_langs(folder)
    assert contents(folder) == contents(Path(before))


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}
