"""The commands as Python functions, with the same defaults, for notebooks and programs."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from elmore.arguments import explain_calls
from elmore.config import StatePolicy
from elmore.errors import DataError
from elmore.settings import (
    check_fields,
    check_range,
    find_config,
    read_choice,
    read_given_settings,
    read_path,
    write_changes,
)
from elmore.text.language import Language
from elmore.text.tokens import parse_sentence

if TYPE_CHECKING:
    from elmore.comparison.results import Comparison
    from elmore.corpus.corpus import Corpus
    from elmore.embed.embedder import Embedder
    from elmore.embed.layer_choice import Layers
    from elmore.explore.neighbors import Neighbor
    from elmore.explore.use_index import UseIndex
    from elmore.lm.evaluated_text import Documents
    from elmore.lm.finetune import FinetuneReport
    from elmore.lm.finish import RunReport
    from elmore.lm.perplexity import LossTotals
    from elmore.tasks.fit.fit import FitReport
    from elmore.tasks.fit.model import TaskModel
    from elmore.text.files import TextForm

MAX_COUNT = 1 << 62

PathLike = str | Path
Changes = Mapping[str, Any] | None


@explain_calls()
def tokenize(text: str, *, language: Language | str = Language.EN) -> list[str]:
    """Return the tokens of one sentence, as `Embedder.embed` splits it; this needs no model.

    >>> tokenize("Don't go.")
    ['Do', "n't", 'go', '.']
    """
    return parse_sentence(text, language=Language(read_choice("language", language, Language)))


@explain_calls()
def prepare(
    text: PathLike | Sequence[PathLike],
    out: PathLike,
    *,
    heldout_text: PathLike | Sequence[PathLike] = (),
    processes: int | None = None,
    restart: bool = False,
    **settings: Any,
) -> "Corpus":
    """Prepare text files for pretraining; like `elmore prepare`.

    `text` is a path, a pattern such as "texts/*.txt", or a list of them; so is `heldout_text`.
    `settings` are those of `PrepareSettings`, such as `max_words=50_000` or `heldout=0.02`. If the
    call is interrupted, repeat it to resume. Several processes import the calling program, so
    protect its work with `if __name__ == "__main__"`, or give `processes=1`.

    ```python
    corpus = elmore.prepare("book.txt", "corpus", min_count=2)
    print(corpus.train.num_tokens, len(corpus.vocabulary))
    ```
    """
    from elmore.corpus.prepare import prepare_corpus  # noqa: PLC0415  brings numpy
    from elmore.corpus.settings import PrepareSettings  # noqa: PLC0415

    return prepare_corpus(
        text,
        read_path("out", out),
        settings=PrepareSettings(**check_fields(PrepareSettings, "elmore.prepare", settings)),
        heldout_sources=heldout_text,
        num_processes=processes,
        restart=restart,
    )


@explain_calls()
def pretrain(
    corpus: "PathLike | Corpus",
    out: PathLike,
    *,
    settings: PathLike | Mapping[str, Any] = "small",
    changes: Changes = None,
    weights: Mapping[str, int] | None = None,
    start_from: "PathLike | Embedder | None" = None,
    restart: bool = False,
    device: str = "cpu",
    config: PathLike | None = None,
) -> "RunReport | None":
    """Train a biLM on a prepared corpus, or resume; like `elmore pretrain`.

    `settings` is a TOML file or the name of one that comes with elmore (tiny, small, medium,
    original, ...). `changes` changes some of them: `{"training.rows": 64}`. `weights` says how
    often each source is read per epoch. `start_from` is a model whose weights training starts from,
    as a path or an embedder; the settings must have its architecture, or a file without [model].
    The trained model is in `out/model`. Under torchrun, only the first process gets a report; the
    others get None.

    ```python
    report = elmore.pretrain("corpus", "run", settings="tiny")
    embedder = elmore.load("run/model")
    ```
    """
    from elmore.embed.given_model import find_given_model  # noqa: PLC0415  brings torch
    from elmore.lm.pretrain import pretrain_model  # noqa: PLC0415
    from elmore.lm.settings import load_settings  # noqa: PLC0415

    name, written = read_given_settings(settings, changes, config, default="small")
    loaded = load_settings(
        find_config(str(name)),
        [*written, *write_changes(weights, prefix="training.weights.")],
        needs_model=start_from is None,
    )
    return pretrain_model(
        loaded,
        corpus,
        read_path("out", out),
        restart=restart,
        device=device,
        start_from=find_given_model(start_from, none_is_shipped=False),
    )


@explain_calls()
def finetune(
    text: "PathLike | Corpus | Sequence[PathLike]",
    out: PathLike,
    *,
    model: "PathLike | Embedder | None" = None,
    epochs: float = 1.0,
    max_new_words: int = 50_000,
    min_count: int = 3,
    heldout: float = 0.02,
    heldout_text: PathLike | Sequence[PathLike] = (),
    form: "TextForm | str | None" = None,
    language: Language | str = Language.EN,
    document_sentences: int | None = None,
    changes: Changes = None,
    restart: bool = False,
    device: str = "cpu",
) -> "FinetuneReport | None":
    """Fine-tune a model on the text of a domain, or resume; like `elmore finetune`.

    `text` is one or more text files, or a corpus that was prepared with `extends=True`. The model
    also learns new words of the domain. It is given by its path, by its hub id or as a loaded
    embedder. `changes` changes settings of the training run, such as
    `{"optimizer.learning_rate": 0.0005}`. The report has the perplexity of held-out text `before`
    and `after`; the new model is in `out/model`.

    ```python
    report = elmore.finetune("abstracts.txt", "papers")
    print(report.before.perplexity, report.after.perplexity)
    ```
    """
    from elmore.corpus.corpus import Corpus  # noqa: PLC0415  brings numpy
    from elmore.corpus.settings import PrepareSettings  # noqa: PLC0415
    from elmore.embed.given_model import find_given_model  # noqa: PLC0415  brings torch
    from elmore.lm.finetune import finetune_model  # noqa: PLC0415
    from elmore.lm.finetune_corpus import prepare_finetuning  # noqa: PLC0415

    source = find_given_model(model)
    settings, corpus = prepare_finetuning(
        [text.folder] if isinstance(text, Corpus) else _to_list(text),
        read_path("out", out),
        model=source,
        preparation=PrepareSettings(
            form=cast("TextForm | None", form),  # which checks both
            language=cast("Language", language),
            max_words=max_new_words,
            min_count=min_count,
            heldout=heldout,
            document_sentences=document_sentences,
        ),
        heldout_text=_to_list(heldout_text),
        epochs=epochs,
        changes=write_changes(changes),
        restart=restart,
        device=device,
    )
    return finetune_model(source, corpus, out, settings=settings, restart=restart, device=device)


@explain_calls()
def evaluate(
    text: "PathLike | Corpus | Iterable[str] | Documents",
    *,
    model: "PathLike | Embedder | None" = None,
    state: StatePolicy | str = StatePolicy.DOCUMENT,
    max_tokens: int | None = None,
    form: "TextForm | str | None" = None,
    language: Language | str = Language.EN,
    device: str = "cpu",
) -> "LossTotals":
    """Measure the perplexity of a text; like `elmore evaluate`.

    `text` is a text file (read as `form` says), a prepared corpus (its held-out part is measured),
    a list of strings (the sentences of one document), or documents: lists of tokenized sentences.
    `model` is a path, a hub id, or an embedder, which computes on its own device. The result has
    `perplexity`, `forward_perplexity`, `backward_perplexity` and `bits_per_character`.

    >>> import elmore
    >>> elmore.evaluate([[["The", "bank", "of", "the", "river", "."]]]).num_tokens
    6
    """
    from elmore.embed.given_model import open_language_model  # noqa: PLC0415  brings torch
    from elmore.lm.evaluated_text import open_documents  # noqa: PLC0415
    from elmore.lm.perplexity import measure_losses  # noqa: PLC0415

    policy = StatePolicy(read_choice("state", state, StatePolicy))
    if max_tokens is not None:
        check_range("max_tokens", max_tokens, 1, MAX_COUNT)
    documents = open_documents(text, form=form, language=language)
    loaded = open_language_model(model, device=device)
    return measure_losses(
        loaded.elmo,
        loaded.softmax,
        loaded.words,
        documents=documents,
        state=policy,
        max_tokens=max_tokens,
    )


@explain_calls()
def neighbors(
    word: str,
    sentences: "PathLike | UseIndex | Iterable[str | Sequence[str]]",
    *,
    query: str | Sequence[str] | None = None,
    model: "PathLike | Embedder | None" = None,
    layers: "Layers | None" = "top",
    top: int = 10,
    form: "TextForm | str | None" = None,
) -> "list[Neighbor]":
    """Return the most similar uses of a word in a text file, an index or a list of sentences.

    With `query`, a sentence that has the word, return the uses most similar to that one. Like
    `elmore neighbors`; `form` says how a file is read. With an index (`open_index` or its folder),
    `model` is only needed for `query`, and must be the index's.

    >>> import elmore
    >>> sentences = ["He sat on the bank of the river.", "Boats lay along the bank.", "A bank."]
    >>> best, *_ = elmore.neighbors("bank", sentences, layers=1)
    >>> best.context.sentence, best.other.sentence
    (0, 1)
    """
    from elmore.embed.embedder import Embedder, load  # noqa: PLC0415  brings torch
    from elmore.embed.layer_choice import AVERAGE  # noqa: PLC0415
    from elmore.explore.index_neighbors import find_indexed_neighbors  # noqa: PLC0415
    from elmore.explore.neighbors import nearest_pairs, nearest_to  # noqa: PLC0415
    from elmore.explore.use_index import UseIndex, open_index  # noqa: PLC0415
    from elmore.text.inputs import is_folder, open_input, parse_given  # noqa: PLC0415

    check_range("top", top, 0, MAX_COUNT)
    if not isinstance(word, str):
        raise DataError(f"word is {word!r:.60}; give a string")
    source = open_index(sentences) if is_folder(sentences) else sentences
    if isinstance(source, UseIndex) and query is None:
        chosen = model.layers if isinstance(model, Embedder) else AVERAGE
        return find_indexed_neighbors(
            source, word, layers=chosen if layers is None else layers, top=top
        )
    embedder = model if isinstance(model, Embedder) else load(model)
    tokens = None if query is None else parse_given(query, language=embedder.language)
    if isinstance(source, UseIndex):
        chosen = embedder.layers if layers is None else layers
        return find_indexed_neighbors(
            source, word, query=tokens, embedder=embedder, layers=chosen, top=top
        )
    given = open_input(source, form=form, language=embedder.language)
    parsed = (parse_given(sentence, language=embedder.language) for sentence in given)
    if tokens is None:
        return nearest_pairs(embedder, word, parsed, layers=layers, top=top)
    return nearest_to(embedder, word, parsed, query=tokens, layers=layers, top=top)


@explain_calls()
def fit(
    task: str,
    out: PathLike | None = None,
    *,
    data: PathLike | None = None,
    train: PathLike | None = None,
    dev: PathLike | None = None,
    test: PathLike | None = None,
    model: "PathLike | Embedder | None" = None,
    words: PathLike | None = None,
    settings: PathLike | Mapping[str, Any] | None = None,
    changes: Changes = None,
    accept: bool = False,
    restart: bool = False,
    device: str = "cpu",
    config: PathLike | None = None,
) -> "FitReport":
    """Train a task network with ELMo vectors, or resume; like `elmore fit`.

    Give a folder (`data`), or `train` and `dev`. `model` is the biLM: its path, its hub id or a
    loaded embedder. `words` is a file of word vectors. `settings` is a TOML file; without it, the
    task's own settings are used. `changes` changes some of them: `{"elmo.where": "both"}`. `out` is
    by default a folder with the name of the task. `accept` trains even if the data looks wrong.

    ```python
    report = elmore.fit("ner", "entities", data="conll2003")
    print(report.scores["test"])
    ```
    """
    from elmore.embed.given_model import find_given_model  # noqa: PLC0415  brings torch
    from elmore.tasks.fit.elmo import ElmoChoice  # noqa: PLC0415
    from elmore.tasks.fit.fit import fit_task  # noqa: PLC0415
    from elmore.tasks.fit.named_task import open_task  # noqa: PLC0415

    file, written = read_given_settings(settings, changes, config)
    loaded, parts = open_task(
        task, data=data, train=train, dev=dev, test=test, words=words, config=file, changes=written
    )
    return fit_task(
        loaded,
        parts,
        Path(loaded.kind) if out is None else out,
        elmo=ElmoChoice(name=find_given_model(model)),
        accept=accept,
        restart=restart,
        device=device,
    )


@explain_calls()
def compare(
    task: str,
    out: PathLike | None = None,
    *,
    data: PathLike | None = None,
    train: PathLike | None = None,
    dev: PathLike | None = None,
    test: PathLike | None = None,
    model: "PathLike | Embedder | None" = None,
    words: PathLike | None = None,
    variants: Sequence[str] = ("without", "input"),
    shares: Sequence[float] = (100,),
    seeds: int = 3,
    settings: PathLike | Mapping[str, Any] | None = None,
    changes: Changes = None,
    accept: bool = False,
    restart: bool = False,
    device: str = "cpu",
) -> "Comparison":
    """Train a task with and without ELMo, over several seeds; like `elmore compare`.

    `variants` are from: without, input, output, both, top, average, finetuned, domain. `shares` are
    percentages of the training data. The other arguments are those of `fit`. The folder `out`, by
    default `compare-TASK`, gets report.html and report.json. If the call is interrupted, repeat it
    to resume. The result has `runs`, each with `variant`, `share`, `seed` and `scores`.

    ```python
    comparison = elmore.compare("sentiment", data="sst", seeds=5)
    for run in comparison.runs:
        print(run.variant, run.seed, run.scores["test"])
    ```
    """
    from elmore.comparison.compare_task import compare_task, read_shares  # noqa: PLC0415
    from elmore.embed.given_model import find_given_model  # noqa: PLC0415  brings torch
    from elmore.tasks.fit.named_task import open_task  # noqa: PLC0415

    file, written = read_given_settings(settings, changes, None)
    loaded, parts = open_task(
        task, data=data, train=train, dev=dev, test=test, words=words, config=file, changes=written
    )
    return compare_task(
        loaded,
        parts,
        Path(f"compare-{loaded.kind}" if out is None else out),
        variants=_to_list(variants),
        shares=read_shares(_to_list(shares)),
        num_seeds=seeds,
        command=f"elmore.compare({loaded.kind!r}, ...)",
        model=find_given_model(model),
        accept=accept,
        restart=restart,
        device=device,
    )


@explain_calls()
def load_task(
    folder: PathLike, *, model: "PathLike | Embedder | None" = None, device: str = "cpu"
) -> "TaskModel":
    """Load a task network that `fit` trained; `model` names its biLM if that has moved.

    ```python
    task = elmore.load_task("entities")
    elmore.predict(task, ["John lives in Paris."])  # [['B-PER', 'O', 'O', 'B-LOC', 'O']]
    ```
    """
    from elmore.embed.given_model import find_given_model  # noqa: PLC0415  brings torch
    from elmore.tasks.fit.folder import load_task_model  # noqa: PLC0415

    return load_task_model(read_path("folder", folder), elmo=find_given_model(model), device=device)


@explain_calls()
def predict(
    folder: "PathLike | TaskModel",
    examples: Iterable[Any],
    *,
    model: "PathLike | Embedder | None" = None,
    device: str = "cpu",
) -> list[Any]:
    """Return the predictions of a trained task for some examples, in their order.

    `folder` is what `fit` wrote, or what `load_task` returns. docs/guides/tasks.md lists what an
    example is in each task, such as a sentence for entities.

    ```python
    elmore.predict("entities", ["John lives in Paris."])  # [['B-PER', 'O', 'O', 'B-LOC', 'O']]
    ```
    """
    from elmore.text.inputs import check_sentences  # noqa: PLC0415

    given = check_sentences(examples, what="examples")
    loaded = folder if hasattr(folder, "predict") else load_task(folder, model=model, device=device)
    return [prediction for _, prediction in loaded.predict(given)]


def _to_list(given: Any) -> list[Any]:
    """Return a list of what was given, which may be a single one."""
    return [given] if isinstance(given, str | Path | int | float) else list(given)
