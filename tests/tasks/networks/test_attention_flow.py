import numpy as np
import pytest
import torch
from torch.testing import assert_close

from elmore.tasks.networks.attention_flow import AttentionFlow, SelfAttention

DIM = 5


def make_tokens(*lengths, seed=0, filler=9.0):
    """Random tokens, and their mask; what is behind the end of a sentence is loud."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randn(len(lengths), max(lengths), DIM, generator=generator)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return tokens.masked_fill(~mask.unsqueeze(-1), filler), mask


def softmax_slowly(scores):
    powers = np.exp(np.array(scores) - max(scores))
    return powers / powers.sum()


def as_array(parameter):
    return parameter.detach().numpy().astype(np.float64)


def flow_slowly(layer, passage, question):
    """The formulas of Seo et al., one pair of tokens after the other."""
    w1, w2, w3 = (
        as_array(weights)
        for weights in (layer.passage_weights, layer.question_weights, layer.product_weights)
    )
    likeness = [[w1 @ x + w2 @ y + w3 @ (x * y) for y in question] for x in passage]
    weights = softmax_slowly([max(row) for row in likeness])
    summary = sum(weight * x for weight, x in zip(weights, passage, strict=True))
    rows = []
    for x, row in zip(passage, likeness, strict=True):
        asked = sum(w * y for w, y in zip(softmax_slowly(row), question, strict=True))
        rows.append(np.concatenate([x, asked, x * asked, x * summary]))
    return np.stack(rows)


def self_attention_slowly(layer, passage):
    """Each token asks all others; what depends on the asking token alone may be anything."""
    w2, w3 = as_array(layer.other_weights), as_array(layer.product_weights)
    rows = []
    for place, x in enumerate(passage):
        others = [y for other, y in enumerate(passage) if other != place]
        seen = np.zeros(DIM)
        if others:
            shares = softmax_slowly([7.0 + w2 @ y + w3 @ (x * y) for y in others])
            seen = sum(share * y for share, y in zip(shares, others, strict=True))
        rows.append(np.concatenate([x, seen, x * seen]))
    return np.stack(rows)


def test_attention_flow_is_that_of_the_formulas_whatever_else_is_in_the_batch():
    torch.manual_seed(0)
    layer = AttentionFlow(dim=DIM)
    passages, passage_mask = make_tokens(6, 1, 4)
    questions, question_mask = make_tokens(2, 3, 1, seed=1)
    found = layer(passages, questions, passage_mask=passage_mask, question_mask=question_mask)
    assert found.shape == (3, 6, layer.output_dim)
    for row in range(3):
        wanted = flow_slowly(
            layer,
            passages[row][passage_mask[row]].numpy().astype(np.float64),
            questions[row][question_mask[row]].numpy().astype(np.float64),
        )
        real = found[row][passage_mask[row]].detach().numpy()
        np.testing.assert_allclose(real, wanted, rtol=1e-4, atol=1e-5)


def test_self_attention_is_that_of_the_formulas_whatever_else_is_in_the_batch():
    torch.manual_seed(0)
    layer = SelfAttention(dim=DIM)
    passages, mask = make_tokens(6, 1, 4)
    found = layer(passages, mask=mask)
    assert found.shape == (3, 6, layer.output_dim)
    for row in range(3):
        passage = passages[row][mask[row]].numpy().astype(np.float64)
        real = found[row][mask[row]].detach().numpy()
        np.testing.assert_allclose(
            real, self_attention_slowly(layer, passage), rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize("filler", [0.0, 1e4])
def test_padding_changes_nothing_and_has_no_gradient(filler):
    torch.manual_seed(0)
    flow, within = AttentionFlow(dim=DIM), SelfAttention(dim=DIM)
    passages, passage_mask = make_tokens(3, 5, filler=filler)
    questions, question_mask = make_tokens(2, 3, seed=1, filler=filler)
    passages.requires_grad_()
    masks = {"passage_mask": passage_mask, "question_mask": question_mask}
    both = flow(passages, questions, **masks), within(passages, mask=passage_mask)
    alone = (
        flow(
            passages[:1, :3],
            questions[:1, :2],
            passage_mask=passage_mask[:1, :3],
            question_mask=question_mask[:1, :2],
        ),
        within(passages[:1, :3], mask=passage_mask[:1, :3]),
    )
    for together, single in zip(both, alone, strict=True):
        assert_close(together[:1, :3], single)
    sum(each[passage_mask].sum() for each in both).backward()
    assert torch.isfinite(passages.grad).all()
    assert not passages.grad[~passage_mask].any()


def test_a_token_alone_sees_nothing_and_has_a_finite_gradient():
    layer = SelfAttention(dim=DIM)
    passage, mask = make_tokens(1)
    passage.requires_grad_()
    found = layer(passage, mask=mask)
    assert_close(found[0, 0], torch.cat([passage[0, 0], torch.zeros(2 * DIM)]))
    found.sum().backward()
    assert torch.isfinite(passage.grad).all()


def test_every_weight_has_a_gradient():
    flow, within = AttentionFlow(dim=DIM), SelfAttention(dim=DIM)
    passages, passage_mask = make_tokens(4, 3)
    questions, question_mask = make_tokens(2, 3, seed=1)
    masks = {"passage_mask": passage_mask, "question_mask": question_mask}
    total = flow(passages, questions, **masks).square().sum()
    (total + within(passages, mask=passage_mask).square().sum()).backward()
    for layer in (flow, within):
        for name, weights in layer.named_parameters():
            assert weights.grad.abs().max() > 1e-3, name
