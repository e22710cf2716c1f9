"""The files of sentence vectors for similarity: complete, tied to their model, or refused."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from elmore.weights.similarity_file import Similarity, read_similarity, write_similarity
from tests.weights.refusals import assert_refused

SIMILARITY = Similarity(
    layers=[0, 2],
    smoothing=5e-4,
    shares={"the": 0.05, "über": 0.001},
    mean=np.arange(4, dtype=np.float32),
    matrix=np.arange(12, dtype=np.float32).reshape(4, 3),
    num_sentences=99,
)


@pytest.mark.parametrize("layers", [0, "average", [0, 2]])
def test_what_is_written_is_read(layers, tmp_path):
    similarity = Similarity(**{**SIMILARITY.__dict__, "layers": layers})
    write_similarity(tmp_path, similarity, model="m")
    read = read_similarity(tmp_path, model="m")
    assert read.layers == layers
    assert (read.smoothing, read.shares, read.num_sentences) == (5e-4, SIMILARITY.shares, 99)
    assert np.array_equal(read.mean, SIMILARITY.mean)
    assert np.array_equal(read.matrix, SIMILARITY.matrix)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "has format 2, but this elmore reads 1; update elmore"),
        ({"model": "another"}, "belongs to other weights"),
        ({"layers": [0, -1]}, "'layers' is missing or damaged"),
        ({"layers": None}, "'layers' is missing or damaged"),
        ({"smoothing": 0}, "'smoothing' is missing or damaged"),
        ({"smoothing": True}, "'smoothing' is missing or damaged"),
        ({"input_dim": 5}, "similarity.safetensors: weight 'mean' has shape"),
        ({"output_dim": 1 << 62}, "'output_dim' is missing or damaged"),
        ({"shares": {"the": 2.0}}, "'shares' is missing or damaged"),
        ({"shares": ["the"]}, "'shares' is missing or damaged"),
        ({"shares": {str(n): 1e-5 for n in range(20_001)}}, "'shares' is missing or damaged"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_damaged_settings_are_refused(change, message, tmp_path):
    write_similarity(tmp_path, SIMILARITY, model="m")
    path = tmp_path / "similarity.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    assert_refused(lambda: read_similarity(tmp_path, model="m"), message)


def test_numbers_that_are_not_finite_are_refused(tmp_path):
    write_similarity(tmp_path, SIMILARITY, model="m")
    tensors = load_file(tmp_path / "similarity.safetensors")
    tensors["matrix"][1, 1] = np.nan
    save_file(tensors, tmp_path / "similarity.safetensors")
    assert_refused(lambda: read_similarity(tmp_path, model="m"), "not finite")
