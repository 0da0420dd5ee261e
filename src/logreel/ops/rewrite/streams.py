"""Messages of one or several logs in writing order, as batches of payloads of bounded size; rows of one as columns."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass, replace
from logreel.errors import LogError
from logreel.index.block_table import TIME_MIN
from logreel.index.channel_index import FieldAt
from logreel.index.merge import Merged, Queue, merged
from logreel.io.arrays import I64
from logreel.io.source import FILE, SYNTHETIC, Buffer
from logreel.layout.nodes import FixedArray, Node, Scalar, Struct, measure
from logreel.layout.numpy_columns import Column
from logreel.log.columns import ChannelRows, ColumnReader, RowOptions
from logreel.log.joined_log import JoinedLog
from logreel.log.log import Channel
from logreel.ops.rewrite.parts import Part, by_file
from logreel.write.format_writer import Payloads, chained, tallied

#: Approximate payload bytes of a batch.
BYTES = 8 << 20
#: Payloads of several buffers are copied into one if fewer consecutive bytes than these, on average, are in one buffer.
STRETCH = 1 << 18


@dataclass(frozen=True, slots=True)
class MessageBatch:
    """Messages in writing order, of k channels.

    queue     int32[n]  index in *origins* and *channels*
    origins   int32[k]  index of the Part of each channel
    channels  int32[k]  channel number in that log
    time      int64[n]  ns with shift, at least the floor of the Part
    payloads  the payloads
    offset    int64[n]  offset of the payload in its chunk of that log
    more      int64[n] each: side columns of the logs, by name
    """

    queue: NDArray[np.int32]
    origins: NDArray[np.int32]
    channels: NDArray[np.int32]
    time: I64
    payloads: Payloads
    offset: I64
    more: Mapping[str, I64]

    @property
    def origin(self) -> NDArray[np.int32]:
        """int32[n]: index of the Part of each message."""
        return self.origins.take(self.queue)

    @property
    def channel(self) -> NDArray[np.int32]:
        """int32[n]: channel number of each message in its log."""
        return self.channels.take(self.queue)

    def rows(self, which: slice | I64) -> MessageBatch:
        """Return the messages at these rows."""
        return replace(
            self,
            queue=self.queue[which],
            time=self.time[which],
            payloads=self.payloads.rows(which),
            offset=self.offset[which],
            more={name: values[which] for name, values in self.more.items()},
        )


def in_file_order(part: Part) -> Iterator[MessageBatch]:
    """Yield the messages of *part* in file order.

    Synthetic messages are placed where their records are, or first if that is unknown. File order of several files is
    one after the other, or by time if they overlap in time.
    """
    files = by_file(part)
    if not isinstance(part.log, JoinedLog):
        yield from _Stream(files, False).batches()
    elif part.log.index.by_time:
        yield from in_time_order([part])
    else:
        for n, file in enumerate(files):
            for batch in _Stream([file], False).batches():
                yield _in_joined_log(batch, part.log, np.full_like(batch.origins, n))


def in_time_order(parts: Sequence[Part]) -> Iterator[MessageBatch]:
    """Yield the messages of all *parts* by time; those of equal time by part, then in file order.

    Synthetic messages come after other messages of their time.
    """
    if not any(isinstance(part.log, JoinedLog) for part in parts):
        yield from _Stream(parts, True).batches()
        return
    files = [(p, n, file) for p, part in enumerate(parts) for n, file in enumerate(by_file(part))]
    owner, number = (
        np.array(column, np.int32) for column in zip(*((p, n) for p, n, _ in files), strict=True)
    )
    for batch in _Stream([file for _, _, file in files], True).batches():
        channels, origins = batch.channels.copy(), owner[batch.origins]
        for p, part in enumerate(parts):
            if isinstance(part.log, JoinedLog):
                is_of_part = origins == p
                joined = _in_joined_log(batch, part.log, np.where(is_of_part, number[batch.origins], -1))
                channels[is_of_part] = joined.channels[is_of_part]
        yield replace(batch, origins=origins, channels=channels)


def by_time(streams: Sequence[Iterable[MessageBatch]]) -> Iterator[MessageBatch]:
    """Yield the messages of several streams, each sorted by time, by time; those of equal time by stream.

    The origin of all messages of stream *i* becomes *i*. Of each stream, only a batch is in memory.
    """
    waiting = [iter(stream) for stream in streams]
    ahead: list[MessageBatch | None] = [None] * len(streams)
    while True:
        for n, stream in enumerate(waiting):
            while (batch := ahead[n]) is None or not len(batch.time):
                ahead[n] = batch = next(stream, None)
                if batch is None:
                    break
        due = [(int(batch.time[-1]), n) for n, batch in enumerate(ahead) if batch is not None]
        if not due:
            return
        # Later batches of this stream have messages of this time, which come before those of later streams.
        last, first = min(due)
        parts = list[MessageBatch]()
        for n, batch in enumerate(ahead):
            if batch is None:
                continue
            count = int(batch.time.searchsorted(last, side="right" if n <= first else "left"))
            if count:
                parts.append(replace(batch.rows(slice(0, count)), origins=np.full_like(batch.origins, n)))
                ahead[n] = batch.rows(slice(count, None))
        yield merged_batches(parts)


def merged_batches(parts: Sequence[MessageBatch]) -> MessageBatch:
    """Return the messages of several batches, each sorted by time, as one batch by time; ties in order of *parts*."""
    if len(parts) == 1:
        return parts[0]
    order = np.argsort(np.concatenate([batch.time for batch in parts]), kind="stable")
    return in_order(parts, order)


def in_order(parts: Sequence[MessageBatch], order: I64) -> MessageBatch:
    """Return the messages of the concatenated batches in *order*, as one batch.

    Messages without a side column that others have get their time as ``publish_time``, and 0 in all other columns.
    """
    time = np.concatenate([batch.time for batch in parts])
    first = np.cumsum([0, *(len(batch.origins) for batch in parts)])
    queue = np.concatenate([batch.queue + n for batch, n in zip(parts, first, strict=False)])
    more = dict[str, I64]()
    for name in {name for batch in parts for name in batch.more}:
        values, at = time.copy() if name == "publish_time" else np.zeros_like(time), 0
        for batch in parts:
            if name in batch.more:
                values[at : at + len(batch.time)] = batch.more[name]
            at += len(batch.time)
        more[name] = values[order]
    return MessageBatch(
        queue[order].astype(np.int32),
        np.concatenate([batch.origins for batch in parts]),
        np.concatenate([batch.channels for batch in parts]),
        time[order],
        chained([batch.payloads for batch in parts]).rows(order),
        np.concatenate([batch.offset for batch in parts])[order],
        more,
    )


def _in_joined_log(batch: MessageBatch, log: JoinedLog, file: NDArray[np.int32]) -> MessageBatch:
    """Return a batch of files of *log* with the channel numbers of *log*; *file*: number of the file of each channel.

    Channels of other files, -1, stay as they are.
    """
    joined = {
        (n, log.parts[n][topic].number): number
        for number, members in enumerate(log.members)
        for n, topic in members
    }
    pairs = zip(file.tolist(), batch.channels.tolist(), strict=True)
    channels = [joined.get((n, channel), channel) for n, channel in pairs]
    return replace(batch, channels=np.array(channels, np.int32), origins=np.zeros_like(batch.origins))


class _Stream:
    """Messages of all parts, in one order."""

    def __init__(self, parts: Sequence[Part], by_time: bool) -> None:
        self._parts, self._by_time = parts, by_time
        self._queues, origin = list[Queue](), list[int]()
        placed = list[tuple[Queue, int]]()
        for p, part in enumerate(parts):
            for number in sorted(part.rows):
                synthetic = part.log.index.rules[number].synthetic is not None
                rank = (p + synthetic * len(parts)) if by_time else -synthetic
                queue = Queue(part.log.index, number, part.rows[number], part.shift, rank)
                if synthetic and not by_time and _places(queue) is not None:
                    placed.append((queue, p))
                    continue
                self._queues.append(queue)
                origin.append(p)
        #: Synthetic channels whose messages are ordered by the positions of their records.
        self._placed = _Placed([queue for queue, _ in placed], len(self._queues))
        self._queues += [queue for queue, _ in placed]
        origin += [p for _, p in placed]
        self._origins = np.array(origin, np.int32)
        self._channels = np.array([queue.channel for queue in self._queues], np.int32)
        floors = [TIME_MIN if part.floor is None else part.floor + part.shift for part in parts]
        self._floors = (
            np.array(floors, np.int64)[self._origins] if any(p.floor is not None for p in parts) else None
        )
        self._tells = any(queue.index.rules[queue.channel].side_columns for queue in self._queues)

    def batches(self) -> Iterator[MessageBatch]:
        """Yield batches of about BYTES payload bytes."""
        for messages in map(self._with_floor, self._merged()):
            batch = (np.cumsum(messages.size) - messages.size) // BYTES
            cuts = [0, *(np.flatnonzero(np.diff(batch)) + 1).tolist(), len(batch)]
            for lo, hi in itertools.pairwise(cuts):
                if hi > lo:
                    yield from self._buffered(messages.rows(slice(lo, hi)))

    def _with_floor(self, messages: Merged) -> Merged:
        """Return *messages* with times raised to the floor of their Part."""
        if self._floors is None:
            return messages
        return replace(messages, time=np.maximum(messages.time, self._floors.take(messages.queue)))

    def _merged(self) -> Iterator[Merged]:
        yield from self._placed.among(merged(self._queues[: self._placed.first], self._by_time))

    def _batch(self, messages: Merged, payloads: Payloads, more: Mapping[str, I64]) -> MessageBatch:
        return MessageBatch(
            messages.queue, self._origins, self._channels, messages.time, payloads, messages.offset, more
        )

    def _buffered(self, messages: Merged) -> Iterator[MessageBatch]:
        if int(messages.chunk.max()) < 0:
            yield self._batch_in_place(messages)
            return
        place = self._origins.take(messages.queue).astype(np.int64) << 32 | messages.chunk.astype(np.uint32)
        turns = np.flatnonzero(np.diff(place)) + 1
        if len(turns) * STRETCH <= int(messages.size.sum()):
            for lo, hi in itertools.pairwise([0, *turns.tolist(), len(place)]):
                in_buffer = messages.rows(slice(lo, hi))
                payloads, more = (
                    Payloads(self._buffer(in_buffer), in_buffer.offset, in_buffer.size),
                    dict[str, I64](),
                )
                self._put_side_columns(more, in_buffer, slice(None), payloads.data)
                yield self._batch(in_buffer, payloads, more)
        else:
            yield self._batch_copied(messages, place)

    def _batch_in_place(self, messages: Merged) -> MessageBatch:
        """Return a batch without decompressed chunks: payloads are not copied."""
        which = (2 * self._origins - 1).take(messages.queue) - messages.chunk
        logs = [part.log for part in self._parts]
        buffers = [log.index.chunks[chunk] for log in logs for chunk in (FILE, SYNTHETIC)]
        numbers = np.flatnonzero(tallied(which, len(buffers))).tolist()
        payloads = Payloads(buffers[numbers[0]], messages.offset, messages.size)
        if len(numbers) > 1:
            payloads = replace(payloads, data=buffers[0], others=buffers[1:], which=which)
        more: dict[str, I64] = {}
        for number in numbers:
            if self._tells and number % 2 == 0:
                rows = slice(None) if len(numbers) == 1 else np.flatnonzero(which == number)
                self._put_side_columns(more, messages, rows, buffers[number])
        return self._batch(messages, payloads, more)

    def _batch_copied(self, messages: Merged, place: I64) -> MessageBatch:
        """Return a batch with payloads of several buffers copied into one; each buffer is read once."""
        ends = np.cumsum(messages.size)
        start, data = ends - messages.size, np.empty(int(ends[-1]), np.uint8)
        more: dict[str, I64] = {}
        order = np.argsort(place, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(place[order])) + 1):
            in_buffer = messages.rows(rows)
            buffer = self._buffer(in_buffer)
            Payloads(buffer, in_buffer.offset, in_buffer.size).put_at(data, start[rows])
            self._put_side_columns(more, messages, rows, buffer)
        return self._batch(messages, Payloads(data, start, messages.size), more)

    def _buffer(self, messages: Merged) -> Buffer:
        """Return the buffer that contains all payloads of *messages*."""
        return self._parts[int(self._origins[messages.queue[0]])].log.index.chunks[int(messages.chunk[0])]

    def _put_side_columns(
        self, more: dict[str, I64], messages: Merged, rows: slice | I64, buffer: Buffer
    ) -> None:
        """Fill in the side columns of rows *rows*; channels of one log have the same side columns, or none."""
        queue = int(messages.queue[rows][0])
        part = self._parts[int(self._origins[queue])]
        entries, offset = messages.at[rows], messages.offset[rows]
        rules = part.log.index.rules[int(self._channels[queue])]
        for name, rule in rules.side_columns.items():
            values = rule.values_at(buffer, offset, lambda stored: stored[entries].astype(np.int64))
            if name == "publish_time":
                values += part.shift
            if isinstance(rows, slice):
                more[name] = values
                continue
            # Default of other logs: publish time is the time, and numbers are 0.
            default = messages.time if name == "publish_time" else np.zeros_like(messages.time)
            more.setdefault(name, default.copy())[rows] = values


def _places(queue: Queue) -> I64 | None:
    """Return the file positions of the records of synthetic messages of *queue*; None if unknown or not synthetic."""
    synthetic = queue.index.synthetic(queue.channel)
    return None if synthetic is None else synthetic.place


class _Placed:
    """Synthetic messages that are placed where their records are.

    first  number of the first of *queues* among all queues
    """

    def __init__(self, queues: Sequence[Queue], first: int) -> None:
        self.first = first
        place, messages = list[I64](), list[Merged]()
        for number, queue in enumerate(queues, first):
            synthetic = queue.index.synthetic(queue.channel)
            if synthetic is None or synthetic.place is None:
                continue
            at = np.arange(len(synthetic.time), dtype=np.int64)[queue.rows]
            alike = [np.full(len(at), value, np.int32) for value in (number, SYNTHETIC)]
            messages.append(
                Merged(
                    alike[0],
                    synthetic.time[at] + queue.shift,
                    alike[1],
                    synthetic.offset[at],
                    synthetic.size[at],
                    at,
                )
            )
            place.append(synthetic.place[at])
        self._place = np.concatenate(place) if place else np.zeros(0, np.int64)
        order = np.argsort(self._place, kind="stable")
        self._place = self._place[order]
        self._all = _joined(messages).rows(order) if messages else None

    def among(self, others: Iterator[Merged]) -> Iterator[Merged]:
        """Yield the messages of *others*, which are in file order, with the synthetic ones inserted."""
        if self._all is None:
            yield from others
            return
        done = 0
        for messages in others:
            upto = int(self._place.searchsorted(int(messages.offset[-1])))
            at = messages.offset.searchsorted(self._place[done:upto])
            # Indices into the joined arrays: others first, then those that are put among them.
            order = np.insert(np.arange(len(messages.time)), at, len(messages.time) + np.arange(upto - done))
            yield _joined([messages, self._all.rows(slice(done, upto))]).rows(order)
            done = upto
        if done < len(self._place):
            yield self._all.rows(slice(done, None))


def _joined(parts: Sequence[Merged]) -> Merged:
    return Merged(*(np.concatenate([getattr(p, name) for p in parts]) for name in Merged.__slots__))


#: Booleans of a message that are looked at.
MOST_BOOLEANS = 64
#: One row per message; messages that cannot be decoded are left out, or become a row of nulls.
WHOLE, _GAPS = RowOptions(explode=False, gaps=False), RowOptions(explode=False)


def read_rows(channel: Channel, rows: I64) -> tuple[list[Column], I64]:
    """Return columns of messages at *rows*, one row per message, and int64[k]: which of them could be decoded."""
    read = _read(channel, rows, WHOLE)
    kept = np.arange(len(rows), dtype=np.int64)
    if len(read) != len(rows):
        gaps = _read(channel, rows, _GAPS)
        good = np.zeros(len(rows), bool)
        for column in gaps.columns:
            good |= True if column.valid is None else column.valid
        kept = np.flatnonzero(good)
        if len(kept) != len(read):
            kept = np.flatnonzero([len(_read(channel, rows[i : i + 1], WHOLE)) for i in range(len(rows))])
    return [*read.columns], kept


def replaced_texts(channel: Channel) -> list[str]:
    """Return a sentence with the number of messages of *channel* whose text is not UTF-8; none if there are none."""
    count = 0
    for message in channel.log.messages([channel.topic], order="file"):
        # Text may contain the character itself.
        with contextlib.suppress(LogError):
            count += "\ufffd" in repr(message.decode()) and "\ufffd".encode() not in bytes(message.data)
    text = f"text in {count} messages of {channel.topic!r} is not UTF-8: U+FFFD stands for what is not"
    return [text] if count else []


def odd_booleans(channel: Channel) -> list[str]:
    """Return a sentence with the number of messages with bytes for true other than 1; none if there are none.

    Only for messages of a fixed size, in which programs leave bytes that they never set.
    """
    try:
        places = list(_boolean_places(channel.layout.root, 0)) if channel.is_uniform else []
    except LogError:
        return []
    index, count = channel.log.index, 0
    for chunk, start in index.payloads_by_chunk(channel.number) if places else ():
        odd = np.zeros(len(start), bool)
        for place in places[:MOST_BOOLEANS]:
            odd |= FieldAt(place, 1).read(index.chunks[chunk], start) > 1
        count += int(np.count_nonzero(odd))
    return [f"{count} messages of {channel.topic!r} have other bytes than 1 for true: they become 1"] * (
        count > 0
    )


def _boolean_places(node: Node, at: int) -> Iterator[int]:
    """Yield the offsets of the booleans in a value of fixed size that begins at *at*."""
    match node:
        case Scalar(type="bool"):
            yield at
        case Struct(fields=fields):
            for f in fields:
                yield from _boolean_places(f.node, at)
                at += measure(f.node).size or 0
        case FixedArray(item=item, count=count) if any(True for _ in _boolean_places(item, 0)):
            for i in range(count):
                yield from _boolean_places(item, at + i * (measure(item).size or 0))


def _read(channel: Channel, rows: I64, shape: RowOptions) -> ChannelRows:
    n = len(rows)
    if n and int(rows[-1]) - int(rows[0]) == n - 1 and (np.diff(rows) == 1).all():
        return ColumnReader(channel, None, shape).read(slice(int(rows[0]), int(rows[0]) + n))
    return ColumnReader(channel, None, shape).read(rows)
