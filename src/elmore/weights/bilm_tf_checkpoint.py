"""bilm-tf's TensorFlow checkpoints: a biLM with its softmax, which HDF5 weights lack."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from elmore.build import without_weights
from elmore.config import ModelConfig
from elmore.errors import ModelError
from elmore.files.untrusted import read_json
from elmore.model.word_softmax import WordSoftmax
from elmore.weights.bilm_tf import find_weights, read_config, read_vocabulary
from elmore.weights.bilm_tf_arrays import WORD_TABLE, read_whole
from elmore.weights.elmo_model import ElmoModel, assemble_unread_model
from elmore.weights.hdf5_arrays import FloatArray, Shape
from elmore.weights.softmax_file import SavedSoftmax, check_words
from elmore.weights.tf_checkpoint.bundle import VariableFiles

SCOPE = "lm/"
# In the names of a checkpoint and of an HDF5 file.
NAME_PARTS = (
    ("/RNN/", "/rnn/"),
    ("/MultiRNNCell/Cell", "/multi_rnn_cell/cell_"),
    ("/LSTMCell/W_P_0", "/lstm_cell/projection/kernel"),
    ("/LSTMCell/W_0", "/lstm_cell/kernel"),
    ("/LSTMCell/B", "/lstm_cell/bias"),
)
WORD_VECTORS, WEIGHT, BIAS = "embedding", "softmax/W", "softmax/b"


@dataclass(frozen=True)
class CheckpointArrays:
    """The variables of a checkpoint under the names that they have in an HDF5 file."""

    checkpoint: VariableFiles

    def __str__(self) -> str:
        """Return the name of the checkpoint for messages."""
        return str(self.checkpoint)

    def has(self, name: str) -> bool:
        """Return whether there is such a variable."""
        return self.checkpoint.find(name_variable(name)) is not None

    def read(self, shapes: Mapping[str, Shape]) -> dict[str, FloatArray]:
        """Check all named variables, then read them."""
        names = {name_variable(name): name for name in shapes}
        found = self.checkpoint.read({name: shapes[names[name]] for name in names})
        return {names[name]: array for name, array in found.items()}


def name_variable(name: str) -> str:
    """Return the name in a checkpoint of an array of an HDF5 file.

    >>> name_variable("RNN_0/RNN/MultiRNNCell/Cell1/LSTMCell/W_0")
    'lm/RNN_0/rnn/multi_rnn_cell/cell_1/lstm_cell/kernel'
    """
    for old, new in NAME_PARTS:
        name = name.replace(old, new)
    return SCOPE + name


def read_checkpoint(
    prefix: Path, options_path: Path, *, vocabulary_path: Path | None = None
) -> ElmoModel:
    """Load a biLM; one whose tokens are looked up needs its vocabulary."""
    model = open_checkpoint(prefix, options_path, vocabulary_path=vocabulary_path)
    model.require_weights()
    return model


def open_checkpoint(
    prefix: Path, options_path: Path, *, vocabulary_path: Path | None = None
) -> ElmoModel:
    """Load a biLM as `read_checkpoint` does, but leave its weights in the form of the file."""
    arrays = CheckpointArrays(VariableFiles(prefix))
    words: list[str] = []
    if "char_cnn" not in read_json(options_path):
        if vocabulary_path is None:
            raise ModelError(
                f"{options_path} has no 'char_cnn', so tokens are looked up in a vocabulary; give "
                "it (--vocabulary vocab.txt)"
            )
        words = read_vocabulary(vocabulary_path)
    config = read_config(options_path, name=prefix.name, num_words=len(words) or None)
    config, weights = find_weights(config, arrays)
    if words:
        shape = (len(words), config.lstm.output_dim)
        weights[WORD_TABLE] = partial(read_whole, arrays.read({WORD_VECTORS: shape})[WORD_VECTORS])
    return assemble_unread_model(config, weights, words=words)


def read_checkpoint_softmax(prefix: Path, vocabulary_path: Path, elmo: ElmoModel) -> SavedSoftmax:
    """Read the softmax of a checkpoint, which must be of the same biLM."""
    arrays = CheckpointArrays(VariableFiles(prefix))
    words = read_vocabulary(vocabulary_path)
    try:
        check_words(words, num_words=len(words))
    except ModelError as error:
        raise ModelError(f"{vocabulary_path}: {error}") from error
    _check_same_bilm(arrays, elmo)
    # With `share_embedding_softmax`, word vectors are the softmax's weights too.
    is_shared = not arrays.has(WEIGHT) and arrays.has(WORD_VECTORS)
    weight = WORD_VECTORS if is_shared else WEIGHT
    shapes = {weight: (len(words), elmo.config.lstm.output_dim), BIAS: (len(words),)}
    found = arrays.read(shapes)
    with without_weights():
        softmax = WordSoftmax(num_words=len(words), dim=elmo.config.lstm.output_dim)
    tensors = {"weight": torch.from_numpy(found[weight]), "bias": torch.from_numpy(found[BIAS])}
    softmax.load_state_dict(tensors, strict=True, assign=True)
    return SavedSoftmax(
        softmax=softmax,
        words=words,
        log_shares=guess_log_shares(len(words)),
        model=elmo.fingerprint(),
        run={},
    )


def guess_log_shares(num_words: int) -> Tensor:
    """Return the log shares of words by their rank, as bilm-tf assumes when it draws negatives.

    A checkpoint has no word counts, but its vocabulary is sorted by them.

    >>> [round(share, 3) for share in guess_log_shares(3).exp().tolist()]
    [0.5, 0.292, 0.208]
    """
    ranks = torch.arange(1, num_words + 2, dtype=torch.float64).log()
    return (ranks.diff() / ranks[-1]).log().float()


def _check_same_bilm(arrays: CheckpointArrays, elmo: ElmoModel) -> None:
    """Refuse the softmax of another model, or of another training step of this one."""
    if not any(arrays.has(f"RNN_0/RNN/{cell}LSTMCell/W_0") for cell in ("", "MultiRNNCell/Cell0/")):
        return  # someone removed the biLM from the checkpoint
    config = ModelConfig.from_json(elmo.config.to_json())
    found, weights = find_weights(config, arrays)
    own = elmo.bilm.state_dict()
    is_same = found == config and all(
        torch.equal(own[name], read()) for name, read in weights.items() if name in own
    )
    if not is_same:
        raise ModelError(
            f"{arrays} has a softmax for other weights than these; give the checkpoint that these "
            "weights were dumped from, or give the checkpoint itself as the model"
        )
