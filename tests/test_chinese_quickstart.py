"""The Chinese quick start works as written: commands and Python run, quoted messages exist."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests import pages
from tests.weights import peer_files

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
PAGE = (pages.DOCS / "zh" / "quickstart.md").read_text(encoding="utf-8")

RAW = "他在银行工作，我们在北京见面。中国经济的发展很快！\n我在银行门口等他。\n\n"
TAGGED = (
    "中国/ns  经济/n  的/u  发展/vn  很/d  快/a  。/w\n他/r  在/p  银行/n  工作/v  。/w\n"
    "我/r  在/p  银行/n  等/v  他/r  。/w\n\n"
)
# A character, its position in its word, its tag.
ENTITIES = "我0\tO\n在0\tO\n北0\tB-GPE.NAM\n京1\tI-GPE.NAM\n。0\tO\n\n他0\tB-PER.NOM\n走0\tO\n\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with small files under the names that the page uses."""
    pytest.importorskip("rjieba", reason="needs elmore[chinese]")
    architecture = peer_files.make_architecture()
    weights = peer_files.make_many_langs(architecture)
    peer_files.write_many_langs_folder(tmp_path / "zhs.model", architecture, *weights)
    for name, text in {
        "句子.txt": RAW,
        "我的文本.txt": RAW * 60,
        "微博.txt": RAW,
        "199801.txt": TAGGED * 60,
        **{f"weibo/{part}.conll": ENTITIES * 4 for part in ("train", "dev", "test")},
        **dict.fromkeys(("训练.tsv", "验证.tsv"), "很好看\t好\n不好看\t坏\n" * 30),
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (tmp_path / "recipes").symlink_to(ROOT / "recipes")
    pages.shorten_epochs(monkeypatch)
    monkeypatch.setenv("ELMORE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_page_runs(folder, elmore_command):
    for line in re.findall(r"^\$ python (.*)$", PAGE, flags=re.MULTILINE):
        subprocess.run([sys.executable, *shlex.split(line)], check=True, capture_output=True)
    assert len(pages.find_commands(PAGE)) >= 12
    pages.run_page("zh/quickstart.md", elmore_command)


def test_commands_within_sentences_run(folder, elmore_command):
    commands = re.findall(r"`elmore (.*?)`", PAGE)
    assert commands
    for command in commands:
        result = elmore_command(*shlex.split(command), "--without-elmo")
        assert result.status == 0, f"{command}: {result.err}"


def test_messages_that_the_page_quotes_are_in_the_code():
    (quoted,) = re.findall(r"\*\*`(.*?)`\*\*", PAGE)
    start, end = re.split(r" \d+% ", quoted)
    folder = ROOT / "src" / "elmore" / "tasks" / "fit"
    code = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*plausibility.py"))
    assert start in code
    assert end in code
