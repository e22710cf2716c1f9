"""Small inputs for the networks that choose a label: words by name, layers made from them."""

import torch
from torch import nn

from elmore.tasks.inputs.elmo_vectors import ElmoVectors
from elmore.tasks.inputs.token_batch import NUM_SPECIAL_ROWS, TokenBatcher
from elmore.tasks.inputs.token_input import TokenInput
from elmore.tasks.task import TaskBatch

WORDS = [*"abcdefgh", "not"]
NUM_LAYERS, LAYER_DIM = 3, 4


def make_input(*, word_dim=6, has_elmo=True, seed=0):
    """Random word vectors, and ELMo vectors below and above, without dropout."""
    torch.manual_seed(seed)
    elmo = [
        ElmoVectors(num_layers=NUM_LAYERS, layer_dim=LAYER_DIM, dropout=0.0) if has_elmo else None
        for _ in range(2)
    ]
    words = torch.randn(len(WORDS) + NUM_SPECIAL_ROWS, word_dim)
    return TokenInput(words=words, below=elmo[0], above=elmo[1])


def make_batch(*roles, gold=None, num_behind=0, behind=0.0):
    """Put sentences into a batch; layers behind a sentence's end hold the number `behind`."""
    sentences = []
    for role in roles:
        longest = max(len(sentence) for sentence in role)
        # One more sentence makes the batch as long as is wanted; its row is then cut off.
        filler = ["a"] * (longest + num_behind)
        batch = TokenBatcher(words=WORDS).make([*role, filler])
        table = torch.randn(NUM_LAYERS, 20, LAYER_DIM, generator=torch.Generator().manual_seed(1))
        layers = table[:, batch.words]
        layers[:, ~batch.mask] = behind
        sentences.append(
            type(batch)(
                words=batch.words[:-1],
                spellings=batch.spellings,
                spelled=batch.spelled[:-1],
                lengths=batch.lengths[:-1],
                layers=layers[:, :-1],
            )
        )
    numbers = None if gold is None else torch.tensor(gold)
    return TaskBatch(sentences=tuple(sentences), features=numbers)


def shake(network):
    """Give every parameter a random value, so that none is hidden by a zero."""
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.4)
    return network.eval()


def train(network, batch, *, num_steps, rate=0.01):
    """Take steps on one batch."""
    optimizer = torch.optim.Adam(network.parameters(), lr=rate)
    network.train()
    for _ in range(num_steps):
        optimizer.zero_grad()
        network.loss(batch).backward()
        nn.utils.clip_grad_norm_(network.parameters(), 5.0)
        optimizer.step()
    network.eval()
