"""A device that cannot be used is refused in one sentence, the same for every command."""

import pytest
import torch

import elmore
from elmore.errors import ConfigError
from elmore.jobs.device import read_device
from tests.cli.small_tasks import SMALL, assert_refused
from tests.corpus.corpora import make_documents, prepare, write_tokenized
from tests.tasks.fit.made_up import Place

COMMANDS = {
    "embed": ["embed", "text.txt", "--out", "out.h5"],
    "neighbors": ["neighbors", "a", "text.txt"],
    "probe": [
        "probe",
        "tags",
        *(f"data/{part}.txt" for part in ("train", "dev", "test")),
        "--column=2",
    ],
    "pretrain": ["pretrain", "tiny", "--corpus", "corpus", "--out", "out"],
    "finetune": ["finetune", "text.txt", "--out", "out"],
    "evaluate": ["evaluate", "text.txt"],
    "score": ["score", "text.txt"],
    "fit": ["fit", "tags", "--data", "data", "--without-elmo", "--out", "out", *SMALL],
    "compare": ["compare", "tags", "--data", "data", "--out", "out", *SMALL],
    "predict": ["predict", "task", "text.txt"],
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Something for every command to read."""
    place = Place(tmp_path_factory.mktemp("device"))
    place.fit("task", "training.max_epochs=1")
    text = write_tokenized(make_documents())
    (place.folder / "text.txt").write_text(text)
    prepare(text, place.folder / "corpus")
    return place.folder


@pytest.mark.slow
@pytest.mark.parametrize("device", ["meta", "abacus", "cuda", "cuda:7"])
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_refuses_a_device_in_the_same_words(
    elmore_command, made, monkeypatch, command, device
):
    monkeypatch.chdir(made)
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: False)
    before = sorted(made.rglob("*"))
    reason = {
        "meta": "it cannot hold values",
        "abacus": "torch does not know this device",
    }.get(device, "this torch has no CUDA support")
    result = elmore_command(*COMMANDS[command], "--device", device)
    assert_refused(result, f"cannot compute on device {device!r}: {reason}; use cpu\n")
    assert sorted(made.rglob("*")) == before


def test_python_hears_the_same():
    for use in (read_device, lambda device: elmore.load(device=device)):
        for device in ("meta", torch.device("meta"), "abacus", "hpu"):
            with pytest.raises(ConfigError, match=f"cannot compute on device '{device}': "):
                use(device)
    assert read_device("cpu") == torch.device("cpu")


def test_what_is_wrong_with_a_gpu_is_reported(monkeypatch):
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError, match="torch finds no usable GPU; use cpu"):
        read_device("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(ConfigError, match="'cuda:7': torch finds 2 GPUs here, numbered from 0"):
        read_device("cuda:7")


def test_a_process_of_torchrun_takes_a_gpu_of_its_own(monkeypatch):
    chosen = []
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 3)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    assert read_device("cuda") == torch.device("cuda:3"), "the caller's own choice"
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert read_device("cuda") == torch.device("cuda:1")
    assert read_device("cuda:2") == torch.device("cuda:2")
    assert chosen == [torch.device("cuda:1")]
