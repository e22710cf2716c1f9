"""Named entity recognition: people, places and others (CoNLL-2003; Lample et al., 2016).

Files tag entities in one of several schemes (IOB1, IOB2, BIOES, BILOU). The network learns the
spans in a scheme of our choice, and predictions are written in the scheme of the training data.

Real data has errors: tags that its scheme does not allow. Training and scores both read them as
conlleval does: a tag with a type is part of an entity, which ends where the next tag begins another
one, has another type or none. So the gold spans are those that conlleval counts.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from elmore.errors import ConfigError, DataError
from elmore.settings import read_choice
from elmore.tasks.data.columns import TaggedSentence, is_han, looks_numbered, read_columns
from elmore.tasks.data.file_forms import FileForm, reads
from elmore.tasks.data.untagged import read_untagged
from elmore.tasks.inputs.token_input import TokenInput
from elmore.tasks.kinds.tags import (
    TaggerSettings,
    Tags,
    TagTask,
    resolve_column,
    score_spans_of,
)
from elmore.tasks.metrics.tag_schemes import SchemeGuess, TagScheme, read_spans, write_tags
from elmore.tasks.networks.tag_numbers import number_tags
from elmore.tasks.networks.tag_rules import find_transitions, list_tags
from elmore.tasks.networks.tagger import Tagger
from elmore.tasks.task import Labels, Scores

FORMS = (FileForm.COLUMNS,)
EXPECTED = (
    "columns: one token per line, its tag (such as B-PER) last, a blank line between sentences"
)
_LEARNED_SCHEMES = (TagScheme.IOB2, TagScheme.BIOES)


@dataclass(frozen=True, kw_only=True)
class EntitySettings(TaggerSettings):
    """The tags' column and scheme, and the size of the network; the paper has 2 layers of 200."""

    is_numbered: bool | None = None
    """Whether each token is a character followed by its position in its word, as in Weibo NER.

    By default, this is guessed from the file.
    """
    scheme: TagScheme | None = None
    """The scheme of predictions; by default that of the training data."""
    learned_scheme: TagScheme = TagScheme.BIOES
    """The scheme in which spans are learned: bioes or iob2."""

    def __post_init__(self) -> None:
        """Convert strings from TOML, and check all values."""
        super().__post_init__()
        if self.scheme is not None:
            object.__setattr__(self, "scheme", read_choice("task.scheme", self.scheme, TagScheme))
        if self.learned_scheme not in _LEARNED_SCHEMES:
            raise ConfigError(
                f"task.learned_scheme is {self.learned_scheme!r:.60}; choose one of: "
                f"{', '.join(_LEARNED_SCHEMES)}"
            )
        object.__setattr__(self, "learned_scheme", TagScheme(self.learned_scheme))


class EntityTask(TagTask):
    """Reads columns and predicts tags in the scheme of the training data."""

    name = "entities"
    main_score = "f1"

    @reads(*FORMS, expected=EXPECTED)
    def read(self, path: Path) -> Iterator[TaggedSentence]:
        """Yield a file's sentences with their tags."""
        return read_columns(
            path,
            column=resolve_column(path, self.settings.column),
            has_spans=True,
            is_numbered=self._is_numbered(path),
        )

    @reads(*FORMS, FileForm.CONLLU, expected=f"text, or {EXPECTED}", takes_text=True)
    def read_unlabeled(self, path: Path) -> Iterator[TaggedSentence]:
        """Yield the sentences of a text or of columns, without tags."""
        return read_untagged(
            path,
            form=self.settings.text_form,
            language=self.settings.language,
            is_numbered=self._is_numbered(path),
        )

    def list_labels(self, example: TaggedSentence) -> list[str]:
        """Return the types of its entities."""
        return [span.type for span in read_spans(example.tags)]

    def find_labels(self, examples: Iterable[TaggedSentence]) -> Labels:
        """Return the scheme of the tags, followed by the sorted types of entities."""
        guess = SchemeGuess()
        for example in examples:
            guess.add(example.tags, name_position=example.name_position)
        if not guess.types:
            raise DataError(
                "the training data has no entity: all its tags are O; set task.column to the "
                "column of the entity tags"
            )
        scheme = self.settings.scheme or guess.find_best(name="the data")
        return (str(scheme), *sorted(guess.types))

    def build(self, tokens: TokenInput, *, labels: Labels) -> Tagger:
        """Return an untrained tagger whose transitions follow the learned scheme."""
        scheme = TagScheme(labels[0])
        learned = self._list_learned(labels)
        return self._build(
            tokens,
            learned,
            write=lambda numbers: _rewrite([learned[number] for number in numbers], scheme),
            rules=find_transitions(learned, scheme=self.settings.learned_scheme),
        )

    def prepare(
        self, examples: Sequence[TaggedSentence], *, labels: Labels, with_gold: bool
    ) -> Tensor | None:
        """Return the numbers of the gold tags in the learned scheme, if `with_gold`."""
        if not with_gold:
            return None
        tags = [_rewrite(example.tags, self.settings.learned_scheme) for example in examples]
        return number_tags(tags, labels=self._list_learned(labels))

    def score(self, examples: Sequence[TaggedSentence], predictions: Sequence[Tags]) -> Scores:
        """Return conlleval's F1, precision and recall in percent, and F1 by type."""
        return score_spans_of(examples, predictions)

    def score_constant(self, examples: Sequence[TaggedSentence]) -> float:  # noqa: ARG002
        """Return 0: without entities, F1 is 0."""
        return 0.0

    def to_json(self, example: TaggedSentence, prediction: Tags) -> dict[str, Any]:
        """Return tokens, tags and entities."""
        is_chinese = self.settings.language.is_chinese or self.settings.is_numbered
        return {
            **super().to_json(example, prediction),
            "entities": [
                {
                    "start": span.start,
                    "end": span.end,
                    "type": span.type,
                    "text": _join(example.tokens[span.start : span.end], is_chinese=is_chinese),
                }
                for span in read_spans(prediction)
            ],
        }

    def _is_numbered(self, path: Path) -> bool:
        chosen = self.settings.is_numbered
        return looks_numbered(path) if chosen is None else chosen

    def _list_learned(self, labels: Labels) -> Labels:
        return list_tags(labels[1:], scheme=self.settings.learned_scheme)


def _join(tokens: Sequence[str], *, is_chinese: bool | None) -> str:
    """Join tokens to a text, without spaces if they are Chinese characters."""
    are_characters = all(len(token) == 1 for token in tokens) and any(map(is_han, tokens))
    return ("" if is_chinese or are_characters else " ").join(tokens)


def _rewrite(tags: Sequence[str], scheme: TagScheme) -> Tags:
    return write_tags(read_spans(tags), num_tokens=len(tags), scheme=scheme)
