"""Read a recording from the front: follow its packets, repair wrong headers by content, and skip damage.

The reader is incremental: ``feed`` reads the complete packets that the file has more than before, ``finish`` takes the
rest as the end of the file.

Packets have neither marks nor checksums. Evidence for a valid packet: for records of fixed size, the number of records
and the size of the packet agree; and a frame ends with ten bytes, FrameEnd and the header of the next FrameStart.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass, field
from logreel.errors import Problem
from logreel.formats.carla import definitions
from logreel.formats.carla.records import (
    END,
    FRAME_END,
    FRAME_START,
    HEAD,
    INSERTED,
    LAST_KIND,
    POSITION,
    RELEASED,
    SHIFTING,
    START,
    TOPICS,
    Header,
    Packet,
    content_ends,
    find_all,
    kind_by_content,
    read_frame,
    read_header,
    read_packet,
    vectors_are_wide,
)
from logreel.index import block_table as block_builder
from logreel.index.block_table import BlockBuilder, Blocks
from logreel.io.arrays import I64
from logreel.io.source import Source
from logreel.kernels import framed
from logreel.log.scan import ENOUGH, IncompleteError, IncrementalReader, UndecidedError


@dataclass(slots=True)
class Found:
    """The content of a recording.

    wide     True if vectors are float64, as on the UE5 line
    topics   topic of each kind that has packets; the kind is the channel in *blocks*
    ends     int64[e]: offsets of the FrameEnds
    sizes    uint32[n]: true bytes of each packet, in the order of *blocks*
    is_growing  True: a file that is still written
    resized  true bytes of the packets that state a wrong size, by the offset of their payload
    """

    header: Header
    wide: bool
    topics: dict[int, str]
    blocks: Blocks
    ends: I64
    sizes: NDArray[np.uint32]
    resized: dict[int, int]
    problems: list[Problem] = field(default_factory=list)
    is_growing: bool = False


#: Packet headers for kernels/framed.py: kind u8, payload size u32; the kind is also the key.
SPEC = np.array([(HEAD, 1, 0xFFFFFFFF, HEAD, 0, 0, 0xFF, HEAD, 0, 0)], framed.SPEC)
#: Number of possible kinds.
KINDS = 256
#: Greatest payload in bytes.
_LARGEST = (1 << 31) - 1
#: Valid packets in a row that are enough evidence to continue reading.
CHAIN = 3
#: Bytes before a valid frame that are searched for packets of the damaged frame, and the number of attempts.
_FRAME_BYTES, _TRIES = 1 << 20, 64
#: Bytes of a packet without records, and number of packets of a kind whose neighbours are examined.
_EMPTY, _LOOKED_AT = 2, 16
#: A frame whose number is greater by this much than the last one before damage is not a frame.
_FRAMES_AHEAD = 1 << 20
#: A packet that needs more bytes than this is one whose size is damaged.
LONGEST = 64 << 20


class Framing:
    """Tables for the kernel that describe acceptable packets.

    tags, keys  packets that the walk accepts, see kernels/framed.py
    tolerant    like *keys*, but packets of unknown kinds are passed over and count as no evidence
    """

    def __init__(self, source: Source, wide: bool) -> None:
        self._source, self._wide = source, wide
        self.tags, self.keys, self.tolerant = (table.copy() for table in _tables(wide))

    def extend(self, source: Source) -> None:
        """Go on with *source*, which begins with the bytes so far."""
        self._source = source

    def declare(self, packet_kind: int, topic: str) -> None:
        """Accept packets of *packet_kind* as those of *topic*."""
        _declare((self.tags, self.keys, self.tolerant), packet_kind, topic, self._wide)

    def accepts(self, packet: Packet, end: int) -> bool:
        """Return True if the walk would accept a packet that must end by *end*."""
        data = self._source.data
        return (
            packet.next <= end
            and framed.resync(data, packet.at, packet.next, 1, SPEC, self.tags, self.keys, packet.at)
            == packet.at
        )

    def is_chain(self, pos: int, need: int = CHAIN) -> bool:
        """Return True if *need* valid packets follow each other from *pos*, or if *pos* is the end of the file."""
        return pos == self._source.size or self.find_chain(pos, self._source.size, pos, need) == pos

    def find_chain(self, pos: int, end: int, last: int, need: int = CHAIN) -> int:
        """Return the first offset from *pos* to *last* where *need* valid packets follow each other, or -1."""
        return framed.resync(self._source.data, pos, end, need, SPEC, self.tags, self.tolerant, last)


Tables = tuple[NDArray[np.void], NDArray[np.void], NDArray[np.void]]


@lru_cache(2)
def _tables(wide: bool) -> Tables:
    """Return the tables before any packet is read."""
    tags = np.tile(np.array([(framed.DATA, 0, 0xFFFFFFFF, 0, 0)], framed.TAG), KINDS)
    tags[FRAME_END] = framed.NOTE, 0, 0, 0, 255
    keys = np.tile(np.array([(framed.UNDECLARED, 0, 0, 0)], framed.KEY), KINDS)
    tolerant = np.tile(np.array([(framed.TOLERATED, 0, 0, 0)], framed.KEY), KINDS)
    for packet_kind, topic in TOPICS.items():
        _declare((tags, keys, tolerant), packet_kind, topic, wide)
    for packet_kind in SHIFTING[1:]:
        # Only empty packets are accepted until the content of one shows its meaning.
        keys[packet_kind] = packet_kind, 2, 2, 0
    return tags, keys, tolerant


def _declare(tables: Tables, packet_kind: int, topic: str, wide: bool) -> None:
    """Accept packets of *packet_kind* as those of *topic*."""
    tags, keys, tolerant = tables
    least = definitions.layout(topic, wide).measure
    greatest = _LARGEST if least.size is None else least.size
    keys[packet_kind] = packet_kind, least.least, greatest, 0
    tags["first_least"][packet_kind] = definitions.width(topic, wide)
    tolerant[packet_kind] = keys[packet_kind]


class Reader(IncrementalReader):
    """Reads one recording from the front.

    begin  position of the first packet
    pos    position after the last packet that was read
    wide   whether vectors are float64
    """

    def __init__(self, source: Source) -> None:
        self._source, self._end = source, source.size
        self._problems: list[Problem] = []
        self._resized: dict[int, int] = {}
        self._topics = dict(TOPICS)
        self._header, self.begin = self._read_header()
        self.pos = self.begin
        self.wide = vectors_are_wide(source, self.begin)
        self._framing = Framing(source, self.wide)
        self._blocks = BlockBuilder(source.data, SPEC, (HEAD, HEAD), keep_sizes=True)
        self._blocks.declare(KINDS)
        #: Offset of the last packet when the number of its frame was determined, and that number.
        self._frame_cache = -1, 0

    def _read_header(self) -> tuple[Header, int]:
        header = read_header(self._source)
        if header is not None:
            return header, header.size
        start = next(find_all(self._source, START, 20), self._end)
        self._problem("header", 0, start, True, "the header of the recording is damaged: no date, no map")
        return Header(0, 0, "", start), start

    def _extend(self, source: Source) -> None:
        self._source, self._end = source, source.size
        self._framing.extend(source)
        self._blocks.extend(source.data)

    def finish(self) -> Found:
        """Read the rest as the end of the recording, and return everything that was found."""
        self._source.map_ahead()
        self._is_final = True
        self._read()
        blocks, ends = self._blocks.finish(KINDS)
        return self._found(blocks, ends, self._blocks.sizes, self._problems)

    def found(self) -> Found:
        """Return what was found so far; it does not change when reading goes on."""
        blocks, ends, sizes = self._blocks.snapshot(KINDS)
        known = len(self._problems)
        if self.pos < self._end:
            self._skip(self.pos, self._end)
        problems = list(self._problems)
        del self._problems[known:]
        return self._found(blocks, ends, sizes, problems)

    def _found(self, blocks: Blocks, ends: I64, sizes: NDArray[np.uint32], problems: list[Problem]) -> Found:
        topics = self._topics_of(np.flatnonzero(blocks.counts).tolist(), blocks)
        resized = dict(self._resized)
        is_growing = not self._is_final
        return Found(self._header, self.wide, topics, blocks, ends, sizes, resized, problems, is_growing)

    @property
    def has_losses(self) -> bool:
        """Whether bytes were lost so far."""
        return any(problem.lost for problem in self._problems)

    def _read(self) -> None:
        framing = self._framing
        while self.pos < self._end:
            why, self.pos = self._blocks.walk(self.pos, self._end, framing.tags, framing.keys)
            if why != block_builder.END:
                self.pos = self._refused(self.pos)

    def _doors_come_first(self, blocks: Blocks, kinds: list[int]) -> bool:
        """Return True if empty packets of kind 21 are doors, which precede positions; wheels follow them."""
        first = SHIFTING[1]
        if first not in kinds:
            return False
        for payload in blocks.offsets(first)[:_LOOKED_AT].tolist():
            packet = read_packet(self._source, payload + _EMPTY)
            if packet is not None and packet.kind in (POSITION, first + 1):
                return packet.kind == POSITION
        return POSITION not in kinds

    def _topics_of(self, kinds: list[int], blocks: Blocks) -> dict[int, str]:
        """Return the topics of *kinds*; kinds without any content are inferred from the order of the others."""
        known = {
            packet_kind: self._topics[packet_kind] for packet_kind in kinds if packet_kind in self._topics
        }
        shifting = {packet_kind: topic for packet_kind, topic in known.items() if packet_kind in RELEASED}
        if shifting:
            inserted = all(INSERTED[packet_kind] == topic for packet_kind, topic in shifting.items())
        else:
            old = self._header.version < 2
            inserted = self.wide or (old and (23 in kinds or self._doors_come_first(blocks, kinds)))
        usual = INSERTED if inserted else RELEASED
        named: dict[int, str] = {}
        for packet_kind in kinds:
            topic = known.get(packet_kind) or usual.get(packet_kind, "raw")
            taken = topic == "raw" or topic in named.values()
            named[packet_kind] = f"packet_{packet_kind}" if taken else topic
        return named

    def _problem(self, code: str, offset: int, size: int, lost: bool, text: str) -> None:
        self._problems.append(Problem(code, offset, size, lost, text))

    # ------------------------------------------------------------------------------------------------- decisions

    def _refused(self, pos: int) -> int:
        """Return the offset to continue at; the walk found no acceptable packet at *pos*."""
        packet = read_packet(self._source, pos)
        if not self._is_final and (packet is None or packet.next > self._end):
            raise IncompleteError(LONGEST + 1)
        if packet is None:
            return self._skip(pos, self._end)
        if not self._is_final and self._end - pos < ENOUGH:
            if (after := self._infer_kind(packet)) is None:
                raise UndecidedError
            return after
        for attempt in (
            self._repair_frame_start,
            self._infer_kind,
            self._repair_last_size,
            self._repair_size,
            self._skip_packet,
        ):
            after = attempt(packet)
            if after is not None:
                return after
        return self._resync(pos)

    def _infer_kind(self, packet: Packet) -> int | None:
        """Return the offset of the packet if its content shows the meaning of its kind, not known so far."""
        packet_kind = packet.kind
        if packet.next > self._end or packet_kind in self._topics:
            return None
        if packet_kind in SHIFTING:
            topic = kind_by_content(self._source, packet, self.wide)
        else:
            topic = "raw" if packet_kind > LAST_KIND and self._framing.is_chain(packet.next) else None
        if topic is None:
            return None
        self._declare(packet_kind, topic)
        return packet.at

    def _declare(self, packet_kind: int, topic: str) -> None:
        self._topics[packet_kind] = topic
        self._framing.declare(packet_kind, topic)

    def _add_repaired(self, packet: Packet, packet_kind: int, after: int) -> int:
        """Collect a packet with a wrong header, whose content ends at *after*; return *after*."""
        size = after - packet.payload
        stated = f"kind {packet.kind} and {packet.size} bytes"
        text = f"a packet states {stated}; by its content it is of kind {packet_kind} and takes {size}"
        self._problem("head", packet.at, HEAD, False, text)
        self._resized[packet.payload] = size
        self._blocks.add(packet.at, packet_kind, size)
        return after

    def _repair_frame_start(self, packet: Packet) -> int | None:
        """Accept a FrameStart with a damaged header if it follows a FrameEnd and has the next frame number."""
        after = packet.payload + 24
        if self._last_kind() != FRAME_END or after > self._end or not self._framing.is_chain(after):
            return None
        if read_frame(self._source, packet.payload)[0] != self._last_frame() + 1:
            return None
        return self._add_repaired(packet, FRAME_START, after)

    def _repair_size(self, packet: Packet) -> int | None:
        """Accept a packet whose size is wrong or was never filled in, but whose end follows from its content."""
        # Of the kinds in SHIFTING, only wheels are first written without their size.
        topic = self._topics.get(packet.kind, "wheels" if packet.kind in SHIFTING else "raw")
        after = self._content_end(packet, topic)
        if after is None:
            return None
        if packet.kind not in self._topics:
            self._declare(packet.kind, topic)
        return self._add_repaired(packet, packet.kind, after)

    def _repair_last_size(self, packet: Packet) -> int | None:
        """Do the same for the packet before *packet*, whose wrong size led here."""
        last = read_packet(self._source, self._blocks.last) if self._blocks.last >= 0 else None
        if last is None or last.next != packet.at or last.payload in self._resized:
            return None
        after = self._content_end(last, self._topics.get(last.kind, "raw"))
        if after is None:
            return None
        self._blocks.drop_last()
        return self._add_repaired(last, last.kind, after)

    def _content_end(self, packet: Packet, topic: str) -> int | None:
        """Return the end of a packet by its content if its size states another one and valid packets follow there."""
        ends = content_ends(self._source, topic, self.wide, packet.payload)
        if packet.next in ends:
            return None
        if packet.size:
            # A truncated packet may look like a complete one of an older release.
            ends = [end for end in ends if end < self._end]
        return next(filter(self._framing.is_chain, ends), None)

    def _skip_packet(self, packet: Packet) -> int | None:
        """Skip a packet of a known kind with a right size but invalid records."""
        known = packet.kind <= LAST_KIND and packet.size > 0
        if not known or packet.next > self._end or not self._framing.is_chain(packet.next):
            return None
        text = f"a packet of kind {packet.kind} whose records do not fill its {packet.size} bytes"
        self._problem("garbage", packet.at, HEAD + packet.size, True, text)
        return packet.next

    # -------------------------------------------------------------------------------------------------- recovery

    def _last_kind(self) -> int:
        return int(self._source.data[self._blocks.last]) if self._blocks.last >= 0 else FRAME_END

    def _last_frame(self) -> int:
        """Return the number of the last frame that began, 0 before the first."""
        if self._frame_cache[0] != self._blocks.last:
            last = self._blocks.last_payloads(FRAME_START, 1)
            self._frame_cache = self._blocks.last, read_frame(self._source, last[0])[0] if last else 0
        return self._frame_cache[1]

    def _resync(self, pos: int) -> int:
        """Record the bytes from *pos* to the next valid packet as a problem; return its offset."""
        frame = next(filter(self._is_frame, find_all(self._source, START, pos + 1)), self._end)
        return self._skip(pos, self._rest_of_frame(pos + 1, frame))

    def _is_frame(self, at: int) -> bool:
        """Return True if a frame begins at *at*: after a FrameEnd or with a plausible number, and packets follow."""
        if self._end - at < HEAD + 24 or not self._framing.is_chain(at):
            return False
        number, duration, elapsed = read_frame(self._source, at + HEAD)
        if not (math.isfinite(duration) and math.isfinite(elapsed) and elapsed >= 0):
            return False
        return self._source.read(at - HEAD, HEAD) == END or 0 < number - self._last_frame() < _FRAMES_AHEAD

    def _rest_of_frame(self, pos: int, frame: int) -> int:
        """Return the first packet of the damaged frame from which packets lead to the next *frame*, else *frame*."""
        if self._last_kind() == FRAME_END or frame - pos > _FRAME_BYTES:
            return frame
        if frame < self._end and read_frame(self._source, frame + HEAD)[0] != self._last_frame() + 1:
            # Packets of another frame whose FrameStart is lost must not be added to this one.
            return frame
        for _ in range(_TRIES):
            pos = self._framing.find_chain(pos, frame, frame - 1, 2)
            if pos < 0:
                break
            if self._leads_to(pos, frame):
                return pos
            pos += 1
        return frame

    def _leads_to(self, pos: int, frame: int) -> bool:
        """Return True if packets of one frame follow each other from *pos* and a FrameEnd ends exactly at *frame*."""
        seen = {FRAME_START}
        last = FRAME_START
        while pos < frame:
            packet = read_packet(self._source, pos)
            # A frame has at most one packet of each kind.
            if packet is None or packet.kind in seen or not self._framing.accepts(packet, frame):
                return False
            last = packet.kind
            seen.add(last)
            pos = packet.next
        return len(seen) > 2 and last == FRAME_END

    def _skip(self, pos: int, stop: int) -> int:
        """Record the bytes from *pos* to *stop* as a problem; return *stop*."""
        size = stop - pos
        where = f"in frame {self._last_frame()} and later" if self._last_frame() else "before the first frame"
        if not self._source.data[pos:stop].any():
            self._problem("zeros", pos, size, True, f"{size} bytes of zeros where packets should be, {where}")
        elif stop == self._end:
            self._problem("truncated", pos, size, True, f"the last {size} bytes are a cut packet, {where}")
        else:
            self._problem("garbage", pos, size, True, f"{size} bytes that are no sound packet, {where}")
        return stop
