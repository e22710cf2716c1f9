"""Words that say little about what a sentence is about, in English and Chinese."""

_ENGLISH = """
a about above after again against all almost also although always am among an and another any
are aren't as at away back be became because been before behind being below between both but by
can cannot ca could d did do does doing done down during each either else enough even ever every
few first for from further get got had has have having he her here hers herself him himself his
how however i if in indeed into is it its itself just last least less let like ll made make many
may me might mine more most much must my myself n't never no nor not nothing now of off often oh
on once one only or other others our ours ourselves out over own perhaps quite rather re s same
shall she should since so some something soon still such than that the thee their theirs them
themselves then there therefore these they thing things this those thou though through thus thy
till to together too two under until up upon us ve very was we well were what when where whether
which while who whole whom whose why will with within without would yes yet you your yours
yourself
"""
_CHINESE = """
的 了 在 是 我 你 他 她 它 们 我们 他们 这 那 和 与 也 就 都 而 及 着
或 一个 没有 不 有 人 上 下 中 大 为 对 到 说 要 会 以 之 等
"""

STOP_WORDS = frozenset([*_ENGLISH.split(), *_CHINESE.split()])


def is_content_word(word: str) -> bool:
    """Return whether a word says something; stop words, punctuation and numbers do not.

    >>> [word for word in ("The", "bank", "'s", "robbed", "in", "1889") if is_content_word(word)]
    ['bank', 'robbed']
    """
    # Without apostrophes: 's and 'll are stop words too.
    is_stop_word = word.casefold().strip("'’") in STOP_WORDS
    return not is_stop_word and any(map(str.isalpha, word))
