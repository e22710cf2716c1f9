import gzip
import io
import json
import lzma
import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard

from elmore.corpus.corpus import check_corpus, open_corpus
from elmore.corpus.prepare import prepare_corpus
from elmore.corpus.settings import PrepareSettings
from elmore.errors import ConfigError, DataError, DataWarning
from elmore.text import files
from elmore.text.files import TextForm, read_sentences
from elmore.text.vocabulary import read_word_list
from tests.corpus.corpora import make_documents, prepare, read_folder, write_tokenized

DOCUMENTS = make_documents(20)
TEXT = write_tokenized(DOCUMENTS)


def flatten(documents):
    return [token for document in documents for sentence in document for token in sentence]


@pytest.mark.slow
@pytest.mark.parametrize("chunk_bytes", [16, 37, 100, 1000, 1 << 20])
def test_documents_do_not_depend_on_chunks(tmp_path, chunk_bytes):
    corpus = prepare(TEXT, tmp_path / "corpus", heldout=0.0, chunk_bytes=chunk_bytes)
    if chunk_bytes > 50:  # no line is longer
        assert list(corpus.train.documents()) == DOCUMENTS
    assert flatten(corpus.train.documents()) == flatten(DOCUMENTS)
    assert corpus.train.num_documents == len(DOCUMENTS)
    check_corpus(corpus.folder)


@pytest.mark.slow
@pytest.mark.parametrize("document_sentences", [None, 3])
def test_documents_are_held_out_whole(tmp_path, document_sentences):
    expected = [
        document[start : start + (document_sentences or 100)]
        for document in DOCUMENTS
        for start in range(0, len(document), document_sentences or 100)
    ]
    corpora = [
        prepare(
            TEXT,
            tmp_path / str(chunk_bytes),
            chunk_bytes=chunk_bytes,
            heldout=0.3,
            document_sentences=document_sentences,
        )
        for chunk_bytes in (60, 100, 1 << 20)
    ]
    for corpus in corpora:
        train, heldout = list(corpus.train.documents()), list(corpus.heldout.documents())
        assert 0.1 < len(heldout) / len(expected) < 0.5
        train_left, heldout_left = iter(train), iter(heldout)
        train_next, heldout_next = next(train_left), next(heldout_left)
        for document in expected:  # input order, each in one of the parts
            if document == train_next:
                train_next = next(train_left, None)
            else:
                assert document == heldout_next
                heldout_next = next(heldout_left, None)
        assert (train_next, heldout_next) == (None, None)
        assert heldout == list(corpora[0].heldout.documents())


@pytest.mark.slow
def test_another_seed_holds_out_other_documents(tmp_path):
    chosen = [
        list(prepare(TEXT, tmp_path / str(seed), heldout=0.3, seed=seed).heldout.documents())
        for seed in range(3)
    ]
    assert chosen[0] != chosen[1] != chosen[2]


@pytest.mark.parametrize("share", [1e-12, 0.999999999])
def test_of_two_documents_one_is_held_out(tmp_path, share):
    corpus = prepare("a\n\nb\n", tmp_path / "corpus", heldout=share)
    assert (corpus.train.num_documents, corpus.heldout.num_documents) == (1, 1)
    assert corpus.about["notes"] == []


def test_one_document_leaves_nothing_to_hold_out(tmp_path):
    corpus = prepare("a b\nc\n", tmp_path / "corpus")
    assert corpus.heldout.num_symbols == 0
    assert list(corpus.heldout.documents()) == []
    assert "--document-sentences" in corpus.about["notes"][0]


@pytest.mark.slow
def test_held_out_text_may_be_given(tmp_path):
    heldout = io.BytesIO(b"x y\n\nz\n")
    corpus = prepare(TEXT, tmp_path / "corpus", heldout_sources=[heldout], heldout=0.5)
    assert list(corpus.train.documents()) == DOCUMENTS
    assert list(corpus.heldout.documents()) == [[["x", "y"]], [["z"]]]
    assert "x" not in corpus.vocabulary
    assert corpus.about["parts"]["heldout"]["outside"] == 3
    corpus = prepare(TEXT, tmp_path / "other", heldout_sources=[io.BytesIO(b"\n")])
    assert "the held-out files contain no sentences" in corpus.about["notes"][0]


@pytest.mark.slow
def test_raw_text_is_split_as_files_are(tmp_path):
    text = "Mr. Fox didn't go. Was it late? Yes!\n\nIt was\r\n\r\n\r\nThe end. " * 30
    source = tmp_path / "a.txt"
    source.write_text(text, newline="")
    whole = list(read_sentences(source, form=TextForm.RAW))
    for number, chunk_bytes in enumerate((200, 1 << 20)):
        settings = PrepareSettings(chunk_bytes=chunk_bytes, heldout=0.0)
        corpus = prepare_corpus(
            [source], tmp_path / str(number), settings=settings, num_processes=1
        )
        documents = list(corpus.train.documents())
        assert [s for document in documents for s in document] == [s for s in whole if s]
        assert len(documents) == 1 + sum(not s for s in whole)


@pytest.mark.slow
def test_a_huge_line_is_cut_between_sentences(tmp_path):
    text = "Mr. Fox left at 5 p.m. on Monday. Was it late? Yes! " * 100
    expected = list(read_sentences(io.BytesIO(text.encode()), form=TextForm.RAW))
    for form in (TextForm.RAW, TextForm.WRAPPED):
        folder = tmp_path / form
        corpus = prepare(text.replace(" ", "\n") if form == "wrapped" else text, folder, form=form,
                         chunk_bytes=500)  # fmt: skip
        assert list(corpus.train.documents()) == [expected]
        assert len(corpus.about["shards"]) > 5


@pytest.mark.slow
@pytest.mark.parametrize("form", [TextForm.RAW, TextForm.WRAPPED, TextForm.TOKENIZED])
def test_an_endless_token_loses_no_character(tmp_path, form):
    corpus = prepare("é🙂" * 50, tmp_path / "corpus", form=form, chunk_bytes=16)
    assert corpus.train.num_documents == 1
    assert "".join(flatten(corpus.train.documents())) == "é🙂" * 50


@pytest.mark.parametrize("chunk_bytes", [16, 1000])
@pytest.mark.parametrize("form", [TextForm.TOKENIZED, TextForm.LINES, TextForm.CONLLU])
def test_a_line_that_embedding_refuses_is_refused(tmp_path, monkeypatch, form, chunk_bytes):
    monkeypatch.setattr(files, "MAX_LINE_BYTES", 40)
    longest = f"1\tb\t{'c ' * 18}"
    text = f"1\ta\n\n{longest}\n\n"
    assert len(longest) == 40
    settings = {"form": form, "chunk_bytes": chunk_bytes}
    if form is not TextForm.CONLLU or chunk_bytes > len(longest):
        assert prepare(text, tmp_path / "good", **settings).train.num_tokens > 1
    for line in (f"{longest}d\n\n1\te\n", f"{longest}d", f"{longest}{'d e ' * 300}\n"):
        data = f"1\ta\n\n{line}".encode()
        with pytest.raises(DataError) as by_embedding:
            list(read_sentences(io.BytesIO(data), form=form))
        with pytest.raises(DataError, match="line 3: the line is over the limit of 40") as refused:
            prepare(data, tmp_path / "bad", **settings)
        assert str(refused.value) == str(by_embedding.value)


@pytest.mark.parametrize("form", [TextForm.TOKENIZED, TextForm.CONLLU])
def test_a_token_that_embedding_refuses_is_refused_and_nothing_is_left(tmp_path, monkeypatch, form):
    monkeypatch.setattr(files, "MAX_TOKEN_CHARS", 5)
    with pytest.raises(DataError, match="line 1: a token has 6 characters"):
        prepare("1\tabcdef\n", tmp_path / "bad" / "corpus", form=form)
    assert not (tmp_path / "bad").exists()


def test_a_blank_end_of_a_cut_line_ends_no_document(tmp_path):
    for form in (TextForm.RAW, TextForm.TOKENIZED):
        text = "a b c d e f g h " + " " * 16 * (form == TextForm.RAW) + "\nb\n"
        corpus = prepare(text, tmp_path / form, form=form, chunk_bytes=16, heldout=0.0)
        assert corpus.train.num_documents == 1


def test_columns_are_read_with_their_documents(tmp_path):
    text = "# newdoc\n1\tA\n2\tb\n\n1\tC\n\n# newdoc\n1\tD\n\n" * 5
    corpus = prepare(text, tmp_path / "corpus", form=TextForm.CONLLU, chunk_bytes=20, heldout=0.0)
    assert list(corpus.train.documents()) == [[["A", "b"], ["C"]], [["D"]]] * 5


def test_files_of_all_kinds_are_read_in_order(tmp_path):
    packers = {
        "a.txt": bytes,
        "b.txt.gz": gzip.compress,
        "c.xz": lzma.compress,
        "d.zst": zstandard.compress,
        "e.txt": lambda data: b"",
        "f.txt": lambda data: b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"),
    }
    for name, pack in packers.items():
        (tmp_path / name).write_bytes(pack(f"{name[0]} one\ntwo".encode()))
    settings = PrepareSettings(form=TextForm.TOKENIZED, heldout=0.0, chunk_bytes=16)
    paths = [tmp_path / name for name in packers]
    corpus = prepare_corpus(paths, tmp_path / "corpus", settings=settings, num_processes=1)
    assert list(corpus.train.documents()) == [[[name, "one"], ["two"]] for name in "abcdf"]
    assert [entry["size"] for entry in corpus.about["inputs"]] == [p.stat().st_size for p in paths]


def test_words_are_chosen_by_count_and_then_by_code_point(tmp_path):
    text = "c c c b b a a é é d \u3000x\tx y\n".replace(" ", "\t")
    corpus = prepare(text, tmp_path / "1", min_count=2)
    assert corpus.vocabulary == ["<S>", "</S>", "<UNK>", "c", "a", "b", "é"]
    assert read_word_list(tmp_path / "1" / "vocabulary.txt") == corpus.vocabulary
    corpus = prepare(text, tmp_path / "2", min_count=1, max_words=2)
    assert corpus.vocabulary[3:] == ["c", "a"]


def test_a_token_that_a_line_cannot_hold_stays_outside_the_vocabulary(tmp_path):
    corpus = prepare("a\r b\n\u3000 b\n", tmp_path / "corpus", heldout=0.0)
    assert corpus.vocabulary[3:] == ["b"]
    assert list(corpus.train.documents()) == [[["a\r", "b"], ["\u3000", "b"]]]


def test_a_given_vocabulary_is_taken_as_it_is(tmp_path):
    words = ["w3", "<UNK>", "w1", "</S>", "", "never", "<S>"]
    path = tmp_path / "words.txt"
    path.write_text("\n".join(words))
    corpus = prepare(TEXT, tmp_path / "corpus", vocabulary=path)
    assert corpus.vocabulary == words
    tokens = flatten(corpus.train.documents())
    sentences = corpus.train.num_sentences
    assert corpus.counts[[0, 2]].tolist() == [tokens.count("w3"), tokens.count("w1")]
    assert corpus.counts[6] == sentences + tokens.count("<S>")
    assert corpus.counts.sum() == corpus.train.num_symbols
    path.write_text("<S>\n</S>\nw1\n")
    with pytest.raises(DataError, match=r"words\.txt lacks <UNK>; add"):
        prepare(TEXT, tmp_path / "other", vocabulary=path)


@pytest.mark.slow
def test_the_rarest_are_forgotten_when_there_are_too_many(tmp_path):
    corpus = prepare(TEXT, tmp_path / "corpus", max_types=20, heldout=0.0)
    assert "more than 20 distinct tokens" in corpus.about["notes"][0]
    assert "w0" in corpus.vocabulary
    tokens = flatten(DOCUMENTS)
    expected = [tokens.count(word) for word in corpus.vocabulary[3:]]
    assert corpus.counts[3:].tolist() == expected  # the counts of those chosen are exact


BAD = b"fine\n\nca\xe9\xe9 b\n\xff x \xef\xbf\xbd\n\nlast \xc3"


@pytest.mark.parametrize("chunk_bytes", [16, 1000])
def test_bad_bytes_are_refused_with_their_place(tmp_path, chunk_bytes):
    path = tmp_path / "bad.txt"
    path.write_bytes(b"good\n" * 7 + BAD)
    settings = PrepareSettings(chunk_bytes=chunk_bytes)
    with pytest.raises(DataError, match=r"bad\.txt, line 10: byte 0xe9 is not UTF-8"):
        prepare_corpus([path], tmp_path / "corpus", settings=settings, num_processes=1)


@pytest.mark.parametrize("chunk_bytes", [16, 1000])
def test_bad_bytes_are_replaced_and_reported(tmp_path, chunk_bytes):
    settings = {"bad_bytes": "replace", "heldout": 0.0, "chunk_bytes": chunk_bytes}
    corpus = prepare(BAD, tmp_path / "corpus", **settings)
    assert [s for document in corpus.train.documents() for s in document] == [
        ["fine"], ["ca\ufffd\ufffd", "b"], ["\ufffd", "x", "\ufffd"], ["last", "\ufffd"]
    ]  # fmt: skip
    assert corpus.about["bad_bytes"] == {
        "replaced": 4,
        "first_places": [
            "standard input, line 3: byte 0xe9",
            "standard input, line 4: byte 0xff",
            "standard input, line 6: byte 0xc3",
        ],
    }
    assert (
        "replaced 4 bytes that are not UTF-8 with U+FFFD; the first: " in corpus.about["notes"][0]
    )


class Stopped(Exception):
    pass


def test_bytes_replaced_before_are_refused_when_asked_to(tmp_path):
    def stop(event):
        raise Stopped

    with pytest.raises(Stopped):
        prepare(b"\xff\n" + TEXT.encode(), tmp_path / "a", bad_bytes="replace", on_progress=stop)
    with pytest.raises(DataError, match="line 1: byte 0xff"):
        prepare(b"\xff\n" + TEXT.encode(), tmp_path / "a")


@pytest.mark.slow
def test_what_was_read_before_bad_bytes_is_kept_when_they_are_replaced(tmp_path):
    text = TEXT.encode() + b"\xff\n"
    with pytest.raises(DataError, match="byte 0xff"):
        prepare(text, tmp_path / "a")
    num_new = []
    a = prepare(
        text,
        tmp_path / "a",
        bad_bytes="replace",
        on_progress=lambda done: num_new.append(done.num_new_tokens),
    )
    assert num_new[-1] < a.train.num_tokens / 2
    prepare(text, tmp_path / "b", bad_bytes="replace")
    assert read_folder(tmp_path / "a") == read_folder(tmp_path / "b")


@pytest.mark.slow
def test_however_often_it_is_stopped_the_files_are_the_same(tmp_path):
    events = []
    prepare(TEXT, tmp_path / "whole", on_progress=events.append)
    expected = read_folder(tmp_path / "whole")
    num_shards = sum(name.startswith("shards/") for name in expected)
    assert [event.stage for event in events] == ["reading"] * num_shards + ["indexing"] * (
        3 * num_shards
    )

    def stop_at(last):
        seen = []

        def note(event):
            seen.append(event)
            if len(seen) == last:
                raise Stopped

        return note

    for last in range(1, len(events), 9):
        with pytest.raises(Stopped):
            prepare(TEXT, tmp_path / "stopped", on_progress=stop_at(last))
        with pytest.raises(DataError, match="unfinished"):
            open_corpus(tmp_path / "stopped")
    prepare(TEXT, tmp_path / "stopped")
    assert read_folder(tmp_path / "stopped") == expected


KILLED_RUN = """
import os, signal, sys
from pathlib import Path
from elmore.corpus.prepare import prepare_corpus
from elmore.corpus.settings import PrepareSettings

def kill(event):
    global num_events
    num_events += 1
    if num_events == int(sys.argv[3]):
        os.killpg(0, signal.SIGKILL)

if __name__ == "__main__":
    num_events = 0
    settings = PrepareSettings(form="tokenized", chunk_bytes=100, min_count=1)
    prepare_corpus(
        [Path(sys.argv[1])], Path(sys.argv[2]),
        settings=settings, num_processes=3, on_progress=kill,
    )
    print(sorted({"torch", "rich", "typer"} & set(sys.modules)))
"""


@pytest.mark.slow
def test_processes_and_kills_change_no_byte(tmp_path):
    (tmp_path / "run.py").write_text(KILLED_RUN)
    text = tmp_path / "text.txt"
    text.write_text(TEXT)
    settings = PrepareSettings(form=TextForm.TOKENIZED, chunk_bytes=100, min_count=1)
    prepare_corpus([text], tmp_path / "one", settings=settings, num_processes=1)

    def run(num_events):
        command = [sys.executable, tmp_path / "run.py", text, tmp_path / "three", str(num_events)]
        return subprocess.run(
            command, start_new_session=True, capture_output=True, text=True, check=False
        )

    assert run(4).returncode == -signal.SIGKILL
    assert len(list((tmp_path / "three" / "shards").glob("*.safetensors"))) >= 4
    assert not (tmp_path / "three" / "corpus.json").exists()
    result = run(10**9)
    assert (result.returncode, result.stderr, result.stdout) == (0, "", "[]\n")
    assert read_folder(tmp_path / "three") == read_folder(tmp_path / "one")


@pytest.mark.slow
def test_paths_may_be_strings_and_one_text_need_not_be_in_a_list(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text(TEXT)
    (tmp_path / "dev.txt").write_text("x y\n")
    (tmp_path / "words.txt").write_text("<S>\n</S>\n<UNK>\nw1\n")
    settings = {"form": "tokenized", "chunk_bytes": 100}
    expected = prepare_corpus(
        [Path("text.txt")],
        Path("one"),
        heldout_sources=[Path("dev.txt")],
        settings=PrepareSettings(**settings, vocabulary=Path("words.txt")),
        num_processes=1,
    )
    for name, sources in (
        ("strings", ["text.txt"]),
        ("path", Path("text.txt")),
        ("string", "text.txt"),
        ("paths", (Path(name) for name in ["text.txt"])),
    ):
        made = prepare_corpus(
            sources,
            name,
            heldout_sources="dev.txt",
            settings=PrepareSettings(**settings, vocabulary="words.txt"),
            num_processes=1,
        )
        assert read_folder(made.folder) == read_folder(expected.folder), name
        assert open_corpus(name).fingerprint == check_corpus(name).fingerprint
    with (tmp_path / "text.txt").open("rb") as stream:
        made = prepare_corpus(stream, "stream", settings=PrepareSettings(**settings))
    assert flatten(made.train.documents()) + flatten(made.heldout.documents())


@pytest.mark.parametrize("source", [None, 3, io.StringIO("a b\n"), b"text.txt"])
def test_what_is_not_a_text_file_is_explained(tmp_path, source):
    for sources in ([source], source):
        with pytest.raises(ConfigError, match=r"expected a path or a file .* binary mode, got"):
            prepare_corpus(sources, tmp_path / "corpus")
    assert list(tmp_path.iterdir()) == []


def test_a_finished_corpus_is_not_made_again(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text(TEXT)
    os.utime(text, (0, 0))
    events = []

    def run(**options):
        return prepare_corpus(
            [text], tmp_path / "corpus", num_processes=1, on_progress=events.append, **options
        )

    first = run()
    events.clear()
    assert run().fingerprint == first.fingerprint
    assert events == []
    os.utime(text)  # newer than the corpus, but the same: read, not split again
    os.utime(tmp_path / "corpus" / "corpus.json", (1, 1))
    assert run().fingerprint == first.fingerprint
    assert {event.num_new_tokens for event in events} == {0}
    text.write_text(TEXT.swapcase())
    os.utime(tmp_path / "corpus" / "corpus.json", (1, 1))
    with pytest.raises(DataError, match=r"text\.txt has changed, from line 1 on; use ano"):
        run()
    assert run(restart=True).fingerprint != first.fingerprint


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 5}, r"settings\.seed was 0 and is now 5; use another folder, or --restart"),
        ({"form": TextForm.RAW}, r"inputs\[0\]\.form was 'tokenized' and is now 'raw'"),
    ],
)
def test_a_finished_corpus_is_not_changed(tmp_path, change, message):
    prepare(TEXT, tmp_path / "corpus")
    before = read_folder(tmp_path / "corpus")
    with pytest.raises(DataError, match=message):
        prepare(TEXT, tmp_path / "corpus", **change)
    assert read_folder(tmp_path / "corpus") == before


def find_cut(data):
    return data.rfind(b"\n") + 1


@pytest.mark.slow
def test_an_unfinished_corpus_resumes_with_the_same_text_only(tmp_path):
    def stop(event):
        if event.stage == "indexing":
            raise Stopped

    for options in ({"min_count": 1}, {"min_count": 2, "seed": 3}):
        with pytest.raises(Stopped):
            prepare(TEXT, tmp_path / "corpus", on_progress=stop, **options)
    with pytest.raises(DataError, match="chunk_bytes was 100 and is now 101; use another folder"):
        prepare(TEXT, tmp_path / "corpus", chunk_bytes=101)
    for text in (TEXT[:-3], TEXT.replace("w1", "v1"), TEXT + "x"):
        with pytest.raises(DataError, match=r"has changed|text is shorter"):
            prepare(text, tmp_path / "corpus")
    with pytest.raises(DataError, match="the text is shorter"):
        prepare(TEXT.encode()[: find_cut(TEXT.encode()[:100])], tmp_path / "corpus")
    prepare(TEXT, tmp_path / "corpus", seed=3)
    prepare(TEXT, tmp_path / "other", seed=3)
    assert read_folder(tmp_path / "corpus") == read_folder(tmp_path / "other")


def test_a_folder_of_the_users_is_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    for restart in (False, True):
        with pytest.raises(DataError, match="contains other files and is not a corpus"):
            prepare(TEXT, tmp_path, restart=restart)
    (tmp_path / "corpus.json").write_text('{"mine": 1}')
    with pytest.raises(DataError, match="not elmore's"):
        prepare(TEXT, tmp_path, restart=True)
    assert sorted(read_folder(tmp_path)) == ["corpus.json", "notes.txt"]
    with pytest.raises(DataError, match=r"notes\.txt is a file, not a corpus; choose another"):
        prepare(TEXT, tmp_path / "notes.txt")


def test_text_without_a_sentence_is_refused_and_leaves_nothing(tmp_path):
    for number, text in enumerate(["", "\n \n\n"]):
        with pytest.raises(DataError, match="standard input: no sentences found"):
            prepare(text, tmp_path / str(number), form=TextForm.RAW)
    missing = tmp_path / "missing.txt"
    with pytest.raises(DataError, match=r"there is no file .*missing\.txt"):
        prepare_corpus([missing], tmp_path / "corpus")
    with pytest.raises(ConfigError, match="no text to prepare"):
        prepare_corpus([], tmp_path / "corpus")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_two_processes_cannot_prepare_one_folder(tmp_path):
    def prepare_too(event):
        with pytest.raises(DataError, match="another process is working"):
            prepare(TEXT, tmp_path / "corpus")

    prepare(TEXT, tmp_path / "corpus", on_progress=prepare_too)


@pytest.mark.slow
def test_a_worker_that_finds_a_mistake_or_dies_is_explained(tmp_path):
    text = b"a a a a a a a a\n\xff b\n" + b"\xfe\n" * 40
    with pytest.raises(DataError, match=r"line 2: byte 0xff"):
        prepare(text, tmp_path / "a", chunk_bytes=16, num_processes=2)

    def kill_workers(event):
        for child in multiprocessing.active_children():
            child.kill()

    with pytest.raises(DataError, match=r"ended unexpectedly \(status -9\).*fewer --processes"):
        prepare(TEXT, tmp_path / "b", num_processes=2, on_progress=kill_workers)


@pytest.mark.slow
def test_different_corpora_have_different_fingerprints(tmp_path):
    variants = [{}, {"seed": 1}, {"max_words": 5}, {"document_sentences": 2}]
    prints = [
        prepare(TEXT, tmp_path / str(number), heldout=0.3, **variant).fingerprint
        for number, variant in enumerate(variants)
    ]
    assert len(set(prints)) == len(variants)
    summary = json.loads(Path(tmp_path / "0" / "corpus.json").read_text())
    assert summary["fingerprint"] == prints[0]


def test_a_vocabulary_is_extended_by_frequent_words_behind_its_own(tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("<S>\n</S>\n<UNK>\nb\nz\n")
    text = "a a a b b b b c c d\n"
    corpus = prepare(
        text, tmp_path / "c", vocabulary=words, extends=True, min_count=2, max_words=1, heldout=0.0
    )
    assert corpus.vocabulary == ["<S>", "</S>", "<UNK>", "b", "z", "a"]
    assert corpus.counts.tolist() == [1, 1, 3, 4, 0, 3]


def test_there_must_be_a_vocabulary_to_extend():
    with pytest.raises(ConfigError, match="no vocabulary to extend"):
        PrepareSettings(extends=True)


@pytest.mark.parametrize(
    "num_processes", [1, pytest.param(2, marks=pytest.mark.slow)], ids=["one", "two"]
)
def test_chinese_without_spaces_is_noticed(tmp_path, num_processes, capfd):
    text = "我们希望中国经济持续健康快速发展。\n" * 9
    with pytest.warns(DataWarning, match="Chinese without spaces"):
        prepare(text, tmp_path / "c", form=TextForm.RAW, num_processes=num_processes)
    assert capfd.readouterr().err == ""  # workers print nothing
    corpus = prepare(text, tmp_path / "d", form=TextForm.RAW, language="zh-chars", heldout=0.0)
    assert next(iter(corpus.train.documents()))[0] == list(text[:17])
