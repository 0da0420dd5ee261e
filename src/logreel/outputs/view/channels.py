"""Channels and their fields, one message in full, one array of a message, and fields as files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from starlette.responses import JSONResponse
from starlette.types import ASGIApp

from logreel.errors import LogError, UsageError
from logreel.io.append_file import Appender
from logreel.io.arrays import F64, I64
from logreel.lenses import Diagnostics, lenses, lenses_of
from logreel.lenses.text import PartState
from logreel.log.columns import own_paths
from logreel.log.log import Channel, Log
from logreel.log.source_files import decrypted_notes
from logreel.log.tables import TableReader, empty_table, flattened
from logreel.log.times import interval
from logreel.log.topic_fields import fields_by_topic
from logreel.meaning.columns import SampledColumn, Window, row_at
from logreel.ops.json_values import to_json_values
from logreel.outputs.http.routes import BYTES, Parameters, RequestParameter, Route, StreamAnswer, number
from logreel.outputs.view.columns import WantedSeries, wanted_series
from logreel.outputs.view.limits import (
    CHANNELS,
    FIELDS,
    FUNCTION_ROWS,
    ITEMS,
    LIST_ITEMS,
    MESSAGE_NODES,
    SERIES,
    TEXT_CHARACTERS,
)
from logreel.outputs.view.parameters import AT, FIELD, FROM, TO, TOPIC
from logreel.registry.registry import states_of

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.outputs.view.session import Session
    from logreel.outputs.view.view_log import ViewLog


_NO_STATES: Mapping[str, Mapping[int, str]] = {}


def routes() -> list[Route]:
    """Return the requests for the channels, their messages and arrays, and for exports of their fields."""
    return [Route("/api/logs/{log}/channels", _channels), *message_routes(), *export_routes()]


def _channels(session: Session, log: ViewLog, request: Parameters) -> ASGIApp:
    return JSONResponse(log.once("channels", lambda log: _all(log, request), request))


def _all(log: Log, request: Parameters) -> list[dict[str, Any]]:
    described, states = [], states_of(log)
    for ch in list(log.channels.values())[:CHANNELS]:
        request.check()
        described.append(_channel(ch, states.get(ch.topic, {})))
    return described


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
        arrow_type, items = _item(field.type)
        unit = (field.metadata or {}).get(b"unit", b"").decode()
        text = (field.metadata or {}).get(b"text", b"").decode()
        yield {
            "path": field.name,
            "type": type_name(arrow_type),
            "number": _is_number(arrow_type),
            "unit": unit,
            "text": text,
            "enum": {str(n): name for n, name in states[field.name].items()}
            if field.name in states
            else None,
            "items": items,
        }


def _item(arrow_type: pa.DataType) -> tuple[pa.DataType, int | None]:
    """Return the type of the items of an array and their number; of other types the type itself and None."""
    import pyarrow as pa

    if pa.types.is_fixed_size_list(arrow_type):
        return arrow_type.value_type, arrow_type.list_size
    if pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type):
        return arrow_type.value_type, 0
    return arrow_type, None


def _is_number(arrow_type: pa.DataType) -> bool:
    import pyarrow as pa

    known = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_duration)
    return any(is_known(arrow_type) for is_known in known) or pa.types.is_timestamp(arrow_type)


def type_name(arrow_type: pa.DataType) -> str:
    """Return the name of an Arrow type as people know it: ``float32``, ``text``, ``bytes``, ``struct``."""
    import pyarrow as pa

    if pa.types.is_struct(arrow_type):
        return "struct"
    if pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type):
        return "text"
    if (
        pa.types.is_binary(arrow_type)
        or pa.types.is_large_binary(arrow_type)
        or pa.types.is_fixed_size_binary(arrow_type)
    ):
        return "bytes"
    return {"float": "float32", "double": "float64"}.get(str(arrow_type), str(arrow_type))


#: Integers beyond this are sent as text: JavaScript would round them.
EXACT = 1 << 53
#: Bytes of binary values that are sent, as hexadecimal text.
BYTES_SHOWN = 64
_STEPS = 1 << 40
STEP = RequestParameter("step", number(-_STEPS, _STEPS), "Messages after the one at the moment", 0)


#: Rows of a table, its columns, and characters of a cell in one answer.
ROWS, COLUMNS, CELL = 200, 80, 120
#: Bytes of a message, on average, from which on lists are left out of tables.
LIST_BYTES = 1 << 16
#: Parts of a robot that are listed with what they say of themselves.
PARTS = 1000
_FIRST = RequestParameter("first", number(0, 1 << 40), "First row", 0)
_COUNT = RequestParameter("count", number(0, ROWS), "Number of rows", 50)


def message_routes() -> list[Route]:
    """Return the requests for a message and an array."""
    return [
        Route("/api/logs/{log}/message", _message, (TOPIC, AT, STEP)),
        Route("/api/logs/{log}/array", _array, (TOPIC, FIELD, AT)),
        Route("/api/logs/{log}/rows", _rows, (TOPIC, replace(AT, default=0), _FIRST, _COUNT)),
        Route("/api/logs/{log}/diagnostics", _diagnostics, (replace(AT, default=0),)),
    ]


def _message(session: Session, log: ViewLog, request: Parameters) -> ASGIApp:
    with log.open(request) as opened:
        ch = opened[request.text("topic")]
        step = request.get("step")
        row = _row(log, ch, request, step)
        about = {"topic": ch.topic, "type": ch.schema.name, "count": len(ch)}
        if row is None:
            return JSONResponse({**about, "t": None, "row": None, "size": None, "value": None, "error": None})
        row = max(0, min(len(ch) - 1, row + step))
        message = ch[row]
        value, error = None, None
        try:
            value = to_json_values(shortened(message.decode(), [MESSAGE_NODES]))
        except LogError as failed:
            error = failed.text
        about |= {"t": message.time - log.start, "row": row, "size": len(message.data)}
        about |= {"offset": message.offset, "value": value, "error": error}
    return JSONResponse(about)


def _row(log: ViewLog, ch: Channel, request: Parameters, step: int = 0) -> int | None:
    at = log.clock(request.get("at"))
    if at is None:
        raise UsageError("the parameter 'at' is missing")
    row = row_at(ch, at)
    # Stepping forward from before the first message leads to it.
    return -1 if row is None and len(ch) and step > 0 else row


def shortened(value: Any, room: list[int]) -> Any:
    """Return a decoded value with long lists, texts and bytes cut.

    room  one number: how many values may still be sent; counted down

    What is left out of a list is said by a last item ``{"…": number of items}``; bytes become
    ``{"bytes": number, "hex": first ones}``.
    """
    room[0] -= 1
    match value:
        case str():
            more = len(value) - TEXT_CHARACTERS
            return value if more <= 0 else f"{value[:TEXT_CHARACTERS]}… ({more} more characters)"
        case bytes() | bytearray() | memoryview():
            return {"bytes": len(value), "hex": bytes(value[:BYTES_SHOWN]).hex()}
        case bool():
            return value
        case int() | np.integer():
            return int(value) if abs(int(value)) <= EXACT else str(int(value))
        case np.ndarray():
            return _list(value, room)
        case Mapping():
            return {str(name): shortened(item, room) for name, item in value.items()}
        case list() | tuple():
            return _list(value, room)
    return value


def _list(items: Sequence[Any] | np.ndarray[Any, Any], room: list[int]) -> list[Any]:
    items_shown: list[Any] = []
    for item in items[:LIST_ITEMS]:
        if room[0] <= 0:
            break
        items_shown.append(shortened(item.item() if isinstance(item, np.generic) else item, room))
    if len(items_shown) < len(items):
        items_shown.append({"…": len(items) - len(items_shown)})
    return items_shown


def _rows(session: Session, log: ViewLog, request: Parameters) -> ASGIApp:
    first, count = request.get("first"), request.get("count")
    with log.open(request) as opened:
        ch = opened[request.text("topic")]
        fields = [field for field in fields_of(ch) if _fits_cell(ch, field)]
        paths = list(dict.fromkeys(field["path"].partition("[")[0] for field in fields))[:COLUMNS]
        rows = np.arange(min(first, len(ch)), min(first + count, len(ch)), dtype=np.int64)
        names, cells, error = list[str](), list[list[Any]](), None
        try:
            if paths:
                names, cells = _cells(TableReader(ch, own_paths(ch, paths)), rows)
        except LogError as failed:
            error = failed.text
        times = ch.log.index.times_at(ch.number, rows)
        at_row = row_at(ch, log.clock(request.get("at")) or 0)
    units = {field["path"]: field["unit"] for field in fields if field["unit"]}
    return JSONResponse(
        {
            "count": len(ch),
            "row": at_row,
            "first": int(rows[0]) if len(rows) else first,
            "fields": names,
            "units": units,
            "times": [int(time) - log.start for time in times.tolist()],
            "rows": to_json_values(cells),
            "error": error,
        }
    )


def _fits_cell(ch: Channel, field: dict[str, Any]) -> bool:
    """Return whether a field is shown in a table: bytes, and long lists, would make rows slow and say nothing."""
    if field["type"] == "bytes" or (field["items"] is not None and field["type"] in ("uint8", "int8")):
        return False
    return field["items"] is None or len(ch) == 0 or ch.bytes / len(ch) < LIST_BYTES


def _cells(reader: TableReader, rows: I64) -> tuple[list[str], list[list[Any]]]:
    """Return the names of columns, and the cells of each row."""
    table = flattened(reader.read(rows))
    names = table.schema.names[1 : COLUMNS + 1]
    if table.num_rows == len(rows):
        columns = [table.column(i + 1).to_pylist() for i in range(len(names))]
        return names, [[_cell(column[i]) for column in columns] for i in range(len(rows))]
    # A message of many records has a row for each; the first one stands for it.
    cells = []
    for row in rows.tolist():
        table = flattened(reader.read(np.array([row], np.int64))).slice(0, 1)
        cells.append([_cell(next(iter(table.column(i + 1).to_pylist()), None)) for i in range(len(names))])
    return names, cells


def _cell(value: Any) -> Any:
    """Return a value as a cell of a table shows it."""
    if value is None or isinstance(value, (int, float)):
        return str(value) if isinstance(value, int) and abs(value) > EXACT else value
    text = _short_text(value)
    return text if len(text) <= CELL else f"{text[:CELL]}…"


def _short_text(value: Any) -> str:
    """Return a value of any depth as text without quotes; of long lists the first items."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {_short_text(item)}' for name, item in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_short_text, value[:CELL]))}]"
    return str(value)


def _diagnostics(session: Session, log: ViewLog, request: Parameters) -> ASGIApp:
    latest = log.once("diagnostics", _part_states, request)
    # The log is open now, and its start known.
    at = log.clock(request.get("at")) or 0
    parts: list[dict[str, Any]] = []
    with log.open(request) as opened:
        for topic, states in latest.items():
            ch = opened[topic]
            for state in states(at)[: PARTS - len(parts)]:
                parts.append(
                    {"topic": topic, "name": state.name, "level": state.level, "message": state.message}
                    | {"t": state.time - log.start, "since": state.since - log.start}
                    | _details(ch, state)
                )
    return JSONResponse({"topics": [*latest], "parts": to_json_values(parts)})


def _part_states(log: Log) -> dict[str, Any]:
    return {
        ch.topic: lens.states(ch)
        for ch, own in lenses_of(log)
        for lens in own
        if isinstance(lens, Diagnostics)
    }


def _details(ch: Channel, state: PartState) -> dict[str, Any]:
    """Return what else a part says: its hardware, and names with values."""
    try:
        status = ch[state.row].decode()["status"][state.place]
    except (LogError, KeyError, IndexError):
        return {"hardware": "", "values": []}
    values = [
        [str(pair.get("key", "")), str(pair.get("value", ""))[:CELL]] for pair in status.get("values", ())
    ]
    return {"hardware": str(status.get("hardware_id", "")), "values": values[:LIST_ITEMS]}


def _array(session: Session, log: ViewLog, request: Parameters) -> ASGIApp:
    field = request.text("field")
    with log.open(request) as opened:
        ch = opened[request.text("topic")]
        row = _row(log, ch, request)
        if row is None:
            TableReader(ch, own_paths(ch, field))
            return JSONResponse({"t": None, "values": [], "unit": "", "count": 0})
        time, items, unit = array_of(ch, field, row)
    shown = items[:ITEMS]
    return JSONResponse(
        {"t": time - log.start, "values": to_json_values(shown), "unit": unit, "count": len(items)}
    )


def array_of(ch: Channel, field: str, row: int) -> tuple[int, list[Any], str]:
    """Return the time (ns) of a message, the numbers of an array in it, and their unit; None: no number.

    Raises UsageError for a field that is no array of numbers.
    """
    rows = np.array([row], np.int64)
    table = TableReader(ch, own_paths(ch, field)).read(rows)
    unit = (table.schema.field(1).metadata or {}).get(b"unit", b"").decode()
    values = table.column(1).to_pylist()
    # A message of many records has a row for each, which are an array, too.
    items = _numbers(values[0] if len(values) == 1 and isinstance(values[0], list) else values, ch, field)
    return int(ch.log.index.times_at(ch.number, rows)[0]), items, unit


def _numbers(values: list[Any], ch: Channel, field: str) -> list[Any]:
    """Return a list of numbers and None; raises UsageError for other items."""
    if any(isinstance(item, list) for item in values):
        values = [
            number_or_none
            for item in values
            for number_or_none in (item if isinstance(item, list) else [item])
        ]
    if not all(item is None or isinstance(item, (int, float)) for item in values):
        raise UsageError(f"{ch.topic}.{field} is no array of numbers", path=ch.log.name)
    return [int(item) if isinstance(item, bool) else item for item in values]


#: Kinds of files: tables of fields, or a log in the format of the log that is shown.
TABLES, LOG = ("csv", "parquet"), "log"
_EXPORT_PARAMETERS = (
    RequestParameter("kind", text="csv, parquet or log", default=LOG),
    RequestParameter("s", text="Series of a table: topic.field, or JSON as for series", repeated=True),
    RequestParameter("topic", text="Topic of a channel", repeated=True),
    FROM,
    TO,
)


def export_routes() -> list[Route]:
    """Return the request for a file."""
    return [Route("/api/logs/{log}/export", _export, _EXPORT_PARAMETERS, BYTES)]


def _export(session: Session, log: ViewLog, request: Parameters) -> ASGIApp:
    # Not needed for the first picture.
    from logreel.outputs.slice_stream import SliceRequest, SliceStream

    file_type = request.get("kind")
    start, end = (log.clock(t) for t in request.interval())
    names, topics = request.all("s"), tuple(request.all("topic"))
    if len(names) > SERIES:
        raise UsageError(f"a table has at most {SERIES} series")
    if any(name.startswith("{") for name in names):
        if file_type not in TABLES:
            raise UsageError(f"curves are saved as {' or '.join(TABLES)}, not as {file_type!r:.80}")
        curves = CurveStream(log, request, start, end, f".{file_type}")
        return StreamAnswer(log, curves, session.flows, session.tell, 0)
    with log.open(request) as opened:
        if file_type == LOG:
            stream: SliceStream | TableStream = SliceStream(
                opened, SliceRequest(topics or None, (), start, end)
            )
        elif file_type in TABLES:
            stream = TableStream(opened, [*names, *topics], start, end, f".{file_type}")
        else:
            raise UsageError(f"no kind {file_type!r:.80}; there are: {', '.join((*TABLES, LOG))}")
        lost = sum(problem.lost for problem in opened.problems)
    return StreamAnswer(log, stream, session.flows, session.tell, lost)


class CurveStream:
    """Curves as one table: functions of fields and SQL expressions, too, with the values that are drawn.

    Curves of one topic that have the same times are columns; others have a row per value, with the name of the curve.

    suffix  of a table: ``.csv``, ``.parquet``

    Attributes are those of SliceStream. Raises UsageError, TopicError, NotFoundError.
    """

    forward = True

    def __init__(
        self, log: ViewLog, request: Parameters, start: int | None, end: int | None, suffix: str
    ) -> None:
        # Not needed for the first picture.
        from logreel.outputs.registry import OUTPUTS
        from logreel.outputs.slice_stream import file_stem

        self._curves: list[tuple[WantedSeries, I64, F64, str]] = []
        total = 0
        for wanted in wanted_series(request):
            column = log.columns.get(wanted, request)
            window = Window(column, start, end)
            total += len(window)
            if isinstance(column, SampledColumn) or total > FUNCTION_ROWS:
                raise UsageError(f"a table of curves has at most {FUNCTION_ROWS} values: zoom in")
            with log.reading(column, request):
                times, values = column.read(np.arange(window.first, window.last))
            self._curves.append((wanted, times, values, column.unit))
        with log.open(request) as opened:
            decrypted_notes(opened)
            self.name = file_stem(opened) + suffix
            self._source, self._epoch = opened.name, opened.epoch
        self._output = OUTPUTS.own()[suffix]
        self.media = self._output.media
        self.skipped: list[str] = []

    def write(self, out: Appender) -> None:
        """Write all bytes to *out*."""
        import pyarrow as pa

        from logreel.outputs.slice_stream import AppenderFile

        (first, times, _, _), *others = self._curves
        together = all(
            wanted.topic == first.topic and np.array_equal(own, times) for wanted, own, _, _ in others
        )
        about: dict[bytes | str, bytes | str] = {
            "source": self._source.encode("utf-8", "backslashreplace"),
            "epoch": self._epoch.encode(),
        }
        fields: list[Any]
        columns: list[Any]
        if together:
            fields = [
                pa.field(wanted.name, pa.float64(), metadata={"unit": unit} if unit else None)
                for wanted, _, _, unit in self._curves
            ]
            columns = [pa.array(values, from_pandas=True) for _, _, values, _ in self._curves]
        else:
            lengths = [len(own) for _, own, _, _ in self._curves]
            times = np.concatenate([own for _, own, _, _ in self._curves])
            fields = [
                pa.field("topic", pa.string()),
                pa.field("field", pa.string()),
                pa.field("value", pa.float64()),
            ]
            columns = [
                pa.array(
                    np.repeat([getattr(wanted, of) for wanted, *_ in self._curves], lengths), pa.string()
                )
                for of in ("topic", "name")
            ]
            columns.append(
                pa.array(np.concatenate([values for _, _, values, _ in self._curves]), from_pandas=True)
            )
        schema = pa.schema([pa.field("time_ns", pa.int64()), *fields], metadata=about)
        batch = pa.RecordBatch.from_arrays([pa.array(times), *columns], schema=schema)
        self._output.write(AppenderFile(out), schema, iter([batch]))
        out.finish()


class TableStream:
    """Fields of a log as one table: a row per message for one topic, a row per value for several.

    wanted  names as for ``logreel.plot``
    suffix  of a table: ``.csv``, ``.parquet``

    Attributes are those of SliceStream. Raises UsageError, TopicError, NotFoundError.
    """

    forward = True

    def __init__(self, log: Log, wanted: list[str], start: int | None, end: int | None, suffix: str) -> None:
        # Not needed for the first picture.
        from logreel.outputs.registry import OUTPUTS
        from logreel.outputs.slice_stream import file_stem

        if not wanted:
            raise UsageError("a table needs a topic, or series: s=topic.field")
        decrypted_notes(log)
        self._log, self._output = log, OUTPUTS.own()[suffix]
        self._fields = fields_by_topic(log, wanted)
        self._interval = interval(log, start, end)
        self.name, self.media = file_stem(log) + suffix, self._output.media
        self.skipped: list[str] = []

    def write(self, out: Appender) -> None:
        """Write all bytes to *out*."""
        from logreel.outputs.registry import Job
        from logreel.outputs.slice_stream import AppenderFile
        from logreel.outputs.tables.combined import long_table

        self.skipped = []
        channels = [self._log[topic] for topic in self._fields]
        job = Job(self._log, channels, *self._interval, fields=self._fields, skipped=self.skipped)
        schema, batches = job.table(channels[0])[:2] if len(channels) == 1 else long_table(job)
        self._output.write(AppenderFile(out), schema, batches)
        out.finish()
