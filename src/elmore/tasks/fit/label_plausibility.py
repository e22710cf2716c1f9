"""Labels that were probably not meant: typos, two spellings of one label, labels of other data."""

import re
from collections import Counter
from collections.abc import Iterator

from elmore.tasks.data.lines import quote
from elmore.tasks.fit.data import TaskData
from elmore.tasks.fit.data_summary import DataSummary
from elmore.tasks.task import Task
from elmore.wording import count

# A typo is rare, and what was meant is frequent. Rare labels of real tag sets (NNPS, ARGA) differ
# in more than a slip of the finger from any frequent one, or in letters that mean something.
MAX_TYPO_COUNT, MIN_MEANT_PER_TYPO = 2, 50
# A label of dev or test that training lacks is suspect enough to look for a less frequent one.
MIN_MEANT_IN_TRAINING = 10
MIN_WORD_CHARS = 6  # below, one letter more or less makes another label (obj, iobj) ...
MIN_CHARS_OF_FEW, MAX_FEW_LABELS = 3, 10  # ... unless there are few labels (pos, neg)
MIN_CASED_CHARS = 2  # one letter in both cases may be two labels
# Labels of dev that training does not have can never be predicted; a few are normal.
MAX_UNKNOWN_SHARE, MIN_LABELS_JUDGED = 0.5, 20

_LETTERS = re.compile(r"[^\W\d_]+")


def find_wrong_labels(task: Task, data: TaskData, summary: DataSummary) -> Iterator[str]:
    """Yield a sentence for each label that looks wrong, and for each part with unknown labels."""
    known = summary.parts["train"].labels
    for name, part in summary.parts.items():
        unknown = Counter({label: n for label, n in part.labels.items() if label not in known})
        for label, number in sorted((part.labels if name == "train" else unknown).items()):
            meant = find_meant(label, number, known)
            if meant is not None:
                del unknown[label]  # explained
                yield (
                    f"{_describe(label, number, name, meant, known)} "
                    f"({_find_place(task, data, label, part=name)})"
                )
        num_labels = part.labels.total()
        if num_labels >= MIN_LABELS_JUDGED and unknown.total() > MAX_UNKNOWN_SHARE * num_labels:
            (label, _), *_ = unknown.most_common(1)
            yield (
                f"{unknown.total():,} of {count(num_labels, 'label')} of {name}, such as "
                f"{quote(label)}, do not occur in training, so the files are probably of "
                "different tasks or columns"
            )


def find_meant(label: str, number: int, known: Counter[str]) -> str | None:
    """Return the training label that was probably meant by one that occurs `number` times.

    `known` counts the training labels; a label that is not among them is of another part.
    """
    is_known = label in known
    # The typo itself is one of the known labels.
    min_chars = MIN_CHARS_OF_FEW if len(known) - is_known <= MAX_FEW_LABELS else MIN_WORD_CHARS
    for meant, num_meant in known.most_common():
        if is_same_but_for_case(label, meant):
            # Of two spellings in training, only the rarer is reported.
            if not is_known or (num_meant, meant) > (number, label):
                return meant
        elif is_known:
            is_rare = number <= MAX_TYPO_COUNT and num_meant >= MIN_MEANT_PER_TYPO * number
            if is_rare and is_slip(label, meant, min_chars=min_chars):
                return meant
        elif num_meant >= MIN_MEANT_IN_TRAINING and is_slip(label, meant, min_chars=min_chars):
            return meant
    return None


def is_same_but_for_case(label: str, other: str) -> bool:
    """Return whether two labels differ, but only in case.

    >>> is_same_but_for_case("Positive", "positive"), is_same_but_for_case("A", "a")
    (True, False)
    """
    is_same = label != other and label.casefold() == other.casefold()
    return is_same and len(label) >= MIN_CASED_CHARS


def is_slip(label: str, meant: str, *, min_chars: int = MIN_WORD_CHARS) -> bool:
    """Return whether a label is probably a typo of another.

    That is: another case, two letters swapped, or, in words of at least `min_chars` letters, one
    letter added, dropped or replaced.

    >>> is_slip("PRE", "PER"), is_slip("postive", "positive"), is_slip("Per", "PER")
    (True, True, True)
    >>> is_slip("NFP", "NNP"), is_slip("ARG5", "ARG4"), is_slip("PER.NOM", "PER.NAM")
    (False, False, False)
    >>> is_slip("poss", "pos"), is_slip("poss", "pos", min_chars=3)
    (False, True)
    """
    if label.casefold() == meant.casefold():
        return True
    index = next(
        (n for n, (a, b) in enumerate(zip(label, meant, strict=False)) if a != b),
        min(len(label), len(meant)),
    )
    pair = label[index : index + 2]
    if len(pair) == 2 and pair.isalpha() and len(label) > 2:
        swapped = f"{label[:index]}{pair[::-1]}{label[index + 2 :]}"
        if swapped == meant:
            return True
    are_words = _LETTERS.fullmatch(label) and _LETTERS.fullmatch(meant)
    if not are_words or min(len(label), len(meant)) < min_chars:
        return False
    rest, meant_rest = label[index:], meant[index:]
    return rest[1:] == meant_rest or rest == meant_rest[1:] or (rest[1:] == meant_rest[1:] != "")


def _describe(label: str, number: int, part: str, meant: str, known: Counter[str]) -> str:
    in_training = f"{meant!r} {count(known[meant], 'time')}"
    if part == "train":
        found = f"the label {label!r} occurs {count(number, 'time')} in training, and {in_training}"
    else:
        found = (
            f"the label {label!r} occurs {count(number, 'time')} in {part} and never in training, "
            f"which has {in_training}"
        )
    if is_same_but_for_case(label, meant):
        return f"{found}, so they are probably one label in two spellings"
    return f"{found}, so it is probably a typo"


def _find_place(task: Task, data: TaskData, label: str, *, part: str) -> str:
    examples = (example for example in data.parts[part] if label in task.list_labels(example))
    return f"first in {task.locate(next(examples))}"
