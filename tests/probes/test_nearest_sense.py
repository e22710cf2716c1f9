import numpy as np
import pytest

from elmore.embed.embedder import Embedder
from elmore.errors import ConfigError
from elmore.probes import nearest_sense
from elmore.probes.nearest_sense import (
    Score,
    SenseSums,
    SenseUse,
    choose_prior,
    embed_sentences,
    find_macro_f1,
    find_static_uses,
    find_uses,
    make_views,
    score_baselines,
    score_views,
)
from elmore.probes.sense_data import SenseSentence, SenseTarget
from elmore.text.word_vectors import WordVectors
from tests import tiny


def target(*keys, lemma="bank", start=0, end=1):
    return SenseTarget(start=start, end=end, lemma=lemma, part_of_speech="NOUN", keys=keys, name="")


def use(vectors, *keys, lemma="bank"):
    return SenseUse(target=target(*keys, lemma=lemma), vectors=np.array(vectors, dtype=np.float32))


def cosine(one, other):
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def test_answers_are_those_of_plain_means_and_cosines():
    """Checked against means taken over all uses at once, layer by layer and mix by mix."""
    generator = np.random.default_rng(0)
    keys, num_layers = ["a", "b", "c"], 3
    uses = [
        use(generator.normal(size=(num_layers, 4)) + 0.3, key)
        for key in generator.choice(keys, size=60)
    ]
    tests = [use(generator.normal(size=(num_layers, 4)) + 0.3, "a") for _ in range(40)]
    views = make_views(num_layers, mixes={"own": [0.7, -0.2, 0.5]})
    trained = SenseSums(uses)
    num_right = dict.fromkeys(views, 0)
    for test in tests:
        got = trained.nearest(test, np.array(list(views.values())))
        for (name, weights), key in zip(views.items(), got, strict=True):
            mixed = {
                sense: np.mean(
                    [
                        sum(w * layer for w, layer in zip(weights, u.vectors, strict=True))
                        for u in uses
                        if u.target.keys == (sense,)
                    ],
                    axis=0,
                )
                for sense in keys
            }
            query = sum(w * layer for w, layer in zip(weights, test.vectors, strict=True))
            wanted = max(keys, key=lambda sense: cosine(query, mixed[sense]))
            assert key == wanted
            num_right[name] += wanted == "a"
    scores = score_views(tests, trained, views=views)
    assert {name: score.num_correct for name, score in scores.items()} == num_right
    assert len(set(num_right.values())) > 1  # the views do differ


def test_a_sense_of_another_lemma_or_part_of_speech_is_not_an_answer():
    trained = SenseSums([use([[1, 0]], "bank%1"), use([[0, 1]], "shore%1", lemma="shore")])
    assert trained.nearest(use([[0, 1]]), np.ones((1, 1))) == ["bank%1"]
    assert trained.nearest(use([[0, 1]], lemma="river"), np.ones((1, 1))) == []


def test_equally_near_senses_give_the_most_frequent():
    same = np.array([[0.1, 0.7, 0.3]])
    uses = [use(same, "rare"), *[use(same * 3, "usual")] * 7, use([[0, 0, 0]], "zero")]
    trained = SenseSums(uses)
    assert trained.nearest(use(same * 0.9), np.ones((1, 1))) == ["usual"]
    assert trained.nearest(use([[0, 0, 0]]), np.ones((1, 1))) == ["usual"]


def test_a_use_of_two_senses_counts_for_both():
    trained = SenseSums([use([[1, 0]], "a"), use([[0, 1]], "b", "a"), use([[0, 1]], "b", "c")])
    assert trained.keys(("bank", "NOUN")) == ["a", "b", "c"]


def test_a_prior_adds_the_logarithm_of_the_share_of_a_sense():
    """Against the formula, for a use that lies nearer to the rare sense."""
    usual, rare = np.array([1.0, 0.0]), np.array([0.6, 0.8])
    trained = SenseSums([*[use([usual], "usual")] * 3, use([rare], "rare")])
    query = np.array([0.8, 0.6])
    # The cosines are 0.8 and 0.96; the shares three quarters and one quarter.
    turning_point = 0.16 / np.log(3)
    for prior, wanted in (
        (0.0, "rare"),
        (turning_point - 0.01, "rare"),
        (turning_point + 0.01, "usual"),
    ):
        assert trained.nearest(use([query]), np.ones((1, 1)), prior=prior) == [wanted]


def test_the_prior_that_is_best_on_development_data_is_chosen():
    generator = np.random.default_rng(1)
    senses = {"usual": np.array([1.0, 0.2]), "rare": np.array([0.2, 1.0])}

    def draw(num_uses, noise):
        keys = generator.choice(["usual", "rare"], p=[0.9, 0.1], size=num_uses)
        return [use([senses[key] + noise * generator.normal(size=2)], key) for key in keys]

    trained = SenseSums(draw(400, 0.1))
    noisy, clear = draw(400, 3.0), draw(400, 0.05)
    assert choose_prior(clear, trained, weights=[1.0]) == 0.0  # of equals, the smallest
    chosen = choose_prior(noisy, trained, weights=[1.0])
    assert chosen > 0.1
    f1 = {
        prior: score_views(noisy, trained, views={"v": [1.0]}, prior=prior)["v"].f1
        for prior in nearest_sense.PRIORS
    }
    assert f1[chosen] == max(f1.values()) > f1[0.0]


def test_macro_f1_is_that_of_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    generator = np.random.default_rng(2)
    gold, answers = generator.choice(list("aaabbcd"), size=(2, 200))
    found = find_macro_f1([(target(g), a) for g, a in zip(gold, answers, strict=True)])
    assert found == pytest.approx(metrics.f1_score(gold, answers, average="macro"))


def test_macro_f1_of_several_senses_and_of_no_answer():
    answers = [(target("a", "b"), "b"), (target("a", "b"), "c"), (target("a"), None)]
    # b: right; c: answered once, never right; a: missed twice.
    assert find_macro_f1(answers) == pytest.approx(1 / 3)
    assert find_macro_f1([]) == 0.0


def test_training_leaves_the_given_vectors_as_they_are():
    first = use([[1, 0]], "a")
    SenseSums([first, use([[5, 5]], "a")])
    np.testing.assert_array_equal(first.vectors, [[1, 0]])


def test_new_lemmas_get_the_first_sense_or_no_answer():
    trained = SenseSums([use([[1, 0]], "a")])
    tests = [use([[1, 0]], "a"), use([[1, 0]], "x", "y", lemma="new"), use([[1, 0]], lemma="newer")]
    first_senses = {("new", "NOUN"): "y", ("bank", "NOUN"): "b"}
    views = make_views(1)
    with_first = score_views(tests, trained, views=views, first_senses=first_senses)
    assert with_first["layer 0"] == Score(num_targets=3, num_answered=2, num_correct=2)
    without = score_views(tests, trained, views=views)
    assert without["layer 0"] == Score(num_targets=3, num_answered=1, num_correct=1)


def test_baselines_are_the_most_frequent_and_the_first_sense():
    trained = SenseSums([use([[1]], "a"), use([[1]], "b"), use([[1]], "b")])
    targets = [target("b"), target("a"), target("y", lemma="new"), target("z", lemma="newer")]
    first_senses = {("new", "NOUN"): "y", ("bank", "NOUN"): "a"}
    assert score_baselines(targets, trained, first_senses=first_senses) == {
        "most frequent sense": Score(num_targets=4, num_answered=3, num_correct=2),
        "WordNet first sense": Score(num_targets=4, num_answered=3, num_correct=2),
    }
    assert score_baselines(targets, trained) == {
        "most frequent sense": Score(num_targets=4, num_answered=2, num_correct=1)
    }


def test_f1_lies_between_precision_and_recall():
    score = Score(num_targets=4, num_answered=2, num_correct=1) + Score(num_targets=1)
    precision, recall = 1 / 2, 1 / 5
    assert score.f1 == pytest.approx(2 * precision * recall / (precision + recall))
    assert Score(num_targets=4, num_answered=4, num_correct=3).f1 == 3 / 4  # accuracy
    assert Score().f1 == 0.0


def test_a_mix_for_another_model_is_refused():
    with pytest.raises(ConfigError, match="'own' has 2 weights, but the model has 3 layers"):
        make_views(3, mixes={"own": [1, 0]})


@pytest.mark.parametrize("state", ["reset", "document"])
def test_uses_have_the_mean_of_their_tokens_layers(state):
    sentences = [
        SenseSentence(tokens=("a", "bank"), targets=(target("k", start=1, end=2),)),
        SenseSentence(tokens=("no", "target"), targets=()),
        SenseSentence(
            tokens=("the", "river", "bank"),
            targets=(target("l", start=1, end=3), target("m", start=0, end=1)),
        ),
    ]
    embedder = Embedder(tiny.model(scale=0.4), state=state)
    uses = list(find_uses(embed_sentences(embedder, iter(sentences))))
    layers = embedder.embed([sentence.tokens for sentence in sentences], layers="all")
    assert [u.target.keys for u in uses] == [("k",), ("l",), ("m",)]
    wanted = [layers[0][:, 1], (layers[2][:, 1] + layers[2][:, 2]) / 2, layers[2][:, 0]]
    for got, vectors in zip(uses, wanted, strict=True):
        np.testing.assert_allclose(got.vectors, vectors, rtol=1e-6)


def test_static_uses_have_the_mean_of_the_words_around(monkeypatch):
    monkeypatch.setattr(nearest_sense, "CONTEXT_TOKENS", 2)
    words = WordVectors(
        words=("a", "b", "c", "d", "e", "bank"),
        vectors=np.array([[1], [10], [100], [1000], [1e4], [1e5]], dtype=np.float32),
    )
    span = target("k", start=3, end=5)
    sentence = SenseSentence(
        tokens=("a", "B", "c", "bank", "bank", "?", "d", "e"),
        targets=(span, target("l", start=0, end=1)),
    )
    lonely = SenseSentence(tokens=("bank",), targets=(target("m"),))
    got = list(find_static_uses([sentence, lonely], words))
    assert [u.vectors.tolist() for u in got] == [[[(10 + 100 + 1000) / 3]], [[55]], [[0]]]
