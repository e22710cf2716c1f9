"""simple_elmo 0.9's ElmoModel without TensorFlow: the same arguments, arrays and errors.

As in simple_elmo, LSTM state is carried from batch to batch within a call, and the first batch is
read once more before it (`warmup`). `ElmoModel(policy="reset")` starts every sentence from the
initial state instead.

Three faults are not reproduced. `get_elmo_vector_average` averages the tokens of a sentence, not
the padding of its batch too. With `layers="all"` it returns the mean of each layer, not of numbers
from different layers. `get_elmo_substitutes` predicts a word from all words before or after it, not
from one.

Shapes: B sentences, T tokens in the longest, L layers, D both directions of one layer.
"""

import json
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmore import LanguageModel
from elmore.compat.bilm import Batcher, BidirectionalLanguageModel

Array = NDArray[Any]
Sentences = Sequence[Sequence[str]]

__all__ = ["ElmoModel"]

logger = logging.getLogger(__name__)


class ElmoModel:
    """A model to load and use; `policy` is the state policy."""

    def __init__(self, *, policy: str = "stream") -> None:
        self.policy = policy
        self.batch_size = 0
        self.max_chars = 0
        self.vector_size = 0
        self.n_layers = 0
        self.model: BidirectionalLanguageModel | LanguageModel | None = None
        self.batcher: Batcher | None = None
        self._only_top = False

    def load(
        self,
        directory: str | Path,
        max_batch_size: int = 32,
        limit: int = 100,  # noqa: ARG002  all spellings are cached
        full: bool = False,
        *,
        top: bool = False,
    ) -> str:
        """Load a folder or a ZIP archive with `options.json` and HDF5 weights.

        With `full`, load a language model for `get_elmo_substitutes`: the folder of a TensorFlow
        checkpoint, or a model trained by elmore. `top` makes the top layer the default, as in
        simple_elmo up to 0.5.
        """
        path = Path(directory)
        if not path.exists():
            raise SystemExit(f"Error: path not found for {directory}!")
        self.batch_size = max_batch_size
        self._only_top = top
        if full:
            self.model = LanguageModel.load(path)
            self._describe(self.model.elmo.bilm.num_layers, self.model.elmo.bilm.output_dim)
        elif path.is_dir():
            self._read(path / "options.json", path)
        elif path.suffix == ".zip":
            self._read(None, path)
        else:
            raise SystemExit("Error: give the path of a folder with the model, or of a ZIP archive")
        return "The model is now loaded."

    def _read(self, options_path: Path | None, path: Path) -> None:
        """Read a folder with options, or an archive."""
        weights = path if options_path is None else find_weights(path)
        self.model = BidirectionalLanguageModel(
            options_path, weights, max_batch_size=self.batch_size, policy=self.policy
        )
        if options_path is not None:
            options = json.loads(options_path.read_bytes())
            if options["char_cnn"]["n_characters"] == 261:
                raise SystemExit("Error: n_characters is 261 in options.json; set it to 262")
        config = self.model.config
        assert config.characters is not None  # which all weights of bilm-tf have
        self.max_chars = config.characters.max_chars
        self.batcher = Batcher(None, self.max_chars)
        self._describe(config.num_mixed_layers, config.vector_dim)

    def _describe(self, num_layers: int, dim: int) -> None:
        self.n_layers, self.vector_size = num_layers, dim

    def get_elmo_vectors(
        self, texts: Sentences, warmup: bool = True, layers: str = "average", session: Any = None
    ) -> Array:
        """Return padded (B, T, D) float64 vectors; `layers` is average, top or all: (B, L, T, D).

        With a `session`, which can be anything, the state of the last call is continued.
        """
        width = max(map(len, texts))
        before = (self.n_layers,) if layers == "all" else ()
        vectors = np.zeros((len(texts), *before, width, self.vector_size))
        by_token = np.moveaxis(vectors, -2, 1)  # (B, T, D) or (B, T, L, D)
        first = 0
        for tokens, padding, lengths in self._run(
            texts, warmup=warmup, layers=layers, session=session
        ):
            is_token = np.arange(lengths.max()) < lengths[:, None]
            chunk = by_token[first : first + len(lengths), : lengths.max()]
            chunk[is_token], chunk[~is_token] = tokens, padding
            first += len(lengths)
        return vectors

    def get_elmo_vector_average(
        self, texts: Sentences, warmup: bool = True, layers: str = "average", session: Any = None
    ) -> Array:
        """Return the mean of each sentence's token vectors, scaled to length 1: (B, D).

        `layers="all"` gives (B, L, D), where all layers of a sentence together have length 1.
        """
        averages = []
        for tokens, _, lengths in self._run(texts, warmup=warmup, layers=layers, session=session):
            for vectors in np.split(tokens.astype(float), lengths.cumsum()[:-1]):
                mean = vectors.sum(axis=0) / max(1, len(vectors))
                averages.append(mean / (np.linalg.norm(mean) or 1.0))
        return np.stack(averages)

    def get_elmo_substitutes(
        self, data: Sequence[str], topn: int = 3, nodelimiters: bool = True
    ) -> list[list[dict[str, Any]]]:
        """Return the words that each direction expects at each token, the best first.

        Needs `load(..., full=True)`. `logp` holds natural logarithms of probabilities.
        """
        if len(data) < self.batch_size:
            raise SystemError("Batch size must be less than the number of input sentences!")
        if not isinstance(self.model, LanguageModel):
            raise SystemExit("Error: substitutes need a language model; load it with full=True")
        numbers = {word: number for number, word in enumerate(self.model.words)}
        excluded = ("<S>", "</S>") if nodelimiters else ()
        return [
            [
                {"word": token.token}
                | {
                    direction: {
                        "candidates": [numbers[word] for word, _ in expected],
                        "candidate_words": [word for word, _ in expected],
                        "logp": [round(log_probability, 4) for _, log_probability in expected],
                    }
                    for direction, expected in (
                        ("forward", token.forward_lm),
                        ("backward", token.backward_lm),
                    )
                }
                for token in sentence
            ]
            for sentence in self.model.expect(
                [text.split() for text in data], top=topn, excluded=excluded
            )
        ]

    def _run(
        self, texts: Sentences, *, warmup: bool, layers: str, session: Any
    ) -> Iterator[tuple[Array, Array, Array]]:
        """Yield the vectors of each batch's tokens, that of padding, and the lengths (B,).

        A vector is (D,), or (L, D) if `layers` is "all".
        """
        if not isinstance(self.model, BidirectionalLanguageModel) or self.batcher is None:
            raise SystemExit("Error: load a model without full=True to get its vectors")
        if self._only_top and layers == "average":
            layers = "top"
        if session is None:
            self.model.reset_state()
        starts = range(0, len(texts), self.batch_size)
        chunks = [texts[start : start + self.batch_size] for start in starts]
        if warmup and self.policy != "reset":
            self.model.read(self.batcher.batch_sentences(chunks[0]))
        for chunk in chunks:
            logger.info("Texts in the current batch: %s", len(chunk))
            _, tokens, lengths = self.model.read(self.batcher.batch_sentences(chunk))
            # As in bilm-tf, only layer 0 has a vector where there is no token.
            padding = np.zeros((self.n_layers, 1, self.vector_size), np.float32)
            padding[0] = self.model.padding.repeat(2).numpy()
            yield _choose(tokens.numpy(), layers), _choose(padding, layers)[0], lengths.numpy() - 2


def _choose(tokens: Array, layers: str) -> Array:
    """Choose from (L, N, D)."""
    if layers == "all":
        return tokens.swapaxes(0, 1)
    return tokens[-1] if layers == "top" else tokens.mean(axis=0)


def find_weights(folder: Path) -> Path:
    """Return `model.hdf5`, or the first HDF5 file."""
    weights = [folder / "model.hdf5", *sorted(folder.glob("*.hdf5"))]
    for path in weights:
        if path.exists():
            return path
    raise SystemExit(f"Error: no HDF5 model files found in the {folder} directory!")
