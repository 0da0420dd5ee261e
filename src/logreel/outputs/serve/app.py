"""The HTTP requests: list of logs, information about a log, slices, and questions about one log or all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from logreel._version import __version__
from logreel.errors import UsageError
from logreel.io.source import Definitions
from logreel.log.topic_match import check_pattern
from logreel.ops.inspect.text import level_number
from logreel.outputs.http.answer import Answer, ErrorAnswers, Flows, Tell
from logreel.outputs.serve.catalogue import Catalogue, Entry
from logreel.outputs.serve.log_cache import CachedLog, ChangedError, Logs, LogsTogether
from logreel.outputs.serve.openapi import document
from logreel.outputs.serve.parameters import (
    CHANNELS,
    CLOCK,
    UNIX,
    Wanted,
    one_of,
    page_size,
    parameters,
)
from logreel.outputs.serve.queries import KINDS, Queries, TextFilter
from logreel.outputs.slice_stream import SliceStream, kinds

#: Parameters of pages, and repeated ones that choose lines of text.
PAGES, LINES = ("limit", "after"), ("source", "kind")
#: Number of threads that open logs.
OPENERS = 4
Found = TypeVar("Found")


class App:
    """Handlers of all requests; ``asgi`` is the ASGI application."""

    def __init__(
        self,
        catalogue: Catalogue,
        flows: Flows,
        tell: Tell,
        definitions: Definitions = (),
        decrypt: bool = False,
    ) -> None:
        self._catalogue, self._flows, self._tell = catalogue, flows, tell
        self._options = definitions, decrypt
        self._logs = Logs(*self._options)
        self._queries = Queries(self._logs)
        self._pool = ThreadPoolExecutor(OPENERS, "logreel-open")
        routes = [
            Route("/", self._index),
            Route("/openapi.json", self._openapi),
            Route("/logs", self._list),
            Route("/logs/{id}", self._info),
            Route("/logs/{id}/slice", self._slice),
            Route("/logs/{id}/index", self._log_index),
            Route("/logs/{id}/text", self._log_text),
            Route("/index", self._all_index),
            Route("/query", self._query),
            Route("/slice", self._slice_of_all),
            Route("/text", self._text),
        ]
        errors = ErrorAnswers(
            tell,
            "there is nothing here; see / and /openapi.json",
            "this cannot be answered: see what the service says",
            {ChangedError: 409},
        )
        self.asgi: ASGIApp = Starlette(routes=routes, exception_handlers=errors.handlers)
        self.asgi.router.redirect_slashes = False

    def close(self) -> None:
        """Stop the threads that open logs."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _run(self, job: Callable[[], Found]) -> Found:
        return await asyncio.get_running_loop().run_in_executor(self._pool, job)

    # ------------------------------------------------------------------------------------------- requests

    async def _index(self, request: Request) -> Response:
        parameters(request)
        return JSONResponse(
            {
                "service": f"logreel {__version__}",
                "logs": "/logs",
                "index": "/index",
                "query": "/query",
                "slice": "/slice",
                "text": "/text",
                "openapi": "/openapi.json",
                "formats": sorted(kinds()),
            }
        )

    async def _openapi(self, request: Request) -> Response:
        parameters(request)
        return JSONResponse(document(sorted(kinds())))

    async def _list(self, request: Request) -> Response:
        given = parameters(request, single=("limit", "after"))
        limit = page_size(given)
        return JSONResponse(await self._run(lambda: self._page(limit, given.get("after"))))

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
        parameters(request)
        entry = await self._entry(request)
        return JSONResponse(await self._run(lambda: self._logs.info(entry)))

    async def _slice(self, request: Request) -> ASGIApp:
        given = parameters(request, single=(*UNIX, *CLOCK, "format"), several=CHANNELS)
        wanted = Wanted.of(request, given)
        entry = await self._entry(request)
        return await self._run(lambda: self._answer(entry, wanted, given.get("format")))

    def _answer(self, entry: Entry, wanted: Wanted, kind: str | None, skipped: int = 0) -> Answer:
        return self._answer_of(self._logs.cached(entry), wanted, kind, skipped)

    def _answer_of(
        self, cached: CachedLog | LogsTogether, wanted: Wanted, kind: str | None, skipped: int
    ) -> Answer:
        with cached.log() as log:
            stream = SliceStream(log, wanted.slice_of(log, kind))
            lost = sum(problem.lost for problem in log.problems)
        logs = len(cached) if isinstance(cached, LogsTogether) else 1
        return Answer(cached, stream, self._flows, self._tell, lost, skipped, logs)

    async def _slice_of_all(self, request: Request) -> ASGIApp:
        given = parameters(request, single=(*UNIX, "format", "anyway"), several=CHANNELS)
        wanted, anyway = Wanted.of(request, given), given.get("anyway") in ("1", "true")
        return await self._run(lambda: self._joined_answer(wanted, given.get("format"), anyway))

    def _joined_answer(self, wanted: Wanted, kind: str | None, anyway: bool) -> Answer:
        entries, skipped = self._queries.logs_to_join(self._catalogue.list(), wanted)
        if len(entries) == 1:
            return self._answer(entries[0], wanted, kind, len(skipped))
        return self._answer_of(
            LogsTogether(entries, *self._options, anyway=anyway), wanted, kind, len(skipped)
        )

    async def _log_index(self, request: Request) -> Response:
        given = parameters(request, single=(*UNIX, *CLOCK), several=CHANNELS)
        wanted = Wanted.of(request, given)
        entry = await self._entry(request)
        return JSONResponse(await self._run(lambda: self._queries.index_of(entry, wanted)))

    async def _all_index(self, request: Request) -> Response:
        return await self._ask_all(request, self._queries.index)

    async def _query(self, request: Request) -> Response:
        return await self._ask_all(request, self._queries.query)

    async def _ask_all(self, request: Request, question: Callable[..., dict[str, Any]]) -> Response:
        given = parameters(request, single=(*UNIX, *PAGES), several=CHANNELS)
        wanted, limit = Wanted.of(request, given), page_size(given)
        return JSONResponse(
            await self._run(lambda: question(self._catalogue.list(), wanted, limit, given.get("after")))
        )

    async def _log_text(self, request: Request) -> Response:
        given = parameters(request, single=(*UNIX, *CLOCK, *PAGES, "level"), several=LINES)
        wanted, lines, limit = Wanted.of(request, given), _text_filter(request, given), page_size(given)
        entry = await self._entry(request)
        return JSONResponse(
            await self._run(lambda: self._queries.text_of(entry, wanted, lines, limit, given.get("after")))
        )

    async def _text(self, request: Request) -> Response:
        given = parameters(request, single=(*UNIX, *PAGES, "level"), several=LINES)
        wanted, lines, limit = Wanted.of(request, given), _text_filter(request, given), page_size(given)
        return JSONResponse(
            await self._run(
                lambda: self._queries.text(self._catalogue.list(), wanted, lines, limit, given.get("after"))
            )
        )

    async def _entry(self, request: Request) -> Entry:
        return await self._run(lambda: self._catalogue.find(request.path_params["id"]))


def _text_filter(request: Request, given: Mapping[str, str]) -> TextFilter:
    """Return which lines of text the parameters want; raises UsageError."""
    level = given.get("level")
    sources = tuple(request.query_params.getlist("source"))
    for source in sources:
        check_pattern(source)
    kinds = one_of(request.query_params.getlist("kind"), KINDS, "kind")
    return TextFilter(None if level is None else level_number(level), sources, frozenset(kinds))
