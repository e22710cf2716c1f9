"""bilm-tf's files, read and written; what they must compute comes from `tests/reference.py`."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from elmore.config import LSTMConfig, ModelConfig, WordConfig
from elmore.errors import ModelError
from elmore.weights.bilm_tf import read_bilm_tf, write_bilm_tf
from elmore.weights.elmo_model import ElmoModel, new_model
from elmore.weights.loading import load_model
from tests import reference, tiny
from tests.weights import peer_files
from tests.weights.peer_files import SENTENCES, largest_difference, make_arrays, make_options, run

VARIANTS: dict[str, dict[str, Any]] = {
    "two layers with everything": make_options(),
    "three layers": make_options(lstm={"n_layers": 3}),
    "no residuals": make_options(lstm={"use_skip_connections": False}),
    "no LSTM projection": make_options(lstm={"dim": 4}),
    "no LSTM projection, no residuals": make_options(
        lstm={"dim": 4, "use_skip_connections": False}
    ),
    "no CNN projection": make_options(
        lstm={"projection_dim": 5, "dim": 8}, filters=[[1, 2], [3, 3]]
    ),
    "neither projection": make_options(lstm={"projection_dim": 5, "dim": 5}, filters=[[2, 5]]),
    "tanh": make_options(activation="tanh"),
    "no highway": make_options(n_highway=0),
    "highway null": make_options(n_highway=None),
    "clips null": make_options(lstm={"cell_clip": None, "proj_clip": None}),
    "only cells clipped": make_options(lstm={"proj_clip": None}),
    "only outputs clipped": make_options(lstm={"cell_clip": None}),
    "261 characters": make_options(n_characters=261),
    "fifty characters a token": make_options(max_characters_per_token=50),
    "three characters a token": make_options(max_characters_per_token=3, filters=[[3, 4]]),
}


def reference_layers(
    arrays: peer_files.Arrays, options: dict[str, Any], sentences: list[list[str]]
) -> list[np.ndarray]:
    return reference.bilm_tf_layers(arrays, options, [sentences], carry=False)[0]


def load_files(
    folder: Path, options: dict[str, Any], arrays: peer_files.Arrays, **kind: bool
) -> ElmoModel:
    return read_bilm_tf(*peer_files.write_bilm_tf_files(folder, options, arrays, **kind))


@pytest.mark.parametrize("options", VARIANTS.values(), ids=VARIANTS)
def test_every_variant_gives_the_vectors_of_the_formulas(options, tmp_path):
    arrays = make_arrays(options)
    model = load_files(tmp_path, options, arrays)
    expected = reference_layers(arrays, options, SENTENCES)
    assert largest_difference(run(model, SENTENCES, dtype=torch.float32), expected) < 1e-5
    assert largest_difference(run(model, SENTENCES), expected) < 1e-9


def test_small_clips_bind_in_these_tests(tmp_path):
    options, unclipped = make_options(), make_options(lstm={"cell_clip": None, "proj_clip": None})
    arrays = make_arrays(options)
    clipped_layers = reference_layers(arrays, options, SENTENCES)
    assert largest_difference(clipped_layers, reference_layers(arrays, unclipped, SENTENCES)) > 0.1


@pytest.mark.parametrize("missing", ["n_characters", "n_highway"])
def test_settings_of_the_characters_may_be_absent(missing, tmp_path):
    options = make_options(n_highway=0)
    del options["char_cnn"][missing]
    arrays = make_arrays(options)
    model = load_files(tmp_path, options, arrays)
    expected = reference_layers(arrays, options, SENTENCES)
    assert largest_difference(run(model, SENTENCES), expected) < 1e-9


@pytest.mark.parametrize("missing", ["cell_clip", "proj_clip", "use_skip_connections"])
def test_settings_of_the_lstm_may_be_absent(missing, tmp_path):
    options = make_options()
    del options["lstm"][missing]
    arrays = make_arrays(options)
    model = load_files(tmp_path, options, arrays)
    expected = reference_layers(arrays, options, SENTENCES)
    assert largest_difference(run(model, SENTENCES), expected) < 1e-9


def test_one_layer_is_meant_where_no_number_is_given(tmp_path):
    options = make_options(lstm={"n_layers": 1})
    arrays = make_arrays(options)
    expected = reference_layers(arrays, options, SENTENCES)
    del options["lstm"]["n_layers"]
    model = load_files(tmp_path, options, arrays)
    assert largest_difference(run(model, SENTENCES), expected) < 1e-9


@pytest.mark.parametrize("dim", [6, 4], ids=["projected", "not projected"])
@pytest.mark.parametrize("has_short_names", [True, False], ids=["short names", "long names"])
def test_one_layer_is_read_under_either_name(has_short_names, dim, tmp_path):
    options = make_options(lstm={"n_layers": 1, "dim": dim})
    arrays = make_arrays(options)
    model = load_files(tmp_path, options, arrays, has_short_names=has_short_names)
    expected = reference_layers(arrays, options, SENTENCES)
    assert largest_difference(run(model, SENTENCES), expected) < 1e-9


def test_short_names_never_stand_for_several_layers(tmp_path):
    options = make_options(lstm={"n_layers": 1})
    paths = peer_files.write_bilm_tf_files(
        tmp_path, options, make_arrays(options), has_short_names=True
    )
    paths[1].write_text(json.dumps(make_options(lstm={"n_layers": 2})))
    with pytest.raises(ModelError, match="lacks the array 'RNN_0/RNN/MultiRNNCell/Cell0"):
        read_bilm_tf(*paths)


def test_keys_of_the_training_are_passed_over(tmp_path):
    options = make_options(projection_after_highway=True)
    options.update(
        bidirectional=True,
        dropout=0.1,
        reverse=False,
        all_clip_norm_val=10.0,
        n_epochs=10,
        n_train_tokens=768648884,
        batch_size=128,
        n_tokens_vocab=793471,
        unroll_steps=20,
        n_negative_samples_batch=8192,
        sample_softmax=True,
        share_embedding_softmax=False,
    )
    arrays = make_arrays(options)
    model = load_files(tmp_path, options, arrays)
    assert model.config.about.trained_on == "768,648,884 tokens, 10 epochs"
    expected = reference_layers(arrays, options, SENTENCES)
    assert largest_difference(run(model, SENTENCES), expected) < 1e-9


def test_projections_between_equal_widths_are_used_where_they_are_as_allennlp_does(tmp_path):
    options = make_options(lstm={"projection_dim": 5, "dim": 5}, filters=[[2, 5]])
    arrays = make_arrays(options)
    random = np.random.default_rng(1)
    extra = {
        "CNN_proj/W_proj": random.normal(size=(5, 5)),
        "CNN_proj/b_proj": random.normal(size=5),
    }
    for direction in (0, 1):
        for layer in (0, 1):
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            extra[f"{cell}/W_P_0"] = random.normal(size=(5, 5))
    arrays |= {name: array.astype(np.float32) for name, array in extra.items()}
    model = load_files(tmp_path, options, arrays)
    # The oracle follows bilm-tf, so the projections are done by hand here, on layer 0 and a cell.
    token = reference.bilm_tf_token(arrays, options, "word")
    token = token @ arrays["CNN_proj/W_proj"] + arrays["CNN_proj/b_proj"]
    np.testing.assert_allclose(run(model, [["word"]])[0][0, 0, :5], token, atol=1e-5)
    assert model.config.lstm.has_projection
    write_bilm_tf(model.float(), tmp_path / "again" / "w.hdf5")
    again = peer_files.read_all_arrays(tmp_path / "again" / "w.hdf5")
    assert set(again) == set(arrays)


@pytest.mark.parametrize(
    "options",
    [
        make_options(lstm={"n_layers": 1}),
        make_options(n_highway=1),
        make_options(filters=[[1, 2], [2, 3]]),
    ],
    ids=["layer", "highway", "filter"],
)
def test_options_of_a_smaller_network_are_refused(options, tmp_path):
    paths = peer_files.write_bilm_tf_files(tmp_path, make_options(), make_arrays(make_options()))
    paths[1].write_text(json.dumps(options))
    with pytest.raises(ModelError, match="fewer layers"):
        read_bilm_tf(*paths)


@st.composite
def architectures(draw: st.DrawFn) -> dict[str, Any]:
    clips = st.none() | st.sampled_from([0.1, 0.3, 1, 3.0])
    dim = draw(st.integers(1, 6))
    max_chars = draw(st.integers(3, 12))
    pairs = st.tuples(st.integers(1, max_chars), st.integers(1, 4))
    return make_options(
        lstm={
            "n_layers": draw(st.integers(1, 3)),
            "dim": dim,
            "projection_dim": draw(st.integers(1, dim)),
            "cell_clip": draw(clips),
            "proj_clip": draw(clips),
            "use_skip_connections": draw(st.booleans()),
        },
        activation=draw(st.sampled_from(["relu", "tanh"])),
        embedding={"dim": draw(st.integers(1, 4))},
        filters=[list(pair) for pair in draw(st.lists(pairs, min_size=1, max_size=3))],
        max_characters_per_token=max_chars,
        n_characters=draw(st.sampled_from([261, 262])),
        n_highway=draw(st.integers(0, 2)),
    )


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(
    options=architectures(),
    sentences=st.lists(st.lists(st.text(max_size=8), max_size=4), min_size=1, max_size=3),
    seed=st.integers(0, 99),
    has_short_names=st.booleans(),
)
def test_any_architecture_gives_the_vectors_of_the_formulas_and_survives_writing(
    tmp_path_factory, options, sentences, seed, has_short_names
):
    folder = tmp_path_factory.mktemp("architecture")
    arrays = make_arrays(options, seed=seed)
    has_short_names = has_short_names and options["lstm"]["n_layers"] == 1
    model = load_files(folder, options, arrays, has_short_names=has_short_names)
    expected = reference_layers(arrays, options, sentences)
    write_bilm_tf(model, folder / "written" / "weights.hdf5")
    peer_files.assert_equal_arrays(
        peer_files.read_all_arrays(folder / "written" / "weights.hdf5"), arrays
    )
    assert largest_difference(run(model, sentences), expected) < 1e-9


@pytest.mark.parametrize("options", VARIANTS.values(), ids=VARIANTS)
def test_what_was_read_is_written_equal_to_the_bit(options, tmp_path):
    arrays = make_arrays(options)
    model = load_files(tmp_path, options, arrays)
    weights_path = tmp_path / "written" / "weights.hdf5"
    written = write_bilm_tf(model, weights_path)
    assert written == [weights_path, tmp_path / "written" / "options.json"]
    peer_files.assert_equal_arrays(peer_files.read_all_arrays(weights_path), arrays)
    again = load_model(weights_path)
    assert again.fingerprint() == model.fingerprint()


def test_written_options_say_what_bilm_tf_and_allennlp_look_for(tmp_path):
    options = make_options()
    write_bilm_tf(load_files(tmp_path, options, make_arrays(options)), tmp_path / "new" / "w.hdf5")
    written = json.loads((tmp_path / "new" / "options.json").read_text())
    assert written == {"bidirectional": True, **options}


def test_a_model_of_another_forget_bias_is_written_so_that_adding_one_is_right(tmp_path):
    model = tiny.model(tiny.byte_config(forget_bias=0.0, cell_clip=0.3, output_clip=0.3))
    write_bilm_tf(model, tmp_path / "w.hdf5")
    arrays = peer_files.read_all_arrays(tmp_path / "w.hdf5")
    options = json.loads((tmp_path / "options.json").read_text())
    expected = reference_layers(arrays, options, SENTENCES)
    assert largest_difference(run(model, SENTENCES), expected) < 1e-6


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_a_model_of_another_precision_is_written_as_float32(dtype, tmp_path):
    model = tiny.model().to(dtype)
    write_bilm_tf(model, tmp_path / "w.hdf5")
    table = peer_files.read_all_arrays(tmp_path / "w.hdf5")["char_embed"]
    ours = model.bilm.state_dict()["token_encoder.characters.embedding.weight"]
    assert np.array_equal(table, ours.float().numpy())


# options.json beside the weights.


def test_options_of_another_model_are_not_overwritten_unless_asked(tmp_path):
    (tmp_path / "options.json").write_text(json.dumps(make_options(n_highway=0)))
    before = (tmp_path / "options.json").read_bytes()
    with pytest.raises(ModelError, match="describes another model"):
        write_bilm_tf(tiny.model(), tmp_path / "w.hdf5")
    assert (tmp_path / "options.json").read_bytes() == before
    assert not (tmp_path / "w.hdf5").exists()
    write_bilm_tf(tiny.model(), tmp_path / "w.hdf5", overwrite=True)
    assert load_model(tmp_path / "w.hdf5").fingerprint() == tiny.model().fingerprint()


@pytest.mark.parametrize("content", ["", "[]", '{"lstm": 1}', "not json"])
def test_what_cannot_be_read_as_options_is_not_overwritten_either(content, tmp_path):
    (tmp_path / "options.json").write_text(content)
    with pytest.raises(ModelError, match="another model"):
        write_bilm_tf(tiny.model(), tmp_path / "w.hdf5")
    assert (tmp_path / "options.json").read_text() == content


def test_options_that_agree_are_left_untouched(tmp_path):
    options = make_options(n_characters=261)
    options["n_train_tokens"] = 5
    arrays = make_arrays(options)
    model = load_files(tmp_path, options, arrays)
    before = (tmp_path / "options.json").read_bytes()
    write_bilm_tf(model, tmp_path / "second.hdf5")
    assert (tmp_path / "options.json").read_bytes() == before


# What the format cannot hold.


def test_a_state_of_its_own_is_not_silently_lost(tmp_path):
    model = tiny.model()
    model.bilm.initial_cell[0, 0, 0] = 0.5
    with pytest.raises(ModelError, match="start from zeros"):
        write_bilm_tf(model, tmp_path / "w.hdf5")
    assert not list(tmp_path.iterdir())


def word_config(**words: Any) -> ModelConfig:
    return ModelConfig(
        lstm=LSTMConfig(cell_dim=6, output_dim=4),
        words=WordConfig(num_words=4, embedding_dim=4, **words),
        has_token_projection=False,
    )


@pytest.mark.parametrize(
    ("config", "words", "complaint"),
    [
        (word_config(end="<E>"), ["<S>", "<E>", "<UNK>", "a"], "uses other names"),
        (word_config(max_chars=3), ["<S>", "</S>", "<UNK>", "a"], "first characters"),
        (tiny.byte_config(output_dim=20), [], "cannot be wider than the cells"),
    ],
)
def test_a_model_the_format_has_no_words_for_is_refused(config, words, complaint, tmp_path):
    model = new_model(config, seed=1, words=words)
    with pytest.raises(ModelError, match=complaint):
        write_bilm_tf(model, tmp_path / "w.hdf5")


def test_a_model_of_words_and_characters_is_refused(tmp_path):
    with pytest.raises(ModelError, match="has both"):
        write_bilm_tf(tiny.model(tiny.word_and_char_config()), tmp_path / "w.hdf5")


def test_a_rest_state_is_left_out_only_when_asked(tmp_path):
    model = tiny.model()
    model.bilm.initial_hidden += 0.25
    with pytest.raises(ModelError, match="--from-zeros"):
        write_bilm_tf(model, tmp_path / "weights.hdf5")
    write_bilm_tf(model, tmp_path / "weights.hdf5", from_zeros=True)
    again = load_model(tmp_path / "weights.hdf5")
    assert not again.bilm.initial_hidden.any()
    name = "forward_lm.0.state_weight"
    assert torch.equal(again.bilm.state_dict()[name], model.bilm.state_dict()[name])
