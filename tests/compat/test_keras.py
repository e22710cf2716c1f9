"""Run with the torch backend here; `make test-integrations` runs it with TensorFlow."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import elmore
from elmore import ElmoreError
from tests.compat.old_models import TOLERANCE, OldModel, assert_close

os.environ.setdefault("KERAS_BACKEND", "torch")
keras = pytest.importorskip("keras", reason="keras is not installed; it comes with the extra keras")

from elmore.compat.keras import ElmoEmbeddingLayer, encode_strings  # noqa: E402

BACKEND = keras.backend.backend()
needs_tensorflow = pytest.mark.skipif(
    BACKEND != "tensorflow", reason="Keras has string tensors with TensorFlow only"
)
TEXTS = ["The bank of  the river", "a\tb", "", "日本語 naïve"]
SENTENCES = [["The", "bank", "of", "the", "river"], ["a\tb"], [], ["日本語", "naïve"]]
LABELS = np.array([1.0, 0.0, 0.0, 1.0])


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    return OldModel(tmp_path_factory.mktemp("keras") / "model")


@pytest.fixture(scope="module")
def expected(old):
    """What the formulas give: (L, T, D) per sentence."""
    return [row[0] for row in old.expected([[s] for s in SENTENCES], carry=False)]


def pad(arrays):
    padded = np.zeros((len(arrays), max(map(len, arrays)), arrays[0].shape[1]))
    for row, array in zip(padded, arrays, strict=True):
        row[: len(array)] = array
    return padded


def tokens_input():
    width = max(map(len, SENTENCES)) + 1
    padded = [[*sentence, *[""] * (width - len(sentence))] for sentence in SENTENCES]
    return {
        "tokens": np.array(padded, dtype=object),
        "sequence_len": np.array([len(sentence) for sentence in SENTENCES], dtype=np.int32),
    }


def compute(layer, inputs):
    return {name: keras.ops.convert_to_numpy(x) for name, x in layer(inputs).items()}


def test_outputs_are_the_layers_their_mix_and_its_mean(old, expected):
    found = compute(ElmoEmbeddingLayer(old.weights, output="all"), TEXTS)
    assert list(found) == ["word_emb", "lstm_outputs1", "lstm_outputs2", "elmo", "default"]
    assert_close(found["word_emb"], pad([layers[0, :, :5] for layers in expected]))
    assert_close(found["lstm_outputs1"], pad([layers[1] for layers in expected]))
    assert_close(found["lstm_outputs2"], pad([layers[2] for layers in expected]))
    assert_close(found["elmo"], pad([layers.mean(axis=0) for layers in expected]))
    means = [x.mean(axis=(0, 1)) if x.size else np.zeros(10) for x in expected]
    assert_close(found["default"], np.stack(means))


@pytest.mark.parametrize("output", ["word_emb", "lstm_outputs1", "lstm_outputs2", "elmo"])
def test_outputs_are_those_of_an_embedder(old, output):
    layer = ElmoEmbeddingLayer(old.folder, output=output)
    found = keras.ops.convert_to_numpy(layer(TEXTS))
    choice = {"word_emb": 0, "lstm_outputs1": 1, "lstm_outputs2": 2, "elmo": "average"}[output]
    wanted = pad(elmore.load(old.folder).embed(SENTENCES, layers=choice))
    assert_close(found, wanted[..., : found.shape[-1]])


def test_strings_may_be_given_in_any_form(old):
    layer = ElmoEmbeddingLayer(old.weights)
    wanted = keras.ops.convert_to_numpy(layer(TEXTS))
    array = np.array(TEXTS, dtype=object)
    for form in (
        array,
        array[:, None],
        np.array(TEXTS),
        np.array([text.encode() for text in TEXTS]),
        encode_strings(TEXTS),
        keras.ops.convert_to_tensor(encode_strings(TEXTS)),
    ):
        assert np.array_equal(keras.ops.convert_to_numpy(layer(form)), wanted)


def test_tokens_are_read_up_to_their_length(old):
    wanted = compute(ElmoEmbeddingLayer(old.weights, output="all"), TEXTS)
    layer = ElmoEmbeddingLayer(old.weights, output="all", signature="tokens")
    inputs = tokens_input()
    for tokens in (inputs["tokens"], encode_strings(inputs["tokens"])):
        found = compute(layer, {**inputs, "tokens": tokens})
        assert np.array_equal(found["default"], wanted["default"])
        assert found["elmo"].shape[1] == 6  # of the array, not of the longest sentence
        assert np.array_equal(found["elmo"][:, :5], wanted["elmo"])
        assert not found["elmo"][:, 5].any()


def test_only_the_mix_is_trained(old):
    layer = ElmoEmbeddingLayer(old.weights)
    assert [tuple(weight.shape) for weight in layer.trainable_weights] == [(3,), ()]
    assert layer.count_params() == 4
    assert not ElmoEmbeddingLayer(old.weights, trainable=False).trainable_weights
    assert not ElmoEmbeddingLayer(old.weights, output="word_emb").weights


def test_mix_is_a_softmax_times_the_scaling(old, expected):
    layer = ElmoEmbeddingLayer(old.weights, output="elmo")
    layer.set_weights([np.log([1.0, 2.0, 5.0]), np.array(3.0)])
    wanted = [3 * np.einsum("ltd,l->td", x, [0.125, 0.25, 0.625]) for x in expected]
    np.testing.assert_allclose(
        keras.ops.convert_to_numpy(layer(TEXTS)), pad(wanted), atol=3 * TOLERANCE, rtol=0
    )


def test_mask_is_true_at_tokens_and_reaches_the_next_layers(old):
    lengths = np.array([5, 1, 0, 2])
    text = keras.Input((None,), dtype="int32")
    elmo = ElmoEmbeddingLayer(old.weights, output="elmo")
    pooled = keras.Model(text, keras.layers.GlobalAveragePooling1D()(elmo(text)))
    rows = lengths > 0  # Keras divides by 0 tokens
    found = pooled.predict(encode_strings(TEXTS)[rows], verbose=0)
    wanted = keras.ops.convert_to_numpy(ElmoEmbeddingLayer(old.weights)(TEXTS))
    assert_close(found, wanted[rows])
    for layer, inputs, width in (
        (elmo, np.array(TEXTS), 5),
        (ElmoEmbeddingLayer(old.weights, output="elmo", signature="tokens"), tokens_input(), 6),
    ):
        mask = keras.ops.convert_to_numpy(layer.compute_mask(inputs, None))
        assert np.array_equal(mask, np.arange(width) < lengths[:, None])
    assert ElmoEmbeddingLayer(old.weights).compute_mask(np.array(TEXTS), None) is None


@pytest.mark.slow
def test_a_saved_model_of_tokens_uses_their_mask(old, tmp_path):
    inputs = tokens_input()
    inputs["tokens"] = encode_strings(inputs["tokens"])
    symbols = {
        "tokens": keras.Input((None, None), dtype="int32", name="tokens"),
        "sequence_len": keras.Input((), dtype="int32", name="sequence_len"),
    }
    found = ElmoEmbeddingLayer(old.weights, output="all", signature="tokens")(symbols)
    model = keras.Model(symbols, keras.layers.LSTM(3)(found["elmo"]))
    predicted = model.predict(inputs, verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert np.array_equal(loaded.predict(inputs, verbose=0), predicted)
    shorter = {name: array[1:2] for name, array in inputs.items()}
    shorter["tokens"] = shorter["tokens"][:, :1]  # no padding
    np.testing.assert_allclose(model.predict(shorter, verbose=0), predicted[1:2], atol=1e-5)


def test_shapes_are_known_before_the_strings(old):
    inputs = {
        "tokens": keras.Input((7, None), dtype="int32"),
        "sequence_len": keras.Input((), dtype="int32"),
    }
    found = ElmoEmbeddingLayer(old.weights, output="all", signature="tokens")(inputs)
    assert found["word_emb"].shape == (None, 7, 5)
    assert found["elmo"].shape == (None, 7, 10)
    assert found["default"].shape == (None, 10)
    text = keras.Input((None,), dtype="int32")
    assert ElmoEmbeddingLayer(old.weights, output="elmo")(text).shape == (None, None, 10)


def test_vectors_have_the_precision_of_the_layer(old, expected):
    layer = ElmoEmbeddingLayer(old.weights, output="elmo", dtype="mixed_float16")
    found = layer(TEXTS)
    assert keras.backend.standardize_dtype(found.dtype) == "float16"
    wanted = pad([layers.mean(axis=0) for layers in expected])
    np.testing.assert_allclose(keras.ops.convert_to_numpy(found), wanted, atol=0.01)


def make_classifier(old, *, output="default"):
    """The model of the keras-elmo notebook, or one that uses the mask."""
    keras.utils.set_random_seed(0)
    text = keras.Input((None,), dtype="int32")
    vectors = ElmoEmbeddingLayer(old.weights, output=output)(text)
    if output == "elmo":
        vectors = keras.layers.LSTM(3)(vectors)
    hidden = keras.layers.Dense(8, activation="relu")(vectors)
    model = keras.Model(text, keras.layers.Dense(1, activation="sigmoid")(hidden))
    model.compile(loss="binary_crossentropy", optimizer=keras.optimizers.Adam(0.05))
    return model


@pytest.mark.slow
@pytest.mark.parametrize("output", ["default", "elmo"])
@pytest.mark.parametrize("suffix", ["keras", "h5"])
def test_training_changes_the_mix_and_a_saved_model_predicts_the_same(
    old, tmp_path, output, suffix
):
    model = make_classifier(old, output=output)
    texts = encode_strings(TEXTS)
    layer = model.layers[1]
    history = model.fit(texts, LABELS, epochs=15, verbose=0).history
    assert history["loss"][-1] < 0.8 * history["loss"][0]
    weights, scaling = layer.get_weights()
    assert np.abs(weights).min() > 1e-3
    assert abs(scaling - 1) > 1e-3
    predicted = model.predict(texts, verbose=0)
    model.save(tmp_path / f"model.{suffix}")
    loaded = keras.models.load_model(tmp_path / f"model.{suffix}")
    assert np.array_equal(loaded.predict(texts, verbose=0), predicted)


def test_gradients_of_the_mix_are_those_of_the_formula(old, expected):
    """The loss is the sum of `elmo`; its gradient follows from the sums of the layers."""
    layer = ElmoEmbeddingLayer(old.weights, output="elmo")
    sums = np.stack([x.sum(axis=(1, 2)) for x in expected]).sum(axis=0)
    if BACKEND == "torch":
        layer(TEXTS).sum().backward()
        found = [weight.value.grad.numpy() for weight in layer.trainable_weights]
    else:
        import tensorflow as tf  # noqa: PLC0415

        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(TEXTS))
        gradients = tape.gradient(loss, [weight.value for weight in layer.trainable_weights])
        found = [gradient.numpy() for gradient in gradients]
    np.testing.assert_allclose(found[0], (sums - sums.mean()) / 3, atol=1e-4)
    np.testing.assert_allclose(found[1], sums.mean(), atol=1e-4)


def test_a_saved_model_knows_its_bilm(old, tmp_path, monkeypatch):
    shutil.copytree(old.folder, tmp_path / "bilm")
    monkeypatch.chdir(tmp_path)
    text = keras.Input((None,), dtype="int32")
    model = keras.Model(text, ElmoEmbeddingLayer("bilm")(text))
    model.save("saved.keras")
    wanted = model.predict(encode_strings(TEXTS), verbose=0)

    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    loaded = keras.models.load_model(tmp_path / "saved.keras")
    assert np.array_equal(loaded.predict(encode_strings(TEXTS), verbose=0), wanted)

    shutil.move(tmp_path / "bilm", tmp_path / "elsewhere")
    with pytest.raises(ElmoreError, match=r"saved with the ELMo model .*bilm.*ELMORE_MODELS"):
        keras.models.load_model(tmp_path / "saved.keras")
    monkeypatch.setenv("ELMORE_MODELS", str(tmp_path / "elsewhere"))
    loaded = keras.models.load_model(tmp_path / "saved.keras")
    assert np.array_equal(loaded.predict(encode_strings(TEXTS), verbose=0), wanted)

    shutil.rmtree(tmp_path / "elsewhere" / "bilm")
    OldModel(tmp_path / "elsewhere" / "bilm", output_dim=4)
    with pytest.raises(ElmoreError, match="another ELMo model"):
        keras.models.load_model(tmp_path / "saved.keras")


def test_a_layer_without_a_model_uses_the_one_in_the_package():
    layer = ElmoEmbeddingLayer()
    again = ElmoEmbeddingLayer.from_config(layer.get_config())
    assert again.embedder.model.fingerprint() == elmore.load().model.fingerprint()
    assert layer.get_config()["model"] is None


@pytest.mark.parametrize(
    ("inputs", "settings", "words"),
    [
        (np.ones((2, 3)), {}, "float64 where strings were expected"),
        (np.ones((2, 3, 4), dtype=int), {}, "one string per sentence"),
        (np.array([["a", "b"]]), {}, r"shape \(1, 2\); give one string per sentence"),
        ({"tokens": [["a"]]}, {}, "choose signature 'tokens'"),
        (["a"], {"signature": "tokens"}, "a dict of tokens and sequence_len, but got one array"),
        ({"tokens": [["a"]]}, {"signature": "tokens"}, "but got a dict of tokens"),
        (
            {"tokens": [["a"]], "sequence_len": [1.0]},
            {"signature": "tokens"},
            "sequence_len has the dtype float64",
        ),
        (
            {"tokens": ["a"], "sequence_len": [1]},
            {"signature": "tokens"},
            "give a row of tokens per sentence",
        ),
    ],
)
def test_other_inputs_are_refused_in_one_sentence(old, inputs, settings, words):
    with pytest.raises(ElmoreError, match=words) as caught:
        ElmoEmbeddingLayer(old.weights, **settings)(inputs)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"output": "elmo3"}, "word_emb, lstm_outputs1, lstm_outputs2, elmo, default, all"),
        ({"signature": "strings"}, "default, tokens"),
        ({"model": "nowhere.hdf5"}, "there is no model at 'nowhere.hdf5'"),
    ],
)
def test_other_settings_are_refused_in_one_sentence(old, settings, words):
    with pytest.raises(ElmoreError, match=words):
        ElmoEmbeddingLayer(**{"model": old.weights, **settings})


def test_lengths_beyond_the_tokens_are_refused(old):
    layer = ElmoEmbeddingLayer(old.weights, signature="tokens")
    with pytest.raises(Exception, match="from 0 to 1 per row"):  # of TensorFlow's own type there
        layer({"tokens": [["a"]], "sequence_len": [2]})


@pytest.mark.skipif(BACKEND != "torch", reason="string tensors work with TensorFlow")
def test_string_inputs_on_torch_are_refused_with_the_alternative(old):
    with pytest.raises(ElmoreError, match=r"keras\.Input\(\(None,\), dtype='int32'\)"):
        ElmoEmbeddingLayer(old.weights)(keras.Input((1,), dtype="string"))


@needs_tensorflow
@pytest.mark.slow
@pytest.mark.parametrize("form", ["array", "column", "dataset"])
def test_string_tensors_are_fitted(old, form):
    import tensorflow as tf  # noqa: PLC0415

    keras.utils.set_random_seed(0)
    text = keras.Input((1,) if form == "column" else (), dtype="string")
    model = keras.Model(
        text, keras.layers.Dense(1, activation="sigmoid")(ElmoEmbeddingLayer(old.weights)(text))
    )
    model.compile(loss="binary_crossentropy", optimizer=keras.optimizers.Adam(0.05))
    strings = np.array(TEXTS, dtype=object)
    given = {
        "array": (strings, LABELS),
        "column": (tf.constant(strings)[:, None], LABELS),
        "dataset": (tf.data.Dataset.from_tensor_slices((strings, LABELS)).batch(2),),
    }[form]
    history = model.fit(*given, shuffle=False, epochs=10, verbose=0).history
    assert history["loss"][-1] < history["loss"][0]


@pytest.mark.slow
def test_a_missing_backend_is_named():
    program = "import os; os.environ['KERAS_BACKEND'] = 'jax'; import elmore.compat.keras"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert "needs jax, which is not installed" in result.stderr.splitlines()[-1]
