"""Run the command line inside the test's own process, since importing torch takes seconds."""

import io
import json
import sys
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
import typer.main

from elmore.cli.app import main

build_once = cache(typer.main.get_command)


@dataclass(frozen=True)
class Result:
    """What a command did."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What it printed for a program."""
        return json.loads(self.out)


class Terminal:
    """Types commands and reads what they print."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        # Typer builds all commands for every call, which takes longer than most commands here.
        monkeypatch.setattr(typer.main, "get_command", build_once)
        self._capsys = capsys

    def __call__(self, *arguments: object, stdin: bytes = b"") -> Result:
        self._monkeypatch.setattr(sys, "argv", ["elmore", *map(str, arguments)])
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        self._capsys.readouterr()
        try:
            main()
            status = 0
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(bool(end.code))
        printed = self._capsys.readouterr()
        return Result(status=status, out=printed.out, err=printed.err)
