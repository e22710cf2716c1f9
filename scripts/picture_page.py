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

import numpy as np
from PIL import Image

ROOT = Path(__file__).parents[1]
NUM_COLORS = 256
NUM_EXACT = 64


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
            reduced = reduce_colors(picture.convert("RGB"))
        reduced.save(path, optimize=True)


def reduce_colors(picture: Image.Image) -> Image.Image:
    """Return a picture of a third of the size.

    The most frequent colors are kept as they are, such as the two whites of the page. The others
    are chosen so that small spots of color survive.
    """
    counts = sorted(picture.getcolors(maxcolors=1 << 24) or [], reverse=True)
    exact = [color for _, color in counts[:NUM_EXACT]]
    spread = picture.quantize(NUM_COLORS - len(exact), method=Image.Quantize.MAXCOVERAGE)
    others = (spread.getpalette() or [])[: 3 * (NUM_COLORS - len(exact))]
    palette = np.array([*(value for color in exact for value in color), *others]).reshape(-1, 3)
    pixels = np.asarray(picture, np.int64)
    colors, places = np.unique(pixels.reshape(-1, 3), axis=0, return_inverse=True)
    distances = np.square(colors[:, np.newaxis] - palette).sum(axis=2)
    indices = distances.argmin(axis=1)[places.reshape(pixels.shape[:2])]
    reduced = Image.fromarray(indices.astype(np.uint8), "P")
    reduced.putpalette(palette.ravel().tolist())
    return reduced


if __name__ == "__main__":
    main()
