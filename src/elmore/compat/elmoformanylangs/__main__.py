"""`python -m elmoformanylangs test`: write the vectors of a file to HDF5 or text files."""

import argparse
import random
import sys
from itertools import chain
from pathlib import Path
from typing import Any

import h5py

from elmore import ElmoreError
from elmore.compat.command_arguments import read_layers, read_size
from elmore.compat.elmoformanylangs import Array, Embedder, choose

FORMATS = {
    "plain": None,
    "conll": lambda word: [word],
    "conll_char": list,
    "conll_char_vi": str.split,
}


def main() -> None:
    """Run the command in `sys.argv`."""
    if sys.argv[1:2] != ["test"]:
        print(f"Usage: {sys.argv[0]} [test] [options]", file=sys.stderr)
        return
    parser = argparse.ArgumentParser(prog="elmoformanylangs test")
    parser.add_argument(
        "--gpu", default=-1, type=int, help="ignored: a GPU is used if there is one"
    )
    parser.add_argument("--input_format", default="plain", choices=FORMATS)
    parser.add_argument("--input", required=True, help="tab-separated tokens, or CoNLL-U")
    parser.add_argument("--output_format", default="hdf5", help="hdf5, txt or both: hdf5,txt")
    parser.add_argument("--output_prefix", required=True)
    parser.add_argument(
        "--output_layer", required=True, type=read_layers, help="-1 (the mean), 0, 1, 2, or several"
    )
    parser.add_argument("--model", required=True, help="the folder of the model")
    parser.add_argument("--batch_size", "--batch", type=read_size, default=1)
    write_vectors(parser.parse_args(sys.argv[2:]))


def write_vectors(args: argparse.Namespace) -> None:
    """Write `PREFIX.lyLAYER.FORMAT` for every layer and format; repeated sentences are skipped."""
    sentences = read_sentences(args.input, args.input_format)
    embedder = Embedder(args.model, args.batch_size)
    for layer in args.output_layer:
        if not -embedder.num_layers <= layer < embedder.num_layers:
            raise ElmoreError(
                f"--output_layer is {layer}, but the model has {embedder.num_layers} layers; "
                f"choose -1 (their mean) or 0 to {embedder.num_layers - 1}"
            )
    files = [
        (open_file(f"{args.output_prefix}.ly{layer}.{kind}", kind), layer)
        for kind in args.output_format.split(",")
        for layer in args.output_layer
        if is_known(kind)
    ]
    order = list(range(len(sentences)))
    random.shuffle(order)
    written = set()
    for number, layers in embedder.read(sentences, order):
        key = "\t".join(sentences[number]).replace(".", "$period$").replace("/", "$backslash$")
        if key not in written:
            written.add(key)
            for file, layer in files:
                write(file, key, sentences[number], choose(layers, layer))
    for file, _ in files:
        file.close()


def read_sentences(path: str, kind: str) -> list[list[str]]:
    """Return the tokens of each line, or of each sentence in CoNLL-U."""
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except UnicodeDecodeError as error:
        raise ElmoreError(f"{path} is not UTF-8 ({error.reason}); convert it") from error
    split = FORMATS[kind]
    if split is None:
        return [line.split("\t") for line in text.split("\n")]
    rows = [
        [line.split("\t") for line in part.splitlines() if not line.startswith("#")]
        for part in text.split("\n\n")
    ]
    for row in chain.from_iterable(rows):
        if len(row) < 2:
            raise ElmoreError(
                f"{path} is not CoNLL-U: the line {row[0]!r:.60} has no columns separated by tabs; "
                "for lines of tokens, leave out --input_format"
            )
    return [
        [token for row in part if not {"-", "."} & set(row[0]) for token in split(row[1])]
        for part in rows
    ]


def is_known(kind: str) -> bool:
    """Return whether this is a format; print a line if not."""
    if kind not in ("hdf5", "txt"):
        print(f"Unknown output_format: {kind}")
    return kind in ("hdf5", "txt")


def open_file(path: str, kind: str) -> Any:
    """Open an output file."""
    return h5py.File(path, "w") if kind == "hdf5" else Path(path).open("w", encoding="utf-8")


def write(file: Any, key: str, tokens: list[str], vectors: Array) -> None:
    """Write one sentence."""
    if isinstance(file, h5py.File):
        file.create_dataset(key, data=vectors, dtype="float32")
        return
    for token, vector in zip(tokens, vectors, strict=True):
        print(token, *(f"{number:.8f}" for number in vector), sep="\t", file=file)
    print(file=file)


if __name__ == "__main__":
    main()
