"""Read named weights from a file of `torch.save`, of today's kind or torch 0.4's, as plain data.

A pickle can run code and declare sizes; here it may do neither.
"""

import pickle
import warnings
import zipfile
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from elmore.errors import ModelError
from elmore.weights.bounded_file import check_file

ZIP_START = b"PK\x03\x04"
FLOAT_TYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def read_torch_file(path: Path) -> dict[str, Tensor]:
    """Return the weights in float32; code in the file is refused, not run."""
    size = check_file(path)
    _check_archive(path, size=size)
    content = _load(path)
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


def _check_archive(path: Path, *, size: int) -> None:
    """Refuse an archive that would unpack to more than it is; torch stores without compressing."""
    try:
        with path.open("rb") as file:
            if file.read(len(ZIP_START)) != ZIP_START:
                return  # torch 0.4's format, which the published models have
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror}; check the path") from error
    except Exception as error:  # zipfile meets damage with errors of many kinds
        raise ModelError(f"{path} is a damaged archive; get it again") from error
    unpacked = sum(member.file_size for member in members)
    if unpacked > size or any(member.compress_type for member in members):
        raise ModelError(
            f"{path} has {size:,} bytes and would unpack to {unpacked:,}; get it again, or save "
            "it with torch.save"
        )


def _load(path: Path) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of oddities in files refused below
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise ModelError(f"{path} holds more than weights, or is damaged; get it again") from error
    except Exception as error:  # torch checks little, so damage can end in any error
        raise ModelError(f"{path} is not a whole torch file; get it again") from error


def _is_plain(value: Any) -> bool:
    """Tell whether a value is numbers in memory: not sparse, nested, quantized or without data."""
    return (
        type(value) in (Tensor, nn.Parameter)
        and value.layout is torch.strided
        and value.device.type == "cpu"
        and not value.is_nested
        and value.dtype in FLOAT_TYPES
    )
