"""What a recording is made of: a header, then packets of a number, a size and a payload."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from logreel.formats.carla.definitions import RAW, layout, physics
from logreel.io.source import Source
from logreel.layout.program import Program
from logreel.layout.walker import extent, measuring

#: Bytes before a payload: its kind, u8, and its size, u32.
HEAD = 5
FRAME_START, FRAME_END, EVENT_ADD, POSITION, PHYSICS = 0, 1, 2, 6, 15
#: How a frame begins and how it ends; nothing else marks a place in a recording.
START, END = b"\x00\x18\x00\x00\x00", b"\x01\x00\x00\x00\x00"

#: Topics of the kinds that mean the same in every release.
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
#: Kinds that mean different things in different releases: content tells.
SHIFTING = (18, 21, 22, 23, 24)
#: What these mean where nothing of them has any content: in the releases, and in development builds and UE5.
RELEASED = {21: "wheels", 22: "bikers", 23: "doors", 24: "weather"}
INSERTED = {21: "doors", 22: "wheels", 23: "bikers", 24: "weather"}
#: Bytes of records that tell what a shifting kind is; the last is the weather of the fork DReyeVR.
TOLD_BY_WIDTH = {6: "doors", 12: "bikers", 56: "weather", 52: "raw"}
LAST_KIND = 24
#: Bytes in which the end of one packet is looked for by its content.
CONTENT_BYTES = 64 << 20

_FRAME = struct.Struct("<Qdd")
_WINDOW = 1 << 20
#: Packets looked at to find how wide vectors are; those of the first frame nearly always tell.
_PROBES = 4096


@dataclass(frozen=True, slots=True)
class Header:
    """What the file tells about itself; *date* is in seconds since 1970, *size* in bytes."""

    version: int
    date: int
    map: str
    size: int


def read_header(source: Source) -> Header | None:
    """The header, or None where it is cut or its text runs over the end."""
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
    """A packet: its kind, its size, and where its payload begins and would end."""

    kind: int
    at: int
    size: int

    @property
    def payload(self) -> int:
        """Where the payload begins."""
        return self.at + HEAD

    @property
    def next(self) -> int:
        """Where the next packet begins if the size is right."""
        return self.at + HEAD + self.size


def read_packet(source: Source, at: int) -> Packet | None:
    """The packet that begins at a position, or None where its head is cut."""
    head = source.read(at, HEAD)
    return Packet(head[0], at, int.from_bytes(head[1:], "little")) if len(head) == HEAD else None


def read_frame(source: Source, payload: int) -> tuple[int, float, float]:
    """Number, duration and elapsed seconds of a FrameStart, whose 24 bytes must be there."""
    number, duration, elapsed = _FRAME.unpack(source.read(payload, _FRAME.size))
    return number, duration, elapsed


def count_of(source: Source, packet: Packet) -> int:
    """Records that a packet says it has; 0 where it is too short for a number."""
    return int.from_bytes(source.read(packet.payload, 2), "little") if packet.size >= 2 else 0


def find(source: Source, pattern: bytes, pos: int) -> Iterator[int]:
    """Every place of *pattern* from *pos* on."""
    while pos < source.size:
        piece = source.read(pos, _WINDOW + len(pattern) - 1)
        at = piece.find(pattern)
        while at >= 0:
            yield pos + at
            at = piece.find(pattern, at + 1)
        pos += _WINDOW


@lru_cache(64)
def _programs(topic: str, wide: bool) -> list[Program]:
    if topic == "physics":
        return [] if wide else [measuring(physics(stiffness)) for stiffness in (True, False)]
    known = layout(topic, wide)
    return [] if known is RAW else [measuring(known)]


def content_ends(source: Source, topic: str, wide: bool, payload: int) -> list[int]:
    """Where a packet may end by its content: nowhere where it is cut, is no such packet, or has no known content."""
    stop = min(source.size, payload + CONTENT_BYTES)
    if payload > stop:
        return []
    ends = [extent(program, source.data, payload, stop) for program in _programs(topic, wide)]
    return [end for end in ends if end >= 0]


def kind_by_content(source: Source, packet: Packet, wide: bool) -> str | None:
    """The topic of a packet of a shifting kind with some content, ``raw`` for that of a fork, None for none."""
    if packet.kind == 18:
        return "frame_counter" if packet.size == 8 else "raw"
    records = count_of(source, packet)
    for width, topic in TOLD_BY_WIDTH.items():
        if records and packet.size - 2 == width * records:
            return topic
    return "wheels" if packet.next in content_ends(source, "wheels", wide, packet.payload) else None


def vectors_are_wide(source: Source, pos: int) -> bool:
    """Whether vectors have float64, by the first packet from *pos* on that tells it."""
    for _ in range(_PROBES):
        packet = read_packet(source, pos)
        if packet is None:
            return False
        records = count_of(source, packet)
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
        pos = packet.next if sound else next(find(source, START, pos + 1), source.size)
    return False
