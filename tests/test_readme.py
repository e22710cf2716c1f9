"""The README tells the truth: its commands run, and print what it shows."""

import gzip
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from elmore.tasks.fit.batches import shuffle_epoch
from elmore.weights.bilm_tf import write_bilm_tf
from tests import tiny
from tests.weights import peer_files

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_demo_prints_what_the_readme_shows():
    result = subprocess.run(
        [sys.executable, "examples/demo.py"],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=True,
    )
    printed = "\n".join(line.rstrip() for line in result.stdout.splitlines())
    shown = re.search(r"shows:\n\n```text\n(.*?)\n```", README, flags=re.DOTALL)
    assert shown is not None
    assert shown[1] == printed


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with what the README's commands ask for."""
    write_bilm_tf(tiny.model(), tmp_path / "lm_weights.hdf5")
    architecture = peer_files.make_architecture()
    weights = peer_files.make_many_langs(architecture)
    peer_files.write_many_langs_folder(tmp_path / "many_langs_folder", architecture, *weights)
    (tmp_path / "sentences.txt").write_text("the bank of a river\na bank\n")
    documents = ["The bank raised its rates .\nA river has two banks .\n"] * 8
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt.gz").write_bytes(gzip.compress("\n".join(documents).encode()))
    (tmp_path / "abstracts.txt").write_text("\n".join(["We parse .\nThe parser is new .\n"] * 60))
    write_probe_data(tmp_path)
    write_task_data(tmp_path)
    # An epoch of these few lines is one step.
    monkeypatch.setattr("elmore.tasks.fit.run.shuffle_epoch", shuffle_once)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shuffle_once(lengths, **how):
    return shuffle_epoch(lengths, **{**how, "min_steps": 1})


def write_probe_data(folder):
    lines = ["1\tThe\t_\tDET", "2\tbank\t_\tNOUN", "3\tfell\t_\tVERB"]
    sentence = "".join(line + "\t_" * 6 + "\n" for line in lines) + "\n"
    for part in ("train", "dev", "test"):
        (folder / f"{part}.conllu").write_text(sentence * 3)
    sense = {"i": 1, "lemma": "bank", "pos": "NOUN", "key": "bank%1:17:01::"}
    entry = {"tokens": ["The", "bank", "fell"], "senses": [sense]}
    (folder / "semcor.jsonl").write_text(json.dumps(entry) + "\n")
    (folder / "senseval2.data.xml").write_text(
        '<corpus><text id="d"><sentence id="d.s"><wf lemma="a" pos="DET">A</wf>'
        '<instance id="d.s.t" lemma="bank" pos="NOUN">bank</instance></sentence></text></corpus>'
    )
    (folder / "senseval2.gold.key.txt").write_text("d.s.t bank%1:17:01::\n")


def write_task_data(folder):
    (folder / "conll2003").mkdir()
    for part in ("train", "testa", "testb"):
        sentence = "Ann NNP I-NP I-PER\nlives VBZ I-VP O\nin IN I-PP O\nRome NNP I-NP I-LOC\n\n"
        (folder / "conll2003" / f"eng.{part}").write_text(sentence * 4)
    (folder / "glove.6B.50d.txt").write_text("".join(f"{w} {'0.5 ' * 50}\n" for w in ("in", "a")))
    (folder / "letter.txt").write_text("Ann lives in Rome .\n")
    for name in ("reviews", "dev"):
        (folder / f"{name}.tsv").write_text("a good book\tgood\na bad one\tbad\n" * 30)


def test_the_commands_of_the_readme_run(folder, elmore_command):
    commands = re.findall(r"^\$ elmore (.*)$", README, flags=re.MULTILINE)
    assert len(commands) >= 6
    for command in commands:
        result = elmore_command(*shlex.split(command, comments=True))
        assert result.status == 0, result.err


def test_every_link_leads_somewhere():
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", path.read_text()):
            assert "://" in target or (path.parent / target).exists(), f"{path.name}: {target}"
