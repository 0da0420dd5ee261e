"""Builder of valid and invalid ULogs, and two samples: a whole flight and a tiny log.

It shares no code with the reader, so that tests can compare the two.
"""

from __future__ import annotations

import functools
import hashlib
import math
import struct
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Any

from support.samples.ulog import rows as rows
from support.samples.ulog import tables as tables
from support.samples.ulog.motion import ARMED, CLIMB, DESCENT, DISARMED, EIGHT, LANDED

# Builder has methods `bytes` and `format`: its annotations need another name for the type.
Buffer = bytes

MAGIC = b"ULog\x01\x12\x35"
SYNC = bytes((0x2F, 0x73, 0x13, 0x20, 0x25, 0x0C, 0xBB, 0x12))
FLAGS_AT = 16
Value = str | bytes | int | float


class Builder:
    """Builder of a ULog: each method appends one record and returns the builder; nothing is checked.

    start_us  start time in the file header, us
    version   version byte of the file header
    """

    def __init__(self, start_us: int = 0, version: int = 1, magic: Buffer = MAGIC) -> None:
        self._out = bytearray(magic + struct.pack("<BQ", version, start_us))

    def __len__(self) -> int:
        """Number of bytes written: the file offset of the next record."""
        return len(self._out)

    def bytes(self) -> Buffer:
        """Return the bytes written so far."""
        return Buffer(self._out)

    def raw(self, letter: str, payload: Buffer = b"", size: int | None = None) -> Builder:
        """Append a record of any kind; *size* replaces the true payload size in its header."""
        self._out += struct.pack("<HB", len(payload) if size is None else size, ord(letter)) + payload
        return self

    def junk(self, content: Buffer) -> Builder:
        """Append *content* unchanged, without a record header."""
        self._out += content
        return self

    def flags(
        self, compat: int = 0, incompat: int = 0, offsets: Iterable[int] = (), extra: Buffer = b""
    ) -> Builder:
        """Append flag bits; bit i of *compat* is bit i % 8 of byte i // 8. *extra* follows the 40 bytes."""
        three = (*offsets, 0, 0, 0)[:3]
        return self.raw("B", struct.pack("<QQ3Q", compat, incompat, *three) + extra)

    def append_part(self) -> Builder:
        """Begin an appended part here: set the flag and the first free offset.

        Raises ValueError if all three offsets are in use. Requires flag bits directly after the file header.
        """
        self._out[FLAGS_AT + 3 + 8] |= 1
        for at in range(FLAGS_AT + 3 + 16, FLAGS_AT + 3 + 40, 8):
            if not any(self._out[at : at + 8]):
                self._out[at : at + 8] = struct.pack("<Q", len(self._out))
                return self
        raise ValueError("all three offsets of appended data are in use")

    def format(self, text: str) -> Builder:
        """Append a format, `name:type field;…`."""
        return self.raw("F", text.encode())

    def info(self, key: str, value: Value) -> Builder:
        """Append information; *key*: `type name`, or only the name: then the type follows from *value*."""
        return self.raw("I", _entry(key, value))

    def info_multiple(self, key: str, value: Value, continued: bool = False) -> Builder:
        """Append one part of multiple information; *continued*: it extends the latest entry of the same key."""
        return self.raw("M", struct.pack("<B", continued) + _entry(key, value))

    def parameter(self, key: str, value: Value) -> Builder:
        """Append a parameter; after the first data record, it is a change."""
        return self.raw("P", _entry(key, value))

    def default_parameter(self, key: str, value: Value, types: int = 3) -> Builder:
        """Append a default of a parameter; bit 0 of *types*: of the system, bit 1: of the airframe."""
        return self.raw("Q", struct.pack("<B", types) + _entry(key, value))

    def subscribe(self, name: str, msg_id: int, multi_id: int = 0) -> Builder:
        """Append a subscription: *msg_id* now means instance *multi_id* of topic *name*."""
        return self.raw("A", struct.pack("<BH", multi_id, msg_id) + name.encode())

    def unsubscribe(self, msg_id: int) -> Builder:
        """Append the end of the subscription of *msg_id*."""
        return self.raw("R", struct.pack("<H", msg_id))

    def data(self, msg_id: int, payload: Buffer) -> Builder:
        """Append one message of the topic that *msg_id* means."""
        return self.raw("D", struct.pack("<H", msg_id) + payload)

    def text(self, level: int, time_us: int, text: str) -> Builder:
        """Append a logged string; *level*: 0 (emergency) to 7 (debug); other levels are written as invalid bytes."""
        return self.raw("L", struct.pack("<BQ", 0x30 + level, time_us) + text.encode())

    def tagged(self, level: int, tag: int, time_us: int, text: str) -> Builder:
        """Append a logged string with the number of its source."""
        return self.raw("C", struct.pack("<BHQ", 0x30 + level, tag, time_us) + text.encode())

    def sync(self) -> Builder:
        """Append a sync mark."""
        return self.raw("S", SYNC)

    def dropout(self, ms: int) -> Builder:
        """Append a dropout: the logger lost the messages of the last *ms* milliseconds."""
        return self.raw("O", struct.pack("<H", ms))


_PACK = {"int32_t": "<i", "uint32_t": "<I", "int64_t": "<q", "uint64_t": "<Q", "float": "<f", "double": "<d"}


def _entry(key: str, value: Value) -> bytes:
    """Return key length, key and value; a *value* of bytes is written unchanged, also if the type differs."""
    content = value.encode() if isinstance(value, str) else value
    kind = key.partition(" ")[0] if " " in key else ""
    if not kind:
        match content:
            case bytes():
                kind = f"{'char' if isinstance(value, str) else 'uint8_t'}[{len(content)}]"
            case int():
                kind = "int32_t"
            case float():
                kind = "float"
        key = f"{kind} {key}"
    if not isinstance(content, bytes):
        content = struct.pack(_PACK[kind], content)
    name = key.encode()
    return struct.pack("<B", len(name)) + name + content


def tiny(steps: int = 8) -> bytes:
    """Return a valid log of about 1 kB with every kind of record, and 3 messages in each step.

    Nested arrays, padding inside and at the end, two instances, a late subscription, a parameter change:
    small enough to be cut at every byte.
    """
    out = Builder(start_us=1_000_000).flags(compat=1)
    out.info("sys_name", "PX4").info("uint32_t ver_sw_release", 0x010F0000)
    out.format("pair:uint64_t timestamp;uint8_t flag;uint8_t[3] _padding0;cell[2] cells;")
    out.format("cell:float volt;uint8_t id;uint8_t[3] _padding0;")
    out.format("rate:uint64_t timestamp;int16_t[3] xyz;uint8_t[2] _padding0;")
    out.format("note:uint64_t timestamp;char[6] text;bool on;double value;")
    out.parameter("GAIN", 0.5).parameter("MODE", 3).default_parameter("GAIN", 0.25, 3)
    out.default_parameter("MODE", 1, 1)
    out.info_multiple("console", "first part, ").info_multiple("console", "second part", continued=True)
    out.info_multiple("uint8_t[4] blob", b"\x00\x01\xfe\xff")
    out.subscribe("pair", 0).subscribe("rate", 1).subscribe("rate", 2, multi_id=1)

    def pair(time_us: int, volt: float) -> bytes:
        cells = struct.pack("<fB3xfB3x", volt, 1, volt + 0.125, 2)
        return struct.pack("<QB3x", time_us, 1) + cells

    def rate(time_us: int, value: int) -> bytes:
        return struct.pack("<Q3h", time_us, value, -value, 0)

    for step in range(steps):
        time_us = 1_000_000 + 10_000 * step
        out.data(0, pair(time_us, 3.5 + step / 4)).data(1, rate(time_us + 5, step))
        out.data(2, rate(time_us + 7, 100 * step))
        if step == steps // 4:
            out.text(6, time_us + 9, "running").tagged(4, 7, time_us + 9, "check the belt")
        if step == steps // 2:
            out.sync().parameter("MODE", 4).dropout(12)
    out.unsubscribe(2).subscribe("note", 3)
    end = 1_000_000 + 10_000 * steps
    out.data(3, struct.pack("<Q6s?d", end, b"hi", True, math.pi)).text(3, end + 100, "").sync()
    out.info_multiple("console", "third part", continued=True).info("uint32_t rows", 3 * steps + 1)
    return out.bytes()


#: Logged strings: share of the flight, level, text. A TAB at the end: the same text was also sent as an event.
LINES: tuple[tuple[float, int, str], ...] = (
    (0.0005, 6, "[logger] Start file log (type: full)"),
    (0.0006, 6, "[logger] Opened full log file: /fs/microsd/log/2025-05-17/08_42_20.ulg\t"),
    (ARMED, 6, "[commander] Armed by RC switch\t"),
    (CLIMB[0], 6, "[commander] Takeoff detected\t"),
    (EIGHT[0], 5, "[navigator] Executing Mission, 1 of 1 laps"),
    (0.35, 7, "[ekf2] mag fusion: µ₀ ok"),
    (0.44, 4, "[vehicle_imu] Accel #1 clipping, not safe to fly for long"),
    (0.62, 3, "[gps] RTCM: CRC failed, 2 of 97"),
    (LANDED, 6, "[commander] Landing detected\t"),
    (DISARMED, 6, "[commander] Disarmed by landing\t"),
)
#: Parameter changes: share of the flight, name, value; PX4 stores the last two after a flight.
CHANGES: tuple[tuple[float, str, tables.Number], ...] = (
    (0.30, "MPC_XY_CRUISE", 6.5),
    (0.52, "MC_YAW_P", 2.6),
    (0.9725, "LND_FLIGHT_T_LO", 245_791_002),
    (0.9730, "COM_FLIGHT_UUID", 42),
)
#: Events: share of the flight, name, level, struct code of the arguments, arguments. Level 8 is for machines.
FLIGHT_EVENTS: tuple[tuple[float, str, int, str, tuple[float, ...]], ...] = (
    (0.0006, "demo_log_opened", 6, "6H", (2025, 5, 17, 8, 42, 20)),
    (0.0020, "demo_health", 8, "QI", (1, 0)),
    (ARMED, "demo_armed_by", 6, "B", (2,)),
    (CLIMB[0], "demo_takeoff", 6, "f", (12.0,)),
    (EIGHT[0], "demo_mode", 6, "B", (3,)),
    (0.40, "demo_wind", 5, "fh", (3.27, 245)),
    (0.50, "demo_battery_at", 4, "Bf", (89, 0.51)),
    (DESCENT[0], "demo_mode", 6, "B", (18,)),
    (LANDED, "demo_landed", 6, "f", (0.14,)),
    (DISARMED, "demo_disarmed_by", 6, "B", (6,)),
)

# Bytes of one part of the boot console and of the event definitions.
BOOT_PART, EVENTS_PART = 219, 469

# An item that flight() sorts: time of writing in us, name of the Builder method that writes it, its arguments.
_Item = tuple[float, str, tuple[Any, ...]]


# Most tests take one of a few flights, which takes longer to build than to read.
@functools.lru_cache(64)
def flight(seconds: float = 60.0, seed: int = 1) -> bytes:
    """Return a valid log of a quadrotor flight of *seconds*: take-off, figure of eight, landing; 2 MB per minute.

    It has the content of a full PX4 log: 16 topics from 1 to 250 Hz (two instances of `sensor_accel`, nested
    `esc_status`, two late subscriptions, one topic without messages), about 60 parameters with defaults and
    changes in flight, logged strings (one with a tag), events with their definitions, sync marks, two dropouts,
    and the texts of a regular end.
    The same arguments give the same bytes on one machine; other versions of NumPy or liblzma may change some.
    """
    out = Builder(start_us=rows.START_US).flags(compat=1)
    _definitions(out)
    topics = [(topic, instance) for topic, instance, _, _ in rows.STREAMS]
    topics += [(topic, 0) for topic in ("event", *rows.EMPTY, *rows.LATE)]
    ids = {topic: number for number, topic in enumerate(topics)}
    for topic in topics:
        if topic[0] not in rows.LATE:
            out.subscribe(topic[0], ids[topic], topic[1])
    items = [*_stream_items(seconds, seed, ids), *_rare_items(seconds, ids)]
    for share, ms in rows.DROPOUTS:
        items = _drop(items, rows.START_US + share * seconds * 1e6, ms)
    waiting = {ids[topic, 0]: topic for topic in rows.LATE}
    for _, method, arguments in sorted(items, key=itemgetter(0)):
        if method == "data" and arguments[0] in waiting:
            out.subscribe(waiting.pop(arguments[0]), arguments[0])
        getattr(out, method)(*arguments)
    uptime = rows.START_US / 1e6 + seconds
    _write_lines(out, "perf_top_postflight", tables.perf_top(uptime))
    _write_lines(out, "perf_counter_postflight", tables.perf_counters(uptime))
    return out.bytes()


def _definitions(out: Builder) -> None:
    """Write all records before the first subscription, in PX4's order."""
    for key, value in tables.INFOS.items():
        out.info(key, value)
    for name, text in tables.FORMATS.items():
        out.format(f"{name}:{text}")
    for name, number in tables.PARAMETERS.items():
        out.parameter(name, number)
    for name, number, which in tables.DEFAULTS:
        out.default_parameter(name, number, which)
    _write_lines(out, "perf_counter_preflight", tables.perf_counters(rows.START_US / 1e6))
    console = tables.BOOT_CONSOLE.encode()
    for at in range(0, len(console), BOOT_PART):
        # Cut at bytes, not characters, as the writer does: a letter of two bytes may straddle two parts.
        part = console[at : at + BOOT_PART]
        out.info_multiple(f"char[{len(part)}] boot_console_output", part, continued=at > 0)
    events = tables.event_metadata()
    for at in range(0, len(events), EVENTS_PART):
        out.info_multiple("metadata_events", events[at : at + EVENTS_PART], continued=at > 0)
    out.info("metadata_events_sha256", hashlib.sha256(events).hexdigest())
    for topic in tables.EXCLUDED_TOPICS:
        out.info_multiple("excluded_optional_topics", topic)


def _write_lines(out: Builder, key: str, lines: list[str]) -> None:
    """Write one entry of multiple information, with one part per line."""
    for i, line in enumerate(lines):
        out.info_multiple(key, line, continued=i > 0)


def _stream_items(seconds: float, seed: int, ids: dict[tuple[str, int], int]) -> Iterator[_Item]:
    """Yield the messages of the periodic topics."""
    flight_rows = rows.Flight(seconds, seed)
    for topic, instance, rate, delay in rows.STREAMS:
        table = flight_rows.rows(topic, instance, rate)
        written = table["timestamp"] + delay * 1e6
        for time_us, payload in zip(written.tolist(), rows.records(table), strict=True):
            yield time_us, "data", (ids[topic, instance], payload)


def _rare_items(seconds: float, ids: dict[tuple[str, int], int]) -> Iterator[_Item]:
    """Yield all items at fixed shares of the flight, and the sync marks."""

    def at(share: float) -> int:
        return rows.START_US + int(share * seconds * 1e6)

    for number, (share, name, level, code, values) in enumerate(FLIGHT_EVENTS):
        time_us = at(share)
        head = struct.pack("<QIH", time_us, tables.event_id(name), number)
        arguments = struct.pack("<" + code, *values).ljust(25, b"\0")
        yield time_us + 210, "data", (ids["event", 0], head + arguments + bytes((level << 4 | level,)))
    for share, level, text in LINES:
        yield at(share) + 1_300, "text", (level, at(share), text)
    yield at(0.25) + 1_300, "tagged", (4, 3, at(0.25), "[camera] exposure adjusted to 1/500 s")
    for share, name, value in CHANGES:
        yield at(share), "parameter", (name, value)
    for number, share in enumerate((EIGHT[0], DESCENT[0])):
        line = (b"Mission started", b"Landing at current position")[number]
        record = struct.pack("<Q127sB", at(share), line, 6)
        yield at(share) + 300, "data", (ids["mavlink_log", 0], record)
    for number in range(int((EIGHT[1] - EIGHT[0]) * seconds)):
        time_us = at(EIGHT[0]) + 1_000_000 * number + 4_000
        record = struct.pack("<QQI?", time_us, time_us + rows.BOOT_UTC_US, number, False)
        yield time_us + 500, "data", (ids["camera_trigger", 0], record)
    for number in range(int(seconds * 2)):
        yield rows.START_US + 500_000 * (number + 0.02), "sync", ()
    soon = min(1.0, 0.5 * seconds)
    for number, task in enumerate(tables.perf_top(rows.START_US / 1e6 + soon)):
        yield rows.START_US + soon * 1e6 + number, "info_multiple", ("perf_top_preflight", task, number > 0)


def _drop(items: list[_Item], begin_us: float, ms: int) -> list[_Item]:
    """Return *items* without the messages written in *ms* milliseconds, and with the dropout record for them."""
    end_us = begin_us + 1000 * ms
    kept = [item for item in items if item[1] != "data" or not begin_us <= item[0] < end_us]
    return [*kept, (end_us, "dropout", (ms,))]
