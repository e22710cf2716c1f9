"""Write static word vectors in the formats of word2vec, which gensim and many others read."""

from pathlib import Path

from elmore.errors import DataError
from elmore.files.atomic import replace_file, resolve_target
from elmore.text.word_vectors import WordVectors

TEXT_SUFFIXES = (".txt", ".vec")
BINARY_SUFFIX = ".bin"


def check_word2vec_path(path: Path) -> None:
    """Fail now, not after hours of work, if a file cannot be written to `path`."""
    if path.suffix.lower() not in (*TEXT_SUFFIXES, BINARY_SUFFIX):
        raise DataError(
            f"{path} has the unknown suffix {path.suffix!r}; choose .txt or .vec for text, or .bin "
            "for binary"
        )
    if path.is_dir():
        raise DataError(f"cannot write {path}: it is a folder; give a file name")
    resolve_target(path)


def fits_word2vec(word: str) -> bool:
    """Return whether the formats can hold a word: they separate words by white space."""
    return bool(word) and not any(character.isspace() for character in word) and _is_utf8(word)


def write_word2vec(path: Path, table: WordVectors) -> None:
    """Write all words, or leave `path` unchanged on failure; the suffix decides on the format."""
    check_word2vec_path(path)
    is_binary = path.suffix.lower() == BINARY_SUFFIX
    with replace_file(path) as temporary, temporary.open("wb") as file:
        file.write(f"{len(table.words)} {table.vector_dim}\n".encode())
        for word, vector in zip(table.words, table.vectors, strict=True):
            if is_binary:
                file.write(word.encode() + b" " + vector.astype("<f4").tobytes() + b"\n")
            else:  # nine digits identify every number in single precision
                numbers = " ".join(f"{number:.9g}" for number in vector.tolist())
                file.write(f"{word} {numbers}\n".encode())


def _is_utf8(word: str) -> bool:
    try:
        word.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return False
    return True
