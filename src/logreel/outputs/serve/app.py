"""The HTTP requests: list of logs, information about a log, and slices."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from logreel._version import __version__
from logreel.errors import LogError, NotFoundError, UsageError
from logreel.io.source import Definitions
from logreel.outputs.serve.answer import Answer, Flows, Tell
from logreel.outputs.serve.catalogue import Catalogue, Entry
from logreel.outputs.serve.log_cache import ChangedError, Logs
from logreel.outputs.serve.openapi import document
from logreel.outputs.slice_stream import SliceRequest, SliceStream, kinds

#: Default and maximum number of logs in a page of the list.
PAGE, MOST = 100, 1000
#: Number of threads that open logs.
OPENERS = 4
Found = TypeVar("Found")


class App:
    """Handlers of all requests; ``asgi`` is the ASGI application."""

    def __init__(self, catalogue: Catalogue, flows: Flows, tell: Tell, definitions: Definitions = ()) -> None:
        self._catalogue, self._flows, self._tell = catalogue, flows, tell
        self._logs = Logs(definitions)
        self._pool = ThreadPoolExecutor(OPENERS, "logreel-open")
        routes = [
            Route("/", self._index),
            Route("/openapi.json", self._openapi),
            Route("/logs", self._list),
            Route("/logs/{id}", self._info),
            Route("/logs/{id}/slice", self._slice),
        ]
        failed: Any = self._failed
        handlers: Any = dict.fromkeys((LogError, OSError, HTTPException, Exception), failed)
        self.asgi: ASGIApp = Starlette(routes=routes, exception_handlers=handlers)
        self.asgi.router.redirect_slashes = False

    def close(self) -> None:
        """Stop the threads that open logs."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _run(self, job: Callable[[], Found]) -> Found:
        return await asyncio.get_running_loop().run_in_executor(self._pool, job)

    # ------------------------------------------------------------------------------------------- requests

    async def _index(self, request: Request) -> Response:
        _parameters(request)
        return JSONResponse(
            {
                "service": f"logreel {__version__}",
                "logs": "/logs",
                "openapi": "/openapi.json",
                "formats": sorted(kinds()),
            }
        )

    async def _openapi(self, request: Request) -> Response:
        _parameters(request)
        return JSONResponse(document(sorted(kinds())))

    async def _list(self, request: Request) -> Response:
        given = _parameters(request, single=("limit", "after"))
        limit = given.get("limit", str(PAGE))
        if not limit.isdecimal() or not 1 <= int(limit) <= MOST:
            raise UsageError(f"the limit {limit!r} is no number from 1 to {MOST}")
        return JSONResponse(await self._run(lambda: self._page(int(limit), given.get("after"))))

    def _page(self, limit: int, after: str | None) -> dict[str, Any]:
        entries = self._catalogue.list()
        ids = [entry.id for entry in entries]
        if after is not None and after not in ids:
            raise UsageError(f"after {after!r}: there is no such log any more, begin again")
        lo = 0 if after is None else ids.index(after) + 1
        page = entries[lo : lo + limit]
        last = page[-1].id if lo + limit < len(entries) else None
        return {"logs": [self._logs.summary(entry) for entry in page], "next": last}

    async def _info(self, request: Request) -> Response:
        _parameters(request)
        entry = await self._entry(request)
        return JSONResponse(await self._run(lambda: self._logs.info(entry)))

    async def _slice(self, request: Request) -> ASGIApp:
        wanted = _slice_request(request)
        entry = await self._entry(request)
        return await self._run(lambda: self._answer(entry, wanted))

    def _answer(self, entry: Entry, request: SliceRequest) -> Answer:
        cached = self._logs.cached(entry)
        with cached.log() as log:
            stream = SliceStream(log, request)
            lost = sum(problem.lost for problem in log.problems)
        return Answer(cached, stream, self._flows, self._tell, lost)

    async def _entry(self, request: Request) -> Entry:
        return await self._run(lambda: self._catalogue.find(request.path_params["id"]))

    # ---------------------------------------------------------------------------------------------- errors

    async def _failed(self, request: Request, error: Exception) -> Response:
        headers = None
        match error:
            case HTTPException():
                status, text, headers = error.status_code, error.detail, error.headers
                if status == 404:
                    text = "there is nothing here; see / and /openapi.json"
            case UsageError():
                status, text = 400, error.text
            case NotFoundError() | FileNotFoundError():
                status, text = 404, getattr(error, "text", "the file is gone")
            case ChangedError():
                status, text = 409, error.text
            case LogError():
                status, text = 422, error.text
            case _:
                status, text = 500, "this cannot be answered: see what the service says"
                self._tell(f"{request.url.path}: {error!r}")
        return JSONResponse({"error": text}, status, headers)


def _slice_request(request: Request) -> SliceRequest:
    """Return the SliceRequest for the query parameters."""
    given = _parameters(request, single=("start", "end", "format"), several=("topic", "exclude"))
    query = request.query_params
    topics = tuple(query.getlist("topic"))
    return SliceRequest(
        topics or None,
        tuple(query.getlist("exclude")),
        given.get("start"),
        given.get("end"),
        given.get("format"),
    )


def _parameters(
    request: Request, single: Collection[str] = (), several: Collection[str] = ()
) -> dict[str, str]:
    """Return the values of the parameters *single*; raises UsageError for unknown, repeated or empty parameters."""
    found: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name == "token":
            continue
        if name not in single and name not in several:
            known = ", ".join((*single, *several)) or "none"
            raise UsageError(f"no parameter {name!r}; there are: {known}")
        if name in found and name in single:
            raise UsageError(f"the parameter {name!r} is given twice")
        if not value:
            raise UsageError(f"the parameter {name!r} is empty")
        found[name] = value
    return found
