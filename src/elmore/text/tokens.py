"""Split a sentence into Penn Treebank tokens, which published ELMo models were trained on.

No character is changed or lost: joining the tokens gives the sentence without whitespace.
"""

import re
import unicodedata
from collections.abc import Sequence
from functools import cache

from elmore.errors import DataError, MissingExtraError
from elmore.text.language import Language, warn_if_unsegmented
from elmore.wording import shorten


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# These always keep their period.
_ABBREVIATIONS = _words("""
    Mr Mrs Ms Messrs Mme Mlle Dr Drs Prof Rev Hon Esq Jr Sr St Ste Mt Ft Sgt Lt Capt Cpt Cmdr Col
    Gen Adm Maj Gov Sen Sens Rep Reps Pres Inc Ltd Corp Co Cos Bros Dept Univ Assn Ave Blvd Rd Ph.D
    Ph.Ds M.Sc B.Sc Jan Feb Apr Aug Sept Sep Oct Nov Dec Tues Thur Thurs Ala Ariz Calif Colo Conn
    Fla Ga Ky Md Mich Minn Nev Okla Tenn Va Vt Wis etc vs viz cf al approx esp mr mrs ms dr jr sr
""")
# These can also be ordinary words, like single capitals. They keep their period only inside a
# sentence; at its end, the period ends the sentence.
_ABBREVIATIONS_INSIDE = _words("""
    Mon Tue Wed Thu Fri Sat Sun Mar Jun Jul Ark Ill Kan La Mass Mo Mont Ore Pa Tex Wash
    Attn ca c b d est ext ft lb lbs oz v
""")
_ABBREVIATIONS_BEFORE_DIGITS = _words("""
    No Nos no nos p pp Vol vol Ch ch Fig fig Figs figs Sec sec Art art Eq eq
""")
_INITIALS = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")
_CAPITAL = re.compile(r"[A-HJ-ZÀ-ÖØ-ÞΑ-ΩЀ-Я]")
_CLOSING = frozenset(["'", '"', "''", "”", "’", "»", ")", "]", "}"])
_CLITICS = _words("n't n’t 's ’s 'm ’m 'd ’d 'll ’ll 're ’re 've ’ve")
_CHINESE_CHARACTER = re.compile(r"___|\S")  # ___ is a gap to fill
_MAX_CLITICS = 3  # "who'd've"; a bound, so that "'s's's..." takes linear time


def split_tokens(sentence: str, *, language: Language = Language.EN) -> list[str]:
    """Return the tokens of one sentence.

    >>> split_tokens("Don't they pay $1,000 in the U.S.?")
    ['Do', "n't", 'they', 'pay', '$', '1,000', 'in', 'the', 'U.S.', '?']
    """
    if language == Language.ZH:
        return _split_chinese(sentence)
    if language == Language.ZH_CHARS:
        return _CHINESE_CHARACTER.findall(sentence)
    warn_if_unsegmented(sentence)
    chunks: list[str] = _chunk_pattern().findall(sentence)
    last_word = _find_last_word(chunks)
    has_clitics = "'" in sentence or "’" in sentence
    tokens: list[str] = []
    for position, chunk in enumerate(chunks):
        if chunk[-1] == "." or (has_clitics and ("'" in chunk or "’" in chunk)):
            following = chunks[position + 1] if position < last_word else ""
            tokens += _split_chunk(chunk, following=following)
        else:
            tokens.append(chunk)
    return tokens


def parse_sentence(sentence: str | Sequence[str], *, language: Language = Language.EN) -> list[str]:
    """Return the tokens of a sentence; a list of tokens is returned unchanged."""
    if isinstance(sentence, str):
        return split_tokens(sentence, language=language)
    if hasattr(sentence, "tolist"):  # an array of numpy, a column of pandas
        sentence = sentence.tolist()
    if isinstance(sentence, bytes | bytearray | memoryview):
        raise DataError(
            "a sentence must be a string or a list of tokens, got bytes "
            f"({shorten(repr(sentence))}); decode it first"
        )
    if not isinstance(sentence, Sequence):
        raise DataError(
            f"a sentence must be a string or a list of tokens, got {type(sentence).__name__} "
            f"({shorten(repr(sentence))}); convert it, or remove it"
        )
    if set(map(type, sentence)) <= {str}:
        return list(sentence)
    for position, token in enumerate(sentence):
        if not isinstance(token, str):
            raise DataError(
                f"token {position} of a sentence must be a str, got {type(token).__name__} "
                f"({shorten(repr(token))}); convert it, or remove it"
            )
    return list(sentence)


def _find_last_word(chunks: list[str]) -> int:
    """Return the index of the last chunk that is not a closing quote or bracket."""
    position = len(chunks) - 1
    while position > 0 and chunks[position] in _CLOSING:
        position -= 1
    return position


def _split_chunk(chunk: str, *, following: str) -> list[str]:
    """Split off the clitics and, unless it belongs to the word, the period."""
    word, period = chunk, []
    is_word_and_period = chunk[-1] == "." and chunk[-2:-1] not in ("", ".")
    if is_word_and_period and not _keeps_period(chunk[:-1], following=following):
        word, period = chunk[:-1], ["."]
    return [*_split_clitics(word), *period]


def _keeps_period(word: str, *, following: str) -> bool:
    """Return whether the period belongs to `word`; `following` is "" at the end of a sentence."""
    if word in _ABBREVIATIONS or _INITIALS.fullmatch(word):
        return True
    if word in _ABBREVIATIONS_BEFORE_DIGITS:
        return following[:1].isdigit()
    is_inside = word in _ABBREVIATIONS_INSIDE or _CAPITAL.fullmatch(word) is not None
    return is_inside and following != ""


def _split_clitics(word: str) -> list[str]:
    """Split clitics such as "n't" and "'s" off a word: "who'd've" gives who 'd 've."""
    clitics: list[str] = []
    while len(clitics) < _MAX_CLITICS:
        length = next((n for n in (3, 2) if word[-n:].lower() in _CLITICS), len(word))
        if length >= len(word):
            break
        word, clitics = word[:-length], [word[-length:], *clitics]
    return [word, *clitics]


@cache
def _chunk_pattern() -> re.Pattern[str]:
    """Compile the rules, with shortcuts that give the same chunks three times faster."""
    common = r"[A-Za-z0-9]++(?= |,(?!\d))|,(?= )|[^\W_]++(?= |,(?!\d))"
    # Consume the space as part of the match. Otherwise every rule would be tried at each space.
    return re.compile(f" ?({common}|{_chunk_rules()})")


def _chunk_rules() -> str:
    """Return the rules; the first match wins. A word includes its period and clitics."""
    # Repetitions are possessive, so matching takes linear time on any text. Repeated groups are
    # written as (?>...) because possessive groups match wrongly in Python 3.11.0 to 3.11.4.
    # The class of attached characters is slow, so a lookahead rejects ASCII first.
    marks = rf"(?![\x00-\x7f])[{_attached_characters()}]++"
    attached = rf"(?>(?:{marks})?)"
    word = rf"(?>(?:[^\W_]++|{marks})+)"
    inner = r"[-‐‑'’·״_&@.]|\.-|(?<=\d)[,:/](?=\d)|\+(?=[\w.-]++@)"
    rules = (
        # URLs and mail addresses, without trailing punctuation.
        r"(?:[hH][tT][tT][pP][sS]?://|[fF][tT][pP]://|mailto:|[wW]{3}\.)"
        r"[^\s<>\"]*[^\s<>\".,;:!?'’”)\]}»]",
        # Standalone emoticons.
        r"(?<!\S)[:;=][-']?[()DPp/|]++(?!\w)",
        # Standalone clitics, shortened words and decades: 's 'em '90s
        rf"['’](?i:s|m|d|ll|re|ve|em|tis|twas|til|cause|bout|n['’]?|\d\ds?)(?!{word})",
        # Hashtags and @names.
        rf"[#@](?=[^\W\d])(?>(?:{word}|_)+)",
        # Words and numbers, with the symbols that can join their parts, and a period.
        rf"(?:(?:(?<![^\s(])[-+−])?\.?(?=\d))?{word}(?>(?:(?:{inner}){word})*)(?:\.(?!\.))?",
        # Runs of one symbol.
        r"[!?]++|_++|"
        + "|".join(rf"{re.escape(sign)}{{2,}}+" for sign in ".-*=~#$+<>/\\|^`'’…—–•"),
        # A flag: two regional indicators.
        r"[\U0001f1e6-\U0001f1ff]{2}",
        # Any other symbol; an emoji can be several characters joined by zero-width joiners.
        rf"\S{attached}(?>(?:(?<=\u200d)[^\w\s]{attached})*)",
    )
    return f"(?:{'|'.join(rules)}){attached}"


@cache
def _attached_characters() -> str:
    """Return the marks, joiners and skin tones that attach to a character, for a regex class."""
    # All combining and format characters are in these ranges.
    code_points = [*range(0x80, 0x20000), *range(0xE0000, 0xE0200)]
    return "".join(chr(code) for code in code_points if _is_attached(chr(code)))


def _is_attached(character: str) -> bool:
    """Return whether `character` is a combining mark, a format character or a skin tone."""
    kind = unicodedata.category(character)
    return kind[0] == "M" or kind == "Cf" or "\U0001f3fb" <= character <= "\U0001f3ff"


def _split_chinese(sentence: str) -> list[str]:
    """Return the words that jieba finds, without whitespace."""
    try:
        import rjieba  # noqa: PLC0415 (optional)
    except ImportError:
        raise MissingExtraError(
            needed_for="splitting Chinese into words", extra="chinese"
        ) from None
    try:
        pieces = rjieba.cut(sentence)
    except UnicodeEncodeError as error:
        raise DataError(
            f"character {error.start} of a sentence is half of a surrogate pair "
            f"(U+{ord(sentence[error.start]):X}); decode the text from its bytes again"
        ) from None
    return [token for piece in pieces for token in piece.split()]
