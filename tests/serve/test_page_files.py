"""The built page is the one of its sources, needs no key and may load from this server only."""

import importlib.util
import re

import pytest

from elmore.serve.page_files import PAGE, is_page_file
from tests.serve.processes import ROOT
from tests.serve.services import make_service, use


@pytest.fixture(scope="module")
def build_page():
    path = ROOT / "scripts" / "build_page.py"
    if not path.is_file() or not (ROOT / "web").is_dir():
        pytest.skip("web/ is not here")
    spec = importlib.util.spec_from_file_location("build_page", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_built_files_are_those_of_the_sources(build_page):
    recorded = (PAGE / "sources.sha256").read_text().strip()
    assert recorded == build_page.hash_sources(), "web/ has changed; run: make page"
    names = {path.relative_to(build_page.WEB).as_posix() for path in build_page.list_sources()}
    assert {"index.html", "package.json", "src/App.svelte", "src/lib/scatter.ts"} <= names
    assert not [name for name in names if "node_modules" in name]


def test_a_changed_source_changes_the_hash(build_page, tmp_path, monkeypatch):
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.ts").write_text("1")
    monkeypatch.setattr(build_page, "WEB", tmp_path)
    first = build_page.hash_sources()
    (tmp_path / "src" / "a.ts").write_text("2")
    second = build_page.hash_sources()
    (tmp_path / "src" / "a.ts").rename(tmp_path / "src" / "b.ts")
    assert len({first, second, build_page.hash_sources()}) == 3


def test_the_page_refers_to_its_own_files_only():
    page = (PAGE / "index.html").read_text()
    for place in re.findall(r'(?:src|href)="([^"]+)"', page):
        assert place.startswith("./")
        assert (PAGE / place).is_file()
    # Names of other hosts are those of XML formats and of Svelte's error pages, never loaded.
    script = (PAGE / "assets" / "page.js").read_text()
    hosts = set(re.findall(r"https?://([\w.]+)", script))
    assert hosts <= {"www.w3.org", "svelte.dev"}


def test_the_page_needs_no_key_and_keeps_other_origins_out():
    async def talk(client):
        paths = ("/", "/assets/page.js", "/icon.svg", "/uses?word=bank", "/info")
        return [await client.get(path) for path in paths]

    page, script, icon, uses, info = use(make_service(api_key="secret"), talk, static_folder=PAGE)
    assert [answer.status_code for answer in (page, script, icon)] == [200, 200, 200]
    assert (uses.status_code, info.status_code) == (401, 401)
    for answer in (page, script):
        assert "default-src 'self'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["/uses", "/assets", "/metrics", "/docs", "/../etc/passwd"])
def test_other_paths_are_no_files_of_the_page(path):
    assert not is_page_file(path)
