"""Series of plain values (POD): data blocks with concatenated samples and one time for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DamagedError, DefinitionError, Problem
from logreel.formats.bddf.descriptors import MAX_DIMENSIONS, PodType, Series
from logreel.formats.bddf.index_builder import locate_payloads
from logreel.index.gather import gather_bytes
from logreel.index.message_index import MessageIndex
from logreel.index.ranges import PayloadRange
from logreel.io.arrays import I64
from logreel.kernels import bddf
from logreel.layout.layout import Layout
from logreel.layout.nodes import SCALARS, Field, FixedArray, Node, Rest, Scalar, Sequence, Struct, measure

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


def describe(series: Series, pod: PodType) -> str:
    """Return the schema text of a channel of plain values: its type and unit, and the meaning of its times."""
    unit = series.annotations.get("units")
    shown = type_text(pod) + (f" in {unit}" if unit else "")
    return (
        f"{shown}: samples back to back. A block has one time, that of its first sample; "
        "'sample' counts within the block, and interpolated times are spread to the next block."
    )


def block_layout(series: Series, pod: PodType) -> Layout | None:
    """Return the Layout of a data block, one record (sample number, value) per sample; None: it is shown as bytes."""
    node = sample_node(pod)
    if node is None:
        return None
    unit = series.annotations.get("units", "")
    record = Struct((Field("sample", Scalar("uint32")), Field("value", node, unit)))
    return Layout(Sequence(record), type_text(pod))


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
        from logreel.layout.arrow_from_buffers import build

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


def concatenate_payloads(piece: PayloadRange) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return the payloads of a range, concatenated: uint8[n]."""
    n = len(piece.size)
    if n == 0:
        return np.zeros(0, np.uint8)
    size = int(piece.size[0])
    if (piece.size == size).all():
        return gather_bytes(piece.data, piece.offset, size).reshape(-1)
    parts = [
        piece.data[a:b]
        for a, b in zip(piece.offset.tolist(), (piece.offset + piece.size).tolist(), strict=True)
    ]
    return np.concatenate(parts)
