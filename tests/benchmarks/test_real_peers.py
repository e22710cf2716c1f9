import os
import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks.busy_core import BusyCore
from benchmarks.real_peers import ALLENNLP, Row, check_equal, is_compared, print_rows


def row(method: str, seconds: float, *, case: str = "sentence, small") -> Row:
    return Row(case=case, method=method, num_tokens=25, seconds=seconds, cpu_seconds=seconds)


def table(rows: list[Row], capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    print_rows(rows)
    lines = capsys.readouterr().out.splitlines()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if "|" in line]
    return cells[2:]


def test_ratio_is_the_time_of_the_other_over_ours(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [row(ALLENNLP, 0.5), row("elmore f32, cold", 0.1)]
    _, ours = table(rows, capsys)
    assert ours[6:] == [ALLENNLP, "5.00", "5.00", "4.00", "yes"]


def test_missed_target_says_no(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [row(ALLENNLP, 0.39), row("elmore f32, cold", 0.1)]
    assert table(rows, capsys)[1][-2:] == ["4.00", "no"]


def test_busy_core_is_compared_with_the_same_method_when_idle() -> None:
    case = "busy core, English"
    busy = row("elmore int8, one core busy", 1.0, case=case)
    assert is_compared(busy, row("elmore int8, idle", 1.0, case=case))
    assert not is_compared(busy, row("elmore f32, idle", 1.0, case=case))
    assert not is_compared(busy, busy)


def test_different_vectors_stop_the_run() -> None:
    ours = [np.zeros((2, 4), np.float32)]
    check_equal("small", ours, [ours[0] + 9e-6])
    for wrong in (2e-5, np.nan):
        with pytest.raises(SystemExit, match="at most 1e-05"):
            check_equal("small", ours, [ours[0] + wrong])


@pytest.mark.slow
def test_busy_core_computes_only_when_resumed() -> None:
    def used() -> float:
        fields = Path(f"/proc/{core._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    with BusyCore() as core:
        before = used()
        time.sleep(0.2)
        assert used() - before < 0.05
        core.resume()
        deadline = time.monotonic() + 20
        while used() - before < 0.1:
            assert time.monotonic() < deadline
        core.pause()
    assert core._process.returncode is not None
