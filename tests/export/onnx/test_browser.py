"""The page in examples/browser embeds a typed sentence in Chromium, with elmore's vectors."""

import functools
import http.server
import importlib.util
import json
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

pytest.importorskip("onnx", reason="onnx is missing: pip install '.[onnx]'")

import numpy as np

import elmore
from tests import tiny

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
PACKAGES = ROOT / "build" / "npm" / "node_modules"
CHROMIUM = next(filter(None, map(shutil.which, ["chromium", "chromium-browser"])), None)
SENTENCES = [
    {"text": "The café isn't far .", "layer": 2},
    {"text": "A bank, 日本語 and a" + "é" * 30 + "!", "layer": 0},
]


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """What the page showed, with the tests' trained model."""
    if CHROMIUM is None or shutil.which("node") is None:
        pytest.skip("needs chromium and node")
    for package in ("onnxruntime-web", "playwright-core"):
        if not (PACKAGES / package).is_dir():
            pytest.skip(f"{package} is missing: make test-browser installs it")
    spec = importlib.util.spec_from_file_location(
        "build", ROOT / "examples" / "browser" / "build.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    folder = tmp_path_factory.mktemp("browser")
    module.build(folder, model=str(tiny.TRAINED_MODEL))
    handler = functools.partial(QuietHandler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_port}/"
            driver = Path(__file__).with_name("drive_browser.mjs")
            arguments = [PACKAGES, url, CHROMIUM, json.dumps(SENTENCES)]
            done = subprocess.run(
                ["node", driver, *map(str, arguments)],
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
        finally:
            server.shutdown()
            thread.join()
    assert done.returncode == 0, done.stderr
    return {**json.loads(done.stdout), "url": url}


@pytest.fixture(scope="module")
def embedder():
    return elmore.load(tiny.TRAINED_MODEL)


def test_the_page_asks_no_other_host_and_reports_no_error(shown):
    assert shown["errors"] == []
    assert {url[: len(shown["url"])] for url in shown["requests"]} - {"data:,"} == {shown["url"]}
    assert any(url.endswith(".wasm") for url in shown["requests"])


def test_the_vectors_are_those_of_elmore(shown, embedder):
    found = np.array(shown["vectors"])
    expected = embedder.embed([shown["seen"][0]["tokens"]], layers="all")[0]
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() < 1e-5


def test_the_table_shows_the_cosines_of_the_chosen_layer(shown, embedder):
    tokens = (
        ["The", "café", "isn't", "far", "."],
        ["A", "bank", ",", "日本語", "and", "a" + "é" * 30, "!"],
    )
    for asked, seen, expected in zip(SENTENCES, shown["seen"], tokens, strict=True):
        assert seen["tokens"] == expected
        assert seen["status"].startswith(f"{len(expected)} tokens, 3 layers: ")
        head, *rows = seen["rows"]
        assert (head[1:], [row[0] for row in rows]) == (expected, expected)
        (vectors,) = embedder.embed([expected], layers=asked["layer"])
        units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        values = np.array([[float(value) for value in row[1:]] for row in rows])
        assert np.abs(values - units @ units.T).max() < 0.006
