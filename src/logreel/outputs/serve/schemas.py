"""JSON schemas of the answers of the service, by name, for its OpenAPI document."""

from __future__ import annotations

from typing import Any


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
