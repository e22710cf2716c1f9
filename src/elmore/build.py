"""Build the network from its config; loading, embedding, pretraining and tasks start here."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from elmore.config import Activation, CharacterConfig, ModelConfig, Units
from elmore.model.bilm import BiLM
from elmore.model.lstm import ProjectedLSTM
from elmore.model.token_encoder import CharacterCNN, Highway, TokenEncoder
from elmore.text.batches import Speller
from elmore.text.characters import Alphabet, ByteAlphabet, CharacterAlphabet
from elmore.text.vocabulary import WordLookup, number_entries


def build_bilm(config: ModelConfig) -> BiLM:
    """Build a biLM; its weights are undefined until they are loaded or `initialize` is called."""
    return BiLM(
        token_encoder=build_token_encoder(config),
        forward_lm=build_language_model(config),
        backward_lm=build_language_model(config),
        has_residuals=config.lstm.has_residuals,
        output_dim=config.lstm.output_dim,
        cell_dim=config.lstm.cell_dim,
    )


def build_token_encoder(config: ModelConfig) -> TokenEncoder:
    """Build the token encoder."""
    characters, words = config.characters, config.words
    return TokenEncoder(
        characters=build_character_encoder(characters) if characters else None,
        highways=[Highway(dim=characters.output_dim) for _ in range(characters.num_highway_layers)]
        if characters
        else [],
        words=nn.Embedding(words.num_words, words.embedding_dim) if words else None,
        projection=nn.Linear(config.token_dim, config.lstm.output_dim)
        if config.has_token_projection
        else None,
    )


def build_character_encoder(config: CharacterConfig) -> nn.Module:
    """Build the network that maps (U, C) char ids to (U, config.output_dim)."""
    return CharacterCNN(
        num_units=config.num_units,
        embedding_dim=config.embedding_dim,
        filters=config.filters,
        uses_tanh=config.activation is Activation.TANH,
    )


def build_language_model(config: ModelConfig) -> list[ProjectedLSTM]:
    """Build the layers of one direction."""
    return [
        ProjectedLSTM(
            input_dim=config.lstm.output_dim,
            cell_dim=config.lstm.cell_dim,
            output_dim=config.lstm.output_dim,
            has_projection=config.lstm.has_projection,
            cell_clip=config.lstm.cell_clip,
            output_clip=config.lstm.output_clip,
            forget_bias=config.lstm.forget_bias,
        )
        for _ in range(config.lstm.num_layers)
    ]


def build_speller(
    config: ModelConfig, *, characters: Sequence[str] = (), words: Sequence[str] = ()
) -> Speller:
    """Build the speller, which converts tokens to ids, from the character and word lists."""
    return Speller(
        alphabet=build_alphabet(config, characters),
        words=WordLookup(
            number_entries(words),
            begin=config.words.begin,
            end=config.words.end,
            unknown=config.words.unknown,
            max_chars=config.words.max_chars,
        )
        if config.words
        else None,
    )


def build_alphabet(config: ModelConfig, characters: Sequence[str]) -> Alphabet | None:
    """Build the alphabet, which converts tokens to char ids."""
    settings = config.characters
    if settings is None:
        return None
    if settings.units is Units.BYTES:
        return ByteAlphabet(
            max_chars=settings.max_chars, splits_characters=settings.splits_characters
        )
    return CharacterAlphabet(number_entries(characters), max_chars=settings.max_chars)


@torch.no_grad()
def initialize(bilm: BiLM, *, seed: int) -> None:
    """Draw initial weights for training; equal seeds give equal weights."""
    generator = torch.Generator().manual_seed(seed)
    for name, weight in bilm.named_parameters():
        if name.endswith("gate.bias"):
            weight.fill_(-2.0)  # at first, highway layers mostly pass their input through
        elif name.endswith("bias"):
            weight.zero_()
        elif "embedding" in name or "words" in name:
            weight.uniform_(-1.0, 1.0, generator=generator)
        else:
            weight.normal_(0.0, weight.shape[1] ** -0.5, generator=generator)


@contextmanager
def without_weights() -> Iterator[None]:
    """Build modules with shapes only: no memory is allocated, no weights are drawn."""
    with torch.device("meta"), _SkipInitializing():
        yield


def weight_shapes(network: nn.Module) -> dict[str, tuple[int, ...]]:
    """Return the name and shape of every weight."""
    return {name: tuple(weight.shape) for name, weight in network.state_dict().items()}


class _SkipInitializing(TorchFunctionMode):
    # Initializing a weight on the meta device makes torch import its compiler: 1.4 seconds.
    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if getattr(func, "__module__", None) == "torch.nn.init":
            return args[0] if args else (kwargs or {})["tensor"]
        return func(*args, **(kwargs or {}))
