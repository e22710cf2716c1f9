"""The files of the page, which are built from `web/` and ship with elmore."""

import os
from pathlib import Path

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

PAGE = Path(__file__).parent / "page"
_HEADERS = {
    # The page may load from this server only.
    "content-security-policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "cache-control": "no-cache",  # files keep their names when elmore is updated
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


class PageFiles(StaticFiles):
    """Serves files with headers that keep other origins out."""

    def file_response(
        self,
        full_path: str | os.PathLike[str],
        stat_result: os.stat_result,
        scope: Scope,
        status_code: int = 200,
    ) -> Response:
        """Return a file."""
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers.update(_HEADERS)
        return response


def is_page_file(path: str) -> bool:
    """Return whether a path belongs to the page, which has no secrets and needs no key."""
    return path in ("/", "/index.html", "/icon.svg") or path.startswith("/assets/")
