"""Put the page, onnxruntime and a model into one folder that any web server can serve.

    python examples/browser/build.py --out build/browser [--model MODEL]
    python -m http.server --bind 127.0.0.1 --directory build/browser

`make browser` does both, and before that installs onnxruntime-web in build/npm. The folder has
everything that the page loads.
"""

import argparse
import shutil
import sys
from pathlib import Path

import elmore
from elmore.export.onnx import write_onnx

HERE = Path(__file__).parent
PAGE = ("index.html", "page.js", "page.css", "elmo.js")
PACKAGES = HERE.parents[1] / "build" / "npm" / "node_modules"
RUNTIME = ("ort.wasm.bundle.min.mjs", "ort-wasm-simd-threaded.wasm")


def build(out: Path, *, model: str | None = None) -> None:
    """Write the folder; without a model, take the English one."""
    runtime = PACKAGES / "onnxruntime-web" / "dist"
    if not runtime.is_dir():
        sys.exit(f"onnxruntime-web is not in {PACKAGES}; `make browser` installs it")
    loaded = elmore.load_model(model)
    characters = loaded.config.characters
    if characters is None or characters.units != "bytes" or loaded.config.words is not None:
        sys.exit("the page spells tokens as bytes; give a model that reads bytes")
    out.mkdir(parents=True, exist_ok=True)
    for path in [*(HERE / name for name in PAGE), *(runtime / name for name in RUNTIME)]:
        shutil.copy(path, out)
    write_onnx(loaded, out / "model.onnx")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--model")
    arguments = parser.parse_args()
    build(arguments.out, model=arguments.model)
