"""What tests of taggers share: inputs with all parts, batches, and a short training."""

import torch

from elmore.tasks.inputs.char_filters import CharFilters
from elmore.tasks.inputs.elmo_vectors import ElmoVectors
from elmore.tasks.inputs.token_batch import NUM_SPECIAL_ROWS, TokenBatcher
from elmore.tasks.inputs.token_input import TokenInput
from elmore.tasks.task import TaskBatch

WORDS = ["mr", "in", "said", "the", "and"]
NUM_LAYERS, LAYER_DIM = 3, 4


def make_tokens(*, has_elmo=True, dropout=0.0):
    """Words, characters, and ELMo below and above."""
    mixes = [
        ElmoVectors(num_layers=NUM_LAYERS, layer_dim=LAYER_DIM, dropout=dropout)
        for _ in range(2 * has_elmo)
    ]
    return TokenInput(
        words=torch.randn(NUM_SPECIAL_ROWS + len(WORDS), 6),
        characters=CharFilters(num_filters=12, embedding_dim=8),
        dropout=dropout,
        **dict(zip(("below", "above"), mixes, strict=False)),
    )


def make_batch(sentences, features, *, has_elmo=True):
    """Return a batch; a token's layers follow from its spelling, those of no token are large."""
    tokens = TokenBatcher(words=WORDS, max_chars=12).make(sentences)
    if has_elmo:
        layers = torch.full((NUM_LAYERS, *tokens.words.shape, LAYER_DIM), 100.0)
        for row, sentence in enumerate(sentences):
            for place, token in enumerate(sentence):
                generator = torch.Generator().manual_seed(sum(token.encode()))
                shape = NUM_LAYERS, LAYER_DIM
                layers[:, row, place] = torch.randn(shape, generator=generator)
        tokens = tokens.with_layers(layers)
    return TaskBatch(sentences=(tokens,), features=features)


def fit(network, batch, *, num_steps, learning_rate=0.02):
    """Train on one batch, over and over; return the predictions on it."""
    optimizer = torch.optim.Adam(network.parameters(), lr=learning_rate)
    network.train()
    for _ in range(num_steps):
        optimizer.zero_grad()
        network.loss(batch).backward()
        optimizer.step()
    network.eval()
    with torch.no_grad():
        return network.predict(batch)
