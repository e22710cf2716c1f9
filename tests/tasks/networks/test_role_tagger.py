from dataclasses import replace
from itertools import pairwise, product

import pytest
import torch

from elmore.tasks.inputs.char_filters import CharFilters
from elmore.tasks.inputs.elmo_vectors import ElmoVectors
from elmore.tasks.inputs.token_batch import TokenBatch, TokenBatcher
from elmore.tasks.inputs.token_input import TokenInput
from elmore.tasks.metrics.tag_schemes import TagScheme, read_spans, write_tags
from elmore.tasks.networks.role_tagger import NO_LABEL, RoleFeatures, RoleTagger
from elmore.tasks.task import TaskBatch

LABELS = ("O", "B-A", "B-B", "I-A", "I-B")
SENTENCES = [["a", "b", "c"], ["b", "c", "d", "new"], ["c"], ["d", "a", "a", "b"]]
PREDICATES = [1, 3, 0, 0]
TAGS = [[0, 1, 3], [2, 4, 0, 1], [0], [1, 3, 3, 0]]


def make_tagger(*, dropout=0.0, seed=0):
    """Return a network with all that it may read, its weights large enough to matter."""
    torch.manual_seed(seed)
    tokens = TokenInput(
        words=torch.randn(6, 3),
        characters=CharFilters(num_filters=2),
        below=ElmoVectors(num_layers=3, layer_dim=4, dropout=dropout),
        above=ElmoVectors(num_layers=3, layer_dim=4, dropout=dropout),
    )
    tagger = RoleTagger(
        tokens=tokens, labels=LABELS, hidden_dim=5, num_layers=2, mark_dim=2, dropout=dropout
    )
    torch.nn.init.normal_(tagger.linear.weight)
    return tagger


def make_batch(rows=(0, 1, 2, 3), *, has_gold=True):
    """Return some of the sentences as they are read together."""
    sentences = [SENTENCES[row] for row in rows]
    batch = TokenBatcher(words=["a", "b", "c", "d"]).make(sentences)
    layers = torch.zeros(3, *batch.words.shape, 4)
    tags = torch.full(batch.words.shape, NO_LABEL)
    for place, row in enumerate(rows):
        generator = torch.Generator().manual_seed(row)
        length = len(SENTENCES[row])
        layers[:, place, :length] = torch.randn(3, length, 4, generator=generator)
        tags[place, :length] = torch.tensor(TAGS[row])
    features = RoleFeatures(
        predicates=torch.tensor([PREDICATES[row] for row in rows]), tags=tags if has_gold else None
    )
    return TaskBatch(sentences=(batch.with_layers(layers),), features=features)


def widen(batch):
    """Return the same batch with two places more behind every end."""
    (tokens,) = batch.sentences
    more = torch.zeros(len(tokens.words), 2, dtype=torch.int64)
    wider = TokenBatch(
        words=torch.cat([tokens.words, more], dim=1),
        spellings=tokens.spellings,
        spelled=torch.cat([tokens.spelled, more], dim=1),
        lengths=tokens.lengths,
        layers=torch.cat([tokens.layers, torch.full((3, len(more), 2, 4), 9.0)], dim=2),
    )
    tags = torch.cat([batch.features.tags, more + NO_LABEL], dim=1)
    return TaskBatch(sentences=(wider,), features=replace(batch.features, tags=tags))


def test_neighbors_and_padding_change_nothing():
    tagger = make_tagger().eval()
    batch = make_batch()
    losses = []
    for row, predicted in enumerate(tagger.predict(batch)):
        alone = make_batch([row])
        assert tagger.predict(alone) == [predicted]
        length = len(SENTENCES[row])
        torch.testing.assert_close(tagger.scores(alone)[0], tagger.scores(batch)[row, :length])
        losses.append(tagger.loss(alone))
    torch.testing.assert_close(tagger.loss(batch), torch.stack(losses).mean())
    torch.testing.assert_close(tagger.loss(widen(batch)), tagger.loss(batch))
    assert tagger.predict(widen(batch)) == tagger.predict(batch)


def test_the_loss_is_what_a_right_tag_costs():
    tagger = make_tagger()
    scores = tagger.scores(make_batch()).tolist()
    costs = []
    for sentence, tags in zip(scores, TAGS, strict=True):
        chances = [torch.tensor(token).softmax(dim=0) for token in sentence]
        costs.append(
            sum(-chance[tag].log().item() for chance, tag in zip(chances, tags, strict=False))
            / len(tags)
        )
    assert tagger.loss(make_batch()).item() == pytest.approx(sum(costs) / 4, rel=1e-5)


def test_tags_that_training_does_not_have_cost_nothing():
    tagger = make_tagger()
    batch = make_batch([2])
    tags = torch.full_like(batch.features.tags, NO_LABEL)
    unknown = replace(batch, features=replace(batch.features, tags=tags))
    assert tagger.loss(unknown).item() == 0


@pytest.mark.parametrize("seed", range(5))
def test_predictions_are_the_best_of_all_taggings_in_bio(seed):
    tagger = make_tagger(seed=seed).eval()
    batch = make_batch(has_gold=False)
    scores = tagger.scores(batch).tolist()
    for row, (tokens, found) in enumerate(zip(SENTENCES, tagger.predict(batch), strict=True)):
        best = max(
            (tags for tags in product(LABELS, repeat=len(tokens)) if is_bio(tags)),
            key=lambda tags: sum(
                scores[row][place][LABELS.index(tag)] for place, tag in enumerate(tags)
            ),
        )
        assert found == best
        again = write_tags(read_spans(found), num_tokens=len(found), scheme=TagScheme.IOB2)
        assert list(found) == again


def is_bio(tags):
    """Return whether every I- continues the tag before it."""
    return all(
        after[0] != "I" or (before != "O" and before[1:] == after[1:])
        for before, after in pairwise(["O", *tags])
    )


def test_some_best_tags_alone_would_break_bio():
    # Else the test above could pass without any rules.
    broken = 0
    for seed in range(5):
        for sentence, tokens in zip(
            make_tagger(seed=seed).eval().scores(make_batch()), SENTENCES, strict=True
        ):
            best = [LABELS[place] for place in sentence[: len(tokens)].argmax(dim=1)]
            broken += not is_bio(best)
    assert broken > 0


def test_gold_labels_do_not_change_predictions():
    tagger = make_tagger().eval()
    assert tagger.predict(make_batch()) == tagger.predict(make_batch(has_gold=False))


def test_the_mark_distinguishes_the_predicates_of_a_sentence():
    tagger = make_tagger()
    batch = make_batch([3])
    moved = replace(batch, features=replace(batch.features, predicates=torch.tensor([2])))
    assert (tagger.scores(batch) - tagger.scores(moved)).abs().amax(dim=-1).gt(1e-5).all()
    with torch.no_grad():
        tagger.marks.weight[1] = tagger.marks.weight[0]
    torch.testing.assert_close(tagger.scores(batch), tagger.scores(moved))


def test_the_predicate_alone_is_marked():
    tagger = make_tagger()
    seen = []
    tagger.encoder.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    tagger.scores(make_batch())
    for row, (tokens, predicate) in enumerate(zip(SENTENCES, PREDICATES, strict=True)):
        wanted = [int(place == predicate) for place in range(len(tokens))]
        assert torch.equal(seen[0][row, : len(tokens), -2:], tagger.marks.weight[wanted])


def test_gradients_reach_all_weights_and_both_mixes():
    tagger = make_tagger(dropout=0.2)
    tagger.loss(make_batch()).backward()
    names = dict(tagger.named_parameters())
    assert {"tokens.elmo_below.mix.weights", "tokens.elmo_above.mix.weights"} <= names.keys()
    for name, weights in names.items():
        assert weights.grad is not None, name
        assert weights.grad.any(), name


def test_rules_are_not_saved_with_the_weights():
    tagger = make_tagger()
    assert not {"starts", "transitions", "ends"} & tagger.state_dict().keys()
