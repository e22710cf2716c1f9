import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import elmore
from elmore.embed.embedder import Embedder, load
from elmore.embed.layer_choice import LayerChoice
from elmore.errors import ConfigError, DataError, ElmoreError, ModelError
from elmore.model.scalar_mix import ScalarMix
from elmore.weights.bilm_tf_arrays import to_arrays
from elmore.weights.bilm_tf_options import make_options
from tests import reference, tiny
from tests.kernels.processes import run_python

ROWS = [
    [["the", "bank"], ["of", "a", "river"], [], ["b"]],
    [["x"], ["y", "z"], ["w"], ["v", "u", "t"]],
    [["1"], ["2"], ["3", "4"], ["5"]],
]


@pytest.fixture(scope="module")
def model():
    return tiny.model(scale=0.4)


def expect(model, rows, *, carry):
    """Ask the oracle for all layers of rows of sentences."""
    arrays = to_arrays(model.bilm.state_dict(), model.config)
    return reference.bilm_tf_layers(arrays, make_options(model.config), rows, carry=carry)


def assert_close(found, wanted):
    assert len(found) == len(wanted)
    for left, right in zip(found, wanted, strict=True):
        np.testing.assert_allclose(left, right, atol=2e-6)


def test_policy_reset_starts_every_sentence_from_the_same_state(model):
    sentences = [sentence for row in ROWS for sentence in row]
    wanted = [layers for (layers,) in expect(model, [[s] for s in sentences], carry=False)]
    assert_close(Embedder(model).embed(sentences, layers="all"), wanted)


def test_policy_stream_takes_a_call_for_a_batch_of_rows(model):
    embedder = Embedder(model, state="stream")
    wanted = expect(model, ROWS, carry=True)
    for step in range(4):
        found = embedder.embed([row[step] for row in ROWS], layers="all")
        assert_close(found, [row[step] for row in wanted])


def test_policy_stream_takes_rows_dealt_out_in_turn(model):
    dealt = [row[step] for step in range(4) for row in ROWS]
    wanted = [
        layers for step in zip(*expect(model, ROWS, carry=True), strict=True) for layers in step
    ]
    assert_close(Embedder(model, state="stream").embed(dealt, rows=3, layers="all"), wanted)
    found = Embedder(model, state="stream", tokens_per_batch=2).stream(dealt, layers="all", rows=3)
    assert_close(list(found), wanted)


def test_policy_stream_is_one_row_for_an_iterable(model):
    row = ROWS[0] + ROWS[1]
    (wanted,) = expect(model, [row], carry=True)
    embedder = Embedder(model, state="stream", tokens_per_batch=3)
    assert_close(list(embedder.stream(iter(row), layers="all")), wanted)
    assert not np.allclose(next(embedder.stream(row[:1], layers="all")), wanted[0], atol=1e-4)
    embedder.reset_state()
    assert_close([next(embedder.stream(row[:1], layers="all"))], wanted[:1])


@pytest.mark.parametrize("budget", [1, 4, 1000])
def test_policy_document_forgets_at_an_empty_sentence(model, budget):
    documents = [
        [["a", "b"], ["c"]],
        [["d"]],
        [["e"], ["f", "g"], ["h"]],
        [["a", "b"], ["c"]],
    ]
    sentences, wanted = [], []
    for document, layers in zip(documents, expect(model, documents, carry=True), strict=True):
        sentences += [*document, []]
        wanted += [*layers, np.empty((3, 0, 10))]
    embedder = Embedder(model, state="document", tokens_per_batch=budget)
    assert_close(embedder.embed(sentences, layers="all"), wanted)
    assert_close(embedder.embed(sentences, layers="all"), wanted)  # a call begins a document


def test_policy_document_gives_the_bits_of_the_document_alone(model):
    document = [["a", "b"], ["c"], ["a"] * 20]
    alone = Embedder(model, state="document").embed(document, layers="all")
    among = Embedder(model, state="document", tokens_per_batch=9).embed(
        [*ROWS[1], [], *document, [], *ROWS[2]], layers="all"
    )
    for left, right in zip(alone, among[5:8], strict=True):
        assert left.tobytes() == right.tobytes()


def test_strings_are_split_and_lists_are_not(model):
    embedder = Embedder(model)
    split = embedder.embed(["Don't stop."])[0]
    assert np.array_equal(split, embedder.embed([["Do", "n't", "stop", "."]])[0])
    assert embedder.embed([["Don't stop."]])[0].shape == (1, 10)


def test_odd_tokens_are_tokens(model):
    odd = ["", " ", "\0", "\ud800", "é", "👩‍👩‍👧", "x" * 10_000, "\u3000", "<S>"]
    vectors = Embedder(model).embed([odd])[0]
    assert vectors.shape == (9, 10)
    assert np.isfinite(vectors).all()


def test_mixes(model):
    embedder = Embedder(model)
    sentence = [["the", "bank", "of"]]
    layers = embedder.embed(sentence, layers="all")[0]
    np.testing.assert_allclose(embedder.embed(sentence)[0], layers.mean(axis=0), atol=1e-6)
    assert np.array_equal(embedder.embed(sentence, layers="top")[0], layers[2])
    assert np.array_equal(embedder.embed(sentence, layers=1)[0], layers[1])
    weights = [0.3, -1.0, 2.0]
    mix = ScalarMix(num_layers=3, initial_logits=weights)
    with torch.no_grad():
        mix.scale.fill_(2.5)
    wanted = reference.scalar_mix(layers, weights=np.array(weights), gamma=2.5)
    np.testing.assert_allclose(embedder.embed(sentence, layers=mix)[0], wanted, atol=1e-6)
    given = embedder.embed(sentence, layers=ScalarMix.from_weights([0.2, 0.3, 0.5]))[0]
    wanted = np.tensordot([0.2, 0.3, 0.5], layers.astype(np.float64), axes=1)
    np.testing.assert_allclose(given, wanted, atol=1e-6)


def test_a_number_in_a_tensor_is_a_layer_number(model):
    wanted = Embedder(model).embed("a bank", layers=1)
    for given in (torch.tensor(1), np.array(1), np.int64(1)):
        assert np.array_equal(Embedder(model).embed("a bank", layers=given), wanted)
    for given in (torch.tensor(1.0), torch.tensor(9), np.array("x"), torch.tensor(True)):
        with pytest.raises(ConfigError, match="a layer number from 0 to 2"):
            Embedder(model).embed("a bank", layers=given)


@pytest.mark.parametrize("layers", [[2, 0], (2, 0), np.array([2, 0]), torch.tensor([2, 0]), "2,0"])
def test_a_list_is_layer_numbers(model, layers):
    embedder = Embedder(model)
    (every,) = embedder.embed([["the", "bank"]], layers="all")
    (found,) = embedder.embed([["the", "bank"]], layers=layers)
    assert np.array_equal(found, every[[2, 0]])
    assert str(embedder.choose_layers(layers)) == "2,0"
    assert embedder.embed([[]], layers=layers)[0].shape == (2, 0, 10)


@pytest.mark.parametrize("layers", [[1.0, 2.0, 3.0], (0.2, 0.3, 0.5), np.ones(3), torch.ones(3)])
def test_a_list_of_weights_is_refused_with_what_to_write(model, layers):
    wanted = r"list must hold layer numbers.*ScalarMix\.from_weights.*initial_logits"
    for use in (
        lambda: Embedder(model, layers=layers),
        lambda: Embedder(model).embed([["a"]], layers=layers),
        lambda: elmore.load(tiny.TRAINED_MODEL, layers=layers),
    ):
        with pytest.raises(ConfigError, match=wanted):
            use()


def test_a_normalizing_mix_looks_at_one_sentence_at_a_time(model):
    layers = ScalarMix(num_layers=3, normalizes=True)
    embedder = Embedder(model, layers=layers)
    alone = embedder.embed([["the", "bank"]])[0]
    assert np.array_equal(alone, embedder.embed([["x"] * 9, ["the", "bank"]])[1])


def test_a_normalizing_mix_is_that_of_the_formula_markers_included(model):
    layers = ScalarMix(num_layers=3, normalizes=True, initial_logits=[1.0, 0.0, -1.0])
    sentence = ["the", "bank"]
    flat = model.bilm(model.batch([sentence])).layers.detach().numpy()
    weights = np.array([1.0, 0.0, -1.0])
    wanted = reference.scalar_mix(flat, weights=weights, gamma=1.0, layer_norm=True)[1:-1]
    np.testing.assert_allclose(
        Embedder(model).embed([sentence], layers=layers)[0], wanted, atol=1e-5
    )


def test_the_callers_mix_is_left_as_it_is(model):
    mix = ScalarMix(num_layers=3, dropout=0.5)
    embedder = Embedder(model, layers=mix)
    first = embedder.embed([["the", "bank"]])[0]
    assert np.array_equal(first, embedder.embed([["the", "bank"]])[0])
    assert mix.training


def test_a_mix_is_named_in_full():
    names = {
        str(LayerChoice(mix, num_layers=2))
        for mix in (
            ScalarMix(num_layers=2),
            ScalarMix(num_layers=2, normalizes=True),
            ScalarMix(num_layers=2, initial_logits=[0.0, 1e-7]),
            ScalarMix.from_weights([0.0, 1.0]),
        )
    }
    scaled = ScalarMix(num_layers=2)
    with torch.no_grad():
        scaled.scale.fill_(2.0)
    assert len(names | {str(LayerChoice(scaled, num_layers=2))}) == 5


def test_load_passes_its_settings_on():
    embedder = elmore.load(layers=np.int64(1), state="document", language="zh")
    assert embedder.embed([["a"]])[0].shape == (1, 48)
    assert np.array_equal(
        embedder.embed([["a"]])[0], elmore.load().embed([["a"]], layers="all")[0][1]
    )
    assert (embedder.state, embedder.language) == ("document", "zh")


def test_stream_state_does_not_run_ahead_of_the_reader(model):
    sentences = [["a"], ["b", "c"], ["d"], ["e"]]
    (wanted,) = expect(model, [sentences], carry=True)
    embedder = Embedder(model, state="stream")
    source = iter(sentences)
    stream = embedder.stream(source, layers="all")
    first = [next(stream), next(stream)]
    rest = list(embedder.stream(source, layers="all"))
    assert_close([*first, *rest], wanted)


def test_sentence_vectors_follow_embed_under_every_policy(model):
    sentences = [["a", "b"], ["c"], ["d", "e"]]
    for state in ("reset", "document", "stream"):
        pooled = Embedder(model, state=state).sentence_vectors(sentences)
        tokens = Embedder(model, state=state).embed(sentences)
        np.testing.assert_allclose(pooled, [array.mean(axis=0) for array in tokens], atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_arrays_are_single_precision_whatever_the_model_is(dtype):
    vectors = Embedder(tiny.model().to(dtype)).embed([["a"], []])
    assert [array.dtype for array in vectors] == [np.float32, np.float32]


@pytest.mark.parametrize(
    "layers",
    [
        *("bottom", 3, -1, "3", "0,3", "0,", [1.0, 2.0], True, 1.5, ["a", "b", "c"], b"top"),
        *([], [1, 1], [0, 3], [True], [[0]]),
        *({}, ScalarMix(num_layers=2)),
    ],
)
def test_an_impossible_mix_is_refused_when_loading(model, layers):
    with pytest.raises(ConfigError, match="layer"):
        Embedder(model, layers=layers)


def test_sentence_vectors_count_tokens_only(model):
    embedder = Embedder(model)
    sentences = [["a", "b"], [], ["c"] * 9]
    tokens = embedder.embed(sentences)
    mean, most = (embedder.sentence_vectors(sentences, pool=pool) for pool in ("mean", "max"))
    np.testing.assert_allclose(mean[0], tokens[0].mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(most[2], tokens[2].max(axis=0), atol=1e-6)
    assert not mean[1].any()
    assert embedder.sentence_vectors([]).shape == (0, 10)


def test_streaming_reads_no_further_than_it_must(model):
    seen = 0

    def sentences():
        nonlocal seen
        for _ in range(10_000):
            seen += 1
            yield ["a", "b"]

    embedder = Embedder(model, tokens_per_batch=10)
    next(embedder.stream(sentences()))
    assert seen < 100


def test_a_long_sentence_is_whole_up_to_the_limit_and_refused_beyond(model):
    embedder = Embedder(model, tokens_per_batch=16, max_sentence_tokens=500)
    assert embedder.embed([["a"] * 500])[0].shape == (500, 10)
    with pytest.raises(DataError, match="sentence 2 has 501 tokens, more than max_sentence_tokens"):
        embedder.embed([["a"], ["a"] * 501])


def test_mistakes_are_named(model):
    embedder = Embedder(model)
    with pytest.raises(DataError, match="a list of sentences was expected"):
        embedder.embed(3)
    with pytest.raises(DataError, match="a list of sentences was expected"):
        embedder.stream("one string")
    with pytest.raises(ConfigError, match="numpy, torch"):
        embedder.embed("a", output="jax")
    with pytest.raises(DataError, match="int"):
        embedder.embed([["a", 3]])
    with pytest.raises(ConfigError, match="reset, document, stream"):
        Embedder(model, state="carry")
    with pytest.raises(ConfigError, match="mean, max"):
        embedder.sentence_vectors([["a"]], pool="median")
    with pytest.raises(ConfigError, match="rows is 0"):
        embedder.embed([["a"]], rows=0, layers="all")
    with pytest.raises(DataError, match="expected a list of tokens, got the string 'one sentence'"):
        next(embedder.windows(["one sentence"]))
    with pytest.raises(DataError, match="expected a list of tokens"):
        model.batch(["one sentence"])
    with pytest.raises(ConfigError, match="tokens_per_batch"):
        Embedder(model, tokens_per_batch=0)
    for device in ("nowhere", "meta"):
        with pytest.raises(ElmoreError, match=f"device '{device}'"):
            elmore.load(device=device)
    with pytest.raises(ConfigError, match="tokens_per_batch is '5'"):
        Embedder(model, tokens_per_batch="5")
    with pytest.raises(ElmoreError, match="give a model"):
        elmore.load(options="options.json")


def test_one_string_is_one_sentence_and_gives_one_array(model):
    embedder = Embedder(model)
    (wanted,) = embedder.embed([["A", "bank", "."]])
    assert np.array_equal(embedder.embed("A bank."), wanted)
    assert np.array_equal(embedder("A bank ."), wanted)
    assert np.array_equal(embedder.embed("A bank .", tokenized=True), wanted)
    assert embedder.embed("A bank.", tokenized=True).shape == (2, 10)
    assert embedder.embed("").shape == (0, 10)
    assert np.array_equal(embedder.sentence_vectors("A bank."), wanted.mean(axis=0))


def test_a_list_of_strings_is_sentences_unless_it_is_tokenized(model):
    embedder = Embedder(model)
    listed = ["A", "bank", "."]
    assert [array.shape for array in embedder.embed(listed)] == [(1, 10)] * 3
    (wanted,) = embedder.embed([listed])
    assert np.array_equal(embedder.embed(listed, tokenized=True), wanted)
    (found,) = embedder.embed([listed], tokenized=True)
    assert np.array_equal(found, wanted)
    assert embedder.embed([], tokenized=True) == []


def test_tensors_are_the_arrays_and_can_be_trained_on(model):
    embedder = Embedder(model)
    sentences = [["A", "bank"], [], ["."]]
    arrays = embedder.embed(sentences, layers="all")
    tensors = embedder.embed(sentences, layers="all", output="torch")
    for tensor, array in zip(tensors, arrays, strict=True):
        assert np.array_equal(tensor.numpy(), array)
        assert tensor.device == embedder.device
    weight = torch.ones(10, requires_grad=True)
    (tensors[0] @ weight).sum().backward()
    assert weight.grad is not None


def test_sentence_vectors_of_any_layer(model):
    embedder = Embedder(model)
    layers = embedder.embed([["A", "bank"]], layers="all")[0]
    for layer in (0, 2):
        pooled = embedder.sentence_vectors([["A", "bank"]], layers=layer)
        np.testing.assert_allclose(pooled[0], layers[layer].mean(axis=0), atol=1e-6)
    several = embedder.sentence_vectors([["A", "bank"], []], layers=[0, 2])
    expected = [layers[layer].mean(axis=0) for layer in (0, 2)]
    np.testing.assert_allclose(several[0], np.concatenate(expected), atol=1e-6)
    assert not several[1].any()
    assert embedder.sentence_vectors([], layers=[0, 2]).shape == (0, 20)


def test_last_states_have_read_the_whole_sentence(model):
    embedder = Embedder(model, layers="top")
    (found,) = embedder.sentence_vectors([["A", "bank", "."]], pool="last")
    half = len(found) // 2
    (changed,) = embedder.sentence_vectors([["The", "bank", "!"]], pool="last")
    tokens = embedder.embed(["A", "bank", "."], tokenized=True)
    assert np.array_equal(found, [*tokens[2, :half], *tokens[0, half:]])
    assert not np.isclose(found, changed).any()  # the far end of each direction matters


def test_progress_is_shown_where_asked_for(model, capsys):
    Embedder(model).embed([["A"], ["bank"]], progress=True)
    assert "2/2 sentences" in capsys.readouterr().out
    Embedder(model).embed([["A"]])
    assert capsys.readouterr().out == ""


def test_tokens_are_those_that_are_embedded(model):
    embedder = Embedder(model)
    assert embedder.tokenize("It isn't.") == ["It", "is", "n't", "."]
    assert embedder.tokenize(["A bank.", ""]) == [["A", "bank", "."], []]


def test_a_repr_says_what_it_is(model):
    shown = repr(Embedder(model, layers="top", state="document"))
    assert shown.startswith("<Embedder ")
    for part in ("3 layers of 10", "layers='top'", "state='document'", "precision='f32'", "cpu"):
        assert part in shown


def test_a_loaded_embedder_saves_scores_and_fills_gaps(tmp_path):
    embedder = elmore.load()
    embedder.save(tmp_path / "copy")
    copied = elmore.load(tmp_path / "copy")
    assert np.array_equal(copied.embed("the bank"), embedder.embed("the bank"))
    one, (again, other) = copied.score("the bank"), embedder.score(["the bank", "bank the"])
    assert one == again
    assert one.forward_total > other.forward_total
    words = embedder.fill("she sat on the ___ of the river .", top=3)
    assert len(words) == 3
    with pytest.raises(ElmoreError, match="in memory"):
        Embedder(tiny.model()).score("a")


def test_an_embedder_without_an_lm_head_saves_what_it_has(tmp_path):
    tiny.model().save_pretrained(tmp_path / "plain")
    embedder = elmore.load(tmp_path / "plain")
    embedder.save(tmp_path / "copy")
    assert elmore.load(tmp_path / "copy").model.fingerprint() == embedder.model.fingerprint()
    Embedder(tiny.model()).save(tmp_path / "memory")
    assert elmore.load(tmp_path / "memory").model.fingerprint() == embedder.model.fingerprint()
    with pytest.raises(ElmoreError, match="has no softmax"):
        embedder.score("a")


@pytest.fixture
def changed(monkeypatch, tmp_path):
    """An embedder whose model was changed after loading; torch uses the model's own weights."""
    monkeypatch.setenv("ELMORE_KERNEL", "torch")
    embedder = elmore.load(tiny.TRAINED_MODEL)
    before = embedder.embed("the bank")
    embedder.score("the bank")  # loads the LM head, before the change
    with torch.no_grad():
        for weight in embedder.model.bilm.parameters():
            weight.mul_(0.5)
    embedder.clear_cache()
    assert not np.array_equal(embedder.embed("the bank"), before)
    return embedder


def test_a_changed_model_is_saved_as_it_is_now(changed, tmp_path):
    changed.save(tmp_path / "copy")
    copied = elmore.load(tmp_path / "copy")
    assert np.array_equal(copied.embed("the bank"), changed.embed("the bank"))
    assert copied.score("the bank") == changed.score("the bank")


def test_a_changed_model_scores_and_fills_as_it_is_now(changed):
    original = elmore.load(tiny.TRAINED_MODEL)
    assert changed.score("the bank") != original.score("the bank")
    with torch.no_grad():
        for weight in changed.model.bilm.parameters():
            weight.mul_(2)
    assert changed.score("the bank") == original.score("the bank")
    assert changed.fill("the ___ .") == original.fill("the ___ .")


def test_a_changed_model_survives_being_moved_and_pickled(changed):
    wanted, score = changed.embed("the bank"), changed.score("the bank")
    moved = changed.to("cpu")
    assert np.array_equal(moved.embed("the bank"), wanted)
    assert moved.score("the bank") == score
    assert np.array_equal(pickle.loads(pickle.dumps(moved)).embed("the bank"), wanted)


def test_an_lm_head_of_another_model_is_refused(tmp_path):
    shutil.copytree(tiny.TRAINED_MODEL, tmp_path / "model")
    embedder = elmore.load(tmp_path / "model")
    other = elmore.LanguageModel.load(tiny.TRAINED_MODEL)
    with torch.no_grad():
        other.elmo.bilm.initial_hidden.add_(1)
    other.save(tmp_path / "model")
    with pytest.raises(ModelError, match="has changed since this embedder loaded it"):
        embedder.score("the bank")
    with pytest.raises(ModelError, match="has changed since this embedder loaded it"):
        embedder.save(tmp_path / "copy")


def test_an_embedder_can_be_moved(model):
    embedder = elmore.load()
    wanted = embedder.embed("the bank")
    assert embedder.to("cpu") is embedder
    assert np.array_equal(embedder.embed("the bank"), wanted)
    with pytest.raises(ConfigError, match="meta"):
        embedder.to("meta")


def test_two_default_models_are_one():
    first, second = elmore.load(), elmore.load()
    assert first.model.fingerprint() == second.model.fingerprint()


def test_a_loaded_model_has_given_up_its_weights(tmp_path):
    tiny.model().save_pretrained(tmp_path / "model")
    embedder = load(tmp_path / "model")
    if not embedder.has_own_weights:
        pytest.skip("torch computes here, with the model's own weights")
    assert embedder.model.fingerprint() == tiny.model().fingerprint()
    assert embedder.vector_dim == 10
    for use in (
        lambda: embedder.model.save_pretrained(tmp_path / "copy"),
        embedder.model.state_dict,
        lambda: embedder.model.to("cpu"),
        lambda: embedder.model.batch([["a"]]),
        lambda: Embedder(embedder.model),
    ):
        with pytest.raises(ModelError, match="load_model"):
            use()


def test_precisions_come_close_to_each_other():
    model = tiny.model(tiny.byte_config(cell_dim=64, output_dim=32), scale=0.2)
    sentences = [["the", "bank"], ["of", "a", "river"]]
    exact = np.concatenate(Embedder(model).embed(sentences))
    for precision, bound in (("bf16", 0.02), ("int8", 0.04)):
        found = np.concatenate(Embedder(model, precision=precision).embed(sentences))
        error = np.linalg.norm(found - exact) / np.linalg.norm(exact)
        assert 0 < error < bound
    with pytest.raises(ConfigError, match="f32, bf16, int8"):
        Embedder(model, precision="f64")


def test_weights_of_several_types_are_left_to_torch():
    model = tiny.model()
    model.bilm.token_encoder.highways.to(torch.float64)
    with pytest.raises(RuntimeError, match="dtype"):
        Embedder(model).embed([["a"]])


@pytest.mark.slow
def test_a_forked_child_finishes_a_stream_that_its_parent_began():
    script = """
import os, signal, torch
torch.set_num_threads(4)  # several batches at the same time
from elmore.embed.embedder import Embedder
from tests import tiny
embedder = Embedder(tiny.model(), tokens_per_batch=4)
assert embedder._engine.num_parallel == 2
sentences = [["a", "b", "c"]] * 50
wanted = [array.tobytes() for array in embedder.embed(sentences)]
stream = embedder.stream(sentences)
found = [next(stream).tobytes()]
child = os.fork()
if child == 0:
    signal.alarm(20)
    os._exit(found + [array.tobytes() for array in stream] != wanted)
assert os.waitpid(child, 0)[1] == 0
assert found + [array.tobytes() for array in stream] == wanted
"""
    done = run_python(script)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_fork_while_another_thread_embeds_does_not_hang():
    script = """
import os, signal, sys, threading, time
from elmore.embed.embedder import Embedder
from tests import tiny
embedder = Embedder(tiny.model(), cache_size=5)
wanted = embedder.embed([["a", "b"]])[0].tobytes()
is_done = False
def work():
    while not is_done:
        embedder.embed([[f"w{n}" for n in range(50)]])
thread = threading.Thread(target=work); thread.start()
for _ in range(10):
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os._exit(embedder.embed([["a", "b"]])[0].tobytes() != wanted)
    assert os.waitpid(child, 0)[1] == 0
is_done = True
thread.join()
threading.Thread(target=lambda: (time.sleep(0.3), embedder.embed([["c"]]))).start()
"""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_token_offsets_point_into_the_text():
    embedder = Embedder(tiny.model())
    text = "  Don't stop ."
    offsets = embedder.token_offsets(text)
    assert [text[start:end] for start, end in offsets] == embedder.tokenize(text)


def test_only_a_model_with_an_lm_head_says_that_it_has_one():
    assert load(tiny.TRAINED_MODEL).has_lm_head
    assert not Embedder(tiny.model()).has_lm_head
