"""Similar tokens of a sentence, and predictions of trained tasks."""

import dataclasses

import numpy as np
import pytest

import elmore
from elmore.serve.named_sources import name_sources
from elmore.serve.served_tasks import ServedTask
from elmore.serve.settings import Limits
from tests.serve.services import get, load_tiny, make_service, post
from tests.tasks.fit.test_model import build

JSON = {"content-type": "application/json"}
TEXT = "the bank of the river ."


def test_similarities_are_the_cosines_of_the_vectors():
    answer = post("/similarity", json={"input": TEXT}).json()
    vectors = load_tiny().embed(TEXT, layers="all")
    units = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    assert answer["tokens"] == TEXT.split()
    np.testing.assert_allclose(answer["cosines"], units @ units.swapaxes(1, 2), atol=1e-5)
    mixed = vectors.mean(axis=0)
    products = np.array(answer["products"]).mean(axis=(0, 1))
    np.testing.assert_allclose(products, mixed @ mixed.T, rtol=1e-3, atol=1e-4)
    assert post("/similarity", json={"input": TEXT.split()}).json() == answer


@pytest.mark.parametrize(
    ("text", "limits", "status"),
    [
        ("", Limits(), 422),
        ("a " * 50, Limits(max_request_tokens=40), 413),
        ("a " * 50, Limits(max_answer_bytes=10_000), 413),
    ],
)
def test_too_little_and_too_much_are_refused(text, limits, status):
    service = make_service(limits=limits)
    assert post("/similarity", service=service, json={"input": text}).status_code == status


@pytest.fixture
def tagger(tmp_path):
    model, examples = build(tmp_path)
    return ServedTask("letters", "tags", model), examples


def test_a_task_predicts_with_probabilities(tagger):
    task, examples = tagger
    text = " ".join(examples[0].tokens)
    answer = post("/predict", service=make_service(tasks=[task]), json={"input": text}).json()
    assert (answer["task"], answer["kind"]) == ("letters", "tags")
    found = answer["prediction"]
    assert found["tokens"] == examples[0].tokens
    assert found["tags"] == elmore.predict(task.model, [text])[0]
    assert len(found["probabilities"]) == len(found["tags"])
    assert all(0 < share <= 1 for share in found["probabilities"])


def test_the_wrong_kind_of_example_is_one_sentence(tagger):
    service = make_service(tasks=[tagger[0]])
    answer = post("/predict", service=service, json={"input": {"question": "?"}})
    assert answer.status_code == 422
    assert "an example of tags must be a sentence" in answer.json()["error"]
    answer = post("/predict", json={"input": TEXT})
    assert answer.status_code == 404
    assert "--task" in answer.json()["error"]
    service = make_service(tasks=[dataclasses.replace(tagger[0], name="a")])
    answer = post("/predict", service=service, json={"input": TEXT, "task": "b"})
    assert "this server has: a" in answer.json()["error"]


def test_the_server_says_what_the_page_can_show(tagger):
    info = get("/info", service=make_service(tasks=[tagger[0]])).json()
    assert info["tasks"] == [{"name": "letters", "kind": "tags"}]
    assert "bank" in info["index"]["indexed_words"]
    assert info["index"]["layers"] == [0, 1, 2]
    assert info["index"]["served_model"] is None  # it has another model than the index


def test_tasks_are_named_after_their_folders(tmp_path):
    folder = str(tmp_path / "a=b")
    (tmp_path / "a=b").mkdir()
    assert name_sources([folder, "law=x"], what="task") == {"a=b": folder, "law": "x"}
    with pytest.raises(elmore.ElmoreError, match=r"two tasks are called 'x'; .* --task NAME=TASK"):
        name_sources(["x=a", "x=b"], what="task")
    with pytest.raises(elmore.ElmoreError, match="--task 'a=' has an empty part"):
        name_sources(["a="], what="task")


@pytest.mark.parametrize(
    "given",
    [
        b"[" * 900 + b"]" * 900,
        b'{"a":' * 900 + b"1" + b"}" * 900,
        b"1e308",
        b"null",
        b"[" + b"1," * 100_000 + b"1]",
        b'"\\u0000"',
        b'["a", -1]',
    ],
)
def test_any_input_of_a_task_is_answered_or_refused_in_one_sentence(tagger, given):
    body = b'{"input": ' + given + b"}"
    service = make_service(tasks=[tagger[0]])
    answer = post("/predict", service=service, content=body, headers=JSON)
    assert answer.status_code in (200, 413, 422), answer.text
    if answer.status_code != 200:
        assert len(answer.json()["error"]) < 500
        assert "\n" not in answer.json()["error"]
