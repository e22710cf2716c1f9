"""A tiny language model, and its probabilities computed from the formulas, a token at a time."""

import numpy as np
import torch

from elmore.lm.language_model import LanguageModel
from elmore.model.adaptive_softmax import AdaptiveSoftmax
from elmore.model.word_softmax import WordSoftmax
from elmore.weights.bilm_tf_arrays import to_arrays
from elmore.weights.bilm_tf_options import make_options
from tests import reference, tiny

WORDS = ["<S>", "</S>", "<UNK>", "the", "cat", "sat", "on", "mat", "a", "dog", ".", "ran"]
DOCUMENTS = [
    [["the", "cat", "sat", "."], ["a", "dog", "ran"], ["on"]],
    [["Zürich", "ran", "on", "the", "mat", "the", "cat", "ran", "on"], ["sat", "sat"]],
    [["dog"]],
    [["the"], ["the", "unheard-of", "cat", "."], ["mat", "."], ["a", "a", "a"], ["ran", "."]],
]
SENTENCES = [sentence for document in DOCUMENTS for sentence in document]

State = list[list[reference.State]]


def make_language_model(*, is_adaptive: bool = False, seed: int = 0) -> LanguageModel:
    """A model with every weight random, and an initial state that is not zero."""
    elmo = tiny.model(seed=seed)
    generator = torch.Generator().manual_seed(seed + 1)
    softmax = (
        AdaptiveSoftmax(num_words=len(WORDS), dim=5, cutoffs=[7])
        if is_adaptive
        else WordSoftmax(num_words=len(WORDS), dim=5)
    )
    with torch.no_grad():
        for weight in (*softmax.parameters(), elmo.bilm.initial_hidden, elmo.bilm.initial_cell):
            weight.copy_(torch.randn(weight.shape, generator=generator))
    counts = torch.arange(len(WORDS), 0, -1, dtype=torch.float32)
    return LanguageModel(
        elmo=elmo, softmax=softmax.eval(), words=WORDS, log_shares=(counts / counts.sum()).log()
    )


def double(language_model: LanguageModel) -> LanguageModel:
    """The same in double precision, in place."""
    language_model.elmo.double()
    language_model.softmax.double()
    return language_model


class SlowLanguageModel:
    """The numpy oracle: one symbol after another, the whole softmax of each."""

    def __init__(self, language_model: LanguageModel) -> None:
        bilm, config = language_model.elmo.bilm, language_model.elmo.config
        self.options = make_options(config)
        arrays = to_arrays(bilm.state_dict(), config)
        self.arrays = {name: np.asarray(array, np.float64) for name, array in arrays.items()}
        self.cells = [
            [
                reference.bilm_tf_cell(self.arrays, self.options, direction=direction, depth=depth)
                for depth in range(config.lstm.num_layers)
            ]
            for direction in (0, 1)
        ]
        assert isinstance(language_model.softmax, WordSoftmax)
        self.weight = language_model.softmax.weight.detach().double().numpy()
        self.bias = language_model.softmax.bias.detach().double().numpy()
        self.initial: State = [
            [
                (
                    bilm.initial_hidden[direction, depth].double().numpy(),
                    bilm.initial_cell[direction, depth].double().numpy(),
                )
                for depth in range(config.lstm.num_layers)
            ]
            for direction in (0, 1)
        ]
        self.zeros: State = [[cell.zero_state() for cell in cells] for cells in self.cells]

    def score(
        self, sentence: list[str], state: State | None = None
    ) -> tuple[list[float], list[float], State]:
        """Return log p of w1 .. wn </S> forward, of <S> w1 .. wn backward, and the last state."""
        state = self.initial if state is None else state
        symbols = ["<S>", *sentence, "</S>"]
        ids = [WORDS.index(s) if s in WORDS else WORDS.index("<UNK>") for s in symbols]
        vectors = [reference.bilm_tf_token(self.arrays, self.options, s) for s in symbols]
        scores, ends = [], []
        for cells, start, order in zip(self.cells, state, (1, -1), strict=True):
            inputs = np.stack(vectors[::order])
            layers, end = reference.run_direction(inputs, cells, start, True)
            log_probs = [self.log_softmax(output) for output in layers[-1][:-1]]
            targets = ids[::order][1:]
            direction = [float(p[target]) for p, target in zip(log_probs, targets, strict=True)]
            scores.append(direction[::order])
            ends.append(end)
        return scores[0], scores[1], ends

    def log_softmax(self, output: np.ndarray) -> np.ndarray:
        logits = self.weight @ output + self.bias
        return logits - logits.max() - np.log(np.exp(logits - logits.max()).sum())

    def sums(self, documents: list[list[list[str]]], policy: str) -> tuple[float, float]:
        """Return the sums of -log p of either direction."""
        forward_lm, backward_lm, state = 0.0, 0.0, self.initial
        for document in documents:
            if policy == "document":
                state = self.initial
            for sentence in document:
                if policy == "reset":
                    state = self.initial
                ahead, back, state = self.score(sentence, state)
                forward_lm -= sum(ahead)
                backward_lm -= sum(back)
        return forward_lm, backward_lm
