"""Requests and answers of HTTP services.

A service is a list of ``Route``: path, parameters with their types, and kind of answer of each. ``RouteTable`` checks
the parameters of a request, ``document`` describes all requests as OpenAPI, and ``RoutedApp`` answers them in threads.
A slice is streamed while it is written, and aborted if it cannot be completed, so that no client takes a part for the
whole; a request that failed is answered with one sentence.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from threading import Event, Lock, Semaphore, Thread
from typing import Any, Protocol

from starlette import routing
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from logreel.errors import LogError, NotFoundError, UsageError
from logreel.io.append_file import Appender
from logreel.io.two_pass import DryRun, Edit, StreamOut

#: Maximum number of pieces that wait to be sent.
AHEAD = 4
#: Seconds after which a thread releases the lock of the log for others.
TURN = 0.02


class Disconnected(Exception):
    """Raised when the client has disconnected."""


class Stream(Protocol):
    """What can be sent; see SliceStream."""

    name: str
    media: str
    skipped: list[str]

    @property
    def forward(self) -> bool: ...

    def write(self, out: Appender) -> None: ...


class Flow:
    """One response on its way; created in the event loop.

    lock   lock of the log, held by the thread while it works and released while it waits
    check  called between pieces; raises to end the work, e.g. when the file has changed

    size   bytes of the whole response, if known when the first piece arrives; else None
    """

    def __init__(self, lock: Lock, check: Callable[[], None]) -> None:
        self._lock, self._check = lock, check
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()
        self._room = Semaphore(AHEAD)
        self._stopped, self._since = False, 0.0
        self.size: int | None = None

    # ------------------------------------------------------------------------------------- in the thread

    def run(self, stream: Stream, sized: bool) -> None:
        """Write the slice; *sized*: determine its size first. Errors are raised by ``next``."""
        last: Exception | None = None
        try:
            with self._lock:
                self._since = time.monotonic()
                self._write(stream, sized)
                self._check_in()
        except Disconnected:
            return
        except Exception as error:
            # A traceback would keep the data of the thread alive.
            last = error.with_traceback(None)
        self._give(last)

    def _write(self, stream: Stream, sized: bool) -> None:
        edits: list[Edit] = []
        if sized or not stream.forward:
            dry_run = DryRun(stream.name, self._check_in, stream.write)
            stream.write(dry_run)
            edits = dry_run.edits
            self.size = dry_run.tell()
            content = dry_run.content
            if content is not None:
                self._put_piece(content)
                return
        stream.write(StreamOut(stream.name, self._put_piece, edits, self._check_in, stream.write))

    def _check_in(self) -> None:
        """Raise Disconnected or the error of *check*; release the lock for a moment if it was held for TURN seconds."""
        if self._stopped:
            raise Disconnected
        self._check()
        if time.monotonic() - self._since > TURN:
            self._lock.release()
            time.sleep(0.0005)
            self._lock.acquire()
            self._since = time.monotonic()

    def _put_piece(self, data: bytes) -> None:
        if not self._room.acquire(blocking=False):
            self._lock.release()
            try:
                self._room.acquire()
            finally:
                self._lock.acquire()
                self._since = time.monotonic()
        self._check_in()
        self._give(data)

    def _give(self, what: bytes | Exception | None) -> None:
        # RuntimeError: the event loop is closed, so no coroutine waits for the piece.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._queue.put_nowait, what)

    # ----------------------------------------------------------------------------------- in the event loop

    async def next(self) -> bytes | None:
        """Return the next piece, None at the end; raises errors of the thread, Disconnected after ``stop``."""
        if self._stopped:
            raise Disconnected
        data = await self._queue.get()
        if isinstance(data, Exception):
            raise data
        self._room.release()
        return data

    def stop(self) -> None:
        """End the work; the thread stops before its next piece."""
        if not self._stopped:
            self._stopped = True
            self._room.release()
            self._queue.put_nowait(Disconnected())


#: Maximum number of slices sent at the same time; further requests get 503.
MOST_STREAMS = 64
#: Maximum number of logs that they read, where a slice joins several.
MOST_STREAMED_LOGS = 400
#: Seconds without progress after which a client is given up.
PATIENCE = 60.0
Tell = Callable[[str], None]


class Locked(Protocol):
    """Logs that are read by one thread at a time; *check* raises if they must not be read any more."""

    @property
    def lock(self) -> Lock: ...

    def check(self) -> None: ...


class Flows:
    """The responses that are being sent."""

    def __init__(self) -> None:
        self._all: dict[Flow, int] = {}
        self._closed = False

    def add(self, flow: Flow, logs: int = 1) -> None:
        """Register a response that reads so many *logs*; raises HTTPException 503 if there are too many."""
        is_full = bool(self._all) and sum(self._all.values()) + logs > MOST_STREAMED_LOGS
        if self._closed or len(self._all) >= MOST_STREAMS or is_full:
            text = f"{len(self._all)} slices are being sent already: try again later"
            raise HTTPException(503, text, {"Retry-After": "1"})
        self._all[flow] = logs

    def drop(self, flow: Flow) -> None:
        """Stop and unregister a response."""
        flow.stop()
        self._all.pop(flow, None)

    def stop(self) -> None:
        """Abort all responses, and accept no more."""
        self._closed = True
        for flow in self._all:
            flow.stop()


class StreamAnswer:
    """ASGI application that sends a slice, or another stream.

    lost, skipped  for the headers: places where the logs lost data, logs that are left out
    logs           number of logs that are read
    """

    def __init__(
        self,
        cached: Locked,
        stream: Stream,
        flows: Flows,
        tell: Tell,
        lost: int,
        skipped: int = 0,
        logs: int = 1,
    ) -> None:
        self._cached, self._stream, self._flows, self._tell = cached, stream, flows, tell
        self._lost, self._skipped, self._logs = lost, skipped, logs

    def headers(self, size: int | None) -> list[tuple[bytes, bytes]]:
        """Return the headers of the response; *size* in bytes, None if unknown."""
        known = {
            "content-type": self._stream.media,
            "content-disposition": f'attachment; filename="{self._stream.name}"',
            "logreel-lost": str(self._lost),
            "logreel-skipped": str(len(self._stream.skipped) + self._skipped),
        }
        if size is not None:
            known["content-length"] = str(size)
        return [(name.encode(), value.encode()) for name, value in known.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "HEAD":
            await send({"type": "http.response.start", "status": 200, "headers": self.headers(None)})
            await send({"type": "http.response.body", "body": b""})
            return
        flow = Flow(self._cached.lock, self._cached.check)
        self._flows.add(flow, self._logs)
        # HTTP 1.0 has no chunks, so the client needs Content-Length to detect an aborted response.
        sized = scope["http_version"] == "1.0"
        Thread(target=flow.run, args=(self._stream, sized), name="logreel-slice", daemon=True).start()
        watcher = asyncio.create_task(_when_gone(receive, flow.stop))
        try:
            await self._send(flow, send)
        except Disconnected:
            pass
        finally:
            watcher.cancel()
            self._flows.drop(flow)

    async def _send(self, flow: Flow, send: Send) -> None:
        # An error before the first piece is raised, and becomes an error response.
        data = await flow.next()
        headers = self.headers(0 if data is None else flow.size)
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        try:
            while data is not None:
                body = {"type": "http.response.body", "body": data, "more_body": True}
                await asyncio.wait_for(send(body), PATIENCE)
                data = await flow.next()
            await send({"type": "http.response.body", "body": b""})
        except TimeoutError:
            self._tell(f"{self._stream.name}: broken off: nothing was taken for {PATIENCE:.0f} s")
        except Disconnected:
            raise
        except Exception as error:
            # Returning without the end of the body closes the connection, which the client detects.
            why = error.text if isinstance(error, LogError) else repr(error)
            self._tell(f"{self._stream.name}: broken off: {why}")


async def _body(request: Request, most: int) -> bytes:
    """Return the body of a request; raises UsageError for one of more than *most* bytes."""
    body = b""
    async for data in request.stream():
        body += data
        if len(body) > most:
            raise UsageError(f"the content has more than {most} bytes")
    return body


async def _when_gone(receive: Receive, stop: Callable[[], None]) -> None:
    """Call *stop* when the client disconnects."""
    with contextlib.suppress(asyncio.CancelledError):
        while (await receive())["type"] != "http.disconnect":
            pass
        stop()


class ErrorAnswers:
    """Exception handlers of one service.

    tell      called with a sentence about an error of the service itself
    nothing   sentence for an address that does not exist
    broken    sentence for an error of the service itself
    statuses  status of further LogErrors, by class
    """

    def __init__(
        self, tell: Tell, nothing: str, broken: str, statuses: Mapping[type[LogError], int] | None = None
    ) -> None:
        self._tell, self._nothing, self._broken = tell, nothing, broken
        self._statuses = dict(statuses or {})

    @property
    def handlers(self) -> Any:
        """Handlers by class, as Starlette takes them."""
        return dict.fromkeys((LogError, OSError, HTTPException, Exception), self._failed)

    async def _failed(self, request: Request, error: Exception) -> Response:
        headers = None
        match error:
            case HTTPException():
                status, headers = error.status_code, error.headers
                text = self._nothing if status == 404 else error.detail
            case UsageError():
                status, text = 400, error.text
            case NotFoundError() | FileNotFoundError():
                status, text = 404, getattr(error, "text", "the file is gone")
            case LogError():
                known = (code for error_type, code in self._statuses.items() if isinstance(error, error_type))
                status, text = next(known, 422), error.text
            case _:
                status, text = 500, self._broken
                self._tell(f"{request.url.path}: {error!r}")
        return JSONResponse({"error": text}, status, headers)


_NUMBER = re.compile(r"-?\d{1,19}(\.\d{0,9})?(e\+?\d{1,2})?", re.ASCII)
_IN_PATH = re.compile(r"{(\w+)(?::\w+)?}")
#: Status of an answer for which no client waits.
GONE = 499
Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ParameterType:
    """What a parameter may be.

    schema  JSON schema, or a function that returns it
    read    returns the value of a text, given the name of the parameter; raises UsageError
    """

    schema: Schema | Callable[[], Schema]
    read: Callable[[str, str], Any]


TEXT = ParameterType({"type": "string"}, lambda name, text: text)
FLAG = ParameterType({"type": "string", "enum": ["1", "true"]}, lambda name, text: text in ("1", "true"))


def number(least: int, most: int) -> ParameterType:
    """Return the type of an integer from *least* to *most*; a fraction is cut off."""

    def read(name: str, text: str) -> int:
        if not _NUMBER.fullmatch(text) or not least <= (value := int(float(text))) <= most:
            raise UsageError(f"the {name} {text!r:.80} is no number from {least} to {most}")
        return value

    return ParameterType({"type": "integer", "minimum": least, "maximum": most}, read)


def choice(values: Collection[str]) -> ParameterType:
    """Return the type of one of *values*."""

    def read(name: str, text: str) -> str:
        if text not in values:
            raise UsageError(f"no {name} {text!r:.80}; there are: {', '.join(values)}")
        return text

    return ParameterType({"type": "string", "enum": list(values)}, read)


@dataclass(frozen=True, slots=True)
class RequestParameter:
    """A parameter of a request: in the path of its address if that names it, else in the query.

    text      what it is, for people
    default   value if it is missing
    repeated  whether it may be given several times; its value is the list of all
    """

    name: str
    type: ParameterType = TEXT
    text: str = ""
    default: Any = None
    repeated: bool = False

    @property
    def schema(self) -> dict[str, Any]:
        """JSON schema of its values."""
        schema = self.type.schema if isinstance(self.type.schema, Mapping) else self.type.schema()
        if self.repeated:
            return {"type": "array", "items": dict(schema)}
        return {**schema, **({} if self.default is None else {"default": self.default})}


@dataclass(frozen=True, slots=True)
class Result:
    """Kind of the answer to a request.

    media    media type
    schema   name of the JSON schema of the answer, or the schema; None: any object
    headers  texts and JSON types of further headers, by name
    """

    text: str = ""
    schema: str | Schema | None = None
    media: str = "application/json"
    headers: Mapping[str, tuple[str, str]] = field(default_factory=dict)


JSON = Result()
BYTES = Result(media="application/octet-stream", schema={"type": "string", "contentMediaType": "*/*"})
ARROW = Result(
    media="application/vnd.apache.arrow.stream", schema={"type": "string", "contentMediaType": "*/*"}
)


@dataclass(frozen=True, slots=True)
class Route:
    """One request.

    path        of its address; parts in braces are parameters: ``/logs/{id}/slice``
    handler     answers it in a thread; called as the service calls its handlers, with the Parameters as last argument;
                may raise LogError and Cancelled
    parameters  that it may have; those in the path are text unless they are declared
    name, text  for the document
    errors      statuses of errors, besides those that every request can have
    has_head    whether HEAD has an answer of its own
    is_quick    whether it is answered at once, not in a thread
    body_bytes  most bytes of a body, which makes it a POST; 0: a request to read
    """

    path: str
    handler: Callable[..., ASGIApp]
    parameters: tuple[RequestParameter, ...] = ()
    result: Result = JSON
    name: str = ""
    text: str = ""
    errors: tuple[int, ...] = ()
    has_head: bool = False
    is_quick: bool = False
    body_bytes: int = 0

    @property
    def in_path(self) -> tuple[str, ...]:
        """Names of the parameters in the path."""
        return tuple(_IN_PATH.findall(self.path))

    @property
    def known(self) -> dict[str, RequestParameter]:
        """All parameters by name."""
        return {name: RequestParameter(name) for name in self.in_path} | {p.name: p for p in self.parameters}


class Cancelled(Exception):
    """The client does not wait for the answer any more."""


class Parameters:
    """Values of the parameters of a request, checked and converted to their types.

    items    names and texts of the query, as they came
    known    parameters that the request may have, by name
    stop     set when the client has gone
    in_path  texts of the parameters in the path, by name

    body     bytes that the client sent; empty for requests to read

    Raises UsageError for unknown and repeated parameters, and for texts that are no values of their types.
    """

    def __init__(
        self,
        items: Iterable[tuple[str, str]],
        known: Mapping[str, RequestParameter],
        stop: Event | None = None,
        in_path: Mapping[str, str] | None = None,
    ) -> None:
        self._known, self._stop = known, stop or Event()
        self.body = b""
        fixed = in_path or {}
        self._values = {name: [known[name].type.read(name, text)] for name, text in fixed.items()}
        for name, text in items:
            if name not in known or name in fixed:
                # Those that are given once are what people mistype.
                names = sorted((n for n in known if n not in fixed), key=lambda n: known[n].repeated)
                raise UsageError(f"no parameter {name!r:.80}; there are: {', '.join(names) or 'none'}")
            if name in self._values and not known[name].repeated:
                raise UsageError(f"the parameter {name!r} is given twice")
            self._values.setdefault(name, []).append(known[name].type.read(name, text))

    def check(self) -> None:
        """Raise Cancelled if the client has gone; long work calls this every some milliseconds."""
        if self._stop.is_set():
            raise Cancelled

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def all(self, name: str) -> list[Any]:
        """Return all values of a parameter."""
        return self._values.get(name, [])

    def get(self, name: str) -> Any:
        """Return the value of a parameter, or its default; None if the request cannot have it."""
        if name in self._values:
            return self._values[name][0]
        return self._known[name].default if name in self._known else None

    def text(self, name: str) -> str:
        """Return the value of a parameter; raises UsageError if it is missing."""
        value = self.get(name)
        if value is None:
            raise UsageError(f"the parameter {name!r} is missing")
        return str(value)

    def interval(self) -> tuple[int | None, int | None]:
        """Return ``from`` and ``to``; raises UsageError if they are in wrong order."""
        first, last = self.get("from"), self.get("to")
        if first is not None and last is not None and first > last:
            raise UsageError(f"the interval ends at {last} before it begins at {first}")
        return first, last


@dataclass(frozen=True, slots=True)
class RouteTable:
    """All requests of a service, and how their parameters are read.

    longest      most characters of a parameter; None: what fits into a head
    skips_empty  whether empty parameters count as missing; else they are refused
    elsewhere    names of parameters that others check, such as the token
    """

    routes: Sequence[Route]
    longest: int | None = None
    skips_empty: bool = False
    elsewhere: frozenset[str] = frozenset()

    def parameters(self, route: Route, request: Request, stop: Event | None = None) -> Parameters:
        """Return the checked parameters of *request*; raises UsageError."""
        items = []
        for name, text in request.query_params.multi_items():
            if name in self.elsewhere or (self.skips_empty and not text and name in route.known):
                continue
            if self.longest is not None and len(text) > self.longest and name in route.known:
                raise UsageError(f"the parameter {name!r} is longer than {self.longest} characters")
            if not text and name in route.known:
                raise UsageError(f"the parameter {name!r} is empty")
            items.append((name, text))
        return Parameters(items, route.known, stop, request.path_params)


class RoutedApp:
    """ASGI application that answers the requests of *table* in threads.

    answer   calls the handler of a route with the Parameters, in a thread
    more     further routes of Starlette, behind those of the table
    errors   answers to requests that failed
    threads  number of threads that answer
    waiting  most requests that wait for one; None: any number
    """

    def __init__(
        self,
        table: RouteTable,
        answer: Callable[[Route, Parameters], ASGIApp],
        errors: ErrorAnswers,
        *,
        more: Sequence[routing.BaseRoute] = (),
        threads: int = 4,
        waiting: int | None = None,
    ) -> None:
        self._table, self._answer, self._most = table, answer, waiting
        self._pool = ThreadPoolExecutor(threads, "logreel-http")
        self._waiting = 0
        routes = [
            routing.Route(
                route.path, partial(self._serve, route), methods=["POST"] if route.body_bytes else ["GET"]
            )
            for route in table.routes
        ]
        self._app = Starlette(routes=[*routes, *more], exception_handlers=errors.handlers)
        self._app.router.redirect_slashes = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        await self._app(scope, receive, send)

    def close(self) -> None:
        """Stop the threads that answer."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _serve(self, route: Route, request: Request) -> ASGIApp:
        """Answer in a thread; if the client goes meanwhile, its work is stopped."""
        if self._most is not None and self._waiting >= self._most:
            raise HTTPException(503, "too many requests are waiting: try again later", {"Retry-After": "1"})
        stop = Event()
        parameters = self._table.parameters(route, request, stop)
        if route.body_bytes:
            parameters.body = await _body(request, route.body_bytes)
        if route.is_quick:
            return self._answer(route, parameters)
        watcher = asyncio.create_task(_when_gone(request.receive, stop.set))
        self._waiting += 1
        try:
            job = partial(self._unless_gone, route, parameters)
            return await asyncio.get_running_loop().run_in_executor(self._pool, job)
        finally:
            self._waiting -= 1
            stop.set()
            watcher.cancel()

    def _unless_gone(self, route: Route, parameters: Parameters) -> ASGIApp:
        try:
            parameters.check()
            return self._answer(route, parameters)
        except Cancelled:
            return Response(status_code=GONE)


# ------------------------------------------------------------------------------------------------------ OpenAPI


def document(
    routes: Iterable[Route], info: Mapping[str, str], schemas: Mapping[str, Schema], errors: Sequence[int]
) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of *routes*; the token may be in a header or in the query.

    info     title, version and description
    schemas  JSON schemas of the answers by name; ``Error`` is that of errors
    errors   statuses of errors that every request can have
    """
    described = list(routes)
    in_path = {name: route.known[name] for route in described for name in route.in_path}
    return {
        "openapi": "3.1.0",
        "info": dict(info),
        "security": [{"bearer": []}, {"query": []}],
        "paths": {route.path: _operations(route, errors) for route in described},
        "components": {
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "query": {"type": "apiKey", "in": "query", "name": "token"},
            },
            "parameters": {name: _described(parameter, "path") for name, parameter in in_path.items()},
            "responses": {
                "Error": {
                    "description": "One sentence about what is wrong",
                    "content": _content(Result(schema="Error")),
                }
            },
            "schemas": dict(schemas),
        },
    }


def _operations(route: Route, errors: Sequence[int]) -> dict[str, Any]:
    success: dict[str, Any] = {"description": route.result.text, "content": _content(route.result)}
    if route.result.headers:
        success["headers"] = {
            name: {"description": text, "schema": {"type": json_type}}
            for name, (text, json_type) in route.result.headers.items()
        }
    failures = {
        str(status): {"$ref": "#/components/responses/Error"} for status in sorted({*errors, *route.errors})
    }
    operation = {
        "summary": route.text,
        "parameters": [
            *({"$ref": f"#/components/parameters/{name}"} for name in route.in_path),
            *(_described(p, "query") for p in route.parameters if p.name not in route.in_path),
        ],
        "responses": {"200": success, **failures},
    }
    methods = {"get": ""} | ({"head": "head"} if route.has_head else {})
    return {method: {"operationId": prefix + route.name, **operation} for method, prefix in methods.items()}


def _described(parameter: RequestParameter, place: str) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": place,
        "required": place == "path",
        "description": parameter.text,
        "schema": parameter.schema,
    }


def _content(result: Result) -> dict[str, Any]:
    schema = result.schema
    if schema is None:
        schema = {"type": "object"}
    elif isinstance(schema, str):
        schema = {"$ref": f"#/components/schemas/{schema}"}
    return {result.media: {"schema": schema}}
