"""`--out` of every command: nothing is created behind a broken link, or somewhere deep down."""

from pathlib import Path

import pytest

from elmore.cli import options
from tests.cli.small_tasks import SMALL, assert_refused
from tests.cli.test_plot import write_run
from tests.corpus.corpora import make_documents, prepare, write_tokenized
from tests.tasks.fit.made_up import Place

TASK = ["tags", "--data", "data", *SMALL]
# Each but for its --out, and how a file must end.
FOLDERS = {
    "convert": ["convert", "model"],
    "prepare": ["prepare", "text.txt", "--tokenized", "--processes", "1"],
    "pretrain": ["pretrain", "tiny", "--corpus", "corpus"],
    "finetune": ["finetune", "text.txt", "--tokenized"],
    "fit": ["fit", *TASK, "--without-elmo"],
    "compare": ["compare", *TASK, "--model", "model"],
}
FILES = {
    "embed": (["embed", "text.txt", "--tokenized", "--model", "model"], ".h5"),
    "convert": (["convert", "model", "--to", "bilm-tf", "--from-zeros"], ".hdf5"),
    "predict": (["predict", "task", "text.txt"], ".jsonl"),
    "plot": (["plot", "run"], ".svg"),
    "export": (["export", "model"], ".onnx"),
    "export-words": (["export-words", "--text", "text.txt", "--model", "model"], ".vec"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Something for every command to read."""
    place = Place(tmp_path_factory.mktemp("out"))
    place.fit("task", "training.max_epochs=1")
    text = write_tokenized(make_documents())
    (place.folder / "text.txt").write_text(text)
    prepare(text, place.folder / "corpus")
    write_run(place.folder / "run")
    return place.folder


@pytest.fixture
def outs(made, monkeypatch):
    """A place for results, with links that lead nowhere."""
    monkeypatch.chdir(made)
    outs = made / "outs"
    outs.mkdir(exist_ok=True)
    for suffix in ("", *(suffix for _, suffix in FILES.values())):
        for name, target in {"broken": "missing/out", "circle": "circle"}.items():
            link = outs / f"{name}{suffix}"
            if not link.is_symlink():
                link.symlink_to(f"{target}{suffix}")
    return outs


@pytest.mark.slow
@pytest.mark.parametrize("command", FOLDERS)
@pytest.mark.parametrize("name", ["broken", "circle", "broken/deep"])
def test_no_folder_is_made_behind_a_link_to_nothing(elmore_command, outs, command, name):
    before = sorted(outs.rglob("*"))
    result = elmore_command(*FOLDERS[command], "--out", f"outs/{name}")
    assert_refused(result, f"cannot write to outs/{name[:6]}: it is a broken link")
    assert sorted(outs.rglob("*")) == before


@pytest.mark.parametrize("command", FILES)
@pytest.mark.parametrize("name", ["broken", "circle", "no/such/out", "broken/out"])
def test_no_folder_is_made_for_a_file(elmore_command, outs, command, name):
    if command == "plot":
        pytest.importorskip("matplotlib", reason="needs elmore[plot]")
    arguments, suffix = FILES[command]
    before = sorted(outs.rglob("*"))
    assert_refused(elmore_command(*arguments, "--out", f"outs/{name}{suffix}"), "cannot write")
    assert sorted(outs.rglob("*")) == before


@pytest.mark.parametrize(
    "arguments", [*FOLDERS.values(), *(command for command, _ in FILES.values())]
)
def test_no_more_than_one_folder_is_made_above(elmore_command, outs, arguments):
    result = elmore_command(*arguments, "--out", "outs/no/such/out")
    assert_refused(result, "cannot write outs/no/such/out: there is no folder outs/no; create it")
    assert not Path("outs/no").exists()


def test_no_command_has_an_unchecked_out():
    for path in (Path(options.__file__).parent).glob("*.py"):
        is_home = path.name == "options.py"  # of `make_out_option`, which all commands use
        assert path.read_text().count('"--out"') == is_home, path
