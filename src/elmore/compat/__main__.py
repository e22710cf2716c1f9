"""`python -m elmore.compat PROGRAM.py ARGS`: run an old program with elmore in place of ELMo."""

import re
import runpy
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

from elmore import ElmoreError
from elmore.compat import install
from elmore.compat.allennlp.common.checks import ConfigurationError

USAGE = """usage: python -m elmore.compat PROGRAM.py [ARGS]
       python -m elmore.compat -m MODULE [ARGS]
       python -m elmore.compat allennlp elmo INPUT OUTPUT --all|--top|--average [OPTIONS]"""


def main() -> None:
    """Run the program, the module or the `allennlp` command in `sys.argv`."""
    match sys.argv[1:]:
        case ["-h" | "--help"]:
            print(USAGE)
        case [] | ["-m"]:
            _fail(USAGE)
        case ["-m", module, *arguments]:
            install()
            _check_module(module)
            sys.argv = [module, *arguments]
            _run_command(lambda: runpy.run_module(module, run_name="__main__", alter_sys=True))
        case ["allennlp", *_]:
            install()
            sys.argv = sys.argv[1:]
            _run_command(lambda: import_module("allennlp.commands").main(prog="allennlp"))
        case [program, *_]:
            if not Path(program).is_file():
                _fail(f"elmore.compat: there is no file {program}; give the path of a program")
            sys.argv = sys.argv[1:]
            sys.path[0] = str(Path(program).resolve().parent)  # may have a copy of a library
            install(tensorflow=_imports_bilm(Path(program)))
            runpy.run_path(program, run_name="__main__")


def _check_module(name: str) -> None:
    """End with one line if there is no such module."""
    try:
        if find_spec(name) is None:
            _fail(f"elmore.compat: there is no module {name}; check its name, or install it")
    except ModuleNotFoundError as error:
        _fail(f"elmore.compat: {error}")


def _imports_bilm(program: Path) -> bool:
    """Return whether a program is for bilm-tf; others need TensorFlow itself if they import it."""
    return re.search(rb"^\s*(from|import)\s+bilm\b", program.read_bytes(), re.MULTILINE) is not None


def _run_command(command: Callable[[], object]) -> None:
    """Run a command; print a user's mistake as one line."""
    try:
        command()
    except ConfigurationError as error:
        _fail(f"elmore.compat: {error.message}")
    except (ElmoreError, OSError) as error:
        _fail(f"elmore.compat: {error}")


def _fail(message: str) -> NoReturn:
    print(message, file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
