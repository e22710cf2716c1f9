"""`elmore score`: how likely sentences are, and which words fit in a gap."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elmore.cli import options
from elmore.cli.tables import print_table
from elmore.errors import DataError
from elmore.text.files import TextForm
from elmore.text.language import Language
from elmore.text.line_sentences import split_tokenized
from elmore.text.tokens import split_tokens

if TYPE_CHECKING:
    from elmore.lm.language_model import LanguageModel
    from elmore.lm.scoring import GapFilling, SentenceScore


def score(
    text: options.OptionalText = None,
    model: options.PredictingModel = None,
    options_path: options.Options = None,
    vocabulary: options.CheckpointVocabulary = None,
    softmax: options.Softmax = None,
    sentence: Annotated[
        str | None, typer.Option("--sentence", help="A sentence to score instead of a text.")
    ] = None,
    gap: Annotated[
        str | None,
        typer.Option("--gap", help="A sentence with one gap (___): find the words that fit best."),
    ] = None,
    top: Annotated[
        int, typer.Option("--top", "-n", min=1, help="Number of words to show for a gap.")
    ] = 10,
    candidates: Annotated[
        int, typer.Option(min=1, help="Number of words to try in the whole sentence.")
    ] = 50,
    tokenized: options.Tokenized = False,
    form: options.Form = None,
    language: options.LanguageOption = Language.EN,
    device: options.Device = "cpu",
    as_json: options.Json = False,
) -> None:
    """Compute the log-probability of every token, from the left and from the right.

    These are natural logarithms. The forward LM predicts each token and the end of the sentence
    from what precedes it, the backward LM each token and the beginning from what follows it. Each
    sentence is read on its own. With --gap: the words that make the whole sentence most likely, and
    their probability among the candidates.

    For example:

        elmore score letters.txt --model model/ --json

        elmore score --sentence "He sat on the bank of the river."

        elmore score --gap "The ___ raised interest rates."

        elmore score letters.txt --model model.ckpt-935588 --vocabulary vocab.txt
    """
    if [text, sentence, gap].count(None) != 2:
        raise typer.BadParameter("give one of: a text, --sentence, --gap")
    load = partial(
        options.load_language_model,
        model,
        device,
        options=options_path,
        vocabulary=vocabulary,
        softmax=softmax,
    )
    if text is not None:
        sentences = filter(
            None,
            options.open_sentences(text, tokenized=tokenized, form=form, language=language),
        )
        _score_text(load, text, sentences, as_json=as_json)
        return
    given = gap if gap is not None else sentence
    assert given is not None
    is_tokenized = tokenized or form is TextForm.TOKENIZED
    tokens = split_tokenized(given) if is_tokenized else split_tokens(given, language=language)
    if not tokens:
        raise DataError("the sentence has no tokens; give some text")
    from elmore.lm.scoring import GAP, check_gap, fill_gap, score_sentences  # noqa: PLC0415

    if gap is None and GAP not in tokens:
        for found in score_sentences(load(), [tokens]):
            _print_score(found, as_json=as_json)
        return
    check_gap(tokens)
    fillings = fill_gap(load(), tokens, top=top, num_candidates=candidates)
    _print_fillings(tokens, fillings, as_json=as_json)


def _score_text(
    load: "Callable[[], LanguageModel]",
    text: str,
    sentences: Iterator[list[str]],
    *,
    as_json: bool,
) -> None:
    first = next(sentences, None)
    if first is None:
        name = "standard input" if text == "-" else text
        raise DataError(f"{name} has no sentences to score; give another text")
    from elmore.lm.scoring import score_sentences  # noqa: PLC0415  brings torch

    for found in score_sentences(load(), chain([first], sentences)):
        _print_score(found, as_json=as_json)


def _print_score(found: "SentenceScore", *, as_json: bool) -> None:
    if as_json:
        facts = {
            "tokens": found.tokens,
            "is_known": found.is_known,
            "forward_lm": found.forward_lm,
            "backward_lm": found.backward_lm,
            "forward_total": found.forward_total,
            "backward_total": found.backward_total,
            "mean_total": found.mean_total,
        }
        print(json.dumps(facts, ensure_ascii=False))
        return
    rows = [("<S>", "", f"{found.backward_lm[0]:.3f}")]
    for token, is_known, ahead, back in zip(
        found.tokens, found.is_known, found.forward_lm[:-1], found.backward_lm[1:], strict=True
    ):
        shown = token if is_known else f"{token} (as <UNK>)"
        rows.append((shown, f"{ahead:.3f}", f"{back:.3f}"))
    rows.append(("</S>", f"{found.forward_lm[-1]:.3f}", ""))
    rows.append(("sentence", f"{found.forward_total:.3f}", f"{found.backward_total:.3f}"))
    print_table(("token", "forward", "backward"), rows)


def _print_fillings(tokens: list[str], fillings: "list[GapFilling]", *, as_json: bool) -> None:
    if as_json:
        facts: list[dict[str, Any]] = [
            {
                "word": filling.word,
                "forward_lm": filling.forward_lm,
                "backward_lm": filling.backward_lm,
                "probability": filling.probability,
            }
            for filling in fillings
        ]
        print(json.dumps({"tokens": tokens, "fillings": facts}, ensure_ascii=False))
        return
    rows = [
        (
            filling.word,
            f"{filling.forward_lm:.3f}",
            f"{filling.backward_lm:.3f}",
            f"{filling.probability:.1%}",
        )
        for filling in fillings
    ]
    print_table(("word", "forward", "backward", "probability among candidates"), rows)
