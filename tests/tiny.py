"""Everything small: models that are built in milliseconds, and where reference models may be."""

import os
from pathlib import Path

import pytest
import torch

from elmore.build import build_bilm
from elmore.config import CharacterConfig, LSTMConfig, ModelConfig, Units, WordConfig
from elmore.weights.elmo_model import ElmoModel

# Reference models of other programs are not part of the project; tests that need them skip.
_ROOT = Path(__file__).parents[1]
FIXTURES = Path(os.environ.get("ELMORE_FIXTURES", _ROOT.parent / "shared" / "fixtures"))
needs_fixtures = pytest.mark.skipif(
    not FIXTURES.is_dir(),
    reason="no reference models here: set ELMORE_FIXTURES to a folder that has them",
)

# Made by recipes/tiny: the only trained model that the tests use, but for test_shipped_model.py.
TRAINED_MODEL = _ROOT / "tests" / "models" / "tiny"

MARKS = ["<oov>", "<bos>", "<eos>", "<bow>", "<eow>", "<pad>"]
LETTERS = [*MARKS, *"abcdefgh我他打"]
WORDS = ["<oov>", "<bos>", "<eos>", "<pad>", "a", "bad", "我", "cafe"]


def byte_config(**lstm: object) -> ModelConfig:
    """A byte model of bilm-tf's kind."""
    return ModelConfig(
        lstm=LSTMConfig(**{"num_layers": 2, "cell_dim": 12, "output_dim": 5, **lstm}),  # type: ignore[arg-type]
        characters=CharacterConfig(
            max_chars=9,
            splits_characters=True,
            embedding_dim=3,
            filters=((1, 2), (2, 3), (3, 4)),
            num_highway_layers=2,
        ),
    )


def word_and_char_config() -> ModelConfig:
    """A model of ELMoForManyLangs' kind."""
    return ModelConfig(
        lstm=LSTMConfig(num_layers=2, cell_dim=12, output_dim=5, forget_bias=0.0),
        characters=CharacterConfig(
            units=Units.CHARACTERS,
            num_units=len(LETTERS),
            max_chars=7,
            embedding_dim=3,
            filters=((1, 2), (2, 3)),
        ),
        words=WordConfig(
            num_words=len(WORDS),
            embedding_dim=4,
            begin="<bos>",
            end="<eos>",
            unknown="<oov>",
            max_chars=5,
        ),
    )


def model(config: ModelConfig | None = None, *, seed: int = 0, scale: float = 0.7) -> ElmoModel:
    """A model with every weight random, biases too, large enough for clips to matter."""
    config = config or byte_config()
    made = ElmoModel(
        config,
        characters=LETTERS if config.characters and config.characters.units == "characters" else (),
        words=WORDS if config.words else (),
    )
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in made.bilm.parameters():
            weight.copy_(torch.randn(weight.shape, generator=generator) * scale)
    return made.eval()


def num_weights(config: ModelConfig) -> int:
    """Count the weights of such a model."""
    with torch.device("meta"):
        return sum(weight.numel() for weight in build_bilm(config).parameters())
