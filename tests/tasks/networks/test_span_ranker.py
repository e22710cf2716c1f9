import math
import random

import pytest
import torch
from torch.testing import assert_close

from elmore.tasks.data.coreference import ClusteredDocument, SpokenSentence
from elmore.tasks.inputs.char_filters import CharFilters
from elmore.tasks.inputs.elmo_vectors import ElmoVectors
from elmore.tasks.inputs.token_batch import TokenBatcher
from elmore.tasks.inputs.token_input import TokenInput
from elmore.tasks.kinds.coreference import CoreferenceSettings, CoreferenceTask
from elmore.tasks.networks.pair_scores import DISTANCES
from elmore.tasks.networks.span_ranker import (
    DocumentFeatures,
    Ranking,
    SpanRanker,
    cut_window,
    link_spans,
    mark_correct,
)
from elmore.tasks.networks.spans import Spans
from elmore.tasks.task import TaskBatch

WORDS = ["Ann", "Bob", "she", "he", "I", "saw", "a", "the", "red", "fox", "it", "ran", ".", "said"]
NUM_LAYERS, LAYER_DIM = 2, 4
OPTIONS = {
    "hidden_dim": 5,
    "num_layers": 1,
    "span_dim": 6,
    "scorer_dim": 7,
    "max_span_tokens": 3,
    "spans_per_token": 0.8,
    "allows_crossing": False,
    "max_antecedents": 4,
    "max_train_sentences": 100,
    "mention_weight": 0.5,
    "dropout": 0.0,
}
TASK = CoreferenceTask(CoreferenceSettings())
BATCHER = TokenBatcher(words=WORDS)


def make_network(*, seed=0, has_elmo=True, **options):
    torch.manual_seed(seed)
    elmo = [ElmoVectors(num_layers=NUM_LAYERS, layer_dim=LAYER_DIM, dropout=0.0) for _ in range(2)]
    tokens = TokenInput(
        words=torch.randn(len(WORDS) + 2, 8),
        characters=CharFilters(num_filters=3),
        below=elmo[0] if has_elmo else None,
        above=elmo[1] if has_elmo else None,
    )
    return SpanRanker(tokens=tokens, **{**OPTIONS, **options})


def make_document(*sentences, clusters=()):
    """Make one of ("speaker", "words of a sentence")."""
    return ClusteredDocument(
        name="made",
        sentences=tuple(
            SpokenSentence(tokens=tuple(text.split()), speaker=speaker)
            for speaker, text in sentences
        ),
        clusters=clusters,
    )


def make_batch(document, *, with_gold=True, seed=0):
    tokens = BATCHER.make(*TASK.find_sentences([document]))
    generator = torch.Generator().manual_seed(seed)
    shape = (NUM_LAYERS, *tokens.words.shape, LAYER_DIM)
    return TaskBatch(
        sentences=(tokens.with_layers(torch.randn(shape, generator=generator)),),
        features=TASK.prepare([document], labels=(), with_gold=with_gold),
    )


def with_layers(batch, layers):
    (tokens,) = batch.sentences
    return TaskBatch(sentences=(tokens.with_layers(layers),), features=batch.features)


DOCUMENT = make_document(
    ("Ann", "I saw Bob ."),
    ("Bob", "he saw the red fox"),
    (None, "it ran ."),
    ("Ann", "I ran ."),
    (None, "she ran"),
    # (0, 1) is of two clusters, as happens in real data; the last cluster has one mention.
    clusters=(
        ((0, 1), (12, 13), (15, 16)),
        ((0, 1), (4, 5)),
        ((6, 9), (9, 10)),
        ((2, 3),),
    ),
)


def score_pair_slowly(network, vectors, mention_scores, speakers, i, j):
    """Score span j as the antecedent of span i, from one long vector."""
    pair = network.pair_scorer
    matrix = torch.cat([pair.span.weight, pair.antecedent.weight, pair.product.weight], dim=1)
    distance = max(number for number, least in enumerate(DISTANCES) if i - j >= least)
    relation = 0 if 0 in (speakers[i], speakers[j]) else 1 if speakers[i] == speakers[j] else 2
    hidden = matrix @ torch.cat([vectors[i], vectors[j], vectors[i] * vectors[j]])
    hidden = hidden + pair.span.bias + pair.distance.weight[distance]
    hidden = (hidden + pair.speakers.weight[relation]).relu()
    coarse = mention_scores[j] + vectors[j] @ network.coarse.weight @ vectors[i]
    top = pair.top[2]
    return coarse, mention_scores[i] + coarse + (top.weight[0] @ hidden) + top.bias[0]


def find_kept_slowly(network, batch, ranking):
    """Return vectors, mention scores and speakers of the kept spans."""
    (tokens,) = batch.sentences
    x = network.tokens.below(tokens)
    hidden = network.tokens.above(network.encoder(x, tokens.lengths), tokens)
    x, hidden = x[tokens.mask], hidden[tokens.mask]
    order = sorted(range(len(ranking.spans.starts)), key=lambda row: ranking.spans.widths[row])
    found = network.span_vectors(x, hidden, ranking.spans.pick(torch.tensor(order)))
    vectors = torch.stack([found[order.index(row)] for row in range(len(order))])
    speakers = [
        int(speaker)
        for speaker, length in zip(batch.features.speakers, tokens.lengths, strict=True)
        for _ in range(length)
    ]
    scores = network.mention_scorer(vectors).squeeze(1)
    return vectors, scores, [speakers[start] for start in ranking.spans.starts]


@pytest.mark.parametrize("max_antecedents", [1, 4, 50])
@pytest.mark.parametrize("seed", range(3))
@torch.no_grad()
def test_scores_loss_and_clusters_are_those_of_the_formulas(seed, max_antecedents, monkeypatch):
    monkeypatch.setattr("elmore.tasks.networks.span_ranker._SPANS_AT_ONCE", 5)
    network = make_network(seed=seed, max_antecedents=max_antecedents).eval()
    batch = make_batch(DOCUMENT)
    ranking = network.rank(batch)
    spans = ranking.spans.to_pairs()
    assert spans == sorted(set(spans))
    kept = find_kept_slowly(network, batch, ranking)
    loss, best = 0.0, []
    for i, span in enumerate(spans):
        pairs = {j: score_pair_slowly(network, *kept, i, j) for j in range(i)}
        chosen = sorted(pairs, key=lambda j: -pairs[j][0])[:max_antecedents]
        scores = {-1: 0.0, **{j: float(pairs[j][1]) for j in chosen}}
        for column, j in enumerate(ranking.antecedents[i].tolist(), start=1):
            assert float(ranking.scores[i, column]) == pytest.approx(
                scores.get(j, -math.inf), rel=1e-4, abs=1e-5
            )
        right = [
            j
            for j in chosen
            if any(span in cluster and spans[j] in cluster for cluster in DOCUMENT.clusters)
        ] or [-1]
        total = sum(math.exp(score) for score in scores.values())
        loss -= math.log(sum(math.exp(scores[j]) for j in right) / total)
        best.append(max(scores, key=lambda j: scores[j]))
    mentions = {mention for cluster in DOCUMENT.clusters for mention in cluster}
    candidates = ranking.candidates.to_pairs()
    assert mentions < set(candidates)
    scores = dict(zip(candidates, ranking.mention_scores.tolist(), strict=True))
    assert [scores[span] for span in spans] == pytest.approx(kept[1].tolist(), abs=1e-5)
    for span, score in scores.items():
        loss += 0.5 * math.log1p(math.exp(-score if span in mentions else score))
    assert float(network.loss(batch)) == pytest.approx(loss / len(spans), rel=1e-4)
    assert network.predict(batch) == [link_spans(spans, best)]


def test_as_many_spans_are_kept_as_the_tokens_allow():
    batch = make_batch(DOCUMENT)
    num_tokens = len(DOCUMENT.tokens)
    for share in (0.01, 0.4, 1.0):
        network = make_network(spans_per_token=share, allows_crossing=True)
        assert len(network.rank(batch).spans.starts) == max(1, int(share * num_tokens))


def test_right_are_antecedents_of_the_same_cluster_or_else_the_dummy():
    spans = Spans(starts=torch.tensor([0, 2, 4, 6]), ends=torch.tensor([1, 3, 5, 7]))
    ranking = Ranking(
        candidates=spans,
        mention_scores=torch.zeros(4),
        spans=spans,
        antecedents=torch.tensor([[1, 2], [0, 2], [1, 0], [0, 2]]),
        scores=torch.zeros(4, 3),
    )
    # (6, 7) is of both clusters, (4, 6) was not kept, (2, 3) is alone.
    features = DocumentFeatures(
        speakers=torch.zeros(1, dtype=torch.int64),
        mentions=torch.tensor([[0, 1], [6, 7], [6, 7], [4, 5], [4, 6], [0, 1], [2, 3]]),
        clusters=torch.tensor([0, 0, 1, 1, 0, 0, 2]),
    )
    assert mark_correct(ranking, features).int().tolist() == [
        [1, 0, 0],
        [1, 0, 0],
        [1, 0, 0],
        [0, 1, 1],
    ]
    with pytest.raises(ValueError, match="prepared without gold mentions"):
        mark_correct(ranking, DocumentFeatures(speakers=features.speakers))


def pad(batch, *, num_columns):
    """Put columns of rubbish behind the longest sentence."""
    (tokens,) = batch.sentences
    more = {
        name: torch.nn.functional.pad(getattr(tokens, name), (0, num_columns), value=3)
        for name in ("words", "spelled")
    }
    layers = torch.nn.functional.pad(tokens.layers, (0, 0, 0, num_columns), value=7.0)
    padded = type(tokens)(**more, spellings=tokens.spellings, lengths=tokens.lengths, layers=layers)
    return TaskBatch(sentences=(padded,), features=batch.features)


def test_padding_changes_nothing():
    network = make_network()
    batch = make_batch(DOCUMENT)
    losses, gradients = [], []
    for each in (batch, pad(batch, num_columns=4)):
        network.zero_grad()
        losses.append(network.loss(each))
        losses[-1].backward()
        gradients.append([weights.grad.clone() for weights in network.parameters()])
    assert_close(losses[0], losses[1])
    for one, other in zip(*gradients, strict=True):
        assert_close(one, other, rtol=1e-4, atol=1e-6)
    network.eval()
    assert network.predict(pad(batch, num_columns=4)) == network.predict(batch)


def test_a_sentence_is_read_without_its_neighbors():
    network = make_network(num_layers=2).eval()
    batch = make_batch(DOCUMENT)
    layers = batch.sentences[0].layers[:, 2:3, :3]
    alone = with_layers(make_batch(make_document((None, "it ran ."))), layers)
    for whole, part in zip(
        network._encode(*batch.sentences), network._encode(*alone.sentences), strict=True
    ):
        assert_close(whole[9:12], part)


def test_predictions_do_not_depend_on_gold_labels():
    for seed in range(3):
        network = make_network(seed=seed).eval()
        predicted = network.predict(make_batch(DOCUMENT, with_gold=False))
        assert predicted == network.predict(make_batch(DOCUMENT))


def test_a_window_is_a_document_of_its_own():
    window = cut_window(make_batch(DOCUMENT), first=1, num_sentences=3)
    document = make_document(
        ("Bob", "he saw the red fox"),
        (None, "it ran ."),
        ("Ann", "I ran ."),
        clusters=(((2, 5), (5, 6)), ((0, 1),), ((8, 9),)),
    )
    layers = make_batch(DOCUMENT).sentences[0].layers[:, 1:4]
    alone = with_layers(make_batch(document), layers)
    network = make_network()
    assert_close(network.loss(window), network.loss(alone))
    assert network.predict(window) == network.predict(alone)
    # A longer sentence outside the window leaves no columns.
    (tokens,) = cut_window(make_batch(DOCUMENT), first=2, num_sentences=2).sentences
    assert tokens.words.shape == (2, 3)


def test_training_takes_a_window_by_torchs_numbers_and_evaluation_the_whole():
    batch = make_batch(DOCUMENT)
    network = make_network(max_train_sentences=2)
    windows = [
        network.loss(cut_window(batch, first=first, num_sentences=2)).item() for first in range(4)
    ]
    losses = []
    for _ in range(2):
        torch.manual_seed(5)
        losses.append([network.loss(batch).item() for _ in range(25)])
    assert losses[0] == losses[1]
    assert {round(loss, 5) for loss in losses[0]} == {round(loss, 5) for loss in windows}
    whole = make_network(max_train_sentences=5)
    assert_close(network.eval().loss(batch), whole.loss(batch))


@pytest.mark.parametrize("text", ["Ann", "Ann ran"])
def test_a_document_of_few_tokens_has_no_clusters_and_a_loss(text):
    network = make_network(spans_per_token=0.4, mention_weight=0.0)
    batch = make_batch(make_document((None, text)))
    loss = network.loss(batch)
    loss.backward()
    assert loss == 0  # one span, and nothing it could refer to
    assert network.predict(batch) == [()]


def test_dropout_thins_the_states_in_training_only():
    network = make_network()
    network.dropout.rate = 0.5
    batch = make_batch(DOCUMENT)
    assert len({network.loss(batch).item() for _ in range(3)}) == 3
    network.eval()
    assert len({network.loss(batch).item() for _ in range(3)}) == 1


def test_gradients_reach_every_weight():
    network = make_network(num_layers=2, spans_per_token=2.0)
    network.loss(make_batch(DOCUMENT)).backward()
    # A word, a distance or a letter that the text does not have gives its own row nothing.
    for name, weights in network.named_parameters():
        assert weights.grad is not None, name
        assert weights.grad.abs().sum() > 0, name
        assert weights.grad.isfinite().all(), name


@pytest.mark.slow
def test_gradients_are_the_slopes_of_the_loss():
    """Of each weight, in a random direction, in double precision."""
    network = make_network(num_layers=2, spans_per_token=2.0, max_antecedents=50).double()
    batch = make_batch(DOCUMENT)
    batch = with_layers(batch, batch.sentences[0].layers.double())
    network.loss(batch).backward()
    generator = torch.Generator().manual_seed(0)
    for name, weights in network.named_parameters():
        line = torch.randn(weights.shape, generator=generator, dtype=torch.float64)
        line *= weights.grad != 0  # the row of no character is read, but never learned
        losses = []
        for step in (1e-5, -2e-5, 1e-5):  # there, back beyond, and home again
            weights.data.add_(line, alpha=step)
            losses.append(network.loss(batch).item())
        slope = (losses[0] - losses[1]) / 2e-5
        assert (weights.grad * line).sum().item() == pytest.approx(slope, rel=1e-3, abs=1e-7), name


def make_talk(generator):
    """Make a document of which every part of the network is needed.

    "it" is the animal that came last, whose name has many tokens; "I" is whoever speaks, in
    sentences that are all the same; "she" and "he" differ only in their words.
    """
    clusters = {name: [] for name in ("Ann", "Bob", "she", "he", "fox")}
    sentences, num_tokens = [], 0

    def mention(name, start, end):
        clusters[name].append((num_tokens + start, num_tokens + end))

    latest = "fox"
    for _ in range(7):
        match generator.choice(["fox", "it", "it", "I", "I", "person"]):
            case "fox":
                speaker, text = None, generator.choice(["the red fox ran", "saw a fox"])
                latest = f"fox {num_tokens}"
                clusters[latest] = []
                mention(latest, *((0, 3) if text.startswith("the") else (1, 3)))
            case "it":
                speaker, text = None, "he saw it"
                mention("he", 0, 1)
                mention(latest, 2, 3)
            case "I":
                speaker, text = generator.choice(["Ann", "Bob"]), "I ran ."
                mention(speaker, 0, 1)
            case _:
                speaker, text = None, generator.choice(["she said .", "he said ."])
                mention(text.split()[0], 0, 1)
        sentences.append((speaker, text))
        num_tokens += len(text.split())
    real = sorted(tuple(cluster) for cluster in clusters.values() if len(cluster) > 1)
    return make_document(*sentences, clusters=tuple(real))


@pytest.mark.slow
def test_fifty_documents_are_learned():
    generator = random.Random(0)
    documents = [make_talk(generator) for _ in range(50)]
    network = make_network(
        has_elmo=False,
        hidden_dim=16,
        span_dim=24,
        scorer_dim=24,
        max_span_tokens=4,
        spans_per_token=0.6,
        max_antecedents=20,
    )
    batches = [make_batch(document) for document in documents]
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    for _ in range(7):
        for batch in batches:
            optimizer.zero_grad()
            network.loss(batch).backward()
            optimizer.step()
    network.eval()
    with torch.no_grad():
        predictions = [network.predict(batch)[0] for batch in batches]
    num_found = sum(
        predicted == document.clusters
        for predicted, document in zip(predictions, documents, strict=True)
    )
    assert num_found >= 45
