"""Read, change and check settings from TOML files, `--set` and Python."""

import difflib
import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import fields
from enum import StrEnum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args

from elmore.errors import ConfigError, warn_caller

CONFIGS = Path(__file__).parent / "configs"
MAX_NUMBER = 1e30  # well within float32


def find_config(name: str) -> Path:
    """Return the settings file with this path, or with this name among those in the package."""
    if Path(name).is_file():
        return Path(name)
    known = {path.stem: path for path in sorted(CONFIGS.glob("*.toml"))}
    if name in known:
        return known[name]
    raise ConfigError(
        f"there is no settings file {name!r:.200}; give the path of a TOML file, or one of: "
        f"{', '.join(known)}"
    )


def read_toml(path: Path) -> dict[str, Any]:
    """Return the contents of a TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}; check the path") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8; save it as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not TOML: {error}; {CONFIGS} has examples") from None


def apply_change(values: dict[str, Any], change: str) -> None:
    """Change one setting in place; a value that is not TOML is a string.

    >>> values = {"training": {"rows": 8}}
    >>> apply_change(values, "training.rows=16"); apply_change(values, "optimizer.name=adamw")
    >>> values
    {'training': {'rows': 16}, 'optimizer': {'name': 'adamw'}}
    """
    name, equals, text = change.partition("=")
    *sections, setting = name.strip().split(".")
    if not equals or not sections or not all([*sections, setting]):
        raise ConfigError(f"the change {change!r:.80} is not of the form section.setting=value")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()
    except (ValueError, RecursionError):  # thousands of digits or brackets
        raise ConfigError(f"the change {change!r:.80} is wrong: the value is too long") from None
    for section in sections:
        values = values.setdefault(section, {})
        if not isinstance(values, dict):
            raise ConfigError(
                f"the change {change!r:.80} is wrong: {section!r} has no settings of its own"
            )
    values[setting] = value


def read_given_settings(
    settings: str | Path | Mapping[str, Any] | None,
    changes: Mapping[str, Any] | None,
    config: str | Path | None,
    *,
    default: str | None = None,
) -> tuple[str | Path | None, list[str]]:
    """Return the file of settings and the changes; a mapping changes the default settings."""
    if config is not None:
        warn_caller(
            "config= is now called settings=, and settings= is now called changes=",
            FutureWarning,
        )
        changes = {**(settings if isinstance(settings, Mapping) else {}), **(changes or {})}
        settings = config
    if isinstance(settings, Mapping):
        changes = {**settings, **(changes or {})}
        settings = default
    return settings, write_changes(changes)


def write_changes(settings: Mapping[str, Any] | None, *, prefix: str = "") -> list[str]:
    """Write settings as `--set` takes them, and check their form.

    Sections may be nested: `{"training": {"rows": 64}}` is `{"training.rows": 64}`.
    """
    if settings is not None and not isinstance(settings, Mapping):
        raise ConfigError(
            f"changes are {settings!r:.60}; give a dictionary such as {{'training.rows': 64}}"
        )
    changes: list[str] = []
    for name, value in (settings or {}).items():
        if isinstance(value, Mapping):
            changes += write_changes(value, prefix=f"{prefix}{name}.")
            continue
        full_name = f"{prefix}{name}"
        if not all(full_name.split(".")) or "." not in full_name or "=" in full_name:
            raise ConfigError(
                f"{full_name!r:.60} is not the name of a setting; give its section too, such as "
                "'training.rows'"
            )
        changes.append(f"{full_name}={_write_value(full_name, value)}")
        apply_change({}, changes[-1])
    return changes


def _write_value(name: object, value: Any) -> str:
    try:
        return json.dumps(value)
    except (TypeError, ValueError):
        raise ConfigError(
            f"setting {name!r:.60} is {value!r:.60}; give a number, a string or a list"
        ) from None


def check_sections(values: Mapping[str, Any], settings: type) -> None:
    """Raise an error for a section that a settings class does not have."""
    known = [item.name for item in fields(settings)]
    for name in values:
        if name not in known:
            raise ConfigError(f"unknown section {name!r:.60}; {_suggest(name, known)}")


def _suggest(name: Any, known: list[str]) -> str:
    close = difflib.get_close_matches(str(name), known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"


def read_section(section: type, name: str, values: Any) -> Any:
    """Build a dataclass from a JSON or TOML object; errors name the setting."""
    if not isinstance(values, Mapping):
        raise ConfigError(f"'{name}' is {values!r:.60}; it must be a table of settings")
    try:
        return section(**check_fields(section, f"'{name}'", values))
    except TypeError as error:
        raise ConfigError(f"'{name}' lacks a setting: {error}") from error


def check_fields(section: type, where: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return `values` if each is a field of `section` and has its type."""
    names = [item.name for item in fields(section)]
    for key in values:
        if key not in names:
            raise ConfigError(f"unknown setting {key!r:.60} in {where}; {_suggest(key, names)}")
    for item in fields(section):
        if item.name in values and not _fits(values[item.name], item.type):
            raise ConfigError(
                f"setting {item.name!r} in {where} is {values[item.name]!r:.60}; "
                f"it must be {_name_type(item.type)}"
            )
    return dict(values)


def _name_type(annotation: Any) -> str:
    """Return a description of a type for people who write TOML."""
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
    if isinstance(annotation, UnionType):
        kinds = [kind for kind in get_args(annotation) if kind is not NoneType]
        return " or ".join(map(_name_type, kinds))
    return names.get(annotation, getattr(annotation, "__name__", str(annotation)))


def _fits(value: Any, annotation: Any) -> bool:
    """Return whether a JSON value has the type of a field; dataclasses check ranges."""
    if isinstance(annotation, UnionType):
        return any(_fits(value, kind) for kind in get_args(annotation))
    if annotation is float:
        return is_number(value)
    if annotation is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if annotation in (bool, str, NoneType):
        return isinstance(value, annotation)
    return value is not None  # a choice, a list or pairs; the dataclass checks it


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number in the range of float32."""
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < MAX_NUMBER
    )


def read_choice(name: str, value: Any, kind: type[StrEnum]) -> StrEnum:
    """Return a member of `kind` from a member or a string."""
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(kind)
        raise ConfigError(f"{name} is {value!r:.60}; choose one of: {known}") from None


def read_path(name: str, value: Any) -> Path:
    """Return a path from a string or a path."""
    if not isinstance(value, str | os.PathLike):
        raise ConfigError(f"{name} is {value!r:.60}; give a path")
    return Path(os.fsdecode(value))


# Bounds this large are only technical, so messages leave them out.
_NO_BOUND = 1 << 40


def check_range(name: str, value: Any, least: int, most: int) -> None:
    """Raise an error unless a value is a whole number within bounds."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        is_too_large = isinstance(value, int) and value > most
        is_bounded = most < _NO_BOUND or is_too_large
        bounds = f"from {least} to {most}" if is_bounded else f"of at least {least}"
        raise ConfigError(f"{name} is {value!r:.60}; give a whole number {bounds}")


def check_positive(name: str, value: Any) -> None:
    """Raise an error unless a value is a number above 0."""
    if not is_number(value) or value <= 0:
        raise ConfigError(f"{name} is {value!r:.60}; give a number above 0")


def check_number(name: str, value: Any, *, least: float, most: float | None = None) -> None:
    """Raise an error unless a value is a number within bounds."""
    if not is_number(value) or value < least or (most is not None and value > most):
        bounds = f"of at least {least:g}" if most is None else f"from {least:g} to {most:g}"
        raise ConfigError(f"{name} is {value!r:.60}; give a number {bounds}")


def check_share(name: str, value: Any) -> None:
    """Raise an error unless a value is a dropout rate: from 0 to 0.99."""
    check_number(name, value, least=0, most=0.99)
