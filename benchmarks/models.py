"""The benchmarked models, with random weights, and the number of operations they need."""

from collections.abc import Iterable

from elmore.config import CharacterConfig, LSTMConfig, ModelConfig
from elmore.text.batches import NUM_MARKERS

_FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))

CONFIGS = {
    "original": ModelConfig(
        lstm=LSTMConfig(num_layers=2, cell_dim=4096, output_dim=512),
        characters=CharacterConfig(filters=_FILTERS, num_highway_layers=2),
    ),
    "small": ModelConfig(
        lstm=LSTMConfig(num_layers=2, cell_dim=1024, output_dim=128),
        characters=CharacterConfig(filters=_FILTERS, num_highway_layers=1),
    ),
}


def count_steps(sentences: Iterable[list[str]]) -> int:
    """Count tokens and markers, since the LSTMs read both."""
    return sum(len(sentence) + NUM_MARKERS for sentence in sentences)


def lstm_flops(config: ModelConfig, num_steps: int) -> int:
    """Count the operations of the LSTMs; a multiply-add counts as two."""
    lstm = config.lstm
    gates = 2 * 4 * lstm.cell_dim * (lstm.output_dim + lstm.output_dim)
    projection = 2 * lstm.cell_dim * lstm.output_dim
    return num_steps * 2 * lstm.num_layers * (gates + projection)


def dense_flops(config: ModelConfig, num_tokens: int) -> int:
    """Count the highway layers and the projection of tokens."""
    characters = config.characters
    assert characters is not None
    highways = characters.num_highway_layers * 2 * 2 * characters.output_dim**2
    return num_tokens * (highways + 2 * config.token_dim * config.lstm.output_dim)


def table_flops(config: ModelConfig, words: Iterable[str]) -> int:
    """Count the additions of a convolution that sums rows of a table, filler once a filter."""
    characters = config.characters
    assert characters is not None
    total = 0
    for word in words:
        num_chars = min(len(word.encode()) + 2, characters.max_chars)  # the token's own marks
        for width, number in characters.filters:
            num_windows = min(num_chars + 1, characters.max_chars - width + 1)
            total += num_windows * width * number
    return total


def convolution_flops(config: ModelConfig, num_tokens: int) -> int:
    """Count the products of a convolution over all the characters that tokens may have."""
    characters = config.characters
    assert characters is not None
    per_token = sum(
        2 * characters.embedding_dim * width * number * (characters.max_chars - width + 1)
        for width, number in characters.filters
    )
    return num_tokens * per_token
