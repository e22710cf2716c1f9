"""Files that are not on this machine: URLs of fsspec, such as s3://bucket/texts/a.txt."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from elmore.errors import DataError, ElmoreError, MissingExtraError

# The extras that bring a protocol; fsspec itself comes with huggingface_hub.
EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs"}


def is_url(name: str) -> bool:
    """Return whether a name is a URL and not a path.

    >>> is_url("s3://bucket/a.txt"), is_url("texts/a.txt")
    (True, False)
    """
    return "://" in name


def find_file_system(url: str) -> tuple[Any, str]:
    """Return fsspec's file system for a URL, and the path in it."""
    from fsspec.core import url_to_fs  # noqa: PLC0415  local files never need it

    protocol = url.partition("://")[0]
    try:
        system, path = url_to_fs(url)
    except ImportError as error:
        if protocol in EXTRAS:
            raise MissingExtraError(
                needed_for=f"a {protocol}:// URL", extra=EXTRAS[protocol]
            ) from error
        raise DataError(
            f"{url:.200} needs a library that is not installed ({error}); install it"
        ) from error
    return system, path


@contextmanager
def explaining_url_errors(url: str) -> Iterator[None]:
    """Turn the errors of file systems, of which each has its own, into one sentence."""
    try:
        yield
    except (ElmoreError, GeneratorExit, KeyboardInterrupt):
        raise
    except FileNotFoundError:
        raise DataError(f"there is nothing at {url:.200}; check the URL") from None
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DataError(
            f"cannot use {url:.200} ({reason:.300}); check the URL, the network and your "
            "permissions"
        ) from error
