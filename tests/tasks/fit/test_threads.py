"""A task network trains with one thread unless settings say otherwise; torch is left as it was."""

import pytest
import torch

from elmore.tasks.fit.threads import choose_threads, using_threads
from tests.tasks.fit.made_up import Place, Watcher, make_settings


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return Place(tmp_path_factory.mktemp("threads"))


@pytest.fixture(autouse=True)
def _two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


class ThreadWatcher(Watcher):
    """Takes note of torch's threads at each step."""

    def __init__(self):
        super().__init__()
        self.threads = set()

    def on_step(self, progress, *, num_steps, loss):
        super().on_step(progress, num_steps=num_steps, loss=loss)
        self.threads.add(torch.get_num_threads())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "threads"),
    [
        ([], 1),
        (["elmo.where=input"], 1),
        (["training.threads=3"], 3),
        (["elmo.where=input", "elmo.training=task"], 2),
    ],
)
def test_a_training_uses_as_many_threads_as_chosen_and_leaves_torch_as_it_was(
    place, changes, threads
):
    watcher = ThreadWatcher()
    place.fit("-".join(["run", *changes]), "training.max_epochs=1", *changes, observer=watcher)
    assert watcher.threads == {threads}
    assert torch.get_num_threads() == 2


def test_a_bilm_that_is_not_used_is_not_trained():
    assert choose_threads(make_settings("elmo.training=task")) == 1


def test_threads_are_put_back_after_an_error():
    with pytest.raises(KeyError), using_threads(1):
        raise KeyError
    assert torch.get_num_threads() == 2


@pytest.mark.slow
def test_the_number_may_change_when_a_training_is_resumed(place):
    report = place.fit("resumed", "training.max_epochs=1")
    assert place.fit("resumed", "training.max_epochs=1", "training.threads=2") == report
