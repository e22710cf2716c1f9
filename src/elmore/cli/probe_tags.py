"""`elmore probe tags`: what each layer of a model knows about tags."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elmore.cli import options
from elmore.cli.display import show_status
from elmore.cli.tables import print_table

if TYPE_CHECKING:
    from elmore.probes.layer_views import TagScore


def probe_tags_command(
    train: Annotated[
        Path, typer.Argument(help="Tagged sentences to train on, possibly compressed.")
    ],
    dev: Annotated[Path, typer.Argument(help="Dev data, used for early stopping.")],
    test: Annotated[Path, typer.Argument(help="Test data.")],
    model: options.Model = None,
    column: Annotated[
        str,
        typer.Option(
            help="Column with the tags: upos, xpos or deprel in CoNLL-U files; a number in other "
            "files, which have the token in column 1 and a blank line between sentences."
        ),
    ] = "upos",
    vectors: options.StaticVectors = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Random seed for the order of the training tokens.")
    ] = 0,
    options_path: options.Options = None,
    token_embeddings: options.TokenEmbeddings = None,
    vocabulary: options.Vocabulary = None,
    device: options.Device = "cpu",
    precision: options.PrecisionOption = "f32",
    as_json: options.Json = False,
) -> None:
    """Measure how well a linear classifier predicts tags from each layer's vectors.

    Also scored: the average of the layers, a mix learned with the classifier, static word vectors
    if given, and the most frequent tag of each word. Unseen words are those not in TRAIN.

    For example:

        elmore probe tags train.conllu dev.conllu test.conllu --model model/

        elmore probe tags eng.train eng.testa eng.testb --column 2 --vectors glove.6B.50d.txt
    """
    from elmore.probes.tagged_data import read_tagged  # noqa: PLC0415  brings no torch yet

    # Find mistakes in the data before a model is loaded.
    tagged = {
        part: read_tagged(path, column=column)
        for part, path in (("train", train), ("dev", dev), ("test", test))
    }
    from elmore.probes.layer_views import TaggedParts, score_views  # noqa: PLC0415  brings torch
    from elmore.probes.linear_probe import ProbeSettings  # noqa: PLC0415
    from elmore.text.word_vectors import read_word_vectors  # noqa: PLC0415

    words = read_word_vectors(vectors) if vectors is not None else None
    embedder = options.load_embedder(
        model,
        options=options_path,
        token_embeddings=token_embeddings,
        vocabulary=vocabulary,
        device=device,
        precision=precision,
    )
    with show_status("reading") as on_progress:
        scores = score_views(
            TaggedParts(**tagged),
            embedder,
            words=words,
            settings=ProbeSettings(seed=seed),
            on_progress=on_progress,
        )
    if as_json:
        print(json.dumps({"column": column, "seed": seed, "scores": [*map(asdict, scores)]}))
    else:
        _print_scores(scores)


def _print_scores(scores: "list[TagScore]") -> None:
    rows = []
    for score in scores:
        shown = (score.dev.overall, score.test.overall, score.test.unseen)
        rows.append((score.name, *("-" if share is None else f"{share:.2%}" for share in shown)))
    print_table(("", "dev", "test", "test, unseen words"), rows)
    test = scores[0].test
    print(f"{test.num_tokens:,} test tokens, {test.num_unseen:,} of them unseen words")
    for score in scores:
        if score.shares is not None:
            shares = ", ".join(f"{share:.3f}" for share in score.shares)
            print(f"{score.name}: {shares} of layer 0 to {len(score.shares) - 1}")
