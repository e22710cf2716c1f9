"""`elmore score` prints what the Python functions compute: tokens, sentences, words for a gap."""

import json

import pytest

from elmore.lm.scoring import fill_gap, score_sentences
from tests.lm.slow_language_model import SENTENCES, make_language_model


@pytest.fixture
def folder(tmp_path):
    make_language_model().save(tmp_path / "model")
    text = "\n".join(map(" ".join, SENTENCES))
    (tmp_path / "text.txt").write_text(text + "\n", encoding="utf-8")
    return tmp_path


def test_every_sentence_of_a_text_is_a_line_of_json(folder, elmore_command):
    result = elmore_command(
        "score", folder / "text.txt", "-m", folder / "model", "--tokenized", "--json"
    )
    assert (result.status, result.err) == (0, "")
    lines = [json.loads(line) for line in result.out.splitlines()]
    scores = score_sentences(make_language_model(), SENTENCES)
    for line, score in zip(lines, scores, strict=True):
        assert line["tokens"] == score.tokens
        assert line["is_known"] == score.is_known
        assert line["forward_lm"] == pytest.approx(score.forward_lm, rel=1e-5)
        assert line["backward_lm"] == pytest.approx(score.backward_lm, rel=1e-5)
        assert line["forward_total"] == pytest.approx(score.forward_total, rel=1e-5)
        assert line["backward_total"] == pytest.approx(score.backward_total, rel=1e-5)
        assert line["mean_total"] == pytest.approx(score.mean_total, rel=1e-5)


def test_a_sentence_is_shown_as_a_table(folder, elmore_command):
    result = elmore_command("score", "-m", folder / "model", "--sentence", "The [b]cat[/b] sat.")
    assert result.status == 0
    tokens = ["The", "[", "b", "]", "cat", "[", "/", "b", "]", "sat", "."]
    (score,) = score_sentences(make_language_model(), [tokens])
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in result.out.splitlines()]
    rows = [row for row in rows if row]
    assert rows[0] == ["<S>", "", f"{score.backward_lm[0]:.3f}"]
    assert [row[0].removesuffix(" (as <UNK>)") for row in rows[1:-2]] == tokens
    assert ["cat", f"{score.forward_lm[4]:.3f}", f"{score.backward_lm[5]:.3f}"] in rows
    assert rows[1][0] == "The (as <UNK>)"
    assert rows[-2] == ["</S>", f"{score.forward_lm[-1]:.3f}", ""]
    assert rows[-1][1:] == [f"{score.forward_total:.3f}", f"{score.backward_total:.3f}"]


@pytest.mark.parametrize("option", ["--gap", "--sentence"])
def test_a_gap_is_filled(option, folder, elmore_command):
    given = ("score", "-m", folder / "model", option, "the ___ sat.", "--top", 3)
    wanted = fill_gap(make_language_model(), ["the", "___", "sat", "."], top=3)
    found = elmore_command(*given, "--json").json
    assert found["tokens"] == ["the", "___", "sat", "."]
    assert [filling["word"] for filling in found["fillings"]] == [w.word for w in wanted]
    for name in ("forward_lm", "backward_lm", "probability"):
        assert [filling[name] for filling in found["fillings"]] == pytest.approx(
            [getattr(filling, name) for filling in wanted], rel=1e-5
        )
    table = elmore_command(*given).out
    assert all(f"{filling.probability:.1%}" in table for filling in wanted)


def test_in_a_text_a_row_of_underscores_is_a_token_like_others(folder, elmore_command):
    result = elmore_command(
        "score", "-", "-m", folder / "model", "--json", stdin=b"Name: ___ Age: ___\n"
    )
    assert result.json["tokens"].count("___") == 2


def test_what_cannot_be_scored_is_one_sentence(folder, elmore_command):
    model = ("--model", folder / "model")
    for arguments, message in (
        ((*model, "--gap", "no gap here"), "expected exactly one gap, found 0"),
        ((*model, "--sentence", "___ and ___"), "expected exactly one gap, found 2"),
        ((*model, "--sentence", " "), "no tokens"),
        ((*model,), "give one of"),
        (("-", *model, "--gap", "___"), "give one of"),
        (("-", *model), "standard input has no sentences to score"),
        (("--model", folder / "none", "--sentence", "a"), "there is no model"),
    ):
        result = elmore_command("score", *arguments)
        assert result.status == 2, arguments
        assert message in " ".join(result.err.split())
        assert "Traceback" not in result.err
        assert result.out == ""
