"""What docs/guides/pretrain.md says of lost machines; run by `make test-cluster`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.clusters import needs_namespaces
from tests.corpus.corpora import make_documents, prepare, write_tokenized
from tests.lm.processes import CONFIG, ROOT
from tests.lm.runs import assert_same_bits, last_tensors

pytestmark = [
    pytest.mark.slow,
    needs_namespaces,
    pytest.mark.skipif(
        "ELMORE_CLUSTER_TESTS" not in os.environ, reason="takes minutes: run make test-cluster"
    ),
]

# The statuses of both machines (None: it was killed), and how soon they ended after the kill.
OUTCOMES = {
    "worker": ([0, 0], 120),
    "machine, replaced": ([0, 0], 120),
    "machine": ([1, None], 90),
    "rendezvous": ([None, 1], 60),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("machines")
    prepare(write_tokenized(make_documents(40)), folder / "corpus", heldout=0.1)
    (folder / "tiny.toml").write_text(CONFIG.replace("max_steps = 12", "max_steps = 300"))
    assert play("undisturbed", folder)["statuses"] == [0, 0]
    return folder


def play(scenario: str, folder: Path) -> dict:
    done = subprocess.run(
        [
            *("unshare", "-rnm", sys.executable, "-m", "tests.lm.two_machines", scenario),
            *(folder / "tiny.toml", folder / "corpus", folder / scenario),
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("scenario", OUTCOMES)
def test_a_loss_has_the_stated_outcome_in_time_and_the_same_weights(place, scenario):
    facts = play(scenario, place)
    statuses, most_seconds = OUTCOMES[scenario]
    assert facts["statuses"] == statuses
    assert facts["seconds"] <= most_seconds
    assert facts["step"] < 300
    assert facts.get("resumed", [0, 0]) == [0, 0]
    assert_same_bits(last_tensors(place / scenario), last_tensors(place / "undisturbed"))
    model = "model/model.safetensors"
    assert (place / scenario / model).read_bytes() == (place / "undisturbed" / model).read_bytes()
