"""From bytes to the block table: follow the packets, judge what is not sound, step over damage.

Packets have no mark and no checksum. What can be relied on: kinds of records of one size state both their number and
their bytes, which must agree; and a frame ends with ten bytes, FrameEnd and the head of the next FrameStart.
"""

from __future__ import annotations

import math

import numpy as np

from logreel.errors import Problem
from logreel.formats.carla import definitions
from logreel.formats.carla.found import Found
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
    find,
    kind_by_content,
    read_frame,
    read_header,
    read_packet,
    vectors_are_wide,
)
from logreel.index import block_builder
from logreel.index.block_builder import BlockBuilder
from logreel.index.block_table import Blocks
from logreel.io.source import Source
from logreel.kernels import framed

#: See kernels/framed.py: u8 kind, u32 size of the payload; the kind is the key too.
SPEC = np.array([HEAD, 1, 0xFFFFFFFF, HEAD, 0, 0, 0xFF, HEAD], np.int64)
KINDS = 256
_DATA, _NOTE = 1, 2
_UNDECLARED, _TOLERATED = -1, -2
_MOST = (1 << 31) - 1
#: Sound packets in a row that are evidence enough to go on reading.
CHAIN = 3
#: Bytes before a sound frame in which packets of the damaged one are looked for, and how many tries that may take.
_FRAME_BYTES, _TRIES = 1 << 20, 64
#: Bytes of a packet without records, and so many of a kind whose neighbours are looked at.
_EMPTY, _LOOKED_AT = 2, 16
#: A frame this many later than the one before damage is none.
_FRAMES_AHEAD = 1 << 20


class Framing:
    """Which packets are acceptable, as tables for the kernel.

    tags, keys  what the walk accepts, see kernels/framed.py
    tolerant    the keys, but kinds that are not known yet pass as no evidence of anything
    """

    def __init__(self, source: Source, wide: bool) -> None:
        self._source, self._wide = source, wide
        self.tags = np.tile(np.array([_DATA, 0, 0xFFFFFFFF, 0, 0], np.int64), (KINDS, 1))
        self.tags[FRAME_END] = _NOTE, 0, 0, 0, 255
        self.keys = np.tile(np.array([_UNDECLARED, 0, 0, 0], np.int64), (KINDS, 1))
        self.tolerant = np.tile(np.array([_TOLERATED, 0, 0, 0], np.int64), (KINDS, 1))
        for kind, topic in TOPICS.items():
            self.declare(kind, topic)
        for kind in SHIFTING[1:]:
            # Until content tells what they are, only empty ones pass.
            self.keys[kind] = kind, 2, 2, 0

    def declare(self, kind: int, topic: str) -> None:
        """Accept packets of *kind* as those of *topic*."""
        least = definitions.layout(topic, self._wide).measure
        greatest = _MOST if least.size is None else least.size
        self.keys[kind] = kind, least.least, greatest, 0
        self.tags[kind, 3] = definitions.width(topic, self._wide)
        self.tolerant[kind] = self.keys[kind]

    def accepts(self, packet: Packet, end: int) -> bool:
        """Whether the walk would take a packet that must end by *end*."""
        data = self._source.data
        return (
            packet.next <= end
            and framed.resync(data, packet.at, packet.next, 1, SPEC, self.tags, self.keys, packet.at)
            == packet.at
        )

    def is_sound(self, pos: int, need: int = CHAIN) -> bool:
        """Whether sound packets follow each other from *pos*, or it is the end."""
        return pos == self._source.size or self.chain(pos, self._source.size, pos, need) == pos

    def chain(self, pos: int, end: int, last: int, need: int = CHAIN) -> int:
        """The first place from *pos* to *last* from which sound packets follow each other, or -1."""
        return framed.resync(self._source.data, pos, end, need, SPEC, self.tags, self.tolerant, last)


class Reader:
    """Walks one file; ``run`` gives what it found."""

    def __init__(self, source: Source) -> None:
        self._source, self._end = source, source.size
        self._problems: list[Problem] = []
        self._resized: dict[int, int] = {}
        self._topics = dict(TOPICS)
        self._header, self._pos = self._begin()
        self._wide = vectors_are_wide(source, self._pos)
        self._framing = Framing(source, self._wide)
        self._blocks = BlockBuilder(source.data, SPEC, (HEAD, HEAD), keep_sizes=True)
        self._blocks.declare(KINDS)
        # The last packet collected, and the number of the frame that it lies in.
        self._begun = -1, 0

    def _begin(self) -> tuple[Header, int]:
        header = read_header(self._source)
        if header is not None:
            return header, header.size
        start = next(find(self._source, START, 20), self._end)
        self._problem("header", 0, start, True, "the header of the recording is damaged: no date, no map")
        return Header(0, 0, "", start), start

    def read(self) -> Found:
        """Read the whole file."""
        pos, framing = self._pos, self._framing
        self._source.map_ahead()
        while pos < self._end:
            why, pos = self._blocks.walk(pos, self._end, framing.tags, framing.keys)
            if why != block_builder.END:
                pos = self._refused(pos)
        blocks, ends = self._blocks.finish(KINDS)
        counts = (blocks.start[:, 1:] - blocks.start[:, :-1]).sum(axis=0)
        used = np.flatnonzero(counts).tolist()
        sizes = self._blocks.sizes
        topics = self._named(used, blocks)
        return Found(self._header, self._wide, topics, blocks, ends, sizes, self._resized, self._problems)

    def _doors_come_first(self, blocks: Blocks, kinds: list[int]) -> bool:
        """Whether empty packets of kind 21 are those of doors: these come before positions, those of wheels behind."""
        first = SHIFTING[1]
        if first not in kinds:
            return False
        for payload in blocks.offsets(first)[:_LOOKED_AT].tolist():
            packet = read_packet(self._source, payload + _EMPTY)
            if packet is not None and packet.kind in (POSITION, first + 1):
                return packet.kind == POSITION
        return POSITION not in kinds

    def _named(self, kinds: list[int], blocks: Blocks) -> dict[int, str]:
        """Topics of the kinds that occur; those that never had content are told by the order of the others."""
        told = {kind: self._topics[kind] for kind in kinds if kind in self._topics}
        shifting = {kind: topic for kind, topic in told.items() if kind in RELEASED}
        if shifting:
            inserted = all(INSERTED[kind] == topic for kind, topic in shifting.items())
        else:
            old = self._header.version < 2
            inserted = self._wide or (old and (23 in kinds or self._doors_come_first(blocks, kinds)))
        usual = INSERTED if inserted else RELEASED
        named: dict[int, str] = {}
        for kind in kinds:
            topic = told.get(kind) or usual.get(kind, "raw")
            taken = topic == "raw" or topic in named.values()
            named[kind] = f"packet_{kind}" if taken else topic
        return named

    def _problem(self, code: str, offset: int, size: int, lost: bool, text: str) -> None:
        self._problems.append(Problem(code, offset, size, lost, text))

    # ------------------------------------------------------------------------------------------------- decisions

    def _refused(self, pos: int) -> int:
        """Go on at *pos*, where the walk found no acceptable packet."""
        packet = read_packet(self._source, pos)
        if packet is None:
            return self._lost(pos, self._end)
        for judge in (
            self._as_frame,
            self._settle,
            self._last_by_content,
            self._by_content,
            self._passed_over,
        ):
            after = judge(packet)
            if after is not None:
                return after
        return self._resync(pos)

    def _settle(self, packet: Packet) -> int | None:
        """The packet itself, if it is the first of its kind that tells what this kind is."""
        kind = packet.kind
        if packet.next > self._end or kind in self._topics:
            return None
        if kind in SHIFTING:
            topic = kind_by_content(self._source, packet, self._wide)
        else:
            topic = "raw" if kind > LAST_KIND and self._framing.is_sound(packet.next) else None
        if topic is None:
            return None
        self._learn(kind, topic)
        return packet.at

    def _learn(self, kind: int, topic: str) -> None:
        self._topics[kind] = topic
        self._framing.declare(kind, topic)

    def _take(self, packet: Packet, kind: int, after: int) -> int:
        """Collect a packet whose head is wrong, but whose content ends where sound packets follow."""
        size = after - packet.payload
        stated = f"kind {packet.kind} and {packet.size} bytes"
        text = f"a packet states {stated}; by its content it is of kind {kind} and takes {size}"
        self._problem("head", packet.at, HEAD, False, text)
        self._resized[packet.payload] = size
        self._blocks.add(packet.at, kind, size)
        return after

    def _as_frame(self, packet: Packet) -> int | None:
        """A FrameStart with a damaged head, right behind a FrameEnd: it has the next number."""
        after = packet.payload + 24
        if self._last_kind() != FRAME_END or after > self._end or not self._framing.is_sound(after):
            return None
        if read_frame(self._source, packet.payload)[0] != self._last_frame() + 1:
            return None
        return self._take(packet, FRAME_START, after)

    def _by_content(self, packet: Packet) -> int | None:
        """A packet whose size is wrong, or was never filled in: its content tells where it ends."""
        # Of the kinds that moved, only wheels are first written without their size.
        topic = self._topics.get(packet.kind, "wheels" if packet.kind in SHIFTING else "raw")
        after = self._content_end(packet, topic)
        if after is None:
            return None
        if packet.kind not in self._topics:
            self._learn(packet.kind, topic)
        return self._take(packet, packet.kind, after)

    def _last_by_content(self, packet: Packet) -> int | None:
        """The same for the packet before, whose size led here."""
        last = read_packet(self._source, self._blocks.last) if self._blocks.last >= 0 else None
        if last is None or last.next != packet.at or last.payload in self._resized:
            return None
        after = self._content_end(last, self._topics.get(last.kind, "raw"))
        if after is None:
            return None
        self._blocks.drop_last()
        return self._take(last, last.kind, after)

    def _content_end(self, packet: Packet, topic: str) -> int | None:
        """Where a packet ends by its content, if that is not where it says and sound packets follow there."""
        ends = content_ends(self._source, topic, self._wide, packet.payload)
        if packet.next in ends:
            return None
        if packet.size:
            # A cut packet may look like a whole one of an older release.
            ends = [end for end in ends if end < self._end]
        return next(filter(self._framing.is_sound, ends), None)

    def _passed_over(self, packet: Packet) -> int | None:
        """A packet of a known kind whose records cannot be right, while its size is."""
        known = packet.kind <= LAST_KIND and packet.size > 0
        if not known or packet.next > self._end or not self._framing.is_sound(packet.next):
            return None
        text = f"a packet of kind {packet.kind} whose records do not fill its {packet.size} bytes"
        self._problem("garbage", packet.at, HEAD + packet.size, True, text)
        return packet.next

    # -------------------------------------------------------------------------------------------------- recovery

    def _last_kind(self) -> int:
        return int(self._source.data[self._blocks.last]) if self._blocks.last >= 0 else FRAME_END

    def _last_frame(self) -> int:
        """Number of the last frame that began, 0 before the first."""
        if self._begun[0] != self._blocks.last:
            last = self._blocks.last_payloads(FRAME_START, 1)
            self._begun = self._blocks.last, read_frame(self._source, last[0])[0] if last else 0
        return self._begun[1]

    def _resync(self, pos: int) -> int:
        """Report the bytes from *pos* up to the next sound packet; gives where that is."""
        frame = next(filter(self._is_frame, find(self._source, START, pos + 1)), self._end)
        return self._lost(pos, self._inside(pos + 1, frame))

    def _is_frame(self, at: int) -> bool:
        """Whether a frame begins here: behind the end of another or with a number to come, and packets follow."""
        if self._end - at < HEAD + 24 or not self._framing.is_sound(at):
            return False
        number, duration, elapsed = read_frame(self._source, at + HEAD)
        if not (math.isfinite(duration) and math.isfinite(elapsed) and elapsed >= 0):
            return False
        return self._source.read(at - HEAD, HEAD) == END or 0 < number - self._last_frame() < _FRAMES_AHEAD

    def _inside(self, pos: int, frame: int) -> int:
        """The first sound packet of the frame that was damaged, from which packets lead to the next *frame*."""
        if self._last_kind() == FRAME_END or frame - pos > _FRAME_BYTES:
            return frame
        if frame < self._end and read_frame(self._source, frame + HEAD)[0] != self._last_frame() + 1:
            # Packets of another frame, whose beginning is lost, must not count as those of this one.
            return frame
        for _ in range(_TRIES):
            pos = self._framing.chain(pos, frame, frame - 1, 2)
            if pos < 0:
                break
            if self._leads(pos, frame):
                return pos
            pos += 1
        return frame

    def _leads(self, pos: int, frame: int) -> bool:
        """Whether packets of one frame follow each other from *pos* and end with a FrameEnd exactly at *frame*."""
        seen = {FRAME_START}
        last = FRAME_START
        while pos < frame:
            packet = read_packet(self._source, pos)
            # No frame has two packets of a kind.
            if packet is None or packet.kind in seen or not self._framing.accepts(packet, frame):
                return False
            last = packet.kind
            seen.add(last)
            pos = packet.next
        return len(seen) > 2 and last == FRAME_END

    def _lost(self, pos: int, stop: int) -> int:
        """Report the bytes from *pos* to *stop*; gives *stop*."""
        size = stop - pos
        where = f"in frame {self._last_frame()} and later" if self._last_frame() else "before the first frame"
        if not self._source.data[pos:stop].any():
            self._problem("zeros", pos, size, True, f"{size} bytes of zeros where packets should be, {where}")
        elif stop == self._end:
            self._problem("truncated", pos, size, True, f"the last {size} bytes are a cut packet, {where}")
        else:
            self._problem("garbage", pos, size, True, f"{size} bytes that are no sound packet, {where}")
        return stop
