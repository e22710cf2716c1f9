"""Text that was probably not meant: lost blank lines, unsegmented Chinese, another script."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain, islice

from elmore.tasks.data.lines import quote
from elmore.tasks.fit.data import Store, TaskData, find_sentences
from elmore.tasks.task import Task

# The longest sentences of the real sets have 110 to 180 tokens, or in People's Daily 580 characters
# without a full stop; without blank lines, a file of 20 sentences is longer and has 19 within.
MAX_SENTENCE_TOKENS, MIN_ENDS_WITHIN = 250, 10
SENTENCE_ENDS = frozenset(".?!。？！")
# Of the full stops in CoNLL-2003 and UD, at most 1 % are followed by another sentence of the same
# example (6 % in a single document); if half of the blank lines are lost, about 48 % are. Where
# most examples do not end with a full stop (Weibo: 73 %), they are posts and not sentences.
MAX_JOINED_SHARE, MIN_ENDED_SHARE, MIN_ENDS_JUDGED = 0.2, 0.4, 30
# Segmented Chinese has words of 1.6 to 1.9 characters on average; unsegmented clauses have 6 to 10.
MAX_MEAN_HAN_CHARS, MIN_HAN_TOKENS = 4.0, 20
# Of Weibo's characters 7 % are new to a Chinese model of newspapers, and 86 % to an English one.
MAX_UNSEEN_SHARE, EXAMPLES_SPELLED = 0.5, 2000
# Names and quotations bring some letters of other scripts.
MAX_OTHER_SCRIPT_SHARE, MIN_SCRIPT_SHARE, MIN_LETTERS_JUDGED = 0.5, 0.01, 100

_HAN = re.compile(r"[\u3400-\u9fff]+")


def find_joined_sentences(task: Task, data: TaskData) -> Iterator[str]:
    """Yield a sentence for each part whose sentences are probably several, joined."""
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
        else:
            yield from _find_some_joined(task, name, examples)


def _find_some_joined(task: Task, name: str, examples: Store) -> Iterator[str]:
    num_joined, num_ended, first = 0, 0, None
    for example in examples:
        tokens = next(find_sentences(task, [example]))
        num_starts = sum(_starts_sentence(tokens, index) for index in range(1, len(tokens)))
        num_joined += num_starts
        num_ended += any(token in SENTENCE_ENDS for token in tokens[-2:])  # a quote may follow
        first = example if first is None and num_starts else first
    num_ends = num_joined + num_ended
    if (
        num_ends >= MIN_ENDS_JUDGED
        and num_ended >= MIN_ENDED_SHARE * len(examples)
        and num_joined > MAX_JOINED_SHARE * num_ends
    ):
        yield (
            f"in {name}, another sentence follows within the same example after {num_joined:,} of "
            f"{num_ends:,} full stops, so some blank lines between sentences are probably lost "
            f"(first in {task.locate(first)})"
        )


def _starts_sentence(tokens: Sequence[str], index: int) -> bool:
    """Return whether a sentence ends before this token, and another starts with it."""
    if tokens[index - 1] not in SENTENCE_ENDS:
        return False
    token = tokens[index]
    if not token[:1].isalnum() and index + 1 < len(tokens):  # a quote or a bracket
        token = tokens[index + 1]
    return token[:1].isalpha() and not token[:1].islower()


def find_unsegmented(task: Task, data: TaskData) -> Iterator[str]:
    """Yield a sentence if Chinese training text was not split into words or characters."""
    tokens = [token for token in _sample_tokens(task, data.train) if _HAN.fullmatch(token)]
    mean_chars = sum(map(len, tokens)) / max(len(tokens), 1)
    if len(tokens) >= MIN_HAN_TOKENS and mean_chars > MAX_MEAN_HAN_CHARS:
        yield (
            f"Chinese tokens such as {quote(max(tokens, key=len))} have {mean_chars:.1f} "
            "characters on average, so the text is probably not segmented (--set task.language=zh "
            "splits it into words, zh-chars into characters)"
        )


def find_other_scripts(
    task: Task, data: TaskData, *, seen_characters: frozenset[str] | None
) -> Iterator[str]:
    """Yield a sentence if the biLM lacks the script of training, and for each part in another.

    `seen_characters` are those that the biLM knows; None if they are unknown.
    """
    train = _count_characters(task, data.train)
    if seen_characters is not None:
        yield from _find_unseen(train, seen_characters)
    for name, examples in data.parts.items():
        if name != "train":
            yield from _find_other_script(name, _count_characters(task, examples), train)


def _find_unseen(train: Counter[str], seen: frozenset[str]) -> Iterator[str]:
    unseen = Counter({character: n for character, n in train.items() if character not in seen})
    if unseen.total() > MAX_UNSEEN_SHARE * train.total():
        yield (
            f"the biLM has not seen {unseen.total() / train.total():.0%} of the characters in the "
            f"training text, such as {_list_most_common(unseen)}, so it is probably a model of "
            "another language (--model)"
        )


def _find_other_script(name: str, found: Counter[str], train: Counter[str]) -> Iterator[str]:
    known, scripts = _count_scripts(train), _count_scripts(found)
    num_known, num_letters = known.total(), scripts.total()
    if min(num_known, num_letters) < MIN_LETTERS_JUDGED:
        return
    others = {script for script in scripts if known[script] < MIN_SCRIPT_SHARE * num_known}
    num_other = sum(scripts[script] for script in others)
    if num_other > MAX_OTHER_SCRIPT_SHARE * num_letters:
        letters = Counter({x: n for x, n in found.items() if _find_script(x) in others})
        yield (
            f"{num_other / num_letters:.0%} of the letters in {name}, such as "
            f"{_list_most_common(letters)}, are of a script that training hardly has, so the files "
            "are probably of different languages"
        )


def _sample_tokens(task: Task, examples: Store) -> Iterator[str]:
    """Yield the tokens of evenly spread examples."""
    stride = max(1, len(examples) // EXAMPLES_SPELLED)
    sample = (examples[number] for number in range(0, len(examples), stride))
    return chain.from_iterable(find_sentences(task, sample))


def _count_characters(task: Task, examples: Store) -> Counter[str]:
    return Counter(chain.from_iterable(_sample_tokens(task, examples)))


def _count_scripts(characters: Counter[str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for character, number in characters.items():
        script = _find_script(character)
        if script is not None:
            counts[script] += number
    return counts


@cache
def _find_script(character: str) -> str | None:
    """Return the first word of a letter's name, such as LATIN, CYRILLIC or CJK; None if no letter.

    Unicode's script property is not in Python's library; for this purpose the names are enough.
    """
    return unicodedata.name(character, "UNNAMED").split()[0] if character.isalpha() else None


def _list_most_common(characters: Counter[str]) -> str:
    return " ".join(letter for letter, _ in islice(characters.most_common(), 3))
