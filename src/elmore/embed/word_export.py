"""Static word vectors for other programs: one vector per word, computed and written."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from elmore.arguments import explain_calls
from elmore.embed.embedder import Embedder, load
from elmore.embed.layer_choice import Layers
from elmore.embed.static_words import TOKEN_LAYER, average_uses, choose_words, embed_words
from elmore.embed.word2vec_file import check_word2vec_path, fits_word2vec, write_word2vec
from elmore.errors import ConfigError, DataError, DataWarning, warn_caller
from elmore.settings import check_range, read_path
from elmore.text.files import TextForm
from elmore.text.inputs import check_sentences, open_input, parse_given
from elmore.text.language import Language
from elmore.text.vocabulary import read_entries
from elmore.text.word_vectors import WordVectors

PathLike = str | Path


@explain_calls()
def word_vectors(
    words: PathLike | Iterable[str] | None = None,
    *,
    text: PathLike | Iterable[str | Sequence[str]] | None = None,
    model: PathLike | Embedder | None = None,
    layers: Layers | None = None,
    min_count: int = 1,
    max_words: int | None = None,
    form: TextForm | str | None = None,
) -> WordVectors:
    """Return one static vector per word: `words` and `vectors`, (words, D).

    `words` is a list, or the path of a file with one word per line. Without `text`, a vector is
    that of layer 0, which depends on the spelling only. With `text`, a file or a list of sentences,
    it is the mean over the uses of the word there (`layers` is "average" by default), and `words`
    may be left out: then all words of the text that occur at least `min_count` times are used, most
    frequent first, at most `max_words`.

    >>> import elmore
    >>> table = elmore.word_vectors(text=["The bank of the river.", "A bank."])
    >>> table.words
    ('.', 'bank', 'A', 'The', 'of', 'river', 'the')
    """
    check_range("min_count", min_count, 1, sys.maxsize)
    if max_words is not None:
        check_range("max_words", max_words, 1, sys.maxsize)
    listed = None if words is None else _read_words(words)
    if text is None:
        if listed is None:
            raise ConfigError("neither words nor text was given; give one of them, or both")
        if layers not in (None, TOKEN_LAYER, str(TOKEN_LAYER)):
            raise ConfigError(
                f"layers is {layers!r:.60}, but words without a text have no context, so only "
                "layer 0 exists; give a text, or leave layers out"
            )
        return embed_words(model if isinstance(model, Embedder) else load(model), listed)
    embedder = model if isinstance(model, Embedder) else load(model)
    source = text if isinstance(text, str | Path) else list(check_sentences(text))
    if listed is None:
        listed = choose_words(
            _parse_input(source, form=form, language=embedder.language),
            min_count=min_count,
            max_words=max_words,
        )
        if not listed:
            raise DataError(
                f"no word occurs {min_count} times in the text; give more text, or a smaller "
                "min_count"
            )
    chosen = "average" if layers is None else layers
    sentences = _parse_input(source, form=form, language=embedder.language)
    table = average_uses(embedder, sentences, words=listed, layers=chosen)
    _warn_about_missing(listed, table.words, reason="do not occur in the text")
    return table


@explain_calls()
def export_words(
    out: PathLike,
    words: PathLike | Iterable[str] | None = None,
    *,
    text: PathLike | Iterable[str | Sequence[str]] | None = None,
    model: PathLike | Embedder | None = None,
    layers: Layers | None = None,
    min_count: int = 1,
    max_words: int | None = None,
    form: TextForm | str | None = None,
) -> WordVectors:
    """Write static word vectors in word2vec's format, and return them; like `elmore export-words`.

    `out` ends in .txt or .vec (text) or .bin (binary). The other arguments are those of
    `word_vectors`. Words that contain white space are left out, because the formats separate words
    by it.
    """
    path = read_path("out", out)
    check_word2vec_path(path)
    table = word_vectors(
        words,
        text=text,
        model=model,
        layers=layers,
        min_count=min_count,
        max_words=max_words,
        form=form,
    )
    kept = table.select(fits_word2vec)
    if not kept.words:
        raise DataError("no word is left to write, because all contain white space")
    _warn_about_missing(table.words, kept.words, reason="contain white space")
    write_word2vec(path, kept)
    return kept


def _read_words(words: PathLike | Iterable[str]) -> list[str]:
    if isinstance(words, str | Path):
        return [word for word in read_entries(Path(words)) if word.strip()]
    listed = list(check_sentences(words, what="words"))
    for word in listed:
        if not isinstance(word, str):
            raise DataError(f"a word is {word!r:.60}; give strings")
    return listed


def _parse_input(
    source: PathLike | list[str | Sequence[str]],
    *,
    form: TextForm | str | None,
    language: Language,
) -> Iterator[list[str]]:
    """Yield the tokens of each sentence in a file or list."""
    given = open_input(source, form=form, language=language)
    return (parse_given(sentence, language=language) for sentence in given)


def _warn_about_missing(wanted: Sequence[str], found: Sequence[str], *, reason: str) -> None:
    kept = set(found)
    missing = [word for word in dict.fromkeys(wanted) if word not in kept]
    if missing:
        warn_caller(
            f"{len(missing)} of {len(set(wanted))} words {reason} and are left out, such as "
            f"{missing[0]!r:.40}",
            DataWarning,
        )
