"""Channels of a log with their fields, for the tree of the viewer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp

from logreel.errors import LogError
from logreel.lenses import lenses
from logreel.log.log import Channel, Log
from logreel.log.tables import empty_table, flattened
from logreel.outputs.http.routes import Parameters, Route
from logreel.outputs.view.limits import CHANNELS, FIELDS
from logreel.registry.registry import states_of

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.outputs.view.session import Session
    from logreel.outputs.view.view_log import ViewLog


_NO_STATES: Mapping[str, Mapping[int, str]] = {}


def routes() -> list[Route]:
    """Return the request for the channels."""
    return [Route("/api/logs/{log}/channels", _channels)]


def _channels(session: Session, log: ViewLog, given: Parameters) -> ASGIApp:
    return JSONResponse(log.once("channels", lambda log: _all(log, given), given))


def _all(log: Log, given: Parameters) -> list[dict[str, Any]]:
    found, states = [], states_of(log)
    for ch in list(log.channels.values())[:CHANNELS]:
        given.check()
        found.append(_channel(ch, states.get(ch.topic, {})))
    return found


def _channel(ch: Channel, states: Mapping[str, Mapping[int, str]]) -> dict[str, Any]:
    about: dict[str, Any] = {
        "topic": ch.topic,
        "type": ch.schema.name,
        "encoding": ch.schema.encoding,
        "count": len(ch),
        "rate": ch.rate if len(ch) else None,
        "reserved": ch.reserved,
        "lens": [],
        "fields": [],
        "error": None,
    }
    try:
        about["lens"] = list(dict.fromkeys(type(lens).__name__ for lens in lenses(ch)))
        about["fields"] = list(fields_of(ch, states))
    except LogError as error:
        about["error"] = error.text
    return about


def fields_of(ch: Channel, states: Mapping[str, Mapping[int, str]] = _NO_STATES) -> Iterator[dict[str, Any]]:
    """Yield the fields of a channel with their types, paths as in ``logreel plot``; at most FIELDS of them.

    states  names of the numbers of fields by path
    items   of an array: their number, 0 if it differs between messages; None for one value
    """
    schema = flattened(empty_table(ch)).schema
    for i, field in enumerate(list(schema)[1:]):
        if i == FIELDS:
            return
        kind, items = _item(field.type)
        unit = (field.metadata or {}).get(b"unit", b"").decode()
        text = (field.metadata or {}).get(b"text", b"").decode()
        yield {
            "path": field.name,
            "type": type_name(kind),
            "number": _is_number(kind),
            "unit": unit,
            "text": text,
            "enum": {str(n): name for n, name in states[field.name].items()}
            if field.name in states
            else None,
            "items": items,
        }


def _item(kind: pa.DataType) -> tuple[pa.DataType, int | None]:
    """Return the type of the items of an array and their number; of other types the type itself and None."""
    import pyarrow as pa

    if pa.types.is_fixed_size_list(kind):
        return kind.value_type, kind.list_size
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return kind.value_type, 0
    return kind, None


def _is_number(kind: pa.DataType) -> bool:
    import pyarrow as pa

    known = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_duration)
    return any(is_known(kind) for is_known in known) or pa.types.is_timestamp(kind)


def type_name(kind: pa.DataType) -> str:
    """Return the name of an Arrow type as people know it: ``float32``, ``text``, ``bytes``, ``struct``."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return "struct"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "text"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return "bytes"
    return {"float": "float32", "double": "float64"}.get(str(kind), str(kind))
