import torch
from torch import nn

from elmore.model.rows import ROW_BLOCK, apply_linear, sigmoid


def test_sigmoid_is_sigmoid():
    x = torch.linspace(-30, 30, 1001, dtype=torch.float64)
    torch.testing.assert_close(sigmoid(x), torch.sigmoid(x), atol=1e-15, rtol=0)


def test_sigmoid_has_no_seams():
    x = torch.randn(1000)
    for start, end in ((0, 1), (3, 34), (7, 1000), (0, 999)):
        assert torch.equal(sigmoid(x[start:end].clone()), sigmoid(x)[start:end])


def test_a_row_has_the_same_bits_in_every_position():
    """What `rows.py` promises, on the machine at hand: any shape, company and threads."""
    before = torch.get_num_threads()
    generator = torch.Generator().manual_seed(0)
    for num_inputs, num_outputs in ((5, 7), (9, 4), (16, 256), (33, 77), (50, 20), (512, 2048)):
        x = torch.randn(20 * ROW_BLOCK, num_inputs, generator=generator)
        layer = nn.Linear(num_inputs, num_outputs)
        wanted = apply_linear(layer, x)
        torch.testing.assert_close(wanted, layer(x))
        try:
            for num_threads in (1, 2, 3, 4):
                torch.set_num_threads(num_threads)
                for blocks in (1, 2, 3, 11):
                    some = torch.randperm(len(x), generator=generator)[: blocks * ROW_BLOCK]
                    assert torch.equal(apply_linear(layer, x[some]), wanted[some])
        finally:
            torch.set_num_threads(before)
