import gzip
import json
import sys

import pytest
import torch

from elmore.errors import ConfigError, DataError, MissingExtraError
from elmore.tasks.data.coreference import ClusteredDocument, SpokenSentence
from elmore.tasks.inputs.token_batch import TokenBatcher
from elmore.tasks.inputs.token_input import TokenInput
from elmore.tasks.kinds.coreference import CoreferenceSettings, CoreferenceTask
from elmore.tasks.kinds.table import KINDS
from elmore.tasks.task import TaskBatch
from tests.tasks.data.places import find_data

SHOWN = "# begin document a\n0\tAnn\t(1)\n1\tran\t_\n\n2\tshe\t(1)\n# end document\n"
HIDDEN = "# begin document b\n0\t_\t(1)\n1\t_\t_\n2\tshe\t(1)\n# end document\n"
TALK = ClusteredDocument(
    name="talk",
    sentences=(
        SpokenSentence(tokens=("I", "saw", "Ann", "Lee"), speaker="Bob"),
        SpokenSentence(tokens=("she", "ran"), speaker=None),
        SpokenSentence(tokens=("I", "ran"), speaker="Cid"),
        SpokenSentence(tokens=("me", "too"), speaker="Bob"),
    ),
    clusters=(((0, 1), (8, 9)), ((2, 4), (4, 5)), ((6, 7),)),
)
TASK = CoreferenceTask(CoreferenceSettings())


def write(folder, text, name="text.conll"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_documents_with_hidden_words_are_left_out(tmp_path):
    path = write(tmp_path, SHOWN + HIDDEN)
    assert [document.name for document in TASK.read(path)] == ["a"]
    patient = CoreferenceTask(CoreferenceSettings(max_hidden_share=1.0))
    assert [document.name for document in patient.read(path)] == ["a", "b"]
    assert [document.name for document in TASK.read_unlabeled(path)] == ["a", "b"]
    # One of many files may have none.
    assert list(TASK.read(write(tmp_path, HIDDEN, "only.conll"))) == []


@pytest.mark.parametrize("sign", ["#", "# "])
def test_columns_are_known_by_their_first_line_whatever_the_name(tmp_path, sign):
    path = write(tmp_path, SHOWN.replace("# begin", f"{sign}begin"), "letters.txt")
    (document,) = TASK.read_unlabeled(path)
    assert document.tokens == ("Ann", "ran", "she")


def test_documents_without_any_cluster_teach_nothing(tmp_path):
    bare, whole = (
        list(TASK.read_training(write(tmp_path, text)))
        for text in (SHOWN.replace("(1)", "_"), SHOWN)
    )
    with pytest.raises(DataError, match=r"no training document has a cluster .* nothing to learn"):
        TASK.find_labels(bare)
    assert TASK.find_labels(bare + whole) == ()  # one of them will do


def test_a_folder_is_read_in_the_order_of_names(tmp_path):
    with pytest.raises(DataError, match="has no files"):
        list(TASK.read(tmp_path))
    for name in ("b.conll", "a.conll", ".c.conll"):
        write(tmp_path, SHOWN.replace("document a", f"document {name}"), name)
    write(tmp_path, HIDDEN, "aa.conll")
    (tmp_path / "older").mkdir()
    assert [document.name for document in TASK.read(tmp_path)] == ["a.conll", "b.conll"]
    assert len(list(TASK.read_unlabeled(tmp_path))) == 3


def test_plain_text_has_documents_between_blank_lines(tmp_path):
    path = tmp_path / "letters.txt.gz"
    path.write_bytes(gzip.compress(b"Ann ran. She fell.\nBob saw her.\n\n\nDear Cid,\n"))
    first, second = TASK.read_unlabeled(path)
    assert (first.name, second.name) == ("letters/1", "letters/2")
    assert [sentence.tokens for sentence in first.sentences] == [
        ("Ann", "ran", "."),
        ("She", "fell", "."),
        ("Bob", "saw", "her", "."),
    ]
    assert (second.tokens, second.clusters) == (("Dear", "Cid", ","), ())
    with pytest.raises(DataError, match=r"empty\.txt has no text"):
        list(TASK.read_unlabeled(write(tmp_path, "\n\n", "empty.txt")))


@pytest.mark.parametrize("name", ["a.conll", "a.v4_gold_conll", "a.CONLL.gz"])
def test_names_with_conll_have_columns(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(gzip.compress(SHOWN.encode()) if ".gz" in name else SHOWN.encode())
    (document,) = TASK.read_unlabeled(path)
    assert document.tokens == ("Ann", "ran", "she")


def test_clusters_are_not_looked_at_in_what_to_predict_on(tmp_path):
    path = write(tmp_path, SHOWN.replace("(1)", "(1-person-new"))
    with pytest.raises(DataError, match=r"text\.conll, line 2"):
        list(TASK.read(path))
    (document,) = TASK.read_unlabeled(path)
    assert (document.tokens, document.clusters) == (("Ann", "ran", "she"), ())


def test_features_are_speakers_and_mentions_with_their_clusters():
    features = TASK.prepare([TALK], labels=(), with_gold=True)
    assert features.speakers.tolist() == [1, 0, 2, 1]
    assert features.mentions.tolist() == [[0, 1], [8, 9], [2, 4], [4, 5], [6, 7]]
    assert features.clusters.tolist() == [0, 0, 1, 1, 2]
    without = TASK.prepare([TALK], labels=(), with_gold=False)
    assert without.speakers.tolist() == [1, 0, 2, 1]
    assert (without.mentions, without.clusters) == (None, None)
    assert without.mentions is None


def test_a_batch_has_one_document():
    assert KINDS["coreference"].max_batch_size == 1
    with pytest.raises(ValueError, match="expected one document per batch, got 2"):
        TASK.prepare([TALK, TALK], labels=(), with_gold=True)


def test_a_document_goes_all_the_way(tmp_path):
    (document,) = TASK.read_unlabeled(write(tmp_path, "Ann ran. She fell.", "text.txt"))
    (sentences,) = TASK.find_sentences([document])
    assert TASK.count_tokens(document) == 6
    labels = TASK.find_labels([TALK])
    tokens = TokenInput(words=torch.randn(4, 6))
    network = TASK.build(tokens, labels=labels).eval()
    batch = TaskBatch(
        sentences=(TokenBatcher(words=["Ann", "she"]).make(sentences),),
        features=TASK.prepare([document], labels=labels, with_gold=True),
    )
    assert network.loss(batch).isfinite()
    (clusters,) = network.predict(batch)
    assert json.loads(json.dumps(TASK.to_json(document, clusters)))["name"] == "text/1"


def test_settings_reach_the_network():
    settings = CoreferenceSettings(max_span_tokens=3, max_antecedents=7, hidden_dim=9, dropout=0.0)
    network = CoreferenceTask(settings).build(TokenInput(words=torch.randn(4, 6)), labels=())
    assert (network.max_span_tokens, network.max_antecedents) == (3, 7)
    assert network.encoder.output_dim == 18


def test_json_has_the_text_of_mentions():
    assert TASK.to_json(TALK, (((2, 4), (4, 5)),)) == {
        "name": "talk",
        "tokens": ["I", "saw", "Ann", "Lee", "she", "ran", "I", "ran", "me", "too"],
        "clusters": [[[2, 4], [4, 5]]],
        "mentions": [["Ann Lee", "she"]],
    }


def test_scores_are_in_percent_and_know_no_singletons():
    pytest.importorskip("scipy", reason="CEAF needs elmore[tasks]")
    perfect = TASK.score([TALK], [TALK.clusters[:2]])
    assert perfect == {"f1": 100, "muc": 100, "b cubed": 100, "ceaf": 100, "mentions": 100}
    # One of two documents has half of the gold clusters and nothing else.
    half = TASK.score([TALK, TALK], [TALK.clusters[:1], TALK.clusters[:2]])
    assert half["mentions"] == pytest.approx(100 * 2 * 0.75 / 1.75)
    assert half["muc"] == pytest.approx(half["mentions"])
    means = [half[name] for name in ("muc", "b cubed", "ceaf")]
    assert half[TASK.main_score] == pytest.approx(sum(means) / 3)
    assert TASK.score([TALK], [()])["f1"] == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hidden_dim", 0),
        ("num_layers", 1.5),
        ("max_span_tokens", 0),
        ("max_antecedents", "many"),
        ("max_train_sentences", 0),
        ("spans_per_token", 0),
        ("spans_per_token", 101),
        ("mention_weight", -1),
        ("max_hidden_share", 1.1),
        ("dropout", 1.0),
    ],
)
def test_settings_that_are_invalid_are_named(name, value):
    with pytest.raises(ConfigError, match=f"task.{name} is {value!r}; give a"):
        CoreferenceSettings(**{name: value})


def test_litbank_and_ontogum_are_read():
    litbank = find_data("coref_litbank/conll/105_persuasion_brat.conll")
    ontogum = find_data("coref_gum/ontogum_conllu/GUM_interview_cyclone.conllu")
    for path in (litbank, ontogum):
        (document,) = TASK.read(path)
        features = TASK.prepare([document], labels=(), with_gold=True)
        assert len(features.speakers) == len(document.sentences) > 10
        # No mention leaves its sentence, or the network could not find it.
        numbers = [n for n, each in enumerate(document.sentences) for _ in each.tokens]
        for start, end in features.mentions.tolist():
            assert numbers[start] == numbers[end - 1]


def test_without_scipy_nothing_is_trained(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    task = CoreferenceTask(CoreferenceSettings())
    with pytest.raises(MissingExtraError, match="tasks"):
        task.find_labels([])
