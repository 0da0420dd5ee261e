"""The requests of ``logreel serve``, and the server that answers them.

``ROUTES`` are all requests: list of logs, information about a log, slices, and questions about one log or all.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any, Unpack
from urllib.parse import quote

from starlette.responses import JSONResponse
from starlette.types import ASGIApp

from logreel._version import __version__
from logreel.errors import UsageError
from logreel.io.source import Definitions
from logreel.log.topic_match import check_pattern
from logreel.ops.inspect.text import level_number
from logreel.ops.selection import check_keywords, keywords
from logreel.outputs.http.routes import (
    FLAG,
    TEXT,
    ErrorAnswers,
    Flows,
    Parameters,
    ParameterType,
    RequestParameter,
    Result,
    Route,
    RoutedApp,
    RouteTable,
    StreamAnswer,
    Tell,
    choice,
    document,
    number,
)
from logreel.outputs.http.server import Endpoint, OpenEndpointOptions
from logreel.outputs.serve.catalogue import (
    CachedLog,
    ChangedError,
    LogCatalogue,
    LogsTogether,
    OpenLogs,
    ServedLog,
)
from logreel.outputs.serve.queries import KINDS, Queries, Question, TextFilter
from logreel.outputs.slice_stream import SliceStream, kinds


def schemas() -> dict[str, Any]:
    """Return the schemas; all members of an object are always there."""
    text, integer = {"type": "string"}, {"type": "integer"}
    maybe = {"type": ["integer", "null"], "format": "int64"}
    after = {"type": ["string", "null"], "description": "For `after`; null at the end"}
    span = {"from_nsec": maybe, "to_nsec": maybe, "start_ns": maybe, "end_ns": maybe}
    problem = _object(code=text, offset=integer, size=integer, lost={"type": "boolean"}, text=text)
    return {
        "Error": _object(error=text),
        "Index": _object(
            service=text,
            logs=text,
            index=text,
            query=text,
            slice=text,
            text=text,
            openapi=text,
            formats={"type": "array", "items": text},
        ),
        "Kinds": _object(kinds=_array("Kind"), logs=_array("Part"), skipped=_array("Skipped"), next=after),
        "Found": _object(
            logs={
                "type": "array",
                "items": {
                    "allOf": [
                        {"$ref": "#/components/schemas/Part"},
                        _object(channels=_array("ChannelPart")),
                    ]
                },
            },
            skipped=_array("Skipped"),
            next=after,
        ),
        "Lines": _object(lines=_array("Line"), skipped=_array("Skipped"), next=after),
        "Kind": _object(
            topic=text,
            type=text,
            encoding=text,
            messages=integer,
            from_nsec=maybe,
            to_nsec=maybe,
            facts={
                "type": "object",
                "description": "Values by key, for conditions key=value",
                "additionalProperties": {"type": "array", "items": text},
            },
            logs={"type": "array", "items": text, "description": "Ids"},
        ),
        "Part": _object(
            id=text,
            name=text,
            format=text,
            size=integer,
            epoch={"enum": ["unix", "boot", "start"]},
            utc_offset_ns=maybe,
            messages=integer,
            **span,
        ),
        "ChannelPart": _object(topic=text, type=text, encoding=text, messages=integer, **span),
        "Skipped": _object(id=text, name=text, why=text),
        "Line": _object(
            log={"type": "string", "description": "Id"},
            time_ns=integer,
            kind={"enum": ["text", "comment", "event", "check"]},
            level={"type": ["integer", "null"], "description": "0 (emergency) to 7 (debug)"},
            source=text,
            text=text,
        ),
        "List": _object(
            logs={"type": "array", "items": {"$ref": "#/components/schemas/Log"}},
            next=after,
        ),
        "Log": _object(
            id=text,
            name=text,
            format=text,
            size=integer,
            modified_ns=integer,
            version={"type": ["string", "null"]},
            epoch={"enum": ["unix", "boot", "start", None]},
            start_ns=maybe,
            end_ns=maybe,
            utc_offset_ns=maybe,
            messages=maybe,
            channels=maybe,
            problems=maybe,
            error={"type": ["string", "null"], "description": "Why it cannot be opened"},
        ),
        "Info": _object(
            path=text,
            format=text,
            version=text,
            size=integer,
            epoch=text,
            start_ns=maybe,
            end_ns=maybe,
            messages=integer,
            channels={"type": "array", "items": {"$ref": "#/components/schemas/Channel"}},
            metadata={"type": "object"},
            attachments={"type": "array", "items": {"type": "object"}},
            segments={"type": "array", "items": {"$ref": "#/components/schemas/Segment"}},
            problems={"type": "array", "items": {"$ref": "#/components/schemas/Problem"}},
        ),
        "Channel": _object(
            topic=text, type=text, encoding=text, messages=integer, bytes=maybe, start_ns=maybe, end_ns=maybe
        ),
        "Segment": _object(number=integer, offset=integer, start_ns=maybe, end_ns=maybe, messages=integer),
        "Problem": problem,
    }


def _array(schema: str) -> dict[str, Any]:
    return {"type": "array", "items": {"$ref": f"#/components/schemas/{schema}"}}


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with required *properties*."""
    return {"type": "object", "required": list(properties), "properties": properties}


#: Default and maximum number of items in a page.
PAGE, MOST = 100, 1000
#: Number of threads that open logs.
OPENERS = 4
_SECONDS = re.compile(r"-?\d{1,10}(\.\d{1,9})?", re.ASCII)
_WHOLE = re.compile(r"-?\d{1,19}", re.ASCII)
_INT64 = range(-(1 << 63), 1 << 63)


class App:
    """What the requests are about: logs, and questions about them; ``asgi`` is the ASGI application."""

    def __init__(
        self,
        catalogue: LogCatalogue,
        flows: Flows,
        tell: Tell,
        definitions: Definitions = (),
        decrypt: bool = False,
    ) -> None:
        self._catalogue, self._flows, self._tell = catalogue, flows, tell
        self._options = definitions, decrypt
        self._logs = OpenLogs(*self._options)
        self._queries = Queries(self._logs)
        errors = ErrorAnswers(
            tell,
            "there is nothing here; see / and /openapi.json",
            "this cannot be answered: see what the service says",
            {ChangedError: 409},
        )
        # The guard has checked the token.
        table = RouteTable(ROUTES, elsewhere=frozenset({"token"}))
        self.asgi = RoutedApp(table, self._answer, errors, threads=OPENERS)

    def close(self) -> None:
        """Stop the threads that open logs."""
        self.asgi.close()

    def _answer(self, route: Route, parameters: Parameters) -> ASGIApp:
        answer = route.handler(self, parameters)
        return JSONResponse(answer) if isinstance(answer, dict) else answer

    # ------------------------------------------------------------------------------------------- requests

    def index(self, parameters: Parameters) -> Any:
        """Return what there is."""
        return {
            "service": f"logreel {__version__}",
            "logs": "/logs",
            "index": "/index",
            "query": "/query",
            "slice": "/slice",
            "text": "/text",
            "openapi": "/openapi.json",
            "formats": sorted(kinds()),
        }

    def openapi(self, parameters: Parameters) -> Any:
        """Return the OpenAPI document of the service."""
        return openapi()

    def logs(self, parameters: Parameters) -> Any:
        """Return a page of the list of logs."""
        after = parameters.get("after")
        entries = self._catalogue.list()
        ids = [entry.id for entry in entries]
        if after is not None and after not in ids:
            raise UsageError(f"after {after!r}: there is no such log any more, begin again")
        lo = 0 if after is None else ids.index(after) + 1
        hi = lo + parameters.get("limit")
        page = entries[lo:hi]
        last = page[-1].id if hi < len(entries) else None
        return {"logs": [self._logs.summary(entry) for entry in page], "next": last}

    def info(self, parameters: Parameters) -> Any:
        """Return what a log is and holds."""
        return self._logs.info(self._entry(parameters))

    def slice(self, parameters: Parameters) -> Any:
        """Return a part of a log as a stream."""
        wanted = Question.of(parameters)
        return self._slice_of(self._entry(parameters), wanted, parameters.get("format"))

    def _slice_of(
        self, entry: ServedLog, wanted: Question, format: str | None, skipped: int = 0
    ) -> StreamAnswer:
        return self._stream(self._logs.cached(entry), wanted, format, skipped)

    def _stream(
        self, cached: CachedLog | LogsTogether, wanted: Question, format: str | None, skipped: int
    ) -> StreamAnswer:
        with cached.log() as log:
            stream = SliceStream(log, wanted.slice_of(log, format))
            lost = sum(problem.lost for problem in log.problems)
        logs = len(cached) if isinstance(cached, LogsTogether) else 1
        return StreamAnswer(cached, stream, self._flows, self._tell, lost, skipped, logs)

    def slice_of_all(self, parameters: Parameters) -> Any:
        """Return one log with a part of all logs, as a stream."""
        wanted, wanted_format = Question.of(parameters), parameters.get("format")
        entries, skipped = self._queries.logs_to_join(self._catalogue.list(), wanted)
        if len(entries) == 1:
            return self._slice_of(entries[0], wanted, wanted_format, len(skipped))
        together = LogsTogether(entries, *self._options, anyway=bool(parameters.get("anyway")))
        return self._stream(together, wanted, wanted_format, len(skipped))

    def log_index(self, parameters: Parameters) -> Any:
        """Return the kinds of data in a log."""
        wanted = Question.of(parameters)
        return self._queries.index_of(self._entry(parameters), wanted)

    def index_of_all(self, parameters: Parameters) -> Any:
        """Return the kinds of data in all logs."""
        return self._queries.index(self._catalogue.list(), Question.of(parameters), *_page(parameters))

    def query(self, parameters: Parameters) -> Any:
        """Return the logs that have wanted messages."""
        return self._queries.query(self._catalogue.list(), Question.of(parameters), *_page(parameters))

    def log_text(self, parameters: Parameters) -> Any:
        """Return lines of text of a log."""
        wanted, lines = Question.of(parameters), _lines_of(parameters)
        return self._queries.text_of(self._entry(parameters), wanted, lines, *_page(parameters))

    def text(self, parameters: Parameters) -> Any:
        """Return lines of text of all logs."""
        wanted, lines = Question.of(parameters), _lines_of(parameters)
        return self._queries.text(self._catalogue.list(), wanted, lines, *_page(parameters))

    def _entry(self, parameters: Parameters) -> ServedLog:
        return self._catalogue.find(parameters.text("id"))


def _page(parameters: Parameters) -> tuple[int, str | None]:
    return parameters.get("limit"), parameters.get("after")


def _lines_of(parameters: Parameters) -> TextFilter:
    return TextFilter(
        parameters.get("level"), tuple(parameters.all("source")), frozenset(parameters.all("kind"))
    )


# ------------------------------------------------------------------------------------------------- parameters


def _pattern(name: str, text: str) -> str:
    """Return *text*, a name or pattern; raises UsageError for an invalid regular expression."""
    check_pattern(text)
    return text


def _unix(name: str, text: str, unit: str) -> int:
    """Return a time in ns since 1970; raises UsageError."""
    if unit == "seconds":
        ns = int(Decimal(text) * 10**9) if _SECONDS.fullmatch(text) else None
    else:
        ns = int(text) if _WHOLE.fullmatch(text) else None
    if ns is None or ns not in _INT64:
        raise UsageError(f"{name} {text!r} is no number of {unit} since 1970")
    return ns


_STRING = {"type": "string"}
_PATTERN = ParameterType(_STRING, _pattern)
_CLOCK_TIME = ParameterType({**_STRING, "examples": ["+12.5s"]}, TEXT.read)
_UNIX_NS = ParameterType({"type": "integer", "format": "int64"}, partial(_unix, unit="integer nanoseconds"))
_UNIX_SECONDS = ParameterType({"type": "number"}, partial(_unix, unit="seconds"))
_LEVEL = ParameterType(_STRING, lambda name, text: level_number(text))
# Which formats there are is known when all plug-ins are loaded; the stream checks it.
_FORMAT = ParameterType(lambda: {**_STRING, "enum": sorted(kinds())}, TEXT.read)

_SPELLED = "a text, a shell pattern, or re: and a regular expression"
_TIMES = (
    "12.5 or +12.5s from the start, -30s from the end, 00:01:30, 2024-05-01T12:00:00Z, 1714564800.5 since 1970, or "
    "log:598.6 and 123ns by the log's own clock"
)
_ID = RequestParameter("id", text="Of a log, as the list has it")
CHANNELS = (
    RequestParameter(
        "topic",
        _PATTERN,
        f"Name, {_SPELLED}, or key=value, several joined by commas; all without it",
        repeated=True,
    ),
    RequestParameter("exclude", _PATTERN, "Written like topic: channels to leave out", repeated=True),
    RequestParameter("channel", _PATTERN, f"Name of a channel: {_SPELLED}", repeated=True),
    RequestParameter("type", _PATTERN, f"Name of the schema: {_SPELLED}", repeated=True),
    RequestParameter("service", _PATTERN, f"Service of requests and responses: {_SPELLED}", repeated=True),
)
UNIX = (
    RequestParameter("from_nsec", _UNIX_NS, "First moment in ns since 1970"),
    RequestParameter("from_sec", _UNIX_SECONDS, "The same in seconds"),
    RequestParameter("to_nsec", _UNIX_NS, "End in ns since 1970, itself not included"),
    RequestParameter("to_sec", _UNIX_SECONDS, "The same in seconds"),
)
CLOCK = (
    RequestParameter("start", _CLOCK_TIME, f"First moment: {_TIMES}"),
    RequestParameter("end", _CLOCK_TIME, "End, itself not included; written like start"),
)
LINES = (
    RequestParameter(
        "level", _LEVEL, "Least severe level, by name or 0 to 7; lines without a level are included"
    ),
    RequestParameter("source", _PATTERN, f"Sender: {_SPELLED}", repeated=True),
    RequestParameter(
        "kind", choice(KINDS), "Messages, comments of operators, or events; all without it", repeated=True
    ),
)
_AS_FORMAT = RequestParameter("format", _FORMAT, "Of the slice; that of the log without it")
_ANYWAY = RequestParameter("anyway", FLAG, "Also one slice of logs of different robots")


def _pages(items: str, after: str = "As `next` of the answer before says") -> tuple[RequestParameter, ...]:
    return (
        RequestParameter("limit", number(1, MOST), f"{items} in the answer", PAGE),
        RequestParameter("after", TEXT, after),
    )


# ----------------------------------------------------------------------------------------------------- routes

_OF_A_LOG = (404, 409, 422, 500)
_OF_LOGS = Result("A page of logs, by name", "Kinds")
_SLICE = Result(
    "The bytes of one file; one that is not complete is broken off",
    {"type": "string", "contentMediaType": "*/*"},
    "application/octet-stream",
    {
        "Content-Disposition": ("A file name", "string"),
        "Logreel-Lost": ("Places where the log lost data, as far as is known", "integer"),
        "Logreel-Skipped": ("Things left out, as far as was known at the first byte", "integer"),
    },
)
ROUTES = (
    Route("/", App.index, (), Result("An index", "Index"), "index", "What there is", is_quick=True),
    Route("/openapi.json", App.openapi, (), Result("OpenAPI 3.1"), "openapi", "This document", is_quick=True),
    Route(
        "/logs",
        App.logs,
        _pages("Logs", "Id of a log: those behind it, as `next` says"),
        Result("A page of the list", "List"),
        "list",
        "The logs that there are now, by name",
        (500,),
    ),
    Route(
        "/logs/{id}",
        App.info,
        (_ID,),
        Result("As `logreel info --json`", "Info"),
        "info",
        "What a log is and holds",
        _OF_A_LOG,
    ),
    Route(
        "/logs/{id}/slice",
        App.slice,
        (_ID, *CHANNELS, *UNIX, *CLOCK, _AS_FORMAT),
        _SLICE,
        "slice",
        "A part of a log, as logreel slice or logreel convert writes it",
        (*_OF_A_LOG, 503),
        has_head=True,
    ),
    Route(
        "/logs/{id}/index",
        App.log_index,
        (_ID, *CHANNELS, *UNIX, *CLOCK),
        Result("One page", "Kinds"),
        "logIndex",
        "Kinds of data in a log, and their times",
        _OF_A_LOG,
    ),
    Route(
        "/logs/{id}/text",
        App.log_text,
        (_ID, *LINES, *UNIX, *CLOCK, *_pages("Lines")),
        Result("A page of lines", "Lines"),
        "logText",
        "Text, comments and events of a log",
        _OF_A_LOG,
    ),
    Route(
        "/index",
        App.index_of_all,
        (*CHANNELS, *UNIX, *_pages("Logs")),
        _OF_LOGS,
        "indexOfAll",
        "Kinds of data in all logs, and their times",
        (500,),
    ),
    Route(
        "/query",
        App.query,
        (*CHANNELS, *UNIX, *_pages("Logs")),
        Result("A page of logs, by name", "Found"),
        "query",
        "Logs with messages of some kind in an interval",
        (500,),
    ),
    Route(
        "/text",
        App.text,
        (*LINES, *UNIX, *_pages("Lines")),
        Result("A page of lines", "Lines"),
        "text",
        "Text, comments and events of all logs, log by log",
        (500,),
    ),
    Route(
        "/slice",
        App.slice_of_all,
        (*CHANNELS, *UNIX, _AS_FORMAT, _ANYWAY),
        _SLICE,
        "sliceOfAll",
        "One log with a part of all logs",
        (*_OF_A_LOG, 503),
        has_head=True,
    ),
)


def openapi() -> dict[str, Any]:
    """Return the OpenAPI document of the service."""
    info = {
        "title": "logreel serve",
        "version": __version__,
        "description": "Slices of robot and vehicle logs. Times are integer ns of the clock of each log.",
    }
    # Parameters, token, Host and Origin are checked for every request.
    return document(ROUTES, info, schemas(), (400, 401, 403))


# ----------------------------------------------------------------------------------------------------- server


def _discard(text: str) -> None:
    """Discard *text*."""


class Service:
    """Serves the logs at and below *paths* and slices of them over HTTP, read-only; listens when created.

    tell         called with sentences about events; None: not reported
    definitions  as for ``logreel.open``; types are for topics of any of the logs
    decrypt      True: also send slices of encrypted logs, which are not encrypted
    options      members of ``Endpoint``: host, port, token, allow_hosts, allow_origins, and log to report every request

    Raises UsageError for an invalid token or origin, LogError if it cannot listen, OSError for a missing path,
    UnknownFormatError for a file that is no log.
    """

    @keywords(OpenEndpointOptions, Endpoint)
    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        *,
        tell: Callable[[str], None] | None = None,
        definitions: Definitions = (),
        decrypt: bool = False,
        **options: Unpack[OpenEndpointOptions],
    ) -> None:
        check_keywords(Service.__init__, options)
        endpoint = Endpoint.of(options)
        #: The token required of requests.
        self.token = endpoint.token or ""
        tell = tell or _discard
        self._flows = Flows()
        self._app = App(LogCatalogue(paths), self._flows, tell, definitions, decrypt)
        self._server = endpoint.listen()
        #: URL of the service, without the token.
        self.url = self._server.url
        self._guard = endpoint.guarded(self._app.asgi, tell)

    @property
    def address(self) -> str:
        """URL of the service, with the token."""
        return f"{self.url}?token={quote(self.token, safe='')}"

    def run(self) -> None:
        """Serve until ``stop`` or a signal; Ctrl-C then raises KeyboardInterrupt."""
        try:
            self._server.run(self._guard, self._flows.stop)
        finally:
            self._app.close()

    def stop(self) -> None:
        """Abort all responses and end ``run``; can be called from any thread."""
        self._server.stop()
