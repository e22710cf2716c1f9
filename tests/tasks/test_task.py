"""A task with only the required methods can be trained, saved and used."""

from dataclasses import dataclass

import pytest
import torch
from torch import nn

from elmore.errors import DataError
from elmore.tasks.data.parts import Parts
from elmore.tasks.fit.fit import fit_task
from elmore.tasks.fit.folder import load_task_model
from elmore.tasks.fit.settings import read_settings
from elmore.tasks.kinds.table import KINDS, Kind
from elmore.tasks.task import Task


@dataclass(frozen=True, kw_only=True)
class ParitySettings:
    """The size of the network."""

    hidden_dim: int = 8


@dataclass(frozen=True)
class Number:
    """A number in digits."""

    digits: str


class ParityNetwork(nn.Module):
    """Predicts from the last digit alone."""

    def __init__(self, *, tokens, hidden_dim):
        super().__init__()
        self.tokens = tokens
        self.layers = nn.Sequential(
            nn.Linear(tokens.input_dim, hidden_dim), nn.ReLU(), nn.Linear(hidden_dim, 1)
        )

    def loss(self, batch):
        return nn.functional.binary_cross_entropy_with_logits(self._score(batch), batch.features)

    def predict(self, batch):
        return (self._score(batch) > 0).tolist()

    def _score(self, batch):
        (numbers,) = batch.sentences
        vectors = self.tokens.below(numbers)
        rows = torch.arange(len(vectors))
        return self.layers(vectors[rows, numbers.lengths - 1]).squeeze(1)


class ParityTask(Task):
    """Is a number odd?"""

    name = "parity"
    main_score = "accuracy"

    def read(self, path):
        return map(self.parse, path.read_text().split())

    def parse(self, given):
        if isinstance(given, Number):
            return given
        if not (isinstance(given, str) and given.isdigit()):
            raise DataError(f"expected a string of digits, got {given!r}; write the number out")
        return Number(given)

    def find_sentences(self, examples):
        return ([list(example.digits) for example in examples],)

    def build(self, tokens, *, labels):
        return ParityNetwork(tokens=tokens, hidden_dim=self.settings.hidden_dim)

    def prepare(self, examples, *, labels, with_gold):
        if not with_gold:
            return None
        return torch.tensor([float(int(example.digits) % 2) for example in examples])

    def score(self, examples, predictions):
        pairs = list(zip(examples, predictions, strict=True))
        num_correct = sum(int(example.digits) % 2 == is_odd for example, is_odd in pairs)
        return {"accuracy": 100 * num_correct / len(pairs)}

    def to_json(self, example, prediction):
        return {"number": example.digits, "is_odd": prediction}


def test_the_required_methods_are_enough(tmp_path, monkeypatch):
    monkeypatch.setitem(KINDS, "parity", Kind(task=ParityTask, settings=ParitySettings))
    for part, first in (("train", 100), ("dev", 200)):
        (tmp_path / part).write_text("\n".join(map(str, range(first, first + 40))))
    settings = read_settings(
        {
            "kind": "parity",
            "words": {"dim": 4, "min_count": 1},
            "elmo": {"where": "none"},
            "training": {"max_epochs": 4, "learning_rate": 0.05, "min_epoch_steps": 10},
        }
    )
    parts = Parts(train=(tmp_path / "train",), dev=(tmp_path / "dev",))
    report = fit_task(settings, parts, tmp_path / "task")
    assert report.scores["dev"] == {"accuracy": 100.0}
    model = load_task_model(tmp_path / "task")
    found = [model.task.to_json(*pair) for pair in model.predict(["17", Number("30")])]
    assert found == [{"number": "17", "is_odd": True}, {"number": "30", "is_odd": False}]
    assert list(model.read(tmp_path / "dev")) == list(model.task.read(tmp_path / "dev"))


def test_defaults_follow_from_the_sentences_and_labels(tmp_path):
    task = ParityTask(ParitySettings())
    (tmp_path / "numbers").write_text("12\n3")
    assert list(task.read_training(tmp_path / "numbers")) == [Number("12"), Number("3")]
    assert task.count_tokens(Number("120")) == 3
    assert task.locate(Number("120")) == "the sentence '1 2 0'"
    assert task.find_labels([Number("1")]) == ()
    assert task.score_constant([Number("1")]) == 0.0
    task.list_labels = lambda example: ["odd", "short"] if example == Number("1") else ["even"]
    assert task.find_labels([Number("1"), Number("20")]) == ("even", "odd", "short")


def test_a_task_without_a_required_method_cannot_be_made():
    class Unfinished(Task):
        name = "unfinished"

    required = "build.* find_sentences.* parse.* prepare.* read.* score.* to_json"
    with pytest.raises(TypeError, match=f"abstract methods {required}"):
        Unfinished(ParitySettings())
