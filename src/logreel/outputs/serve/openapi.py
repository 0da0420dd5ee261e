"""OpenAPI document of the service."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from logreel._version import __version__

_TIME = (
    "12.5 or +12.5s from the start, -30s from the end, 00:01:30, 2024-05-01T12:00:00Z, 1714564800.5 since 1970, or "
    "log:598.6 and 123ns by the log's own clock"
)


def document(kinds: Sequence[str]) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document; *kinds* are the formats of slices."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "logreel serve",
            "version": __version__,
            "description": "Slices of robot and vehicle logs. Times are integer ns of the clock of each log.",
        },
        "security": [{"bearer": []}, {"query": []}],
        "paths": {
            "/": {"get": _get("index", "What there is", "An index", _json("Index"))},
            "/openapi.json": {"get": _get("openapi", "This document", "OpenAPI 3.1", _json(None))},
            "/logs": {"get": _list()},
            "/logs/{id}": {"get": _info()},
            "/logs/{id}/slice": {"get": _slice(kinds), "head": _slice(kinds, "head")},
            "/logs/{id}/index": {"get": _log_index()},
            "/logs/{id}/text": {"get": _log_text()},
            "/index": {"get": _of_all("index", "Kinds of data in all logs, and their times", "Kinds")},
            "/query": {"get": _of_all("query", "Logs with messages of some kind in an interval", "Found")},
            "/text": {"get": _text()},
            "/slice": {"get": _slice(kinds, of_all=True), "head": _slice(kinds, "head", of_all=True)},
        },
        "components": {
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "query": {"type": "apiKey", "in": "query", "name": "token"},
            },
            "parameters": {
                "id": {
                    "name": "id",
                    "in": "path",
                    "required": True,
                    "description": "Of a log, as the list has it",
                    "schema": {"type": "string"},
                }
            },
            "responses": {
                "Error": {"description": "One sentence about what is wrong", "content": _json("Error")}
            },
            "schemas": _schemas(),
        },
    }


def _json(schema: str | None) -> dict[str, Any]:
    """Return the content for a schema by name; None: any object."""
    kind = {"type": "object"} if schema is None else {"$ref": f"#/components/schemas/{schema}"}
    return {"application/json": {"schema": kind}}


def _get(
    name: str,
    summary: str,
    found: str,
    content: dict[str, Any],
    parameters: Sequence[dict[str, Any]] = (),
    errors: Sequence[int] = (),
    headers: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return one operation; all of them can fail with 400, 401 and 403: parameters, token, Host and Origin."""
    fine: dict[str, Any] = {"description": found, "content": content}
    if headers:
        fine["headers"] = headers
    wrong = {str(code): {"$ref": "#/components/responses/Error"} for code in sorted({400, 401, 403, *errors})}
    return {
        "operationId": name,
        "summary": summary,
        "parameters": list(parameters),
        "responses": {"200": fine, **wrong},
    }


_YES = {"type": "string", "enum": ["1", "true"]}
_ID = {"$ref": "#/components/parameters/id"}


def _parameter(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "description": description, "schema": schema}


def _list() -> dict[str, Any]:
    parameters = _pages("Logs", "Id of a log: those behind it, as `next` says")
    return _get(
        "list", "The logs that there are now, by name", "A page of the list", _json("List"), parameters, [500]
    )


def _info() -> dict[str, Any]:
    errors = [404, 409, 422, 500]
    return _get("info", "What a log is and holds", "As `logreel info --json`", _json("Info"), [_ID], errors)


_TEXTS = {"type": "array", "items": {"type": "string"}}
_PATTERN = "a text, a shell pattern, or re: and a regular expression"


def _channels() -> list[dict[str, Any]]:
    """Return the parameters that choose channels."""
    return [
        _parameter(
            "topic", f"Name, {_PATTERN}, or key=value, several joined by commas; all without it", _TEXTS
        ),
        _parameter("exclude", "Written like topic: channels to leave out", _TEXTS),
        _parameter("channel", f"Name of a channel: {_PATTERN}", _TEXTS),
        _parameter("type", f"Name of the schema: {_PATTERN}", _TEXTS),
        _parameter("service", f"Service of requests and responses: {_PATTERN}", _TEXTS),
    ]


def _unix() -> list[dict[str, Any]]:
    """Return the parameters of an interval since 1970."""
    whole, some = {"type": "integer", "format": "int64"}, {"type": "number"}
    return [
        _parameter("from_nsec", "First moment in ns since 1970", whole),
        _parameter("from_sec", "The same in seconds", some),
        _parameter("to_nsec", "End in ns since 1970, itself not included", whole),
        _parameter("to_sec", "The same in seconds", some),
    ]


def _clock() -> list[dict[str, Any]]:
    """Return the parameters of an interval by the clock of a log."""
    time = {"type": "string", "examples": ["+12.5s"]}
    return [
        _parameter("start", f"First moment: {_TIME}", time),
        _parameter("end", "End, itself not included; written like start", time),
    ]


def _pages(what: str, after: str) -> list[dict[str, Any]]:
    limit = {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}
    return [
        _parameter("limit", f"{what} in the answer", limit),
        _parameter("after", after, {"type": "string"}),
    ]


_AFTER = "As `next` of the answer before says"


def _lines_wanted() -> list[dict[str, Any]]:
    """Return the parameters that choose lines of text."""
    kinds = {"type": "array", "items": {"enum": ["text", "comment", "event", "check"]}}
    return [
        _parameter(
            "level",
            "Least severe level, by name or 0 to 7; lines without a level are included",
            {"type": "string"},
        ),
        _parameter("source", f"Sender: {_PATTERN}", _TEXTS),
        _parameter("kind", "Messages, comments of operators, or events; all without it", kinds),
    ]


def _log_index() -> dict[str, Any]:
    errors = [404, 409, 422, 500]
    parameters = [_ID, *_channels(), *_unix(), *_clock()]
    return _get(
        "logIndex", "Kinds of data in a log, and their times", "One page", _json("Kinds"), parameters, errors
    )


def _log_text() -> dict[str, Any]:
    parameters = [_ID, *_lines_wanted(), *_unix(), *_clock(), *_pages("Lines", _AFTER)]
    errors = [404, 409, 422, 500]
    return _get(
        "logText", "Text, comments and events of a log", "A page of lines", _json("Lines"), parameters, errors
    )


def _of_all(name: str, summary: str, schema: str) -> dict[str, Any]:
    parameters = [*_channels(), *_unix(), *_pages("Logs", _AFTER)]
    return _get(name, summary, "A page of logs, by name", _json(schema), parameters, [500])


def _text() -> dict[str, Any]:
    parameters = [*_lines_wanted(), *_unix(), *_pages("Lines", _AFTER)]
    summary = "Text, comments and events of all logs, log by log"
    return _get("text", summary, "A page of lines", _json("Lines"), parameters, [500])


def _slice(kinds: Sequence[str], method: str = "", *, of_all: bool = False) -> dict[str, Any]:
    known = {"type": "string", "enum": list(kinds)}
    parameters = [
        *([] if of_all else [_ID]),
        *_channels(),
        *_unix(),
        *([] if of_all else _clock()),
        _parameter("format", "Of the slice; that of the log without it", known),
        *([_parameter("anyway", "Also one slice of logs of different robots", _YES)] if of_all else []),
    ]
    headers = {
        "Content-Disposition": _header("A file name", "string"),
        "Logreel-Lost": _header("Places where the log lost data, as far as is known", "integer"),
        "Logreel-Skipped": _header("Things left out, as far as was known at the first byte", "integer"),
    }
    content = {"application/octet-stream": {"schema": {"type": "string", "contentMediaType": "*/*"}}}
    return _get(
        f"{method}slice{'OfAll' if of_all else ''}",
        "One log with a part of all logs"
        if of_all
        else "A part of a log, as logreel slice or logreel convert writes it",
        "The bytes of one file; one that is not complete is broken off",
        content,
        parameters,
        [404, 409, 422, 500, 503],
        headers,
    )


def _header(description: str, kind: str) -> dict[str, Any]:
    return {"description": description, "schema": {"type": kind}}


def _schemas() -> dict[str, Any]:
    text, whole = {"type": "string"}, {"type": "integer"}
    maybe = {"type": ["integer", "null"], "format": "int64"}
    after = {"type": ["string", "null"], "description": "For `after`; null at the end"}
    span = {"from_nsec": maybe, "to_nsec": maybe, "start_ns": maybe, "end_ns": maybe}
    problem = _object(code=text, offset=whole, size=whole, lost={"type": "boolean"}, text=text)
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
            messages=whole,
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
            size=whole,
            epoch={"enum": ["unix", "boot", "start"]},
            utc_offset_ns=maybe,
            messages=whole,
            **span,
        ),
        "ChannelPart": _object(topic=text, type=text, encoding=text, messages=whole, **span),
        "Skipped": _object(id=text, name=text, why=text),
        "Line": _object(
            log={"type": "string", "description": "Id"},
            time_ns=whole,
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
            size=whole,
            modified_ns=whole,
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
            size=whole,
            epoch=text,
            start_ns=maybe,
            end_ns=maybe,
            messages=whole,
            channels={"type": "array", "items": {"$ref": "#/components/schemas/Channel"}},
            metadata={"type": "object"},
            attachments={"type": "array", "items": {"type": "object"}},
            segments={"type": "array", "items": {"$ref": "#/components/schemas/Segment"}},
            problems={"type": "array", "items": {"$ref": "#/components/schemas/Problem"}},
        ),
        "Channel": _object(
            topic=text, type=text, encoding=text, messages=whole, bytes=maybe, start_ns=maybe, end_ns=maybe
        ),
        "Segment": _object(number=whole, offset=whole, start_ns=maybe, end_ns=maybe, messages=whole),
        "Problem": problem,
    }


def _array(schema: str) -> dict[str, Any]:
    return {"type": "array", "items": {"$ref": f"#/components/schemas/{schema}"}}


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with required *properties*."""
    return {"type": "object", "required": list(properties), "properties": properties}
