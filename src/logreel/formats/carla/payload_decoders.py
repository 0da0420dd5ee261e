"""Frames of a recording, which give the packets their times, and decoders of packets.

Most packets of most kinds have no records and are skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import replace
from logreel.formats.carla.definitions import layout
from logreel.formats.carla.reader import Found
from logreel.formats.carla.records import FRAME_START
from logreel.index.channel_index import ChannelRules, FieldAt, IndexAccess, Rule, StoredValues
from logreel.index.gather import PayloadRange, Want, gather, gather_bytes, payload_ranges
from logreel.index.message_index import MessageIndex
from logreel.io.arrays import I64
from logreel.io.source import FILE, Chunks, Source
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Node, Scalar, Sequence, Struct, measure
from logreel.log.side_columns import LayoutDecoder, SideColumnsDecoder

if TYPE_CHECKING:
    from logreel.layout.arrow import Decoded
    from logreel.layout.numpy_columns import Column

FRAMES = layout("frames", wide=False)
#: Column that every other channel has: the number of its frame.
FRAME = Field("frame", Scalar("uint64"))
#: Frames that are gathered without threads: preparing these takes longer.
_FEW = 1 << 10
#: Greatest number of seconds that fits into 64-bit nanoseconds.
_MOST = 9e9


class Frames:
    """Frames of one recording; a packet belongs to the last frame that begins before it in the file.

    kinds  packet kind of each channel
    index  index of all channels; the time of a packet is that of its frame
    """

    def __init__(self, source: Source, content: Found) -> None:
        self.kinds = sorted(content.topics)
        #: Channel of the FrameStarts, if there are any.
        self._channel = self.kinds.index(FRAME_START) if FRAME_START in content.topics else None
        self._rows: dict[int, I64] = {}
        size = StoredValues(content.sizes)
        rules = [
            ChannelRules(
                FrameTimes(self, number), FRAMES.measure.least if packet_kind == FRAME_START else size
            )
            for number, packet_kind in enumerate(self.kinds)
        ]
        self.index = MessageIndex(Chunks(source), content.blocks.reshaped(self.kinds, 0), rules)

    @cached_property
    def _columns(self) -> list[NDArray[np.uint8]]:
        """Bytes of the columns number, duration and elapsed of all frames."""
        if self._channel is None:
            return [np.zeros(0, np.uint8)] * 3
        if len(self.start) <= _FEW:
            raw = gather_bytes(self.index.chunks[FILE], self.start, FRAMES.measure.least)
            return [raw[:, at : at + 8].ravel() for at in (0, 8, 16)]
        return gather(self.index, [Want(self._channel, FRAMES.leaves)])[0].columns

    @cached_property
    def start(self) -> I64:
        """int64[f]: offset of the payload of each FrameStart."""
        return self.index.offsets(self._channel) if self._channel is not None else np.zeros(0, np.int64)

    @cached_property
    def number(self) -> NDArray[np.uint64]:
        """uint64[f]: number of each frame as recorded."""
        return self._columns[0].view(np.uint64)

    @cached_property
    def duration(self) -> NDArray[np.float64]:
        """float64[f]: seconds from each frame to the next one; -1 for the last frame."""
        return self._columns[1].view(np.float64)

    @cached_property
    def elapsed(self) -> NDArray[np.float64]:
        """float64[f]: seconds since the recording began."""
        return self._columns[2].view(np.float64)

    @cached_property
    def time(self) -> I64:
        """int64[f]: ns since the recording began; 0 for NaN."""
        return _to_ns(self.elapsed)

    def span(self) -> tuple[int | None, int | None]:
        """Return the least and the greatest of the times of the first and the last frame, ns; None without frames.

        Only frames that agree with a neighbour count: elapsed time plus duration is the elapsed time of the next frame.
        """
        if not len(self.time):
            return None, None
        with np.errstate(all="ignore"):
            joined = self.elapsed[:-1] + self.duration[:-1] == self.elapsed[1:]
        agrees = np.append(joined, False) | np.append(False, joined)
        times = self.time[agrees] if agrees.any() else self.time
        first, last = int(times[0]), int(times[-1])
        return min(first, last), max(first, last)

    def rows(self, channel: int) -> I64:
        """Return the frame of each message of a channel as a row of these arrays, -1 before the first: int64[n]."""
        if channel not in self._rows:
            at, start = self.index.offsets(channel), self.start
            one_each = len(at) == len(start) and (at >= start).all() and (at[:-1] < start[1:]).all()
            rows = np.arange(len(at)) if one_each else start.searchsorted(at, side="right") - 1
            self._rows[channel] = rows.astype(np.int64)
        return self._rows[channel]

    def rows_at(self, channel: int, rows: I64 | slice) -> I64:
        """Return the frames of some messages of a channel like ``rows``, at the cost of these and of the frames."""
        if isinstance(rows, slice) or channel in self._rows or 4 * len(rows) > self.index.count(channel):
            return self.rows(channel)[rows]
        at = self.index.locate(channel, rows)[1]
        return self.start.searchsorted(at, side="right").astype(np.int64) - 1

    def _of_frames(self, name: str, frame: I64) -> NDArray[Any]:
        """Return ``number`` or ``elapsed`` of some frames, at the cost of these."""
        if "_columns" in self.__dict__ or 4 * len(frame) > len(self.start):
            values: NDArray[Any] = getattr(self, name)[frame]
            return values
        skip = {"number": 0, "elapsed": 16}[name]
        raw = FieldAt(skip, 8).read(self.index.chunks[FILE], self.start[frame])
        return raw.view(np.uint64 if name == "number" else np.float64)

    def times(self, channel: int, rows: I64 | slice = slice(None)) -> I64:
        """Return the times of some messages of a channel, ns: int64[n]; before the first frame its time counts."""
        frame = self.rows_at(channel, rows)
        if not len(self.start):
            return np.zeros(len(frame), np.int64)
        return _to_ns(self._of_frames("elapsed", np.maximum(frame, 0)))

    def numbers(self, channel: int, rows: I64) -> list[NDArray[Any]]:
        """Return one array, the frame numbers of some messages of a channel: uint64[n]; 0 before the first frame."""
        frame = self.rows_at(channel, rows)
        number = np.zeros(len(rows), np.uint64)
        number[frame >= 0] = self._of_frames("number", frame[frame >= 0])
        return [number]


class FrameTimes(Rule):
    """The times of the packets of one channel: those of their frames."""

    reads_messages = True

    def __init__(self, frames: Frames, channel: int) -> None:
        self._frames, self._channel = frames, channel

    def values(self, index: IndexAccess, channel: int, rows: I64 | None = None) -> I64:
        """Return the times of all messages, or of those at *rows*."""
        return self._frames.times(self._channel, slice(None) if rows is None else rows)


def _to_ns(elapsed: NDArray[np.float64]) -> I64:
    seconds = np.nan_to_num(elapsed, nan=0.0, posinf=_MOST, neginf=-_MOST)
    return np.rint(np.clip(seconds, -_MOST, _MOST) * 1e9).astype(np.int64)


class PacketDecoder(SideColumnsDecoder):
    """Decodes packets with the number of their frame as a column."""

    def __init__(self, frames: Frames, channel: int, body: PacketFieldsDecoder) -> None:
        super().__init__([FRAME.name], lambda _, rows: frames.numbers(channel, rows), body)
        self._frames = frames

    def decode_all(
        self, index: MessageIndex, channel: int, layout: Layout, explode: bool
    ) -> tuple[Decoded, I64] | None:
        """See WholeChannelDecoder; packets without records are skipped."""
        if not explode or not isinstance(layout.root, Sequence):
            return None
        (payloads,) = payload_ranges(index, channel, slice(None))
        full = np.flatnonzero(payloads.size > layout.root.width)
        got = self.decode_batch(
            index, layout, PayloadRange(payloads.data, payloads.offset[full], payloads.size[full]), full
        )
        if got.bad or len(got.leftover):
            return None
        return got, self._frames.times(channel, full)


@lru_cache(64)
def decoder_of(layout: Layout) -> Callable[[memoryview], dict[str, Any]]:
    """Return ``layout.decoder()``, compiled once for all recordings."""
    return layout.decoder()


@lru_cache(64)
def _known(layout: Layout) -> Layout:
    """Return the first Layout that was equal, for which more may be compiled already."""
    return layout


class PacketFieldsDecoder(LayoutDecoder):
    """Decodes packets; for records of fixed size the number of records follows from the size of the packet."""

    def __init__(self, layout: Layout) -> None:
        self.layout, self._decode = layout, decoder_of(layout)

    def decode_batch(self, index: MessageIndex, layout: Layout, piece: PayloadRange, rows: I64) -> Decoded:
        """See PayloadDecoder."""
        from logreel.layout.arrow import decode_variable
        from logreel.layout.numpy_columns import NumpyFields

        layout = _known(layout)
        root = layout.root
        width = measure(root.item).size if isinstance(root, Sequence) else None
        if not isinstance(root, Sequence) or width is None:
            return super().decode_batch(index, layout, piece, rows)
        full = np.flatnonzero(piece.size > root.width)
        start, size = piece.offset[full], piece.size[full]
        records = np.zeros(len(piece.size), np.int64)
        records[full], rest = np.divmod(size - root.width, width)
        if rest.any():
            return super().decode_batch(index, layout, piece, rows)
        got = decode_variable(NumpyFields(layout), piece.data, start, start + size, records=records[full])
        return replace(got, records=records)


Divisors = tuple[float, float, float]

#: Divisors of the members of a vector, by the name of its field.
_VECTORS: dict[str, Divisors] = {
    "location": (100.0, -100.0, 100.0),
    "position": (100.0, -100.0, 100.0),
    "origin": (100.0, -100.0, 100.0),
    "extent": (100.0, 100.0, 100.0),
    "rotation": (1.0, -1.0, -1.0),
    "linear": (1.0, -1.0, 1.0),
    "angular": (-1.0, 1.0, -1.0),
    "center_of_mass": (1.0, -1.0, 1.0),
}
#: Scalar fields that are lengths in cm or speeds in cm/s.
_LENGTHS = ("radius", "speed")
_UNITS = {"cm": "m", "cm/s": "m/s"}


def with_ros_units(layout: Layout) -> Layout:
    """Return *layout* with the units that its fields have after the conversion."""
    record = Struct(tuple(map(_field, layout.record.fields)))
    root = Sequence(record, layout.root.width) if isinstance(layout.root, Sequence) else record
    return Layout(root, layout.name)


def _field(f: Field) -> Field:
    return Field(f.name, _node(f.node), _UNITS.get(f.unit, f.unit))


def _node(node: Node) -> Node:
    if isinstance(node, Struct):
        return Struct(tuple(map(_field, node.fields)))
    return Sequence(_node(node.item), node.width) if isinstance(node, Sequence) else node


def _divisors(f: Field) -> dict[str, float]:
    """Return the divisor of each member of a spatial vector; empty for other fields."""
    if isinstance(f.node, Struct) and f.name in _VECTORS:
        names = "roll pitch yaw" if f.name == "rotation" else "x y z"
        return dict(zip(names.split(), _VECTORS[f.name], strict=True))
    return {}


class RosAxesDecoder(PacketFieldsDecoder):
    """Decodes payloads of a Layout and converts them to metres and right-handed axes."""

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout)
        self.layout = None
        self._record = layout.record
        self._many = isinstance(layout.root, Sequence)

    def decode_batch(self, index: MessageIndex, layout: Layout, piece: PayloadRange, rows: I64) -> Decoded:
        """See PayloadDecoder."""
        got = super().decode_batch(index, layout, piece, rows)
        members = zip(layout.record.visible(), got.arrays, strict=True)
        return replace(got, arrays=[_converted(f, column) for f, column in members])

    def decode_message(self, index: MessageIndex, data: memoryview, row: int | None) -> dict[str, Any]:
        """See PayloadDecoder."""
        values = super().decode_message(index, data, row)
        if self._many:
            return {"records": [_values(self._record, record) for record in values["records"]]}
        return _values(self._record, values)


def _values(struct: Struct, values: dict[str, Any]) -> dict[str, Any]:
    return {f.name: _value(f, values[f.name]) for f in struct.visible()}


def _value(f: Field, value: Any) -> Any:
    if by := _divisors(f):
        return {name: _divided(value[name], by[name]) for name in value}
    if isinstance(f.node, Struct):
        return _values(f.node, value)
    if isinstance(f.node, Sequence) and isinstance(f.node.item, Struct):
        return [_values(f.node.item, member) for member in value]
    return value / 100.0 if f.name in _LENGTHS else value


def _divided(value: float, by: float) -> float:
    # Subtracting from zero avoids negative zeros.
    return value / by if by > 0 else 0.0 - value / -by


def _converted(f: Field, column: Column) -> Column:
    if isinstance(f.node, Struct):
        by, children = _divisors(f), []
        for member, child in zip(f.node.visible(), column.children, strict=True):
            divided = _quotient(child, by[member.name]) if member.name in by else _converted(member, child)
            children.append(divided)
        return replace(column, children=tuple(children))
    if isinstance(f.node, Sequence) and isinstance(f.node.item, Struct):
        return replace(column, children=(_converted(Field("item", f.node.item), column.item),))
    return _quotient(column, 100.0) if f.name in _LENGTHS else column


def _quotient(column: Column, by: float) -> Column:
    values = column.values / column.values.dtype.type(abs(by)) if abs(by) != 1 else column.values
    return replace(column, data=values if by > 0 else values.dtype.type(0) - values)
