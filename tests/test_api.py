"""What a guide shows works from Python, by the names that `elmore` exports."""

import inspect
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch

import elmore
from elmore.corpus.settings import PrepareSettings
from elmore.embed.given_model import find_given_model
from elmore.errors import ConfigError, DataError, ElmoreError, ModelError
from elmore.settings import write_changes
from tests.golden.results import DATA, SMALL_MODEL, TEXT, TRAINED_MODEL
from tests.tiny import model as make_model

SMALL_TASK = {
    "task.column": 2, "task.hidden_dim": 5, "words.dim": 4, "characters.num_filters": 3,
    "training.max_epochs": 1, "training.min_epoch_steps": 1,
}  # fmt: skip
SENTENCES = ["The bank of the river .", "She went to the bank .", "The bank was closed ."]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("api") / "corpus"
    return elmore.prepare(TEXT, folder, form="tokenized", min_count=1, heldout=0.2, processes=1)


@pytest.mark.slow
def test_from_text_to_a_model_and_its_vectors(corpus, tmp_path):
    (tmp_path / "small.toml").write_text(SMALL_MODEL)
    report = elmore.pretrain(
        corpus,
        tmp_path / "run",
        settings=tmp_path / "small.toml",
        changes={"training.max_steps": 3},
    )
    assert report.step == 3
    embedder = elmore.load(tmp_path / "run" / "model")
    assert embedder.embed("the bank").shape == (2, 10)
    totals = elmore.evaluate(corpus.heldout.documents(), model=tmp_path / "run" / "model")
    assert totals.perplexity == pytest.approx(report.heldout.perplexity, rel=1e-4)
    opened = elmore.open_corpus(str(corpus.folder))
    assert opened.fingerprint == corpus.fingerprint


def test_weights_of_sources_are_settings(corpus, tmp_path):
    (tmp_path / "small.toml").write_text(SMALL_MODEL)
    config = {"settings": tmp_path / "small.toml", "changes": {"training.max_steps": 1}}
    elmore.pretrain(corpus, tmp_path / "run", weights={"text": 2}, **config)
    with pytest.raises(ConfigError, match="is named 'other'"):
        elmore.pretrain(corpus, tmp_path / "other", weights={"other": 2}, **config)


def test_similar_uses_of_a_word():
    found = elmore.neighbors("bank", SENTENCES, model=TRAINED_MODEL, top=2)
    assert len(found) == 2
    (best,) = elmore.neighbors(
        "bank", SENTENCES, query="The bank was closed .", model=elmore.load(TRAINED_MODEL), top=1
    )
    assert best.context.tokens == SENTENCES[2].split()
    assert best.similarity == pytest.approx(1.0, abs=1e-6)


def test_a_task_is_trained_loaded_and_predicts(tmp_path):
    make_model(scale=0.4).save_pretrained(tmp_path / "model")
    report = elmore.fit(
        "tags", tmp_path / "task", data=DATA, model=tmp_path / "model", changes=SMALL_TASK
    )
    assert report.scores["dev"].keys() == {"accuracy"}
    task = elmore.load_task(tmp_path / "task")
    tags = elmore.predict(task, [["a", "bad", "Cafe"]])
    assert [len(found) for found in tags] == [3]
    assert elmore.predict(tmp_path / "task", [["a", "bad", "Cafe"]]) == tags
    with pytest.raises(ConfigError, match="give a folder"):
        elmore.fit("tags", tmp_path / "other", train=DATA / "train.txt")


@pytest.mark.slow
def test_a_model_is_fine_tuned_on_text_or_on_a_corpus(corpus, tmp_path):
    text = tmp_path / "domain.txt"
    text.write_text("\n".join(["We parse .\nThe parser is new .\n"] * 60))
    small = {"changes": {"training.max_steps": 1}, "min_count": 1, "model": TRAINED_MODEL}
    report = elmore.finetune(text, tmp_path / "run", form="tokenized", heldout=0.1, **small)
    assert report.run.step == 1
    assert report.num_new_words > 0
    assert report.after.perplexity != report.before.perplexity
    assert elmore.load(tmp_path / "run" / "model").embed("we parse").shape == (2, 48)
    again = elmore.finetune(text, tmp_path / "run", form="tokenized", heldout=0.1, **small)
    assert again.after.perplexity == report.after.perplexity
    prepared = elmore.open_corpus(tmp_path / "run" / "corpus")
    other = elmore.finetune(prepared, tmp_path / "other", **small)
    assert other.after.perplexity == pytest.approx(report.after.perplexity, rel=1e-6)


def test_fine_tuning_cannot_change_the_architecture(tmp_path):
    with pytest.raises(ConfigError, match="cannot change the architecture"):
        elmore.finetune("a.txt", tmp_path / "run", changes={"model.lstm.num_layers": 3})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_task_is_compared_with_and_without_elmo(tmp_path, monkeypatch):
    monkeypatch.setenv("ELMORE_CACHE", str(tmp_path / "cache"))
    make_model(scale=0.4).save_pretrained(tmp_path / "model")
    comparison = elmore.compare(
        "tags",
        tmp_path / "out",
        data=DATA,
        model=tmp_path / "model",
        seeds=1,
        shares=100,
        settings=SMALL_TASK,
    )
    assert [run.variant for run in comparison.runs] == ["without", "input"]
    assert "elmore.compare(&#x27;tags&#x27;" in (tmp_path / "out" / "report.html").read_text()
    assert callable(elmore.compare), "not the package that it imports"
    with pytest.raises(ConfigError, match="above 0 and up to 100"):
        elmore.compare("tags", data=DATA, shares=[0])


@pytest.mark.parametrize("name", elmore.__all__)
def test_no_exported_name_is_also_a_module(name):
    # Importing a module sets it as an attribute of its package, in place of the export.
    folder = Path(elmore.__file__).parent
    assert not (folder / name).is_dir()
    assert not (folder / f"{name}.py").exists()


@pytest.mark.parametrize("name", [*elmore.__all__])
def test_every_export_can_be_imported_and_has_a_docstring(name):
    exported = getattr(elmore, name)
    assert len(exported.__doc__.split()) > 5
    assert name in dir(elmore)


COMMANDS = ("compare", "evaluate", "finetune", "fit", "neighbors", "prepare", "pretrain")
# Where Python has lists, the command line has texts with commas.
OTHER_DEFAULTS = {("compare", "variants"): "without,input", ("compare", "shares"): "100"}


@pytest.mark.parametrize("name", COMMANDS)
def test_functions_have_the_defaults_of_their_commands(name):
    command = import_module(f"elmore.cli.{name}")
    options = inspect.signature(getattr(command, name)).parameters
    arguments = inspect.signature(getattr(elmore, name)).parameters
    shared = [option for option in options if option in arguments and option != "text"]
    assert len(shared) > 2
    for option in shared:
        default = arguments[option].default
        expected = options[option].default
        if (name, option) in OTHER_DEFAULTS:
            assert expected == OTHER_DEFAULTS[name, option]
            assert ",".join(map(str, default)) == expected
        elif inspect.Parameter.empty not in (default, expected):
            assert (default or None) == (expected or None), option


def test_a_file_is_evaluated_like_its_sentences(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("the bank of the river\n\nshe went\n")
    documents = [[["the", "bank", "of", "the", "river"]], [["she", "went"]]]
    of_lists = elmore.evaluate(documents, model=TRAINED_MODEL)
    for form in (None, "tokenized", "lines"):
        found = elmore.evaluate(path, model=TRAINED_MODEL, form=form)
        assert found.perplexity == of_lists.perplexity
    with pytest.raises(ElmoreError, match=r"there is no file 'none\.txt'"):
        elmore.evaluate("none.txt", model=TRAINED_MODEL)
    with pytest.raises(ConfigError, match="state is 'documents'; choose one of"):
        elmore.evaluate(documents, model=TRAINED_MODEL, state="documents")


def test_strings_are_evaluated_as_one_document():
    wanted = elmore.evaluate([[["the", "bank", "."], ["she", "went"]]], model=TRAINED_MODEL)
    for sentences in (["the bank.", "she went"], iter(["the bank.", "she went"])):
        assert elmore.evaluate(sentences, model=TRAINED_MODEL) == wanted
    with pytest.raises(DataError, match=r"got \['went'\] in a list of strings; give strings only"):
        elmore.evaluate(["the bank.", ["went"]], model=TRAINED_MODEL)


def test_a_call_in_another_order_is_explained():
    with pytest.raises(ConfigError) as caught:
        elmore.pretrain("tiny", corpus="corpus", out="run")
    assert str(caught.value).startswith(
        "pretrain: multiple values for argument 'corpus'; it takes pretrain(corpus, out), and by "
        "name: settings, changes, "
    )


def test_an_unknown_task_is_named_before_its_files():
    with pytest.raises(ConfigError, match="nosuch"):
        elmore.fit("nosuch", train="x")
    with pytest.raises(
        ConfigError, match=r"^dev is missing; give a folder \(data\), or both train"
    ):
        elmore.fit("tags", train="x")


@pytest.fixture
def changed(monkeypatch):
    """An embedder whose weights were changed after loading."""
    monkeypatch.setenv("ELMORE_KERNEL", "torch")
    embedder = elmore.load(TRAINED_MODEL)
    with torch.no_grad():
        embedder.model.bilm.initial_cell.add_(1)
    return embedder


def test_an_embedder_is_evaluated_like_its_model(changed):
    wanted = elmore.evaluate(["the bank"], model=TRAINED_MODEL)
    embedder = elmore.load(TRAINED_MODEL)
    assert elmore.evaluate(["the bank"], model=embedder) == wanted
    assert elmore.evaluate(["the bank"], model=changed, state="reset") != wanted
    with pytest.raises(ConfigError, match="meta"):
        elmore.evaluate(["the bank"], model=embedder, device="meta")


def test_an_embedder_is_the_model_of_a_task(tmp_path):
    make_model(scale=0.4).save_pretrained(tmp_path / "model")
    embedder = elmore.load(tmp_path / "model")
    for name, model in (("path", tmp_path / "model"), ("embedder", embedder)):
        elmore.fit("tags", tmp_path / name, data=DATA, model=model, changes=SMALL_TASK)
    by_path, by_embedder = (
        elmore.predict(tmp_path / name, [["a", "bad", "Cafe"]], model=embedder)
        for name in ("path", "embedder")
    )
    assert by_path == by_embedder
    saved = [(tmp_path / name / "settings.json").read_text() for name in ("path", "embedder")]
    assert str(tmp_path / "model") in saved[1]
    assert saved[0] == saved[1]


def test_an_embedder_of_the_shipped_model_has_no_path_in_a_task():
    """A path inside one installation would be wrong in another."""
    shipped = elmore.load()
    assert find_given_model(shipped) is None
    assert find_given_model(shipped, none_is_shipped=False) == str(TRAINED_MODEL)


@pytest.mark.slow
def test_an_embedder_is_fine_tuned_like_its_model(tmp_path):
    small = {"form": "tokenized", "min_count": 1, "changes": {"training.max_steps": 1}}
    of_path = elmore.finetune(TEXT, tmp_path / "path", model=TRAINED_MODEL, **small)
    of_embedder = elmore.finetune(
        TEXT, tmp_path / "embedder", model=elmore.load(TRAINED_MODEL), **small
    )
    assert of_embedder.after == of_path.after
    assert of_embedder.before == of_path.before


def test_an_embedder_without_files_of_its_own_says_what_to_do(changed, tmp_path):
    for embedder, reason in (
        (changed, "was changed after it was loaded from"),
        (elmore.Embedder(make_model()), "is not in a file"),
    ):
        for use in (
            lambda model: elmore.finetune(TEXT, tmp_path / "run", model=model),
            lambda model: elmore.fit("tags", tmp_path / "run", data=DATA, model=model),
            lambda model: elmore.compare("tags", tmp_path / "run", data=DATA, model=model),
            lambda model: elmore.load_task(tmp_path / "run", model=model),
        ):
            with pytest.raises(ModelError, match=rf"{reason}.*; save it to a folder with save\("):
                use(embedder)
    assert not list(tmp_path.iterdir())


def test_a_corpus_is_evaluated_by_its_heldout_part(corpus):
    expected = elmore.evaluate(corpus.heldout.documents(), model=TRAINED_MODEL).perplexity
    assert elmore.evaluate(corpus, model=TRAINED_MODEL).perplexity == expected
    assert elmore.evaluate(corpus.folder, model=TRAINED_MODEL).perplexity == expected


def test_neighbors_reads_a_file(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("".join(f"{sentence}\n" for sentence in SENTENCES))
    of_list = elmore.neighbors("bank", SENTENCES, model=TRAINED_MODEL)
    assert elmore.neighbors("bank", path, model=TRAINED_MODEL) == of_list
    assert elmore.neighbors("bank", str(path), model=TRAINED_MODEL, form="lines") == of_list
    with pytest.raises(ElmoreError, match=r"there is no file 'The bank\.'; give the path"):
        elmore.neighbors("bank", "The bank.", model=TRAINED_MODEL)


def test_old_names_of_settings_still_work(corpus, tmp_path):
    (tmp_path / "small.toml").write_text(SMALL_MODEL)
    with pytest.warns(FutureWarning, match="config= is now called settings="):
        report = elmore.pretrain(
            corpus,
            tmp_path / "run",
            config=tmp_path / "small.toml",
            settings={"training.max_steps": 1},
        )
    assert report.step == 1
    with pytest.raises(ConfigError, match=r"changes are 'rows=64'; give a dictionary"):
        elmore.pretrain(corpus, tmp_path / "other", changes="rows=64")


def test_an_impossible_setting_is_named(corpus, tmp_path):
    for settings, message in (
        ({"training.row": 4}, "did you mean 'rows'"),
        ({"rows": 4}, r"'rows' is not the name of a setting; give its section too, such as 'tr"),
        ({"training": {"row": 4}}, "did you mean 'rows'"),
        ({"training": {}, "x=y.z": 4}, "'x=y.z' is not the name of a setting"),
        ({"training.rows": "many"}, "rows"),
    ):
        with pytest.raises(ConfigError, match=message):
            elmore.pretrain(corpus, tmp_path / "run", settings="tiny", changes=settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"min_count": "x"}, "setting 'min_count' in elmore.prepare is 'x'; it must be a whole nu"),
        ({"min_count": 0}, "min_count is 0; give a whole number of at least 1"),
        ({"min_cnt": 1}, "unknown setting 'min_cnt' in elmore.prepare; did you mean 'min_count'?"),
        ({"heldout": "x"}, "setting 'heldout' in elmore.prepare is 'x'; it must be a number"),
        ({"heldout": 1.5}, "heldout is 1.5; give a fraction of the documents, from 0 to below 1"),
        ({"form": "x"}, "form is 'x'; choose one of: raw, wrapped, tokenized"),
        ({"language": "xx"}, "language is 'xx'; choose one of: en, zh"),
        ({"bad_bytes": "x"}, "bad_bytes is 'x'; choose one of: refuse, replace"),
        ({"vocabulary": 5}, "vocabulary is 5; give a path"),
        ({"processes": "x"}, "num_processes is 'x'; give a whole number from 1"),
        ({"processes": 0}, "num_processes is 0; give a whole number from 1"),
    ],
)
def test_what_prepare_cannot_do_is_one_sentence(tmp_path, settings, message):
    with pytest.raises(ConfigError) as caught:
        elmore.prepare(TEXT, tmp_path / "corpus", **settings)
    assert str(caught.value).startswith(message)
    assert not (tmp_path / "corpus").exists()


def test_settings_of_a_corpus_are_checked_without_the_front_door():
    with pytest.raises(ConfigError, match="min_count is 'x'; give a whole number of at least 1"):
        PrepareSettings(min_count="x")
    with pytest.raises(ConfigError, match="heldout is 'x'; give a fraction"):
        PrepareSettings(heldout="x")


def test_patterns_of_texts_are_expanded(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("texts").mkdir()
    for name in ("b.txt", "a.txt", "c.md", "[d].txt"):
        Path("texts", name).write_text(f"in {name}\n" * 9)
    corpus = elmore.prepare(
        ["texts/?.txt", "texts/[d].txt"], "corpus", heldout_text=Path("texts/*.md"), processes=1
    )
    assert [(entry["name"], entry["part"]) for entry in corpus.about["inputs"]] == [
        ("texts/a.txt", "train"),
        ("texts/b.txt", "train"),
        ("texts/[d].txt", "train"),
        ("texts/c.md", "heldout"),
    ]
    with pytest.raises(DataError, match=r"no file matches 'texts/\*\.gz'; check the pattern"):
        elmore.prepare("texts/*.gz", "other")


def test_changes_may_be_nested():
    nested = {"training": {"rows": 64, "weights": {"a": 2}}, "model.lstm": {"num_layers": 1}}
    assert write_changes(nested) == [
        "training.rows=64",
        "training.weights.a=2",
        "model.lstm.num_layers=1",
    ]


WRONG = {
    "the order of the command": lambda: elmore.pretrain("tiny", corpus="corpus", out="run"),
    "an unknown argument": lambda: elmore.pretrain("corpus", "run", epoch=3),
    "no argument at all": elmore.evaluate,
    "a number as the model of a task": lambda: elmore.fit("tags", "out", data="data", model=5),
    "strings and tokens": lambda: elmore.evaluate(["a", ["b"]]),
    "a number as out": lambda: elmore.prepare(TEXT, 5),
    "a number as corpus": lambda: elmore.pretrain(5, "run"),
    "a list of settings": lambda: elmore.pretrain("corpus", "run", changes=["training.rows=3"]),
    "an object as setting": lambda: elmore.pretrain(
        "corpus", "run", changes={"training.rows": object()}
    ),
    "text as documents": lambda: elmore.evaluate("a b"),
    "sentences as documents": lambda: elmore.evaluate([["a", "b"]]),
    "numbers as documents": lambda: elmore.evaluate([1]),
    "numbers as tokens": lambda: elmore.evaluate([[[1]]]),
    "an unknown state": lambda: elmore.evaluate([[["a"]]], state="x"),
    "text as max_tokens": lambda: elmore.evaluate([[["a"]]], max_tokens="x"),
    "text as sentences": lambda: elmore.neighbors("bank", "The bank ."),
    "text as top": lambda: elmore.neighbors("bank", ["The bank ."], top="x"),
    "no word": lambda: elmore.neighbors(None, ["The bank ."]),
    "a number as model": lambda: elmore.load(5),
    "no task": lambda: elmore.fit(None, "out", data="data"),
    "a number as data": lambda: elmore.fit("tags", "out", data=5),
    "a number as a task's folder": lambda: elmore.load_task(5),
    "a number as a task": lambda: elmore.predict(5, ["a"]),
}


@pytest.mark.parametrize("name", WRONG)
def test_arguments_of_other_types_are_one_sentence(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ElmoreError, match="; "):
        WRONG[name]()
    assert not list(tmp_path.iterdir())


def test_language_models_score_and_fill_gaps():
    language_model = elmore.LanguageModel.load(TRAINED_MODEL)
    (score,) = language_model.score([["the", "bank"]])
    assert len(score.forward_lm) == 3
    assert len(language_model.fill(["the", "___", "of", "the", "river"], top=4)) == 4


def test_old_names_still_work():
    assert elmore.load_task_model is elmore.load_task


def test_an_embedder_writes_a_file_of_some_layers(tmp_path):
    embedder = elmore.load(TRAINED_MODEL)
    for ending in ("h5", "parquet", "npz"):
        path = tmp_path / f"vectors.{ending}"
        report = elmore.embed_to_file(embedder, SENTENCES, path, layers=[0, 2])
        assert report.layers == "0,2"
        for sentence, read in zip(SENTENCES, elmore.read_vectors(path), strict=True):
            assert np.array_equal(read.vectors, embedder.embed(sentence, layers=[0, 2]))


FUNCTIONS = [name for name in elmore.__all__ if inspect.isfunction(getattr(elmore, name))]


# All but the two that are for packages which extend elmore.
@pytest.mark.parametrize("name", sorted({*FUNCTIONS} - {"replace_file", "explain_calls"}))
def test_every_function_says_how_it_is_called(name):
    with pytest.raises(ConfigError, match=f"^{name} has no argument 'batchsize'; "):
        getattr(elmore, name)(batchsize=3)


@pytest.mark.parametrize(
    "write_or_read",
    [
        lambda embedder: elmore.read_vectors(3),
        lambda embedder: elmore.embed_to_file(embedder, ["a"], 3),
        lambda embedder: embedder.save(3),
        lambda embedder: elmore.Elmo(embedder).save(3),
        lambda embedder: embedder.language_model.save(3),
    ],
)
def test_what_is_not_a_path_is_named(write_or_read):
    with pytest.raises(ConfigError, match=r"^(path|out|folder) is 3; give a path$"):
        write_or_read(elmore.load())
