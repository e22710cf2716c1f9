import pytest

from benchmarks.job_overhead import show


def test_shares_and_speedups_follow_from_the_times(capsys: pytest.CaptureFixture[str]) -> None:
    show(
        {
            ("now", "network"): [9.5, 19.0],
            ("before", "network"): [12.0, 24.0],
            ("now", "npz"): [10.0, 20.0],
            ("before", "npz"): [15.0, 30.0],
            ("now", "h5"): [12.5, 20.0],
            ("before", "h5"): [14.0, 30.0],
        }
    )
    lines = capsys.readouterr().out.splitlines()[2:]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    assert cells[2] == ["now", "npz", "10.00", "20.00", "5%", "yes", "5%", "1.50", "yes"]
    assert cells[3] == ["before", "npz", "15.00", "30.00", "20%", "", "20%", "", ""]
    assert cells[4][4:] == ["24%", "no", "5%", "1.12", "no"]
