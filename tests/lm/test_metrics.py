import errno
import json
import math
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from elmore.errors import DataError, MissingExtraError
from elmore.lm import metrics
from elmore.lm.metrics import HeldoutResult, MetricsLog, read_metrics


def heldout(step):
    return HeldoutResult(
        step=step,
        tokens=10 * step,
        seconds=float(step),
        forward_perplexity=100.0 / step,
        backward_perplexity=110.0 / step,
        perplexity=105.0 / step,
        num_predictions=7,
    )


def run(folder, *, steps, at_step=0, tensorboard=False):
    """Take steps as a trainer does: a line each, held-out text every fifth."""
    with MetricsLog.open(folder, at_step=at_step, tensorboard=tensorboard) as log:
        for step in range(at_step + 1, steps + 1):
            log.write("train", step=step, tokens=10 * step, loss=8.0 / step)
            if step % 5 == 0:
                log.write("heldout", **asdict(heldout(step)))


def lines_of(folder):
    return (folder / "metrics.jsonl").read_text().splitlines()


@pytest.mark.parametrize("torn", [b"", b'{"kind": "train", "st', b"\x00" * 30, b'{"kind": "tr\xc3'])
def test_a_run_killed_and_resumed_leaves_the_lines_of_one_never_killed(tmp_path, torn):
    run(tmp_path / "whole", steps=12)
    killed = tmp_path / "killed"
    run(killed, steps=8)
    with (killed / "metrics.jsonl").open("ab") as file:
        file.write(torn)
    run(killed, at_step=5, steps=12)
    assert lines_of(killed) == lines_of(tmp_path / "whole")
    assert len(lines_of(killed)) == 12 + 2
    assert {path.name for path in killed.iterdir()} == {"metrics.jsonl"}


def test_what_was_measured_at_the_checkpoint_itself_is_not_written_twice(tmp_path):
    run(tmp_path, steps=5)
    before = lines_of(tmp_path)
    with MetricsLog.open(tmp_path, at_step=5, tensorboard=False) as log:
        log.write("heldout", **asdict(heldout(5)))
        log.write("end", step=5, reason="epochs")
        log.write("end", step=5, reason="epochs")
    assert lines_of(tmp_path)[:-1] == before
    assert json.loads(lines_of(tmp_path)[-1])["kind"] == "end"


def test_a_resumed_run_has_not_ended(tmp_path):
    run(tmp_path, steps=5)
    with MetricsLog.open(tmp_path, at_step=5, tensorboard=False) as log:
        log.write("end", step=5, reason="time")
    run(tmp_path, at_step=5, steps=7)
    assert [line["kind"] for line in read_metrics(tmp_path / "metrics.jsonl")].count("end") == 0
    assert read_metrics(tmp_path / "metrics.jsonl")[-1]["step"] == 7


def test_a_line_can_be_read_as_soon_as_it_is_written(tmp_path):
    log = MetricsLog.open(tmp_path / "new" / "run", at_step=0, tensorboard=False)
    log.write("train", step=1, loss=np.float32(0.5), tokens=np.int64(3))
    assert lines_of(tmp_path / "new" / "run") == [
        '{"kind": "train", "step": 1, "loss": 0.5, "tokens": 3}'
    ]
    log.close()


def test_what_is_not_a_number_is_null(tmp_path):
    with MetricsLog.open(tmp_path, at_step=0, tensorboard=False) as log:
        log.write("train", step=1, loss=math.nan, gradient_norm=math.inf, learning_rate=0.1)

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    (text,) = lines_of(tmp_path)
    assert json.loads(text, parse_constant=refuse) == {
        "kind": "train", "step": 1, "loss": None, "gradient_norm": None, "learning_rate": 0.1
    }  # fmt: skip


def test_half_a_last_line_is_passed_over_and_a_whole_one_without_its_end_is_not(tmp_path):
    path = tmp_path / "metrics.jsonl"
    first, second = b'{"kind": "train", "step": 1}', b'{"kind": "train", "step": 2}'
    path.write_bytes(first + b"\n" + second[:-1])
    assert [line["step"] for line in read_metrics(path)] == [1]
    path.write_bytes(first + b"\n" + second)
    assert [line["step"] for line in read_metrics(path)] == [1, 2]
    run(tmp_path, at_step=2, steps=3)
    assert [line["step"] for line in read_metrics(path)] == [1, 2, 3]


@pytest.mark.parametrize(
    "damaged",
    ["{", "[]", "3", "", '{"kind": "train"}', '{"kind": 1, "step": 2}', "[" * 100_000,
     '{"kind": "train", "step": true}', '{"kind": "train", "step": ' + "9" * 5000 + "}"],
)  # fmt: skip
def test_a_damaged_line_in_the_middle_is_named(tmp_path, damaged):
    path = tmp_path / "metrics.jsonl"
    text = f'{{"kind": "train", "step": 1}}\n{damaged}\n{{"kind": "train", "step": 2}}\n'
    path.write_text(text)
    with pytest.raises(DataError, match=r"metrics\.jsonl, line 2: .*delete the line"):
        read_metrics(path)
    with pytest.raises(DataError, match=r"line 2: "):
        MetricsLog.open(tmp_path, at_step=1, tensorboard=False)
    assert path.read_text() == text


def test_metrics_that_are_not_there_are_named(tmp_path):
    with pytest.raises(DataError, match=r"no file .*metrics\.jsonl"):
        read_metrics(tmp_path / "metrics.jsonl")
    with pytest.raises(DataError, match="cannot read"):
        read_metrics(tmp_path)


class FullDisk:
    """Takes so many bytes, and then no more."""

    def __init__(self, file, *, space):
        self.file = file
        self.space = space

    def write(self, text):
        taken = text[: self.space]
        if not taken:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.space -= len(taken)
        return self.file.write(taken)

    def __getattr__(self, name):
        return getattr(self.file, name)


def test_a_full_disk_is_a_sentence_and_leaves_no_half_line(tmp_path):
    log = MetricsLog.open(tmp_path, at_step=0, tensorboard=False)
    log.write("train", step=1)
    log._file = FullDisk(log._file, space=10)
    with pytest.raises(DataError, match=r"cannot write .*metrics\.jsonl: the disk .* is full"):
        log.write("train", step=2)
    log._file.space = 1000
    log.write("train", step=3)
    log.close()
    assert [json.loads(line)["step"] for line in lines_of(tmp_path)] == [1, 3]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="has no device that is always full")
def test_a_disk_full_from_the_start_is_a_sentence(tmp_path):
    (tmp_path / "metrics.jsonl").symlink_to("/dev/full")
    # Reading it gives zeros without end, so nothing is to be cut back here.
    with metrics.MetricsLog(
        tmp_path / "metrics.jsonl", step=0, kinds=set()
    ) as log, pytest.raises(DataError, match="full; free some space"):  # fmt: skip
        log.write("train", step=1)


def test_without_its_extra_tensorboard_is_refused_before_anything_is_cut(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    run(tmp_path, steps=8)
    with pytest.raises(MissingExtraError, match=r"pip install 'elmore\[tensorboard\]'"):
        MetricsLog.open(tmp_path, at_step=5, tensorboard=True)
    assert len(lines_of(tmp_path)) == 9


@pytest.mark.slow
def test_reading_metrics_needs_neither_torch_nor_numpy():
    program = "import sys, elmore.lm.metrics; print({'torch', 'numpy'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert result.stdout.strip() == b"set()"


def scalars(folder, name):
    from tensorboard.backend.event_processing.event_accumulator import (  # noqa: PLC0415
        EventAccumulator,
    )

    events = EventAccumulator(str(folder / "tensorboard")).Reload()
    return [(event.step, pytest.approx(event.value)) for event in events.Scalars(name)]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensorboard_shows_the_same_numbers_after_a_kill(tmp_path):
    pytest.importorskip("tensorboard", reason="needs elmore[tensorboard]")
    run(tmp_path, steps=8, tensorboard=True)
    run(tmp_path, at_step=5, steps=12, tensorboard=True)
    assert scalars(tmp_path, "train/loss") == [(step, 8 / step) for step in range(1, 13)]
    assert scalars(tmp_path, "heldout/perplexity_forward") == [(5, 20.0), (10, 10.0)]
    assert scalars(tmp_path, "heldout/perplexity_backward") == [(5, 22.0), (10, 11.0)]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensorboard_asked_for_later_has_the_steps_before(tmp_path):
    pytest.importorskip("tensorboard", reason="needs elmore[tensorboard]")
    run(tmp_path, steps=8)
    run(tmp_path, at_step=5, steps=7, tensorboard=True)
    assert [step for step, _ in scalars(tmp_path, "train/loss")] == list(range(1, 8))
