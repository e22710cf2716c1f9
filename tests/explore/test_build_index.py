import json
import sys
import zlib
from dataclasses import replace

import numpy as np
import pytest

import elmore
from elmore.embed.embedder import Embedder
from elmore.errors import ConfigError, DataError, ElmoreError
from elmore.explore import build_index as job
from elmore.explore.build_index import build_index
from elmore.explore.index_writer import IndexWriter
from elmore.explore.use_index import open_index
from tests import tiny
from tests.explore import indexes
from tests.killing import run_with_kills


@pytest.fixture(scope="module")
def embedder():
    return indexes.make_embedder(tokens_per_batch=16)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    indexes.write_texts(tmp_path)
    return tmp_path


class Killed(BaseException):
    pass


def kill_after(monkeypatch, num_windows):
    """Stop the job while it writes window `num_windows`, after part of it is in the files."""
    write = IndexWriter.add
    left = [num_windows]

    def add(self, sentences, vectors):
        write(self, sentences, vectors)
        left[0] -= 1
        if left[0] == 0:
            raise Killed

    monkeypatch.setattr(IndexWriter, "add", add)


def describe(use):
    return use.source, use.document, use.line, " ".join(use.tokens)


def test_an_index_has_every_token_with_its_position_and_its_vector(folder, embedder):
    build_index(["book.txt", "tagged.conllu"], "index", model=embedder)
    index = open_index("index")
    uses = [index.use(number) for number in range(index.num_tokens)]
    wanted = [
        (sentence, position, token)
        for sentence in [*indexes.SENTENCES, *indexes.TAGGED_SENTENCES]
        for position, token in enumerate(sentence[-1].split())
    ]
    assert [(describe(use), use.position, use.word) for use in uses] == wanted
    assert [use.tag for use in uses[-5:]] == ["NOUN", "VERB", None, "DET", "NOUN"]
    assert {use.tag for use in uses[:-5]} == {None}
    for use in uses:
        whole = embedder.embed([use.tokens], layers="all")[0]
        for layer in range(embedder.num_layers):
            vector = index.vectors([use], layer)[0]
            assert np.array_equal(vector, whole[layer, use.position].astype(np.float16))


def test_blank_lines_count_as_sentences_where_every_line_is_one(folder, embedder):
    index = indexes.make_index(folder, embedder, "news.txt", form="lines")
    assert index.num_sentences == 4
    assert [(use.sentence, use.line) for use in index.uses("bank").uses] == [(0, 1), (3, 4)]


def test_files_can_be_added_and_are_added_once(folder, embedder):
    build_index("book.txt", "index", model=embedder)
    first = indexes.read_all(folder / "index")
    report = build_index("book.txt", "index", model=embedder)
    assert report.num_added_sources == 0
    assert indexes.read_all(folder / "index") == first
    before = open_index("index")
    report = build_index(["book.txt", "tagged.conllu"], "index", model=embedder)
    assert (report.num_added_sources, report.num_added_tokens) == (1, 5)
    build_index(["book.txt", "tagged.conllu"], "both", model=embedder)
    assert indexes.read_all(folder / "index") == indexes.read_all(folder / "both")
    # What was opened before still works.
    assert before.uses("bear").total == 0
    assert before.uses("bank").total == 5
    open_index("index").check()


@pytest.mark.parametrize("num_windows", [1, 2, 4, 6])
@pytest.mark.parametrize("commits", [0.0, 1000.0], ids=["every window", "never"])
def test_a_killed_job_resumes_to_the_same_bytes(
    folder, embedder, monkeypatch, num_windows, commits
):
    (folder / "long.txt").write_text(indexes.make_large_text())
    texts = ["book.txt", "long.txt", "news.txt"]
    build_index(texts, "whole", model=embedder)
    build_index("book.txt", "index", model=embedder)
    book = open_index("index").num_tokens
    monkeypatch.setattr(job, "COMMIT_SECONDS", commits)
    with monkeypatch.context() as patched:
        kill_after(patched, num_windows)
        with pytest.raises(Killed):
            build_index(texts, "index", model=embedder)
    # The index of before can be used until the addition is complete.
    assert open_index("index").num_tokens == book
    report = build_index(texts, "index", model=embedder)
    assert (report.num_resumed_tokens > 0) == (commits == 0.0 and num_windows > 1)
    assert report.num_added_tokens == report.num_tokens - book
    assert indexes.read_all(folder / "index") == indexes.read_all(folder / "whole")


def test_a_job_killed_while_it_finishes_resumes(folder, embedder, monkeypatch):
    build_index(["book.txt", "news.txt"], "whole", model=embedder)
    build_index("book.txt", "index", model=embedder)

    def kill(self):
        self.commit()
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(IndexWriter, "finish", kill)
        with pytest.raises(Killed):
            build_index("news.txt", "index", model=embedder)
    assert open_index("index").uses("raised").total == 0
    # Nothing is left to embed, but the job is not finished.
    build_index("news.txt", "index", model=embedder)
    assert indexes.read_all(folder / "index") == indexes.read_all(folder / "whole")


def test_an_unfinished_first_job_is_no_index_yet(folder, embedder, monkeypatch):
    monkeypatch.setattr(job, "COMMIT_SECONDS", 0.0)
    (folder / "long.txt").write_text(indexes.make_large_text())
    with monkeypatch.context() as patched:
        kill_after(patched, 3)
        with pytest.raises(Killed):
            build_index("long.txt", "index", model=embedder)
    with pytest.raises(DataError, match="is unfinished; rerun the elmore index command"):
        open_index("index")
    with pytest.raises(DataError, match=r"has a part of long\.txt.*give that file too to resume"):
        build_index("book.txt", "index", model=embedder)
    (folder / "long.txt").write_text("Other text.\n")
    with pytest.raises(DataError, match=r"long\.txt has changed since it was added"):
        build_index("long.txt", "index", model=embedder)
    build_index("book.txt", "index", model=embedder, restart=True)
    assert open_index("index").num_sentences == 4


def test_text_that_is_split_in_another_way_is_not_resumed(folder, embedder, monkeypatch):
    monkeypatch.setattr(job, "COMMIT_SECONDS", 0.0)
    (folder / "long.txt").write_text(indexes.make_large_text())
    with monkeypatch.context() as patched:
        kill_after(patched, 3)
        with pytest.raises(Killed):
            build_index("long.txt", "index", model=embedder)
    read = job.read_source

    def read_differently(*arguments, **options):
        for sentence in read(*arguments, **options):
            sentence.tokens[0] += "-"
            yield sentence

    monkeypatch.setattr(job, "read_source", read_differently)
    with pytest.raises(DataError, match="is now split into other tokens"):
        build_index("long.txt", "index", model=embedder)


def test_other_settings_are_refused_and_leave_the_index_as_it_is(folder, embedder):
    build_index("book.txt", "index", model=embedder)
    before = indexes.read_all(folder / "index")
    others = [
        ({"model": Embedder(tiny.model(seed=1))}, "model_hash was"),
        ({"model": embedder, "layers": [0, 2]}, "layers was"),
        ({"model": indexes.make_embedder(language="zh-chars")}, "language was"),
        ({"model": indexes.make_embedder(precision="bf16")}, "precision was"),
    ]
    for options, complaint in others:
        with pytest.raises(ElmoreError, match=complaint):
            build_index("news.txt", "index", **options)
    assert indexes.read_all(folder / "index") == before


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"layers": "average"}, "an index stores single layers; give all, top, or layer numbers"),
        ({"layers": 7}, "layer number from 0 to 2"),
        ({"form": "poem"}, "form is 'poem'; choose one of"),
        ({"text": "missing.txt"}, r"cannot index missing\.txt: there is no such file"),
        ({"text": []}, "no text was given"),
        ({"text": "empty.txt"}, r"there are no tokens in empty\.txt"),
        ({"text": 3}, "text is 3; give a path"),
        ({"out": "a/b/c"}, "there is no folder a"),
        ({"out": "book.txt"}, "is a file, not an index"),
        ({"out": "."}, "contains other files and is not an index"),
    ],
)
def test_a_mistake_is_one_sentence_and_nothing_is_written(folder, embedder, options, complaint):
    (folder / "empty.txt").write_text("\n")
    before = sorted(folder.rglob("*"))
    with pytest.raises(ElmoreError, match=complaint):
        build_index(**{"text": "book.txt", "out": "index", "model": embedder, **options})
    assert sorted(folder.rglob("*")) == before


def test_the_files_of_a_folder_are_indexed_but_not_those_of_an_index_in_it(folder, embedder):
    (folder / "texts" / "old").mkdir(parents=True)
    (folder / "texts" / "old" / "a.txt").write_text("A bank .\n")
    (folder / "texts" / "b.txt").write_text("The river .\n")
    (folder / "texts" / ".hidden").write_bytes(b"\xff")
    for number_added in (2, 0):  # the second time, the index is one of the folder's files
        report = build_index("texts", "texts/index", model=embedder)
        assert report.num_added_sources == number_added
    names = [source.name for source in open_index("texts/index").sources]
    assert names == ["texts/b.txt", "texts/old/a.txt"]
    with pytest.raises(DataError, match="cannot index texts/index: it is an index itself"):
        build_index("texts/index", "other", model=embedder)
    (folder / "nothing").mkdir()
    with pytest.raises(DataError, match="the folder nothing has no files; check the path"):
        build_index("nothing", "other", model=embedder)


def test_carried_state_is_refused(folder):
    with pytest.raises(ConfigError, match="every sentence is embedded by itself"):
        build_index("book.txt", "index", model=indexes.make_embedder(state="document"))


def test_other_peoples_index_json_is_left_alone(folder, embedder):
    (folder / "web").mkdir()
    (folder / "web" / "index.json").write_text("{}")
    (folder / "web" / "words.txt").write_text("mine")
    with pytest.raises(DataError, match="contains other files and is not an index"):
        build_index("book.txt", "web", model=embedder, restart=True)
    assert (folder / "web" / "words.txt").read_text() == "mine"


def test_the_top_layer_alone_can_be_stored(folder, embedder):
    index = indexes.make_index(folder, embedder, "book.txt", layers="top")
    assert index.layers == (2,)
    assert not (folder / "index" / "layer1.f16").exists()


def test_vectors_too_large_for_f16_are_refused(folder):
    model = tiny.model(scale=0.4)
    made = Embedder(model)
    windows = made.windows

    def enlarged(*arguments, **options):
        for window in windows(*arguments, **options):
            yield replace(window, vectors=[vectors * 1e6 for vectors in window.vectors])

    made.__dict__["windows"] = enlarged
    with pytest.raises(DataError, match="numbers that f16 cannot hold"):
        build_index("book.txt", "index", model=made)
    assert not (folder / "index").exists()


def test_words_of_any_characters_are_kept(folder, embedder):
    odd = ["a\\b", "\u2028", "é", "\ud7ff", "x\\n"]
    (folder / "odd.txt").write_text(" ".join(odd) + "\n")
    index = indexes.make_index(folder, embedder, "odd.txt", form="tokenized")
    assert [index.use(n).word for n in range(index.num_tokens)] == odd


def test_checksums_are_those_of_the_files(folder, embedder):
    indexes.make_index(folder, embedder, "book.txt")
    recorded = json.loads((folder / "index" / "index.json").read_text())["files"]
    for name, facts in recorded.items():
        content = (folder / "index" / name).read_bytes()
        assert facts == {"num_bytes": len(content), "crc32": zlib.crc32(content)}


def test_only_the_uses_of_some_words_can_be_indexed(folder, embedder, monkeypatch):
    (folder / "long.txt").write_text(indexes.make_large_text())
    whole = indexes.make_index(folder, embedder, "long.txt", out="whole")
    texts = ["book.txt", "long.txt"]
    for name in texts:  # added in two steps, with words that are new in the second
        build_index(name, "index", model=embedder, words=["Bank", "river"])
    build_index(texts, "both", model=embedder, words=["river", "bank", "BANK"])
    assert indexes.read_all(folder / "index") == indexes.read_all(folder / "both")
    index = open_index("index")
    index.check()
    assert index.indexed_words == ["bank", "river"]
    for word in index.indexed_words:
        found, wanted = index.uses(word, source="long.txt").uses, whole.uses(word).uses
        assert [(u.line, u.position, u.tokens) for u in found] == [
            (u.line, u.position, u.tokens) for u in wanted
        ]
        for layer in range(3):
            assert np.array_equal(index.vectors(found, layer), whole.vectors(wanted, layer))
    use = index.uses("river", source="long.txt").uses[0]
    same = whole.uses("river").uses[0]
    found = index.nearest(use, 1, top=5, source="long.txt")
    everywhere = whole.nearest(same, 1, top=1000)
    wanted = [n for n in everywhere if n.use.word.casefold() in ("bank", "river")][:5]
    assert [n.similarity for n in found] == pytest.approx([n.similarity for n in wanted])
    assert {len(near.use.tokens) > 0 for near in index.nearest(use, 0)} == {True}
    assert index.uses("money").total > 0  # in sentences with the others
    with pytest.raises(DataError, match=r"has no vectors of 'money'; it is an index of the words"):
        index.nearest(index.uses("money").uses[0], 1)
    with pytest.raises(DataError, match="has no vectors of"):
        index.nearest(use, 1, word="money")
    with pytest.raises(ElmoreError, match="words was"):
        build_index("news.txt", "index", model=embedder)
    with pytest.raises(ConfigError, match="words is 'bank'; give a list of words"):
        build_index("news.txt", "new", model=embedder, words="bank")


def test_an_index_of_some_words_resumes(folder, embedder, monkeypatch):
    (folder / "long.txt").write_text(indexes.make_large_text(num_sentences=200))
    options = {"model": embedder, "words": ["bank"]}
    build_index("long.txt", "whole", **options)
    monkeypatch.setattr(job, "COMMIT_SECONDS", 0.0)
    with monkeypatch.context() as patched:
        kill_after(patched, 3)
        with pytest.raises(Killed):
            build_index("long.txt", "index", **options)
    assert build_index("long.txt", "index", **options).num_resumed_tokens > 0
    assert indexes.read_all(folder / "index") == indexes.read_all(folder / "whole")


@pytest.mark.slow
def test_killed_at_random_moments_the_command_ends_with_the_same_files(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text(indexes.make_large_text(num_sentences=400))
    # Parts of some milliseconds each, so that kills fall between and into them.
    program = (
        "import elmore.explore.build_index as job; job.COMMIT_SECONDS = 0;"
        "from elmore.cli.app import main; main()"
    )
    command = [
        *(sys.executable, "-c", program, "index", str(text), "--tokenized"),
        *("--model", str(tiny.TRAINED_MODEL), "--tokens-per-batch", "16"),
    ]
    out = tmp_path / "index"
    has_started = (out / "layer1.f16").exists
    run_with_kills([*command, "--out", str(out)], has_started=has_started, seed=0)
    build_index(text, tmp_path / "whole", model=elmore.load(tiny.TRAINED_MODEL), form="tokenized")
    assert indexes.read_all(out) == indexes.read_all(tmp_path / "whole")
