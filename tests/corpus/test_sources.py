"""A corpus knows which text comes from which file; weights repeat a file's text, nothing else."""

import json
import shutil
from itertools import chain, pairwise

import numpy as np
import pytest

from elmore.corpus import shard_workers, shards
from elmore.corpus.corpus import Corpus, open_corpus
from elmore.corpus.prepare import prepare_corpus
from elmore.corpus.settings import PrepareSettings
from elmore.corpus.sources import locate_inputs, name_input, split_by_input, weigh_inputs
from elmore.corpus.summary import write_summary
from elmore.errors import ConfigError, DataError
from elmore.lm.pretrain import pretrain_model
from elmore.lm.streams import Streams
from elmore.text.files import TextForm
from tests.corpus.corpora import Document, make_documents, prepare, write_tokenized
from tests.lm.runs import Watcher, assert_same_bits, last_tensors, make_settings, run_until

SIZES = {"news": 7, "books": 4, "mail_2019": 3, "mail_2020": 3}


@pytest.fixture(scope="module")
def texts() -> dict[str, list[Document]]:
    return {
        name: make_documents(size, seed=number) for number, (name, size) in enumerate(SIZES.items())
    }


@pytest.fixture(scope="module")
def corpus(texts, tmp_path_factory) -> Corpus:
    folder = tmp_path_factory.mktemp("sources")
    paths = []
    for name, documents in texts.items():
        paths.append(folder / f"{name}.txt")
        paths[-1].write_text(write_tokenized(documents), encoding="utf-8")
    # Chunks of 200 bytes: long sources have several shards, and short ones share one.
    settings = PrepareSettings(form=TextForm.TOKENIZED, chunk_bytes=200, min_count=1, heldout=0.4)
    return prepare_corpus(paths, folder / "corpus", settings=settings, num_processes=1)


def in_training(corpus: Corpus, documents: list[Document]) -> list[Document]:
    kept = list(corpus.train.documents())
    return [document for document in documents if document in kept]


def test_every_source_is_found_with_its_own_documents(corpus, texts):
    for whole in (corpus.train, corpus.heldout):
        parts = split_by_input(corpus, whole)
        expected = {
            name: [document for document in whole.documents() if document in documents]
            for name, documents in texts.items()
        }
        found = {name: list(part.documents()) for name, part in parts.items()}
        assert found == {name: documents for name, documents in expected.items() if documents}
        for name, part in parts.items():
            sentences = list(chain.from_iterable(expected[name]))
            assert part.num_documents == len(expected[name])
            assert part.num_sentences == len(sentences)
            assert part.num_tokens == sum(map(len, sentences))
    assert len(split_by_input(corpus, corpus.heldout)) > 1


def test_stretches_cover_the_part_in_order(corpus):
    stretches = locate_inputs(corpus, corpus.train)
    assert stretches[0].first == 0
    assert stretches[-1].end == corpus.train.num_symbols
    for one, next_one in pairwise(stretches):
        assert one.end == next_one.first
        assert one.input_number < next_one.input_number


def test_a_weight_is_how_often_a_source_is_read_per_epoch(corpus, texts):
    weighted = weigh_inputs(corpus, {"news": 3, "books": 0, "mail_*": 2})
    news, mail_2019, mail_2020 = (
        in_training(corpus, texts[name]) for name in ("news", "mail_2019", "mail_2020")
    )
    mail = [*mail_2019, *mail_2020]
    assert list(weighted.train.documents()) == [*news, *mail, *news, *mail, *news]
    assert list(weighted.heldout.documents()) == list(corpus.heldout.documents())
    assert weighted.fingerprint != corpus.fingerprint


def test_rows_read_what_is_weighted_symbol_by_symbol(corpus):
    part = weigh_inputs(corpus, {"news": 2}).train
    found = part.look_up(np.arange(part.num_symbols))
    symbols = np.array(["<S>", "</S>", *found.tokens], dtype=object)[found.positions].tolist()
    sentences = chain.from_iterable(part.documents())
    assert symbols == list(chain.from_iterable(["<S>", *tokens, "</S>"] for tokens in sentences))
    begin, end = part.sentence_bounds(np.arange(part.num_symbols))
    assert [symbols[place] for place in begin] == ["<S>"] * part.num_symbols
    assert [symbols[place - 1] for place in end] == ["</S>"] * part.num_symbols
    streams = Streams(part, num_rows=3, window=4)
    assert streams.steps_per_epoch == round(part.num_symbols / 12)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"new": 2}, "no source of .* is named 'new'; did you mean 'news'"),
        ({"xyz": 2}, "its sources are: books, mail_2019, mail_2020, news"),
        ({"*": 0}, "leaves no text"),
    ],
)
def test_what_cannot_be_weighted_is_refused(corpus, weights, message):
    with pytest.raises(ConfigError, match=message):
        weigh_inputs(corpus, weights)


def test_a_later_pattern_overrides_an_earlier_one(corpus, texts):
    weighted = weigh_inputs(corpus, {"*": 0, "books.txt": 1})
    assert list(weighted.train.documents()) == in_training(corpus, texts["books"])


def test_corpora_of_older_versions_are_read_but_not_weighted(tmp_path, monkeypatch):
    def write_as_before(path, sentences, *, facts):
        def without_inputs():
            return {name: fact for name, fact in facts().items() if name != "inputs"}

        return shards.write_shard(path, sentences, facts=without_inputs)

    monkeypatch.setattr(shard_workers, "write_shard", write_as_before)
    corpus = prepare(write_tokenized(make_documents()), tmp_path / "corpus")
    assert weigh_inputs(corpus, {}) is corpus
    with pytest.raises(DataError, match="prepare it again"):
        weigh_inputs(corpus, {"x": 2})


@pytest.mark.slow
def test_thousands_of_small_files_share_a_shard(tmp_path):
    for number in range(5000):
        (tmp_path / f"{number:04}.txt").write_text(f"w{number % 7} x\n")
    settings = PrepareSettings(form=TextForm.TOKENIZED, min_count=1, heldout=0)
    corpus = prepare_corpus(
        sorted(tmp_path.glob("*.txt")), tmp_path / "corpus", settings=settings, num_processes=1
    )
    weighted = weigh_inputs(corpus, {"0*": 2})
    assert weighted.train.num_sentences == 6000


@pytest.mark.parametrize("inputs", [[[9, 0]], [[0, 1]], [[0, 0], [1, 10**6]], [[0, -1]], [[0]], 3])
def test_impossible_inputs_are_damage(inputs, corpus, tmp_path):
    folder = tmp_path / "corpus"
    shutil.copytree(corpus.folder, folder)
    about = json.loads((folder / "corpus.json").read_text(encoding="utf-8"))
    about["shards"][0]["inputs"] = inputs
    write_summary(folder, about)
    with pytest.raises(DataError, match=r"corpus\.json is damaged"):
        open_corpus(folder)


@pytest.mark.slow
def test_a_weighted_run_resumes_to_the_same_bits_and_with_other_weights_not_at_all(
    corpus, tmp_path
):
    weights = ("training.weights.news=2", "training.weights.mail_*=0")
    pretrain_model(make_settings(*weights), corpus, tmp_path / "whole")
    run_until(tmp_path / "stopped", 5, *weights, corpus=corpus)
    with pytest.raises((ConfigError, DataError), match=r"weights.*restart") as caught:
        pretrain_model(make_settings(weights[0]), corpus, tmp_path / "stopped")
    assert "another corpus" not in str(caught.value)
    report = pretrain_model(make_settings(*weights), corpus, tmp_path / "stopped")
    assert_same_bits(last_tensors(tmp_path / "stopped"), last_tensors(tmp_path / "whole"))
    heldout = split_by_input(corpus, corpus.heldout)
    assert report.sources.keys() == heldout.keys()
    card = (tmp_path / "stopped" / "model" / "README.md").read_text(encoding="utf-8")
    for name, totals in report.sources.items():
        part = heldout[name]
        assert totals.num_predictions == part.num_tokens + part.num_sentences
        assert f"| held out, {name} | {totals.forward_perplexity:.2f} |" in card


@pytest.mark.slow
def test_weights_change_what_is_learned(corpus, tmp_path):
    results = []
    for name, changes in (("plain", ()), ("weighted", ("training.weights.books=0",))):
        watcher = Watcher()
        pretrain_model(make_settings(*changes), corpus, tmp_path / name, observer=watcher)
        results.append(watcher.steps[-1].loss)
    assert results[0] != results[1]


def test_a_name_is_what_stands_before_the_first_dot():
    assert name_input("texts/news.2019.txt.gz") == "news"
    assert name_input(".hidden") == ".hidden"


def test_sources_of_one_name_in_two_folders_are_weighted_one_by_one(tmp_path):
    paths = [tmp_path / place / "news.txt" for place in ("a", "b")]
    for path in paths:
        path.parent.mkdir()
        path.write_text(f"{path.parent.name} text\n" * 4)
    settings = PrepareSettings(form=TextForm.TOKENIZED, min_count=1, heldout=0.0)
    corpus = prepare_corpus(paths, tmp_path / "corpus", settings=settings, num_processes=1)
    assert list(split_by_input(corpus, corpus.train)) == ["a/news", "b/news"]
    weighted = weigh_inputs(corpus, {"news": 2, "b/news": 0})
    assert list(split_by_input(corpus, weighted.train)) == ["a/news"]
    with pytest.raises(ConfigError, match="did you mean 'a/news'"):
        weigh_inputs(corpus, {"a/new": 2})
