"""Tables of several channels: aligned in time, or long, with a row per value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import IO, TYPE_CHECKING, Any

from logreel.errors import DefinitionError, LogError
from logreel.ops.query.align import Alignment, aligned
from logreel.ops.query.record_batches import flatten
from logreel.outputs.registry import Job
from logreel.outputs.tables import ndjson

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.log.log import Channel

#: Maximum rows of a batch of a long table.
LONG_ROWS = 1 << 18
#: Larger integers are not always exact as double.
EXACT = 1 << 53


def aligned_table(job: Job, how: Alignment) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return schema and batches of a table with a row per moment, see ``logreel.align``."""
    channels = _decodable_channels(job)
    span = (job.start, job.end)
    schema, batches = aligned(
        job.log, [(ch, job.paths(ch)) for ch in channels], how, span, job.utc, job.interpolate
    )

    def counted() -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch
            counts = {
                (field.metadata or {})[b"topic"].decode("utf-8"): len(column) - column.null_count
                for field, column in zip(list(schema)[1:], batch.columns[1:], strict=True)
            }
            for topic, count in counts.items():
                job.rows[topic] = job.rows.get(topic, 0) + count

    return schema, counted()


def long_table(job: Job) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return schema and batches of a table with a row per value, channel after channel.

    Columns are ``time``, ``topic``, ``field`` (``q[0]``, ``pose.position.x``), ``value`` (double), and ``text``: values
    that are no numbers, and digits of integers that are not exact as double. Missing values have no row.
    """
    import pyarrow as pa

    channels = _decodable_channels(job)
    if not channels:
        raise LogError("the log has no channel to write", path=job.log.name)
    clock = job.table(channels[0])[0].field(0)
    schema = pa.schema(
        [
            clock.remove_metadata(),
            *(pa.field(name, pa.string()) for name in ("topic", "field")),
            pa.field("value", pa.float64()),
            pa.field("text", pa.string()),
        ],
        metadata={"source": job.log.name.encode("utf-8", "backslashreplace"), "epoch": job.log.epoch},
    )

    def batches() -> Iterator[pa.RecordBatch]:
        for ch in channels:
            for batch in job.table(ch)[1]:
                yield from _long_batches(batch, ch.topic, schema)

    return schema, batches()


def _decodable_channels(job: Job) -> list[Channel]:
    """Return the channels of *job* that can be decoded; report the others as skipped."""
    channels = []
    for ch in job.channels:
        try:
            _ = ch.layout
            channels.append(ch)
        except DefinitionError as error:
            job.skipped.append(f"channel {ch.topic!r} was left out: {error.text}")
    if job.skipped and not channels:
        raise LogError(f"nothing could be written: {job.skipped[0]}", path=job.log.name)
    return channels


def _long_batches(batch: pa.RecordBatch, topic: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the values of a batch as rows of a long table, field after field, in batches of bounded size."""
    import pyarrow as pa

    names, _ = flatten(batch.slice(0, 0))
    step = max(1, LONG_ROWS // max(1, len(names) - 1))
    for lo in range(0, batch.num_rows, step):
        names, arrays = flatten(batch.slice(lo, step))
        for name, array in zip(names[1:], arrays[1:], strict=True):
            value, text = _value_and_text(array)
            label = (pa.repeat(pa.scalar(text_value), len(array)) for text_value in (topic, name))
            rows = pa.RecordBatch.from_arrays([arrays[0], *label, value, text], schema=schema)
            yield rows if not array.null_count else rows.filter(array.is_valid())


def _value_and_text(array: pa.Array[Any]) -> tuple[pa.Array[Any], pa.Array[Any]]:
    """Return *array* as the columns ``value`` and ``text``."""
    import pyarrow as pa
    import pyarrow.compute as pc

    value_type = array.type
    if pa.types.is_temporal(value_type):
        array, value_type = array.cast(pa.int64()), pa.int64()
    if pa.types.is_string(value_type):
        return pa.nulls(len(array), pa.float64()), array
    if value_type not in (pa.int64(), pa.uint64()):
        return array.cast(pa.float64()), pa.nulls(len(array), pa.string())
    exact = pc.less_equal(array, pa.scalar(EXACT, value_type))
    if value_type == pa.int64():
        exact = pc.and_(exact, pc.greater_equal(array, pa.scalar(-EXACT, value_type)))
    digits = pc.if_else(exact, pa.scalar(None, pa.string()), array.cast(pa.string()))
    return array.cast(pa.float64(), safe=False), digits


def write_lines(out: IO[bytes], schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write a line of JSON per row; the time is ``time_ns``."""
    names = ["time_ns", *schema.names[1:]]
    ndjson.write_result(out, schema, (batch.rename_columns(names) for batch in batches))
