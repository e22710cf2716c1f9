"""Compare an exported model with elmore, in single precision and quantized to int8.

    python -m benchmarks.onnx_speed [--model MODEL | --random original] [--text FILE] [--repeats 9]

Times are CPU time, without a token cache: `batch` is all sentences in one call, `one` the sentence
of median length. Cosines are with elmore's f32 vectors, over all LSTM layers. Prints a Markdown
table.
"""

import argparse
import logging
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic

import elmore
from benchmarks.models import CONFIGS
from benchmarks.sentences import Sentences, load_sentences
from benchmarks.timing import Contestant, take_turns
from elmore.export.onnx import write_onnx
from elmore.weights.elmo_model import ElmoModel, new_model

QUANTIZED = {"ONNX int8, matrices": ["MatMul"], "ONNX int8, matrices and filters": None}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model")
    parser.add_argument("--random", choices=CONFIGS)
    parser.add_argument("--text", type=Path)
    parser.add_argument("--tokens", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=9)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    logging.disable(logging.WARNING)  # advice about graphs that other programs made
    sentences = load_sentences(arguments.text, num_tokens=arguments.tokens)
    model = (
        new_model(CONFIGS[arguments.random], seed=0)
        if arguments.random
        else elmore.load_model(arguments.model)
    )
    with tempfile.TemporaryDirectory() as folder:
        compare(model, sentences, Path(folder), repeats=arguments.repeats)


def compare(model: ElmoModel, sentences: Sentences, folder: Path, *, repeats: int) -> None:
    one = [sorted(sentences, key=len)[len(sentences) // 2]]
    exact = elmore.Embedder(model, cache_size=0).embed(sentences, layers="all")
    methods = {}
    sizes = {}
    for precision in ("f32", "int8"):
        embedder = elmore.Embedder(model, cache_size=0, precision=precision)
        methods[f"elmore {precision}"] = partial(embedder.embed, layers="all")
    for name, path in write_files(model, folder).items():
        methods[name] = partial(run_onnx, start(path), model)
        sizes[name] = f"{path.stat().st_size / 1e6:.1f}"
    batches = {"batch": sentences, "one": one}
    times = {
        batch: take_turns(
            [Contestant(name=name, run=partial(run, given)) for name, run in methods.items()],
            repeats=repeats,
            clock=time.process_time,
        )
        for batch, given in batches.items()
    }
    print(f"{len(sentences)} sentences, {sum(map(len, sentences))} tokens; one: {len(one[0])}\n")
    print("| | file, MB | batch, ms | one, ms | mean cosine | smallest cosine |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, run in methods.items():
        cosines = find_cosines(run(sentences), exact)
        milliseconds = (f"{times[batch][name].median * 1e3:.1f}" for batch in batches)
        print(
            f"| {name} | {sizes.get(name, '')} | {' | '.join(milliseconds)} "
            f"| {cosines.mean():.5f} | {cosines.min():.5f} |"
        )


def write_files(model: ElmoModel, folder: Path) -> dict[str, Path]:
    """Write the model and its quantized versions."""
    exact = folder / "model.onnx"
    write_onnx(model, exact)
    paths = {"ONNX f32": exact}
    for number, (name, operations) in enumerate(QUANTIZED.items()):
        paths[name] = folder / f"quantized{number}.onnx"
        quantize_dynamic(
            exact,
            paths[name],
            op_types_to_quantize=operations,
            weight_type=QuantType.QInt8,
            extra_options={"EnableSubgraph": True},
        )
    return paths


def start(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def run_onnx(
    session: onnxruntime.InferenceSession, model: ElmoModel, sentences: Sentences
) -> list[np.ndarray]:
    """Return (layers, tokens, dim) for each sentence; spelling counts, as it does in elmore."""
    lengths = np.array([len(sentence) for sentence in sentences])
    spelled = model.speller.spell([token for sentence in sentences for token in sentence])
    assert spelled.char_ids is not None
    ids = np.zeros((len(lengths), lengths.max(), spelled.char_ids.shape[1]), np.int64)
    ids[np.arange(lengths.max()) < lengths[:, None]] = spelled.char_ids.numpy()
    (layers,) = session.run(["layers"], {"char_ids": ids, "lengths": lengths})
    return [row[:, :length] for row, length in zip(layers, lengths, strict=True)]


def find_cosines(found: list[np.ndarray], exact: list[np.ndarray]) -> np.ndarray:
    a, b = (np.concatenate(list(parts), axis=1)[1:] for parts in (found, exact))
    return (a * b).sum(-1) / np.linalg.norm(a, axis=-1) / np.linalg.norm(b, axis=-1)


if __name__ == "__main__":
    main()
