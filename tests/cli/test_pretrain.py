"""From text to a model, its perplexity, scores and a domain, by commands alone."""

import json

import pytest

pytestmark = pytest.mark.slow

SENTENCES = [
    f"The {animal} {verb} the {other} near the {place} ."
    for animal in ("cat", "dog", "bird")
    for other in ("fish", "mouse")
    for verb in ("saw", "chased")
    for place in ("house", "river")
]
TEXT = "\n\n".join("\n".join(SENTENCES[k : k + 4]) for k in range(0, len(SENTENCES), 4)) + "\n"
CONFIG = """
[model.lstm]
num_layers = 2
cell_dim = 12
output_dim = 5

[model.characters]
embedding_dim = 3
max_chars = 9
filters = [[1, 2], [2, 3], [3, 4]]

[training]
rows = 4
window = 5
num_epochs = 2
"""


@pytest.fixture
def folder(tmp_path, elmore_command):
    """A prepared corpus and settings."""
    (tmp_path / "text.txt").write_text(TEXT)
    (tmp_path / "tiny.toml").write_text(CONFIG)
    result = elmore_command(
        "prepare", tmp_path / "text.txt", "--out", tmp_path / "corpus", "--min-count", 1
    )
    assert result.status == 0, result.err
    return tmp_path


def train(elmore_command, folder, *more):
    return elmore_command(
        "pretrain",
        folder / "tiny.toml",
        "--corpus",
        folder / "corpus",
        "--out",
        folder / "run",
        *more,
    )


def test_from_text_to_a_model_and_back_to_text(folder, elmore_command):
    result = train(elmore_command, folder)
    assert result.status == 0, result.err
    assert "perplexity" in result.out
    assert "rest state" in result.out
    model = folder / "run" / "model"

    embedded = elmore_command(
        "embed", folder / "text.txt", "--model", model, "--out", folder / "v.npz"
    )
    assert embedded.status == 0, embedded.err
    assert "untrained" not in embedded.err

    evaluated = elmore_command("evaluate", folder / "text.txt", "--model", model, "--json")
    assert 1 < evaluated.json["perplexity"] < 40

    scored = elmore_command("score", "--sentence", "The cat saw the fish .", "--model", model)
    assert scored.status == 0, scored.err
    gap = elmore_command("score", "--gap", "The ___ saw the fish .", "--model", model)
    assert gap.status == 0, gap.err

    written = elmore_command(
        "convert", model, "--to", "bilm-tf", "--from-zeros", "--out", folder / "w.hdf5"
    )
    assert written.status == 0, written.err
    assert elmore_command("info", folder / "w.hdf5").status == 0
    assert elmore_command("plot", folder / "run").status == 0


def test_the_report_is_json_when_asked(folder, elmore_command):
    report = train(elmore_command, folder, "--json").json
    assert report["step"] > 0
    assert report["heldout"]["perplexity"] > 1
    assert set(report["cold_start"]) == {"zeros", "rest", "carried", "rest_strength"}
    settings = json.loads((folder / "run" / "settings.json").read_text())
    assert settings["training"]["rows"] == 4


def test_settings_are_changed_by_name(folder, elmore_command):
    result = train(elmore_command, folder, "--set", "training.max_steps=3", "--json")
    assert result.json["step"] == 3


def test_one_step_is_singular(folder, elmore_command):
    result = train(elmore_command, folder, "--set", "training.max_steps=1")
    assert f"{folder / 'run' / 'model'}: 1 step, " in result.out
    again = train(elmore_command, folder, "--set", "training.max_steps=1")
    assert "this run is finished (1 of 1 step); its model is in" in again.err
    for shown in (result.out, result.err, again.out, again.err):
        assert "1 steps" not in shown


def test_a_domain_is_learned_by_one_command(folder, elmore_command):
    assert train(elmore_command, folder).status == 0
    domain = "\n\n".join(["The parser reads the treebank .\nThe parser fails ."] * 6) + "\n"
    (folder / "domain.txt").write_text(domain)
    arguments = (
        "finetune",
        folder / "domain.txt",
        "--model",
        folder / "run" / "model",
        "--out",
        folder / "domain",
        "--heldout",
        0.3,
        "--set",
        "training.rows=2",
    )
    result = elmore_command(*arguments)
    assert result.status == 0, result.err
    assert "before" in result.out
    assert "words added to the vocabulary: 4" in result.out
    again = elmore_command(*arguments, "--json")
    assert again.json["num_new_words"] == 4
    assert again.json["perplexity"]["after"] < again.json["perplexity"]["before"]


def test_held_out_text_of_a_domain_may_be_given(folder, elmore_command):
    """A text of one document is all trained on; what to hold out is then another file."""
    assert train(elmore_command, folder).status == 0
    (folder / "domain.txt").write_text("The parser reads the treebank .\n" * 12)
    (folder / "dev.txt").write_text("The parser fails .\n")
    arguments = ("-m", folder / "run" / "model", "--set", "training.rows=2")
    result = elmore_command("finetune", folder / "domain.txt", "-o", folder / "ft", *arguments)
    assert result.status == 0, result.err
    assert "or use --heldout-text" in result.err
    given = ("-o", folder / "given", "--heldout-text", folder / "dev.txt", "--json")
    result = elmore_command("finetune", folder / "domain.txt", *given, *arguments)
    assert result.status == 0, result.err
    assert "no text is held out" not in result.err
    assert result.json["heldout"]["num_predictions"] == 5  # 4 tokens, and the end of the sentence
    given = ("-o", folder / "again", "--heldout-text", folder / "dev.txt")
    result = elmore_command("finetune", folder / "given" / "corpus", *given, *arguments)
    assert result.status == 2
    assert "is a prepared corpus with a held-out part of its own" in result.err
    assert not (folder / "again").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "training.row=3"], "did you mean 'rows'"),
        (["--corpus", "nowhere"], "nowhere"),
        (["--device", "tpu9"], "tpu9"),
        (["--set", "model.lstm.cell_dim=0"], "cell_dim"),
    ],
)
def test_a_mistake_is_one_sentence_and_leaves_nothing(folder, elmore_command, arguments, message):
    result = train(elmore_command, folder, *arguments)
    assert result.status == 2
    assert message in result.err
    assert len(result.err.strip().splitlines()) == 1
    assert not (folder / "run" / "model").exists()
    assert not (folder / "run" / "checkpoints").exists()


@pytest.mark.parametrize(
    "name",
    [
        "corpus.json",
        "vocabulary.txt",
        "counts.bin",
        "word_ids.bin",
        "train_segments.bin",
        "heldout_documents.bin",
        "shards/00000000.safetensors",
    ],
)
def test_a_damaged_corpus_is_refused_before_anything_is_written(folder, elmore_command, name):
    path = folder / "corpus" / name
    whole = path.read_bytes()
    path.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
    result = train(elmore_command, folder)
    assert (result.status, result.out) == (2, "")
    assert len(result.err.splitlines()) == 1
    assert f"{path} is damaged" in result.err
    assert not (folder / "run").exists()


@pytest.mark.parametrize(
    ("text", "min_count", "message"),
    [
        (
            "a b\n",
            1,
            "too short: 2 tokens (4 with sentence markers), less than one window "
            "(training.window = 5)",
        ),
        ("a b c d e f\n", 2, "the vocabulary has no words"),
    ],
)
def test_a_corpus_too_small_to_learn_from_is_refused(
    folder, elmore_command, text, min_count, message
):
    assert train(elmore_command, folder).status == 0
    (folder / "few.txt").write_text(text)
    prepared = ("--out", folder / "few", "--min-count", min_count)
    assert elmore_command("prepare", folder / "few.txt", *prepared).status == 0
    more = ("--corpus", folder / "few", "--out", folder / "few-run")
    result = train(elmore_command, folder, *more)
    assert result.status == 2
    assert message in result.err
    assert len(result.err.splitlines()) == 1
    assert not (folder / "few-run").exists()


def test_a_text_too_short_to_fine_tune_on_leaves_nothing(folder, elmore_command):
    assert train(elmore_command, folder).status == 0
    (folder / "few.txt").write_text("a cat sat down\n")
    result = elmore_command(
        "finetune", folder / "few.txt", "-m", folder / "run" / "model", "-o", folder / "ft"
    )
    assert result.status == 2
    assert "the training text is too short: 4 tokens" in result.err
    assert not (folder / "ft").exists()


def test_a_text_shorter_than_a_step_is_noted(folder, elmore_command):
    result = train(elmore_command, folder, "--set", "training.rows=128")
    assert result.status == 0
    assert "note: the training text has only " in result.err
    assert "one step reads 640 (128 rows of 5)" in result.err


def test_fine_tuning_into_a_folder_of_other_things_is_refused(folder, elmore_command):
    assert train(elmore_command, folder).status == 0
    (folder / "mine").mkdir()
    (folder / "mine" / "thesis.txt").write_text("important")
    result = elmore_command(
        "finetune", folder / "text.txt", "-m", folder / "run" / "model", "-o", folder / "mine"
    )
    assert result.status == 2
    assert "other files" in result.err
    assert [path.name for path in (folder / "mine").iterdir()] == ["thesis.txt"]


def test_fine_tuning_does_not_touch_its_own_model_or_another_run(folder, elmore_command):
    assert train(elmore_command, folder).status == 0
    before = sorted(str(path) for path in (folder / "run").rglob("*"))
    for out in (folder / "run", folder):
        result = elmore_command(
            "finetune", folder / "text.txt", "-m", folder / "run" / "model", "-o", out, "--restart"
        )
        assert result.status == 2
        assert len(result.err.strip().splitlines()) == 1
    assert sorted(str(path) for path in (folder / "run").rglob("*")) == before


def test_a_mistake_in_fine_tuning_leaves_nothing(folder, elmore_command):
    assert train(elmore_command, folder).status == 0
    (folder / "latin.txt").write_bytes(b"caf\xe9 au lait\n")
    for text, more in (("latin.txt", ()), ("none.txt", ()), ("text.txt", ("--device", "cuda:7"))):
        result = elmore_command(
            "finetune", folder / text, "-m", folder / "run" / "model", "-o", folder / "ft", *more
        )
        assert result.status == 2, text
        assert not (folder / "ft").exists(), text


def test_a_run_taken_for_a_model_is_pointed_out(folder, elmore_command):
    assert train(elmore_command, folder).status == 0
    for command in ("info", "evaluate"):
        arguments = (
            (folder / "run",) if command == "info" else (folder / "text.txt", "-m", folder / "run")
        )
        result = elmore_command(command, *arguments)
        assert result.status == 2
        assert "run/model" in result.err


def test_sources_are_read_as_often_as_their_weights_say(folder, elmore_command):
    (folder / "more.txt").write_text(TEXT.replace("cat", "horse"))
    elmore_command(
        "prepare", folder / "text.txt", folder / "more.txt", "--out", folder / "corpus",
        "--min-count", 1, "--restart",
    )  # fmt: skip
    plain = train(elmore_command, folder, "--json").json["step"]
    weighted = train(
        elmore_command, folder, "--json", "--restart", "--weight", "text=3", "--weight", "mor*=2"
    ).json["step"]
    assert weighted == pytest.approx(2.5 * plain, rel=0.1)
    kept = json.loads((folder / "run" / "settings.json").read_text())["training"]["weights"]
    assert kept == {"text": 3, "mor*": 2}


@pytest.mark.parametrize("weight", ["text", "text=x", "=2", "text=-1", "text=1.5", "texts=2"])
def test_an_impossible_weight_is_one_sentence(weight, folder, elmore_command):
    result = train(elmore_command, folder, "--weight", weight)
    assert result.status == 2
    assert "Traceback" not in result.err
    assert "SOURCE=N" in result.err or "did you mean 'text'" in result.err
    assert not (folder / "run").exists()
