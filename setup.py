"""Build the native kernels. If that fails, elmore is installed without them and uses torch.

All other package settings are in pyproject.toml. Tests import this file for its flags.
"""

import platform
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

NATIVE = Path("src/elmore/kernels/native")

# One library per kind of CPU, all from one source; kernels/library.py chooses at run time.
AVX2 = ["-mavx2", "-mfma", "-mf16c"]
AVX512 = [*AVX2, "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl"]
VARIANTS = {
    "avx2": AVX2,
    "avx512": AVX512,
    "avx512_vnni": [*AVX512, "-mavx512vnni"],
    "avx512_bf16": [*AVX512, "-mavx512vnni", "-mavx512bf16"],
}
# For tests only: the AVX-512 code, with 16 lanes, on a CPU with 8.
WIDE = [*AVX2, "-DELMORE_WIDE"]
# -ffp-contract=off: the code itself says where to fuse a product and a sum.
FLAGS = [
    "-std=c++17",
    "-O3",
    "-ffp-contract=off",
    "-fvisibility=hidden",
    "-Wno-psabi",
    "-g0",
    "-pthread",
]


def describe_libraries() -> list[Extension]:
    """Return the libraries to build: none except on 64-bit x86, and none on Windows."""
    is_x86 = platform.machine().lower() in {"x86_64", "amd64"}
    if not is_x86 or sys.platform == "win32":
        return []
    sources = {"cpu": ("cpu.cpp", [])}
    sources |= {name: ("exports.cpp", flags) for name, flags in VARIANTS.items()}
    return [
        Extension(
            f"elmore.kernels._{name}",
            sources=[str(NATIVE / source)],
            depends=[str(path) for path in sorted(NATIVE.iterdir())],
            extra_compile_args=[*FLAGS, *flags],
            extra_link_args=["-pthread"],
            optional=True,
        )
        for name, (source, flags) in sources.items()
    ]


class BuildLibraries(build_ext):
    """Build each library in its own folder, because all come from the same source file."""

    def build_extension(self, ext: Extension) -> None:
        """Build one library; if that fails, print a note and leave it out."""
        build_temp = self.build_temp
        self.build_temp = str(Path(build_temp) / ext.name)
        try:
            super().build_extension(ext)
        except Exception as error:
            print(f"note: {ext.name} was not built ({error}); elmore works without it, more slowly")
            raise  # setuptools continues, because the extension is optional
        finally:
            self.build_temp = build_temp


class BuildWheel(bdist_wheel):
    """Tag a wheel without libraries as py3-none-any."""

    def run(self) -> None:
        """Build first, to know whether there are libraries."""
        if not self.skip_build:
            self.run_command("build")
        command = self.get_finalized_command("build_ext")
        paths = [Path(command.get_ext_fullpath(ext.name)) for ext in command.extensions]
        if not any(path.exists() for path in paths):
            self.distribution.ext_modules = []
            self.root_is_pure = True
        super().run()


if __name__ == "__main__":
    setup(
        ext_modules=describe_libraries(),
        cmdclass={"build_ext": BuildLibraries, "bdist_wheel": BuildWheel},
    )
