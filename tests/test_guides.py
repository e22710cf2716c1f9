"""The commands of the guides run as they are written."""

import re
import shlex
from pathlib import Path

import pytest

GUIDE = (Path(__file__).parents[1] / "docs" / "guides" / "pretrain.md").read_text()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with text where the guide has it."""
    (tmp_path / "texts").mkdir()
    for part in range(3):
        documents = [
            f"The city number {number} is the capital of France .\nIt is a city of part {part} .\n"
            for number in range(4)
        ]
        (tmp_path / "texts" / f"part{part}.txt").write_text("\n".join(documents))
    (tmp_path / "domain.txt").write_text("\n".join(["We parse .\nThe parser is new .\n"] * 60))
    (tmp_path / "chinese.txt").write_text("中国 经济 的 发展\n我们 希望 中国 的 发展\n" * 60)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_the_commands_of_the_guide_run(folder, elmore_command):
    commands = re.findall(r"^\$ elmore (.*)$", GUIDE, flags=re.MULTILINE)
    assert len(commands) >= 12
    for command in commands:
        result = elmore_command(*shlex.split(command))
        assert result.status == 0, f"{command}: {result.err}"
    assert (folder / "run" / "curve.png").stat().st_size > 1000
    assert (folder / "zh-run" / "model" / "softmax.safetensors").exists()
