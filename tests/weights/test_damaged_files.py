"""Files cut short or with changed bytes: a refusal or a model comes out, never anything else.

No format here has a checksum, so a changed number inside the weights goes unnoticed.
"""

import random
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from elmore.errors import ElmoreError
from elmore.weights.bilm_tf import read_bilm_tf, write_bilm_tf
from elmore.weights.elmo_model import ElmoModel
from elmore.weights.many_langs import read_many_langs
from elmore.weights.torch_file import read_torch_file
from tests import tiny
from tests.weights import peer_files

Load = Callable[[], object]
NUM_CUTS, NUM_CHANGES = 25, 100


def bilm_tf(folder: Path) -> Load:
    write_bilm_tf(tiny.model(), folder / "w.hdf5")
    return lambda: read_bilm_tf(folder / "w.hdf5", folder / "options.json")


def model_folder(folder: Path) -> Load:
    tiny.model(tiny.word_and_char_config()).save_pretrained(folder)
    return lambda: ElmoModel.from_pretrained(folder)


def many_langs(folder: Path, *, is_zip: bool) -> Load:
    architecture = peer_files.make_architecture()
    weights = peer_files.make_many_langs(architecture)
    peer_files.write_many_langs_folder(folder, architecture, *weights, is_zip=is_zip)
    return lambda: read_many_langs(folder)


FILES: dict[str, tuple[Callable[[Path], Load], str]] = {
    "HDF5": (bilm_tf, "w.hdf5"),
    "options": (bilm_tf, "options.json"),
    "safetensors": (model_folder, "model.safetensors"),
    "settings": (model_folder, "config.json"),
    "vocabulary": (model_folder, "vocabulary.txt"),
    "characters": (model_folder, "characters.txt"),
    "zip": (lambda folder: many_langs(folder, is_zip=True), "encoder.pkl"),
    "zip of tokens": (lambda folder: many_langs(folder, is_zip=True), "token_embedder.pkl"),
    "torch 0.4": (lambda folder: many_langs(folder, is_zip=False), "encoder.pkl"),
    "torch 0.4 of tokens": (lambda folder: many_langs(folder, is_zip=False), "token_embedder.pkl"),
    "architecture": (lambda folder: many_langs(folder, is_zip=True), "cnn_tiny.json"),
    "char.dic": (lambda folder: many_langs(folder, is_zip=True), "char.dic"),
}


def is_refused(load: Load) -> bool:
    try:
        load()
    except ElmoreError as error:
        assert "\n" not in str(error)  # noqa: PT017  any other error fails the test by itself
        return True
    return False


def put(path: Path, content: bytes) -> None:
    # A new file each time: a model that was loaded may still look into the old one.
    path.unlink()
    path.write_bytes(content)


@pytest.mark.parametrize(("make", "name"), FILES.values(), ids=FILES)
def test_a_file_cut_short_is_refused(make, name, tmp_path):
    load = make(tmp_path)
    whole = (tmp_path / name).read_bytes()
    assert not is_refused(load)
    draw = random.Random(1)
    places = {0, 1, 7, 8, 9, len(whole) // 2, len(whole) - 2}
    places |= {draw.randrange(len(whole) - 1) for _ in range(NUM_CUTS)}
    for place in sorted(places):
        put(tmp_path / name, whole[:place])
        assert is_refused(load), f"cut after {place} of {len(whole)} bytes"


def change(content: bytes, draw: random.Random) -> bytes:
    changed = bytearray(content)
    # Half of the changes where headers are: numbers fill most of a file.
    reach = min(len(changed), 1500) if draw.random() < 0.5 else len(changed)
    for _ in range(draw.choice([1, 1, 2, 8])):
        place = draw.randrange(reach)
        match draw.randrange(5):
            case 0:
                changed[place] = draw.randrange(256)
            case 1:
                changed[place] ^= 1 << draw.randrange(8)
            case 2:
                changed[place] = draw.choice([0, 127, 128, 255])
            case 3:
                del changed[place : place + draw.randrange(1, 9)]
            case 4:
                changed[place:place] = draw.randbytes(draw.randrange(1, 9))
        reach = min(reach, len(changed))
    return bytes(changed)


@pytest.mark.slow
@pytest.mark.parametrize(("make", "name"), FILES.values(), ids=FILES)
def test_changed_bytes_give_a_refusal_or_a_model(make, name, tmp_path):
    load = make(tmp_path)
    whole = (tmp_path / name).read_bytes()
    outcomes = set()
    for seed in range(NUM_CHANGES):
        put(tmp_path / name, change(whole, random.Random(seed)))
        outcomes.add(is_refused(load))
    assert True in outcomes


def test_a_damaged_torch_file_is_refused_without_warnings_of_torch(tmp_path):
    torch.save(
        {"a": [1]}, tmp_path / "x.pkl", pickle_protocol=4, _use_new_zipfile_serialization=False
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert is_refused(lambda: read_torch_file(tmp_path / "x.pkl"))
    assert not caught


OF_MANY_LANGS = ["encoder.pkl", "char.dic"]


@pytest.mark.parametrize(
    "name", ["model.safetensors", "config.json", "vocabulary.txt", *OF_MANY_LANGS]
)
def test_a_file_that_may_not_be_read_is_named(name, tmp_path, monkeypatch):
    load = many_langs(tmp_path, is_zip=True) if name in OF_MANY_LANGS else model_folder(tmp_path)
    opened = Path.open

    def refuse(self: Path, *arguments: object, **options: object) -> object:
        if self.name == name:
            raise PermissionError(13, "Permission denied")
        return opened(self, *arguments, **options)  # type: ignore[arg-type,call-overload]

    # As the superuser everything may be read, so the refusal is played.
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(ElmoreError, match=rf"cannot read .*{name}: Permission denied"):
        load()


def test_a_model_outlives_its_file(tmp_path):
    model_folder(tmp_path)
    model = ElmoModel.from_pretrained(tmp_path)
    before = model.fingerprint()
    (tmp_path / "model.safetensors").unlink()
    assert model.fingerprint() == before
    assert all(torch.isfinite(weight).all() for weight in model.bilm.parameters())
