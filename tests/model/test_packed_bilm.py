import copy
import re
import weakref

import pytest
import torch

from elmore.config import WEIGHTS_IN_MEMORY, Precision
from elmore.model.bilm import BiLM
from elmore.model.packed_bilm import KeptCharacters, PackedBiLM, PackedTokenEncoder, freeze
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


def read(network: BiLM | PackedBiLM, sentences: list[list[str]]) -> torch.Tensor:
    batch = tiny.model().speller.batch(sentences)
    tokens = network.encode(batch.tokens)[batch.positions]
    return network.contextualize(tokens, batch.lengths).layers


@pytest.mark.parametrize("precision", WEIGHTS_IN_MEMORY)
def test_weights_are_taken_by_name_and_freed_before_the_next_one(precision: Precision) -> None:
    bilm, empty = tiny.model().bilm, tiny.model().bilm.to("meta")
    if bilm.find_kernel() is None:
        pytest.skip("no native kernel")
    weights, taken = bilm.state_dict(), []
    large = sorted(name for name in weights if re.search("(_|gate.|form.|projection.)weight", name))
    matrices: list[weakref.ref[torch.Tensor]] = []

    def take(name: str) -> torch.Tensor:
        weight = weights[name].clone()
        taken.append(name)
        if name in large:
            # To choose between f32 and f16, all matrices of a layer are needed.
            assert precision is Precision.F32 or all(matrix() is None for matrix in matrices)
            matrices.append(weakref.ref(weight))
        return weight

    packed = freeze(empty, precision=precision, take=take)
    assert sorted(taken) == sorted(weights)
    assert precision is Precision.F32 or [name for name in taken if name in large] == large
    sentences = [["a", "bank"], ["b"]]
    assert torch.equal(read(packed, sentences), read(freeze(bilm, precision=precision), sentences))


def test_without_a_kernel_the_bilm_is_given_its_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELMORE_KERNEL", "torch")
    bilm, empty = tiny.model().bilm, tiny.model().bilm.to("meta")
    weights = bilm.state_dict()
    assert freeze(empty, take=weights.__getitem__) is empty
    assert torch.equal(read(empty, [["a", "bank"]]), read(bilm, [["a", "bank"]]))
