"""Messages as lines of JSON, in time order; tables as JSON, an object per row."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import IO, TYPE_CHECKING, Any

from logreel.errors import DamagedError, DefinitionError
from logreel.layout.arrow_arrays import fixed_list_type, item_type
from logreel.log.log import Log, Message
from logreel.log.tables import distinct
from logreel.log.times import shift_of, utc_text
from logreel.log.topic_fields import field_picker
from logreel.ops.json_values import to_json_values

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.log.log import Channel
    from logreel.log.topic_fields import FieldsByTopic
    from logreel.outputs.registry import Job, SkipCounter

_ENCODER = json.JSONEncoder(allow_nan=False, default=to_json_values)


def write(out: IO[bytes], job: Job) -> None:
    """Write all messages of *job*; messages that cannot be decoded are skipped and reported."""
    shift = shift_of(job.log, job.utc)
    for message, data in decoded(job.log, job.channels, job.start, job.end, job.skipped, job.fields):
        out.write(line(message, data, shift).encode("ascii") + b"\n")
        job.count_rows(message.channel.topic, 1)


def line(message: Message, data: dict[str, Any], shift: int | None = None, log: str | None = None) -> str:
    """Return a message as JSON in ASCII: ``{"topic": …, "time_ns": …, "data": {…}}``.

    shift  ns to add for UTC; adds ``"utc"`` in RFC 3339. None: no ``"utc"``
    log    name of the log, of several; adds ``"log"``. None: no ``"log"``
    """
    values: dict[str, Any] = {} if log is None else {"log": log}
    values |= {"topic": message.channel.topic, "time_ns": message.time}
    if shift is not None:
        values["utc"] = utc_text(message.time + shift)
    values["data"] = data
    try:
        return _ENCODER.encode(values)
    except ValueError:
        # NaN or infinity in the message: rare, so values are checked only then.
        return _ENCODER.encode(to_json_values(values))


class Decoder:
    """Decodes messages, and counts those that cannot be decoded.

    skipped  gets a sentence for each channel whose definition cannot be used, and from ``report`` for each channel with
             skipped messages
    fields   field paths by topic; other topics, and None: all fields
    """

    def __init__(
        self, channels: Iterable[Channel], skipped: list[str], fields: FieldsByTopic | None = None
    ) -> None:
        self.usable: list[str] = []
        self._unusable: set[Channel] = set()
        self._bad: dict[str, SkipCounter] = {}
        self._skipped = skipped
        self._pick: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {}
        for ch in channels:
            try:
                _ = ch.layout
            except DefinitionError as error:
                skipped.append(f"channel {ch.topic!r} was left out: {error.text}")
                self._unusable.add(ch)
            else:
                self.usable.append(ch.topic)
                pick = field_picker(ch, (fields or {}).get(ch.topic))
                if pick is not None:
                    self._pick[ch.topic] = pick

    def __call__(self, message: Message) -> dict[str, Any] | None:
        """Return the fields of *message*; None if it cannot be decoded."""
        if message.channel in self._unusable:
            return None
        try:
            data = message.decode()
        except (DamagedError, DefinitionError) as error:
            # Only here: `cat` starts without what writes files.
            from logreel.outputs.registry import SkipCounter

            self._bad.setdefault(message.channel.topic, SkipCounter()).add(error.text)
            return None
        pick = self._pick.get(message.channel.topic)
        return data if pick is None else pick(data)

    def report(self) -> None:
        """Add a sentence to *skipped* for each channel with skipped messages."""
        for topic, left in self._bad.items():
            self._skipped += left.sentences("message", f"of {topic!r} left out")


def decoded(
    log: Log,
    channels: Iterable[Channel],
    start: int | None,
    end: int | None,
    skipped: list[str],
    fields: FieldsByTopic | None = None,
) -> Iterator[tuple[Message, dict[str, Any]]]:
    """Yield messages of *channels* by time with their fields; *skipped* gets sentences about skipped ones."""
    decode = Decoder(channels, skipped, fields)
    for message in log.messages(decode.usable, start, end):
        data = decode(message)
        if data is not None:
            yield message, data
    decode.report()


def write_result(out: IO[bytes], schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write a line of JSON per row; see ``plain_rows`` for values."""
    for line in _lines(batches):
        out.write(line + b"\n")


def write_list(out: IO[bytes], schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write a JSON list with a line per row; see ``plain_rows`` for values."""
    between = b"["
    for line in _lines(batches):
        out.write(between + line)
        between = b",\n "
    out.write(b"[]\n" if between == b"[" else b"]\n")


def _lines(batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    for batch in batches:
        for row in plain_rows(batch):
            yield json.dumps(row, allow_nan=False).encode("ascii")


def plain_rows(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Yield the rows of *batch* as values for JSON: timestamps and durations as integer ns, bytes as base64."""
    import pyarrow as pa

    names = distinct(batch.schema.names)
    columns = [
        column.cast(mapped(column.type, _in_ns)).cast(mapped(column.type, _as_number))
        for column in batch.columns
    ]
    for row in pa.RecordBatch.from_arrays(columns, names=names).to_pylist():
        yield {name: _cell_value(value) for name, value in row.items()}


def _cell_value(value: Any) -> Any:
    # DuckDB returns sums of integers as Decimal.
    return int(value) if isinstance(value, Decimal) else to_json_values(value)


def mapped(data_type: pa.DataType, change: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Return *data_type* with *change* applied to every type in it that is no struct or list."""
    import pyarrow as pa

    if pa.types.is_struct(data_type):
        return pa.struct([field.with_type(mapped(field.type, change)) for field in data_type])
    if pa.types.is_fixed_size_list(data_type):
        return fixed_list_type(
            data_type.value_field.with_type(mapped(item_type(data_type), change)), data_type.list_size
        )
    if pa.types.is_list(data_type):
        return pa.list_(data_type.value_field.with_type(mapped(item_type(data_type), change)))
    return change(data_type)


def _in_ns(data_type: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    if pa.types.is_timestamp(data_type):
        return pa.timestamp("ns", data_type.tz)
    return pa.duration("ns") if pa.types.is_duration(data_type) else data_type


def _as_number(data_type: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    if pa.types.is_decimal(data_type) and data_type.scale:
        return pa.float64()
    return pa.int64() if pa.types.is_timestamp(data_type) or pa.types.is_duration(data_type) else data_type
