"""The ELMo module of TensorFlow Hub as a layer of Keras 3, with its torch or TensorFlow backend.

elmore computes the layers of the biLM, and Keras trains the mix. Keras has no string tensors with
the torch backend; there, `encode_strings` makes integers of strings.

Shapes: B sentences, T tokens in the longest, L layers, D both directions of a layer.
"""

import os
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from elmore import ElmoreError, load
from elmore.compat.keras_strings import StringLayer, find_shape, keras
from elmore.compat.model_files import VARIABLE
from elmore.compat.string_arrays import encode_strings

__all__ = ["ElmoEmbeddingLayer", "encode_strings"]

MIX = "elmo"
MEAN = "default"
ALL = "all"


@keras.saving.register_keras_serializable(package="elmore")
class ElmoEmbeddingLayer(StringLayer):
    """One of TF-Hub's outputs, or a dict of `all` of them.

    `word_emb` (B, T, D / 2), `lstm_outputs1`, `lstm_outputs2` and their mix `elmo` (B, T, D) have a
    mask and are 0 at padding. `default` (B, D) is the mean of `elmo` over the tokens. Only the mix
    is trained: one weight per layer, and `scaling`.

    `model` is a path or a hub id; without it, the layer uses the English model in the package. A
    saved Keras model has this name, not the weights of the biLM.
    """

    def __init__(
        self,
        model: str | Path | None = None,
        *,
        output: str = MEAN,
        signature: str = "default",
        options: str | Path | None = None,
        device: str = "cpu",
        **settings: Any,
    ) -> None:
        super().__init__(signature=signature, **settings)
        self.embedder = load(model, options=options, device=device)
        num_layers = self.embedder.num_layers
        self.layer_names = ["word_emb", *(f"lstm_outputs{k}" for k in range(1, num_layers))]
        self.output_names = [*self.layer_names, MIX, MEAN]
        if output not in [*self.output_names, ALL]:
            names = ", ".join([*self.output_names, ALL])
            raise ElmoreError(f"output is {output!r:.60}; choose one of: {names}")
        self.output_name = output
        self._source = {
            "model": _make_absolute(model),
            "options": _make_absolute(options),
            "device": device,
        }
        if output not in self.layer_names:
            self.layer_weights = self.add_weight(
                shape=(num_layers,), initializer="zeros", name="weights"
            )
            self.scaling = self.add_weight(shape=(), initializer="ones", name="scaling")
        self.built = True  # no weight depends on the shape of the input

    def call(self, inputs: Any) -> Any:
        """Return the output, or a dict of all of them."""
        shape = (find_shape(inputs)[0], None, self.embedder.num_layers, self.embedder.vector_dim)
        found = self.compute(self._embed, inputs, dtype="float32", shape=shape)
        found = keras.ops.cast(found, self.compute_dtype)
        return self._for_outputs(lambda name: self._choose(name, found[:, 1:], found[:, 0]))

    def compute_output_spec(self, inputs: Any) -> Any:
        """Return the shape and the type of the output, or a dict of all of them."""
        batch, width = find_shape(inputs)
        dim = self.embedder.vector_dim

        def describe(name: str) -> Any:
            shape = {MEAN: (batch, dim), "word_emb": (batch, width, dim // 2)}
            return keras.KerasTensor(shape.get(name, (batch, width, dim)), dtype=self.compute_dtype)

        return self._for_outputs(describe)

    def compute_mask(self, inputs: Any, previous_mask: Any) -> Any:  # noqa: ARG002
        """Return the (B, T) mask of the tokens; None for `default`."""
        given = inputs["tokens"] if isinstance(inputs, dict) else inputs
        if self.output_name == MEAN or isinstance(given, keras.KerasTensor):
            return None  # a model that is being built needs no mask; it gets one with each batch
        mask = self.mask_tokens(inputs)
        return self._for_outputs(lambda name: None if name == MEAN else mask)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that a saved model is built with again, and the model's hash."""
        return {
            **super().get_config(),
            **self._source,
            "output": self.output_name,
            "fingerprint": self.embedder.model.fingerprint(),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Build the layer of a saved model; check that its biLM is still the same."""
        saved = dict(config)
        fingerprint = saved.pop("fingerprint")
        for name in ("model", "options"):
            saved[name] = _find_moved(saved[name])
        try:
            layer = cls(**saved)
        except ElmoreError as error:
            raise ElmoreError(
                f"this Keras model was saved with the ELMo model {config['model']}, which cannot "
                f"be loaded ({error}); put it back, or set {VARIABLE} to the folder that it is in"
            ) from error
        if layer.embedder.model.fingerprint() != fingerprint:
            raise ElmoreError(
                f"this Keras model was saved with another ELMo model than the one that is now at "
                f"{saved['model'] or 'the elmore package'}; restore the earlier one"
            )
        return layer

    def _for_outputs(self, make: Any) -> Any:
        """Return `make(name)` of the chosen output, or a dict for all of them."""
        if self.output_name != ALL:
            return make(self.output_name)
        return {name: make(name) for name in self.output_names}

    def _embed(self, sentences: list[list[str]], width: int) -> NDArray[np.float32]:
        """Return (B, 1 + T, L, D): the mean over the tokens, then the tokens, padded with zeros.

        For `default`, there is only the mean.
        """
        num_kept = 0 if self.output_name == MEAN else width
        size = (self.embedder.num_layers, self.embedder.vector_dim)
        padded = np.zeros((len(sentences), 1 + num_kept, *size), dtype=np.float32)
        found = self.embedder.embed(sentences, layers="all")
        for row, layers in zip(padded, found, strict=True):
            num_tokens = layers.shape[1]
            if num_tokens:
                row[0] = layers.mean(axis=1)
            if num_kept:
                row[1 : 1 + num_tokens] = layers.swapaxes(0, 1)
        return padded

    def _choose(self, name: str, layers: Any, means: Any) -> Any:
        """Return one output of the (B, T, L, D) layers or their (B, L, D) means."""
        if name == "word_emb":  # both halves are the same
            return layers[:, :, 0, : self.embedder.vector_dim // 2]
        if name in self.layer_names:
            return layers[:, :, self.layer_names.index(name)]
        shares = keras.ops.softmax(self.layer_weights)
        if name == MIX:
            return self.scaling * keras.ops.einsum("btld,l->btd", layers, shares)
        return self.scaling * keras.ops.einsum("bld,l->bd", means, shares)


def _make_absolute(path: str | Path | None) -> str | None:
    """Return a path that is valid in any folder; a hub id as it is."""
    if path is None:
        return None
    expanded = Path(path).expanduser()
    return str(expanded.absolute()) if expanded.exists() else str(path)


def _find_moved(path: str | None) -> str | None:
    """Return the path, or where a file or folder of its name is in $ELMORE_MODELS."""
    if path is None or Path(path).exists() or VARIABLE not in os.environ:
        return path
    moved = Path(os.environ[VARIABLE]) / Path(path).name
    return str(moved) if moved.exists() else path
