"""elmore's own folder: what is saved is loaded equal to the bit, and nothing else is touched."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from huggingface_hub import ModelCard
from safetensors.torch import load_file, save_file

from elmore.config import About, ModelConfig
from elmore.errors import DataError, ElmoreError, ModelError
from elmore.weights.elmo_model import ElmoModel, assemble_model, new_model
from elmore.weights.loading import default_model, load_model
from elmore.weights.model_folder import check_target
from tests import tiny
from tests.weights import peer_files
from tests.weights.peer_files import SENTENCES, run

ODD = [
    "\u3000",
    "\u2028",
    "\x85",
    '"',
    "'",
    "\\",
    "\t",
    " ",
    "a\rb",
    "\ufeff",
    "<!--",
    "😀",
    "e\u0301",
]


def odd_model() -> ElmoModel:
    """A model whose lists have every entry that a careless reader of lines would lose."""
    config = tiny.word_and_char_config()
    letters, words = [*tiny.LETTERS, *ODD], [*tiny.WORDS, *ODD, ""]
    assert config.characters is not None
    assert config.words is not None
    config = replace(
        config,
        characters=replace(config.characters, num_units=len(letters)),
        words=replace(config.words, num_words=len(words)),
    )
    return new_model(config, seed=4, characters=letters, words=words)


MODELS = {
    "bytes": tiny.model,
    "words and characters": lambda: tiny.model(tiny.word_and_char_config()),
    "odd entries": odd_model,
    "the default": default_model,
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_a_saved_model_is_loaded_equal_to_the_bit(make, tmp_path):
    model = make()
    model.bilm.initial_hidden.normal_()
    assert model.save_pretrained(tmp_path / "model") is None
    loaded = ElmoModel.from_pretrained(tmp_path / "model")
    assert loaded.config == model.config
    assert (loaded.words, loaded.characters) == (model.words, model.characters)
    ours, theirs = loaded.bilm.state_dict(), model.bilm.state_dict()
    assert list(ours) == list(theirs)
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert not loaded.training
    assert loaded.fingerprint() == model.fingerprint()
    sentences = [*SENTENCES, ODD]
    for a, b in zip(
        run(loaded, sentences, dtype=torch.float32),
        run(model, sentences, dtype=torch.float32),
        strict=True,
    ):
        assert a.tobytes() == b.tobytes()


def test_a_folder_has_its_files_and_no_other(tmp_path):
    tiny.model().save_pretrained(tmp_path / "a")
    odd_model().save_pretrained(str(tmp_path / "b"))
    common = ["README.md", "config.json", "model.safetensors"]
    assert peer_files.names(tmp_path / "a") == common
    assert peer_files.names(tmp_path / "b") == sorted([*common, "characters.txt", "vocabulary.txt"])


def test_saving_over_another_model_leaves_nothing_of_it(tmp_path):
    odd_model().save_pretrained(tmp_path)
    tiny.model().save_pretrained(tmp_path)
    assert load_model(tmp_path).fingerprint() == tiny.model().fingerprint()
    assert not (tmp_path / "vocabulary.txt").exists()


def test_changing_a_loaded_model_does_not_change_its_file(tmp_path):
    tiny.model().save_pretrained(tmp_path)
    before = (tmp_path / "model.safetensors").read_bytes()
    loaded = load_model(tmp_path)
    with torch.no_grad():
        for weight in loaded.bilm.parameters():
            weight.zero_()
    assert (tmp_path / "model.safetensors").read_bytes() == before
    loaded.save_pretrained(tmp_path)
    assert not any(weight.any() for weight in load_model(tmp_path).bilm.parameters())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_precisions_are_loaded_as_float32(dtype, tmp_path):
    tiny.model().save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors = {name: tensor.to(dtype) for name, tensor in tensors.items()}
    save_file(tensors, tmp_path / "model.safetensors")
    for name, weight in load_model(tmp_path).bilm.state_dict().items():
        assert weight.dtype == torch.float32
        assert torch.equal(weight, tensors[name].float())


def test_the_fingerprint_follows_what_a_vector_depends_on_and_nothing_else():
    model = tiny.model()
    renamed = assemble_model(
        replace(model.config, about=About(name="other")), model.bilm.state_dict()
    )
    assert renamed.fingerprint() == model.fingerprint()
    config = tiny.byte_config(cell_clip=2.0)
    assert assemble_model(config, model.bilm.state_dict()).fingerprint() != model.fingerprint()
    before = model.fingerprint()
    with torch.no_grad():
        model.bilm.forward_lm[0].bias[0] += 1e-6
    assert model.fingerprint() != before


@pytest.mark.slow
def test_loading_does_not_wait_for_the_compiler_of_torch(tmp_path):
    tiny.model().save_pretrained(tmp_path)
    program = """
import sys
from elmore.weights.loading import load_model
load_model(sys.argv[1])
print([name for name in ("torch._dynamo", "sympy") if name in sys.modules])
"""
    done = run_program(program, tmp_path)
    assert done.stdout == "[]\n", done.stderr


def run_program(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, str(folder)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(["src", "."])},
    )


# The card.


def save_with(about: About, folder: Path) -> str:
    model = tiny.model(replace(tiny.byte_config(), about=about))
    model.save_pretrained(folder)
    return (folder / "README.md").read_text(encoding="utf-8")


def test_the_card_has_a_header_that_the_hub_reads(tmp_path):
    save_with(
        About(name="Tiny", license="apache-2.0", language="no", trained_on="a text"), tmp_path
    )
    data = ModelCard.load(tmp_path / "README.md").data
    assert (data.library_name, data.license, data.language) == ("elmore", "apache-2.0", "no")
    assert "elmo" in (data.tags or [])


def test_a_license_or_language_unknown_to_the_hub_does_not_break_the_header(tmp_path):
    about = About(license='CC BY: "4.0"\n---\n# x', language="Old Norse: runic")
    card = save_with(about, tmp_path)
    data = ModelCard.load(tmp_path / "README.md").data
    assert (data.license, data.get("license_name")) == ("other", about.license)
    assert data.language is None
    assert "| language | Old Norse: runic |" in card


def test_odd_facts_stay_inside_their_place_in_the_card(tmp_path):
    card = save_with(About(name="a\n---\nb|c", source="x|y\nz", notes="A note."), tmp_path)
    assert "\n# a --- b\\|c\n" in card
    assert "| made from | x\\|y z |" in card
    assert "\nA note.\n" in card


def test_an_untrained_model_says_so(tmp_path):
    assert "the weights are random" in save_with(About(is_trained=False), tmp_path)


def test_a_name_that_is_not_utf_8_does_not_prevent_saving(tmp_path):
    name = os.fsdecode(b"mod\xe9le")
    save_with(About(name=name), tmp_path)
    assert load_model(tmp_path).config.about.name == name


def test_a_card_written_by_hand_is_kept_and_a_generated_one_renewed(tmp_path):
    save_with(About(name="first"), tmp_path)
    assert "# second" in save_with(About(name="second"), tmp_path)
    (tmp_path / "README.md").write_text("# Mine\n")
    assert save_with(About(name="third"), tmp_path) == "# Mine\n"


# Where a model may be saved.


def test_a_folder_of_other_things_is_refused_and_not_changed(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "encoder.pkl").write_text("x")
    with pytest.raises(ModelError, match="holds other files"):
        tiny.model().save_pretrained(tmp_path)
    assert (tmp_path / "config.json").read_text() == "{}"
    assert peer_files.names(tmp_path) == ["config.json", "encoder.pkl"]


def test_a_model_of_another_library_is_refused(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    save_file({"x": torch.zeros(1)}, tmp_path / "model.safetensors")
    with pytest.raises(ModelError, match="holds other files"):
        check_target(tmp_path)
    with pytest.raises(ModelError, match=r"not the config\.json of an elmore model"):
        load_model(tmp_path)


def test_an_empty_clone_of_a_hub_repository_may_be_saved_to(tmp_path):
    (tmp_path / ".gitattributes").touch()
    (tmp_path / "README.md").write_text("# Mine\n")
    tiny.model().save_pretrained(tmp_path)
    assert (tmp_path / "README.md").read_text() == "# Mine\n"


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ModelError, match="is a file"):
        tiny.model().save_pretrained(tmp_path / "file")
    with pytest.raises(ElmoreError, match="file"):
        tiny.model().save_pretrained(tmp_path / "file" / "below")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "README.md"])
def test_a_folder_where_a_file_should_go_is_named(name, tmp_path):
    tiny.model().save_pretrained(tmp_path)
    (tmp_path / name).unlink()
    (tmp_path / name).mkdir()
    with pytest.raises(ElmoreError):
        tiny.model().save_pretrained(tmp_path)


@pytest.mark.parametrize("entry", ["a\nb", "a\r", "\ud800"])
def test_an_entry_that_no_line_can_keep_is_refused_before_anything_is_written(entry, tmp_path):
    words = [*tiny.WORDS[:-1], entry]
    model = new_model(tiny.word_and_char_config(), seed=1, characters=tiny.LETTERS, words=words)
    with pytest.raises(ModelError, match="cannot be stored as a line"):
        model.save_pretrained(tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_save_that_was_interrupted_cannot_be_loaded_but_repeated(tmp_path, monkeypatch):
    tiny.model(seed=1).save_pretrained(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("elmore.weights.model_folder.write_card", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            tiny.model(seed=2).save_pretrained(tmp_path)
    with pytest.raises(ModelError, match=r"config\.json"):
        load_model(tmp_path)
    tiny.model(seed=2).save_pretrained(tmp_path)
    assert load_model(tmp_path).fingerprint() == tiny.model(seed=2).fingerprint()


FULL_DISK = """
import resource, sys
from pathlib import Path
from elmore.errors import ElmoreError
from elmore.weights.bilm_tf import write_bilm_tf
from tests import tiny
resource.setrlimit(resource.RLIMIT_FSIZE, (8_000, 8_000))
for write in (lambda: tiny.model().save_pretrained(sys.argv[1]),
              lambda: write_bilm_tf(tiny.model(), Path(sys.argv[1], "w.hdf5"), overwrite=True)):
    try:
        write()
    except ElmoreError as error:
        print(type(error).__name__)
"""


@pytest.mark.slow
def test_a_full_disk_leaves_the_old_model_whole(tmp_path):
    odd_model().save_pretrained(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    done = run_program(FULL_DISK, tmp_path)
    assert done.stdout.split() == [DataError.__name__] * 2, done.stderr
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


# Folders that are no whole model.


def spoil_config(folder: Path, **changes: object) -> None:
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**settings, **changes}))


@pytest.mark.parametrize(
    "name", ["config.json", "model.safetensors", "vocabulary.txt", "characters.txt"]
)
@pytest.mark.parametrize("kind", ["missing", "folder", "empty", "pipe"])
def test_a_missing_part_is_named(name, kind, tmp_path):
    odd_model().save_pretrained(tmp_path)
    (tmp_path / name).unlink()
    if kind == "folder":
        (tmp_path / name).mkdir()
    if kind == "empty":
        (tmp_path / name).touch()
    if kind == "pipe":
        os.mkfifo(tmp_path / name)
    with pytest.raises(ElmoreError) as caught:
        ElmoModel.from_pretrained(tmp_path)
    assert name in str(caught.value) or kind == "empty"
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["vocabulary.txt", "characters.txt"])
@pytest.mark.parametrize("change", [b"one more\n", b"<oov>\n", b"\xff\n"])
def test_a_list_that_does_not_fit_its_vectors_is_refused(name, change, tmp_path):
    odd_model().save_pretrained(tmp_path)
    with (tmp_path / name).open("ab") as file:
        file.write(change)
    with pytest.raises(ElmoreError):
        load_model(tmp_path)


@pytest.mark.parametrize("key", [*ModelConfig.__dataclass_fields__, "format"])
@pytest.mark.parametrize("value", [None, [], {}, "x", 5, True, -1, 1e300, {"num_layers": 10**18}])
def test_wrong_values_in_the_settings_are_refused_or_harmless(key, value, tmp_path):
    odd_model().save_pretrained(tmp_path)
    spoil_config(tmp_path, **{key: value})
    harmless = {("about", "{}"), ("has_token_projection", "True"), ("format", "True")}
    if (key, repr(value)) in harmless:
        load_model(tmp_path)
        return
    with pytest.raises(ModelError) as caught:
        load_model(tmp_path)
    assert len(str(caught.value)) < 600
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("section", ["lstm", "characters", "words"])
@pytest.mark.parametrize("value", [None, [], {}, "x", True, -1, 0, 2**60, 1e308, [[1, 1]] * 101])
def test_wrong_values_in_a_section_are_refused(section, value, tmp_path):
    odd_model().save_pretrained(tmp_path)
    whole = json.loads((tmp_path / "config.json").read_text())[section]
    for key, kept in whole.items():
        if value == kept or isinstance(kept, bool):
            continue
        spoil_config(tmp_path, **{section: {**whole, key: value}})
        if key in ("cell_clip", "output_clip", "forget_bias", "max_chars", "num_highway_layers"):
            continue  # numbers that some other network may have
        with pytest.raises(ElmoreError) as caught:
            load_model(tmp_path)
        assert len(str(caught.value)) < 600


def test_a_weight_its_settings_do_not_call_for_is_refused(tmp_path):
    tiny.model().save_pretrained(tmp_path)
    settings = json.loads((tmp_path / "config.json").read_text())
    settings["characters"]["num_highway_layers"] = 1
    spoil_config(tmp_path, characters=settings["characters"])
    with pytest.raises(ModelError, match=r"have no weight 'token_encoder.highways.1"):
        load_model(tmp_path)


def test_a_model_of_bytes_with_too_few_vectors_is_refused():
    config = tiny.byte_config()
    assert config.characters is not None
    config = replace(config, characters=replace(config.characters, num_units=100))
    with pytest.raises(ModelError, match="261 units"):
        new_model(config, seed=1)


def test_lists_of_the_wrong_length_are_refused():
    with pytest.raises(ModelError, match="list of words has 3 entries for 8 vectors"):
        new_model(
            tiny.word_and_char_config(), seed=1, characters=tiny.LETTERS, words=tiny.WORDS[:3]
        )
    with pytest.raises(ModelError, match="list of characters has 1 entries for 0 vectors"):
        new_model(tiny.byte_config(), seed=1, characters=["a"])


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_that_are_not_finite_are_refused(number, tmp_path):
    model = tiny.model()
    with torch.no_grad():
        model.bilm.backward_lm[1].bias[2] = number
    model.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match=r"backward_lm.1.bias.* not finite"):
        load_model(tmp_path)


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.float8_e4m3fn, torch.complex64])
def test_weights_that_are_not_float_numbers_are_refused(dtype, tmp_path):
    tiny.model().save_pretrained(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["initial_cell"] = tensors["initial_cell"].to(dtype)
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(ModelError, match="not float numbers"):
        load_model(tmp_path)


def test_two_models_of_one_seed_are_equal():
    assert default_model().fingerprint() == load_model().fingerprint()
    config = tiny.byte_config()
    assert new_model(config, seed=1).fingerprint() != new_model(config, seed=2).fingerprint()
