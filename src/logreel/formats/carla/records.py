"""Header and packets of a recording: each packet is a kind, a size and a payload.

``STORAGE`` is what of a recording is no message, for ``logreel du``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import lru_cache

from logreel.dataclass import dataclass
from logreel.formats.carla.definitions import RAW, layout, physics
from logreel.io.source import Buffer, Source
from logreel.layout.program import Program, extent, measuring
from logreel.registry import format as storage
from logreel.registry.format import Storage, StoredRecord

#: Bytes before a payload: kind u8, size u32.
HEAD = 5
#: Kinds of packets.
FRAME_START, FRAME_END, EVENT_ADD, POSITION, PHYSICS = 0, 1, 2, 6, 15
#: Header of a FrameStart, and a FrameEnd with the first byte of the next FrameStart: a recording has no other marks.
START, END = b"\x00\x18\x00\x00\x00", b"\x01\x00\x00\x00\x00"

#: Topics of the kinds with the same meaning in every release.
TOPICS = {
    FRAME_START: "frames",
    EVENT_ADD: "actors",
    3: "actor_removals",
    4: "actor_parents",
    5: "collisions",
    POSITION: "position",
    7: "traffic_lights",
    8: "vehicle_control",
    9: "walker",
    10: "vehicle_lights",
    11: "scene_lights",
    12: "velocity",
    13: "bounding_boxes",
    14: "platform_time",
    PHYSICS: "physics",
    16: "traffic_light_times",
    17: "trigger_volumes",
    19: "bones",
    20: "visual_time",
}
#: Kinds whose meaning depends on the release; it is inferred from their content.
SHIFTING = (18, 21, 22, 23, 24)
#: Their meaning if all their packets are empty: in releases, and in development builds and on the UE5 line.
RELEASED = {21: "wheels", 22: "bikers", 23: "doors", 24: "weather"}
INSERTED = {21: "doors", 22: "wheels", 23: "bikers", 24: "weather"}
#: Topic of a packet of such a kind by the bytes of its records; the last is the weather of the fork DReyeVR.
TOPIC_BY_WIDTH = {6: "doors", 12: "bikers", 56: "weather", 52: "raw"}
LAST_KIND = 24
#: Greatest payload whose end is determined by its content, bytes.
CONTENT_BYTES = 64 << 20

_FRAME = struct.Struct("<Qdd")
_WINDOW = 1 << 20
#: Packets examined to find the width of vectors; those of the first frame are nearly always enough.
_PROBES = 4096


@dataclass(frozen=True, slots=True)
class Header:
    """Header of a recording; *date* in seconds since 1970, *size* in bytes."""

    version: int
    date: int
    map: str
    size: int


def read_header(source: Source) -> Header | None:
    """Return the header, or None if it or its text is truncated."""
    fixed = source.read(0, 28)
    if len(fixed) < 28:
        return None
    version, date, length = struct.unpack("<H16xqH", fixed)
    name = source.read(28, length)
    if len(name) < length:
        return None
    return Header(version, date, name.decode("utf-8", "replace"), 28 + length)


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet: its kind, its offset, and the size that it states."""

    kind: int
    at: int
    size: int

    @property
    def payload(self) -> int:
        """Offset of the payload."""
        return self.at + HEAD

    @property
    def next(self) -> int:
        """Offset of the next packet if the size is right."""
        return self.at + HEAD + self.size


def read_packet(source: Source, at: int) -> Packet | None:
    """Return the packet at offset *at*, or None if its header is truncated."""
    head = source.read(at, HEAD)
    return Packet(head[0], at, int.from_bytes(head[1:], "little")) if len(head) == HEAD else None


def read_frame(source: Source, payload: int) -> tuple[int, float, float]:
    """Return number, duration and elapsed seconds of the FrameStart with the given payload, which must be complete."""
    number, duration, elapsed = _FRAME.unpack(source.read(payload, _FRAME.size))
    return number, duration, elapsed


def record_count(source: Source, packet: Packet) -> int:
    """Return the number of records that a packet states; 0 if it is too short for the number."""
    return int.from_bytes(source.read(packet.payload, 2), "little") if packet.size >= 2 else 0


def find_all(source: Source, pattern: bytes, pos: int) -> Iterator[int]:
    """Yield every offset of *pattern* from *pos* on."""
    while pos < source.size:
        window = source.read(pos, _WINDOW + len(pattern) - 1)
        at = window.find(pattern)
        while at >= 0:
            yield pos + at
            at = window.find(pattern, at + 1)
        pos += _WINDOW


@lru_cache(64)
def _programs(topic: str, wide: bool) -> list[Program]:
    if topic == "physics":
        return [] if wide else [measuring(physics(stiffness)) for stiffness in (True, False)]
    known = layout(topic, wide)
    return [] if known is RAW else [measuring(known)]


def content_ends(source: Source, topic: str, wide: bool, payload: int) -> list[int]:
    """Return the possible ends of a packet by its content; none if it is truncated, invalid or has no Layout."""
    stop = min(source.size, payload + CONTENT_BYTES)
    if payload > stop:
        return []
    ends = [extent(program, source.data, payload, stop) for program in _programs(topic, wide)]
    return [end for end in ends if end >= 0]


def kind_by_content(source: Source, packet: Packet, wide: bool) -> str | None:
    """Return the topic of a packet of a kind in SHIFTING, ``raw`` for that of a fork, None without content."""
    if packet.kind == 18:
        return "frame_counter" if packet.size == 8 else "raw"
    records = record_count(source, packet)
    for width, topic in TOPIC_BY_WIDTH.items():
        if records and packet.size - 2 == width * records:
            return topic
    return "wheels" if packet.next in content_ends(source, "wheels", wide, packet.payload) else None


def vectors_are_wide(source: Source, pos: int) -> bool:
    """Return True if vectors are float64, according to the first conclusive packet from *pos* on."""
    for _ in range(_PROBES):
        packet = read_packet(source, pos)
        if packet is None:
            return False
        records = record_count(source, packet)
        if packet.kind in (POSITION, 12, 13, 17) and records:
            each = (packet.size - 2) / records
            if each in (28, 52):
                return each == 52
        elif packet.kind == EVENT_ADD and records:
            fits = [
                packet.next in content_ends(source, "actors", wide, packet.payload) for wide in (False, True)
            ]
            if sum(fits) == 1:
                return fits[1]
        sound = packet.kind <= LAST_KIND and packet.next <= source.size
        pos = packet.next if sound else next(find_all(source, START, pos + 1), source.size)
    return False


def _records(data: Buffer, at: int, end: int) -> Iterator[StoredRecord]:
    if at == 0:
        header = read_header(Source.open(data[: min(end, 1 << 17)].tobytes()))
        if header is None:
            return
        yield StoredRecord(storage.FILE_HEADER, header.size)
        at = header.size
    while end - at >= HEAD:
        packet_type, size = int(data[at]), int.from_bytes(data[at + 1 : at + HEAD].tobytes(), "little")
        if at + HEAD + size > end or (packet_type != FRAME_END and packet_type not in TOPICS):
            return
        yield StoredRecord("ends of frames" if packet_type == FRAME_END else storage.UNASSIGNED, HEAD + size)
        at += HEAD + size


STORAGE = Storage(HEAD, _records)
