"""Embed sentences with an exported model: numpy and onnxruntime, no torch and no elmore.

    elmore export --out english.onnx
    python examples/onnx_without_torch.py english.onnx "The bank raised its rates ." "A river bank"

Tokens are separated by spaces. Byte models only; docs/integrations/onnx.md describes the others.
"""

import json
import sys

import numpy as np
import onnxruntime

session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
spelling = json.loads(session.get_modelmeta().custom_metadata_map["spelling"])


def spell(token: str) -> list[int]:
    """Return a token's UTF-8 bytes between 258 and 259, filled up with 260."""
    content = token.encode()[: spelling["max_chars"] - 2]
    if not spelling["splits_characters"]:
        content = content.decode("utf-8", "ignore").encode()
    ids = [258, *content, 259]
    return ids + [260] * (spelling["max_chars"] - len(ids))


sentences = [text.split() for text in sys.argv[2:]]
lengths = np.array([len(tokens) for tokens in sentences])
char_ids = np.zeros((len(sentences), lengths.max(), spelling["max_chars"]), np.int64)
for row, tokens in enumerate(sentences):
    char_ids[row, : len(tokens)] = [spell(token) for token in tokens]
(layers,) = session.run(["layers"], {"char_ids": char_ids, "lengths": lengths})

for row, tokens in enumerate(sentences):  # layers[row] is (layers, tokens, numbers)
    for position, token in enumerate(tokens):
        print(token, *np.round(layers[row, -1, position, :4], 4), "...")
