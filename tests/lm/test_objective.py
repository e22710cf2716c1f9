"""The loss of a window and its gradients are those of the formulas, and nothing leaks into them."""

from contextlib import nullcontext

import numpy as np
import pytest
import torch

from elmore.config import Precision
from elmore.kernels import products
from elmore.lm.objective import Objective, WindowLoss, choose_sampler
from elmore.lm.settings import SoftmaxSettings
from elmore.lm.streams import Streams
from elmore.model.state import BiLMState
from elmore.model.windows import WindowReader
from elmore.model.word_softmax import WordSoftmax
from elmore.weights.bilm_tf_arrays import to_arrays
from elmore.weights.bilm_tf_options import make_options
from tests import reference, tiny
from tests.corpus.memory_corpus import make_corpus
from tests.kernels import variants

TEXT = """
ab cd ab e
cd

e ab ff
gh cd ab ab e cd
"""
ROWS, WINDOW = 3, 4


class Case:
    """A tiny model, its softmax, and text to read in rows."""

    def __init__(self, *, is_double: bool = True, dropout: float = 0.0, negatives: int = 0) -> None:
        self.corpus = make_corpus(TEXT, min_count=2)
        self.streams = Streams(self.corpus.train, num_rows=ROWS, window=WINDOW)
        self.model = tiny.model(scale=0.4)
        num_words = len(self.corpus.vocabulary)
        self.softmax = WordSoftmax(num_words=num_words, dim=self.model.config.lstm.output_dim)
        self.softmax.initialize(seed=3)
        if is_double:
            self.model.double()
            self.softmax.double()
        kind = {"kind": "sampled", "num_negatives": negatives} if negatives else {"kind": "full"}
        self.reader = WindowReader(self.model.bilm)
        self.objective = Objective(
            self.reader,
            self.softmax,
            self.model.speller,
            sampler=choose_sampler(SoftmaxSettings(**kind), num_words=num_words),
            dropout=dropout,
            seed=5,
            device=torch.device("cpu"),
        )

    def compute(self, step: int, state: BiLMState | None = None, *, rows: slice) -> WindowLoss:
        first, num = rows.start, rows.stop - rows.start
        window = self.streams.read(step, first_row=first, num_rows=num)
        state = self.model.bilm.initial_state(ROWS)[rows] if state is None else state
        negatives = self.objective.draw_negatives(step)
        return self.objective.compute(window, state, negatives, step=step, first_row=first)

    def compute_all(self, step: int, state: BiLMState | None = None) -> WindowLoss:
        return self.compute(step, state, rows=slice(0, ROWS))

    def gradients(self) -> dict[str, torch.Tensor]:
        named = [*self.model.bilm.named_parameters(), *self.softmax.named_parameters()]
        return {name: w.grad.to_dense() if w.grad.is_sparse else w.grad for name, w in named}


def read_streams() -> list[list[str]]:
    """All that the forward and the backward LM read, from the first sentence on."""
    sentences = [line.split() for line in TEXT.split("\n") if line]
    return [
        [s for x in sentences for s in ("<S>", *x, "</S>")],
        [s for x in sentences for s in ("</S>", *x[::-1], "<S>")],
    ]


def reference_loss(case: Case, num_windows: int, states: dict) -> float:
    """Sum the losses of the last of some windows; `states` keeps those before it from then on."""
    config = case.model.config
    arrays = to_arrays(case.model.bilm.state_dict(), config)
    options = make_options(config)
    cells = [
        [
            reference.bilm_tf_cell(arrays, options, direction=direction, depth=depth)
            for depth in range(config.lstm.num_layers)
        ]
        for direction in (0, 1)
    ]
    weight, bias = (w.detach().numpy() for w in case.softmax.parameters())
    ids = {word: number for number, word in enumerate(case.corpus.vocabulary)}
    total = 0.0
    for row, start in enumerate(case.streams.find_starts(0, case.streams.num_rows)):
        for direction, stream in enumerate(read_streams()):
            state = [cell.zero_state() for cell in cells[direction]]
            last = "</S>" if direction == 0 else "<S>"
            for window in range(num_windows):
                first = start + window * WINDOW
                read = [stream[(first + place) % len(stream)] for place in range(WINDOW + 1)]
                if window == num_windows - 1:
                    state = states.setdefault((row, direction), state)
                tokens = np.stack(
                    [reference.bilm_tf_token(arrays, options, token) for token in read[:-1]]
                )
                layers, state = reference.run_direction(
                    tokens, cells[direction], state, options["lstm"]["use_skip_connections"]
                )
            for output, here, following in zip(layers[-1], read, read[1:], strict=False):
                if here == last:
                    continue
                logits = weight @ output + bias
                target = ids.get(following, ids["<UNK>"])
                total += np.log(np.exp(logits - logits.max()).sum()) + logits.max() - logits[target]
    return total


@pytest.mark.slow
def test_loss_and_gradients_are_those_of_the_formulas():
    case = Case()
    first = case.compute_all(0)
    loss = case.compute_all(1, first.state)
    states: dict = {}
    assert first.total.item() == pytest.approx(reference_loss(case, 1, {}), abs=1e-9)
    assert loss.total.item() == pytest.approx(reference_loss(case, 2, states), abs=1e-9)
    loss.total.backward()
    random = np.random.default_rng(0)
    for (name, gradient), weight in zip(
        case.gradients().items(),
        [*case.model.bilm.parameters(), *case.softmax.parameters()],
        strict=True,
    ):
        index = tuple(int(random.integers(size)) for size in weight.shape)
        # The past is not part of the gradient, so the states before the window stay as they were.
        wanted = reference.numerical_gradient(
            lambda _: reference_loss(case, 2, states),
            weight.detach().numpy(),
            index=index,
            step=1e-6,
        )
        assert gradient[index].item() == pytest.approx(wanted, abs=1e-6), name


def test_native_kernels_give_the_gradients_of_torch():
    cases = [Case(is_double=False, dropout=0.3), Case(is_double=False, dropout=0.3)]
    losses = []
    for case, kernel in zip(cases, (nullcontext(), variants.using("torch")), strict=True):
        with kernel:
            first = case.compute_all(0)
            loss = case.compute_all(1, first.state)
            loss.total.backward()
        losses.append(loss)
    assert losses[0].total.item() == pytest.approx(losses[1].total.item(), rel=1e-5)
    torch.testing.assert_close(losses[0].state.cell, losses[1].state.cell, atol=1e-5, rtol=1e-5)
    expected = cases[1].gradients()
    for name, gradient in cases[0].gradients().items():
        torch.testing.assert_close(gradient, expected[name], atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("negatives", [0, 4])
def test_rows_read_in_parts_add_up_to_the_whole(negatives):
    whole, parts = (Case(dropout=0.25, negatives=negatives) for _ in range(2))
    loss = whole.compute_all(7)
    loss.total.backward()
    total = 0.0
    for rows in (slice(0, 1), slice(1, 3)):
        part = parts.compute(7, rows=rows)
        part.total.backward()
        total += part.total.item()
    assert total == pytest.approx(loss.total.item(), abs=1e-10)
    expected = whole.gradients()
    for name, gradient in parts.gradients().items():
        torch.testing.assert_close(gradient, expected[name], atol=1e-10, rtol=1e-8)


def changed_losses(case: Case, place: int, *, is_leaking: bool = False) -> np.ndarray:
    """Return which losses (2, T) of a row change with the token that it reads at a place."""
    window = case.streams.read(0, first_row=0, num_rows=1)
    state = case.model.bilm.initial_state(1)
    results = []
    for is_changed in (False, True):
        read = window.positions.copy()
        if is_changed:
            # The token with another one's spelling; what is to be foretold stays the same.
            token = read[0, place, 0]
            read[window.positions == token] = len(window.tokens) + 2
        tokens = case.model.speller.spell([*window.tokens, "zzz"], with_markers=True)
        outputs, _ = case.reader(tokens, torch.from_numpy(read), state)
        targets = window.targets if not is_leaking else np.roll(window.targets, 1, axis=1)
        losses = [
            case.softmax.losses(outputs[d], torch.from_numpy(targets[d, :, 0])) for d in (0, 1)
        ]
        results.append(torch.stack(losses).numpy())
    return np.abs(results[0] - results[1]) > 1e-9


def first_seen(case: Case, direction: int, place: int) -> int:
    """Return at which step a direction reads the token of a place in the sentence."""
    window = case.streams.read(0, first_row=0, num_rows=1)
    token = window.positions[0, place, 0]
    return int(np.flatnonzero(window.positions[direction, :, 0] == token)[0])


def test_no_loss_depends_on_what_it_predicts():
    """The first sentence is "<S> ab cd ab e </S>"; a token's own loss is the step before it."""
    case = Case()
    for direction, target in ((0, "cd"), (1, "cd")):
        place = 2  # of "cd", which occurs once in the window of either direction
        changed = changed_losses(case, place)
        seen = first_seen(case, direction, place)
        assert not changed[direction, :seen].any(), target
        assert changed[direction, seen:].all()


def test_a_planted_leak_would_be_found():
    """Where targets are what was just read, the loss of a token moves with its spelling."""
    case = Case()
    window = case.streams.read(0, first_row=0, num_rows=1)
    seen = first_seen(case, 0, 2)
    # With the leak the target of step `seen` is the token read there, and its loss depends on it.
    leaked = np.roll(window.targets, 1, axis=1)
    assert leaked[0, seen, 0] == window.targets[0, seen - 1, 0]
    assert changed_losses(case, 2, is_leaking=True)[0, seen]


class LookingAhead(WindowReader):
    """A reader with a fault: each step also sees the token after it."""

    def forward(self, tokens, positions, state, draw_mask=None):
        outputs, final = super().forward(tokens, positions, state, draw_mask)
        vectors = self.bilm.token_encoder(tokens.char_ids, tokens.word_ids)
        ahead = vectors[positions.roll(-1, dims=1).flatten(1)]
        return outputs + ahead, final


def test_the_leak_test_catches_a_reader_that_looks_ahead():
    case = Case()
    case.reader = LookingAhead(case.model.bilm)
    changed = changed_losses(case, 2)
    seen = first_seen(case, 0, 2)
    assert changed[0, seen - 1]


def test_dropout_depends_on_seed_step_and_row_alone():
    losses = [Case(dropout=0.5).compute_all(step).total.item() for step in (3, 3, 4)]
    assert losses[0] == losses[1] != losses[2]


@pytest.mark.parametrize("kernel", ["avx2", "avx512_bf16", "torch"])
def test_bf16_is_near(kernel, monkeypatch):
    monkeypatch.setattr(products, "MIN_PRODUCTS", 0)
    with variants.using(kernel):
        exact = Case(is_double=False)
        rounded = Case(is_double=False)
        rounded.reader.precision = rounded.objective.precision = Precision.BF16
        losses = [case.compute_all(0) for case in (exact, rounded)]
        for loss in losses:
            loss.total.backward()
    assert losses[1].total.item() == pytest.approx(losses[0].total.item(), rel=0.02)
    assert losses[1].total.item() != losses[0].total.item()
    assert losses[1].state.hidden.dtype == torch.float32
    wanted = exact.gradients()
    for name, gradient in rounded.gradients().items():
        assert gradient.dtype == torch.float32
        error = (gradient - wanted[name]).norm() / wanted[name].norm()
        assert error < 0.05, name


def test_small_vocabularies_get_the_full_softmax():
    settings = SoftmaxSettings(num_negatives=10)
    assert choose_sampler(settings, num_words=10) is None
    assert choose_sampler(settings, num_words=11) is not None
    assert choose_sampler(SoftmaxSettings(kind="full"), num_words=1000) is None
