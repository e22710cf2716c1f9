"""Write a biLM as an ONNX file that says how to spell tokens, after comparing its vectors."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from onnx import helper

from elmore import ElmoModel, ElmoreError, Embedder, replace_file
from elmore.export.onnx.network import make_onnx

MAX_BYTES = 2**31 - 1  # of a protocol buffer
MAX_DIFFERENCE = 1e-4  # ten times what was ever seen; a wrong graph differs far more
SAMPLE = [["The", "bank", "of", "the", "river", "."], [], ["Bank"]]


def write_onnx(model: ElmoModel | Embedder, path: str | Path) -> None:
    """Write a model as one ONNX file; raise an error if its vectors are not those of elmore."""
    path = Path(path)
    if isinstance(model, Embedder):
        model = model.load_model()
    if path.suffix != ".onnx":
        raise ElmoreError(f"an ONNX file ends in .onnx; {path} does not: give another name")
    num_bytes = sum(weight.numel() * 4 for weight in model.bilm.state_dict().values())
    if num_bytes > MAX_BYTES:
        raise ElmoreError(
            f"the weights take {num_bytes / 1e9:.1f} GB, and an ONNX file has at most 2 GB; "
            "export a smaller model"
        )
    made = make_onnx(model)
    helper.set_model_props(made, describe_model(model))
    content = made.SerializeToString()
    compare_vectors(model, content)
    with replace_file(path) as temporary:
        temporary.write_bytes(content)


def describe_model(model: ElmoModel) -> dict[str, str]:
    """Return what a user of the file needs to know: how to spell tokens, and where it is from."""
    config = model.config
    spelling: dict[str, Any] = {}
    if config.characters is not None:
        spelling["units"] = config.characters.units
        spelling["max_chars"] = config.characters.max_chars
        spelling["splits_characters"] = config.characters.splits_characters
        spelling["characters"] = model.characters
    if config.words is not None:
        spelling["words"] = model.words
        spelling["unknown_word"] = config.words.unknown
        spelling["max_word_chars"] = config.words.max_chars
    facts = {
        "name": config.about.name,
        "license": config.about.license,
        "fingerprint": model.fingerprint(),
        "spelling": json.dumps(spelling, ensure_ascii=False),
    }
    return {name: value for name, value in facts.items() if value}


@torch.no_grad()
def compare_vectors(model: ElmoModel, content: bytes) -> None:
    """Raise an error if onnxruntime computes other vectors of a few sentences than elmore."""
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    lengths = np.array([len(sentence) for sentence in SAMPLE])
    mask = np.arange(lengths.max()) < lengths[:, None]
    spelled = model.speller.spell([token for sentence in SAMPLE for token in sentence])
    inputs = {"lengths": lengths}
    for name in ("char_ids", "word_ids"):
        ids = getattr(spelled, name)
        if ids is not None:
            inputs[name] = np.zeros((*mask.shape, *ids.shape[1:]), np.int64)
            inputs[name][mask] = ids.numpy()
    (found,) = session.run(["layers"], inputs)
    expected = model.bilm(model.batch(SAMPLE)).layers.cpu().numpy()
    ends = np.cumsum(lengths + 2)
    difference = max(
        np.abs(found[row, :, :length] - expected[:, end - length - 1 : end - 1]).max(initial=0.0)
        for row, (length, end) in enumerate(zip(lengths, ends, strict=True))
    )
    if not difference <= MAX_DIFFERENCE:
        raise ElmoreError(
            f"onnxruntime's vectors differ from elmore's by {difference:.1e}; nothing was written: "
            "try another version of onnxruntime"
        )
