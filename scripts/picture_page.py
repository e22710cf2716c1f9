"""Take the pictures of the page that the documentation shows.

    python scripts/picture_page.py --task entities/ [--out docs/page]

Starts `elmore explore --task FOLDER`, a task trained with `elmore fit ner`, and opens its views in
headless Chromium. Needs node and chromium; `make test-page` installs the packages.
"""

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parents[1]
NUM_COLORS = 256
# The default method loses small spots of color, another one the difference of two whites.
COVERAGE, NONE = Image.Quantize.MAXCOVERAGE, Image.Dither.NONE


def main() -> None:
    """Take all pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", required=True)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "page")
    arguments = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None or not (ROOT / "web" / "node_modules" / "playwright-core").is_dir():
        sys.exit("needs chromium, node and playwright-core; run make test-page first")
    arguments.out.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "elmore", "explore", "--task", arguments.task, "--no-browser"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        address = re.search(r"http://\S+", server.stdout.readline())[0]
        driver = ROOT / "web" / "pictures.mjs"
        subprocess.run(["node", driver, chromium, address, arguments.out.resolve()], check=True)
    finally:
        server.terminate()
        server.wait()
    for path in arguments.out.glob("*.png"):
        with Image.open(path) as picture:
            reduced = picture.convert("RGB").quantize(NUM_COLORS, method=COVERAGE, dither=NONE)
        reduced.save(path, optimize=True)


if __name__ == "__main__":
    main()
