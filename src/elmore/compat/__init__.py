"""Old ELMo programs run unchanged: drop-in modules for the libraries that they import.

`elmore.compat.allennlp`, `bilm`, `elmoformanylangs` and `simple_elmo` have the names, arguments and
numbers of the originals. `install()`, or `python -m elmore.compat PROGRAM.py`, makes them
importable under the old names.
"""

import sys
from importlib.util import find_spec

from elmore.compat.old_imports import OldImports, is_installed

__all__ = ["install"]

LIBRARIES = ("allennlp", "bilm", "elmoformanylangs", "simple_elmo")


def install(*, tensorflow: bool = False) -> list[str]:
    """Make the old libraries that are not installed importable; print and return their names.

    With `tensorflow`, also the placeholders and sessions that programs run elmore's bilm with.
    """
    needs_real = is_installed(find_spec("bilm"))  # bilm-tf itself, which computes with TensorFlow
    wanted = [*LIBRARIES, "tensorflow"] if tensorflow and not needs_real else LIBRARIES
    missing = [
        name
        for name in wanted
        if (spec := find_spec(name)) is None
        or not (is_installed(spec) or isinstance(spec.loader, OldImports))
    ]
    if missing:
        # Before the others, which find folders of any name; they still find real libraries.
        sys.meta_path.insert(0, OldImports(missing))
        print(
            f"elmore.compat: not installed here, so elmore takes their place: {', '.join(missing)}",
            file=sys.stderr,
        )
    return missing
