"""The files of the page: its own, and the vendored libraries."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from starlette.responses import Response

import logreel.outputs.vendor as vendor

#: Media types by suffix; files with others are not served.
MEDIA = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".woff2": "font/woff2",
    ".wasm": "application/wasm",
    ".txt": "text/plain; charset=utf-8",
}
OWN = Path(__file__).parent / "static"
VENDORED = Path(vendor.__file__).parent


@cache
def known_files() -> dict[str, Path]:
    """Return all files that are served, by the path of their address; no other path is ever opened."""
    found = {f"/static/{name}": path for name, path in _below(OWN)}
    found |= {f"/vendor/{name}": path for name, path in _below(VENDORED)}
    page = found.get("/static/index.html")
    return {"/": page, **found} if page is not None else found


def _below(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.rglob("*")):
        if path.suffix in MEDIA and path.is_file():
            yield path.relative_to(folder).as_posix(), path


def static_file(path: str) -> Response | None:
    """Return the file at *path* of an address; None if there is none."""
    found = known_files().get(path)
    return None if found is None else Response(found.read_bytes(), media_type=MEDIA[found.suffix])
