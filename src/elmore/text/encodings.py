"""Advice for text that is not UTF-8: which encoding it probably has, and how to convert it."""

import codecs

# GB18030 includes GB2312 and GBK.
_CHINESE = ("GB18030", "BIG5")
# Text in one of these encodings may be valid in the other, but has no such characters there.
_FREQUENT = frozenset("，。、：的一是不了在人有我他中大")
_MIN_HAN_SHARE = 0.3  # accented letters are rarer than that


def advise_on_encoding(line: bytes) -> str:
    """Return what to do about a line that is not UTF-8.

    >>> advise_on_encoding("caf\u00e9".encode("latin-1"))
    'convert the file, for example: iconv -f LATIN1 -t UTF-8 old.txt > new.txt'
    """
    if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "UTF-16"
    elif b"\x00" in line:
        return "it does not look like text; give a text file"
    else:
        encoding = _guess_encoding(line)
    return f"convert the file, for example: iconv -f {encoding} -t UTF-8 old.txt > new.txt"


def _guess_encoding(line: bytes) -> str:
    num_frequent = {}
    for encoding in _CHINESE:
        try:
            letters = "".join(line.decode(encoding).split())
        except UnicodeDecodeError:
            continue
        num_han = sum("\u4e00" <= letter <= "\u9fff" for letter in letters)
        if num_han > _MIN_HAN_SHARE * len(letters):
            num_frequent[encoding] = sum(letter in _FREQUENT for letter in letters)
    return max(num_frequent, key=lambda encoding: num_frequent[encoding], default="LATIN1")
