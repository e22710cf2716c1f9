"""Make docs/report.png: the report page of a recorded comparison, as a browser shows it.

python scripts/picture_report.py [CHROMIUM]
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

from elmore.comparison.report_folder import PAGE, write_report
from elmore.comparison.result_files import read_comparison

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results" / "tasks" / "tags.json"
PICTURE = ROOT / "docs" / "report.png"
COMMAND = "elmore compare tags --data ud_ewt/ --words glove.6B.50d.txt"
WIDTH, HEIGHT = 1200, 1390
NUM_COLORS = 128


def main(browser: str = "chromium") -> None:
    """Write the page, take a picture of its top, and reduce the colors."""
    with tempfile.TemporaryDirectory() as folder:
        write_report(read_comparison(RESULTS), Path(folder), command=COMMAND)
        picture = Path(folder) / "page.png"
        subprocess.run(
            [
                browser,
                *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
                *("--disable-background-networking", "--hide-scrollbars"),
                f"--user-data-dir={folder}/profile",
                f"--window-size={WIDTH},{HEIGHT}",
                f"--screenshot={picture}",
                (Path(folder) / PAGE).as_uri(),
            ],
            check=True,
            capture_output=True,
        )
        Image.open(picture).convert("RGB").quantize(NUM_COLORS).save(PICTURE, optimize=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
