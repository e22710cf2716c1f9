import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch.nn import functional

from elmore.model import char_table
from elmore.model.char_table import (
    count_positions,
    make_tables,
    number_distinct,
    strongest_responses,
)
from elmore.model.rows import round_up


@pytest.fixture(autouse=True, scope="module", params=["native", "torch"])
def kernel(request):
    """All of this holds with the native kernel, where there is one, and without."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "torch":
            patch.setenv("ELMORE_KERNEL", "torch")
        yield


@pytest.fixture
def torch_only(monkeypatch):
    """Some things are true of the form in torch alone."""
    monkeypatch.setenv("ELMORE_KERNEL", "torch")


@st.composite
def cases(draw):
    """Draw tokens of every length, their units' vectors, and a filter as wide as any may be."""
    max_chars = draw(st.integers(1, 9))
    width = draw(st.integers(1, max_chars))
    num_units = draw(st.integers(1, 12))
    filler = draw(st.integers(0, num_units - 1))
    contents = draw(
        st.lists(
            st.lists(st.integers(0, num_units - 1), max_size=max_chars), min_size=1, max_size=9
        )
    )
    ids = [content + [filler] * (max_chars - len(content)) for content in contents]
    embedding_dim, num_filters = draw(st.integers(1, 5)), draw(st.sampled_from([1, 2, 3, 7, 16]))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 99)))
    units = torch.randn(num_units, embedding_dim, generator=generator, dtype=torch.float64)
    weight = torch.randn(
        num_filters, width * embedding_dim, generator=generator, dtype=torch.float64
    )
    return torch.tensor(ids), units, weight, width


def convolve(char_ids, units, weight, width):
    """The strongest responses as a convolution over all positions gives them."""
    kernel = weight.unflatten(1, (width, -1)).transpose(1, 2)
    return functional.conv1d(units[char_ids].transpose(1, 2), kernel).amax(dim=2)


def look_up(char_ids, units, weight, width):
    """The same by table."""
    (table,) = make_tables(units, [weight], widths=[width])
    return strongest_responses(char_ids, count_positions(char_ids), [table])


def add_one_by_one(char_ids, table):
    """The strongest responses by one addition at a time, in the order of the units."""
    width = len(table)
    responses = []
    for start in range(char_ids.shape[1] - width + 1):
        response = table[0][char_ids[:, start]]
        for k in range(1, width):
            response = response + table[k][char_ids[:, start + k]]
        responses.append(response)
    return torch.stack(responses).amax(dim=0)


def words(num_tokens, *, num_units=261, max_chars=50, seed=0):
    """Tokens of ordinary lengths, and some that fill all characters."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, 15, (num_tokens, 1), generator=generator)
    lengths[::11] = max_chars
    ids = torch.randint(0, num_units - 1, (num_tokens, max_chars), generator=generator)
    return ids.where(torch.arange(max_chars) < lengths, num_units - 1)


def original_filter(width=7, num_filters=1024):
    """Units and the widest filter of the original's shape."""
    generator = torch.Generator().manual_seed(1)
    units = torch.randn(261, 16, generator=generator)
    return units, torch.randn(num_filters, width * 16, generator=generator)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(cases())
def test_a_table_gives_what_a_convolution_gives(case):
    torch.testing.assert_close(look_up(*case), convolve(*case), atol=1e-12, rtol=1e-12)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(cases(), st.integers(0, 99))
def test_gradients_are_those_of_a_convolution(case, seed):
    char_ids, units, weight, width = case
    generator = torch.Generator().manual_seed(seed)
    weigh = torch.randn(len(char_ids), len(weight), generator=generator, dtype=torch.float64)
    leaves = [units.requires_grad_(), weight.requires_grad_()]
    found, wanted = (
        torch.autograd.grad((respond(char_ids, *leaves, width) * weigh).sum(), leaves)
        for respond in (look_up, convolve)
    )
    # Windows with the same units tie, and differ by rounding in one way or the other; whichever
    # wins, its units are the same.
    torch.testing.assert_close(found, wanted, atol=1e-11, rtol=1e-11)


def test_gradients_agree_with_differences():
    char_ids = words(6, num_units=7, max_chars=9)
    table = torch.randn(3, 7, 5, dtype=torch.float64, requires_grad=True)
    positions = count_positions(char_ids)
    assert torch.autograd.gradcheck(lambda t: strongest_responses(char_ids, positions, [t]), table)


@settings(max_examples=60, deadline=None)
@given(cases())
def test_rows_are_added_in_the_order_of_the_units(case):
    char_ids, units, weight, width = case
    (table,) = make_tables(units.float(), [weight.float()], widths=[width])
    strongest = strongest_responses(char_ids, count_positions(char_ids), [table])
    assert torch.equal(strongest, add_one_by_one(char_ids, table))


@pytest.mark.parametrize("num_filters", [1024, 33])
def test_the_order_of_additions_holds_at_ordinary_width(num_filters):
    units, weight = original_filter(num_filters=num_filters)
    char_ids = words(40)
    (table,) = make_tables(units, [weight], widths=[7])
    strongest = strongest_responses(char_ids, count_positions(char_ids), [table])
    assert torch.equal(strongest, add_one_by_one(char_ids, table))


@pytest.mark.parametrize("num_threads", [1, 2, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "shape",
    [
        pytest.param((16, 6, 512), marks=pytest.mark.slow),
        pytest.param((50, 6, 250), marks=pytest.mark.slow),
        (16, 6, 32),
        (3, 3, 11),
        (5, 1, 5),
    ],
)
def test_units_have_the_same_bits_in_any_batch(shape, dtype, num_threads):
    """A plain product differs in the small shapes."""
    embedding_dim, width, num_filters = shape
    generator = torch.Generator().manual_seed(2)
    units = torch.randn(261, embedding_dim, generator=generator, dtype=dtype)
    weight = torch.randn(num_filters, width * embedding_dim, generator=generator, dtype=dtype)
    (whole,) = make_tables(units, [weight], widths=[width])
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(num_threads)
        for number in (1, 2, 7, 8, 9, 31, 64, 100, 260):
            some = torch.randperm(261, generator=generator)[:number]
            (table,) = make_tables(units[some], [weight], widths=[width])
            assert torch.equal(table[:, :number], whole[:, some])
    finally:
        torch.set_num_threads(before)


def test_tokens_have_the_same_bits_in_any_batch():
    units, weight = original_filter(num_filters=1023)
    char_ids = words(300)
    together = look_up(char_ids, units, weight, 7)
    generator = torch.Generator().manual_seed(3)
    for number in (1, 2, 5, 30, 150):
        some = torch.randperm(300, generator=generator)[:number]
        assert torch.equal(look_up(char_ids[some], units, weight, 7), together[some])


def test_windows_that_tie_share_the_gradient(torch_only):
    char_ids = torch.tensor([[1, 2, 1, 0, 0]])  # unit 1 twice, as strong as unit 2
    table = torch.tensor([[[0.0], [5.0], [5.0]]], requires_grad=True)
    strongest = strongest_responses(char_ids, count_positions(char_ids), [table])
    strongest.backward(torch.tensor([[6.0]]))
    assert table.grad.flatten().tolist() == [0.0, 4.0, 2.0]


@pytest.mark.parametrize(
    ("ids", "count"),
    [
        ([7, 8, 9, 0, 0, 0], 4),
        ([7, 0, 9, 0, 0, 0], 4),
        ([7, 8, 9, 7, 8, 9], 6),
        ([7, 8, 9, 7, 9, 9], 5),
        ([9, 9, 9, 9, 9, 9], 1),
        ([9], 1),
    ],
)
def test_windows_start_in_the_content_and_once_in_filler(ids, count):
    assert count_positions(torch.tensor([ids])).tolist() == [count]


def test_a_window_of_nothing_but_filler_counts_only_where_one_fits():
    """Filler is the strongest unit: the widest window that fits decides."""
    table = torch.zeros(3, 2, 1)
    table[:, 0] = 1.0
    char_ids = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 1, 1]])
    strongest = strongest_responses(char_ids, count_positions(char_ids), [table])
    assert strongest.flatten().tolist() == [2.0, 3.0, 0.0]


def spy_on_windows(monkeypatch):
    """Record how many windows are looked up at a time."""
    numbers = []
    bag = functional.embedding_bag
    monkeypatch.setattr(
        char_table.functional,
        "embedding_bag",
        lambda ids, *rest, **options: numbers.append(len(ids)) or bag(ids, *rest, **options),
    )
    return numbers


def test_a_long_token_does_not_lengthen_the_others(torch_only, monkeypatch):
    char_ids = torch.zeros(100, 50, dtype=torch.int64)
    char_ids[:, 0] = 1
    char_ids[7] = torch.arange(1, 51)
    numbers = spy_on_windows(monkeypatch)
    strongest_responses(char_ids, count_positions(char_ids), [torch.randn(3, 51, 4)])
    assert sum(numbers) == 99 * 2 + 48


def test_many_tokens_are_read_a_few_at_a_time(torch_only, monkeypatch):
    units, weight = original_filter(width=3, num_filters=20)
    leaf = weight.requires_grad_()
    char_ids = words(200)
    whole = look_up(char_ids, units, weight, 3)
    (wanted,) = torch.autograd.grad(whole.square().sum(), leaf)
    numbers = spy_on_windows(monkeypatch)
    monkeypatch.setattr(char_table, "NUMBERS_AT_ONCE", 60 * 20)
    parts = look_up(char_ids, units, weight, 3)
    assert max(numbers) < 60 + 50  # whole tokens, so the last of a part may stand out
    assert len(numbers) > 20
    assert torch.equal(parts, whole)
    (found,) = torch.autograd.grad(parts.square().sum(), leaf)
    torch.testing.assert_close(found, wanted, atol=1e-2, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_either_kind_of_integer_points_into_a_table(dtype):
    units, weight = original_filter(width=2, num_filters=5)
    char_ids = words(9)
    assert torch.equal(
        look_up(char_ids.to(dtype), units, weight, 2), look_up(char_ids, units, weight, 2)
    )


def test_no_tokens_have_no_responses():
    char_ids = torch.zeros(0, 4, dtype=torch.int64)
    table = torch.randn(2, 3, 5, requires_grad=True)
    strongest = strongest_responses(char_ids, count_positions(char_ids), [table])
    assert strongest.shape == (0, 5)
    strongest.sum().backward()
    assert not table.grad.any()


def test_a_window_wider_than_a_token_is_named():
    char_ids = torch.zeros(1, 4, dtype=torch.int64)
    with pytest.raises(ValueError, match="at least 5 characters, the widest filter, got 4"):
        strongest_responses(char_ids, count_positions(char_ids), [torch.randn(5, 3, 2)])


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.integers(0, 40), min_size=3, max_size=3), min_size=1, max_size=5))
@example([[40, 0, 40]])
def test_numbers_of_distinct_units_lead_back_to_the_ids(ids):
    char_ids = torch.tensor(ids)
    distinct, numbers = number_distinct(char_ids, num_units=41)
    assert torch.equal(distinct, char_ids.unique())
    assert torch.equal(distinct[numbers], char_ids)


def test_a_table_has_whole_blocks_of_units():
    units, weight = original_filter(width=2, num_filters=5)
    (table,) = make_tables(units[:9], [weight], widths=[2])
    assert table.shape == (2, round_up(9), 5)
    assert table.is_contiguous()
    torch.testing.assert_close(table[1, :9], units[:9] @ weight[:, 16:].t())


def test_mixed_precision_leaves_the_table_alone():
    units, weight = original_filter(width=2, num_filters=5)
    (wanted,) = make_tables(units, [weight], widths=[2])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        (found,) = make_tables(units, [weight], widths=[2])
    assert torch.equal(found, wanted)
