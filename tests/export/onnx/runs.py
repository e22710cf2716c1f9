"""Run an ONNX model on tokenized sentences in onnxruntime."""

import numpy as np
import onnxruntime


def pad_ids(ids, lengths, *, padding=0):
    """Pad the ids of all tokens, one after another, to (sentences, tokens, ...)."""
    mask = np.arange(max(lengths, default=0)) < np.array(lengths, int)[:, None]
    padded = np.full((*mask.shape, *ids.shape[1:]), padding, np.int64)
    padded[mask] = ids
    return padded


def start(made):
    """Return a session of a model in memory."""
    return onnxruntime.InferenceSession(
        made.SerializeToString(), providers=["CPUExecutionProvider"]
    )


def make_inputs(model, sentences, *, padding=0):
    """Return the inputs of a session."""
    lengths = [len(sentence) for sentence in sentences]
    spelled = model.speller.spell([token for sentence in sentences for token in sentence])
    inputs = {"lengths": np.array(lengths, np.int64)}
    for name in ("char_ids", "word_ids"):
        ids = getattr(spelled, name)
        if ids is not None:
            inputs[name] = pad_ids(ids.numpy(), lengths, padding=padding)
    return inputs


def run(session, model, sentences, *, padding=0):
    """Return (layers, tokens, dim) for each sentence; the rest must be zeros."""
    (layers,) = session.run(["layers"], make_inputs(model, sentences, padding=padding))
    for row, sentence in enumerate(sentences):
        assert not layers[row, :, len(sentence) :].any()
    return [layers[row, :, : len(sentence)] for row, sentence in enumerate(sentences)]
