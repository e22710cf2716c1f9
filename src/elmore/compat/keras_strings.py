"""Keras layers that read strings, with its torch and TensorFlow backends.

Shapes: B sentences, T tokens in the longest, C characters in the longest string.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmore import ElmoreError, require_extra
from elmore.compat.string_arrays import decode_strings

require_extra("keras", needed_for="elmore.compat.keras")

try:
    import keras
except ModuleNotFoundError as error:
    raise ElmoreError(
        f"the backend that Keras is set to needs {error.name}, which is not installed; install it, "
        "or set KERAS_BACKEND=torch before keras is imported"
    ) from error

__all__ = ["StringLayer", "find_shape", "keras"]

BACKENDS = ("tensorflow", "torch")
SIGNATURES = ("default", "tokens")


class StringLayer(keras.layers.Layer):  # type: ignore[misc]
    """Reads sentences under one of TF-Hub's signatures.

    `default` takes (B,) or (B, 1) strings, which are split at spaces. `tokens` takes a dict of
    `tokens` (B, T) and `sequence_len` (B,). Instead of strings, both take the integers that
    `encode_strings` makes of them, with another axis of size C.
    """

    def __init__(self, *, signature: str = "default", **settings: Any) -> None:
        if signature not in SIGNATURES:
            raise ElmoreError(f"signature is {signature!r:.60}; choose one of: {_join(SIGNATURES)}")
        if keras.backend.backend() not in BACKENDS:
            raise ElmoreError(
                f"Keras runs on {keras.backend.backend()}, where ELMo layers do not work; set "
                f"KERAS_BACKEND to one of: {_join(BACKENDS)}"
            )
        super().__init__(**settings)
        self.signature = signature
        self.supports_masking = True
        self.supports_jit = False  # elmore computes outside of the graph
        # Otherwise Keras tries to make numbers of strings.
        self._convert_input_args = False
        self._allow_non_tensor_positional_args = True

    def __call__(self, inputs: Any, **arguments: Any) -> Any:
        """Check the inputs and call the layer."""
        # Not in `call`, because Keras adds a list of all arguments to its errors.
        return super().__call__(self._check_inputs(inputs), **arguments)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments that a saved model is built with again."""
        return {**super().get_config(), "signature": self.signature}

    def mask_tokens(self, inputs: Any) -> Any:
        """Return a (B, T) bool tensor that is True where there is a token."""

        def compute(sentences: list[list[str]], width: int) -> NDArray[np.bool_]:
            lengths = np.array([len(sentence) for sentence in sentences])
            return np.arange(width) < lengths[:, None]

        return self.compute(compute, inputs, dtype="bool", shape=(None, None))

    def compute(
        self,
        function: Callable[[list[list[str]], int], NDArray[Any]],
        inputs: Any,
        *,
        dtype: str,
        shape: tuple[int | None, ...],
    ) -> Any:
        """Call a function of the sentences and T that returns an array; return a tensor."""
        arrays = list(inputs.values()) if isinstance(inputs, dict) else [inputs]

        def call(*given: Any) -> NDArray[Any]:
            return function(*self._read_sentences(*(np.asarray(array) for array in given)))

        if keras.backend.backend() == "torch":
            local = [array.cpu() if hasattr(array, "cpu") else array for array in arrays]
            return keras.ops.convert_to_tensor(call(*local))
        import tensorflow as tf  # noqa: PLC0415  the backend, and so installed

        result = tf.numpy_function(call, arrays, dtype, stateful=False)
        result.set_shape(shape)
        return result

    def _check_inputs(self, inputs: Any) -> Any:
        """Return inputs of the signature's form, as arrays or tensors."""
        given = f"a dict of {_join(inputs)}" if isinstance(inputs, dict) else "one array"
        if self.signature == "default":
            if isinstance(inputs, dict):
                raise ElmoreError(
                    f"signature 'default' takes strings, but got {given}; choose signature 'tokens'"
                )
            return _check_strings(inputs, num_axes=1)
        if not isinstance(inputs, dict) or set(inputs) != {"tokens", "sequence_len"}:
            raise ElmoreError(
                f"signature 'tokens' takes a dict of tokens and sequence_len, but got {given}"
            )
        lengths = _as_array(inputs["sequence_len"])
        if "int" not in _name_dtype(lengths):
            raise ElmoreError(
                f"sequence_len has the dtype {_name_dtype(lengths)}; give the numbers of tokens as "
                "int32"
            )
        return {"tokens": _check_strings(inputs["tokens"], num_axes=2), "sequence_len": lengths}

    def _read_sentences(
        self, strings: NDArray[Any], lengths: NDArray[Any] | None = None
    ) -> tuple[list[list[str]], int]:
        """Return the tokens of each sentence, and T."""
        texts = decode_strings(strings)
        if lengths is None:
            # As in TF-Hub, other white space is part of a token.
            sentences = [[t for t in text.split(" ") if t] for text in texts.flat]
            return sentences, max(map(len, sentences), default=0)
        width = texts.shape[1]
        if lengths.size != len(texts) or not ((lengths >= 0) & (lengths <= width)).all():
            raise ElmoreError(
                f"sequence_len is {lengths.tolist()!s:.60} for {len(texts)} rows of {width} "
                f"tokens; give one number from 0 to {width} per row"
            )
        rows = zip(texts.tolist(), lengths.flat, strict=True)
        return [row[:length] for row, length in rows], width


def find_shape(inputs: Any) -> tuple[int | None, int | None]:
    """Return B and T as far as they are known before strings are read."""
    if isinstance(inputs, dict):
        return tuple(inputs["tokens"].shape[:2])
    return inputs.shape[0], None


def _check_strings(given: Any, *, num_axes: int) -> Any:
    """Return strings, or characters on another axis, as an array or tensor."""
    strings = _as_array(given)
    dtype = _name_dtype(strings)
    is_encoded = "int" in dtype
    if not is_encoded and not dtype.startswith(("str", "bytes", "object")):
        raise ElmoreError(
            f"got the dtype {dtype} where strings were expected; give strings, or the integers "
            "that encode_strings makes of them"
        )
    is_symbol = isinstance(strings, keras.KerasTensor)
    if is_symbol and not is_encoded and keras.backend.backend() == "torch":
        axes = "(None,)" if num_axes == 1 else "(None, None)"
        raise ElmoreError(
            "Keras has no string tensors with the torch backend; declare the input as "
            f"keras.Input({axes}, dtype='int32') and give it encode_strings(texts)"
        )
    shape = tuple(strings.shape)
    is_column = num_axes == 1 and not is_encoded and shape[1:] == (1,)
    if len(shape) != num_axes + is_encoded and not is_column:
        expected = "one string per sentence" if num_axes == 1 else "a row of tokens per sentence"
        raise ElmoreError(
            f"got {'encoded strings' if is_encoded else 'strings'} in the shape {shape}; give "
            f"{expected}"
        )
    return strings


def _as_array(given: Any) -> Any:
    return given if hasattr(given, "dtype") else np.asarray(given)


def _name_dtype(array: Any) -> str:
    """Return the name of a dtype of numpy, torch, TensorFlow or Keras."""
    return str(getattr(array.dtype, "name", array.dtype)).removeprefix("torch.")


def _join(names: Iterable[str]) -> str:
    return ", ".join(map(str, names))
