"""Compare summing gradients in every step with local steps and periodic averaging (DiLoCo).

    python -m benchmarks.local_steps CORPUS [--config tiny] [--steps 1000] [--every 16 32]

CORPUS is a folder of `elmore prepare`. Several processes on this machine train on its rows. Either
they sum their gradients in every step, as `elmore pretrain` does, or each trains on its own rows
and all average their weights every few steps (Douillard et al., 2023): the mean difference from the
last common weights is the gradient of an outer optimizer, which is plain averaging with a learning
rate of 1, or SGD with Nesterov momentum. Inner optimizers keep their state. Bytes are those of ring
all-reduces that one process sends; of the softmax, only rows that have changed are sent. LSTM
states and the losses for the log are not counted. Prints Markdown.
"""

import argparse
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing import get_context
from multiprocessing.queues import SimpleQueue
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from elmore.corpus.corpus import Corpus, open_corpus
from elmore.corpus.sample import sample_documents
from elmore.lm.distributed import Group
from elmore.lm.network import make_model, make_softmax
from elmore.lm.perplexity import measure_losses
from elmore.lm.settings import PretrainSettings, load_settings
from elmore.lm.streams import Streams, TrainingWindow
from elmore.lm.trainer import Trainer
from elmore.settings import find_config

HELDOUT_TOKENS = 50_000


@dataclass(frozen=True, kw_only=True)
class Method:
    """How processes exchange what they have learned."""

    name: str
    every: int | None = None  # steps between averages; None: gradients, in every step
    learning_rate: float = 1.0
    momentum: float = 0.0
    gradients: str = "f32"


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a method gave."""

    perplexity: float
    num_bytes: float  # that a process sent


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.local_steps")
    parser.add_argument("corpus")
    parser.add_argument("--config", default="tiny")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--every", type=int, nargs="+", default=[16, 32])
    arguments = parser.parse_args()
    methods = [
        Method(name="gradients, every step"),
        Method(name="gradients in bf16, every step", gradients="bf16"),
    ]
    for every in arguments.every:
        methods += [
            Method(name=f"averages, every {every} steps", every=every),
            Method(
                name=f"DiLoCo, every {every} steps", every=every, learning_rate=0.7, momentum=0.9
            ),
        ]
    print("| exchange | MB per step | times less | perplexity | difference |")
    print("|---|---:|---:|---:|---:|")
    base: Result | None = None
    for method in methods:
        result = run(method, arguments)
        base = base or result
        print(
            f"| {method.name} | {result.num_bytes / arguments.steps / 1e6:.2f} | "
            f"{base.num_bytes / result.num_bytes:.1f} | {result.perplexity:.2f} | "
            f"{result.perplexity / base.perplexity - 1:+.1%} |",
            flush=True,
        )


def run(method: Method, arguments: argparse.Namespace) -> Result:
    """Train with one method in processes of its own."""
    context = get_context("spawn")
    results: SimpleQueue[Result] = context.SimpleQueue()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    processes = [
        context.Process(target=train, args=(rank, port, method, vars(arguments), results))
        for rank in range(arguments.processes)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        if process.exitcode:
            raise SystemExit(f"a process ended with status {process.exitcode}")
    return results.get()


def train(
    rank: int, port: int, method: Method, arguments: dict[str, Any], results: "SimpleQueue[Result]"
) -> None:
    """Train in one of the processes; the first measures the perplexity."""
    torch.set_num_threads(1)
    size = arguments["processes"]
    changes = [f"training.max_steps={arguments['steps']}", "training.num_epochs=1000"]
    changes.append(f"training.gradients={method.gradients}")
    settings = load_settings(find_config(arguments["config"]), changes)
    corpus = open_corpus(arguments["corpus"])
    os.environ |= {
        **{"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "GLOO_SOCKET_IFNAME": "lo"},
        **{"RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_WORLD_SIZE": str(size)},
    }
    group = Group(device=torch.device("cpu"))  # joins the processes
    counter = ByteCounter(size)
    if method.every is None:
        trainer = make_trainer(settings, corpus, group)
        exchange: Callable[[], None] = lambda: None  # noqa: E731  steps exchange gradients
        every = 1
    else:
        num_rows = group.share_rows(settings.training.rows, accumulation=1)
        alone = replace(settings, training=replace(settings.training, rows=num_rows))
        os.environ |= {"RANK": "0", "WORLD_SIZE": "1"}
        trainer = make_trainer(alone, corpus, Group(device=torch.device("cpu")))
        trainer.streams = RowsFrom(trainer.streams, settings, corpus, first_row=rank * num_rows)
        exchange, every = Average(trainer, method, size=size), method.every
    for step in range(trainer.num_steps):
        trainer.step([])
        if (step + 1) % every == 0 or step + 1 == trainer.num_steps:
            exchange()
    num_bytes = counter.num_bytes
    if rank == 0:
        trainer.elmo.eval()
        totals = measure_losses(
            trainer.elmo,
            trainer.softmax,
            corpus.vocabulary,
            documents=sample_documents(corpus.heldout, max_tokens=HELDOUT_TOKENS),
        )
        results.put(Result(perplexity=totals.perplexity, num_bytes=num_bytes))
    group.close()


def make_trainer(settings: PretrainSettings, corpus: Corpus, group: Group) -> Trainer:
    elmo = make_model(settings, corpus)
    softmax = make_softmax(settings, elmo.config, counts=corpus.counts)
    return Trainer(settings, corpus, elmo, softmax, group=group)


class RowsFrom(Streams):
    """The rows of one process, read as if they were all."""

    def __init__(
        self, own: Streams, settings: PretrainSettings, corpus: Corpus, *, first_row: int
    ) -> None:
        training = settings.training
        super().__init__(corpus.train, num_rows=training.rows, window=training.window)
        self._first_row = first_row
        self._num_own = own.num_rows

    def read(self, step: int, *, first_row: int = 0, num_rows: int | None = None) -> TrainingWindow:
        num_rows = self._num_own if num_rows is None else num_rows
        return super().read(step, first_row=self._first_row + first_row, num_rows=num_rows)


class Average:
    """Moves the weights of all processes to common ones."""

    def __init__(self, trainer: Trainer, method: Method, *, size: int) -> None:
        self._size = size
        self._own: list[nn.Parameter] = [
            *trainer.elmo.bilm.parameters(),
            *trainer.softmax.parameters(),
        ]
        self._are_words = [False] * len(list(trainer.elmo.bilm.parameters()))
        self._are_words += [True] * (len(self._own) - len(self._are_words))
        self._common = [nn.Parameter(weight.detach().clone()) for weight in self._own]
        self._outer = torch.optim.SGD(
            self._common,
            lr=method.learning_rate,
            momentum=method.momentum,
            nesterov=method.momentum > 0,
        )

    @torch.no_grad()
    def __call__(self) -> None:
        for own, common, are_words in zip(self._own, self._common, self._are_words, strict=True):
            difference = common - own
            if are_words:
                self._add_changed_rows(difference)
            else:
                dist.all_reduce(difference)
            common.grad = difference / self._size
        self._outer.step()
        for own, common in zip(self._own, self._common, strict=True):
            own.copy_(common)

    def _add_changed_rows(self, difference: Tensor) -> None:
        """Sum the rows that any process has changed."""
        is_changed = (difference.reshape(len(difference), -1) != 0).any(dim=1).to(torch.uint8)
        dist.all_reduce(is_changed, op=dist.ReduceOp.MAX)
        rows = is_changed.nonzero().flatten()
        values = difference[rows]
        dist.all_reduce(values)
        difference[rows] = values


class ByteCounter:
    """Counts what a process sends in all-reduces from now on."""

    def __init__(self, size: int) -> None:
        self.num_bytes = 0.0
        plain = dist.all_reduce

        def all_reduce(tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
            self.num_bytes += 2 * (size - 1) / size * tensor.numel() * tensor.element_size()
            return plain(tensor, *args, **kwargs)

        dist.all_reduce = all_reduce


if __name__ == "__main__":
    main()
