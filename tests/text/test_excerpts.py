"""Text is cut where it can be read independently."""

import io
import random

import pytest

from elmore.errors import DataError
from elmore.text import excerpts
from elmore.text.excerpts import DocumentCuts, cut_text
from elmore.text.files import TextForm, read_numbered_excerpt, read_numbered_sentences
from elmore.text.language import Language


def cut(data, form, *, max_bytes, documents):
    return list(
        cut_text(
            io.BytesIO(data),
            name="text",
            form=form,
            max_bytes=max_bytes,
            language=Language.EN,
            documents=documents,
        )
    )


def make_text(seed):
    choose = random.Random(seed)
    lines = []
    for _ in range(choose.randint(1, 12)):
        lines += [f"It is {choose.randint(0, 99)} . Yes.\n" for _ in range(choose.randint(1, 4))]
        lines += ["\n"] * choose.randint(1, 2)
    return "".join(lines).encode()


@pytest.mark.parametrize("form", [TextForm.RAW, TextForm.WRAPPED, TextForm.LINES])
@pytest.mark.parametrize("documents", [DocumentCuts.PREFERRED, DocumentCuts.REQUIRED])
def test_the_sentences_and_lines_of_excerpts_are_those_of_the_text(form, documents):
    for seed in range(20):
        data = make_text(seed)
        whole = read_numbered_sentences(io.BytesIO(data), form=form)
        parts = cut(data, form, max_bytes=90, documents=documents)
        found = [
            sentence
            for part in parts
            for sentence in read_numbered_excerpt(part, form=form)
            if sentence.tokens
        ]
        assert found == [sentence for sentence in whole if sentence.tokens]
        assert b"".join(part.data for part in parts) == data


@pytest.mark.parametrize(
    ("form", "data", "starts"),
    [
        (TextForm.RAW, b"a\nb\n\nc\nd\n\ne\n", [b"a", b"c"]),
        (TextForm.RAW, b"a\r\nb\r\n\r\nc\r\n", [b"a", b"c"]),
        (TextForm.FASTA, b">a\nMK\n>b\nMV\n", [b">a", b">b"]),
        (TextForm.CONLLU, b"# newdoc id = 1\n1\ta\n\n1\tb\n\n# newdoc\n1\tc\n\n", [b"# ", b"# "]),
    ],
)
def test_required_documents_are_whole(form, data, starts):
    parts = cut(data, form, max_bytes=4, documents=DocumentCuts.REQUIRED)
    assert [part.data[: len(start)] for part, start in zip(parts, starts, strict=True)] == starts


def test_preferred_documents_are_cut_if_too_long():
    data = b"a b\n" * 10 + b"\n" + b"c d\n" * 2
    parts = cut(data, TextForm.RAW, max_bytes=16, documents=DocumentCuts.PREFERRED)
    assert max(len(part.data) for part in parts) <= 16
    assert parts[-1].data == b"c d\n" * 2


def test_an_endless_document_is_refused(monkeypatch):
    monkeypatch.setattr(excerpts, "MAX_DOCUMENT_BYTES", 1000)
    with pytest.raises(DataError, match="mark where documents end"):
        cut(b"a b\n" * 1000, TextForm.RAW, max_bytes=100, documents=DocumentCuts.REQUIRED)
