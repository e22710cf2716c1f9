import json
from dataclasses import replace

import h5py
import numpy as np
import pytest

from elmore.config import About, LSTMConfig, ModelConfig, WordConfig
from elmore.embed.chunks import ChunkFolder
from elmore.embed.embedder import Embedder
from elmore.embed.vector_file import read_header, read_vectors
from elmore.weights.elmo_model import new_model
from tests import tiny

SENTENCES = [["The", "bank"], [], ["of", "the", "river", "."]]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    tiny.model(scale=0.4).save_pretrained(tmp_path / "model")
    text = "The bank\n\nof  the river .\n"
    (tmp_path / "sentences.txt").write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("state", ["reset", "stream", "document"])
def test_embeds_a_file_of_tokens(folder, elmore_command, state):
    result = elmore_command(
        *("embed", "sentences.txt", "--model", "model/", "--tokenized", "--layers", "all"),
        *("--state", state, "--out", "vectors.h5"),
    )
    assert (result.status, result.out) == (0, "")
    embedder = Embedder(tiny.model(scale=0.4), state=state)
    wanted = list(embedder.stream(SENTENCES, layers="all"))
    with h5py.File("vectors.h5") as file:
        assert list(file)[:3] == ["0", "1", "2"]
        for number, vectors in enumerate(wanted):
            assert np.array_equal(file[str(number)][...], vectors)
        index = json.loads(file["sentence_to_index"][0])
        assert index["of the river ."] == "2"
    assert read_header("vectors.h5").state == state
    assert "3 sentences, 6 tokens" in result.err


def test_one_is_singular(folder, elmore_command):
    (folder / "one.txt").write_text("Yes\n")
    result = elmore_command("embed", "one.txt", "--out", "one.h5")
    assert "one.h5: 1 sentence, 1 token, layers average" in result.err
    result = elmore_command("index", "one.txt", "--out", "index")
    assert "index: added 1 token; 1 token of 1 word in 1 sentence, " in result.err
    result = elmore_command("evaluate", "one.txt")
    assert "1, and the ends of 1 sentence\n" in result.out


def test_tabs_separate_tokens_where_a_line_has_one(folder, elmore_command):
    (folder / "tabs.txt").write_text("a b\tc\t\u3000\na b\n")
    elmore_command("embed", "tabs.txt", "--tokenized", "--out", "v.npz")
    assert [s.tokens for s in read_vectors("v.npz")] == [["a b", "c", "\u3000"], ["a", "b"]]


def test_lines_stay_aligned_with_labels(folder, elmore_command):
    (folder / "raw.txt").write_text("He left. She stayed.\n\nWhy?\n")
    options = ("raw.txt", "--model", "model/", "--form", "lines")
    assert elmore_command("embed", *options, "--out", "v.parquet").status == 0
    found = list(read_vectors("v.parquet"))
    assert [(sentence.line, len(sentence.tokens)) for sentence in found] == [(1, 6), (2, 0), (3, 2)]
    printed = [json.loads(line) for line in elmore_command("embed", *options).out.splitlines()]
    assert [facts["line"] for facts in printed] == [1, 2, 3]
    assert [facts["tokens"] for facts in printed] == [sentence.tokens for sentence in found]


def test_raw_text_is_split_into_sentences_and_tokens(folder, elmore_command):
    (folder / "raw.txt").write_text("He didn't go. She did.\n")
    elmore_command("embed", "raw.txt", "--out", "v.npz")
    assert [s.tokens for s in read_vectors("v.npz")] == [
        ["He", "did", "n't", "go", "."],
        ["She", "did", "."],
    ]


def test_reads_standard_input_and_prints_json_lines(folder, elmore_command):
    result = elmore_command(
        "embed", "-", "--model", "model", "--tokenized", stdin="a \u3000\n\nb\n".encode()
    )
    lines = [json.loads(line) for line in result.out.splitlines()]
    assert [line["tokens"] for line in lines] == [["a", "\u3000"], [], ["b"]]
    wanted = Embedder(tiny.model(scale=0.4)).embed([["a", "\u3000"]])[0]
    assert np.array_equal(np.array(lines[0]["vectors"], dtype=np.float32), wanted)


def test_reports_as_json(folder, elmore_command):
    result = elmore_command(
        *("embed", "sentences.txt", "--tokenized", "--dtype", "f16", "--compress"),
        *("--out", "v.parquet", "--json"),
    )
    assert (result.json["num_sentences"], result.json["dtype"]) == (3, "float16")


def test_earlier_spellings_of_number_formats_work_with_a_note(folder, elmore_command):
    command = ("embed", "sentences.txt", "--tokenized", "--out", "v.npz")
    result = elmore_command(*command, "--dtype", "float16")
    assert result.status == 0
    assert result.err.startswith("note: float16 is now spelled f16\n")
    assert read_header("v.npz").dtype == "float16"
    for options in (("--dtype", "bf16"), ("--precision", "f16"), ("--dtype", "many")):
        result = elmore_command(*command, *options)
        assert result.status == 2
        assert f"'{options[1]}' is not one of f32, " in result.err


def test_bilm_tf_weights_are_used_as_they_are(folder, elmore_command):
    elmore_command("convert", "model", "--to", "bilm-tf", "--out", "weights.hdf5")
    for model, out in (("model", "a.npz"), ("weights.hdf5", "b.npz")):
        command = ("embed", "sentences.txt", "--tokenized", "--model", model, "--out", out)
        assert elmore_command(*command).status == 0
    for left, right in zip(read_vectors("a.npz"), read_vectors("b.npz"), strict=True):
        assert np.array_equal(left.vectors, right.vectors)


def test_options_elsewhere_are_taken(folder, elmore_command):
    elmore_command("convert", "model", "--to", "bilm-tf", "--out", "w/weights.hdf5")
    (folder / "w" / "options.json").rename(folder / "elsewhere.json")
    command = ("embed", "sentences.txt", "--model", "w/weights.hdf5", "--out", "v.npz")
    assert elmore_command(*command).status == 2
    assert elmore_command(*command, "--options", "elsewhere.json").status == 0
    assert elmore_command("info", "w/weights.hdf5", "--options", "elsewhere.json").status == 0
    command = ("neighbors", "the", "sentences.txt", "--model", "w/weights.hdf5")
    assert elmore_command(*command, "--options", "elsewhere.json").status == 0


def test_token_embeddings_are_taken(folder, elmore_command):
    config = ModelConfig(
        lstm=LSTMConfig(cell_dim=6, output_dim=4),
        words=WordConfig(num_words=4, embedding_dim=4),
        has_token_projection=False,
    )
    model = new_model(config, seed=0, words=["<S>", "</S>", "<UNK>", "bank"])
    model.save_pretrained(folder / "words")
    elmore_command("convert", "words", "--to", "bilm-tf", "--out", "w/weights.hdf5")
    result = elmore_command(
        *("embed", "sentences.txt", "--tokenized", "--model", "w/weights.hdf5", "--out", "v.npz"),
        *("--token-embeddings", "w/token_embeddings.hdf5", "--vocabulary", "w/vocabulary.txt"),
    )
    assert result.status == 0
    wanted = Embedder(model).embed([["The", "bank"]])[0]
    assert np.array_equal(next(read_vectors("v.npz")).vectors, wanted)


@pytest.mark.slow
def test_restart_and_compress_reach_the_job(folder, elmore_command):
    (folder / "long.txt").write_text("a b c\n" * 200)
    sizes = []
    for more in ((), ("--compress",)):
        elmore_command("embed", "long.txt", "--tokenized", "--out", "v.h5", *more)
        sizes.append((folder / "v.h5").stat().st_size)
    assert sizes[0] != sizes[1]
    with ChunkFolder(folder / "v.h5.partial", job={"another": "job"}):
        pass
    command = ("embed", "long.txt", "--tokenized", "--out", "v.h5")
    assert "--restart" in elmore_command(*command).err
    assert elmore_command(*command, "--restart").status == 0


def test_the_ends_of_documents_in_plain_text_matter_to_one_policy_only(folder, elmore_command):
    (folder / "plain.txt").write_text("One.\n\nTwo.\n")
    for state, number in (("reset", 2), ("stream", 2), ("document", 3)):
        elmore_command("embed", "plain.txt", "--state", state, "--out", "v.npz")
        assert len(list(read_vectors("v.npz"))) == number


def test_an_untrained_model_is_said_to_be_untrained(folder, elmore_command):
    config = replace(tiny.byte_config(), about=About(is_trained=False))
    tiny.model(config).save_pretrained(folder / "new")
    result = elmore_command("embed", "sentences.txt", "--model", "new", "--out", "v.h5")
    assert "untrained" in result.err
    assert "untrained" not in elmore_command("embed", "sentences.txt", "--out", "w.h5").err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("none.txt", "--out", "v.h5"), "there is no file none.txt"),
        ((".", "--out", "v.h5"), ". is a folder"),
        (("sentences.txt", "--out", "v.txt"), "choose one of .h5, .hdf5, .parquet, .npz"),
        (("sentences.txt", "--out", "v.h5", "--model", "none/"), "no model at 'none/'"),
        (("sentences.txt", "--out", "v.h5", "--layers", "9"), "from 0 to 2, or several: 0,2"),
        (("x" * 300, "--out", "v.h5"), "File name too long"),
        (("sentences.txt", "--out", "v.h5", "--options", "o.json"), "give a model"),
        (("sentences.txt", "--out", "v.h5", "--device", "nowhere"), "device 'nowhere'"),
        (("bad.txt", "--out", "v.h5"), "bad.txt, line 2: byte 0xff is not UTF-8"),
        (("sentences.txt", "--out", "v.h5", "--state", "carry"), "'reset'"),
        (("sentences.txt", "--tokenized", "--form", "conllu"), "--tokenized contradicts"),
        (
            ("sentences.txt", "--tokenized", "--out", "v.h5", "--max-sentence-tokens", "3"),
            "sentence 3 has 4 tokens",
        ),
    ],
)
def test_a_mistake_is_one_sentence_and_status_two(folder, elmore_command, arguments, message):
    (folder / "bad.txt").write_bytes(b"good\n\xff\n")
    before = sorted(folder.iterdir())
    result = elmore_command("embed", *arguments)
    assert result.status == 2
    assert message in " ".join(result.err.split())
    assert "Traceback" not in result.err
    assert result.out == ""
    assert sorted(folder.iterdir()) == before
