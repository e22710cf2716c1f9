"""Coreference: which mentions of a document are of one thing (Lee et al., 2017; CoNLL-2012)."""

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
from elmore.tasks.task import Labels, Scores, Sentences
from elmore.text.files import TextForm, read_sentences
from elmore.text.sentences import split_sentences
from elmore.text.tokens import split_tokens

# The first line of CoNLL-2012's columns, and of OntoGUM's.
_BEGINNING = re.compile(r"# ?begin document\b")

FORMS = (FileForm.CONLL2012, FileForm.CONLLU)
EXPECTED = "CoNLL-2012 columns or CoNLL-U (.conllu) with Entity="


@dataclass(frozen=True, kw_only=True)
class CoreferenceSettings:
    """The network's widths and bounds, and which documents are read."""

    hidden_dim: int = 100
    """One direction of an LSTM layer."""
    num_layers: int = 1
    span_dim: int = 150
    scorer_dim: int = 150
    """The hidden layers that score mentions and pairs of them."""
    max_span_tokens: int = 10
    """A longer mention cannot be found; in OntoGUM and LitBank 2 in 100 are."""
    spans_per_token: float = 0.4
    """How many spans, by the tokens of a document, are taken for possible mentions."""
    allows_crossing: bool = False
    """Whether these may overlap in part."""
    max_antecedents: int = 50
    max_train_sentences: int = 50
    """Of a longer document, training takes this many sentences, others each time."""
    mention_weight: float = 0.2
    """What telling mentions from other spans counts in the loss; 0 trains as the paper does."""
    max_hidden_share: float = 0.05
    """Documents where more of the words are "_" are left out; 1 keeps them all."""
    dropout: float = 0.3

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
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


class CoreferenceTask:
    """Reads documents, predicts clusters of (start, end); clusters of one mention do not count."""

    name = "coreference"
    main_score = "f1"
    max_batch_size = 1  # a network reads all sentences of a document, and no others

    def __init__(self, settings: CoreferenceSettings) -> None:
        self.settings = settings

    @reads(*FORMS, expected=EXPECTED)
    def read(self, path: Path) -> Iterator[ClusteredDocument]:
        """Yield the documents of a file, or of a folder's files in the order of their names."""
        documents = chain.from_iterable(map(read_documents, _list_files(path)))
        most = self.settings.max_hidden_share
        # A file may have none: OntoGUM has one a document, some of them hidden.
        return (document for document in documents if document.hidden_share <= most)

    read_training = read

    @reads(*FORMS, expected=f"text, or {EXPECTED}", takes_text=True)
    def read_unlabelled(self, path: Path) -> Iterator[ClusteredDocument]:
        """Yield documents to predict on, from the same forms or plain text."""
        for file in _list_files(path):
            if _has_columns(file):
                yield from read_documents(file, reads_clusters=False)
            else:
                yield from _read_text(file)

    def parse(self, given: Any) -> ClusteredDocument:
        """Take a document as a string, as a list of tokenized sentences, or as an example."""
        if isinstance(given, ClusteredDocument):
            return given
        sentences: list[list[str] | None] = []
        if isinstance(given, str):
            sentences = [split_tokens(sentence) for sentence in split_sentences(given)]
        elif is_list(given) and all(map(is_list, given)):
            sentences = [take_tokens(sentence) for sentence in given]
        if not sentences or None in sentences:
            expected = "a document: a string that is not blank, or a list of sentences in tokens"
            raise refuse_input(given, task=self.name, expected=expected)
        spoken = tuple(SpokenSentence(tokens=tuple(s or ()), speaker=None) for s in sentences)
        return ClusteredDocument(name="", sentences=spoken, clusters=())

    def count_tokens(self, example: ClusteredDocument) -> int:
        """Return how long a document is."""
        return len(example.tokens)

    def find_sentences(self, examples: Sequence[ClusteredDocument]) -> tuple[Sentences, ...]:
        """Return all sentences, in one role."""
        return ([sentence.tokens for document in examples for sentence in document.sentences],)

    def find_labels(self, examples: Iterable[ClusteredDocument]) -> Labels:
        """Return none: clusters are no list to choose from; but some there must be."""
        load_assignment()  # here, as whoever predicts needs no scores, and who trains does
        if not any(document.clusters for document in examples):
            raise DataError(
                "no training document has a cluster of mentions, so there is nothing to learn; "
                "give files that have them, in the last column or as Entity="
            )
        return ()

    def list_labels(self, example: ClusteredDocument) -> tuple[str, ...]:  # noqa: ARG002
        """Return none: clusters have no names."""
        return ()

    def locate(self, example: ClusteredDocument) -> str:
        """Return the document's name."""
        return f"the document {example.name}"

    def build(self, tokens: TokenInput, *, labels: Labels) -> SpanRanker:  # noqa: ARG002
        """Return an untrained network."""
        settings = asdict(self.settings)
        del settings["max_hidden_share"]  # which is about reading
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
            raise ValueError(f"a batch of coreference has one document, got {len(examples)}")
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
        """Return F1 in percent: of MUC, B-cubed and CEAF, of their mean, and of mentions."""
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

    def score_constant(self, examples: Sequence[ClusteredDocument]) -> float:  # noqa: ARG002
        """Return 0: who finds no mention has no F1."""
        return 0.0

    def to_json(self, example: ClusteredDocument, prediction: Clusters) -> dict[str, Any]:
        """Return clusters beside the document's tokens, and the text of each mention."""
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
    """Return a file, or the files of a folder: OntoGUM and LitBank have one for each document."""
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.iterdir() if file.is_file() and file.name[0] != ".")
    if not files:
        raise DataError(f"the folder {path} has no files; give one that has documents")
    return files


def _has_columns(path: Path) -> bool:
    """Tell from names such as a.conllu, a.v4_gold_conll and a.conll.gz, or from the first line."""
    if any(suffix.lower().endswith(("conll", "conllu")) for suffix in path.suffixes):
        return True
    first = next((line for _, line in read_lines(path) if line.strip()), "")
    return _BEGINNING.match(first) is not None


def _read_text(path: Path) -> Iterator[ClusteredDocument]:
    """Yield the documents of plain text, which blank lines separate."""
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
