"""A comparison: what is trained, in which order, and what comes of it."""

import pytest

from elmore.comparison.compare import plan_runs, run_comparison, summarize
from elmore.embed.layer_cache import LayerCache
from elmore.errors import ConfigError, DataError
from elmore.tasks.data.parts import find_parts
from elmore.tasks.fit.elmo import ElmoChoice
from elmore.tasks.fit.folder import load_task_model
from elmore.tasks.fit.settings import load_settings
from tests import tiny
from tests.tasks.fit.made_up import Place, Watcher, make_settings

SETTINGS = make_settings("training.max_epochs=1", "elmo.where=input")


def plan(**changes):
    how = {"variants": ["without", "input"], "shares": [1.0], "num_seeds": 1, **changes}
    return plan_runs(SETTINGS, **how)


def test_each_variant_changes_one_thing():
    names = ["without", "input", "output", "both", "top", "average", "finetuned", "domain"]
    base = SETTINGS.to_json()["elmo"]
    changed = {}
    for run in plan(variants=names):
        values = run.settings.to_json()["elmo"]
        changed[run.variant] = {name: values[name] for name in base if values[name] != base[name]}
    assert changed == {
        "without": {"where": "none"},
        "input": {},
        "output": {"where": "output"},
        "both": {"where": "both"},
        "top": {"layers": "top"},
        "average": {"layers": "average"},
        "finetuned": {"training": "task"},
        "domain": {"finetune_epochs": 1.0},
    }


def test_seeds_come_one_after_another_and_shares_within():
    runs = plan(shares=[0.1, 1.0], num_seeds=2)
    assert [run.name for run in runs] == [
        "without-10%-seed1",
        "input-10%-seed1",
        "without-100%-seed1",
        "input-100%-seed1",
        "without-10%-seed2",
        "input-10%-seed2",
        "without-100%-seed2",
        "input-100%-seed2",
    ]
    assert [run.settings.training.share for run in runs[:3]] == [0.1, 0.1, 1.0]
    assert runs[-1].settings.training.seed == 2


def test_what_is_named_twice_is_trained_once():
    assert len(plan(variants=["without", "input", "without"], shares=[1.0, 1.0])) == 2


def test_a_number_of_epochs_that_was_set_is_kept():
    settings = make_settings("elmo.where=input", "elmo.finetune_epochs=3")
    (run,) = plan_runs(settings, variants=["domain"], shares=[1.0], num_seeds=1)
    assert run.settings.elmo.finetune_epochs == 3.0


def test_what_cannot_be_compared_is_reported():
    with pytest.raises(ConfigError, match="unknown variant 'middle'; choose from: without, input"):
        plan(variants=["middle"])
    with pytest.raises(ConfigError, match="no variants given"):
        plan(variants=[])
    with pytest.raises(ConfigError, match=r"elmo.where is 'none'"):
        plan_runs(make_settings(), variants=["input"], shares=[1.0], num_seeds=1)
    shared = make_settings("elmo.where=input", "training.share=0.1")
    with pytest.raises(ConfigError, match=r"training.share is 0.1, .*use --shares 10 instead"):
        plan_runs(shared, variants=["input"], shares=[1.0], num_seeds=1)
    blind = make_settings("elmo.where=input", "words.dim=0", "characters.num_filters=0")
    with pytest.raises(ConfigError, match="the network has no input"):
        plan_runs(blind, variants=["input", "without"], shares=[1.0], num_seeds=1)


@pytest.mark.slow
def test_runs_are_collected_and_not_repeated(tmp_path):
    place = Place(tmp_path)
    runs = plan(shares=[0.5, 1.0])
    choice = ElmoChoice(name=str(place.model), cache=LayerCache(tmp_path / "cache"))

    def compare(observer):
        return list(
            run_comparison(
                runs, find_parts(place.data), tmp_path / "all", elmo=choice, observer=observer
            )
        )

    finished = compare(Watcher())
    comparison = summarize(finished, SETTINGS, elmo="tiny", fingerprint="f")
    assert [(run.variant, run.num_train) for run in comparison.runs] == [
        ("without", 10),
        ("input", 10),
        ("without", 20),
        ("input", 20),
    ]
    assert comparison.num_examples == {"train": 20, "dev": 8, "test": 5}
    assert (comparison.main_score, comparison.words) == ("accuracy", "learned")
    assert [bool(run.layer_shares) for run in comparison.runs] == [False, True, False, True]
    watcher = Watcher()
    again = compare(watcher)
    assert watcher.steps == []
    assert summarize(again, SETTINGS, elmo="tiny", fingerprint="f") == comparison


def test_a_share_that_is_too_small_is_reported_before_anything_is_trained(tmp_path):
    watcher = Watcher()
    texts = tmp_path / "texts"
    texts.mkdir()
    for part in ("train", "dev"):
        (texts / f"{part}.tsv").write_text("good\tyes\nbad\tno\n" * 20)
    settings = load_settings("texts", changes=["words.dim=4"])
    runs = plan_runs(settings, variants=["without"], shares=[1.0, 0.025], num_seeds=2)
    with pytest.raises(
        DataError, match=r"2.5 % of the training data \(1 example, drawn with seed 1\) .*'\w+'"
    ):
        list(
            run_comparison(
                runs, find_parts(texts), tmp_path / "out", elmo=ElmoChoice(), observer=watcher
            )
        )
    assert watcher.steps == []
    assert not (tmp_path / "out").exists()


def test_a_limit_that_is_too_small_is_reported_for_every_seed_before_anything_is_trained(tmp_path):
    texts = tmp_path / "texts"
    texts.mkdir()
    for part in ("train", "dev"):
        (texts / f"{part}.tsv").write_text("good\tyes\n" * 3 + "bad\tno\n" * 3)
    settings = load_settings("texts", changes=["words.dim=4", "training.max_examples=2"])
    watcher = Watcher()
    # Some of ten seeds draw two of the same label.
    runs = plan_runs(settings, variants=["without"], shares=[1.0], num_seeds=10)
    with pytest.raises(
        DataError,
        match=r"^training.max_examples = 2 of .* \(2 examples, drawn with seed \d\) .* use more",
    ):
        list(
            run_comparison(
                runs, find_parts(texts), tmp_path / "out", elmo=ElmoChoice(), observer=watcher
            )
        )
    assert watcher.steps == []


def test_a_bilm_that_cannot_be_fine_tuned_is_reported_before_anything_is_trained(tmp_path):
    place, watcher = Place(tmp_path), Watcher()  # its model has no LM head
    settings = make_settings("elmo.where=input", "elmo.finetune_epochs=1")
    runs = plan_runs(settings, variants=["without", "input"], shares=[1.0], num_seeds=1)
    choice = ElmoChoice(name=str(place.model), cache=LayerCache(tmp_path / "cache"))
    with pytest.raises((ConfigError, DataError), match="LM head"):
        list(
            run_comparison(
                runs, find_parts(place.data), tmp_path / "all", elmo=choice, observer=watcher
            )
        )
    assert watcher.steps == []


@pytest.mark.slow
def test_starting_over_keeps_the_bilm_of_runs_that_are_not_trained_again(tmp_path):
    place = Place(tmp_path)
    choice = ElmoChoice(name=str(tiny.TRAINED_MODEL), cache=LayerCache(tmp_path / "cache"))

    def compare(variant, **how):
        (pair,) = run_comparison(
            plan(variants=[variant]), find_parts(place.data), tmp_path / "all", elmo=choice, **how
        )
        return pair[1]

    report = compare("domain")
    compare("without", restart=True)
    # Nor does it read the text first, where settings say that all others do.
    settings = make_settings("elmo.where=input", "elmo.finetune_epochs=1", "training.max_epochs=1")
    (run,) = plan_runs(settings, variants=["without"], shares=[1.0], num_seeds=1)
    list(run_comparison([run], find_parts(place.data), tmp_path / "all", elmo=choice, restart=True))
    trained = load_task_model(tmp_path / "all" / "runs" / "domain-100%-seed1")
    assert trained.score(trained.task.read(place.data / "dev.txt")) == report.scores["dev"]
    mark = tmp_path / "all" / "domain" / "1-epochs" / "mark"
    mark.touch()
    assert compare("domain", restart=True).scores == report.scores
    assert not mark.exists()
