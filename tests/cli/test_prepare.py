import json

import pytest

from elmore.corpus.corpus import open_corpus


@pytest.fixture
def texts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text(f"{name} is it. It isn't.\n\nIt is a {name}.\n" * 20)
    return tmp_path


def test_prepares_files_and_prints_a_table(texts, elmore_command):
    result = elmore_command("prepare", "*.txt", "--out", "corpus", "--heldout", 0.1)
    assert result.status == 0, result.err
    corpus = open_corpus(texts / "corpus")
    assert corpus.train.num_documents + corpus.heldout.num_documents == 3 * 21
    header, train, heldout, words = result.out.splitlines()
    assert header.split()[:3] == ["documents", "sentences", "tokens"]
    part = corpus.train
    assert train.split()[:4] == [
        "train", *(f"{n:,}" for n in (part.num_documents, part.num_sentences, part.num_tokens))
    ]  # fmt: skip
    assert heldout.startswith("held out")
    assert words.startswith(f"vocabulary: {len(corpus.vocabulary)} words")


@pytest.mark.slow
def test_reports_as_json(texts, elmore_command):
    result = elmore_command("prepare", "a.txt", "--heldout-text", "[bc].txt", "-o", "c", "--json")
    assert result.json["parts"]["heldout"]["documents"] == 42
    assert result.json["fingerprint"] == open_corpus(texts / "c").fingerprint
    assert result.json["parts"]["heldout"]["outside"] > 0


def test_reads_standard_input_and_a_vocabulary(texts, elmore_command):
    (texts / "words.txt").write_text("<S>\n</S>\n<UNK>\na\n")
    result = elmore_command(
        *("prepare", "-", "--tokenized", "--vocabulary", "words.txt", "--out", "c"),
        *("--document-sentences", 1, "--heldout", 0.5),
        stdin=b"a b\na c\n",
    )
    assert result.status == 0, result.err
    corpus = open_corpus(texts / "c")
    assert corpus.vocabulary == ["<S>", "</S>", "<UNK>", "a"]
    assert corpus.counts.tolist() == [1, 1, 1, 1]
    assert corpus.heldout.num_documents == 1


def test_notes_go_to_standard_error(texts, elmore_command):
    (texts / "latin.txt").write_bytes(b"caf\xe9\n")
    result = elmore_command("prepare", "latin.txt", "-o", "c", "--bad-bytes", "replace", "--json")
    assert result.status == 0, result.err
    assert "note: no text is held out" in result.err
    assert "the first: latin.txt, line 1: byte 0xe9" in result.err
    assert result.json["bad_bytes"]["replaced"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.txt"], "there is no file missing.txt"),
        (["*.gz"], "no file matches '*.gz'"),
        (["."], "is a folder"),
        (["a.txt", "--heldout", "1.5"], "fraction of the documents"),
        (["a.txt", "--vocabulary", "none.txt"], "No such file"),
        (["latin.txt"], "latin.txt, line 1: byte 0xe9 is not UTF-8"),
        (["a.txt", "--tokenized", "--form", "raw"], "contradicts"),
        (["a.txt", "--vocabulary", "a.txt", "--min-count", "2"], "leave out --max-words"),
        ([], "there is no text to prepare"),
        (["--verify"], "c does not exist; make a corpus"),
        (
            ["a.txt", "--verify", "--restart"],
            "only checks the corpus in --out; leave out TEXT, --restart",
        ),
    ],
)
def test_mistakes_are_one_sentence(texts, elmore_command, arguments, message):
    (texts / "latin.txt").write_bytes(b"caf\xe9\n")
    result = elmore_command("prepare", *arguments, "--out", "c")
    assert result.status == 2
    assert message in " ".join(result.err.replace("│", "").split())
    assert "Traceback" not in result.err


def test_a_changed_command_is_refused_until_restarted(texts, elmore_command):
    elmore_command("prepare", "a.txt", "--out", "c")
    result = elmore_command("prepare", "b.txt", "--out", "c")
    assert (result.status, "use another folder, or --restart" in result.err) == (2, True)
    assert elmore_command("prepare", "b.txt", "--out", "c", "--restart").status == 0


def test_an_interruption_says_how_to_resume(texts, elmore_command, monkeypatch):
    def interrupt(*arguments, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr("elmore.corpus.prepare.make_shards", interrupt)
    result = elmore_command("prepare", "a.txt", "--out", "c")
    assert (result.status, result.err) == (
        130,
        "elmore: stopped; rerun the same command to resume\n",
    )


def test_verify_reads_the_whole_corpus(texts, elmore_command):
    elmore_command("prepare", "*.txt", "--out", "c")
    result = elmore_command("prepare", "--verify", "--out", "c")
    assert (result.status, result.err) == (0, "")
    assert result.out.startswith("c: 1 shard and all other files match their checksums (")
    report = elmore_command("prepare", "--verify", "--out", "c", "--json").json
    assert report["fingerprint"] == open_corpus(texts / "c").fingerprint
    for name in ("shards/00000000.safetensors", "counts.bin", "corpus.json", "job.json"):
        whole = (texts / "c" / name).read_bytes()
        (texts / "c" / name).write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
        result = elmore_command("prepare", "--verify", "--out", "c")
        assert (result.status, result.out) == (2, "")
        assert f"elmore: c/{name} is damaged" in result.err
        assert len(result.err.splitlines()) == 1
        (texts / "c" / name).write_bytes(whole)


def test_a_corpus_of_an_older_version_is_one_line_and_no_error(texts, elmore_command):
    elmore_command("prepare", "*.txt", "--out", "c")
    content = json.loads((texts / "c" / "corpus.json").read_text())
    del content["checksum"], content["job"]
    (texts / "c" / "corpus.json").write_text(json.dumps(content))
    result = elmore_command("prepare", "*.txt", "--out", "c")
    assert result.status == 0
    (line,) = result.err.splitlines()
    assert line.startswith("elmore: c/corpus.json was written by an older version of elmore")


@pytest.mark.slow
def test_a_text_too_short_to_learn_from_is_noted(texts, elmore_command):
    (texts / "short.txt").write_text("a cat sat down\n")
    result = elmore_command("prepare", "short.txt", "--out", "c", "--min-count", 1, "--json")
    assert result.status == 0
    assert "note: the training text is too short: 4 tokens" in result.err
    assert any("the training text is too short" in note for note in result.json["notes"])
    (texts / "rare.txt").write_text(" ".join(f"w{number}" for number in range(40)))
    result = elmore_command("prepare", "rare.txt", "--out", "rare")
    assert "note: the vocabulary has no words, only <S>, </S>, <UNK>" in result.err
    (texts / "few.txt").write_text("a cat sat down on a mat\n" * 3)
    result = elmore_command("prepare", "few.txt", "--out", "few")
    assert (
        "note: the training text has only 27 symbols, but one step reads 640 (32 rows of 20); "
        "prepare more text, or expect a poor model\n"
    ) in result.err
    result = elmore_command("prepare", "*.txt", "--out", "enough", "--heldout", 0)
    assert (result.status, result.err) == (0, "")
