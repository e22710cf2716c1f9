"""Coreference: which mentions in a document refer to the same entity (Lee et al., 2017)."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from elmore.config import MAX_DIM
from elmore.errors import DataError
from elmore.settings import check_number, check_positive, check_range, check_share
from elmore.tasks.data.coreference import ClusteredDocument, SpokenSentence, read_documents
from elmore.tasks.data.file_forms import FileForm, reads
from elmore.tasks.data.lines import read_lines, refuse_none
from elmore.tasks.data.mentions import Clusters
from elmore.tasks.inputs.token_input import TokenInput
from elmore.tasks.kinds.plain_inputs import is_list, refuse_input, take_tokens
from elmore.tasks.metrics.coreference import (
    CoreferenceScore,
    load_assignment,
    score_clusters,
)
from elmore.tasks.networks.pair_scores import UNKNOWN_SPEAKER
from elmore.tasks.networks.span_ranker import DocumentFeatures, SpanRanker
from elmore.tasks.task import Labels, Scores, Sentences, Task
from elmore.text.files import TextForm, read_sentences
from elmore.text.sentences import split_sentences
from elmore.text.tokens import split_tokens

# The first line of CoNLL-2012 and OntoGUM columns.
_BEGINNING = re.compile(r"# ?begin document\b")

FORMS = (FileForm.CONLL2012, FileForm.CONLLU)
EXPECTED = "CoNLL-2012 columns or CoNLL-U (.conllu) with Entity="


@dataclass(frozen=True, kw_only=True)
class CoreferenceSettings:
    """The sizes and limits of the network, and which documents are read."""

    hidden_dim: int = 100
    """Per LSTM direction."""
    num_layers: int = 1
    span_dim: int = 150
    scorer_dim: int = 150
    """Width of the hidden layers that score mentions and pairs of mentions."""
    max_span_tokens: int = 10
    """Longer mentions cannot be found; in OntoGUM and LitBank these are 2 %."""
    spans_per_token: float = 0.4
    """The number of spans kept as possible mentions, per token of the document."""
    allows_crossing: bool = False
    """Whether kept spans may partially overlap."""
    max_antecedents: int = 50
    max_train_sentences: int = 50
    """Training uses this many sentences of a longer document, different ones each time."""
    mention_weight: float = 0.2
    """Weight of the loss for recognizing mentions; 0 trains as in the paper."""
    max_hidden_share: float = 0.05
    """Documents with a larger share of "_" words are skipped; 1 keeps them all."""
    dropout: float = 0.3

    def __post_init__(self) -> None:
        """Check all values."""
        for name in ("hidden_dim", "span_dim", "scorer_dim"):
            check_range(f"task.{name}", getattr(self, name), 1, MAX_DIM)
        check_range("task.num_layers", self.num_layers, 1, 100)
        for name in ("max_span_tokens", "max_antecedents", "max_train_sentences"):
            check_range(f"task.{name}", getattr(self, name), 1, 10_000)
        check_positive("task.spans_per_token", self.spans_per_token)
        check_number("task.spans_per_token", self.spans_per_token, least=0, most=100)
        check_number("task.mention_weight", self.mention_weight, least=0, most=100)
        check_number("task.max_hidden_share", self.max_hidden_share, least=0, most=1)
        check_share("task.dropout", self.dropout)


class CoreferenceTask(Task):
    """Reads documents and predicts clusters of (start, end), each of at least two mentions."""

    name = "coreference"
    main_score = "f1"

    @reads(*FORMS, expected=EXPECTED)
    def read(self, path: Path) -> Iterator[ClusteredDocument]:
        """Yield the documents of a file, or of a folder's files in alphabetical order."""
        documents = chain.from_iterable(map(read_documents, _list_files(path)))
        most = self.settings.max_hidden_share
        # A file may have none: OntoGUM has one file per document, and some have hidden words.
        return (document for document in documents if document.hidden_share <= most)

    @reads(*FORMS, expected=f"text, or {EXPECTED}", takes_text=True)
    def read_unlabeled(self, path: Path) -> Iterator[ClusteredDocument]:
        """Yield documents to predict on, from the same formats or plain text."""
        for file in _list_files(path):
            if _has_columns(file):
                yield from read_documents(file, reads_clusters=False)
            else:
                yield from _read_text(file)

    def parse(self, given: Any) -> ClusteredDocument:
        """Return an example from a string or a list of tokenized sentences, or unchanged."""
        if isinstance(given, ClusteredDocument):
            return given
        sentences: list[list[str] | None] = []
        if isinstance(given, str):
            sentences = [split_tokens(sentence) for sentence in split_sentences(given)]
        elif is_list(given) and all(map(is_list, given)):
            sentences = [take_tokens(sentence) for sentence in given]
        if not sentences or None in sentences:
            expected = "a document: a string that is not blank, or a list of tokenized sentences"
            raise refuse_input(given, task=self.name, expected=expected)
        spoken = tuple(SpokenSentence(tokens=tuple(s or ()), speaker=None) for s in sentences)
        return ClusteredDocument(name="", sentences=spoken, clusters=())

    def find_sentences(self, examples: Sequence[ClusteredDocument]) -> tuple[Sentences, ...]:
        """Return all sentences, in one role."""
        return ([sentence.tokens for document in examples for sentence in document.sentences],)

    def find_labels(self, examples: Iterable[ClusteredDocument]) -> Labels:
        """Return no labels, but check that there are clusters to learn from."""
        load_assignment()  # here, because training needs scores and prediction does not
        if not any(document.clusters for document in examples):
            raise DataError(
                "no training document has a cluster of mentions, so there is nothing to learn; "
                "give files with clusters, in the last column or as Entity="
            )
        return ()

    def locate(self, example: ClusteredDocument) -> str:
        """Return the document's name."""
        return f"the document {example.name}"

    def build(self, tokens: TokenInput, *, labels: Labels) -> SpanRanker:  # noqa: ARG002
        """Return an untrained network."""
        settings = asdict(self.settings)
        del settings["max_hidden_share"]  # only for reading
        return SpanRanker(tokens=tokens, **settings)

    def prepare(
        self,
        examples: Sequence[ClusteredDocument],
        *,
        labels: Labels,  # noqa: ARG002
        with_gold: bool,
    ) -> DocumentFeatures:
        """Return the features of one document."""
        if len(examples) != 1:
            raise ValueError(f"expected one document per batch, got {len(examples)}")
        (document,) = examples
        gold = [
            (mention, number)
            for number, cluster in enumerate(document.clusters)
            for mention in cluster
        ]
        mentions = torch.tensor([mention for mention, _ in gold], dtype=torch.int64)
        clusters = torch.tensor([number for _, number in gold], dtype=torch.int64)
        return DocumentFeatures(
            speakers=torch.tensor(_number_speakers(document.sentences)),
            mentions=mentions.reshape(-1, 2) if with_gold else None,
            clusters=clusters if with_gold else None,
        )

    def score(
        self, examples: Sequence[ClusteredDocument], predictions: Sequence[Clusters]
    ) -> Scores:
        """Return F1 in percent: MUC, B-cubed, CEAF, their mean, and mentions."""
        score = CoreferenceScore()
        for document, clusters in zip(examples, predictions, strict=True):
            score += score_clusters(document.clusters, clusters, keep_singletons=False)
        return {
            "f1": 100 * score.mean_f1,
            "muc": 100 * score.muc.f1,
            "b cubed": 100 * score.b_cubed.f1,
            "ceaf": 100 * score.ceaf.f1,
            "mentions": 100 * score.mentions.f1,
        }

    def to_json(self, example: ClusteredDocument, prediction: Clusters) -> dict[str, Any]:
        """Return the document's tokens, its clusters, and the text of each mention."""
        tokens = example.tokens
        return {
            "name": example.name,
            "tokens": list(tokens),
            "clusters": [[list(mention) for mention in cluster] for cluster in prediction],
            "mentions": [
                [" ".join(tokens[start:end]) for start, end in cluster] for cluster in prediction
            ],
        }


def _number_speakers(sentences: Iterable[SpokenSentence]) -> list[int]:
    numbers: dict[str | None, int] = {None: UNKNOWN_SPEAKER}
    return [numbers.setdefault(sentence.speaker, len(numbers)) for sentence in sentences]


def _list_files(path: Path) -> list[Path]:
    """Return a file, or the files of a folder: OntoGUM and LitBank have one file per document."""
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.iterdir() if file.is_file() and file.name[0] != ".")
    if not files:
        raise DataError(f"the folder {path} has no files; give one with documents")
    return files


def _has_columns(path: Path) -> bool:
    """Decide by names such as a.conllu, a.v4_gold_conll and a.conll.gz, or by the first line."""
    if any(suffix.lower().endswith(("conll", "conllu")) for suffix in path.suffixes):
        return True
    first = next((line for _, line in read_lines(path) if line.strip()), "")
    return _BEGINNING.match(first) is not None


def _read_text(path: Path) -> Iterator[ClusteredDocument]:
    """Yield the documents of plain text, separated by blank lines."""
    complaint = f"{path} has no text; give sentences, with a blank line between documents"
    return refuse_none(_split_documents(path), complaint=complaint)


def _split_documents(path: Path) -> Iterator[ClusteredDocument]:
    number = 1
    sentences: list[SpokenSentence] = []
    for tokens in chain(read_sentences(path, form=TextForm.RAW), [[]]):
        if tokens:
            sentences.append(SpokenSentence(tokens=tuple(tokens), speaker=None))
        elif sentences:
            name = f"{path.name.partition('.')[0]}/{number}"
            yield ClusteredDocument(name=name, sentences=tuple(sentences), clusters=())
            number += 1
            sentences = []
