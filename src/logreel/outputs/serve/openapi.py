"""OpenAPI document of the service."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from logreel._version import __version__

_TIME = "2024-05-01T12:00:00Z, +12.5s from the start, -30s from the end, 00:01:30, seconds of the log's clock, or 123ns"


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


_ID = {"$ref": "#/components/parameters/id"}


def _parameter(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "description": description, "schema": schema}


def _list() -> dict[str, Any]:
    parameters = [
        _parameter(
            "limit", "Logs in the answer", {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100}
        ),
        _parameter("after", "Id of a log: those behind it, as `next` says", {"type": "string"}),
    ]
    return _get(
        "list", "The logs that there are now, by name", "A page of the list", _json("List"), parameters, [500]
    )


def _info() -> dict[str, Any]:
    errors = [404, 409, 422, 500]
    return _get("info", "What a log is and holds", "As `logreel info --json`", _json("Info"), [_ID], errors)


def _slice(kinds: Sequence[str], method: str = "") -> dict[str, Any]:
    texts = {"type": "array", "items": {"type": "string"}}
    time = {"type": "string", "examples": ["+12.5s"]}
    parameters = [
        _ID,
        _parameter("topic", "Name, shell pattern, or re: and a regular expression; all without it", texts),
        _parameter("exclude", "Written like topic: channels to leave out", texts),
        _parameter("start", f"First moment: {_TIME}", time),
        _parameter("end", "End, itself not included; written like start", time),
        _parameter(
            "format", "Of the slice; that of the log without it", {"type": "string", "enum": list(kinds)}
        ),
    ]
    headers = {
        "Content-Disposition": _header("A file name", "string"),
        "Logreel-Lost": _header("Places where the log lost data, as far as is known", "integer"),
        "Logreel-Skipped": _header("Things left out, as far as was known at the first byte", "integer"),
    }
    content = {"application/octet-stream": {"schema": {"type": "string", "contentMediaType": "*/*"}}}
    return _get(
        f"{method}slice",
        "A part of a log, as logreel slice or logreel convert writes it",
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
    problem = _object(code=text, offset=whole, size=whole, lost={"type": "boolean"}, text=text)
    return {
        "Error": _object(error=text),
        "Index": _object(service=text, logs=text, openapi=text, formats={"type": "array", "items": text}),
        "List": _object(
            logs={"type": "array", "items": {"$ref": "#/components/schemas/Log"}},
            next={"type": ["string", "null"], "description": "For `after`; null at the end"},
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


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with required *properties*."""
    return {"type": "object", "required": list(properties), "properties": properties}
