"""A run that was stopped, however often, ends like one that was not, bit for bit."""

import json
import shutil
import signal
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import elmore
from elmore.config import StatePolicy
from elmore.corpus.sample import sample_documents
from elmore.errors import ConfigError, DataError
from elmore.jobs import checkpoint
from elmore.jobs.stopping import listening
from elmore.lm import finish
from elmore.lm import run as run_module
from elmore.lm.language_model import load_language_model
from elmore.lm.metrics import read_metrics
from elmore.lm.perplexity import measure_losses
from elmore.lm.pretrain import pretrain_model
from elmore.lm.progress import check_same_run
from elmore.lm.run import StoppedError
from elmore.lm.settings import read_settings
from elmore.lm.streams import Streams
from tests.corpus.memory_corpus import make_corpus
from tests.lm.runs import (
    TEXT,
    Watcher,
    assert_same_bits,
    corpus,
    last_tensors,
    make_settings,
    run,
    run_until,
)
from tests.tiny import FIXTURES, needs_fixtures

pytestmark = pytest.mark.slow


def without_times(folder) -> list[dict]:
    timed = ("seconds", "tokens_per_second")
    lines = read_metrics(folder / "metrics.jsonl")
    return [{k: v for k, v in line.items() if k not in timed} for line in lines]


@pytest.mark.parametrize(
    "changes",
    [
        (),
        ("optimizer.name=adamw", "optimizer.learning_rate=0.01", "optimizer.warmup_steps=3"),
        (
            "optimizer.name=muon",
            "optimizer.learning_rate=0.01",
            "optimizer.muon_min_side=2",
            "optimizer.weight_decay=0.1",
        ),
        ("softmax.kind=full", "training.accumulation=2"),
        ("softmax.kind=adaptive", "optimizer.final_share=0.1"),
        ("training.precision=bf16",),
    ],
    ids=["adagrad", "adamw", "muon", "full", "adaptive", "bf16"],
)
def test_stopping_changes_nothing(tmp_path, changes):
    run(tmp_path / "whole", *changes)
    # Checkpoints of other steps, and stops between them, are part of the bargain.
    run_until(tmp_path / "stopped", 1, *changes, "run.checkpoint_steps=5")
    run_until(tmp_path / "stopped", 6, *changes, "run.checkpoint_steps=50")
    run(tmp_path / "stopped", *changes)
    assert_same_bits(last_tensors(tmp_path / "stopped"), last_tensors(tmp_path / "whole"))
    assert without_times(tmp_path / "stopped") == without_times(tmp_path / "whole")


def test_work_after_the_last_checkpoint_is_done_again_to_the_same_end(tmp_path):
    run(tmp_path / "whole")
    run(tmp_path / "killed", "training.max_steps=8", "run.keep_checkpoints=9")
    for path in (tmp_path / "killed" / "checkpoints").glob("step-*8.*"):
        path.unlink()  # as if it had been killed between steps 6 and 9
    run(tmp_path / "killed")
    assert_same_bits(last_tensors(tmp_path / "killed"), last_tensors(tmp_path / "whole"))
    assert without_times(tmp_path / "killed") == without_times(tmp_path / "whole")


def test_a_run_older_than_a_setting_can_be_resumed():
    settings = make_settings()
    kept = settings.to_json()
    del kept["optimizer"]["muon_min_side"]
    del kept["training"]["weights"]
    facts = {"corpus": "fingerprint", "settings": kept}
    options = {"folder": Path("run"), "num_done": 3, "count_steps": lambda _: 12}
    check_same_run(settings, "fingerprint", facts, **options)
    with pytest.raises(ConfigError, match=r"training\.weights\.news was not recorded and is now 2"):
        check_same_run(make_settings("training.weights.news=2"), "fingerprint", facts, **options)


def test_state_and_optimizer_matter(tmp_path):
    """The control: what a checkpoint keeps beside weights is needed for the same end."""
    run(tmp_path / "whole")
    for kept in ("state.", "optimizer."):
        folder = tmp_path / kept
        run_until(folder, 5)
        checkpoints = run_module.Checkpoints(folder / "checkpoints", keep=2)
        newest = checkpoints.read_newest(on_message=print)
        spoiled = {
            name: torch.zeros_like(tensor) if name.startswith(kept) else tensor
            for name, tensor in newest.tensors.items()
        }
        checkpoints.write(newest.step, spoiled, newest.progress)
        run(folder)
        found, expected = last_tensors(folder), last_tensors(tmp_path / "whole")
        assert any(not torch.equal(found[name], expected[name]) for name in expected)


def test_two_runs_of_one_seed_agree_and_another_seed_differs(tmp_path):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        run(tmp_path / name, f"training.seed={seed}")
    assert_same_bits(last_tensors(tmp_path / "a"), last_tensors(tmp_path / "b"))
    name = "bilm.forward_lm.0.state_weight"
    assert not torch.equal(last_tensors(tmp_path / "a")[name], last_tensors(tmp_path / "c")[name])


def test_skipping_steps_begins_where_an_earlier_run_stopped(tmp_path, monkeypatch):
    read, windows = Streams.read, []

    def record(self, *arguments, **settings):
        windows.append(read(self, *arguments, **settings))
        return windows[-1]

    monkeypatch.setattr(Streams, "read", record)
    run(tmp_path / "whole", "training.max_steps=8")
    whole, windows = windows, []
    run(tmp_path / "rest", "training.skip_steps=5", "training.max_steps=3")
    assert [window.tokens for window in windows] == [window.tokens for window in whole[5:]]
    assert all(
        np.array_equal(window.targets, other.targets)
        for window, other in zip(windows, whole[5:], strict=True)
    )


def test_accumulating_over_parts_of_the_rows_is_the_same_training(tmp_path):
    run(tmp_path / "whole")
    run(tmp_path / "parts", "training.accumulation=4")
    expected = last_tensors(tmp_path / "whole")
    for name, tensor in last_tensors(tmp_path / "parts").items():
        torch.testing.assert_close(tensor, expected[name], atol=1e-5, rtol=1e-4)


def test_the_loss_falls_and_the_numbers_are_all_there(tmp_path):
    watcher = Watcher()
    run(tmp_path, "training.max_steps=60", "training.dropout=0.0", observer=watcher)
    lines = read_metrics(tmp_path / "metrics.jsonl")
    train = [line for line in lines if line["kind"] == "train"]
    assert [line["step"] for line in train] == list(range(2, 61, 2))
    assert train[-1]["loss"] < 0.8 * train[0]["loss"]
    assert {"tokens", "seconds", "tokens_per_second", "learning_rate", "gradient_norm"} <= set(
        train[0]
    )
    heldout = [line for line in lines if line["kind"] == "heldout"]
    assert [line["step"] for line in heldout] == list(range(4, 61, 4))
    assert heldout[-1]["perplexity"] < heldout[0]["perplexity"]
    assert lines[-1]["kind"] == "end"
    assert [result.step for result in watcher.heldout] == list(range(4, 61, 4))
    assert watcher.checkpoints[-1] == 60


def test_the_model_is_ready_for_use_and_says_how_it_was_made(tmp_path):
    report = run(tmp_path, "training.max_steps=20", "model.about.name='animals'")
    embedder = elmore.load(tmp_path / "model")
    assert embedder.embed([["the", "unseen", "cat"]])[0].shape == (3, 10)
    language_model = load_language_model(tmp_path / "model")
    documents = list(corpus().heldout.documents())
    found = measure_losses(
        language_model.elmo, language_model.softmax, language_model.words, documents=documents
    )
    assert found.perplexity == pytest.approx(report.starts.carried.perplexity, rel=1e-6)
    card = (tmp_path / "model" / "README.md").read_text()
    assert "# animals" in card
    assert f"{report.heldout.perplexity:.2f}" in card
    assert "20, each of 4 rows x 5 symbols" in card
    assert json.loads((tmp_path / "report.json").read_text())["tokens"] == report.tokens


@pytest.mark.parametrize("strength", [0.25, 1.0])
def test_the_part_of_the_mean_that_was_chosen_is_measured_and_saved(
    tmp_path, monkeypatch, strength
):
    chosen_by = []

    def choose(measure, mean):
        chosen_by.append((measure, mean))
        return strength

    monkeypatch.setattr(finish, "choose_strength", choose)
    report = run(tmp_path)
    saved = load_language_model(tmp_path / "model")
    ((_, (hidden, _)),) = chosen_by
    torch.testing.assert_close(saved.elmo.bilm.initial_hidden, strength * hidden)
    assert report.starts.strength == strength
    documents = list(corpus().heldout.documents())
    found = measure_losses(
        saved.elmo, saved.softmax, saved.words, documents=documents, state=StatePolicy.RESET
    )
    assert found.perplexity == pytest.approx(report.starts.rest.perplexity, rel=1e-6)


def test_a_rest_state_is_chosen_however_little_text_is_held_out(tmp_path):
    assert run(tmp_path, "run.heldout_tokens=1").starts is not None


def test_long_documents_and_short_ones_count_in_the_choice_of_a_rest_state():
    long = "\n".join(["long"] * 5000)
    text = "\n\n".join(["\n".join(["short"] * 20)] * 100 + [long])
    memory = make_corpus("a b", text)
    settings = SimpleNamespace(run=SimpleNamespace(heldout_tokens=4000))
    sample = finish._sample_for_choice(SimpleNamespace(corpus=memory, settings=settings))
    tokens = [token for document in sample for sentence in document for token in sentence]
    by_documents = [
        token
        for document in sample_documents(memory.heldout, max_tokens=2000)
        for sentence in document
        for token in sentence
    ]
    assert by_documents.count("long") / len(by_documents) < 0.2
    assert 0.5 < tokens.count("long") / len(tokens) < 0.8


def test_the_rest_state_is_where_sentences_start(tmp_path):
    report = run(tmp_path)
    model = elmore.load_model(tmp_path / "model")
    assert model.bilm.initial_hidden.abs().sum() > 0
    assert report.starts.rest.perplexity != report.starts.zeros.perplexity
    run(tmp_path / "without", "run.rest_tokens=0")
    assert not elmore.load_model(tmp_path / "without" / "model").bilm.initial_hidden.any()


def test_patience_ends_the_run_with_the_best_weights(tmp_path):
    changes = ("training.max_steps=200", "run.patience=2", "run.heldout_steps=2")
    changes = (*changes, "optimizer.learning_rate=3.0", "run.rest_tokens=0")
    report = run(tmp_path / "whole", *changes)
    assert report.step < 200
    assert "has not fallen" in report.reason
    lines = read_metrics(tmp_path / "whole" / "metrics.jsonl")
    best = min(line["perplexity"] for line in lines if line["kind"] == "heldout")
    assert report.heldout.perplexity == pytest.approx(best, rel=1e-6)
    assert report.weights_step < report.step
    run_until(tmp_path / "stopped", 3, *changes)
    again = run(tmp_path / "stopped", *changes)
    assert again.heldout == report.heldout


def test_a_second_interrupt_stops_at_once():
    with listening() as request:
        signal.raise_signal(signal.SIGINT)
        assert request.signal == signal.SIGINT
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_a_changed_corpus_is_refused(tmp_path):
    run_until(tmp_path, 2)
    other = make_corpus(TEXT, TEXT)
    other.fingerprint = "other"
    with pytest.raises(DataError, match="another corpus"):
        run(tmp_path, corpus=other)


@pytest.mark.parametrize(
    "change", ["training.rows=8", "model.lstm.cell_dim=16", "optimizer.learning_rate=0.1"]
)
def test_a_changed_setting_is_refused(tmp_path, change):
    run_until(tmp_path, 2)
    with pytest.raises(ConfigError, match=change.partition("=")[0]):
        run(tmp_path, change)


def test_how_a_run_is_watched_and_how_long_it_is_may_change(tmp_path):
    run(tmp_path / "long", "training.max_steps=16")
    run(tmp_path / "short")
    assert run(tmp_path / "short", "training.max_steps=16", "run.log_steps=5").step == 16
    assert_same_bits(last_tensors(tmp_path / "short"), last_tensors(tmp_path / "long"))


def test_with_a_falling_rate_the_length_is_part_of_the_run(tmp_path):
    run_until(tmp_path, 2, "optimizer.final_share=0.5")
    with pytest.raises(ConfigError, match="max_steps"):
        run(tmp_path, "optimizer.final_share=0.5", "training.max_steps=16")


FALL = ("optimizer.final_share=0.1", "optimizer.decay_steps=4")


def test_before_the_rate_falls_a_run_may_get_another_end(tmp_path):
    run(tmp_path / "long", *FALL, "training.max_steps=16")
    run_until(tmp_path / "longer", 8, *FALL)  # of 12 steps, so the fall would begin now
    run(tmp_path / "longer", *FALL, "training.max_steps=16")
    run_until(tmp_path / "shorter", 9, *FALL, "training.max_steps=30")
    run(tmp_path / "shorter", *FALL, "training.max_steps=16")
    run_until(tmp_path / "level", 5, "training.num_epochs=90")
    run(tmp_path / "level", *FALL, "training.max_steps=16")
    for other in ("longer", "shorter", "level"):
        assert_same_bits(last_tensors(tmp_path / other), last_tensors(tmp_path / "long"))
        settings = json.loads((tmp_path / other / "settings.json").read_text())
        assert settings["training"]["max_steps"] == 16


def test_an_end_before_the_steps_taken_is_refused(tmp_path):
    run_until(tmp_path, 8)
    with pytest.raises(ConfigError, match=r"has completed 9 steps, but is set to end after 4"):
        run(tmp_path, "training.max_steps=4")
    assert run(tmp_path).step == 12


def test_once_the_rate_has_fallen_the_end_stands(tmp_path):
    run_until(tmp_path, 10, *FALL)
    with pytest.raises(
        ConfigError, match=r"max_steps was 12 and is now 16, .* rates of the 1\d steps"
    ):
        run(tmp_path, *FALL, "training.max_steps=16")
    assert run(tmp_path, *FALL).step == 12


@pytest.mark.parametrize("changes", [(), ("training.max_steps=1",)])
def test_a_finished_run_says_so_and_where_the_model_is(tmp_path, changes):
    steps = "1 of 1 step" if changes else "12 of 12 steps"
    report = run(tmp_path / "run", *changes)
    watcher = Watcher()
    again = run(tmp_path / "run", *changes, observer=watcher)
    assert again.to_json() == report.to_json()
    assert watcher.messages == [
        f"this run is finished ({steps}); its model is in {tmp_path / 'run' / 'model'}; measuring "
        "it again"
    ]
    shutil.rmtree(tmp_path / "run" / "model")
    run(tmp_path / "run", *changes, observer=watcher)
    assert watcher.messages[1].endswith(f"writing its model to {tmp_path / 'run' / 'model'}")
    assert (tmp_path / "run" / "model").is_dir()


def test_a_run_that_lost_patience_is_finished_too(tmp_path):
    changes = ("training.max_steps=200", "run.patience=2", "run.heldout_steps=2")
    changes = (*changes, "optimizer.learning_rate=3.0", "run.rest_tokens=0")
    report = run(tmp_path / "run", *changes)
    assert report.step < 200
    watcher = Watcher()
    assert run(tmp_path / "run", *changes, observer=watcher).step == report.step
    assert watcher.messages[0].startswith(f"this run is finished ({report.step} of 200 steps); ")


def test_a_stop_does_not_wait_for_a_measurement(tmp_path):
    run(tmp_path / "whole")
    watcher = run_until(tmp_path / "stopped", 3)  # it ends with step 4, when a measurement is due
    assert watcher.heldout == []
    run(tmp_path / "stopped")
    assert without_times(tmp_path / "stopped") == without_times(tmp_path / "whole")


def test_a_damaged_newest_checkpoint_gives_way_to_the_one_before(tmp_path):
    run(tmp_path / "whole")
    run_until(tmp_path / "hurt", 7)
    newest = max((tmp_path / "hurt" / "checkpoints").glob("*.safetensors"))
    content = bytearray(newest.read_bytes())
    content[-5] ^= 1
    newest.write_bytes(content)
    watcher = Watcher()
    run(tmp_path / "hurt", observer=watcher)
    assert "damaged" in watcher.messages[0]
    assert "older" in watcher.messages[0]
    assert "step 6" in watcher.messages[1]
    assert_same_bits(last_tensors(tmp_path / "hurt"), last_tensors(tmp_path / "whole"))


def test_without_a_whole_checkpoint_the_run_refuses_and_loses_nothing(tmp_path):
    run_until(tmp_path, 7)
    for path in (tmp_path / "checkpoints").glob("*.safetensors"):
        path.write_bytes(path.read_bytes()[:100])
    before = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    with pytest.raises(DataError, match="--restart"):
        run(tmp_path)
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == before
    assert run(tmp_path, restart=True).step == 12


def test_a_full_disk_leaves_the_last_checkpoint(tmp_path, monkeypatch):
    run(tmp_path / "whole")
    written = []

    def fill_up(path, tensors):
        if len(written) == 2:
            raise OSError(28, "No space left on device")
        written.append(path)
        original(path, tensors)

    original = checkpoint.save_tensors
    monkeypatch.setattr(checkpoint, "save_tensors", fill_up)
    with pytest.raises(DataError, match="full"):
        run(tmp_path / "full")
    monkeypatch.undo()
    assert run_module.Checkpoints(tmp_path / "full" / "checkpoints", keep=2).steps() == [3, 6]
    run(tmp_path / "full")
    assert_same_bits(last_tensors(tmp_path / "full"), last_tensors(tmp_path / "whole"))


def test_a_folder_of_other_things_is_refused(tmp_path):
    (tmp_path / "thesis.txt").write_text("important")
    with pytest.raises(DataError, match="other files"):
        run(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("settings", [None, "{}", "not json"])
def test_what_only_has_the_names_of_a_run_is_not_touched(tmp_path, settings):
    """Neither by a run nor by --restart."""
    files = {"checkpoints/mine.pt": "weights", "model/thesis.bin": "thesis"}
    if settings is not None:
        files["settings.json"] = settings
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    for restart in (False, True):
        with pytest.raises(DataError, match="other files"):
            run(tmp_path, restart=restart)
    assert {name: (tmp_path / name).read_text() for name in files} == files


def test_two_runs_in_one_folder_are_refused(tmp_path):
    release = run_module.RUN.lock(tmp_path)
    with pytest.raises(DataError, match="another process"):
        run(tmp_path)
    release()


def test_gradients_that_are_not_finite_end_the_run(tmp_path):
    with pytest.raises(ConfigError, match="learning_rate"):
        run(tmp_path, "optimizer.learning_rate=1e18", "training.max_steps=50")


def test_text_without_held_out_part_trains_too(tmp_path):
    report = run(tmp_path, corpus=make_corpus(TEXT))
    assert report.heldout is None
    assert "perplexity was not measured" in (tmp_path / "model" / "README.md").read_text()


def test_word_and_character_models_train(tmp_path):
    settings = make_settings("training.max_steps=4").to_json()
    settings["model"]["words"] = {"embedding_dim": 4}
    settings["model"]["characters"]["units"] = "characters"
    pretrain_model(read_settings(settings), corpus(), tmp_path)
    model = elmore.load_model(tmp_path / "model")
    assert model.config.words.num_words == len(corpus().vocabulary)
    assert set("catdog") <= set(model.characters)
    assert elmore.load(tmp_path / "model").embed([["the", "cat"]])[0].shape == (2, 10)


@needs_fixtures
def test_the_text_that_bilm_tf_trains_on_in_its_tests_is_learned(tmp_path):
    """bilm-tf expects a perplexity below 20 after 50 epochs."""
    folder = FIXTURES / "bilm-tf" / "train"
    text = (folder / "data.txt").read_text()
    words = (folder / "vocab.txt").read_text().split()
    report = run(
        tmp_path,
        "training.max_steps=100000",
        "training.num_epochs=50",
        "training.dropout=0.1",
        "softmax.kind=full",
        "run.heldout_steps=1000",
        "run.checkpoint_steps=1000",
        "model.lstm.cell_dim=64",
        "model.lstm.output_dim=16",
        "model.characters.filters=[[1, 8], [2, 16], [3, 32]]",
        "model.characters.max_chars=30",
        corpus=make_corpus(text, text, vocabulary=words),
    )
    assert report.heldout.forward_perplexity < 20
    assert report.heldout.backward_perplexity < 20


def test_interrupted_says_what_to_do():
    assert "the same command" in str(StoppedError(step=3, signal_number=2))


def test_a_run_shorter_than_its_log_interval_logs_its_last_step(tmp_path):
    run(tmp_path, "training.max_steps=5", "run.log_steps=10")
    lines = read_metrics(tmp_path / "metrics.jsonl")
    assert [(line["kind"], line["step"]) for line in lines if line["kind"] != "heldout"] == [
        ("train", 5),
        ("end", 5),
    ]
