import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from torch.testing import assert_close

from elmore.tasks.networks.encoders import (
    BiLSTM,
    SentenceDropout,
    find_reversed_positions,
    init_lstm,
    reverse,
)

LENGTHS = torch.tensor([2, 5, 1])


def sentences(filler=0.0):
    x = torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(2))
    behind = torch.arange(5) >= LENGTHS[:, None]
    return x.masked_fill(behind[..., None], filler)


@pytest.mark.parametrize("num_layers", [1, 3])
def test_padding_and_batch_mates_change_nothing(num_layers):
    lstm = BiLSTM(input_dim=4, hidden_dim=3, num_layers=num_layers)
    together = lstm(sentences(), LENGTHS)
    assert together.shape == (3, 5, lstm.output_dim)
    assert torch.equal(lstm(sentences(filler=50.0), LENGTHS), together)
    for row, length in enumerate(LENGTHS.tolist()):
        alone = lstm(sentences()[row : row + 1, :length], LENGTHS[row : row + 1])
        assert_close(alone[0], together[row, :length])
        assert not together[row, length:].any()
    longer = torch.cat([sentences(), torch.ones(3, 2, 4)], dim=1)
    assert_close(lstm(longer, LENGTHS)[:, :5], together)


def test_both_directions_read_to_the_end():
    lstm = BiLSTM(input_dim=4, hidden_dim=3)
    x = sentences().requires_grad_()
    first_place = lstm(x, LENGTHS)[1, 0]
    first_place[:3].sum().backward(retain_graph=True)
    assert not x.grad[1, 1:].any(), "the forward half never sees the right"
    first_place[3:].sum().backward()
    assert x.grad[1, 4].any()


def test_sentences_are_reversed_by_their_own_length():
    positions = find_reversed_positions(torch.tensor([2, 3, 1]), 4)
    assert positions.tolist() == [[1, 0, 2, 3], [2, 1, 0, 3], [0, 1, 2, 3]]
    x = torch.randn(3, 4, 2)
    assert torch.equal(reverse(reverse(x, positions), positions), x)


def test_gradients_reach_all_weights():
    lstm = BiLSTM(input_dim=4, hidden_dim=3, num_layers=2)
    lstm(sentences(), LENGTHS).square().sum().backward()
    assert all(weight.grad.any() for weight in lstm.parameters())


def test_one_mask_for_all_tokens_of_a_sentence():
    dropout = SentenceDropout(0.4)
    torch.manual_seed(1)
    thinned = dropout(torch.ones(50, 7, 40))
    assert torch.equal(thinned, thinned[:, :1].expand_as(thinned))
    assert not torch.equal(thinned[0], thinned[1]), "another sentence, another mask"
    kept = thinned != 0
    assert kept.float().mean().item() == pytest.approx(0.6, abs=0.03)
    assert_close(thinned[kept], torch.full_like(thinned[kept], 1 / 0.6))


def test_dropout_is_for_training_only_and_between_layers():
    x = sentences()
    assert SentenceDropout(0.9).eval()(x) is x
    assert SentenceDropout(0.0)(x) is x
    lstm = BiLSTM(input_dim=4, hidden_dim=3, num_layers=2, dropout=0.5)
    assert not torch.equal(lstm(x, LENGTHS), lstm(x, LENGTHS))
    single = BiLSTM(input_dim=4, hidden_dim=3, num_layers=1, dropout=0.5)
    assert torch.equal(single(x, LENGTHS), single(x, LENGTHS))
    lstm.eval()
    assert torch.equal(lstm(x, LENGTHS), lstm(x, LENGTHS))


def test_a_start_forgets_nothing_and_keeps_lengths():
    lstm = nn.LSTM(4, 3, bidirectional=True, batch_first=True)
    init_lstm(lstm)
    for suffix in ("l0", "l0_reverse"):
        bias = getattr(lstm, f"bias_ih_{suffix}") + getattr(lstm, f"bias_hh_{suffix}")
        assert bias.tolist() == [0.0] * 3 + [1.0] * 3 + [0.0] * 6
        for gate in getattr(lstm, f"weight_hh_{suffix}").chunk(4):
            assert_close(gate @ gate.T, torch.eye(3))


def test_torch_reads_packed_sentences_the_same():
    own = BiLSTM(input_dim=4, hidden_dim=3)
    lstm = nn.LSTM(4, 3, bidirectional=True, batch_first=True)
    weights = {f"{name}_reverse": tensor for name, tensor in own.leftward[0].named_parameters()}
    lstm.load_state_dict({**dict(own.rightward[0].named_parameters()), **weights})
    x = sentences()
    packed = pack_padded_sequence(x, LENGTHS, batch_first=True, enforce_sorted=False)
    expected, _ = pad_packed_sequence(lstm(packed)[0], batch_first=True)
    assert_close(own(x, LENGTHS), expected)
    own(x, LENGTHS).square().sum().backward()
    expected.square().sum().backward()
    for name, tensor in own.leftward[0].named_parameters():
        assert_close(tensor.grad, getattr(lstm, f"{name}_reverse").grad)
