"""The HTTP requests of the viewer: files of the page without a token, everything about logs with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from starlette import routing
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

import logreel.outputs.vendor as vendor
from logreel.errors import MissingDependencyError
from logreel.outputs.http.routes import ErrorAnswers, Parameters, Route, RoutedApp, RouteTable
from logreel.outputs.view import channels, overview, series, session, spatial
from logreel.outputs.view.limits import CHARACTERS, THREADS, WAITING
from logreel.outputs.view.session import Session

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
    files = {f"/static/{name}": path for name, path in _below(OWN)}
    files |= {f"/vendor/{name}": path for name, path in _below(VENDORED)}
    page = files.get("/static/index.html")
    return {"/": page, **files} if page is not None else files


def _below(folder: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.rglob("*")):
        if path.suffix in MEDIA and path.is_file():
            yield path.relative_to(folder).as_posix(), path


def static_file(path: str) -> Response | None:
    """Return the file at *path* of an address; None if there is none."""
    file = known_files().get(path)
    return None if file is None else Response(file.read_bytes(), media_type=MEDIA[file.suffix])


#: Modules with requests; each has a function ``routes``.
ROOMS = (session, channels, overview, series, spatial)


def routes() -> list[Route]:
    """Return all requests below ``/api/`` except the stream of events."""
    return [route for room in ROOMS for route in room.routes()]


def app_of(session: Session, tell: Callable[[str], None]) -> RoutedApp:
    """Return the ASGI application of a viewer; *tell* is called with a sentence about an error of the viewer itself.

    Handlers are called with the Session, the ViewLog if the path has one, and the Parameters.
    """

    def answer(route: Route, parameters: Parameters) -> ASGIApp:
        if "log" not in route.in_path:
            return route.handler(session, parameters)
        return route.handler(session, session.log(parameters.text("log")), parameters)

    errors = ErrorAnswers(
        tell,
        "there is nothing here",
        "this cannot be answered: see what the viewer says where it was started",
        {MissingDependencyError: 501},
    )
    table = RouteTable(routes(), longest=CHARACTERS, skips_empty=True)
    more = [routing.Route("/api/events", session.events), routing.Route("/{path:path}", _static)]
    return RoutedApp(table, answer, errors, more=more, threads=THREADS, waiting=WAITING)


async def _static(request: Request) -> Response:
    response = static_file(request.url.path)
    if response is None:
        raise HTTPException(404)
    return response
