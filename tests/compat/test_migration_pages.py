"""The pages for users of other libraries tell the truth: their programs and commands run."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests import pages
from tests.compat.installed import installed
from tests.compat.old_models import OldModel
from tests.weights import peer_files

ROOT = Path(__file__).parents[2]
NAMES = sorted(path.name for path in (ROOT / "docs" / "migrate").glob("*.md"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with what the pages name."""
    monkeypatch.chdir(tmp_path)
    old = OldModel(tmp_path / "model")
    for name, path in (("weights.hdf5", old.weights), ("options.json", old.options)):
        (tmp_path / name).write_bytes(Path(path).read_bytes())
    architecture = peer_files.make_architecture()
    weights = peer_files.make_many_langs(architecture)
    peer_files.write_many_langs_folder(tmp_path / "zht.model", architecture, *weights)
    (tmp_path / "vocabulary.txt").write_text("<S>\n</S>\n<UNK>\nA\nbank\n.\nThe\n")
    (tmp_path / "sentences.txt").write_text("A bank .\nThe river\n")
    (tmp_path / "tokens.txt").write_text("A\tbank\t.\n")
    (tmp_path / "sentences.conllu").write_text("1\tA" + "\t_" * 8 + "\n\n")
    (tmp_path / "program.py").write_text("from bilm import Batcher\nprint(Batcher)\n")
    (tmp_path / "texts").mkdir()
    for number in range(2):
        (tmp_path / "texts" / f"{number}.txt").write_text("A bank .\nThe bank\n\n" * 20)
    (tmp_path / "heldout.txt").write_text("A bank .\n")
    (tmp_path / "dumped").mkdir()
    pages.shorten_epochs(monkeypatch)
    pages.write_task_data(tmp_path)
    (tmp_path / "data").mkdir()
    for name, other in (("train", "train"), ("valid", "testa"), ("test", "testb")):
        (tmp_path / "conll2003" / f"eng.{other}").rename(tmp_path / "data" / f"{name}.txt")
    (tmp_path / "elmo").mkdir()
    for name, path in (("elmo_weights.hdf5", old.weights), ("elmo_options.json", old.options)):
        (tmp_path / "elmo" / name).write_bytes(Path(path).read_bytes())
    return tmp_path


def test_there_is_a_page_for_each_library():
    assert len(NAMES) == 7
    readme = (ROOT / "README.md").read_text().split("\n## ")[0]  # its first screen
    for name in NAMES:
        assert f"docs/migrate/{name}" in readme
    for word in (
        "ElmoEmbedder",
        "batch_to_ids",
        "sents2elmo",
        "get_elmo_vectors",
        "Batcher",
        "hub.Module",
        "BiLSTMCRF",
    ):
        assert word in readme


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("folder")
def test_programs_and_commands_of_a_page_run(name, elmore_command):
    with installed():
        pages.run_page(f"migrate/{name}", elmore_command)
    text = (ROOT / "docs" / "migrate" / name).read_text()
    for command in re.findall(r"^\$ python (-m elmore\.compat .*)$", text, flags=re.MULTILINE):
        result = subprocess.run(
            [sys.executable, *shlex.split(command)],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, f"{command}: {result.stderr}"
