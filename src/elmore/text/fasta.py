"""Read FASTA: a record is a sentence and a document, its residues are the tokens."""

from collections.abc import Iterator

from elmore.errors import DataError
from elmore.text.line_sentences import NumberedSentence, Piece, drop_line_end

# Selenocysteine, pyrrolysine, and the codes for "one of two". Protein models such as SeqVec were
# trained with X, the code for any residue, in their place.
RARE_RESIDUES = str.maketrans("UOZB", "XXXX")
# Gaps of an alignment and the ends of a translation are not residues.
NO_RESIDUES = str.maketrans("", "", "-.* \t")


def read_fasta(
    pieces: Iterator[Piece], *, name: str, keeps_rare: bool
) -> Iterator[NumberedSentence]:
    """Yield each record under its id, and an empty sentence after it, which ends a document."""
    key: str | None = None
    residues: list[str] = []
    first_line = 0
    for piece in pieces:
        line = drop_line_end(piece.text)
        where = f"{name}, line {piece.line_number}"
        if line.startswith(">"):
            if key is not None:
                yield from _end_record(key, residues, line=first_line, name=name)
            key, residues, first_line = _read_id(line, where=where), [], piece.line_number
        elif line.strip() and not line.startswith(";"):
            residues += _read_residues(line, key, where=where, keeps_rare=keeps_rare)
    if key is not None:
        yield from _end_record(key, residues, line=first_line, name=name)


def _end_record(
    key: str, residues: list[str], *, line: int, name: str
) -> Iterator[NumberedSentence]:
    if not residues:
        raise DataError(
            f"{name}, line {line}: record {key!r:.60} has no residues; remove it, or add its "
            "sequence"
        )
    yield NumberedSentence(residues, line, key=key)
    yield NumberedSentence([], line)


def _read_id(line: str, *, where: str) -> str:
    words = line[1:].split(maxsplit=1)
    if not words:
        raise DataError(f"{where}: the record has no id; write one after the >")
    return words[0]


def _read_residues(line: str, key: str | None, *, where: str, keeps_rare: bool) -> list[str]:
    if key is None:
        raise DataError(
            f"{where}: expected a record that starts with >, got {line[:40]!r}; fix the file, or "
            "if it is not FASTA, choose the right form"
        )
    letters = line.upper().translate(NO_RESIDUES)
    if not (letters.isascii() and letters.isalpha()) and letters:
        wrong = next(letter for letter in letters if not (letter.isascii() and letter.isalpha()))
        raise DataError(
            f"{where}: {wrong!r} in record {key!r:.60} is not the letter of a residue; fix the "
            "line, or if the file is not FASTA, choose the right form"
        )
    return list(letters if keeps_rare else letters.translate(RARE_RESIDUES))
