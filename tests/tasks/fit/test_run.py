"""The loop: what is kept, when it ends, and that stops change nothing and seeds everything."""

import pytest
import torch
from safetensors.torch import load_file

from elmore.errors import ConfigError, DataError, DataWarning
from elmore.jobs.stopping import StoppedError
from elmore.tasks.fit import run as run_module
from elmore.tasks.fit.model import TaskModel
from elmore.tasks.fit.run import BEST_PATTERN
from tests.tasks.fit.made_up import Place, Watcher, are_alike, without_times, write_data

pytestmark = pytest.mark.slow  # later tests use what earlier ones trained

LEARNING = (
    "elmo.where=both",
    "elmo.training=task",
    "elmo.learning_rate=0.01",
    "elmo.unfreeze_epochs=0.7",
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return Place(tmp_path_factory.mktemp("runs"))


def script_scores(monkeypatch, scores):
    """Let the dev score of each epoch be given; those of the end are the last ones."""
    remaining = iter(scores)
    monkeypatch.setattr(
        TaskModel, "score", lambda self, examples: {"accuracy": next(remaining, 0.0)}
    )


@pytest.mark.parametrize("changes", [(), LEARNING], ids=["frozen", "learning"])
def test_stopped_at_any_step_and_resumed_equals_never_stopped(place, changes):
    kind = "learning" if changes else "plain"
    whole = place.fit(f"{kind}-whole", *changes)
    num_steps = whole.curve[-1].step
    assert num_steps == 15
    for stops in ([1, 2, 7], [5, 15]):
        run = f"{kind}-{stops}"
        for stop in stops:
            with pytest.raises(StoppedError, match=f"after step {stop};"):
                place.fit(run, *changes, observer=Watcher(stop_after=stop))
        watcher = Watcher()
        report = place.fit(run, *changes, observer=watcher)
        assert watcher.steps == list(range(stops[-1] + 1, num_steps + 1))
        assert without_times(report) == without_times(whole)
        assert are_alike(place.folder / run, place.folder / f"{kind}-whole")
        assert place.list_files(run) == place.list_files(f"{kind}-whole")


def test_a_stop_while_an_epoch_is_scored_is_handled_before_the_next_step(place, monkeypatch):
    class Stopper(Watcher):
        def on_epoch(self, point, *, is_best):
            super().on_epoch(point, is_best=is_best)
            if len(self.epochs) == 1:
                self.stop_after = point.step
                self.on_step(point, num_steps=1, loss=0.0)

    watcher = Stopper()
    with pytest.raises(StoppedError):
        place.fit("scored", observer=watcher)
    assert max(watcher.steps) == 5
    place.fit("scored")
    assert are_alike(place.folder / "scored", place.folder / "plain-whole")


def test_one_seed_one_result_and_another_seed_another(place):
    place.fit("again")
    place.fit("other", "training.seed=2")
    assert are_alike(place.folder / "again", place.folder / "plain-whole")
    assert not are_alike(place.folder / "other", place.folder / "plain-whole")


def test_the_random_numbers_of_the_caller_are_theirs(place):
    torch.manual_seed(7)
    wanted = torch.rand(3)
    torch.manual_seed(7)
    place.fit("random", "training.max_epochs=1")
    assert torch.equal(torch.rand(3), wanted)


def test_the_weights_of_the_best_epoch_are_kept(place, monkeypatch):
    script_scores(monkeypatch, [10.0, 30.0, 30.0, 20.0])
    kept = {}
    save = run_module.save_tensors

    def note(path, tensors):
        if "best-" in path.name:
            kept[len(kept)] = {name: tensor.clone() for name, tensor in tensors.items()}
        save(path, tensors)

    monkeypatch.setattr(run_module, "save_tensors", note)
    report = place.fit("best", "training.max_epochs=4")
    assert report.best_epoch == 2, "an equal score is no better one"
    assert [point.dev for point in report.curve] == [10.0, 30.0, 30.0, 20.0]
    assert len(kept) == 2
    found = load_file(place.folder / "best" / "weights.safetensors")
    assert all(torch.equal(found[name], kept[1][f"network.{name}"]) for name in found)
    assert any(not torch.equal(found[name], kept[0][f"network.{name}"]) for name in found)


def test_it_ends_when_patience_is_lost_and_halves_the_rate_before(place, monkeypatch):
    script_scores(monkeypatch, [10.0, 9.0, 11.0, 11.0, 10.0, 9.0, 8.0, 99.0])
    rates = []
    step = run_module.TaskOptimizer.step

    def note(self, loss, *, rate_share):
        step(self, loss, rate_share=rate_share)
        rates.append(self._adam.param_groups[0]["lr"])

    monkeypatch.setattr(run_module.TaskOptimizer, "step", note)
    changes = ("training.max_epochs=50", "training.patience=4", "training.halve_after=2")
    report = place.fit("patience", *changes, "training.batch_size=20")
    assert len(report.curve) == 7
    assert report.best_epoch == 3
    assert [point.rate_share for point in report.curve] == [1, 1, 1, 1, 0.5, 0.5, 0.25]
    # What an epoch's end says holds from the next step on.
    assert rates == [0.02 * share for share in (1, 1, 1, 1, 1, 0.5, 0.5)]


def test_a_rate_may_stay_as_it_is(place, monkeypatch):
    script_scores(monkeypatch, [10.0] * 9)
    report = place.fit("constant", "training.max_epochs=5", "training.halve_after=0")
    assert {point.rate_share for point in report.curve} == {1.0}


def test_a_training_that_diverges_says_so(place, monkeypatch):
    monkeypatch.setattr(TaskModel, "loss", lambda self, examples: torch.tensor(float("nan")))
    with pytest.raises(ConfigError, match=r"is nan at step 1, .* a smaller training.learning_rate"):
        place.fit("diverging")


def test_a_damaged_file_of_best_weights_is_reported(place, monkeypatch):
    script_scores(monkeypatch, [10.0, 5.0, 5.0])
    with pytest.raises(StoppedError):
        place.fit("damaged", observer=Watcher(stop_after=14))
    (best,) = (place.folder / "damaged").glob(BEST_PATTERN)
    best.write_bytes(b"no weights")
    with pytest.raises(
        DataError, match=r"cannot read .*best-1.safetensors .*; start over with --restart"
    ):
        place.fit("damaged")


def test_a_resumed_run_says_where_it_resumes(place):
    with pytest.raises(StoppedError) as stopped:
        place.fit("resumed", observer=Watcher(stop_after=3))
    watcher = Watcher()
    place.fit("resumed", observer=watcher)
    assert f"resuming at step {stopped.value.step}" in watcher.messages


def test_shares_and_numbers_of_examples_are_trained_on(place):
    report = place.fit("share", "training.share=0.5", "training.max_epochs=1")
    assert report.num_examples == {"train": 10, "dev": 8, "test": 5}
    report = place.fit("number", "training.max_examples=3", "training.max_epochs=1")
    assert report.num_examples["train"] == 3
    assert set(report.scores) == {"dev", "test"}


def test_labels_that_can_never_be_right_are_reported(place, tmp_path):
    data = write_data(tmp_path)
    (data / "dev.txt").write_text("a\tNEW\n")
    with pytest.warns(DataWarning, match="dev has labels .* cannot be predicted: 'NEW'"):
        place.fit("unknown", "training.max_epochs=1", data_folder=data)
