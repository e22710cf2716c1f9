"""Options that describe no model are refused in a sentence."""

import json
import string

import pytest

from elmore.errors import ModelError
from elmore.weights.bilm_tf import read_bilm_tf
from tests.weights import peer_files
from tests.weights.peer_files import make_arrays, make_options

BROKEN = {
    "no lstm": {"char_cnn": {}},
    "lstm a list": {"lstm": []},
    "no dim": {"lstm": {"projection_dim": 4}},
    "dim a string": make_options(lstm={"dim": "big"}),
    "dim a bool": make_options(lstm={"dim": True}),
    "dim a float": make_options(lstm={"dim": 6.0}),
    "dim null": make_options(lstm={"dim": None}),
    "dim a list": make_options(lstm={"dim": [6]}),
    "dim zero": make_options(lstm={"dim": 0, "projection_dim": 0}),
    "dim negative": make_options(lstm={"dim": -6, "projection_dim": -6}),
    "wide projection": make_options(lstm={"projection_dim": 7}),
    "layers zero": make_options(lstm={"n_layers": 0}),
    "layers many": make_options(lstm={"n_layers": 10**9}),
    "clip negative": make_options(lstm={"cell_clip": -3}),
    "clip a string": make_options(lstm={"proj_clip": ""}),
    "clip an object": make_options(lstm={"proj_clip": {}}),
    "residuals a string": make_options(lstm={"use_skip_connections": "no"}),
    "one direction": {**make_options(), "bidirectional": False},
    "filters an object": make_options(filters={}),
    "filters empty": make_options(filters=[]),
    "filters a string": make_options(filters="abc"),
    "filters null": make_options(filters=None),
    "filters of three": make_options(filters=[[1, 2, 3]]),
    "filter of a string": make_options(filters=[[1, "2"]]),
    "filter too wide": make_options(filters=[[11, 2]]),
    "embedding a number": make_options(embedding=3),
    "embedding of nothing": make_options(embedding={}),
    "activation unknown": make_options(activation="gelu"),
    "activation an object": make_options(activation={"a": []}),
    "characters": make_options(n_characters=300),
    "characters a list": make_options(n_characters=[262]),
    "highway a string": make_options(n_highway="2"),
    "highway negative": make_options(n_highway=-1),
    "max characters": make_options(max_characters_per_token="50"),
    "char_cnn null": {**make_options(), "char_cnn": None},
}


@pytest.mark.parametrize("options", BROKEN.values(), ids=BROKEN)
def test_options_that_describe_no_model_are_refused_in_a_sentence(options, tmp_path):
    paths = peer_files.write_bilm_tf_files(tmp_path, make_options(), make_arrays(make_options()))
    paths[1].write_text(json.dumps(options))
    with pytest.raises(ModelError) as caught:
        read_bilm_tf(*paths)
    message = str(caught.value)
    assert message.startswith(f"{paths[1]}: ")
    assert message[-1] not in string.whitespace + "."
    assert "\n" not in message
