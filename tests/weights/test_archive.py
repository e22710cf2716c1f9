"""Archives of published models are read as they are, and hostile ones are refused."""

import bz2
import gzip
import io
import os
import random
import shutil
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

import pytest

import elmore
from elmore.lm.language_model import load_language_model
from elmore.weights import archive
from elmore.weights.loading import load_model
from tests import tiny
from tests.weights import peer_files
from tests.weights.refusals import assert_refused
from tests.weights.tf_checkpoint.tables import FIXTURE

SUFFIXES = (".zip", ".tar.bz2", ".tar.gz", ".tgz", ".tar.xz", ".tar")


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """A temporary folder of its own, in which nothing may be left."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert peer_files.names(folder) == []


def pack(path: Path, folder: Path, *, inside: str = "") -> Path:
    """Pack all files of a folder."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            for member in sorted(folder.iterdir()):
                file.write(member, inside + member.name)
        return path
    mode = {".bz2": "w:bz2", ".gz": "w:gz", ".tgz": "w:gz", ".xz": "w:xz", ".tar": "w"}
    with tarfile.open(path, mode[path.suffix]) as file:
        for member in sorted(folder.iterdir()):
            file.add(member, inside + member.name)
    return path


@pytest.fixture
def simple_elmo(tmp_path):
    """The layout of NLPL's repository: model.hdf5, options.json, vocab.txt and other files."""
    folder = tmp_path / "files"
    options = peer_files.make_options()
    weights, _ = peer_files.write_bilm_tf_files(folder, options, peer_files.make_arrays(options))
    weights.rename(folder / "model.hdf5")
    (folder / "vocab.txt.gz").write_bytes(gzip.compress(b"<S>\n</S>\n<UNK>\nthe\n"))
    (folder / "meta.json").write_text('{"language": "nob"}')
    (folder / "README").write_text("A model.")
    return folder


@pytest.mark.parametrize("inside", ["", "./", "model/"])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_weights_with_options(suffix, inside, simple_elmo, tmp_path):
    path = pack(tmp_path / f"210{suffix}", simple_elmo, inside=inside)
    model = load_model(path)
    assert model.fingerprint() == load_model(simple_elmo).fingerprint()
    assert model.config.about.name == "210"


@pytest.mark.parametrize("suffix", [".zip", ".tar.bz2"])
def test_a_model_of_elmoformanylangs(suffix, tmp_path):
    architecture = peer_files.make_architecture()
    folder = peer_files.write_many_langs_folder(
        tmp_path / "zhs.model", architecture, *peer_files.make_many_langs(architecture)
    )
    path = pack(tmp_path / f"179{suffix}", folder)
    assert load_model(path).fingerprint() == load_model(folder).fingerprint()
    assert load_model(path).config.about.name == "179"


def test_a_folder_of_elmore_and_a_checkpoint(tmp_path):
    tiny.model().save_pretrained(tmp_path / "model")
    packed = pack(tmp_path / "own.zip", tmp_path / "model")
    assert load_model(packed).fingerprint() == tiny.model().fingerprint()
    assert load_model(packed).config.about.name == tiny.model().config.about.name
    path = pack(tmp_path / "checkpoint.tar.gz", FIXTURE / "whole")
    assert load_language_model(path).words[3] == "the"


def test_embedder_and_commands(simple_elmo, tmp_path, elmore_command):
    path = pack(tmp_path / "210.zip", simple_elmo)
    vectors = elmore.load(path).embed("The bank.")
    assert (vectors == elmore.load(simple_elmo).embed("The bank.")).all()
    assert elmore_command("convert", path, "--out", tmp_path / "model").status == 0
    assert (vectors == elmore.load(tmp_path / "model").embed("The bank.")).all()
    assert elmore_command("info", path).status == 0


def write_zip(path, members):
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members:
            file.writestr(name, content)
    return path


@pytest.mark.parametrize("name", ["../x.json", "/tmp/x.json", "a/../../x.json", "C:/x.json"])
@pytest.mark.parametrize("suffix", [".zip", ".tar.gz"])
def test_names_outside_are_refused(name, suffix, tmp_path):
    path = tmp_path / f"a{suffix}"
    if suffix == ".zip":
        write_zip(path, [("model.hdf5", b""), (name, b"{}")])
    else:
        with tarfile.open(path, "w:gz") as file:
            file.addfile(tarfile.TarInfo(name), io.BytesIO())
    assert_refused(lambda: load_model(path), "would be outside")
    assert not (tmp_path / "x.json").exists()


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE]
)
def test_links_and_devices_in_tar_are_refused(kind, tmp_path):
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as file:
        member = tarfile.TarInfo("options.json")
        member.type, member.linkname = kind, "/etc/passwd"
        file.addfile(member)
    assert_refused(lambda: load_model(path), "a link or a device")


def test_links_in_zip_are_refused(tmp_path):
    member = zipfile.ZipInfo("options.json")
    member.external_attr = 0o120777 << 16
    assert_refused(
        lambda: load_model(write_zip(tmp_path / "a.zip", [(member, b"/etc/passwd")])), "a link"
    )


def test_encrypted_members_are_refused(simple_elmo, tmp_path):
    path = pack(tmp_path / "a.zip", simple_elmo)
    data = bytearray(path.read_bytes())
    data[data.rindex(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    assert_refused(lambda: load_model(path), "encrypted")


def test_equal_names_are_refused(tmp_path):
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as file:
        for name in ("a.json", "A.json"):
            file.addfile(tarfile.TarInfo(name), io.BytesIO())
    assert_refused(lambda: load_model(path), "two files with the name")


@pytest.mark.parametrize("suffix", [".zip", ".tar.gz", ".tar.bz2", ".tar.xz"])
@pytest.mark.parametrize("name", ["model.hdf5", "README"])
def test_bombs_are_refused(suffix, name, tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "MAX_SMALL_BYTES", 1 << 20)
    (tmp_path / "files").mkdir()
    with (tmp_path / "files" / name).open("wb") as file:
        file.truncate(1 << 23)
    path = pack(tmp_path / f"a{suffix}", tmp_path / "files")
    assert path.stat().st_size < 20_000
    # A file that is not needed is never unpacked; in a tar archive it has to be passed over.
    is_passed = suffix == ".zip" and name == "README"
    assert_refused(lambda: load_model(path), "0 models" if is_passed else "unpacks to more than 10")


def test_too_many_members_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "MAX_MEMBERS", 5)
    members = [(f"{n}.json", b"{}") for n in range(6)]
    assert_refused(lambda: load_model(write_zip(tmp_path / "a.zip", members)), "more than 5 files")
    with tarfile.open(tmp_path / "a.tar", "w") as file:
        for name, _ in members:
            file.addfile(tarfile.TarInfo(name), io.BytesIO())
    assert_refused(lambda: load_model(tmp_path / "a.tar"), "more than 5 files")


def test_a_long_list_of_files_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "MAX_LIST_BYTES", 4000)
    members = [(f"{'n' * 100}{n}.json", b"") for n in range(40)]
    assert_refused(lambda: load_model(write_zip(tmp_path / "a.zip", members)), "list of files")


def test_a_header_cannot_fill_the_memory(tmp_path):
    member = tarfile.TarInfo("x")
    member.type, member.size = tarfile.GNUTYPE_LONGNAME, 1 << 32
    (tmp_path / "a.tar.bz2").write_bytes(bz2.compress(member.tobuf() + bytes(1 << 22)))
    assert_refused(lambda: load_model(tmp_path / "a.tar.bz2"), "a header of 4,294,96")


def test_sparse_files_are_refused(tmp_path):
    member = tarfile.TarInfo("model.hdf5")
    member.type = tarfile.GNUTYPE_SPARSE
    (tmp_path / "a.tar").write_bytes(member.tobuf() + bytes(1024))
    assert_refused(lambda: load_model(tmp_path / "a.tar"))


def test_several_models_or_none_are_refused(tmp_path):
    two = [("a/model.hdf5", b""), ("b/model.hdf5", b"")]
    assert_refused(lambda: load_model(write_zip(tmp_path / "a.zip", two)), "holds 2 models")
    none = [("README.txt", b"")]
    assert_refused(lambda: load_model(write_zip(tmp_path / "b.zip", none)), "holds 0 models")


def test_messages_name_the_archive_and_not_the_temporary_folder(simple_elmo, tmp_path):
    (simple_elmo / "options.json").write_text("{}")
    path = pack(tmp_path / "210.zip", simple_elmo)
    assert_refused(lambda: load_model(path), r"210\.zip/options\.json: there is no 'lstm'")


@pytest.mark.parametrize("suffix", [".zip", ".tar.bz2", ".tar.gz"])
def test_damage_is_refused_in_one_sentence(suffix, simple_elmo, tmp_path):
    path = pack(tmp_path / f"a{suffix}", simple_elmo)
    whole = path.read_bytes()
    for seed in range(30):
        chance = random.Random(seed)
        path.write_bytes(whole[: chance.randrange(len(whole) - 200)])
        assert_refused(lambda: load_model(path))


def test_folders_of_killed_processes_are_removed(temporary, simple_elmo, tmp_path):
    path = pack(tmp_path / "a.zip", simple_elmo)
    left, recent, other = (temporary / f"{archive.FOLDER}{name}" for name in ("a", "b", "c"))
    for folder in (left, recent):
        (folder / "files").mkdir(parents=True)
        (folder / archive.LOCK).touch()
    hour_ago = time.time() - 2 * archive.SECONDS_BEFORE_CLEANUP
    os.utime(left, (hour_ago, hour_ago))
    (tmp_path / "precious").mkdir()
    other.symlink_to(tmp_path / "precious")
    load_model(path)
    assert peer_files.names(temporary) == [recent.name, other.name]
    assert (tmp_path / "precious").exists()
    shutil.rmtree(recent)
    other.unlink()
