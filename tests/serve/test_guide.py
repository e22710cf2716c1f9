"""The guide's requests and programs work as they are written."""

import contextlib
import io
import json
import re
import shlex
import shutil
import subprocess
import tomllib
from configparser import ConfigParser

import pytest

from tests import pages
from tests.serve.processes import ROOT, serving

PAGE = "guides/serve.md"


@pytest.fixture(scope="module")
def server():
    english = ROOT / "src" / "elmore" / "models" / "english"
    with serving("--model", f"english={english}", "--no-access-log") as running:
        yield running


def find_curls():
    """Return the guide's calls that need no key."""
    text = "\n".join(block.text for block in pages.find_blocks(PAGE) if block.language == "sh")
    lines = text.replace("\\\n", " ").splitlines()
    return [line for line in lines if line.startswith("curl") and "Bearer" not in line]


@pytest.mark.slow
@pytest.mark.parametrize("command", find_curls())
def test_the_calls_are_answered(server, command):
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    arguments = shlex.split(command.replace("http://127.0.0.1:8000", server.url))
    if "english" not in command:
        # The first model of this server is the tiny one, so that scoring is quick.
        arguments = [each.replace("english", "tiny") for each in arguments]
    done = subprocess.run(
        [*arguments, "--silent", "--fail-with-body"], capture_output=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout
    assert json.loads(done.stdout)


@pytest.mark.slow
def test_the_programs_print_what_the_guide_shows(server):
    pytest.importorskip("openai", reason="the openai client is not installed")
    blocks = pages.find_blocks(PAGE)
    programs = [index for index, block in enumerate(blocks) if block.language == "python"]
    assert len(programs) == 2
    for index in programs:
        program = blocks[index].text.replace("http://127.0.0.1:8000", server.url)
        program = program.replace('"format": "raw"}', '"format": "raw", "model": "english"}')
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(program, PAGE, "exec"), {"__name__": "__main__"})
        assert printed.getvalue() == blocks[index + 1].text


def test_there_is_a_call_for_every_route():
    called = set(re.findall(r"8000(/[\w/]+)", "\n".join(find_curls())))
    shown = set(re.findall(r"`POST (/[\w/]+)`", (pages.DOCS / PAGE).read_text()))
    assert shown == {"/v1/embeddings", "/embed", "/embed_all", "/layers", "/tokenize", "/score",
                     "/fill", "/nearest", "/compare", "/similarity", "/predict"}  # fmt: skip
    assert called == shown - {"/predict"} | {"/uses", "/map"}  # /predict needs a trained task


def test_the_unit_names_options_that_exist(elmore_command):
    (unit,) = [block.text for block in pages.find_blocks(PAGE) if block.language == "ini"]
    parsed = ConfigParser(strict=False)
    parsed.optionxform = str
    parsed.read_string(unit)
    shown = elmore_command("serve", "--help").out
    used = re.findall(r"--[\w-]+", parsed["Service"]["ExecStart"])
    text = (pages.DOCS / PAGE).read_text()
    for option in [*used, *re.findall(r"`(--[a-z-]+)", text)]:
        assert option in shown
    assert int(parsed["Service"]["TimeoutStopSec"]) > 30


def test_the_container_installs_an_extra_that_exists():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    (file,) = [block.text for block in pages.find_blocks(PAGE) if block.language == "dockerfile"]
    assert re.findall(r"/src\[(\w+)\]", file) == ["serve"]
    assert "serve" in extras
