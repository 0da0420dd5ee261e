"""Tables of a log that grows: rows are written while the log comes, for ``convert -``.

Each channel is written by its rows so far. What a later part of the log changes, such as a definition, is found at the
end, when the file of such a channel is written again from the whole log: the result is that of the whole log.
"""

from __future__ import annotations

import hashlib
import io
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from logreel.errors import LogError, UsageError
from logreel.io.append_file import Appender
from logreel.io.atomic_file import keep_sources
from logreel.io.output_stream import OutputStream
from logreel.log.log import Log
from logreel.log.source_files import inputs_of
from logreel.log.tables import RowOptions, TableReader, own_paths
from logreel.ops.query.record_batches import BYTES, ROWS
from logreel.outputs.files import MANIFEST, GrowingFolder, file_names, sync_all
from logreel.outputs.registry import Job, Output, with_definition
from logreel.outputs.write import (
    Converted,
    DecodeLock,
    Written,
    conversion_errors,
    one_channel,
    write_file,
    write_manifest,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.log.log import Channel
    from logreel.log.topic_fields import FieldsByTopic

#: Bytes, before compression, of the rows of all channels that wait for their row group.
WAITING = 64 << 20
#: Most seconds between two steps: a step takes as long as the rest after it, since it may read all times of a channel.
REST = 5.0
#: Bytes of one file that are collected before they are written.
PIECE = 1 << 20
_SHAPE = RowOptions(gaps=True)

#: Returns the channels chosen so far by topic, with their field paths; None: all fields.
Choose = Callable[[Log], "FieldsByTopic"]
#: Returns the channels chosen of the complete log, and the field paths by topic; raises what is wrong with the choice.
Chosen = Callable[[Log], tuple[list["Channel"], "FieldsByTopic"]]


class _Pieces(io.RawIOBase):
    """A file that is written in pieces with *put*, and is not open in between: there may be thousands."""

    def __init__(self, put: Callable[[bytes], object]) -> None:
        self._put, self._pending, self._size = put, bytearray(), 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._size

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        self._pending += view
        self._size += len(view)
        if len(self._pending) >= PIECE:
            self.save()
        return len(view)

    def save(self) -> None:
        """Write what was collected."""
        if self._pending:
            pending, self._pending = self._pending, bytearray()
            self._put(bytes(pending))


@dataclass
class _Table:
    """The table of one channel so far.

    schema  schema with the definition of the channel
    seen    messages read, with a digest of their times
    rows    rows written
    """

    out: _Pieces
    seen: int = 0
    rows: int = 0
    digest: Any = field(default_factory=hashlib.blake2b)
    schema: pa.Schema | None = None
    writer: Any = None
    is_wrong: bool = False

    def append(self, ch: Channel, paths: list[str] | None, until: int, output: Output) -> None:
        """Append the messages from ``seen`` up to *until*."""
        reader = TableReader(ch, paths, _SHAPE)
        rows = slice(self.seen, until)
        self.digest.update(ch.log.index.times(ch.number)[rows].tobytes())
        for batch in reader.batches(rows, ROWS, BYTES):
            if not batch.num_rows:
                continue
            schema = with_definition(batch.schema, ch)
            if self.writer is None:
                if output.table is None:
                    raise UsageError(f"{output.suffix} is only written when a log is complete")
                self.schema, self.writer = schema, output.table(self.out, schema)
            elif self.schema is not None and not schema.equals(self.schema, check_metadata=True):
                self.is_wrong = True
                return
            self.writer.write(batch)
            self.rows += batch.num_rows
        self.seen = until

    def is_that_of(self, ch: Channel, paths: list[str] | None) -> bool:
        """Return whether the table holds the messages of *ch*, a channel of the complete log."""
        if self.is_wrong or self.seen != len(ch):
            return False
        if self.schema is not None:
            now = with_definition(TableReader(ch, paths, _SHAPE).read(slice(0, 0)).schema, ch)
            if not now.equals(self.schema, check_metadata=True):
                return False
        times = ch.log.index.times(ch.number).tobytes()
        return bool(self.digest.digest() == hashlib.blake2b(times).digest())

    def close(self) -> None:
        """Complete the table, and write all of it."""
        if self.writer is not None:
            self.writer.close()
            self.writer = None
        self.out.save()


class GrowingTables:
    """Tables of the channels of a growing log.

    open_file  returns the file of a channel, by topic
    """

    def __init__(self, log: Log, output: Output, choose: Choose, open_file: Callable[[str], _Pieces]) -> None:
        self._log, self._output, self._choose, self._open_file = log, output, choose, open_file
        self.tables: dict[str, _Table] = {}
        self.fields: dict[str, list[str] | None] = {}

    def extend(self, stop: Event, poll: float) -> None:
        """Write the rows that come, until the log is complete or *stop* is set; complete the tables."""
        try:
            for _ in self._log.changes(poll=poll, stop=stop):
                begun = time.monotonic()
                self._step()
                if not self._log.is_complete:
                    stop.wait(min(REST, time.monotonic() - begun))
        finally:
            for table in self.tables.values():
                table.close()

    def _step(self) -> None:
        chosen = self._choose(self._log)
        problems = {*self._log.problems}
        for topic, fields in chosen.items():
            ch = self._log[topic]
            # What readers make of other records may change with each of them: written at the end.
            if ch.reserved or self._log.index.rules[ch.number].is_synthetic or not len(ch):
                continue
            if topic not in self.tables:
                self.tables[topic] = _Table(self._open_file(topic))
                self.fields[topic] = None if fields is None else list(fields)
            table = self.tables[topic]
            if table.is_wrong or len(ch) == table.seen:
                continue
            try:
                table.append(ch, own_paths(ch, self.fields[topic]), len(ch), self._output)
            except conversion_errors():
                # What is wrong is said when the whole log is there.
                table.is_wrong = True
            if noted := {*self._log.problems} - problems:
                # Messages that cannot be decoded are counted in the whole log, once for each channel.
                table.is_wrong = True
                self._log.withdraw(noted)
        self._write_waiting()

    def _write_waiting(self) -> None:
        """Write the rows of the fullest tables where too many wait, and what is in the buffers of the files."""
        unfinished = [table for table in self.tables.values() if table.writer is not None]
        waiting = sum(table.writer.waiting for table in unfinished)
        for table in sorted(unfinished, key=lambda table: table.writer.waiting, reverse=True):
            if waiting <= WAITING:
                break
            waiting -= table.writer.waiting
            table.writer.flush()
        for table in unfinished:
            table.out.save()

    def is_sound(self, ch: Channel, fields: FieldsByTopic) -> bool:
        """Return whether the table of *ch*, a channel of the complete log, is that of the whole log."""
        wanted = fields.get(ch.topic)
        paths = None if wanted is None else list(wanted)
        table = self.tables.get(ch.topic)
        return (
            table is not None
            and self.fields[ch.topic] == paths
            and table.is_that_of(ch, own_paths(ch, paths))
        )


def convert_growing(
    log: Log,
    output: Output,
    dst: str | OutputStream,
    is_folder: bool,
    choose: Choose,
    chosen: Chosen,
    *,
    force: bool = False,
    poll: float,
    stop: Event,
) -> Converted | None:
    """Write the channels of a growing log as tables while it comes; return None if *stop* ended that.

    dst        path of a file or folder, which is called ``x.active`` until the log is complete; or a stream
    is_folder  True: a file for each channel; False: one channel
    choose     returns the channels to write of the log so far
    chosen     returns those of the complete log

    A channel whose messages turn out to mean something else at the end is written again, to a stream it is reported.
    Raises as ``convert`` does; after an error while the log comes, what was written stays in ``x.active``.
    """
    if is_folder:
        return _folder(log, output, os.fspath(dst), choose, chosen, force, poll, stop)  # type: ignore[arg-type]
    if isinstance(dst, OutputStream):
        return _stream(log, output, dst, choose, chosen, poll, stop)
    return _file(log, output, dst, choose, chosen, force, poll, stop)


def _folder(
    log: Log,
    output: Output,
    name: str,
    choose: Choose,
    chosen: Chosen,
    force: bool,
    poll: float,
    stop: Event,
) -> Converted | None:
    folder = GrowingFolder(name, force, inputs_of(log))
    paths: dict[str, Path] = {}

    def open_file(topic: str) -> _Pieces:
        path = folder.place / file_names([*paths, topic], output.suffix)[topic]
        paths[topic] = path
        return _Pieces(lambda data: _append(path, data))

    tables = GrowingTables(log, output, choose, open_file)
    tables.extend(stop, poll)
    if not log.is_complete:
        return None
    try:
        channels, fields = chosen(log)
    except BaseException:
        folder.discard()
        raise
    job = Job(log, channels, fields=fields)
    names = file_names((ch.topic for ch in channels), output.suffix)
    kept = {ch.topic for ch in channels if tables.is_sound(ch, fields)}
    for topic in paths.keys() - kept:
        paths[topic].unlink(missing_ok=True)
    for topic in kept:
        job.rows[topic] = tables.tables[topic].rows
        if job.rows[topic]:
            paths[topic].rename(folder.place / names[topic])
        else:
            del job.rows[topic]
    written, lock = [], DecodeLock()
    for ch in channels:
        is_written, why = ch.topic in job.rows, ""
        if ch.topic not in kept:
            is_written, why = write_file(job, ch, output, folder.place / names[ch.topic], lock)
        job.skipped += [why] if why else []
        rows = job.rows.get(ch.topic, 0)
        written.append(Written(ch.topic, names[ch.topic] if is_written else None, rows))
    if job.skipped and not any(row.file for row in written):
        folder.discard()
        raise LogError(f"nothing could be written: {job.skipped[0]}", path=log.name)
    with open(folder.place / MANIFEST, "wb") as out:
        write_manifest(out, job, written)
    sync_all()
    folder.finish()
    return Converted(name, tuple(written), tuple(job.skipped), tuple(job.notes))


def _append(path: Path, data: bytes) -> None:
    with open(path, "ab", buffering=0) as out:
        out.write(data)


def _file(
    log: Log,
    output: Output,
    name: str,
    choose: Choose,
    chosen: Chosen,
    force: bool,
    poll: float,
    stop: Event,
) -> Converted | None:
    keep_sources(name, inputs_of(log))
    out = Appender(name, force)
    parts = _Pieces(out.put)
    tables = GrowingTables(log, output, _only_one(choose, name), lambda _: parts)
    try:
        tables.extend(stop, poll)
        channels, fields = chosen(log) if log.is_complete else ([], {})
        if log.is_complete:
            _check_count(len(channels), name)
    except BaseException:
        # What came until an error is kept under the name of an unfinished file.
        (out.leave if out.tell() else out.discard)()
        raise
    if not log.is_complete:
        out.leave()
        return None
    (ch,) = channels
    if not out.tell() or not tables.is_sound(ch, fields):
        out.discard()
        return one_channel(Job(log, channels, fields=fields), output, name, force)
    out.finish()
    written = Written(ch.topic, os.path.basename(name), tables.tables[ch.topic].rows)
    return Converted(name, (written,), ())


def _stream(
    log: Log,
    output: Output,
    stream: OutputStream,
    choose: Choose,
    chosen: Chosen,
    poll: float,
    stop: Event,
) -> Converted | None:
    parts = _Pieces(stream.write)
    tables = GrowingTables(log, output, _only_one(choose, stream.name), lambda _: parts)
    tables.extend(stop, poll)
    if not log.is_complete:
        return None
    channels, fields = chosen(log)
    _check_count(len(channels), stream.name)
    (ch,) = channels
    if not stream.tell():
        return one_channel(Job(log, channels, fields=fields, stream=stream), output, stream.name, True)
    skipped = []
    if not tables.is_sound(ch, fields):
        skipped.append(
            f"the rows of {ch.topic!r} are not those of the whole log, which has {len(ch)} messages of it: "
            "save the log as a file and convert that"
        )
    return Converted(
        stream.name, (Written(ch.topic, stream.name, tables.tables[ch.topic].rows),), tuple(skipped)
    )


def _only_one(choose: Choose, name: str) -> Choose:
    """Return *choose* with a check that it chooses one channel."""

    def chosen(log: Log) -> FieldsByTopic:
        channels = choose(log)
        if len(channels) > 1:
            _check_count(len(channels), name)
        return channels

    return chosen


def _check_count(count: int, name: str) -> None:
    """Raise UsageError for another number of channels than one in one file."""
    if count != 1:
        raise UsageError(
            f"{count} channels do not fit into one file",
            hint=f"write the folder {name}/, or choose one channel with topics=",
        )
