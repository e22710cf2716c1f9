"""Read named weights from a file of `torch.save`, of today's kind or torch 0.4's, as plain data.

A pickle can run code and declare sizes; here it may do neither.
"""

import pickle
import pickletools
import re
import warnings
import zipfile
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor, nn

from elmore.errors import ElmoreError, ModelError
from elmore.weights.bounded_file import check_file

ZIP_START = b"PK\x03\x04"
# All that named weights need. The list torch has is longer: a call on it can fill the memory.
NEEDED = re.compile(
    r"collections OrderedDict"
    r"|torch\._utils _rebuild_(tensor|tensor_v2|parameter)"
    r"|torch(\.cuda)? (Float|Double|Half|BFloat16)Storage"
)
# torch 0.4 wrote five pickles and then the numbers.
NUM_PICKLES = 5
FLOAT_TYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def read_torch_file(path: Path) -> dict[str, Tensor]:
    """Return the weights in float32; code in the file is refused, not run."""
    size = check_file(path)
    try:
        _check_form(path, size=size)
        content = _load(path)
    except ElmoreError:
        raise
    except PermissionError as error:
        raise ModelError(f"cannot read {path}: {error.strerror}; check the path") from error
    except pickle.UnpicklingError as error:
        raise ModelError(f"{path} holds more than weights, or is damaged; get it again") from error
    except Exception as error:  # damage can end in any error, of torch, zipfile or pickle
        raise ModelError(f"{path} is not a whole torch file; get it again") from error
    if not isinstance(content, dict) or not all(isinstance(name, str) for name in content):
        raise ModelError(f"{path} holds no named weights; get it again")
    for name, value in content.items():
        if not _is_plain(value):
            raise ModelError(f"{path}: {name!r:.60} is no array of float numbers; get it again")
    # A view can declare any shape over a few bytes; sums, so that many cannot share them either.
    declared = sum(value.numel() * value.element_size() for value in content.values())
    if declared > size:
        raise ModelError(f"{path} declares {declared:,} bytes of weights and has {size:,} bytes")
    for name, value in content.items():
        if not bool(torch.isfinite(value).all()):
            raise ModelError(f"{path}: {name!r:.60} has numbers that are not finite; get it again")
    return {name: value.to(torch.float32) for name, value in content.items()}


def _check_form(path: Path, *, size: int) -> None:
    """Refuse calls that weights do not need, and archives that unpack to more than they are."""
    with path.open("rb") as file:
        is_archive = file.read(len(ZIP_START)) == ZIP_START
        file.seek(0)
        if not is_archive:
            for _ in range(NUM_PICKLES):
                _check_calls(path, file)
            return
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        unpacked = sum(member.file_size for member in members)
        # torch itself stores without compressing.
        if unpacked > size or any(member.compress_type for member in members):
            raise ModelError(
                f"{path} has {size:,} bytes and would unpack to {unpacked:,}; get it again, or "
                "save it with torch.save"
            )
        for member in members:
            if member.filename.endswith(".pkl"):
                with archive.open(member) as file:
                    _check_calls(path, file)


def _check_calls(path: Path, file: IO[bytes]) -> None:
    """Read one pickle without obeying it, and refuse whatever it would import for a call."""
    for operation, argument, _ in pickletools.genops(file):
        if operation.name == "GLOBAL" and not NEEDED.fullmatch(str(argument)):
            raise ModelError(
                f"{path} holds more than weights ({argument!r:.60}); get it from a source you trust"
            )


def _load(path: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns of oddities in files refused anyway
        return torch.load(path, map_location="cpu", weights_only=True)


def _is_plain(value: Any) -> bool:
    """Tell whether a value is float numbers; the calls left let it be nothing stranger."""
    return type(value) in (Tensor, nn.Parameter) and value.dtype in FLOAT_TYPES
