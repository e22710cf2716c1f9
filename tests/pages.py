"""Run what a page shows: its commands and its Python, in a folder with small files to work on."""

import contextlib
import gzip
import io
import json
import re
import shlex
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from elmore.tasks.fit.batches import shuffle_epoch
from elmore.weights.bilm_tf import write_bilm_tf
from tests import tiny
from tests.weights import peer_files

DOCS = Path(__file__).parents[1] / "docs"
CHECKPOINT = Path(__file__).parent / "weights" / "tf_checkpoint" / "fixture" / "whole"
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
OPTIONAL = ("duckdb", "pandas", "polars")
USES_OF_BANK = """He sat on the bank of the river and watched the boats.
The bank raised its interest rates again.
She opened an account at the bank last week.
Willows grew along the muddy bank of the stream.
"""


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block of a page."""

    language: str
    title: str | None
    text: str


def find_blocks(page: str) -> list[Block]:
    """Return the blocks of a page in docs/, in order."""
    found = []
    for language, options, text in BLOCK.findall((DOCS / page).read_text(encoding="utf-8")):
        title = re.search(r'title="([^"]*)"', options)
        found.append(Block(language=language, title=title and title[1], text=text))
    return found


def find_commands(text: str, *, program: str = "elmore") -> list[list[str]]:
    """Return the arguments of the `$ elmore` commands in a text, or of another program's."""
    lines = re.findall(rf"^\$ {program} (.*)$", text, flags=re.MULTILINE)
    return [shlex.split(line, comments=True) for line in lines]


def run_page(
    page: str,
    elmore_command: Any,
    *,
    others: Mapping[str, Callable[[list[str]], Any]] | None = None,
) -> None:
    """Run all commands and plain Python blocks; compare their output where the page shows it.

    `others` has the functions that run other programs than elmore.

    Python with prompts is left to pytest, which runs it as a doctest. A block that needs a program
    that elmore does not install is left out where that is missing.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    printed: str | None = None  # by a Python block
    output = ""  # of the latest commands, whose numbers depend on their text
    for block in find_blocks(page):
        if block.language == "text" and printed is not None:
            assert printed == block.text, f"{page} shows other output than {printed!r}"
        elif block.language == "text":
            missing = [label for label in find_labels(block.text) if label not in output]
            assert missing == [], f"{page} shows what the commands do not print: {missing}"
        printed = None
        if block.language == "toml" and block.title is not None:
            Path(block.title).write_text(block.text)
        if block.language == "console":
            output = ""
            for arguments in find_commands(block.text):
                result = elmore_command(*arguments)
                assert result.status == 0, f"{page}: elmore {' '.join(arguments)}: {result.err}"
                output += result.out + result.err
            for program, run in (others or {}).items():
                for arguments in find_commands(block.text, program=program):
                    run(arguments)
        elif block.language == "python" and ">>>" not in block.text and not needs_more(block):
            with contextlib.redirect_stdout(io.StringIO()) as stream:
                exec(compile(block.text, page, "exec"), names)
            printed = stream.getvalue()


def find_labels(text: str) -> list[str]:
    """Return the labels in the output of commands: heads of tables, and what precedes a number."""
    heads = [line.strip("┃ ").split("┃") for line in text.splitlines() if line.startswith("┃")]
    labels = re.findall(r"^ *([a-z][a-z ,'-]*?)(?:  |: )", text, flags=re.MULTILINE)
    return [*labels, *(head.strip() for row in heads for head in row)]


def needs_more(block: Block) -> bool:
    """Say whether a block imports one of the optional programs, and it is not installed."""
    imported = re.findall(r"^import (\w+)", block.text, flags=re.MULTILINE)
    return any(name in OPTIONAL and find_spec(name) is None for name in imported)


def write_sample_files(folder: Path) -> None:
    """Write a small file for each name that the README and the guides use."""
    config = tiny.byte_config()
    assert config.characters is not None
    published = replace(config, characters=replace(config.characters, max_chars=50))
    (folder / "elmo").mkdir()
    for path in ("lm_weights.hdf5", "elmo/elmo_weights.hdf5"):
        write_bilm_tf(tiny.model(published), folder / path)
    architecture = peer_files.make_architecture()
    weights = peer_files.make_many_langs(architecture)
    peer_files.write_many_langs_folder(folder / "many_langs_folder", architecture, *weights)
    shutil.make_archive(str(folder / "210"), "zip", folder / "elmo")
    for name in ("bilm_run", "dumped"):
        shutil.copytree(CHECKPOINT, folder / name)
    (folder / "bilm_run" / "weights.hdf5").unlink()
    (folder / "sentences.txt").write_text(USES_OF_BANK)
    (folder / "reviews.txt").write_text("Great film. Go and see it.\nIt was dull.\n")
    documents = ["The bank raised its rates .\nA river has two banks .\n"] * 8
    (folder / "texts").mkdir()
    (folder / "texts" / "a.txt.gz").write_bytes(gzip.compress("\n".join(documents).encode()))
    (folder / "abstracts.txt").write_text("\n".join(["We parse .\nThe parser is new .\n"] * 60))
    write_probe_data(folder)
    write_task_data(folder)


def shorten_epochs(monkeypatch: Any) -> None:
    """Let an epoch of a few lines be one step."""

    def shuffle_once(lengths: Any, **how: Any) -> Any:
        return shuffle_epoch(lengths, **{**how, "min_steps": 1})

    monkeypatch.setattr("elmore.tasks.fit.run.shuffle_epoch", shuffle_once)


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
