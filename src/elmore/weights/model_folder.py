"""elmore's own model folder, in the layout of the Hugging Face hub.

config.json  model.safetensors  vocabulary.txt (words)  characters.txt  README.md (the card)
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from elmore.config import WEIGHTS_ON_DISK, ModelConfig, Precision, Units, read_precision
from elmore.errors import ConfigError, ModelError
from elmore.files.atomic import make_folder, refuse_broken_links, replace_file, write_json
from elmore.files.untrusted import check_file, read_json
from elmore.text.vocabulary import write_entries
from elmore.weights.entry_files import check_entries, read_list
from elmore.weights.hdf5_arrays import is_finite
from elmore.weights.hub import HUB_ID, fetch
from elmore.weights.model_card import write_card
from elmore.weights.published import advise_on_download
from elmore.weights.row_scales import SUFFIX, quantize_rows, restore_rows

FILES = CONFIG, WEIGHTS, WORDS, CHARACTERS, CARD = (
    "config.json",
    "model.safetensors",
    "vocabulary.txt",
    "characters.txt",
    "README.md",
)
# The header of the largest network that a config can describe is a fifth of this.
MAX_HEADER_BYTES = 1 << 20
FLOAT_TYPES = ("F16", "BF16", "F32", "F64")
STORES = {
    Precision.F32: torch.float32,
    Precision.F16: torch.float16,
    Precision.BF16: torch.bfloat16,
}


def find_folder(source: str | Path, **hub_options: Any) -> Path:
    """Return the local folder of a model, downloading it first if `source` is a hub id."""
    if _exists(source):
        folder = Path(source).expanduser()
        if (folder / "checkpoints").is_dir():
            raise ModelError(
                f"{folder} is the folder of a training run; give its model, {folder / 'model'}, "
                "once the run has finished"
            )
        return folder
    if Path(source).name == "model" and _exists(Path(source).parent / "checkpoints"):
        raise ModelError(
            f"the training run in {Path(source).parent} has not finished, so there is no model "
            "yet; rerun its command to resume"
        )
    advice = advise_on_download(str(source)) if isinstance(source, str) else None
    if advice is not None:
        raise ModelError(f"elmore does not download {source!r:.200}; {advice}")
    is_weights = Path(source).suffix in (".hdf5", ".h5")  # a mistyped path, never an id
    if isinstance(source, Path) or is_weights or not HUB_ID.fullmatch(source):
        raise ModelError(
            f"there is no model at {str(source)!r:.200}; give a folder, a file or a hub id"
        )
    return fetch(source, FILES, **hub_options)


def _exists(source: str | Path) -> bool:
    try:
        return source != "" and Path(source).expanduser().exists()
    except (OSError, RuntimeError):  # a name that is too long, or the home of an unknown user
        return False


def write_folder(
    folder: Path,
    *,
    config: ModelConfig,
    tensors: Mapping[str, Tensor],
    characters: Sequence[str],
    words: Sequence[str],
    store: str = "f32",
) -> None:
    """Write a model; each file is replaced atomically, and a card written by hand is kept."""
    check_target(folder)
    for entries in (characters, words):
        check_entries(entries)
    stored = round_tensors(tensors, store=store, file=WEIGHTS)
    make_folder(folder)
    with replace_file(folder / WEIGHTS) as temporary:
        write_tensors(temporary, stored)
        # A half-replaced model has no config and so cannot be loaded by mistake.
        (folder / CONFIG).unlink(missing_ok=True)
    for name, entries in ((WORDS, words), (CHARACTERS, characters)):
        if entries:
            with replace_file(folder / name) as temporary:
                write_entries(temporary, entries)
        else:
            (folder / name).unlink(missing_ok=True)
    weights = (tensor for name, tensor in stored.items() if not name.startswith("initial_"))
    write_card(folder / CARD, config, num_weights=sum(tensor.numel() for tensor in weights))
    # Left out for f32, so that f32 folders are the same as before this setting existed.
    chosen = read_precision("store", store, WEIGHTS_ON_DISK)
    settings = config.to_json() | ({} if chosen is Precision.F32 else {"store": str(chosen)})
    with replace_file(folder / CONFIG) as temporary:
        write_json(temporary, settings)


def check_target(folder: Path) -> None:
    """Refuse to write a model into a folder with other files."""
    refuse_broken_links(folder)
    if folder.exists() and not folder.is_dir():
        raise ModelError(f"{folder} is a file; give a folder to write the model to")
    if not folder.is_dir():
        return
    # A cloned hub repository has hidden files, and perhaps a card, before it has a model.
    files = {path.name for path in folder.iterdir() if not path.name.startswith(".")} - {CARD}
    if files and (WEIGHTS not in files or not _is_ours(folder)):
        raise ModelError(f"{folder} holds other files; give an empty or new folder for the model")


def _is_ours(folder: Path) -> bool:
    """Return whether a folder with weights is an elmore model, possibly a half-replaced one."""
    if not (folder / CONFIG).exists():
        return True
    try:
        return "lstm" in read_json(folder / CONFIG)
    except ModelError:
        return False


def round_tensors(tensors: Mapping[str, Tensor], *, store: str, file: str) -> dict[str, Tensor]:
    """Convert weights to the types they are stored in; refuse numbers that would overflow."""
    chosen = read_precision("store", store, WEIGHTS_ON_DISK)
    stored = {}
    for name, tensor in tensors.items():
        # Biases, shares and the rest state stay f32: they are a few percent of a model, and a
        # softmax's bias is a logarithm near -10, which f16 would round by 0.004 and bf16 by 0.03.
        is_small = tensor.ndim < 2 or name.startswith("initial_")
        kept = Precision.F32 if is_small else chosen
        plain = tensor.detach().cpu()
        stored[name] = plain.to(STORES[kept]).contiguous()
        is_lost = stored[name].isinf() & plain.isfinite()
        if bool(is_lost.any()):
            remedy = {Precision.F16: "store it as bf16", Precision.BF16: "store it as f32"}
            raise ModelError(
                f"{file}: weight {name!r} has the number {plain[is_lost][0]:g}, but the largest "
                f"{kept} is {torch.finfo(STORES[kept]).max:g}; "
                f"{remedy.get(kept, 'make it smaller')}"
            )
    return stored


def write_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    """Write safetensors; a full disk raises OSError, as with any other file."""
    try:
        # Only one entry: the order of several is random, and equal models must have equal files.
        save_file(tensors, path, metadata={"format": "pt"})
    except SafetensorError as error:  # a full disk
        raise OSError(str(error)) from error


def read_folder(folder: Path) -> tuple[ModelConfig, list[str], list[str]]:
    """Return the config, the characters and the words; `read_tensors` reads the weights."""
    config = _read_config(folder / CONFIG)
    characters, words = config.characters, config.words
    has_list = characters is not None and characters.units is Units.CHARACTERS
    return (
        config,
        read_list(folder / CHARACTERS) if has_list else [],
        read_list(folder / WORDS) if words is not None else [],
    )


def _read_config(path: Path) -> ModelConfig:
    settings = read_json(path)
    if "lstm" not in settings:
        raise ModelError(f"{path} has no 'lstm'; it is not the config.json of an elmore model")
    try:
        # `store` is for people: each weight in the file has its own type.
        read_precision("store", settings.pop("store", Precision.F32), WEIGHTS_ON_DISK)
        return ModelConfig.from_json(settings)
    except ConfigError as error:
        raise ModelError(f"{path}: {error!s:.300}") from error


def quantize_tensors(tensors: Mapping[str, Tensor], *, file: str) -> dict[str, Tensor]:
    """Convert matrices to int8 with one scale per row; refuse numbers that are not finite."""
    stored = {}
    for name, tensor in round_tensors(tensors, store=Precision.F32, file=file).items():
        if tensor.ndim < 2:
            stored[name] = tensor
            continue
        if not bool(tensor.isfinite().all()):
            raise ModelError(
                f"{file}: weight {name!r} has numbers that are not finite, which int8 cannot "
                "store; train the model again"
            )
        stored[name], stored[name + SUFFIX] = quantize_rows(tensor)
    return stored


def read_tensors(
    path: Path, shapes: Mapping[str, tuple[int, ...]], *, settings: str, may_be_int8: bool = False
) -> dict[str, Tensor]:
    """Check the names, shapes and types of all weights, then read them in single precision.

    With `may_be_int8`, matrices may be int8 with one scale per row.
    """
    found = find_tensors(path, shapes, settings=settings, may_be_int8=may_be_int8)
    return {name: read() for name, read in found.items()}


def find_tensors(
    path: Path, shapes: Mapping[str, tuple[int, ...]], *, settings: str, may_be_int8: bool = False
) -> dict[str, Callable[[], Tensor]]:
    """Do the checks of `read_tensors`; return a function that reads each weight."""
    wanted = list(shapes)
    with _open_tensors(path) as file:
        names = set(file.keys())
        integers = {
            name
            for name, shape in shapes.items()
            if may_be_int8 and len(shape) == 2 and name + SUFFIX in names
        }
        shapes = {**shapes, **{name + SUFFIX: shapes[name][:1] for name in integers}}
        if not names <= set(shapes):
            raise ModelError(
                f"{path}: its settings have no weight {min(names - set(shapes))!r:.60}; "
                f"give the {settings} that belongs to these weights"
            )
        for name, shape in shapes.items():
            found = file.get_slice(name) if name in names else None
            if found is None or tuple(found.get_shape()) != shape:
                raise ModelError(
                    f"{path}: weight {name!r} has shape {found and tuple(found.get_shape())}, but "
                    f"its settings expect {shape}; give the {settings} that belongs to these "
                    "weights"
                )
            if found.get_dtype() not in (("I8",) if name in integers else FLOAT_TYPES):
                expected = "int8" if name in integers else "float"
                raise ModelError(
                    f"{path}: weight {name!r} holds {found.get_dtype()}, not {expected} numbers; "
                    "download it again"
                )
    return {name: partial(_read_tensor, path, name, is_int8=name in integers) for name in wanted}


def _read_tensor(path: Path, name: str, *, is_int8: bool) -> Tensor:
    # From a mapping of the file of its own, so that a weight that is no longer needed frees its
    # memory.
    with _map_tensors(path) as file:
        tensor: Tensor = file.get_tensor(name)
        if is_int8:
            tensor = restore_rows(tensor, file.get_tensor(name + SUFFIX).to(torch.float32))
        tensor = tensor.to(torch.float32)
    if not is_finite(tensor.numpy()):
        raise ModelError(
            f"{path}: weight {name!r} has numbers that are not finite; download it again"
        )
    return tensor


def find_store(path: Path) -> str:
    """Return the type of most numbers in a file, without reading the weights."""
    counts: Counter[str] = Counter()
    with _open_tensors(path) as file:
        for name in file.keys():  # noqa: SIM118  not a dict
            found = file.get_slice(name)
            counts[found.get_dtype().lower()] += math.prod(found.get_shape())
    if not counts:
        raise ModelError(f"{path} holds no weights; download it again")
    most = counts.most_common(1)[0][0]
    return str(Precision.INT8) if most == "i8" else most


@contextmanager
def _open_tensors(path: Path) -> Iterator[Any]:
    """Open a file after checking its header."""
    _check_header(path)
    with _map_tensors(path) as file:
        yield file


@contextmanager
def _map_tensors(path: Path) -> Iterator[Any]:
    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except (SafetensorError, OSError) as error:
        raise ModelError(
            f"{path} is not a complete safetensors file ({error}); download it again"
        ) from error


def _check_header(path: Path) -> None:
    """Refuse a header that is too large to parse safely."""
    size = check_file(path)
    try:
        with path.open("rb") as file:
            header_size = int.from_bytes(file.read(8), "little")
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror}; check the path") from error
    if header_size > min(MAX_HEADER_BYTES, size - 8):
        raise ModelError(f"{path} is not a complete safetensors file; download it again")
