"""Build the page of `elmore serve` from web/ into src/elmore/serve/page; `make page` runs this.

    python scripts/build_page.py

Needs Node 20.19 or later and npm. The hash of the sources is written next to the built files, and
a test compares both, so that a change in web/ is not forgotten here.
"""

import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
WEB = ROOT / "web"
PAGE = ROOT / "src" / "elmore" / "serve" / "page"
HASH = PAGE / "sources.sha256"
# What the built files depend on; tests of the page do not change it.
SOURCES = ("src", "public", "index.html", "package.json", "vite.config.ts", "svelte.config.js")


def main() -> None:
    """Install, check and build."""
    for command in (
        ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund"],
        ["npm", "run", "check"],
    ):
        run(command)
    run(["npm", "run", "build"])
    HASH.write_text(hash_sources() + "\n")
    sizes = {path.name: path.stat().st_size for path in sorted(PAGE.rglob("*")) if path.is_file()}
    print(", ".join(f"{name} {size:,} bytes" for name, size in sizes.items()))


def run(command: list[str]) -> None:
    """Run a command in web/; end with its status if it fails."""
    done = subprocess.run(command, cwd=WEB, check=False)
    if done.returncode:
        sys.exit(done.returncode)


def hash_sources() -> str:
    """Return a hash of the names and contents of all sources."""
    digest = hashlib.sha256()
    for path in list_sources():
        name = path.relative_to(WEB).as_posix().encode()
        content = path.read_bytes()
        digest.update(b"%d %s %d\n" % (len(name), name, len(content)))
        digest.update(content)
    return digest.hexdigest()


def list_sources() -> list[Path]:
    """Return the files that the page is built from."""
    found = []
    for name in SOURCES:
        path = WEB / name
        found += [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
    return sorted(found, key=lambda path: path.relative_to(WEB).as_posix())


if __name__ == "__main__":
    main()
