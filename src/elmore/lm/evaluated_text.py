"""The documents whose perplexity is measured: of a prepared corpus, a text file or a list."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from elmore.corpus.corpus import Corpus, open_corpus
from elmore.settings import read_choice
from elmore.text.documents import group_documents
from elmore.text.files import TextForm
from elmore.text.inputs import check_documents, is_folder, open_input, parse_given
from elmore.text.language import Language

Documents = Iterable[Sequence[Sequence[str]]]


def open_documents(
    text: str | Path | Corpus | Iterable[str] | Documents,
    *,
    form: TextForm | str | None,
    language: Language | str,
) -> Documents:
    """Return documents as they are, or those of a file or of a corpus's held-out part."""
    if is_folder(text):
        text = open_corpus(text)
    if isinstance(text, Corpus):
        return text.heldout.documents()
    chosen = Language(read_choice("language", language, Language))
    if not isinstance(text, str | Path):
        return check_documents(text, language=chosen)
    sentences = open_input(text, form=form, language=chosen, keeps_document_ends=True)
    return group_documents(parse_given(sentence, language=chosen) for sentence in sentences)
