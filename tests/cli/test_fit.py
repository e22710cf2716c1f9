"""`elmore fit`: results on standard output, the rest on standard error, mistakes in a sentence."""

import os
import re
import signal
from unittest.mock import Mock

import pytest

from elmore.tasks.fit.elmo import ElmoChoice
from tests.cli.small_tasks import SMALL, assert_refused
from tests.tasks.fit.made_up import Place

NOTHING = ("words.dim", "characters.num_filters")


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("ELMORE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return Place(tmp_path)


def test_scores_go_to_standard_output_and_epochs_to_standard_error(elmore_command, place):
    result = elmore_command("fit", "pos", "--data", "data", "--model", "model", *SMALL)
    assert result.status == 0
    lines = result.out.splitlines()
    assert lines[0].startswith("tags: tags, best epoch ")
    assert lines[1].startswith("  dev (8 examples): accuracy ")
    assert lines[2].startswith("  test (5 examples): accuracy ")
    assert re.fullmatch(
        r"  layer weights at the input: 0\.3\d\d, 0\.3\d\d, 0\.3\d\d \(scale \d\.\d{3}\)", lines[3]
    )
    shown = [line.split(":")[0].split(",")[0] for line in result.err.splitlines()]
    assert shown == ["train", "8 training labels", "embedding", "epoch 1", "epoch 2"]
    assert (place.folder / "tags" / "settings.json").is_file()


def test_json_stands_alone(elmore_command, place):
    command = ["fit", "tags", "--data", "data", "--without-elmo", "-o", "out/it", "--json", *SMALL]
    result = elmore_command(*command)
    assert result.json["folder"] == "out/it"
    assert result.json["layer_shares"] == {}
    assert set(result.json["scores"]) == {"dev", "test"}
    again = elmore_command(*command)
    assert again.json == result.json
    assert again.err == ""


def test_files_may_be_named_one_by_one(elmore_command, place):
    files = ["--train", "data/train.txt", "--dev", "data/dev.txt"]
    result = elmore_command("fit", "tags", *files, "--without-elmo", "--json", *SMALL)
    assert result.json["num_examples"] == {"train": 20, "dev": 8}


def test_one_example_is_singular(elmore_command, place):
    (place.folder / "one.txt").write_text("abba\tA1\n")
    files = ["--data", "data", "--test", "one.txt"]
    result = elmore_command("fit", "tags", *files, "--without-elmo", *SMALL)
    assert "  test (1 example): accuracy " in result.out


def test_a_signal_stops_it_with_its_number(elmore_command, place, monkeypatch):
    display = "elmore.cli.fit_display.FitDisplay.on_step"
    with monkeypatch.context() as patch:
        patch.setattr(display, lambda *_, **__: os.kill(os.getpid(), signal.SIGTERM))
        result = elmore_command("fit", "tags", "--data", "data", "--without-elmo", *SMALL)
    assert result.status == 128 + signal.SIGTERM
    message = "elmore: stopped after step 1; rerun the same command to resume"
    assert result.err.splitlines()[-1] == message
    result = elmore_command("fit", "tags", "--data", "data", "--without-elmo", *SMALL)
    assert result.status == 0


def test_an_interrupt_before_the_first_step_is_reported(elmore_command, place, monkeypatch):
    display = "elmore.cli.fit_display.FitDisplay.on_stage"
    with monkeypatch.context() as patch:
        # Raised by hand: in the background of a shell, a process does not hear of SIGINT.
        patch.setattr(display, Mock(side_effect=KeyboardInterrupt))
        result = elmore_command("fit", "tags", "--data", "data", "--without-elmo", *SMALL)
    assert result.status == 130
    assert result.err == "elmore: stopped; rerun the same command to resume\n"
    assert not (place.folder / "tags").exists()


@pytest.mark.slow
def test_mistakes_are_one_sentence_and_nothing_is_written(elmore_command, place):
    (place.folder / "broken").mkdir()
    for part in ("train", "dev"):
        (place.folder / "broken" / f"{part}.txt").write_text("a\tA\n\n")
    (place.folder / "broken" / "dev.txt").write_text("a\tA\nb\n")
    (place.folder / "hollow").mkdir()
    (place.folder / "hollow" / "train.txt").write_text("a\tA\n\n")
    (place.folder / "hollow" / "dev.txt").touch()
    before = sorted(path.name for path in place.folder.iterdir())
    fit = ["fit", "tags", "-o", "out/deep", *SMALL]
    data = ["--data", "data"]
    for arguments, message in (
        (["fit", "parsing", *data], "unknown task 'parsing'; choose one of: entities"),
        (fit, "data is missing; give a folder (data), or both train and dev"),
        ([*fit, "--data", "nowhere"], "nowhere is not a folder"),
        ([*fit, "--data", "model"], "has no file for train"),
        ([*fit, "--data", "broken"], "dev.txt, line 2"),
        ([*fit, "--data", "hollow"], "dev.txt has no tagged sentence"),
        ([*fit, *data, "--set", "training.epochs=3"], "unknown setting 'epochs' in 'training'"),
        ([*fit, *data, "--set", "nonsense"], "not of the form section.setting=value"),
        ([*fit, *data, "--model", "./nowhere"], "there is no model at './nowhere'"),
        ([*fit, *data, "--words", "nowhere.txt"], "nowhere.txt"),
        ([*fit, *data, "--settings", "nowhere.toml"], "cannot read nowhere.toml"),
        ([*fit, *data, "--without-elmo", "--model", "model"], "--without-elmo contradicts --model"),
        ([*fit, *data, "--device", "abacus"], "cannot compute on device 'abacus'"),
        ([*fit, *data, "-o", "data"], "contains other files"),
        (
            [*fit, *data, "--without-elmo", *(f"--set={zero}=0" for zero in NOTHING)],
            "the network has no input",
        ),
    ):
        assert_refused(elmore_command(*arguments), message)
        assert sorted(path.name for path in place.folder.iterdir()) == before, arguments


def test_the_old_name_of_settings_works_with_a_note(elmore_command, place):
    command = ["fit", "tags", "--data", "data", "-o", "out"]
    result = elmore_command(*command, "--config", "nowhere.toml")
    assert result.status == 2
    note, error = result.err.splitlines()
    assert note == "note: --config is now called --settings"
    assert error.startswith("elmore: cannot read nowhere.toml")


def write_typo(place):
    """Write data in which one of many tags is mistyped."""
    folder = place.folder / "typo"
    folder.mkdir()
    sentences = "abba\tNOUN\nbad\tVERB\n\n" * 60
    (folder / "train.txt").write_text(f"{sentences}cab\tNUON\n")
    (folder / "dev.txt").write_text(sentences)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["fit", "compare"])
def test_data_that_looks_wrong_is_shown_and_refused_unless_accepted(elmore_command, place, verb):
    write_typo(place)
    before = sorted(path.name for path in place.folder.iterdir())
    command = [verb, "tags", "--data", "typo", "--model", "model", "-o", "out", *SMALL]
    if verb == "compare":
        command += ["--seeds", "1"]
    result = elmore_command(*command)
    assert (result.status, result.out) == (2, "")
    sizes, labels, error = result.err.splitlines()
    assert sizes == "train: 61 examples, 121 tokens; dev: 60 examples, 120 tokens"
    assert labels == "3 training labels: NOUN 60, VERB 60, NUON 1"
    assert error.startswith(
        "elmore: the data looks wrong: the label 'NUON' occurs 1 time in training, and 'NOUN' 60 "
        "times, so it is probably a typo (first in typo/train.txt, the sentence from line 181); "
    )
    assert "--accept" in error
    assert sorted(path.name for path in place.folder.iterdir()) == before
    accepted = elmore_command(*command, "--accept")
    assert accepted.status == 0
    assert "accepted: the label 'NUON' occurs 1 time" in accepted.err


@pytest.mark.slow
def test_other_settings_in_the_same_folder_are_refused_until_restarted(elmore_command, place):
    command = ["fit", "tags", "--data", "data", "--without-elmo", *SMALL]
    assert elmore_command(*command).status == 0
    message = "training.seed was 1 and is now 2; use another folder, or --restart to start over"
    assert_refused(elmore_command(*command, "--set", "training.seed=2"), message)
    assert elmore_command(*command, "--set", "training.seed=2", "--restart").status == 0


@pytest.mark.slow
def test_help_says_what_each_verb_does(elmore_command):
    for verb, texts in {
        "fit": ["Train a network for a task", "--without-elmo", "elmore fit ner --data conll2003/"],
        "predict": ["Predict labels for a text with a trained task", "--score", "--form"],
        "compare": ["with and without ELMo", "--variants", "--shares", "report.html"],
    }.items():
        result = elmore_command(verb, "--help")
        assert result.status == 0
        for text in texts:
            assert text in " ".join(result.out.split())


def test_a_hub_id_is_kept_as_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert ElmoChoice(name="owner/name").source == "owner/name"
    assert ElmoChoice().source is None
    (tmp_path / "owner" / "name").mkdir(parents=True)
    assert ElmoChoice(name="owner/name").source == str(tmp_path / "owner" / "name")


def test_a_network_that_learned_nothing_is_called_so(elmore_command, place):
    for part in ("train", "dev"):
        (place.data / f"{part}.tsv").write_text("a bad cafe\tgood\n" * 6 + "a bad cafe\tbad\n" * 4)
    files = ["--train", "data/train.tsv", "--dev", "data/dev.tsv", "--without-elmo"]
    small = [change for change in SMALL if "task.column" not in change]
    result = elmore_command("fit", "texts", *files, *small)
    message = "  did not learn: always predicting the same label also scores 60.00 on dev"
    assert result.out.splitlines()[-1] == message
