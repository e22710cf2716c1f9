"""A softmax beside a model: loaded equal to the bit, never believed if it belongs to others."""

import json
import math
from pathlib import Path

import huggingface_hub
import pytest
import torch
from safetensors.torch import load_file, save_file

from elmore.embed.embedder import load
from elmore.errors import ElmoreError, ModelError
from elmore.lm.language_model import LanguageModel, find_model, load_language_model
from elmore.weights.bilm_tf import write_bilm_tf
from elmore.weights.loading import find_source, load_model
from tests import tiny
from tests.lm.slow_language_model import WORDS, make_language_model
from tests.weights import peer_files
from tests.weights.refusals import assert_refused

FILES = ["softmax.json", "softmax.safetensors", "softmax_words.txt"]


def assert_equal(found: LanguageModel, wanted: LanguageModel) -> None:
    assert found.elmo.fingerprint() == wanted.elmo.fingerprint()
    assert type(found.softmax) is type(wanted.softmax)
    ours, theirs = found.softmax.state_dict(), wanted.softmax.state_dict()
    assert list(ours) == list(theirs)
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert torch.equal(found.log_shares, wanted.log_shares)
    assert found.words == wanted.words


@pytest.mark.parametrize("is_adaptive", [False, True])
def test_what_is_saved_is_loaded_equal_to_the_bit(is_adaptive, tmp_path):
    model = make_language_model(is_adaptive=is_adaptive)
    model.save(tmp_path / "model", run={"steps": 3, "heldout": {"perplexity": math.inf}})
    loaded = load_language_model(tmp_path / "model")
    assert_equal(loaded, model)
    assert loaded.run == {"steps": 3, "heldout": {"perplexity": None}}
    assert not loaded.softmax.training
    outputs = torch.randn(4, 5)
    assert torch.equal(loaded.softmax.log_probs(outputs), model.softmax.log_probs(outputs))
    loaded.save(tmp_path / "again")
    for path in (tmp_path / "model").iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()
    common = ["README.md", "config.json", "model.safetensors"]
    assert peer_files.names(tmp_path / "model") == sorted([*common, *FILES])


def test_another_precision_is_loaded_as_single(tmp_path):
    model = make_language_model()
    model.elmo.double()
    model.softmax.double()
    model.save(tmp_path)
    assert_equal(load_language_model(tmp_path), make_language_model())


def test_a_model_may_be_saved_over_another(tmp_path):
    make_language_model(seed=1).save(tmp_path)
    make_language_model(is_adaptive=True, seed=2).save(tmp_path)
    assert_equal(load_language_model(tmp_path), make_language_model(is_adaptive=True, seed=2))


def test_embedding_does_not_read_the_softmax(tmp_path):
    model = make_language_model()
    model.save(tmp_path)
    (tmp_path / "softmax.safetensors").unlink()
    (tmp_path / "softmax.json").write_text("damaged")
    embedder = load(tmp_path)
    assert embedder.model.fingerprint() == model.elmo.fingerprint()
    assert len(embedder.embed([["the", "cat"]])) == 1


def test_a_model_without_a_softmax_is_distinguished_from_a_damaged_one(tmp_path):
    tiny.model().save_pretrained(tmp_path / "ours")
    write_bilm_tf(tiny.model(), tmp_path / "published" / "weights.hdf5")
    for source in (
        tmp_path / "ours",
        tmp_path / "published",
        tmp_path / "published" / "weights.hdf5",
    ):
        assert_refused(lambda source=source: load_language_model(source), "has no softmax")
    assert_refused(lambda: load_language_model(tmp_path / "nowhere"), "no model at")
    assert_refused(lambda: load_language_model(tmp_path), "holds no model")


def test_a_softmax_of_other_weights_is_refused(tmp_path):
    make_language_model(seed=1).save(tmp_path)
    tiny.model(seed=9).save_pretrained(tmp_path)
    assert load_model(tmp_path).fingerprint() == tiny.model(seed=9).fingerprint()
    assert_refused(lambda: load_language_model(tmp_path), "does not belong to these weights")


@pytest.mark.slow
@pytest.mark.parametrize(
    "last_step",
    [
        "elmore.lm.language_model.ElmoModel.save_pretrained",
        "elmore.weights.softmax_file.write_tensors",
        "elmore.weights.softmax_file.write_entries",
        "elmore.weights.softmax_file.write_json",
        "elmore.weights.model_folder.write_card",
    ],
)
@pytest.mark.parametrize("has_same_weights", [True, False])
def test_a_save_cut_short_leaves_nothing_that_is_wrongly_believed(
    last_step, has_same_weights, tmp_path, monkeypatch
):
    old, new = make_language_model(seed=1), make_language_model(seed=2)
    if has_same_weights:  # only the softmax is another
        new = LanguageModel(
            elmo=old.elmo, softmax=new.softmax, words=new.words, log_shares=new.log_shares
        )
    old.save(tmp_path)

    def fail(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(last_step, fail)
        with pytest.raises(KeyboardInterrupt):
            new.save(tmp_path)
    try:
        loaded = load_language_model(tmp_path)
    except ModelError:
        pass
    else:
        assert_equal(loaded, old)
    new.save(tmp_path)
    assert_equal(load_language_model(tmp_path), new)
    assert not list(tmp_path.glob(".*"))


@pytest.mark.slow
def test_a_death_between_any_two_moves_leaves_nothing_that_is_wrongly_believed(
    tmp_path, monkeypatch
):
    replace = Path.replace
    num_moves = 0

    def count_and_die(path: Path, target: Path) -> Path:
        nonlocal num_moves
        num_moves -= 1
        if num_moves < 0:
            raise KeyboardInterrupt
        return replace(path, target)

    old, new = make_language_model(seed=1), make_language_model(seed=2)
    monkeypatch.setattr(Path, "replace", count_and_die)
    for last in range(6):
        num_moves = 100
        old.save(tmp_path)
        num_moves = last
        with pytest.raises(KeyboardInterrupt):
            new.save(tmp_path)
        assert_refused(lambda: load_language_model(tmp_path))
    num_moves = 100
    new.save(tmp_path)
    assert num_moves == 100 - 6  # every move was tried
    assert_equal(load_language_model(tmp_path), new)


# Damaged and hostile files.


def change_settings(**changes: object):
    def change(folder: Path) -> None:
        settings = json.loads((folder / "softmax.json").read_text())
        settings = {**settings, **changes}
        (folder / "softmax.json").write_text(json.dumps(settings))

    return change


def change_tensors(name: str, make):
    def change(folder: Path) -> None:
        tensors = load_file(folder / "softmax.safetensors")
        tensors = {key: tensor.clone() for key, tensor in tensors.items()}
        changed = make(tensors.pop(name, None))
        save_file(
            tensors if changed is None else {**tensors, name: changed},
            folder / "softmax.safetensors",
        )

    return change


def write(name: str, content: bytes):
    return lambda folder: (folder / name).write_bytes(content)


def cut(name: str, num_bytes: int):
    def change(folder: Path) -> None:
        (folder / name).write_bytes((folder / name).read_bytes()[:-num_bytes])

    return change


DAMAGES = {
    "no settings": (lambda f: (f / "softmax.json").unlink(), "interrupted"),
    "no weights": (lambda f: (f / "softmax.safetensors").unlink(), "softmax.safetensors"),
    "no words": (lambda f: (f / "softmax_words.txt").unlink(), "softmax_words.txt"),
    "settings are no JSON": (write("softmax.json", b"{"), "not JSON"),
    "settings are a list": (write("softmax.json", b"[]"), "not an object"),
    "newer format": (change_settings(format=3), "format 3"),
    "unknown kind": (change_settings(kind="tree"), "'tree'"),
    "no kind": (change_settings(kind=None), "None"),
    "kind is a list": (change_settings(kind=[]), "kind"),
    "words are many": (change_settings(num_words=10**12), "num_words"),
    "words are some": (change_settings(num_words=13), "12 entries for 13"),
    "words are true": (change_settings(num_words=True), "num_words"),
    "words are text": (change_settings(num_words="12"), "num_words"),
    "dim is 0": (change_settings(dim=0), "dim"),
    "dim is another": (change_settings(dim=6), "belongs to this model"),
    "model is no text": (change_settings(model=None), "'model'"),
    "model is another": (change_settings(model="x"), "does not belong to these weights"),
    "run is no object": (change_settings(run=[]), "'run'"),
    "adaptive without cutoffs": (change_settings(kind="adaptive"), "cutoffs"),
    "falling cutoffs": (change_settings(kind="adaptive", cutoffs=[5, 3]), "cutoffs"),
    "cutoffs beyond": (change_settings(kind="adaptive", cutoffs=[12]), "cutoffs"),
    "many cutoffs": (change_settings(kind="adaptive", cutoffs=[1, 2, 3]), "cutoffs"),
    "adaptive, other weights": (change_settings(kind="adaptive", cutoffs=[7]), "weight"),
    "a word more": (write("softmax_words.txt", "".join(f"{w}\n" for w in [*WORDS, "x"]).encode()),
                    "13 entries"),
    "a word twice": (write("softmax_words.txt", "".join(f"{w}\n" for w in [*WORDS[:-1], "the"])
                           .encode()), "twice"),
    "no marker": (write("softmax_words.txt", "".join(f"{w}\n" for w in ["x", *WORDS[1:]]).encode()),
                  "lack <S>"),
    "half a word": (cut("softmax_words.txt", 1), "middle of a line"),
    "words in Latin 1": (write("softmax_words.txt", b"\xff\n"), "UTF-8"),
    "weights cut short": (cut("softmax.safetensors", 4), "not a complete safetensors"),
    "weights are text": (
        write("softmax.safetensors", b"hello, world"),
        "not a complete safetensors",
    ),
    "huge header": (write("softmax.safetensors", b"\xff" * 100), "not a complete safetensors"),
    "weight of another shape": (change_tensors("weight", lambda t: t[:5].clone()), r"\(5, 5\)"),
    "weight missing": (change_tensors("bias", lambda _: None), "'bias'"),
    "weight too many": (change_tensors("other", lambda _: torch.zeros(1)), "'other'"),
    "whole numbers": (change_tensors("bias", lambda t: t.long()), "I64"),
    "not finite": (change_tensors("weight", lambda t: t.fill_(torch.nan)), "not finite"),
    "shares missing": (change_tensors("log_shares", lambda _: None), "'log_shares'"),
    "shares too few": (change_tensors("log_shares", lambda t: t[1:].clone()), r"\(11,\)"),
    "shares above 1": (change_tensors("log_shares", lambda t: t + 10), "share above 1"),
    "shares of nothing": (change_tensors("log_shares", lambda t: t - torch.inf), "not finite"),
}  # fmt: skip


@pytest.mark.parametrize(("damage", "message"), DAMAGES.values(), ids=DAMAGES)
def test_every_damage_has_its_sentence(damage, message, tmp_path):
    make_language_model().save(tmp_path)
    damage(tmp_path)
    with pytest.raises(ElmoreError, match=message) as caught:
        load_language_model(tmp_path)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 800


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (WORDS[:-1], "expected one log share per word, 11 in all"),
        ([*WORDS[:-1], "a\nb"], "cannot be stored as a line"),
        ([*WORDS[:-1], "the"], "twice"),
        (["x", *WORDS[1:]], "lack <S>"),
    ],
)
def test_words_that_cannot_be_kept_are_refused_before_anything_is_written(words, message, tmp_path):
    model = make_language_model()
    wrong = LanguageModel(
        elmo=model.elmo, softmax=model.softmax, words=words, log_shares=model.log_shares
    )
    assert_refused(lambda: wrong.save(tmp_path / "new"), message)
    assert not (tmp_path / "new").exists()


def test_a_folder_of_other_things_is_left_alone(tmp_path):
    (tmp_path / "letter.txt").write_text("Dear")
    assert_refused(lambda: make_language_model().save(tmp_path), "holds other files")
    assert peer_files.names(tmp_path) == ["letter.txt"]


def test_a_model_of_the_hub_is_fetched_with_its_softmax(tmp_path, monkeypatch):
    model = make_language_model()
    model.save(tmp_path / "snapshot")
    asked: list[str] = []

    def fetch(hub_id: str, *, allow_patterns: list[str]) -> str:
        assert hub_id == "owner/name"
        asked.extend(allow_patterns)
        return str(tmp_path / "snapshot")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetch)
    assert_equal(load_language_model("owner/name"), model)
    assert set(peer_files.names(tmp_path / "snapshot")) <= set(asked)
    load_model("owner/name")
    assert asked.count("softmax.safetensors") == 1
    assert find_model(find_source("owner/name")) == tmp_path / "snapshot"
    assert (asked.count("softmax.json"), asked.count("softmax.safetensors")) == (2, 1)


def test_a_repr_is_one_line():
    shown = repr(LanguageModel.load(tiny.TRAINED_MODEL))
    assert shown.startswith("<LanguageModel ")
    assert "3 layers of 48, LM head over " in shown
    assert len(shown) < 150
