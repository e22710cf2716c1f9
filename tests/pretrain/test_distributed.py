"""Processes that train together give what one gives, and survive the loss of one of them."""

import os
import signal
from pathlib import Path

import pytest
import torch

from elmore.pretrain import run as run_module
from elmore.pretrain.gradient_sum import divide
from elmore.pretrain.perplexity import measure_losses
from tests.pretrain.processes import Place, command, find_port, finish, needs_fork, wait_until
from tests.pretrain.runs import last_tensors

pytestmark = needs_fork

SIZES = (1, 2, 4)
CASES = {
    "sampled": (),
    "full": (
        "softmax.kind=full",
        "optimizer.name=adamw",
        "optimizer.learning_rate=0.01",
        "optimizer.weight_decay=0.1",
        "training.accumulation=2",
        "model.words.embedding_dim=3",
    ),
}
# Sums in another order differ in the last bits, and what is learned from them a little more.
MOST_OFF = {"loss": 3e-6, "gradient_norm": 3e-5, "perplexity": 3e-6}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return Place.make(tmp_path_factory.mktemp("together"))


@pytest.fixture(scope="module")
def runs(place):
    """The names of undisturbed runs by case and number of processes."""
    names = {(case, size): f"{case}{size}" for case in CASES for size in SIZES}
    for (case, size), name in names.items():
        place.complete(name, *CASES[case], size=size)
    return names
