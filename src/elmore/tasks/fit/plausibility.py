"""Data that can be read but hardly can be meant: swapped columns, typos, lost blank lines.

Training on it would take its time and end with a bad score and no error. None of the thresholds is
reached by CoNLL-2003, SST, SNLI, English and Chinese UD, PropBank on EWT, OntoGUM, LitBank, SQuAD
or Weibo NER (tests/tasks/fit/test_plausibility.py reads them where they are).
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain, islice

from elmore.errors import DataError
from elmore.tasks.data.lines import shorten
from elmore.tasks.fit.data import TaskData, find_sentences
from elmore.tasks.fit.data_summary import DataSummary, summarize_data
from elmore.tasks.task import Task
from elmore.wording import count

# Tasks whose examples are one sentence each, and those that choose one label for an example.
SENTENCE_TASKS = ("entities", "tags", "roles")
CHOICE_TASKS = ("sentiment", "entailment", "texts", "pairs")

# With the texts in the label's column, nearly every example has a label of its own. Even few-shot
# data has two examples of a label; fewer than this many labels may be a toy.
MIN_EXAMPLES_PER_LABEL, MIN_SUSPECT_LABELS = 2.0, 20
# With tags and tokens swapped, there are more tags than words; rich tag sets have some thousand
# tags, but for far more words.
MIN_SUSPECT_TAGS = 50
# A typo is rare, and what was meant is frequent. Rare labels of real tag sets (NNPS, ARGA) differ
# in more than a slip of the finger from any frequent one, or in letters that mean something.
MAX_TYPO_COUNT, MIN_MEANT_PER_TYPO = 2, 50
MIN_WORD_CHARS = 6  # below, one letter more or less makes another label (obj, iobj)
# The longest sentences of the real sets have 110 to 180 tokens, or in People's Daily 580 characters
# without a full stop; without blank lines, a file of 20 sentences is longer and has 19 within.
MAX_SENTENCE_TOKENS, MIN_ENDS_WITHIN = 250, 10
SENTENCE_ENDS = frozenset(".?!。？！")
# Columns read as a table of texts: a "text" is one token.
MIN_SHORT_TEXTS, MAX_SHORT_SHARE = 100, 0.95
# Segmented Chinese has words of 1.6 to 1.9 characters on average; unsegmented clauses have 6 to 10.
MAX_MEAN_HAN_CHARS, MIN_HAN_TOKENS = 4.0, 20
# Labels of dev that training does not have can never be predicted; a few are normal.
MAX_UNKNOWN_SHARE, MIN_LABELS_JUDGED = 0.5, 20
# Of Weibo's characters 7 % are new to a Chinese model of newspapers, and 86 % to an English one.
MAX_UNSEEN_SHARE, EXAMPLES_SPELLED = 0.5, 2000

_HAN = re.compile(r"[\u3400-\u9fff]+")
_LETTERS = re.compile(r"[^\W\d_]+")


class ImplausibleDataError(DataError):
    """Data that can be read but looks wrong; `findings` has a sentence for each reason."""

    def __init__(self, findings: list[str]) -> None:
        self.findings = findings
        remedy = "fix it, or train on it as it is with --accept (in Python: accept=True)"
        if len(findings) == 1:
            super().__init__(f"the data looks wrong: {findings[0]}; {remedy}")
        else:
            listed = "".join(f"\n  {finding}" for finding in findings)
            super().__init__(f"the data looks wrong; {remedy}:{listed}")


def check_data(
    task: Task,
    data: TaskData,
    *,
    seen_characters: frozenset[str] | None = None,
    accept: bool = False,
    on_message: Callable[[str], None] = lambda _text: None,
) -> None:
    """Show what was read; refuse what looks wrong, or with `accept` show that too.

    `seen_characters` are those that the biLM knows, if there is a biLM and that is known.
    """
    summary = summarize_data(task, data)
    on_message(summary.describe())
    findings = list(find_implausible(task, data, summary, seen_characters=seen_characters))
    if findings and not accept:
        raise ImplausibleDataError(findings)
    for finding in findings:
        on_message(f"accepted: {finding}")


def find_implausible(
    task: Task, data: TaskData, summary: DataSummary, *, seen_characters: frozenset[str] | None
) -> Iterator[str]:
    """Yield a sentence for each thing that looks wrong."""
    swapped = list(_find_swapped_columns(task, data, summary))
    # Swapped labels and unsegmented Chinese are short texts, too.
    yield from swapped or list(_find_unsegmented(task, data)) or _find_short_texts(task, data)
    yield from _find_typos(task, data, summary)
    yield from _find_long_sentences(task, data)
    yield from _find_unknown_labels(summary)
    if seen_characters is not None:
        yield from _find_other_script(task, data, seen_characters)


def _find_swapped_columns(task: Task, data: TaskData, summary: DataSummary) -> Iterator[str]:
    train = summary.parts["train"]
    num_labels = len(train.labels)
    if task.name in CHOICE_TASKS and num_labels >= MIN_SUSPECT_LABELS:
        if train.num_examples < MIN_EXAMPLES_PER_LABEL * num_labels:
            example = shorten(max(train.labels, key=len))
            yield (
                f"the {train.num_examples:,} training examples have {num_labels:,} different "
                f"labels, such as {example}, so the label is probably in another column (name the "
                "columns in a first line)"
            )
    elif task.name == "tags" and num_labels >= MIN_SUSPECT_TAGS:
        num_types = len(set(chain.from_iterable(find_sentences(task, data.train))))
        if num_labels > num_types:
            yield (
                f"training has {num_labels:,} different tags for {num_types:,} different tokens, "
                "so tokens and tags are probably swapped (the token is column 1)"
            )


def _find_typos(task: Task, data: TaskData, summary: DataSummary) -> Iterator[str]:
    labels = summary.parts["train"].labels
    for rare, num_rare in sorted(labels.items()):
        if num_rare > MAX_TYPO_COUNT:
            continue
        for meant, num_meant in labels.most_common():
            if num_meant < MIN_MEANT_PER_TYPO * num_rare:
                break
            if is_slip(rare, meant):
                yield (
                    f"the label {rare!r} occurs {count(num_rare, 'time')} in training, and "
                    f"{meant!r} {count(num_meant, 'time')}, so it is probably a typo "
                    f"({_find_place(task, data, rare)})"
                )
                break


def is_slip(label: str, meant: str) -> bool:
    """Tell whether a label differs from another by what a slip of the finger does.

    That is case, two letters swapped, or in a word one letter more, less or replaced.

    >>> is_slip("PRE", "PER"), is_slip("postive", "positive"), is_slip("Per", "PER")
    (True, True, True)
    >>> is_slip("NFP", "NNP"), is_slip("ARG5", "ARG4"), is_slip("PER.NOM", "PER.NAM")
    (False, False, False)
    """
    if label.casefold() == meant.casefold():
        return True
    place = next(
        (n for n, (a, b) in enumerate(zip(label, meant, strict=False)) if a != b),
        min(len(label), len(meant)),
    )
    pair = label[place : place + 2]
    if len(pair) == 2 and pair.isalpha() and len(label) > 2:
        swapped = f"{label[:place]}{pair[::-1]}{label[place + 2 :]}"
        if swapped == meant:
            return True
    are_words = _LETTERS.fullmatch(label) and _LETTERS.fullmatch(meant)
    if not are_words or min(len(label), len(meant)) < MIN_WORD_CHARS:
        return False
    rest, meant_rest = label[place:], meant[place:]
    return rest[1:] == meant_rest or rest == meant_rest[1:] or (rest[1:] == meant_rest[1:] != "")


def _find_place(task: Task, data: TaskData, label: str) -> str:
    examples = (example for example in data.train if label in task.list_labels(example))
    return f"first in {task.locate(next(examples))}"


def _find_long_sentences(task: Task, data: TaskData) -> Iterator[str]:
    if task.name not in SENTENCE_TASKS:
        return
    for name, examples in data.parts.items():
        longest = examples[int(examples.lengths.argmax())]
        tokens = next(find_sentences(task, [longest]))
        num_ends = sum(token in SENTENCE_ENDS for token in tokens[:-1])
        if len(tokens) > MAX_SENTENCE_TOKENS and num_ends >= MIN_ENDS_WITHIN:
            yield (
                f"in {name}, a sentence of {len(tokens):,} tokens has {num_ends:,} full stops "
                f"within it, so blank lines between sentences are probably lost "
                f"({task.locate(longest)})"
            )


def _find_short_texts(task: Task, data: TaskData) -> Iterator[str]:
    if task.name != "texts" or len(data.train) < MIN_SHORT_TEXTS:
        return
    num_short = int((data.train.lengths == 1).sum())
    if num_short > MAX_SHORT_SHARE * len(data.train):
        yield (
            f"{num_short:,} of {len(data.train):,} training texts are a single token, so the file "
            "is probably columns of tokens and tags (which entities and tags read)"
        )


def _find_unsegmented(task: Task, data: TaskData) -> Iterator[str]:
    tokens = [token for token in _sample_tokens(task, data) if _HAN.fullmatch(token)]
    mean_chars = sum(map(len, tokens)) / max(len(tokens), 1)
    if len(tokens) >= MIN_HAN_TOKENS and mean_chars > MAX_MEAN_HAN_CHARS:
        yield (
            f"Chinese tokens such as {shorten(max(tokens, key=len))} have {mean_chars:.1f} "
            "characters on average, so the text is probably not segmented (--set task.language=zh "
            "splits it into words, zh-chars into characters)"
        )


def _find_unknown_labels(summary: DataSummary) -> Iterator[str]:
    known = summary.parts["train"].labels
    for name in ("dev", "test"):
        found = summary.parts[name].labels if name in summary.parts else Counter[str]()
        unknown = Counter({label: number for label, number in found.items() if label not in known})
        is_judged = found.total() >= MIN_LABELS_JUDGED
        if is_judged and unknown.total() > MAX_UNKNOWN_SHARE * found.total():
            (label, _), *_ = unknown.most_common(1)
            yield (
                f"{unknown.total():,} of {count(found.total(), 'label')} of {name}, such as "
                f"{shorten(label)}, do not occur in training, so the files are probably of "
                "different tasks or columns"
            )


def _find_other_script(task: Task, data: TaskData, seen: frozenset[str]) -> Iterator[str]:
    counts = Counter(chain.from_iterable(_sample_tokens(task, data)))
    unseen = Counter({letter: number for letter, number in counts.items() if letter not in seen})
    if unseen.total() > MAX_UNSEEN_SHARE * counts.total():
        letters = " ".join(letter for letter, _ in islice(unseen.most_common(), 3))
        yield (
            f"the biLM has not seen {unseen.total() / counts.total():.0%} of the characters in the "
            f"training text, such as {letters}, so it is probably a model of another language "
            "(--model)"
        )


def _sample_tokens(task: Task, data: TaskData) -> Iterator[str]:
    """Yield the tokens of examples evenly spread over the training data."""
    stride = max(1, len(data.train) // EXAMPLES_SPELLED)
    sample = (data.train[number] for number in range(0, len(data.train), stride))
    return chain.from_iterable(find_sentences(task, sample))
