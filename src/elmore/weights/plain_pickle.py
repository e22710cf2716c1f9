"""Read a pickle of plain data with a small interpreter that imports and calls nothing.

A name becomes a `Name`, a call a `Call`, a persistent id a `Reference`; the caller decides what
they mean. Only the instructions that `torch.save` writes (pickle protocols 2 to 5) are supported.
"""

import pickletools
import re
from dataclasses import dataclass
from pickle import UnpicklingError
from typing import Any, BinaryIO

# One byte of a pickle can create an object of 60 bytes; a named weight takes about 150 bytes.
MAX_PICKLE_BYTES = 1 << 18
# The longest integer in a torch file is the mark of its format, with 10 bytes.
MAX_INT_BYTES = 16
DICTIONARY = "collections OrderedDict"


@dataclass(frozen=True, slots=True, eq=False)
class Name:
    """A name the pickle asked to import: module, space, name."""

    path: str


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A call the pickle asked for."""

    path: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """A reference to something stored outside the pickle."""

    key: Any


@dataclass(frozen=True, kw_only=True, slots=True)
class PlainData:
    """The value of a pickle, and all references in it."""

    value: Any
    references: list[Reference]


def read_pickle(file: BinaryIO, *, allowed: re.Pattern[str]) -> PlainData:
    """Read one pickle from a file in memory; refuse names that don't match `allowed`."""
    machine = _Machine(allowed)
    for operation, argument, _ in pickletools.genops(file):
        machine.execute(operation.name, argument)
    return PlainData(value=machine.stack.pop(), references=machine.references)


class _Machine:
    """A stack, a memo, and one method that executes an instruction."""

    def __init__(self, allowed: re.Pattern[str]) -> None:
        self.allowed = allowed
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        self.references: list[Reference] = []

    def execute(self, name: str, argument: Any) -> None:
        """Execute one instruction: here those for values and the memo."""
        match name:
            case "PROTO" | "FRAME" | "STOP":
                pass
            case "NONE" | "NEWTRUE" | "NEWFALSE":
                self.stack.append({"NONE": None, "NEWTRUE": True, "NEWFALSE": False}[name])
            case "BININT" | "BININT1" | "BININT2" | "BINFLOAT" | "BINUNICODE" | "SHORT_BINUNICODE":
                self.stack.append(argument)
            case "LONG1":
                if argument.bit_length() > 8 * MAX_INT_BYTES:
                    raise UnpicklingError("a number is too large")
                self.stack.append(argument)
            case "BINSTRING" | "SHORT_BINSTRING":  # Python 2 strings; pickletools returns Latin-1
                self.stack.append(argument.encode("latin-1").decode("utf-8"))
            case "BINPUT" | "LONG_BINPUT":
                self.memo[argument] = self.stack[-1]
            case "MEMOIZE":
                self.memo[len(self.memo)] = self.stack[-1]
            case "BINGET" | "LONG_BINGET":
                self.stack.append(self.memo[argument])
            case _:
                self._collect(name, argument)

    def _collect(self, name: str, argument: Any) -> None:
        """Execute instructions for tuples, lists and dictionaries."""
        match name:
            case "MARK":
                self.marks.append(len(self.stack))
            case "EMPTY_TUPLE" | "EMPTY_LIST" | "EMPTY_DICT":
                types = {"EMPTY_TUPLE": tuple, "EMPTY_LIST": list, "EMPTY_DICT": dict}
                self.stack.append(types[name]())
            case "TUPLE1" | "TUPLE2" | "TUPLE3":
                self.stack.append(tuple(self._pop(int(name[-1]))))
            case "TUPLE":
                self.stack.append(tuple(self._pop_marked()))
            case "APPEND" | "APPENDS":
                items = self._pop(1) if name == "APPEND" else self._pop_marked()
                self._top(list).extend(items)
            case "SETITEM" | "SETITEMS":
                items = self._pop(2) if name == "SETITEM" else self._pop_marked()
                pairs = list(zip(items[::2], items[1::2], strict=True))
                self._top(dict).update(_check_keys(pairs))
            case _:
                self._refer(name, argument)

    def _refer(self, name: str, argument: Any) -> None:
        """Record what the pickle asks to import, call or look up outside."""
        match name:
            case "GLOBAL":
                self.stack.append(self._find(str(argument)))
            case "STACK_GLOBAL":
                module, attribute = self._pop(2)
                if type(module) is not str or type(attribute) is not str:
                    raise UnpicklingError("a name is not a string")
                self.stack.append(self._find(f"{module} {attribute}"))
            case "REDUCE":
                function, arguments = self._pop(2)
                if type(function) is not Name or type(arguments) is not tuple:
                    raise UnpicklingError("a call has no function")
                self.stack.append(_call(function, arguments))
            case "BUILD":
                self._pop(1)  # attributes that module.state_dict() adds to its dictionary
                self._top(dict)
            case "BINPERSID":
                self.references.append(Reference(*self._pop(1)))
                self.stack.append(self.references[-1])
            case _:
                raise UnpicklingError(f"the instruction {name}")

    def _find(self, path: str) -> Name:
        if not self.allowed.fullmatch(path):
            raise UnpicklingError(f"{path!r:.60}")
        return Name(path)

    def _top(self, kind: type) -> Any:
        if type(self.stack[-1]) is not kind:
            raise UnpicklingError(f"expected a {kind.__name__}")
        return self.stack[-1]

    def _pop(self, number: int) -> list[Any]:
        start = len(self.stack) - number
        if start < (self.marks[-1] if self.marks else 0):
            raise UnpicklingError("too few values")
        items = self.stack[start:]
        del self.stack[start:]
        return items

    def _pop_marked(self) -> list[Any]:
        items = self._pop(len(self.stack) - self.marks[-1])
        self.marks.pop()
        return items


def _call(function: Name, arguments: tuple[Any, ...]) -> Any:
    if function.path != DICTIONARY:
        return Call(function.path, arguments)
    # Python 2 wrote an ordered dictionary as a call with a list of two-element lists.
    pairs = arguments[0] if arguments else []
    if len(arguments) > 1 or any(type(pair) is not list or len(pair) != 2 for pair in pairs):
        raise UnpicklingError("expected a dictionary")
    return dict(_check_keys(pairs))


def _check_keys(pairs: list[Any]) -> list[Any]:
    """Refuse keys that are not strings: hashing a nested tuple can take forever."""
    if any(type(key) is not str for key, _ in pairs):
        raise UnpicklingError("a key is not a string")
    return pairs
