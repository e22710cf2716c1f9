"""Models in bilm-tf's format, which AllenNLP uses too: HDF5 weights, options.json, word vectors."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor

from elmore.config import ModelConfig, Units
from elmore.errors import ElmoreError, ModelError
from elmore.files.atomic import replace_file, write_json
from elmore.files.untrusted import read_json
from elmore.text.vocabulary import read_entries, write_entries
from elmore.weights.bilm_tf_arrays import (
    WORD_TABLE,
    array_shapes,
    arrays_of_more_layers,
    find_tensors,
    name_cell,
    read_whole,
    to_arrays,
    to_numpy,
)
from elmore.weights.bilm_tf_options import make_options, read_options
from elmore.weights.elmo_model import ElmoModel, assemble_unread_model
from elmore.weights.hdf5_arrays import (
    Hdf5Arrays,
    WeightArrays,
    find_arrays,
    open_hdf5,
    write_arrays,
)

HDF5_SUFFIXES = (".hdf5", ".h5")
OPTIONS, TOKEN_EMBEDDINGS, VOCABULARY = "options.json", "token_embeddings.hdf5", "vocabulary.txt"


def read_bilm_tf(
    weights_path: Path,
    options_path: Path,
    *,
    token_embeddings_path: Path | None = None,
    vocabulary_path: Path | None = None,
) -> ElmoModel:
    """Load a model; with a token-embedding file, tokens are looked up instead of spelled."""
    with open_bilm_tf(
        weights_path,
        options_path,
        token_embeddings_path=token_embeddings_path,
        vocabulary_path=vocabulary_path,
    ) as model:
        model.require_weights()
        return model


@contextmanager
def open_bilm_tf(
    weights_path: Path,
    options_path: Path,
    *,
    token_embeddings_path: Path | None = None,
    vocabulary_path: Path | None = None,
) -> Iterator[ElmoModel]:
    """Give a model with its weights unread; they can be read until the end of the block."""
    if (token_embeddings_path is None) != (vocabulary_path is None):
        raise ModelError("a token-embedding file and its vocabulary belong together; give both")
    words = [] if vocabulary_path is None else read_vocabulary(vocabulary_path)
    num_words = None if vocabulary_path is None else len(words)
    config = read_config(options_path, name=weights_path.stem, num_words=num_words)
    with ExitStack() as files:
        config, weights = find_weights(
            config, Hdf5Arrays(files.enter_context(open_hdf5(weights_path)))
        )
        if token_embeddings_path is not None:
            file = files.enter_context(open_hdf5(token_embeddings_path))
            shape = (len(words), config.lstm.output_dim)
            table = find_arrays(file, {"embedding": shape})["embedding"]
            weights[WORD_TABLE] = partial(read_whole, table)
        yield assemble_unread_model(config, weights, words=words)


def read_config(options_path: Path, *, name: str, num_words: int | None) -> ModelConfig:
    """Read the config of a model from its options file."""
    options = read_json(options_path)
    try:
        return read_options(options, name=name, num_words=num_words)
    except ModelError as error:
        raise ModelError(f"{options_path}: {error}") from error


def find_weights(
    config: ModelConfig, arrays: WeightArrays
) -> tuple[ModelConfig, dict[str, Callable[[], Tensor]]]:
    """Return how to read each weight of a network; the config may change to follow them."""
    is_single = _has_short_names(config, arrays)
    config = _follow_file(config, arrays, is_single=is_single)
    shapes = array_shapes(config, is_single=is_single)
    return config, find_tensors(arrays.read(shapes), config, is_single=is_single)


def write_bilm_tf(
    model: ElmoModel, weights_path: Path, *, overwrite: bool = False, from_zeros: bool = False
) -> list[Path]:
    """Write HDF5 weights and `options.json` next to them; return the paths of all files.

    `from_zeros` drops the rest state, which the format cannot store. A model with word vectors also
    gets `token_embeddings.hdf5` and `vocabulary.txt`. Programs that read this format may truncate a
    long token inside a character, even if the model was trained on whole characters.
    """
    config = model.config
    _check_writable(model, from_zeros=from_zeros)
    if weights_path.suffix not in HDF5_SUFFIXES:
        raise ModelError(
            f"cannot write bilm-tf weights to {weights_path}; give a file name that ends in "
            f"{' or '.join(HDF5_SUFFIXES)}"
        )
    folder = weights_path.parent
    options_path = folder / OPTIONS
    is_described = options_path.exists() and _describes(options_path, config)
    if options_path.exists() and not is_described and not overwrite:
        raise ModelError(
            f"{options_path} describes another model; choose another folder for "
            f"{weights_path.name}, or overwrite it (--overwrite)"
        )
    model.require_weights()
    tensors = model.bilm.state_dict()
    written = [weights_path]
    if config.words is not None:
        _write_words(model, folder, overwrite=overwrite)
        written += [folder / TOKEN_EMBEDDINGS, folder / VOCABULARY]
    with replace_file(weights_path) as temporary:
        write_arrays(temporary, to_arrays(tensors, config))
    if not is_described:
        with replace_file(options_path) as temporary:
            write_json(temporary, make_options(config))
    return [*written, options_path]


def _write_words(model: ElmoModel, folder: Path, *, overwrite: bool) -> None:
    vocabulary_path = folder / VOCABULARY
    if vocabulary_path.exists() and not overwrite and not _lists(vocabulary_path, model.words):
        raise ModelError(
            f"{vocabulary_path} lists other words; choose another folder, or overwrite it "
            "(--overwrite)"
        )
    with replace_file(vocabulary_path) as temporary:
        write_entries(temporary, model.words)
    with replace_file(folder / TOKEN_EMBEDDINGS) as temporary:
        model.require_weights()
        table = model.bilm.state_dict()[WORD_TABLE]
        write_arrays(temporary, {"embedding": to_numpy(table)})


def _describes(options_path: Path, config: ModelConfig) -> bool:
    """Return whether an existing options file describes the same network as `config`."""
    num_words = config.words.num_words if config.words else None

    def network(options: dict[str, Any]) -> tuple[object, ...]:
        read = read_options(options, name="", num_words=num_words)
        return read.lstm, read.characters

    try:
        return network(read_json(options_path)) == network(make_options(config))
    except ModelError:
        return False


def _lists(vocabulary_path: Path, words: list[str]) -> bool:
    try:
        return read_entries(vocabulary_path) == words
    except ElmoreError:
        return False


def _check_writable(model: ElmoModel, *, from_zeros: bool) -> None:
    """Raise an error if bilm-tf's format cannot represent the model."""
    config = model.config
    characters, words = config.characters, config.words
    if characters is not None and words is not None:
        reason = "it holds either characters or words, but this model has both"
    elif characters is not None and characters.units is not Units.BYTES:
        reason = "it spells tokens as bytes, but this model uses a list of characters"
    elif words is not None and config.has_token_projection:
        reason = "its word vectors have no projection, but this model has one"
    elif words is not None and (words.begin, words.end, words.unknown) != ("<S>", "</S>", "<UNK>"):
        reason = "its vocabulary has <S>, </S> and <UNK>, but this model uses other names"
    elif words is not None and words.max_chars is not None:
        reason = "it looks up whole words, but this model looks up their first characters"
    elif config.lstm.has_projection and config.lstm.output_dim > config.lstm.cell_dim:
        reason = "its projections cannot be wider than the cells, but this model's are"
    elif not from_zeros and (model.bilm.initial_hidden.any() or model.bilm.initial_cell.any()):
        raise ModelError(
            "bilm-tf's sentences start from zeros, but this model's start from a rest state; drop "
            "it with --from-zeros (vectors of first words then differ a little), or keep the "
            "model as a folder"
        )
    else:
        return
    raise ModelError(
        f"bilm-tf's format cannot hold this model: {reason}; keep it as a model folder"
    )


def read_vocabulary(path: Path) -> list[str]:
    """Read a vocabulary as bilm-tf does: strip lines; the last entry of a repeated word counts."""
    words = [line.strip() for line in read_entries(path)]
    words = [word for word in words if word != "!!!MAXTERMID"]
    last = {word: index for index, word in enumerate(words)}
    return [word if last[word] == index else "" for index, word in enumerate(words)]


def _follow_file(config: ModelConfig, arrays: WeightArrays, *, is_single: bool) -> ModelConfig:
    """Raise an error if the options describe a smaller network; keep square projections.

    bilm-tf never writes projections between equal widths, but AllenNLP uses them if they exist.
    """
    for name in arrays_of_more_layers(config):
        if arrays.has(name):
            raise ModelError(
                f"{arrays} has {name!r}, but its options have fewer layers; "
                "give the options that belong to these weights"
            )
    if config.characters is not None and arrays.has("CNN_proj/W_proj"):
        config = replace(config, has_token_projection=True)
    if arrays.has(f"{name_cell(0, 0, is_single=is_single)}/W_P_0"):
        config = replace(config, lstm=replace(config.lstm, has_projection=True))
    return config


def _has_short_names(config: ModelConfig, arrays: WeightArrays) -> bool:
    long, short = (f"{name_cell(0, 0, is_single=is_single)}/W_0" for is_single in (False, True))
    return config.lstm.num_layers == 1 and not arrays.has(long) and arrays.has(short)
