"""Series of plain values (POD): data blocks with concatenated samples and one time for all of them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass
from logreel.errors import DamagedError, DefinitionError, Problem
from logreel.formats.bddf.payload_decoders import distinct_names
from logreel.formats.bddf.reader import locate_payloads
from logreel.formats.bddf.records import (
    MAX_DIMENSIONS,
    MessageSeriesType,
    PodType,
    SeriesDeclaration,
    StructType,
)
from logreel.index.channel_index import SyntheticMessages
from logreel.index.gather import PayloadRange, gather_bytes
from logreel.index.message_index import MessageIndex
from logreel.io.arrays import I64
from logreel.io.source import FILE
from logreel.kernels import bddf, block_table
from logreel.layout.layout import Layout
from logreel.layout.nodes import SCALARS, Bytes, Field, FixedArray, Node, Rest, Scalar, Struct, measure
from logreel.layout.nodes import Sequence as Records
from logreel.log.scan import Noted

if TYPE_CHECKING:
    from logreel.layout.arrow import Decoded


RAW = Layout(Struct((Field("data", Rest()),)), "raw")


def sample_node(pod: PodType) -> Node | None:
    """Return the layout node of one sample, or None if its type or its dimensions are invalid."""
    if not pod.type or 0 in pod.dimension or len(pod.dimension) > MAX_DIMENSIONS:
        return None
    node: Node = Scalar(pod.type)
    for count in reversed(pod.dimension):
        node = FixedArray(node, count)
    try:
        measure(node)
    except DefinitionError:
        return None
    return node


def sample_size(pod: PodType) -> int:
    """Return the bytes of one sample of a type for which ``sample_node`` returns a node."""
    width = SCALARS[pod.type][1]
    for count in pod.dimension:
        width *= count
    return width


def type_text(pod: PodType) -> str:
    """Return the name of the type, such as ``float32`` or ``float64[2][3]``."""
    return (pod.type or "unknown") + "".join(f"[{n}]" for n in pod.dimension)


def describe(series: SeriesDeclaration, pod: PodType) -> str:
    """Return the schema text of a channel of plain values: its type and unit, and the meaning of its times."""
    unit = series.annotations.get("units")
    shown = type_text(pod) + (f" in {unit}" if unit else "")
    return (
        f"{shown}: samples back to back. A block has one time, that of its first sample; "
        "'sample' counts within the block, and interpolated times are spread to the next block."
    )


def block_layout(series: SeriesDeclaration, pod: PodType) -> Layout | None:
    """Return the Layout of a data block, one record (sample number, value) per sample; None: it is shown as bytes."""
    node = sample_node(pod)
    if node is None:
        return None
    unit = series.annotations.get("units", "")
    record = Struct((Field("sample", Scalar("uint32")), Field("value", node, unit)))
    return Layout(Records(record), type_text(pod))


class PodDecoder:
    """Decodes data blocks of concatenated samples."""

    def __init__(self, pod: PodType) -> None:
        self._width = sample_size(pod)
        self._dtype = np.dtype(SCALARS[pod.type][0])
        self._shape = pod.dimension

    def decode_batch(self, index: MessageIndex, layout: Layout, piece: PayloadRange, rows: I64) -> Decoded:
        """See PayloadDecoder; blocks with an incomplete sample are skipped."""
        kept, bad = None, []
        count, partial = self._sample_counts(piece.size)
        if partial is not None:
            why = f"its bytes are not whole samples of {self._width} bytes"
            bad = [(row, why) for row in np.flatnonzero(partial).tolist()]
            kept = np.flatnonzero(~partial)
            piece = PayloadRange(piece.data, piece.offset[kept], piece.size[kept])
            count = count[kept]
        wants_values = any(f.name != "sample" for f in layout.record.visible())
        values = concatenate_payloads(piece) if wants_values else np.zeros(0, np.uint8)
        return self._decoded(layout, values, count, kept, bad)

    def decode_all(
        self, index: MessageIndex, channel: int, layout: Layout, explode: bool
    ) -> tuple[Decoded, I64] | None:
        """See WholeChannelDecoder; only if all blocks have the same number of complete samples."""
        if index.reads_in_ranges:
            # Of a remote file, blocks that are not what the index says are left out one by one.
            return None
        n, runs = index.count(channel), list(index.runs_by_block(channel))
        if not n:
            return None
        chunk, base, entry = runs[0]
        data = index.chunks[chunk]
        _, (size,) = locate_payloads(data, base + entry[:1].astype(np.int64))
        # Blocks do not overlap: if n such blocks do not fit into the file, they differ in size.
        if not size or size % self._width or size * n > len(data):
            return None
        values, times, done = np.empty(n * int(size), np.uint8), np.empty(n, np.int64), 0
        for _, base, entry in runs:
            out, to = values[done * size :], times[done:]
            if bddf.gather_payloads(data, np.ascontiguousarray(entry), base, int(size), out, to) < len(entry):
                return None
            done += len(entry)
        times.flags.writeable = False
        count = np.broadcast_to(np.int64(int(size) // self._width), n)
        return self._decoded(layout, values, count, None, []), times

    def _decoded(
        self,
        layout: Layout,
        values: NDArray[np.uint8],
        count: I64,
        kept: I64 | None,
        bad: list[tuple[int, str]],
    ) -> Decoded:
        """Return columns: *values* are the bytes of all samples, *count* the number of samples per block."""
        from logreel.layout.arrow import Decoded
        from logreel.layout.numpy_columns import build

        total = int(count.sum())
        arrays = []
        for f in layout.record.visible():
            column = self._sample_numbers(count, total).view(np.uint8) if f.name == "sample" else values
            arrays.append(build(f.node, iter([column]), total))
        return Decoded(arrays, kept, bad, np.zeros(0, np.int64), count)

    def _sample_counts(self, size: I64) -> tuple[I64, NDArray[np.bool_] | None]:
        """Return the complete samples per block, and a mask of blocks with an incomplete one (None: no block)."""
        # Most files have blocks of one size, and division is slow.
        if len(size) and int(size[0]) % self._width == 0 and (size == size[0]).all():
            return np.broadcast_to(np.int64(int(size[0]) // self._width), len(size)), None
        count, rest = np.divmod(size, self._width)
        return count, rest != 0 if rest.any() else None

    def _sample_numbers(self, count: I64, total: int) -> np.ndarray[Any, np.dtype[np.uint32]]:
        if total == len(count) and (count == 1).all():
            return np.zeros(total, np.uint32)
        first = np.cumsum(count) - count
        return (np.arange(total, dtype=np.int64) - np.repeat(first, count)).astype(np.uint32)

    def decode_message(self, index: MessageIndex, data: memoryview, row: int | None) -> dict[str, Any]:
        """See PayloadDecoder."""
        if len(data) % self._width:
            text = f"{len(data)} bytes are not whole samples of {self._width} bytes"
            raise DamagedError(Problem("payload", 0, len(data), True, text))
        values = np.frombuffer(data, self._dtype).reshape(-1, *self._shape).tolist()
        return {"records": [{"sample": i, "value": value} for i, value in enumerate(values)]}


def concatenate_payloads(payloads: PayloadRange) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return the payloads of a range, concatenated: uint8[n]."""
    n = len(payloads.size)
    if n == 0:
        return np.zeros(0, np.uint8)
    size = int(payloads.size[0])
    if (payloads.size == size).all():
        return gather_bytes(payloads.data, payloads.offset, size).reshape(-1)
    parts = [
        payloads.data[a:b]
        for a, b in zip(payloads.offset.tolist(), (payloads.offset + payloads.size).tolist(), strict=True)
    ]
    return np.concatenate(parts)


#: Structs may be nested, but not deeper than this.
MAX_DEPTH = 8


@dataclass(frozen=True, slots=True)
class Samples:
    """All samples of one member, and its data blocks.

    offset  int64[n]  of each sample in the file
    size    int64[n]  bytes of each sample
    block   int64[n]  the data block of each sample
    number  int64[n]  number of each sample within its block
    times   int64[b]  ns of each block
    width   bytes of every sample; None: sizes differ
    """

    offset: I64
    size: I64
    block: I64
    number: I64
    times: I64
    width: int | None


#: Channel and bytes per sample of a member that is no struct; None: sizes differ.
Leaf = tuple[int, int | None]


class StructJoin:
    """Joins the members of one struct series.

    index  of the channels that have data blocks
    """

    def __init__(
        self,
        series: SeriesDeclaration,
        all_series: Sequence[SeriesDeclaration],
        index: MessageIndex,
        problems: list[Problem],
    ) -> None:
        self._all_series, self._index, self._problems = all_series, index, problems
        self._noted = Noted()
        self._by_hash: dict[int, list[int]] = {}
        for i, other in enumerate(all_series):
            self._by_hash.setdefault(other.hash, []).append(i)
        members, self._leaves = self._members(series, (series.hash,), ("time", "sample"))
        record = Struct((Field("sample", Scalar("uint32")), *members))
        self.layout = Layout(Records(record), "struct")

    def _add_problem(self, text: str) -> None:
        problem = Problem("definition", 0, 0, False, f"struct series: {text}")
        self._noted.add(self._problems, problem)

    def _members(
        self, series: SeriesDeclaration, above: tuple[int, ...], taken: Sequence[str] = ()
    ) -> tuple[list[Field], list[Leaf]]:
        """Return the fields of a struct, and the leaves below them in the same order.

        above  hashes of the structs that contain this one, and its own
        taken  names that no member may have
        """
        fields, leaves = list[Field](), list[Leaf]()
        members = series.type.members if isinstance(series.type, StructType) else {}
        for name, hash_ in zip(distinct_names(members, taken), members.values(), strict=True):
            fits = self._by_hash.get(hash_, [])
            if len(above) > MAX_DEPTH:
                self._add_problem(
                    f"member {name!r} is left out: structs are nested more than {MAX_DEPTH} deep"
                )
                continue
            if not fits or hash_ in above:
                self._add_problem(f"member {name!r} names no series that could be it")
                continue
            if len(fits) > 1:
                self._add_problem(f"{len(fits)} series have the hash of member {name!r}: the first is taken")
            node, inner = self._node(fits[0], above)
            leaves += inner
            if node is not None:
                unit = self._all_series[fits[0]].annotations.get("units", "")
                fields.append(Field(name, node, unit))
        return fields, leaves

    def _node(self, channel: int, above: tuple[int, ...]) -> tuple[Node | None, list[Leaf]]:
        """Return the node of a member (None: it has no known type) and the leaves below it."""
        series = self._all_series[channel]
        match series.type:
            case PodType() as pod if (node := sample_node(pod)) is not None:
                return node, [(channel, sample_size(pod))]
            case MessageSeriesType():
                return Bytes(), [(channel, None)]
            case StructType():
                fields, leaves = self._members(series, (*above, series.hash))
                return (Struct(tuple(fields)) if fields else None), leaves
        return None, []

    @cached_property
    def _samples(self) -> list[Samples]:
        return [self._samples_of(channel, width) for channel, width in self._leaves]

    def _samples_of(self, channel: int, width: int | None) -> Samples:
        offset, size = self._index.offsets(channel), self._index.sizes(channel)
        count = np.ones(len(offset), np.int64) if width is None else size // width
        if width is not None:
            # A block with an incomplete sample is shown as bytes only.
            count[size % width != 0] = 0
        block = np.repeat(np.arange(len(offset), dtype=np.int64), count)
        number = np.arange(len(block), dtype=np.int64) - np.repeat(np.cumsum(count) - count, count)
        step = 0 if width is None else width
        sizes = np.full(len(block), step) if width else size[block]
        return Samples(offset[block] + number * step, sizes, block, number, self._index.times(channel), width)

    @cached_property
    def _rows(self) -> list[I64]:
        """For each member int64[r]: its samples that have a partner in every other member."""
        samples = self._samples
        if len({len(s.offset) for s in samples}) <= 1:
            # Members may be cut into blocks differently; the running number of a sample is the same in all.
            return [np.arange(len(s.offset), dtype=np.int64) for s in samples]
        keys = [np.stack([s.times[s.block], s.number], axis=1) for s in samples]
        _, ids = np.unique(np.concatenate(keys), axis=0, return_inverse=True)
        parts = np.split(ids.reshape(-1), np.cumsum([len(k) for k in keys])[:-1])
        common = parts[0]
        for part in parts[1:]:
            common = np.intersect1d(common, part)
        rows = []
        for part in parts:
            values, first = np.unique(part, return_index=True)
            rows.append(first[np.searchsorted(values, common)])
        order = np.argsort(rows[0], kind="stable")
        return [r[order] for r in rows]

    @cached_property
    def _blocks(self) -> tuple[I64, I64]:
        """First row and number of rows of each joined message: one message per data block of the first member."""
        if not self._leaves:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        block = self._samples[0].block[self._rows[0]]
        first = np.flatnonzero(np.diff(block, prepend=-1))
        return first, np.diff(np.append(first, len(block)))

    @property
    def count(self) -> int:
        """Number of joined messages."""
        return len(self._blocks[0])

    def messages(self, at: int) -> tuple[bytes, SyntheticMessages]:
        """Return the joined messages; they begin at offset *at* of the chunk of synthetic messages."""
        first, count = self._blocks
        sizes, records = self._records()
        ends = np.concatenate([[0], np.cumsum(sizes)])
        out, offsets = bytearray(), []
        for lo, n in zip(first.tolist(), count.tolist(), strict=True):
            offsets.append(at + len(out))
            out += struct.pack("<I", n) + records[int(ends[lo]) : int(ends[lo + n])]
        where = np.array([*offsets, at + len(out)], np.int64)
        times = self._times(first)
        return bytes(out), SyntheticMessages(where[:-1], np.diff(where), times)

    def _times(self, first: I64) -> I64:
        if not len(first):
            return np.zeros(0, np.int64)
        samples = self._samples[0]
        return samples.times[samples.block[self._rows[0][first]]]

    def _records(self) -> tuple[I64, bytes]:
        """Return the sizes of all joined records, and the records: sample number, then the value of each member."""
        rows, samples = self._rows, self._samples
        if not samples:
            return np.zeros(0, np.int64), b""
        n = len(rows[0])
        number = samples[0].number[rows[0]].astype("<u4")
        data = self._index.chunks[FILE]
        if any(s.width is None for s in samples):
            view = data.data
            parts = []
            for i in range(n):
                record = bytearray(number[i].tobytes())
                for s, r in zip(samples, rows, strict=True):
                    lo, size = int(s.offset[r[i]]), int(s.size[r[i]])
                    record += (struct.pack("<I", size) if s.width is None else b"") + view[lo : lo + size]
                parts.append(bytes(record))
            return np.array([len(p) for p in parts], np.int64), b"".join(parts)
        width = 4 + sum(s.width or 0 for s in samples)
        out = np.empty((n, width), np.uint8)
        out[:, :4] = number.view(np.uint8).reshape(n, 4)
        at = 4
        for s, r in zip(samples, rows, strict=True):
            if n:
                field = np.array([(0, s.width, at, width, 0)], block_table.FIELD)
                block_table.gather_at(data, np.ascontiguousarray(s.offset[r]), field, out.reshape(-1))
            at += s.width or 0
        return np.full(n, width, np.int64), out.tobytes()
