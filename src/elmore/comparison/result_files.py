"""Write results as JSON, and read them with validation."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from elmore.comparison.finding import describe_finding
from elmore.comparison.results import Comparison, RunResult
from elmore.comparison.summary import Cell, summarize
from elmore.errors import DataError
from elmore.files.atomic import replace_file
from elmore.settings import is_number
from elmore.tasks.fit.progress import EpochResult

FORMAT = 1

_Value = TypeVar("_Value")
_Read = Callable[[Any], _Value]


def write_comparison(comparison: Comparison, path: Path) -> None:
    """Write a comparison for `read_comparison` and for other programs."""
    _write(path, {"format": FORMAT, **comparison_to_json(comparison), **_summarize(comparison)})


def read_comparison(path: Path) -> Comparison:
    """Read what `write_comparison` wrote."""
    return _read(path, comparison_from_json)


def write_run(run: RunResult, path: Path) -> None:
    """Write one run, so that a resumed comparison need not train it again."""
    _write(path, {"format": FORMAT, **run_to_json(run)})


def read_run(path: Path) -> RunResult:
    """Read what `write_run` wrote."""
    return _read(path, run_from_json)


def comparison_to_json(comparison: Comparison) -> dict[str, Any]:
    """Return what `comparison_from_json` takes."""
    return {**asdict(comparison), "runs": [run_to_json(run) for run in comparison.runs]}


def _summarize(comparison: Comparison) -> dict[str, Any]:
    """Return the findings of the report for other programs; they are derived from the runs."""
    cells = summarize(comparison)
    return {
        "finding": describe_finding(comparison, cells),
        "cells": [_cell_to_json(cell) for cell in cells],
    }


def _cell_to_json(cell: Cell) -> dict[str, Any]:
    values = asdict(cell)
    if cell.gain is not None:
        values["gain"]["verdict"] = str(cell.gain.verdict)
    return values


def run_to_json(run: RunResult) -> dict[str, Any]:
    """Return what `run_from_json` takes; a loss that is not finite becomes null."""
    values = asdict(run)
    for point in values["curve"]:
        point["loss"] = point["loss"] if math.isfinite(point["loss"]) else None
        del point["rate_share"]  # only needed to resume training
    return values


def comparison_from_json(values: Any) -> Comparison:
    """Validate and read a comparison from JSON; unknown fields are ignored."""
    take = _Taker(values, "a comparison")
    perplexity = _map_of(_number)
    return Comparison(
        task=take("task", _text),
        main_score=take("main_score", _text),
        elmo=take("elmo", _text),
        elmo_fingerprint=take("elmo_fingerprint", _text),
        words=take("words", _text),
        num_examples=take("num_examples", _map_of(_whole)),
        perplexity=take("perplexity", lambda value: value and perplexity(value)),
        settings=take("settings", _map_of(lambda value: value)),
        runs=take("runs", _list_of(run_from_json)),
    )


def run_from_json(values: Any) -> RunResult:
    """Validate and read one run."""
    take = _Taker(values, "a run")
    return RunResult(
        variant=take("variant", _text),
        share=take("share", _number),
        seed=take("seed", _whole),
        num_train=take("num_train", _whole),
        scores=take("scores", _map_of(_map_of(_number))),
        curve=take("curve", _list_of(_point)),
        layer_shares=take("layer_shares", _map_of(_list_of(_number))),
        scale=take("scale", _map_of(_number)),
        best_epoch=take("best_epoch", _whole),
        seconds=take("seconds", _number),
        num_parameters=take("num_parameters", _whole),
        # Missing in files of early versions.
        constant_scores=take("constant_scores", _map_of(_number), default={}),
    )


def _point(values: Any) -> EpochResult:
    take = _Taker(values, "a point of a curve")
    return EpochResult(
        epoch=take("epoch", _whole),
        step=take("step", _whole),
        loss=take("loss", lambda value: math.nan if value is None else _number(value)),
        dev=take("dev", _number),
        seconds=take("seconds", _number),
    )


class _Taker:
    """Reads named values from a JSON object."""

    def __init__(self, values: Any, what: str) -> None:
        if not isinstance(values, Mapping):
            raise DataError(f"{what} is {values!r:.40}; expected an object")
        self._values = values
        self._what = what

    def __call__(self, name: str, read: _Read[_Value], *, default: _Value | None = None) -> _Value:
        if name not in self._values:
            if default is not None:
                return default
            raise DataError(f"{self._what} has no {name!r}")
        try:
            return read(self._values[name])
        except _UnfitError as error:
            raise DataError(f"{name!r} of {self._what} is or contains {error}") from None


class _UnfitError(Exception):
    """A value of the wrong type."""

    def __init__(self, value: Any, expected: str) -> None:
        super().__init__(f"{value!r:.40}; expected {expected}")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _UnfitError(value, "text")
    return value


def _number(value: Any) -> float:
    if not is_number(value):
        raise _UnfitError(value, "a number")
    return float(value)


def _whole(value: Any) -> int:
    if not is_number(value) or not isinstance(value, int):
        raise _UnfitError(value, "a whole number")
    return value


def _map_of(read: _Read[_Value]) -> _Read[dict[str, _Value]]:
    def read_map(value: Any) -> dict[str, _Value]:
        if not isinstance(value, dict):
            raise _UnfitError(value, "an object")
        return {name: read(member) for name, member in value.items()}

    return read_map


def _list_of(read: _Read[_Value]) -> _Read[list[_Value]]:
    def read_list(value: Any) -> list[_Value]:
        if not isinstance(value, list):
            raise _UnfitError(value, "a list")
        return [read(member) for member in value]

    return read_list


def _write(path: Path, values: dict[str, Any]) -> None:
    text = json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    with replace_file(path) as temporary:
        # A lone surrogate, from a file name that is not UTF-8, becomes a JSON escape.
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


def _read(path: Path, read: _Read[_Value]) -> _Value:
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}; give a report.json") from error
    except (ValueError, RecursionError) as error:  # not JSON, not UTF-8, or nested too deeply
        raise DataError(f"{path} is not JSON ({error}); run the comparison again") from error
    try:
        result = read(values)
    except DataError as error:
        raise DataError(
            f"{path} is not a valid report of elmore compare: {error}; fix it, or run the "
            "comparison again"
        ) from None
    if values.get("format") != FORMAT:
        raise DataError(
            f"{path} has format {values.get('format')!r:.20}, this version of elmore reads "
            f"{FORMAT}; update elmore"
        )
    return result
