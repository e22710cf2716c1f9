"""A PCA that is stored with a model."""

import numpy as np
import pytest

import elmore
from elmore.embed.embedder import Embedder
from elmore.embed.projection import Projection, find_projection, fit_projection
from elmore.embed.vector_file import read_header, read_vectors
from elmore.errors import ElmoreError
from tests import tiny

SENTENCES = [[f"{a}{b}", a, b] for a in "abcdefgh" for b in "abcdefgh"]


@pytest.fixture
def model(tmp_path):
    tiny.model(scale=0.4).save_pretrained(tmp_path / "model")
    return elmore.load(tmp_path / "model")


def test_it_keeps_the_directions_of_the_largest_variance(tmp_path, model):
    folder = fit_projection(model, SENTENCES, dim=3)
    assert folder == tmp_path / "model"
    found = find_projection(model, layers="average", dim=3)
    vectors = np.concatenate(model.embed(SENTENCES)).astype(np.float64)
    centered = vectors - vectors.mean(axis=0)
    _, sizes, directions = np.linalg.svd(centered, full_matrices=False)
    np.testing.assert_allclose(np.abs(found.components @ directions[:3].T), np.eye(3), atol=1e-4)
    kept = (sizes[:3] ** 2).sum() / (sizes**2).sum()
    assert found.variance == pytest.approx(kept, abs=1e-4)
    np.testing.assert_allclose(
        found(vectors.astype(np.float32)), centered @ found.components.T, atol=1e-5
    )
    np.testing.assert_allclose(
        found.restore(found(vectors.astype(np.float32))),
        centered @ directions[:3].T @ directions[:3] + vectors.mean(axis=0),
        atol=1e-5,
    )


def test_a_row_does_not_depend_on_the_others():
    random = np.random.default_rng(0)
    project = Projection(
        mean=random.normal(size=24).astype(np.float32),
        components=random.normal(size=(5, 24)).astype(np.float32),
    )
    vectors = random.normal(size=(29, 24)).astype(np.float32)
    whole = project(vectors)
    for start, end in ((0, 1), (3, 4), (5, 28), (28, 29)):
        assert project(vectors[start:end]).tobytes() == whole[start:end].tobytes()
    assert project(vectors[:0]).shape == (0, 5)
    assert project(vectors.reshape(1, 29, 24)).tobytes() == whole.tobytes()


@pytest.mark.parametrize("dtype", ["f32", "f16", "int8"])
def test_a_vector_file_has_the_projected_vectors(tmp_path, model, dtype):
    folder = fit_projection(model, SENTENCES, dim=4, layers="top", out=tmp_path / "other")
    embedder = elmore.load(folder)
    out = tmp_path / "v.parquet"
    elmore.embed_to_file(embedder, SENTENCES, out, dim=4, layers="top", dtype=dtype)
    project = find_projection(embedder, layers="top", dim=4)
    for entry, tokens in zip(read_vectors(out), SENTENCES, strict=True):
        wanted = project(embedder.embed([tokens], layers="top")[0])
        error = {"f32": 0, "f16": 1e-3, "int8": 0.5 / 127 * 1.001}[dtype]
        assert np.abs(entry.vectors - wanted).max() <= error * np.abs(wanted).max()
    header = read_header(out)
    assert (header.vector_dim, header.projection) == (4, project.fingerprint)


def test_a_projection_of_another_model_is_refused(tmp_path, model):
    fit_projection(model, SENTENCES, dim=3)
    tiny.model(scale=0.3).save_pretrained(tmp_path / "model")
    with pytest.raises(ElmoreError, match="was fitted to another model"):
        find_projection(elmore.load(tmp_path / "model"), layers="average", dim=3)


def test_a_damaged_projection_is_refused(tmp_path, model):
    fit_projection(model, SENTENCES, dim=3)
    path = tmp_path / "model" / "average-3.projection.safetensors"
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(ElmoreError, match="is damaged"):
        find_projection(model, layers="average", dim=3)


def test_mistakes_of_fitting_are_one_sentence(tmp_path, model):
    with pytest.raises(ElmoreError, match="needs more than 5"):
        fit_projection(model, [["a", "b"]], dim=5)
    with pytest.raises(ElmoreError, match="give out"):
        fit_projection(Embedder(tiny.model()), SENTENCES, dim=5)
    with pytest.raises(ElmoreError, match="only one vector per token"):
        fit_projection(model, SENTENCES, dim=5, layers="all")
