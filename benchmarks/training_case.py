"""A training step up to the gradients, with a sampled softmax or without."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from benchmarks.bench import PEERS, Bench, Row, count_tokens, make_row
from benchmarks.models import count_steps, lstm_flops
from benchmarks.peers_method import PeersMethod, pad_sentences
from benchmarks.sampled_softmax import SampledSoftmax, number_targets
from benchmarks.sentences import Sentences, rank_words
from benchmarks.timing import Contestant
from elmore.weights.elmo_model import ElmoModel


def training(bench: Bench, *, name: str) -> Iterator[Row]:
    """f: forward and backward pass, with a sampled softmax or without."""
    model, peers = bench.model(name), bench.peers(name)
    steps = TrainingSteps(model, peers, ranks=rank_words(bench.sentences))
    model.train()
    for has_softmax in (True, False):
        case = f"f {name}" + ("" if has_softmax else ", no softmax")
        timings = bench.race(
            *(
                Contestant(
                    name=contestant,
                    prepare=steps.forget_gradients,
                    run=make_step(bench.window, has_softmax=has_softmax),
                    warm_up=make_step(bench.window[:4], has_softmax=has_softmax),
                )
                for contestant, make_step in (
                    (PEERS, steps.step_of_peers),
                    ("elmore f32", steps.step_of_elmore),
                )
            )
        )
        num_tokens, num_steps = count_tokens(bench.window), count_steps(bench.window)
        flops = 3 * lstm_flops(model.config, num_steps)  # the gradients of both factors
        yield make_row(case, timings, PEERS, num_tokens=num_tokens, flops=flops)
        yield make_row(case, timings, "elmore f32", PEERS, num_tokens=num_tokens, flops=flops)
    steps.forget_gradients()
    model.eval()
    bench.note("f: GFLOP/s count the LSTMs alone, three times the forward work")


class TrainingSteps:
    """A step of each contestant, up to the gradients."""

    def __init__(self, model: ElmoModel, peers: PeersMethod, *, ranks: dict[str, int]) -> None:
        self.model = model
        self.peers = peers
        self.ranks = ranks
        dim = model.config.lstm.output_dim
        self.sparse = SampledSoftmax(dim=dim, is_sparse=True, seed=0)
        self.dense = SampledSoftmax(dim=dim, is_sparse=False, seed=0)

    def step_of_peers(self, sentences: Sentences, *, has_softmax: bool) -> Callable[[], None]:
        """Padded batch, dense gradient."""
        char_ids, lengths = pad_sentences(sentences, self.model.speller)
        is_token = torch.arange(char_ids.shape[1]) < lengths[:, None]
        loss = self._loss(sentences, self.dense if has_softmax else None)
        return lambda: loss(self.peers(char_ids, lengths)[-1][is_token]).backward()

    def step_of_elmore(self, sentences: Sentences, *, has_softmax: bool) -> Callable[[], None]:
        """Distinct words, sparse gradient."""
        batch = self.model.batch(sentences)
        loss = self._loss(sentences, self.sparse if has_softmax else None)
        return lambda: loss(self.model.bilm(batch).layers[-1]).backward()

    def forget_gradients(self) -> None:
        """Clear the gradients."""
        for module in (self.model, self.peers, self.sparse, self.dense):
            module.zero_grad(set_to_none=True)

    def _loss(
        self, sentences: Sentences, softmax: SampledSoftmax | None
    ) -> Callable[[Tensor], Tensor]:
        if softmax is not None:
            targets = number_targets(sentences, self.ranks)
            return lambda outputs: softmax(outputs, targets)
        weights = torch.randn(count_steps(sentences), self.model.bilm.output_dim)
        return lambda outputs: (outputs * weights).sum()
