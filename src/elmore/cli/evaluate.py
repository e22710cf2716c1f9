"""`elmore evaluate`: how well a model predicts a text."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elmore.cli import options
from elmore.cli.display import show_status
from elmore.cli.tables import print_facts, print_table
from elmore.config import StatePolicy
from elmore.errors import DataError
from elmore.text.documents import group_documents, limit_sentences
from elmore.text.language import Language
from elmore.wording import count

if TYPE_CHECKING:
    from elmore.lm.language_model import LanguageModel
    from elmore.lm.perplexity import LossTotals

Document = list[list[str]]


class Part(StrEnum):
    """Which part of a prepared corpus."""

    HELDOUT = "heldout"
    TRAIN = "train"


class Initial(StrEnum):
    """The LSTM state that a text starts from."""

    MODEL = "model"
    ZEROS = "zeros"


def evaluate(
    text: Annotated[
        str,
        typer.Argument(
            help="Text file, possibly compressed, - for standard input, or a prepared corpus."
        ),
    ],
    model: options.PredictingModel = None,
    options_path: options.Options = None,
    vocabulary: options.CheckpointVocabulary = None,
    softmax: options.Softmax = None,
    state: Annotated[
        StatePolicy,
        typer.Option(
            help="The LSTM state that a sentence starts from. document: carries over within a "
            "document, as in training. reset: always the same. stream: always carries over."
        ),
    ] = StatePolicy.DOCUMENT,
    initial: Annotated[
        Initial,
        typer.Option(
            help="The LSTM state that a text starts from: the model's rest state, or zeros."
        ),
    ] = Initial.MODEL,
    max_tokens: Annotated[
        int | None,
        typer.Option(min=1, help="Stop after the sentence that reaches this many tokens."),
    ] = None,
    part: Annotated[
        Part | None,
        typer.Option(help="Part of a prepared corpus to measure. Default: heldout."),
    ] = None,
    by_source: Annotated[
        bool,
        typer.Option(
            "--by-source", help="Measure each source file of a prepared corpus separately."
        ),
    ] = False,
    tokenized: options.Tokenized = False,
    form: options.Form = None,
    language: options.LanguageOption = Language.EN,
    device: options.Device = "cpu",
    as_json: options.Json = False,
) -> None:
    """Measure the perplexity of a text, predicting every token once in each direction.

    Probabilities are over the whole vocabulary. All tokens outside it count as one word, `<UNK>`,
    so only compare models with the same vocabulary.

    For example:

        elmore evaluate heldout.txt

        elmore evaluate corpus/ --model model/ --part heldout --json

        elmore evaluate heldout.txt --model model.ckpt-935588 --vocabulary vocab.txt
    """
    without: list[str] = []
    if Path(text).is_dir():
        if tokenized or form is not None:
            raise typer.BadParameter(f"{text} is a prepared corpus; leave out --form")
        part = part or Part.HELDOUT
        texts, without = _open_corpus(text, part, by_source=by_source)
    elif part is not None or by_source:
        option = "--by-source" if part is None else "--part"
        raise typer.BadParameter(f"{option} needs a prepared corpus, but {text} is not one")
    else:
        sentences = options.open_sentences(
            text,
            tokenized=tokenized,
            form=form,
            language=language,
            state=StatePolicy.DOCUMENT,
        )
        texts = {"": sentences}
    # Only one policy needs documents; with the others, sentences do not wait for a document to end.
    documents = {
        name: group_documents(
            limit_sentences(sentences, max_tokens=max_tokens),
            by_sentence=state is not StatePolicy.DOCUMENT,
        )
        for name, sentences in texts.items()
    }
    loaded = options.load_language_model(
        model, device, options=options_path, vocabulary=vocabulary, softmax=softmax
    )
    totals = _measure(loaded, documents, state, initial)
    if not any(total.num_predictions for total in totals.values()):
        name = "standard input" if text == "-" else text
        raise DataError(
            f"{name} has no sentences to measure; give another text, or for a corpus without a "
            "held-out part, --part train"
        )
    about = {"state": str(state), "initial": str(initial)}
    facts = {
        name: {**_describe(total), **about}
        for name, total in totals.items()
        if total.num_predictions
    }
    if as_json:
        by_name = {"sources": facts, "sources_without_text": without}
        print(json.dumps(by_name if by_source else facts[""], ensure_ascii=False))
    elif by_source:
        _print_sources(facts)
        if without:
            print(_describe_missing(without, part), file=sys.stderr)
    else:
        _print_whole(facts[""])


def _describe(totals: "LossTotals") -> dict[str, Any]:
    return {
        "perplexity": totals.perplexity,
        "forward_perplexity": totals.forward_perplexity,
        "backward_perplexity": totals.backward_perplexity,
        "bits_per_character": totals.bits_per_character,
        "num_predictions": totals.num_predictions,
        "num_tokens": totals.num_tokens,
        "unknown_share": totals.unknown_share,
    }


def _describe_missing(sources: list[str], part: Part | None) -> str:
    listed = ", ".join(sources[:10]) + (f" and {len(sources) - 10} more" * (len(sources) > 10))
    if part is Part.TRAIN:
        return f"note: no text to train on: {listed}"
    return (
        f"note: no held-out text: {listed} (measure the training text with --part train, or hold "
        "out more in elmore prepare)"
    )


def _open_corpus(
    folder: str, part: Part, *, by_source: bool
) -> tuple[dict[str, Iterator[list[str]]], list[str]]:
    """Return the sentences of a part under the name "", or those of each source by its name.

    Also return the sources that have no text in this part.
    """
    from elmore.corpus.corpus import open_corpus  # noqa: PLC0415  brings numpy
    from elmore.corpus.sources import list_sources, split_by_input  # noqa: PLC0415

    corpus = open_corpus(Path(folder))
    whole = corpus.heldout if part is Part.HELDOUT else corpus.train
    parts = split_by_input(corpus, whole) if by_source else {"": whole}
    sources = list_sources(corpus, part=str(part)) if by_source else []
    sentences: dict[str, Iterator[list[str]]] = {
        name: chain.from_iterable([*document, []] for document in source.documents())
        for name, source in parts.items()
    }
    return sentences, [source for source in sources if source not in parts]


def _measure(
    loaded: "LanguageModel",
    documents: Mapping[str, Iterator[Document]],
    state: StatePolicy,
    initial: Initial,
) -> dict[str, "LossTotals"]:
    from elmore.lm.perplexity import measure_losses  # noqa: PLC0415
    from elmore.read.documents import zero_state  # noqa: PLC0415

    totals = {}
    # Text is read ahead, so the number of bytes read would not show the progress.
    with show_status("measuring") as show:
        for name, text in documents.items():
            totals[name] = measure_losses(
                loaded.elmo,
                loaded.softmax,
                loaded.words,
                documents=text,
                state=state,
                initial_state=zero_state(loaded.elmo.bilm) if initial is Initial.ZEROS else None,
                on_progress=partial(_show_tokens, show, name),
            )
    return totals


def _show_tokens(show: Callable[[str], None], name: str, num_tokens: int) -> None:
    show(f"measuring {name}".rstrip() + f": {num_tokens:,} tokens")


def _print_sources(facts: Mapping[str, dict[str, Any]]) -> None:
    rows = [
        (
            name,
            f"{own['num_tokens']:,}",
            f"{own['perplexity']:,.2f}",
            f"{own['forward_perplexity']:,.2f}",
            f"{own['backward_perplexity']:,.2f}",
            f"{own['bits_per_character']:.3f}",
            f"{own['unknown_share']:.2%}",
        )
        for name, own in facts.items()
    ]
    headings = ("source", "tokens", "perplexity", "forward", "backward", "bits per char", "outside")
    print_table(headings, rows, has_borders=False)


def _print_whole(facts: dict[str, Any]) -> None:
    num_ends = facts["num_predictions"] - facts["num_tokens"]
    start = "" if facts["initial"] == Initial.MODEL else ", from zeros"
    print_facts(
        {
            "perplexity": f"{facts['perplexity']:,.2f}",
            "forward": f"{facts['forward_perplexity']:,.2f}",
            "backward": f"{facts['backward_perplexity']:,.2f}",
            "bits per character": f"{facts['bits_per_character']:.3f}",
            "tokens": f"{facts['num_tokens']:,}, and the ends of {count(num_ends, 'sentence')}",
            "outside the vocabulary": f"{facts['unknown_share']:.2%} of the tokens",
            "state": f"{facts['state']}{start}",
        }
    )
