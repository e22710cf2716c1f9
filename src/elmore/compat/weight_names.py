"""State dicts of networks that contain ELMo have AllenNLP's names, so that old ones can be loaded.

Shapes: F filters of width w, E char dim, C cells.
"""

from collections.abc import Iterator, MutableMapping
from typing import Any

import torch
from torch import Tensor, nn

Weights = MutableMapping[str, Tensor]

_OWN = "_token_embedder._elmo.bilm."
_SAME = {
    "input_weight": "input_linearity.weight",
    "state_weight": "state_linearity.weight",
    "projection_weight": "state_projection.weight",
}


def use_old_names(module: nn.Module) -> None:
    """Convert the weights of `module` when its state dict is saved and before one is loaded."""
    module.register_state_dict_post_hook(_save)
    module.register_load_state_dict_pre_hook(_load)


def _save(_: nn.Module, weights: Weights, prefix: str, *_unused: Any) -> None:
    own = _take(weights, prefix + _OWN)
    weights.update({prefix + name: tensor for name, tensor in _to_old(own)})


def _load(module: nn.Module, weights: Weights, prefix: str, *_unused: Any) -> None:
    old = _take(weights, prefix + "_token_embedder.")
    lstms = _take(weights, prefix + "_elmo_lstm.")
    own = dict(_from_old(old | {f"lstm.{name}": tensor for name, tensor in lstms.items()}))
    for name in ("initial_hidden", "initial_cell"):  # which AllenNLP does not have
        own[name] = module.get_buffer(_OWN + name)
    weights.update({prefix + _OWN + name: tensor for name, tensor in own.items()})


def _take(weights: Weights, prefix: str) -> dict[str, Tensor]:
    names = [name for name in weights if name.startswith(prefix)]
    return {name.removeprefix(prefix): weights.pop(name) for name in names}


def _to_old(own: dict[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    dim = own["token_encoder.characters.embedding.weight"].shape[1]
    for name, tensor in own.items():
        match name.split("."):
            case ["token_encoder", "characters", "embedding", _]:
                weights = torch.cat([tensor.new_zeros(1, dim), tensor])  # id 0 is padding
                yield "_token_embedder._char_embedding_weights", weights
            case ["token_encoder", "characters", "filters", number, kind]:
                convolution = tensor if kind == "bias" else tensor.unflatten(1, (-1, dim)).mT
                yield f"_token_embedder.char_conv_{number}.{kind}", convolution.contiguous()
            case ["token_encoder", "highways", number, "transform", kind]:
                # AllenNLP's gate is the share of the input, elmore's that of the transform.
                gate = own[name.replace("transform", "gate")]
                layer = f"_token_embedder._highways._layers.{number}.{kind}"
                yield layer, torch.cat([tensor, -gate])
            case ["token_encoder", "projection", kind]:
                yield f"_token_embedder._projection.{kind}", tensor
            case [("forward_lm" | "backward_lm") as direction, number, "bias"]:
                layer = f"{direction.removesuffix('_lm')}_layer_{number}"
                bias = tensor + _forget_bias(len(tensor)).to(tensor)
                yield f"_elmo_lstm.{layer}.state_linearity.bias", bias
            case [("forward_lm" | "backward_lm") as direction, number, kind]:
                layer = f"{direction.removesuffix('_lm')}_layer_{number}"
                yield f"_elmo_lstm.{layer}.{_SAME[kind]}", tensor


def _from_old(old: dict[str, Tensor]) -> Iterator[tuple[str, Tensor]]:
    own_names = {name: own for own, name in _SAME.items()}
    for name, tensor in old.items():
        match name.split("."):
            case ["_char_embedding_weights"]:
                yield "token_encoder.characters.embedding.weight", tensor[1:]
            case ["_highways", "_layers", number, kind]:
                transform, gate = tensor.chunk(2)
                yield f"token_encoder.highways.{number}.transform.{kind}", transform
                yield f"token_encoder.highways.{number}.gate.{kind}", -gate
            case ["_projection", kind]:
                yield f"token_encoder.projection.{kind}", tensor
            case ["lstm", layer, *rest]:
                direction, _, number = layer.split("_")
                if rest[-1] == "bias":
                    bias = tensor - _forget_bias(len(tensor)).to(tensor)
                    yield f"{direction}_lm.{number}.bias", bias
                else:
                    yield f"{direction}_lm.{number}.{own_names['.'.join(rest)]}", tensor
            case [convolution, kind]:
                number = convolution.removeprefix("char_conv_")
                filters = tensor if kind == "bias" else tensor.mT.flatten(1)
                yield f"token_encoder.characters.filters.{number}.{kind}", filters


def _forget_bias(num_gates: int) -> Tensor:
    """Return 1 for the forget gates, the second of four parts; elmore adds it at run time."""
    return torch.tensor([0.0, 1.0, 0.0, 0.0]).repeat_interleave(num_gates // 4)
