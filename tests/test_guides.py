"""The commands and programs of the pages run as they are written."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import elmore
from elmore.weights import loading
from elmore.weights.bilm_tf import write_bilm_tf
from tests import pages, tiny

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with what the pages ask for."""
    monkeypatch.chdir(tmp_path)
    pages.write_sample_files(tmp_path)
    return tmp_path


@pytest.fixture
def _shipped_default(_small_default, monkeypatch):
    shipped = Path(elmore.__file__).parent / "models" / "english"
    monkeypatch.setattr(loading, "DEFAULT_MODEL", shipped)


@pytest.mark.usefixtures("_shipped_default")
def test_the_first_five_minutes(folder, elmore_command):
    pages.run_page("start/install.md", elmore_command)
    pages.run_page("start/first-vectors.md", elmore_command)


@pytest.mark.usefixtures("_shipped_default")
def test_embed_text(folder, elmore_command):
    (folder / "book.txt").write_text("It was late.\nThe bank was closed.\n")
    tiny.model().save_pretrained(folder / "run" / "model")
    sentences = [f"Number {number} was late.\n" for number in range(50)]
    (folder / "texts" / "some.txt").write_text("".join(sentences))
    pages.run_page("guides/embed.md", elmore_command)
    assert elmore.load("run/model").sentence_vectors("It was.", pool="similarity").any()


@pytest.mark.usefixtures("_shipped_default")
def test_embed_many_files(folder, elmore_command):
    for part in range(3):
        text = f"It was late in town {part} .\n\nThe bank was closed .\n"
        (folder / "texts" / f"part{part}.txt").write_text(text * 4)
    for name in ("more.txt", "book.txt", "sample.txt"):
        (folder / name).write_text("It was late.\nThe bank was closed.\n" * 20)
    (folder / "list.txt").write_text("book.txt\n")
    pages.run_page("guides/many-files.md", elmore_command)


def test_use_a_published_model(folder, elmore_command):
    pages.run_page("guides/published-models.md", elmore_command)
    loaded, converted = elmore.load("elmo/elmo_weights.hdf5"), elmore.load("model")
    assert (loaded.embed("The bank.") == converted.embed("The bank.")).all()


def test_train_your_own(folder, elmore_command):
    for part in range(3):
        documents = [
            f"The city number {number} is the capital of France .\nIt is a city of part {part} .\n"
            for number in range(4)
        ]
        (folder / "texts" / f"part{part}.txt").write_text("\n".join(documents))
    (folder / "domain.txt").write_text("\n".join(["We parse .\nThe parser is new .\n"] * 60))
    (folder / "chinese.txt").write_text("中国 经济 的 发展\n我们 希望 中国 的 发展\n" * 60)
    (folder / "book.txt").write_text("\n".join(["It was late.\nThe bank was closed.\n"] * 20))
    assert len(pages.find_commands((pages.DOCS / "guides" / "pretrain.md").read_text())) >= 12
    pages.run_page("guides/pretrain.md", elmore_command)
    assert (folder / "run" / "curve.png").stat().st_size > 1000
    assert (folder / "zh-run" / "model" / "softmax.safetensors").exists()


def test_proteins(folder, elmore_command):
    (folder / "seqvec").mkdir()
    write_bilm_tf(tiny.model(), folder / "seqvec" / "weights.hdf5")
    text = (pages.DOCS / "guides" / "proteins.md").read_text()
    (program,) = re.findall(r"^\$ python (.*)$", text, flags=re.MULTILINE)
    script, *arguments = shlex.split(program)
    assert "2000" in arguments
    subprocess.run([sys.executable, pages.DOCS.parent / script, *arguments], check=True)
    whole = (folder / "proteins.fasta").read_text()
    # Ten records in place of 2,000; the page shows the first and the last.
    records = whole.split(">")
    (folder / "proteins.fasta").write_text(">".join([*records[:10], records[-1]]))
    pages.run_page("guides/proteins.md", elmore_command)


def test_tasks(folder, elmore_command, monkeypatch):
    pages.shorten_epochs(monkeypatch)
    pages.run_page("guides/tasks.md", elmore_command)


@pytest.mark.usefixtures("_shipped_default")
def test_explore_the_uses_of_words(folder, elmore_command):
    pages.run_page("guides/explore.md", elmore_command)


def test_prepared_corpora(folder, elmore_command):
    (folder / "book.txt").write_text("\n".join(["It was late.\nThe bank was closed.\n"] * 20))
    pages.run_page("reference/corpora.md", elmore_command)


def test_vector_files(folder, elmore_command):
    for suffix in ("h5", "parquet", "npz"):
        assert elmore_command("embed", "sentences.txt", "--out", f"out.{suffix}").status == 0
    lines = ["embed", "reviews.txt", "--form", "lines", "--out", "reviews.parquet"]
    assert elmore_command(*lines).status == 0
    (folder / "labels.csv").write_text("line,label\n1,good\n2,bad\n")
    pages.run_page("reference/vector-files.md", elmore_command)
