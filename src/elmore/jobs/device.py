"""Check the device that a user chose, before anything is loaded or computed."""

import os
from typing import TypeVar

import torch
from torch import nn

from elmore.errors import ConfigError

# What torch raises for an unknown or unavailable device.
_REFUSALS = (RuntimeError, AssertionError, AttributeError, ImportError, TypeError)


_Model = TypeVar("_Model", bound=nn.Module)


def read_device(name: str | torch.device) -> torch.device:
    """Return a device that can be used; under torchrun each process gets its own GPU."""
    try:
        device = torch.device(name)
    except _REFUSALS:
        raise _refuse(name, "torch does not know this device") from None
    if device.type == "meta":
        raise _refuse(name, "it cannot hold values")
    if device.type == "cuda":
        return _read_cuda(name, device)
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise _refuse(name, "this machine or this torch has no Metal support")
    try:
        torch.zeros(1, device=device).sum().item()
    except _REFUSALS:
        raise _refuse(name, "this machine or this torch does not support it") from None
    return device


def move_model(model: _Model, device: str | torch.device) -> _Model:
    """Move a model to a device that `read_device` has checked."""
    try:
        return model.to(device)
    except RuntimeError as error:  # out of memory
        reason = str(error).splitlines()[0]
        raise ConfigError(
            f"cannot move the model to device {str(device)!r} ({reason:.200}); use cpu"
        ) from error


def _read_cuda(name: str | torch.device, device: torch.device) -> torch.device:
    if not torch.backends.cuda.is_built():
        raise _refuse(name, "this torch has no CUDA support")
    if not torch.cuda.is_available():
        raise _refuse(name, "torch finds no usable GPU")
    rank = None if device.index is not None else os.environ.get("LOCAL_RANK")
    if rank is not None:
        device = torch.device("cuda", int(rank))
    elif device.index is None:
        device = torch.device("cuda", torch.cuda.current_device())
    number = torch.cuda.device_count()
    if device.index >= number:
        raise _refuse(name, f"torch finds {number} GPU{'s' * (number > 1)} here, numbered from 0")
    if rank is not None:
        torch.cuda.set_device(device)
    return device


def _refuse(name: str | torch.device, reason: str) -> ConfigError:
    return ConfigError(f"cannot compute on device {str(name)!r:.60}: {reason}; use cpu")
