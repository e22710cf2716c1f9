"""Works of a batch get their own vectors and their own errors."""

import numpy as np

import elmore
from elmore.serve.errors import RequestError
from elmore.serve.inputs import InputSentence, ParsedInputs
from elmore.serve.works import CallWork, EmbedWork, run_works


class LengthEmbedder:
    """A stand-in: each token's vector is its length."""

    def __init__(self):
        self.calls = []

    def embed(self, sentences, *, layers):
        self.calls.append(len(sentences))
        if any("poison" in sentence for sentence in sentences):
            raise elmore.ElmoreError("this sentence is poison")
        return [np.array([[float(len(token))] for token in sentence]) for sentence in sentences]


def embed_work(embedder, *sentences, layers="top", encode=None):
    return EmbedWork(
        embedder=embedder,
        inputs=ParsedInputs([InputSentence(text.split(), None) for text in sentences]),
        layers=layers,
        layers_key=layers,
        encode=encode or (lambda arrays: [str([a.ravel().tolist() for a in arrays]).encode()]),
    )


def test_each_work_gets_the_vectors_of_its_sentences():
    embedder = LengthEmbedder()
    works = [embed_work(embedder, "a bb", "ccc"), embed_work(embedder, "dddd")]
    assert run_works(works) == [[b"[[1.0, 2.0], [3.0]]"], [b"[[4.0]]"]]
    assert embedder.calls == [3]


def test_a_mistake_in_one_work_is_refused_and_the_others_are_answered():
    embedder = LengthEmbedder()
    works = [embed_work(embedder, "a"), embed_work(embedder, "poison"), embed_work(embedder, "b")]
    first, refused, last = run_works(works)
    assert first == last == [b"[[1.0]]"]
    assert isinstance(refused, RequestError)
    assert (refused.status, refused.message) == (422, "this sentence is poison")


def test_an_error_while_encoding_is_that_of_one_work():
    def fail(_arrays):
        raise ZeroDivisionError

    embedder = LengthEmbedder()
    bad, good = run_works([embed_work(embedder, "a", encode=fail), embed_work(embedder, "b")])
    assert isinstance(bad, ZeroDivisionError)
    assert good == [b"[[1.0]]"]


def test_a_call_runs_and_fails_alone():
    assert run_works([CallWork(call=lambda: [b"x", b"y"], num_tokens=1)]) == [[b"x", b"y"]]
    (failed,) = run_works([CallWork(call=lambda: {}["x"], num_tokens=1)])
    assert isinstance(failed, KeyError)


def test_works_share_a_batch_if_model_and_layers_are_the_same():
    one, other = LengthEmbedder(), LengthEmbedder()
    key = embed_work(one, "a").key
    assert key == embed_work(one, "b").key
    assert key != embed_work(other, "a").key
    assert key != embed_work(one, "a", layers="all").key
