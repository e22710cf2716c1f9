import copy
from typing import Any

import pytest
import torch

from elmore.kernels import reading
from elmore.model.packed_bilm import KeptCharacters, PackedTokenEncoder, freeze
from elmore.model.token_encoder import CharacterCNN
from tests import tiny

FILTERS = [(1, 4), (2, 5), (3, 30)]


def build(*, uses_tanh: bool = False, num_units: int = 20) -> CharacterCNN:
    torch.manual_seed(0)
    return CharacterCNN(
        num_units=num_units, embedding_dim=3, filters=FILTERS, uses_tanh=uses_tanh
    ).eval()


@pytest.mark.parametrize("uses_tanh", [False, True])
@torch.inference_mode()
def test_kept_characters_have_the_bits_of_the_module(uses_tanh: bool) -> None:
    module = build(uses_tanh=uses_tanh)
    kept = KeptCharacters(module)
    char_ids = torch.randint(0, 21, (50, 9))
    char_ids[:, 6:] = 20
    char_ids[0] = 20
    for ids in (char_ids, char_ids[:1], char_ids[:0]):
        assert torch.equal(kept(ids), module(ids))


def test_kept_characters_refuse_ids_outside_the_tables() -> None:
    kept = KeptCharacters(build())
    for wrong in (-1, 21):
        ids = torch.zeros((2, 9), dtype=torch.int64)
        ids[1, 3] = wrong
        with pytest.raises(IndexError, match=f"ids from 0 to 20, got .*{wrong}"):
            kept(ids)


def test_kept_characters_refuse_tokens_narrower_than_a_filter() -> None:
    with pytest.raises(ValueError, match="at least 3 characters"):
        KeptCharacters(build())(torch.zeros((1, 2), dtype=torch.int64))


def test_later_changes_of_the_weights_are_not_seen() -> None:
    module = build()
    kept, ids = KeptCharacters(module), torch.randint(0, 20, (5, 9))
    before = kept(ids)
    with torch.no_grad():
        for weight in module.parameters():
            weight.zero_()
    assert torch.equal(kept(ids), before)


def test_hooks_and_large_alphabets_keep_the_module() -> None:
    hooked = build()
    hooked.register_forward_hook(lambda module, inputs, output: output)
    for module in (hooked, build(num_units=600)):
        assert not module.can_be_kept
    assert build().can_be_kept


def test_frozen_encoder_keeps_tables_and_can_be_copied() -> None:
    bilm = tiny.model().bilm
    frozen = freeze(bilm)
    if frozen is bilm:
        pytest.skip("no native kernel")
    encoder = frozen.token_encoder
    assert isinstance(encoder, PackedTokenEncoder)
    assert isinstance(encoder.characters, KeptCharacters)
    ids = torch.randint(0, 261, (3, 50))
    assert torch.equal(copy.deepcopy(encoder)(ids, None), encoder(ids, None))


def test_released_weights_are_freed_one_layer_after_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, sentences = tiny.model(), [["a", "bank"], ["b"]]
    kept = freeze(model.bilm)
    if kept is model.bilm:
        pytest.skip("no native kernel")
    num_released = []
    pack = reading.PackedLayer.__init__

    def count(self: reading.PackedLayer, *arguments: Any, **settings: Any) -> None:
        num_released.append(sum(weight.is_meta for weight in model.bilm.parameters()))
        pack(self, *arguments, **settings)

    monkeypatch.setattr(reading.PackedLayer, "__init__", count)
    released = freeze(model.bilm, releases=True)
    per_layer = len(list(model.bilm.forward_lm[0].parameters()))
    assert num_released == [per_layer * number for number in range(4)]
    batch = model.speller.batch(sentences)
    outputs = [
        network.contextualize(network.encode(batch.tokens)[batch.positions], batch.lengths)
        for network in (kept, released)
    ]
    assert torch.equal(outputs[0].layers, outputs[1].layers)
