import pytest
import torch
from torch.testing import assert_close

from elmore.tasks.networks.spans import Spans, SpanVectors, choose_spans, list_spans

LENGTHS = [3, 1, 5, 2]


def make_spans(pairs):
    starts, ends = torch.tensor(pairs).T
    return Spans(starts=starts, ends=ends)


def list_slowly(lengths, max_tokens):
    """All (start, end) whose tokens are of one sentence."""
    sentences = [number for number, length in enumerate(lengths) for _ in range(length)]
    return {
        (start, end)
        for start in range(len(sentences))
        for end in range(start + 1, len(sentences) + 1)
        if end - start <= max_tokens and sentences[start] == sentences[end - 1]
    }


def is_crossing(one, other):
    (start, end), (other_start, other_end) = sorted([one, other])
    return start < other_start < end < other_end


@pytest.mark.parametrize("max_tokens", [1, 2, 4, 20])
def test_spans_are_all_that_stay_in_their_sentence(max_tokens):
    pairs = list_spans(torch.tensor(LENGTHS), max_tokens=max_tokens).to_pairs()
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == list_slowly(LENGTHS, max_tokens)
    assert [end - start for start, end in pairs] == sorted(end - start for start, end in pairs)


def find_vectors_slowly(network, x, hidden, spans):
    """Return (C, G): the parts side by side times one matrix, and what a width adds."""
    matrix = torch.cat([network.start.weight, network.end.weight, network.head.weight], dim=1)
    attention = network.attention(hidden).exp()  # (N, 1)
    vectors = []
    for start, end in spans.to_pairs():
        head = (attention * x)[start:end].sum(dim=0) / attention[start:end].sum()
        parts = torch.cat([hidden[start], hidden[end - 1], head])
        width = network.width.weight[end - start - 1]
        vectors.append(matrix @ parts + network.start.bias + width)
    return torch.stack(vectors)


@pytest.mark.parametrize("max_tokens", [1, 3, 20])
@pytest.mark.parametrize("lengths", [LENGTHS, [1]])
def test_vectors_and_gradients_are_those_of_start_end_head_and_width(lengths, max_tokens):
    torch.manual_seed(0)
    network = SpanVectors(input_dim=4, hidden_dim=6, output_dim=5, max_tokens=max_tokens)
    x = torch.randn(sum(lengths), 4, requires_grad=True)
    hidden = (3 * torch.randn(sum(lengths), 6)).requires_grad_()
    spans = list_spans(torch.tensor(lengths), max_tokens=max_tokens)
    found = network(x, hidden, spans)
    wanted = find_vectors_slowly(network, x, hidden, spans)
    assert_close(found, wanted, rtol=1e-4, atol=1e-5)
    weights, inputs = torch.randn(found.shape), [x, hidden, *network.parameters()]
    gradients = [
        # Among spans of one token, attention chooses nothing.
        torch.autograd.grad((vectors * weights).sum(), inputs, materialize_grads=True)
        for vectors in (found, wanted)
    ]
    for one, other in zip(*gradients, strict=True):
        assert_close(one, other, rtol=1e-3, atol=1e-4)


def test_attention_of_any_size_gives_finite_vectors_and_gradients():
    network = SpanVectors(input_dim=1, hidden_dim=1, output_dim=1, max_tokens=3)
    torch.nn.init.ones_(network.attention.weight)
    for part in (network.start, network.end):
        torch.nn.init.zeros_(part.weight)
    torch.nn.init.zeros_(network.start.bias)
    torch.nn.init.zeros_(network.width.weight)
    torch.nn.init.ones_(network.head.weight)
    hidden = torch.tensor([[-2000.0], [3000.0], [-1000.0]], requires_grad=True)
    spans = list_spans(torch.tensor([3]), max_tokens=3)
    found = network(torch.tensor([[1.0], [2.0], [3.0]]), hidden, spans)
    assert found.squeeze(1).tolist() == [1, 2, 3, 2, 2, 2]  # the strongest token of each
    found.sum().backward()
    assert hidden.grad.isfinite().all()


@pytest.mark.parametrize("num_kept", [1, 4, 9, 100])
def test_the_best_spans_that_cross_no_better_one_are_kept(num_kept):
    for seed in range(20):
        torch.manual_seed(seed)
        spans = list_spans(torch.tensor([6, 2, 7]), max_tokens=5)
        scores = torch.randn(len(spans.starts))
        wanted = []
        for _, pair in sorted(zip(scores.tolist(), spans.to_pairs(), strict=True), reverse=True):
            if len(wanted) < num_kept and not any(is_crossing(pair, other) for other in wanted):
                wanted.append(pair)
        rows = choose_spans(spans, scores, num_kept=num_kept, allows_crossing=False)
        assert spans.pick(rows).to_pairs() == sorted(wanted)


def test_with_crossing_the_best_are_kept():
    spans = make_spans([(4, 5), (0, 2), (1, 3), (0, 1), (2, 3)])
    scores = torch.tensor([5.0, 4.0, 3.0, -2.0, 1.0])
    crossing = choose_spans(spans, scores, num_kept=3, allows_crossing=True)
    assert spans.pick(crossing).to_pairs() == [(0, 2), (1, 3), (4, 5)]
    nested = choose_spans(spans, scores, num_kept=3, allows_crossing=False)
    assert spans.pick(nested).to_pairs() == [(0, 2), (2, 3), (4, 5)]


def test_of_equal_scores_the_first_are_kept():
    spans = list_spans(torch.tensor([40, 40]), max_tokens=2)
    rows = choose_spans(spans, torch.zeros(len(spans.starts)), num_kept=9, allows_crossing=True)
    assert rows.tolist() == list(range(9))
