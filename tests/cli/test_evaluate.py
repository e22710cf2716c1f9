"""`elmore evaluate` prints what the Python functions measure, and a sentence for what cannot be."""

import pytest

from elmore.config import StatePolicy
from elmore.corpus.prepare import prepare_corpus
from elmore.corpus.settings import PrepareSettings
from elmore.lm.perplexity import measure_losses
from elmore.read.documents import zero_state
from elmore.text.files import TextForm
from tests import tiny
from tests.lm.slow_language_model import DOCUMENTS, make_language_model

TEXT = "\n\n".join("\n".join(map(" ".join, document)) for document in DOCUMENTS) + "\n"


@pytest.fixture
def folder(tmp_path):
    make_language_model().save(tmp_path / "model")
    (tmp_path / "text.txt").write_text(TEXT, encoding="utf-8")
    return tmp_path


def measure(**options):
    model = make_language_model()
    return measure_losses(
        model.elmo, model.softmax, model.words, **{"documents": DOCUMENTS, **options}
    )


@pytest.mark.parametrize("state", list(StatePolicy))
def test_numbers_are_those_of_the_text(state, folder, elmore_command):
    result = elmore_command(
        "evaluate", folder / "text.txt", "--model", folder / "model", "--tokenized",
        "--state", state, "--json",
    )  # fmt: skip
    assert (result.status, result.err) == (0, "")
    totals = measure(state=state)
    facts = result.json
    assert (facts.pop("state"), facts.pop("initial")) == (state, "model")
    assert facts == pytest.approx(
        {
            "perplexity": totals.perplexity,
            "forward_perplexity": totals.forward_perplexity,
            "backward_perplexity": totals.backward_perplexity,
            "bits_per_character": totals.bits_per_character,
            "num_predictions": totals.num_predictions,
            "num_tokens": totals.num_tokens,
            "unknown_share": totals.unknown_share,
        },
        rel=1e-5,
    )


def test_by_default_state_is_carried_in_documents_and_a_table_is_printed(folder, elmore_command):
    result = elmore_command("evaluate", folder / "text.txt", "-m", folder / "model")
    assert result.status == 0
    totals = measure()
    for shown in (
        f"{totals.perplexity:,.2f}",
        f"{totals.forward_perplexity:,.2f}",
        f"{totals.backward_perplexity:,.2f}",
        f"{totals.bits_per_character:.3f}",
        f"{totals.unknown_share:.2%}",
        "and the ends of 11 sentences",
        "document",
    ):
        assert shown in result.out


@pytest.mark.slow
def test_a_prepared_corpus_is_measured_by_its_parts(folder, elmore_command):
    (folder / "heldout.txt").write_text("a dog sat .\nthe mat\n\nran on\n")
    prepare_corpus(
        [folder / "text.txt"],
        folder / "corpus",
        settings=PrepareSettings(form=TextForm.TOKENIZED),
        heldout_sources=[folder / "heldout.txt"],
        num_processes=1,
    )
    heldout = [[["a", "dog", "sat", "."], ["the", "mat"]], [["ran", "on"]]]
    for arguments, documents in (((), heldout), (("--part", "train"), DOCUMENTS)):
        result = elmore_command(
            "evaluate", folder / "corpus", "-m", folder / "model", *arguments, "--json"
        )
        totals = measure(documents=documents)
        assert result.json["num_predictions"] == totals.num_predictions
        assert result.json["perplexity"] == pytest.approx(totals.perplexity, rel=1e-5)
    shard = folder / "corpus" / "shards" / "00000001.safetensors"  # that of the held-out text
    whole = shard.read_bytes()
    shard.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    result = elmore_command("evaluate", folder / "corpus", "-m", folder / "model")
    assert (result.status, result.out) == (2, "")
    assert f"{shard} is damaged" in result.err


def test_sources_of_a_corpus_are_measured_one_by_one(folder, elmore_command):
    heldout = {"news": [[["a", "dog", "sat", "."], ["the", "mat"]]], "mail": [[["ran", "on"]]]}
    for name, documents in heldout.items():
        (folder / f"{name}.txt").write_text("\n".join(map(" ".join, documents[0])) + "\n")
    prepare_corpus(
        [folder / "text.txt"],
        folder / "corpus",
        settings=PrepareSettings(form=TextForm.TOKENIZED),
        heldout_sources=[folder / "news.txt", folder / "mail.txt"],
        num_processes=1,
    )
    arguments = ("evaluate", folder / "corpus", "-m", folder / "model", "--by-source")
    found = elmore_command(*arguments, "--json").json["sources"]
    assert list(found) == ["news", "mail"]
    shown = elmore_command(*arguments).out
    for name, documents in heldout.items():
        totals = measure(documents=documents)
        assert found[name]["perplexity"] == pytest.approx(totals.perplexity, rel=1e-5)
        assert f"{totals.backward_perplexity:,.2f}" in shown


def test_sources_of_the_same_name_are_separate_and_those_without_text_are_named(
    folder, elmore_command
):
    paths = [folder / place / "news.txt" for place in ("2019", "2020")]
    for path, documents in zip(paths, ("a dog sat .\n\nran on\n" * 9, "the mat\n"), strict=True):
        path.parent.mkdir()
        path.write_text(documents)
    prepare_corpus(
        paths,
        folder / "corpus",
        settings=PrepareSettings(form=TextForm.TOKENIZED, heldout=0.1),
        num_processes=1,
    )
    arguments = ("evaluate", folder / "corpus", "-m", folder / "model", "--by-source")
    found = elmore_command(*arguments, "--json").json
    assert (list(found["sources"]), found["sources_without_text"]) == (["2019/news"], ["2020/news"])
    result = elmore_command(*arguments)
    assert "2019/news" in result.out
    assert "note: no held-out text: 2020/news (measure the training text with" in result.err
    found = elmore_command(*arguments, "--json", "--part", "train").json
    assert list(found["sources"]) == ["2019/news", "2020/news"]
    assert found["sources_without_text"] == []


def test_a_text_can_start_from_zeros_and_end_early(folder, elmore_command):
    result = elmore_command(
        "evaluate", "-", "-m", folder / "model", "--tokenized", "--initial", "zeros",
        "--max-tokens", 6, "--json", stdin=TEXT.encode(),
    )  # fmt: skip
    initial = zero_state(make_language_model().elmo.bilm)
    wanted = measure(documents=[DOCUMENTS[0][:2]], initial_state=initial)
    assert result.json["num_predictions"] == wanted.num_predictions == 9
    assert result.json["perplexity"] == pytest.approx(wanted.perplexity, rel=1e-5)


@pytest.mark.slow
def test_what_cannot_be_measured_is_one_sentence(folder, elmore_command):
    (folder / "empty.txt").write_text("\n\n")
    tiny.model().save_pretrained(folder / "plain")
    model = ("--model", folder / "model")
    for arguments, message in (
        ((folder / "empty.txt", *model), "empty.txt has no sentences to measure"),
        ((folder / "text.txt", "--model", folder / "plain"), "has no softmax"),
        ((folder / "none.txt", *model), "there is no file"),
        ((folder / "text.txt", "--model", folder / "none"), "there is no model"),
        ((folder / "model", *model), "elmore: "),
        ((folder / "text.txt", *model, "--part", "train"), "--part"),
        ((folder / "text.txt", *model, "--by-source"), "--by-source needs a prepared corpus"),
        ((folder / "model", *model, "--form", "raw"), "--form"),
    ):
        result = elmore_command("evaluate", *arguments)
        assert result.status == 2, arguments
        assert message in result.err
        assert "Traceback" not in result.err
        assert result.out == ""
