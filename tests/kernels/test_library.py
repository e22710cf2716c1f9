"""Which kernel computes, and what happens where there is none: one line, and the same vectors."""

import json
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest

from elmore.errors import ConfigError
from elmore.kernels import interface, library
from elmore.kernels.library import REBUILD, Feature
from tests import tiny
from tests.kernels import libraries, lstms, variants
from tests.kernels.lstms import Case
from tests.kernels.processes import run_python

CASE = Case(lengths=(4, 2, 1), output_dim=17, cell_dim=33)
OLD_CPU = 'extern "C" int elmore_cpu_features() { return 0; }'

# Reads with the libraries of one folder after another, and says what computed and what was noted.
READ = """
import io, json, logging, os, sys
import numpy as np
from elmore.kernels.library import describe_kernel
from tests.kernels import lstms
from tests.kernels.test_library import CASE

answers = {}
for folder in sys.argv[2:]:
    os.environ["ELMORE_KERNEL_FOLDER"] = folder
    sys.stderr = io.StringIO()
    layers = [lstms.read(CASE.build(), CASE).layers for _ in range(3)][-1]
    answers[os.path.basename(folder)] = [describe_kernel(), sys.stderr.getvalue()]
    np.save(os.path.join(sys.argv[1], os.path.basename(folder)), layers.numpy())
print(json.dumps(answers))
"""
NOT_BUILT = "the native kernels were not built for this machine"
NOT_LOADED = r"the library avx\w+ is missing or cannot be loaded"
REASONS = {
    "nothing_built": NOT_BUILT,
    "old_cpu": "this CPU has no avx2",
    "only_rubbish": NOT_BUILT,
    "rubbish": NOT_LOADED,
    "another_library": NOT_LOADED,
    "no_library_for_this_cpu": NOT_LOADED,
}


def find_library(name: str) -> Path:
    found = next(iter(variants.GIVEN_FOLDER.glob(f"_{name}.*so")), None)
    return found or pytest.skip("the native kernels were not built for this machine")


def fill_folders(root: Path) -> list[Path]:
    """Make one folder for each thing that can be wrong."""
    folders = {name: root / name for name in REASONS}
    for folder in folders.values():
        folder.mkdir()
    cpu = find_library("cpu")
    for name in ("rubbish", "another_library", "no_library_for_this_cpu"):
        shutil.copy(cpu, folders[name] / "_cpu.x.so")
    for path in (folders["only_rubbish"] / "_cpu.x.so", folders["only_rubbish"] / "_avx2.x.so"):
        path.write_bytes(b"\x7fELF, but not for long" * 9)
    (folders["rubbish"] / "_avx2.x.so").write_bytes(b"#!/bin/sh\n")
    shutil.copy(cpu, folders["another_library"] / "_avx2.x.so")
    if libraries.missing_tool() is None:
        source = root / "old.cpp"
        source.write_text(OLD_CPU)
        libraries.compile_library(source, folders["old_cpu"] / "_cpu.x.so", [])
        shutil.copy(find_library("avx2"), folders["old_cpu"] / "_avx2.x.so")
    return list(folders.values())


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What a program says that finds each of the folders."""
    root = tmp_path_factory.mktemp("folders")
    with variants.using("avx2"):  # on a CPU without, the reasons would be others
        result = run_python(READ, root, *fill_folders(root), ELMORE_KERNEL="")
    assert (result.returncode, result.stderr) == (0, ""), result.stderr
    return root, json.loads(result.stdout)


@pytest.mark.slow
@variants.not_sanitized
@pytest.mark.parametrize("name", REASONS)
def test_without_a_kernel_torch_computes_the_same_and_one_line_says_so(answers, name):
    root, notes = answers
    if name == "old_cpu" and (reason := libraries.missing_tool()):
        pytest.skip(reason)
    computes, printed = notes[name]
    assert computes == "torch"
    remedy = "" if name == "old_cpu" else rf"\. {re.escape(REBUILD)}"
    assert re.fullmatch(
        f"note: {REASONS[name]}, so torch is used: same vectors, several times slower"
        rf"{remedy}\n",
        printed,
    )
    with variants.using("avx2"):
        wanted = lstms.read(CASE.build(), CASE).layers.numpy()
    assert np.abs(np.load(root / f"{name}.npy") - wanted).max() < 2e-6


def test_the_remedy_installs_from_a_clone_and_not_from_a_package_index():
    command = REBUILD[REBUILD.index("pip install ") :].split()
    assert [word for word in command[2:] if not word.startswith("-")] == ["."]


def test_threads_that_find_no_kernel_at_once_say_so_once(tmp_path, monkeypatch, caplog):
    monkeypatch.delenv("ELMORE_KERNEL", raising=False)
    monkeypatch.setenv("ELMORE_KERNEL_FOLDER", str(tmp_path))
    meeting = Barrier(4, timeout=30)

    def find_no_features(folder):
        meeting.wait()  # all threads choose before one has chosen

    monkeypatch.setattr(library, "_cpu_features", find_no_features)
    with ThreadPoolExecutor(4) as pool:
        found = [pool.submit(library.find_kernel) for _ in range(4)]
        assert [future.result() for future in found] == [None] * 4
    assert library.find_kernel() is None
    assert len(caplog.records) == 1


def test_systems_without_kernels_get_no_advice_to_build_them(tmp_path, monkeypatch, caplog):
    monkeypatch.delenv("ELMORE_KERNEL", raising=False)
    monkeypatch.setenv("ELMORE_KERNEL_FOLDER", str(tmp_path))
    monkeypatch.setattr(library.platform, "machine", lambda: "arm64")
    assert library.find_kernel() is None
    (record,) = caplog.records
    assert "no native kernels for this system" in record.getMessage()
    assert "pip" not in record.getMessage()


# What was asked for by name must be there.


@pytest.mark.parametrize("choice", ["nonsense", "AVX2", "avx512_vnni"])
def test_an_unknown_kernel_is_one_sentence(monkeypatch, choice):
    monkeypatch.setenv("ELMORE_KERNEL", choice)
    with pytest.raises(ConfigError) as caught:
        library.find_kernel()
    assert str(caught.value) == f"ELMORE_KERNEL is '{choice}'; choose avx512, avx2 or torch"


def test_a_kernel_that_this_cpu_lacks_is_one_sentence(monkeypatch):
    features = library._cpu_features(variants.GIVEN_FOLDER)
    if features is None or Feature.AVX512 in features:
        pytest.skip("this CPU lacks nothing")
    monkeypatch.setenv("ELMORE_KERNEL", "avx512")
    with pytest.raises(ConfigError) as caught:
        library.find_kernel()
    assert str(caught.value) == (
        "ELMORE_KERNEL is 'avx512', but this CPU has no avx512; choose torch or unset it"
    )


def test_a_kernel_that_was_not_built_is_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("ELMORE_KERNEL", "avx2")
    monkeypatch.setenv("ELMORE_KERNEL_FOLDER", str(tmp_path))
    with pytest.raises(ConfigError, match="but the native kernels were not built for this machine"):
        library.find_kernel()


@pytest.mark.slow
@variants.not_sanitized
@pytest.mark.parametrize("choice", ["nonsense", "avx512"])
def test_the_command_line_says_it_in_one_line(tmp_path, choice):
    """With no libraries at hand, avx512 is not to be had on any CPU."""
    tiny.model().save_pretrained(tmp_path / "model")
    (tmp_path / "text.txt").write_text("a bank\n")
    command = "import sys; from elmore.cli.app import main; main()"
    arguments = ["embed", tmp_path / "text.txt", "--model", tmp_path / "model"]
    result = run_python(
        command, *arguments, ELMORE_KERNEL=choice, ELMORE_KERNEL_FOLDER=str(tmp_path)
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert re.fullmatch(rf"elmore: ELMORE_KERNEL is '{choice}'.*\n", result.stderr)


def test_torch_can_always_be_chosen(monkeypatch, tmp_path):
    monkeypatch.setenv("ELMORE_KERNEL", "torch")
    monkeypatch.setenv("ELMORE_KERNEL_FOLDER", str(tmp_path))
    assert library.find_kernel() is None
    assert library.describe_kernel() == "torch"


def test_a_cpu_gets_the_fastest_kernel_it_has(monkeypatch):
    """Otherwise all tests of kernels could be skipped, and nobody would know."""
    cpu_info = Path("/proc/cpuinfo")
    if not cpu_info.exists():
        pytest.skip("this system does not say what its CPU can do")
    find_library("cpu")
    flags = set(re.search(r"^flags\s*: (.*)$", cpu_info.read_text(), re.MULTILINE)[1].split())
    monkeypatch.delenv("ELMORE_KERNEL", raising=False)
    if {"avx512f", "avx512bw", "avx512dq", "avx512vl"} <= flags:
        assert library.describe_kernel().startswith("avx512") or variants.IS_SANITIZED
    else:
        assert library.describe_kernel() == (
            "avx2" if {"avx2", "fma", "f16c"} <= flags else "torch"
        )


# Both sides of the C interface say the same.


def test_python_declares_every_function_with_its_number_of_arguments():
    text = (libraries.SOURCES / "exports.cpp").read_text()
    functions = re.findall(r"^int\d+_t (elmore_\w+)\(([^)]*)\)", text, re.MULTILINE)
    counts = {name: len([a for a in arguments.split(",") if a]) for name, arguments in functions}
    declared = {name: len(arguments) for name, (_, arguments) in interface.SIGNATURES.items()}
    assert declared == counts


@pytest.mark.parametrize("name", ["Matrix", "Layer", "BackwardLayer", "Saved", "Gradients"])
def test_python_declares_every_field_in_its_order(name):
    text = (libraries.SOURCES / "exports.cpp").read_text()
    body = re.search(rf"struct Elmore{name} {{(.*?)}};", text, re.DOTALL)[1]
    fields = [
        field.strip(" *").split()[-1].strip("*")
        for line in re.sub(r"//.*", "", body).split(";")
        for field in line.split(",")
        if field.strip()
    ]
    assert [field for field, _ in getattr(interface, name)._fields_] == fields
