"""Hub or folder: a local model never touches the network; a hub id goes to the hub's library."""

import shutil
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import pytest
import torch
from huggingface_hub import HfApi
from huggingface_hub.errors import LocalEntryNotFoundError

from elmore.errors import ModelError
from elmore.lm.language_model import load_language_model
from elmore.weights.elmo_model import ElmoModel
from elmore.weights.loading import load_model
from elmore.weights.model_folder import find_folder, find_store
from tests import tiny
from tests.lm.slow_language_model import make_language_model
from tests.weights import peer_files


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the network was touched")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", refuse)


@pytest.mark.usefixtures("no_network")
def test_a_local_model_is_loaded_without_network(tmp_path, monkeypatch):
    tiny.model().save_pretrained(tmp_path / "owner" / "name")
    monkeypatch.chdir(tmp_path)
    for source in (tmp_path / "owner" / "name", "owner/name", "./owner/name/", Path("owner/name")):
        assert load_model(source).fingerprint() == tiny.model().fingerprint()
        assert ElmoModel.from_pretrained(source).config == tiny.byte_config()


@pytest.mark.usefixtures("no_network")
@pytest.mark.parametrize(
    "source",
    [
        "no/such/folder/",
        "no/such/folder",
        "no/such/",
        "./x",
        "../x",
        "/no/such",
        "x",
        "",
        ".hidden/x",
        "-x/y",
        "~nobody-at-all/x",
        "a/" + "b" * 5000 + "/",
        "x" * 5000,
        "a\x00b",
        "a/b\n",
        "模型/名",
        "C:\\models\\x",
        Path("owner/name"),
    ],
)
def test_what_is_not_a_hub_id_never_goes_to_the_network(source, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")  # so that nothing lies beside it by chance
    for load in (load_model, ElmoModel.from_pretrained):
        with pytest.raises(ModelError, match="there is no model at") as caught:
            load(source)
        assert len(str(caught.value)) < 400
        assert "\n" not in str(caught.value)


def test_a_home_folder_is_found(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "model").mkdir()
    assert find_folder("~/model") == tmp_path / "model"


def test_a_hub_id_is_fetched_by_the_hubs_own_library(tmp_path, monkeypatch):
    tiny.model().save_pretrained(tmp_path)
    asked: list[Any] = []

    def fetch(hub_id: str, **options: Any) -> str:
        asked.append((hub_id, options))
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetch)
    assert load_model("owner/name", revision="v1").fingerprint() == tiny.model().fingerprint()
    ElmoModel.from_pretrained("owner/name", token="t", cache_dir="c", local_files_only=True)
    assert [hub_id for hub_id, _ in asked] == ["owner/name"] * 2
    assert asked[0][1]["revision"] == "v1"
    assert asked[1][1]["token"] == "t"
    patterns = asked[0][1]["allow_patterns"]
    assert "model.safetensors" in patterns
    assert not [pattern for pattern in patterns if "*" in pattern or pattern.endswith(".pkl")]


@pytest.mark.parametrize(
    "error",
    [
        LocalEntryNotFoundError("not in the cache\nand so on"),
        OSError("no route"),
        ValueError("bad"),
        RuntimeError("from some other library"),
        OSError(""),
    ],
)
def test_whatever_the_hub_says_becomes_one_sentence(error, monkeypatch):
    def fetch(*_: Any, **__: Any) -> str:
        raise error

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetch)
    with pytest.raises(
        ModelError, match=r"no folder 'owner/name', and it could not be downloaded"
    ) as caught:
        load_model("owner/name")
    assert "\n" not in str(caught.value)


@pytest.fixture
def hub(tmp_path, monkeypatch) -> dict[str, Any]:
    """A stand-in for the hub: what it was asked, and in `uploaded` what it was given."""
    asked: dict[str, Any] = {}

    def create_repo(self: HfApi, *, repo_id: str, **options: Any) -> SimpleNamespace:
        asked.update(token=self.token, **options)
        return SimpleNamespace(repo_id=repo_id)

    def upload_folder(self: HfApi, *, repo_id: str, folder_path: Path, **options: Any) -> str:
        asked.update(repo_id=repo_id, **options)
        shutil.copytree(folder_path, tmp_path / "uploaded")
        return f"https://hub/{repo_id}"

    monkeypatch.setattr(HfApi, "create_repo", create_repo)
    monkeypatch.setattr(HfApi, "upload_folder", upload_folder)
    return asked


def test_a_model_is_pushed_with_all_its_files(hub, tmp_path):
    model = tiny.model(tiny.word_and_char_config())
    assert model.push_to_hub("me/tiny", commit_message="first") == "https://hub/me/tiny"
    assert (hub["repo_id"], hub["commit_message"]) == ("me/tiny", "first")
    files = ["README.md", "characters.txt", "config.json", "model.safetensors", "vocabulary.txt"]
    assert peer_files.names(tmp_path / "uploaded") == files
    assert load_model(tmp_path / "uploaded").fingerprint() == model.fingerprint()


@pytest.mark.parametrize("store", ["f32", "f16"])
def test_a_language_model_is_pushed_whole(store, hub, tmp_path):
    model = make_language_model()
    options = {"private": True, "token": "t", "branch": "b", "create_pr": True}
    assert model.push_to_hub("me/lm", store=store, **options) == "https://hub/me/lm"
    assert {
        "private": True,
        "token": "t",
        "revision": "b",
        "create_pr": True,
    }.items() <= hub.items()
    model.save(tmp_path / "saved", store=store)
    assert peer_files.names(tmp_path / "uploaded") == peer_files.names(tmp_path / "saved")
    for path in (tmp_path / "saved").iterdir():
        assert (tmp_path / "uploaded" / path.name).read_bytes() == path.read_bytes()
    assert load_language_model(tmp_path / "uploaded").words == model.words


def test_what_is_saved_in_half_precision_is_pushed_so(hub, tmp_path):
    where = tiny.model().save_pretrained(tmp_path / "tiny", store="bf16", push_to_hub=True)
    assert where == "https://hub/tiny"
    for folder in ("tiny", "uploaded"):
        assert find_store(tmp_path / folder / "model.safetensors") == "bf16"


def test_a_model_that_cannot_be_saved_makes_no_repository(hub):
    model = make_language_model()
    with torch.no_grad():
        model.softmax.weight[0, 0] = 1e9
    with pytest.raises(ModelError, match="store it as bf16"):
        model.push_to_hub("me/lm", store="f16")
    assert hub == {}


@pytest.mark.parametrize(
    "error", [OSError("no route\nat all"), ValueError("a bad name"), OSError("")]
)
def test_a_hub_that_takes_nothing_is_one_sentence(error, monkeypatch):
    def create_repo(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(HfApi, "create_repo", create_repo)
    for model in (tiny.model(), make_language_model()):
        with pytest.raises(ModelError, match=r"could not upload 'me/x' to the hub") as caught:
            model.push_to_hub("me/x")
        assert "\n" not in str(caught.value)


def test_saving_can_push_at_once(tmp_path, monkeypatch):
    pushed: list[Any] = []

    def push(self: ElmoModel, repo_id: str, **options: Any) -> str:
        pushed.append((repo_id, options))
        return "where"

    monkeypatch.setattr(ElmoModel, "push_to_hub", push)
    assert (
        tiny.model().save_pretrained(tmp_path / "tiny", push_to_hub=True, private=True) == "where"
    )
    tiny.model().save_pretrained(tmp_path / "tiny", push_to_hub=True, repo_id="me/x")
    assert pushed == [("tiny", {"store": "f32", "private": True}), ("me/x", {"store": "f32"})]
