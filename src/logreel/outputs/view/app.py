"""The HTTP requests of the viewer: files of the page without a token, everything about logs with it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from threading import Event

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

import logreel.outputs.vendor as vendor
from logreel.errors import MissingDependencyError
from logreel.outputs.http.answer import ErrorAnswers
from logreel.outputs.view import (
    channels,
    charts,
    export,
    message,
    overview,
    problems,
    robot_parameters,
    series,
    session,
    spatial,
    spectrogram,
    text,
)
from logreel.outputs.view.limits import THREADS, WAITING
from logreel.outputs.view.parameters import Cancelled, Parameters
from logreel.outputs.view.route import ViewRoute
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


#: Modules with requests; each has a function ``routes``.
ROOMS = (
    session,
    channels,
    overview,
    charts,
    series,
    spectrogram,
    message,
    text,
    robot_parameters,
    problems,
    export,
    spatial,
)
#: Status of an answer for which no client waits.
GONE = 499


def routes() -> list[ViewRoute]:
    """Return all requests below ``/api/`` except the stream of events."""
    return [route for room in ROOMS for route in room.routes()]


class App:
    """Handlers of all requests; ``asgi`` is the ASGI application.

    tell  called with a sentence about an error of the viewer itself
    """

    def __init__(self, session: Session, tell: Callable[[str], None]) -> None:
        self._session = session
        self._pool = ThreadPoolExecutor(THREADS, "logreel-view")
        self._waiting = 0
        api = [Route(route.address, partial(self._api, route)) for route in routes()]
        every = [*api, Route("/api/events", session.events), Route("/{path:path}", _static)]
        errors = ErrorAnswers(
            tell,
            "there is nothing here",
            "this cannot be answered: see what the viewer says where it was started",
            {MissingDependencyError: 501},
        )
        self.asgi: ASGIApp = Starlette(routes=every, exception_handlers=errors.handlers)
        self.asgi.router.redirect_slashes = False

    def close(self) -> None:
        """Stop the threads that answer."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _api(self, route: ViewRoute, request: Request) -> ASGIApp:
        """Answer in a thread; if the client goes meanwhile, its work is stopped."""
        if self._waiting >= WAITING:
            raise HTTPException(503, "too many requests are waiting: try again later", {"Retry-After": "1"})
        stop = Event()
        items = [*request.query_params.multi_items(), *_parts(request)]
        given = Parameters(items, (*route.known, *(name for name, _ in _parts(request))), stop)
        watcher = asyncio.create_task(_watch(request, stop))
        self._waiting += 1
        try:
            job = partial(self._answer, route, request.path_params.get("log"), given)
            return await asyncio.get_running_loop().run_in_executor(self._pool, job)
        finally:
            self._waiting -= 1
            stop.set()
            watcher.cancel()

    def _answer(self, route: ViewRoute, id: str | None, given: Parameters) -> ASGIApp:
        try:
            given.check()
            if not route.of_log:
                answer: ASGIApp = route.handler(self._session, given)
            else:
                answer = route.handler(self._session, self._session.log(id or ""), given)
        except Cancelled:
            return Response(status_code=GONE)
        return answer


def _parts(request: Request) -> list[tuple[str, str]]:
    """Return the parts of the path that are parameters."""
    return [(name, str(value)) for name, value in request.path_params.items() if name != "log"]


async def _watch(request: Request, stop: Event) -> None:
    """Set *stop* when the client has gone."""
    with contextlib.suppress(asyncio.CancelledError):
        while (await request.receive())["type"] != "http.disconnect":
            pass
        stop.set()


async def _static(request: Request) -> Response:
    found = static_file(request.url.path)
    if found is None:
        raise HTTPException(404)
    return found
