"""`elmore probe senses`: how well a model's vectors distinguish word senses."""

import itertools
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elmore.cli import options
from elmore.cli.display import show_status
from elmore.cli.tables import print_table
from elmore.config import StatePolicy
from elmore.errors import DataError

if TYPE_CHECKING:
    from elmore.probes.nearest_sense import Score, SenseUse, Views
    from elmore.probes.sense_data import Lemma, SenseSentence

Rows = dict[str, dict[str, "Score"]]  # by view or baseline, then by test set


def probe_senses_command(
    train: Annotated[
        Path,
        typer.Argument(
            help="Text with senses: SemCor as .jsonl, or .data.xml with .gold.key.txt next to it; "
            "possibly compressed."
        ),
    ],
    test: Annotated[
        list[Path],
        typer.Argument(help="Test sets in the same formats; several are also scored together."),
    ],
    model: options.Model = None,
    wordnet: Annotated[
        Path | None,
        typer.Option(help="WordNet's index.sense, for lemmas that are not in the training text."),
    ] = None,
    vectors: options.StaticVectors = None,
    options_path: options.Options = None,
    token_embeddings: options.TokenEmbeddings = None,
    vocabulary: options.Vocabulary = None,
    device: options.Device = "cpu",
    precision: options.PrecisionOption = "f32",
    state: options.State = StatePolicy.RESET,
    prior: Annotated[
        float,
        typer.Option(
            min=0.0,
            help="Prefer frequent senses: add this times the logarithm of a sense's share of its "
            "lemma in the training text to its cosine. Choose it on development data, around 0.05.",
        ),
    ] = 0.0,
    as_json: options.Json = False,
) -> None:
    """Predict word senses by the nearest mean vector, layer by layer; F1 in percent.

    Each sense is the mean vector of its uses in the training text, and each test word gets the
    nearest sense of its lemma. Without --wordnet, words whose lemma is not in the training text get
    no answer. With --state document, a file is read as one text, which gives more context.

    For example:

        elmore probe senses semcor.jsonl.xz senseval2.data.xml --model model/

        elmore probe senses semcor.jsonl.xz one.data.xml two.data.xml --wordnet index.sense

        elmore probe senses semcor.jsonl.xz senseval2.data.xml --prior 0.05

        elmore probe senses semcor.jsonl.xz senseval2.data.xml --state document
    """
    from elmore.probes.sense_data import read_first_senses, read_sense_sentences  # noqa: PLC0415
    from elmore.text.word_vectors import read_word_vectors  # noqa: PLC0415

    tests = {name: list(read_sense_sentences(path)) for name, path in _name_tests(test).items()}
    for name, sentences in tests.items():
        if not any(sentence.targets for sentence in sentences):
            raise DataError(f"the test set {name} has no words with senses; give another file")
    first_senses = None if wordnet is None else read_first_senses(wordnet)
    words = None if vectors is None else read_word_vectors(vectors)
    training = read_sense_sentences(train)
    training = chain(list(islice(training, 1)), training)
    embedder = options.load_embedder(
        model,
        options=options_path,
        token_embeddings=token_embeddings,
        vocabulary=vocabulary,
        device=device,
        precision=precision,
        state=state,
    )
    from elmore.probes.nearest_sense import (  # noqa: PLC0415  brings torch
        embed_sentences,
        find_static_uses,
        find_uses,
        make_views,
    )

    with _counting_sentences() as count:
        rows = _probe(
            training,
            tests,
            find_uses=lambda sentences: find_uses(embed_sentences(embedder, count(sentences))),
            views=make_views(embedder.num_layers),
            first_senses=first_senses,
            prior=prior,
        )
        if not rows:
            raise DataError(f"{train} has no words with senses; give another file")
        if words is not None:
            rows |= _probe(
                read_sense_sentences(train),
                tests,
                find_uses=lambda sentences: find_static_uses(count(sentences), words),
                views={"static vectors around": [1.0]},
                first_senses=first_senses,
                prior=prior,
            )
    if as_json:
        facts = {name: {"tests": f1, "all": all_f1} for name, f1, all_f1 in _list_f1(rows)}
        print(json.dumps({"num_targets": _count_targets(rows), "f1": facts}))
    else:
        _print_f1(rows)


def _name_tests(paths: list[Path]) -> dict[str, Path]:
    """Name each test set by its file name up to the first dot; if two are equal, by their paths.

    >>> list(_name_tests([Path("a/one.data.xml"), Path("two.jsonl")]))
    ['one', 'two']
    """
    named = {path.name.partition(".")[0]: path for path in paths}
    return named if len(named) == len(paths) else {str(path): path for path in paths}


def _probe(
    training: Iterable["SenseSentence"],
    tests: dict[str, list["SenseSentence"]],
    *,
    find_uses: Callable[[Iterable["SenseSentence"]], Iterable["SenseUse"]],
    views: "Views",
    first_senses: "dict[Lemma, str] | None",
    prior: float,
) -> Rows:
    """Score baselines and views on every test set; empty if the training text has no senses."""
    from elmore.probes.nearest_sense import SenseSums, score_baselines, score_views  # noqa: PLC0415

    trained = SenseSums(find_uses(training))
    rows: Rows = {}
    for name, sentences in tests.items() if trained else ():
        targets = (target for sentence in sentences for target in sentence.targets)
        for row, score in {
            **score_baselines(targets, trained, first_senses=first_senses),
            **score_views(
                find_uses(sentences),
                trained,
                views=views,
                first_senses=first_senses,
                prior=prior,
            ),
        }.items():
            rows.setdefault(row, {})[name] = score
    return rows


def _list_f1(rows: Rows) -> Iterator[tuple[str, dict[str, float], float]]:
    """Yield each row's name, and its F1 in percent per test set and over all of them."""
    for name, scores in rows.items():
        first, *others = scores.values()
        together = sum(others, start=first)
        yield name, {test: 100 * score.f1 for test, score in scores.items()}, 100 * together.f1


def _count_targets(rows: Rows) -> dict[str, int]:
    scores = next(iter(rows.values()))
    return {test: score.num_targets for test, score in scores.items()}


@contextmanager
def _counting_sentences() -> Iterator[
    Callable[[Iterable["SenseSentence"]], Iterator["SenseSentence"]]
]:
    """Count the sentences read, on a terminal."""
    with show_status("reading") as show:
        numbers = itertools.count(1)

        def count(sentences: Iterable["SenseSentence"]) -> Iterator["SenseSentence"]:
            for sentence in sentences:
                show(f"reading {next(numbers):,} sentences")
                yield sentence

        yield count


def _print_f1(rows: Rows) -> None:
    num_targets = _count_targets(rows)
    headings = ["F1", *(f"{test}\n({number:,})" for test, number in num_targets.items())]
    has_all = len(num_targets) > 1
    if has_all:
        headings.append(f"all\n({sum(num_targets.values()):,})")
    lines = [
        (name, *(f"{value:.1f}" for value in [*f1.values(), *([all_f1] if has_all else [])]))
        for name, f1, all_f1 in _list_f1(rows)
    ]
    print_table(headings, lines)
