"""The straightforward ways, in plain Python and NumPy, that readers are compared with."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import logreel
from logreel.lenses.velodyne import HDL32E
from logreel.log import tables
from logreel.log.log import Channel
from logs import carla_header, carla_packets

#: Records of one size by kind, as the plain reader unpacks them.
RECORDS = {
    3: "<I",
    4: "<II",
    5: "<III??",
    6: "<I6f",
    7: "<I?fB",
    8: "<Ifff?i",
    9: "<If",
    10: "<II",
    11: "<i5f?B",
    12: "<I6f",
    13: "<I6f",
    16: "<Ifff",
    17: "<I6f",
}


def carla(path: str) -> dict[int, list[np.ndarray]]:
    """Return the columns of every kind, with time and frame, read simply with ``struct`` and lists."""
    data = Path(path).read_bytes()
    columns: dict[int, list[list[object]]] = {}
    formats = {kind: struct.Struct(text) for kind, text in RECORDS.items()}
    frame, elapsed = 0, 0.0

    def add(kind: int, values: tuple[object, ...]) -> None:
        row = (elapsed, frame, *values)
        for column, value in zip(columns.setdefault(kind, [[] for _ in row]), row, strict=True):
            column.append(value)

    for kind, at, _size in carla_packets(data, carla_header(data)):
        if kind == 0:
            frame, duration, elapsed = struct.unpack_from("<Qdd", data, at)
            add(kind, (duration,))
        elif kind == 14:
            add(kind, struct.unpack_from("<d", data, at))
        elif kind == 2:
            for actor in actors(data, at):
                add(kind, actor)
        elif kind in formats:
            form = formats[kind]
            (count,) = struct.unpack_from("<H", data, at)
            at += 2
            for _ in range(count):
                add(kind, form.unpack_from(data, at))
                at += form.size
    return {kind: [as_array(column) for column in found] for kind, found in columns.items()}


def as_array(column: list[object]) -> np.ndarray:
    """Return numbers as an array of numbers, other values as one of objects."""
    return np.array(column, object if isinstance(column[0], list | str) else None)


def actors(data: bytes, at: int) -> Iterator[tuple[object, ...]]:
    """Yield the actors of one packet."""

    def text() -> str:
        nonlocal at
        (size,) = struct.unpack_from("<H", data, at)
        at += 2 + size
        return data[at - size : at].decode()

    (count,) = struct.unpack_from("<H", data, at)
    at += 2
    for _ in range(count):
        fixed = struct.unpack_from("<IB6fI", data, at)
        at += 33
        name = text()
        (n,) = struct.unpack_from("<H", data, at)
        at += 2
        attributes = []
        for _ in range(n):
            kind, at = data[at], at + 1
            attributes.append((kind, text(), text()))
        yield (*fixed, name, attributes)


BLOCK = np.dtype(
    [("flag", "<u2"), ("azimuth", "<u2"), ("returns", [("distance", "<u2"), ("intensity", "u1")], 32)]
)
TILT, TURN = np.radians(HDL32E.elevation), np.radians(HDL32E.rotation)
RING = np.argsort(np.argsort(HDL32E.elevation)).astype(np.uint8)
DELAY = np.arange(12)[:, None] * 46080 + np.arange(32) * 1152


def velodyne(packet: bytes, stamp: int) -> tuple[np.ndarray, ...]:
    """Return the points of a packet, by NumPy over its returns, with all corrections."""
    blocks = np.frombuffer(packet, BLOCK, 12)
    blocks = blocks[(blocks["flag"] == 0xEEFF) & (blocks["azimuth"] < 36000)]
    there = blocks["returns"]["distance"] > 0
    distance = blocks["returns"]["distance"] * 0.002 + HDL32E.distance
    degrees = (blocks["azimuth"][:, None] / 100 - HDL32E.rotation) % 360
    turn = np.radians(degrees)
    flat = distance * np.cos(TILT) - HDL32E.vertical * np.sin(TILT)
    x = flat * np.cos(turn) + HDL32E.horizontal * np.sin(turn)
    y = HDL32E.horizontal * np.cos(turn) - flat * np.sin(turn)
    z = distance * np.sin(TILT) + HDL32E.vertical * np.cos(TILT)
    ring = np.broadcast_to(RING, there.shape)
    time = stamp + DELAY[: len(blocks)]
    xyz = np.stack([x[there], y[there], z[there]]).astype(np.float32)
    azimuth = degrees[there].astype(np.float32)
    return xyz, blocks["returns"]["intensity"][there], ring[there], azimuth, time[there]


Call = tuple[str, tuple[Any, ...], dict[str, Any]]


def columns_of_summary(path: str) -> list[Call]:
    """Return the calls by which the summary of a log reads columns, each once, and those of events and text."""
    calls: list[Call] = []
    genuine = tables.table

    def recorded(ch: Channel, *args: Any, **more: Any) -> Any:
        call = (ch.topic, args, more)
        if call not in calls:
            calls.append(call)
        return genuine(ch, *args, **more)

    with mock.patch.object(tables, "table", recorded):
        logreel.summary(path)
    with logreel.open(path) as log:
        calls += [
            (topic, (None, None, None, tables.DENSE), {})
            for topic in ("event", "~text")
            if topic in log.channels
        ]
    return calls


def read_columns(path: str, calls: list[Call]) -> list[Any]:
    """Open a log and read columns from it."""
    log = logreel.open(path)
    return [tables.table(log[topic], *args, **more) for topic, args, more in calls]


def rosbags_columns(path: str, *topics: str) -> dict[str, dict[str, np.ndarray]]:
    """Return the fields of a bag's topics, or of all, as arrays by topic and name, through rosbags."""
    from rosbags.highlevel import AnyReader

    with AnyReader([Path(path)]) as reader:
        connections = [c for c in reader.connections if not topics or c.topic in topics]
        messages = (
            (c.topic, reader.deserialize(data, c.msgtype)) for c, _, data in reader.messages(connections)
        )
        return _columns(messages, "__dataclass_fields__")


def mcap_columns(path: str, *topics: str) -> dict[str, dict[str, np.ndarray]]:
    """Return the fields of an MCAP's topics, or of all, as arrays by topic and name, through mcap."""
    from mcap.reader import make_reader
    from mcap_ros1.decoder import DecoderFactory

    with open(path, "rb") as file:
        reader = make_reader(file, decoder_factories=[DecoderFactory()])
        messages = ((c.topic, m) for _, c, _, m in reader.iter_decoded_messages(topics=topics or None))
        return _columns(messages, "__slots__")


def _columns(messages: Iterator[tuple[str, Any]], names: str) -> dict[str, dict[str, np.ndarray]]:
    """Return the values of decoded messages by topic and field; names of nested fields are dotted."""
    columns: dict[str, dict[str, list[Any]]] = {}
    members: dict[type, tuple[str, ...]] = {}

    def fields(value: Any) -> tuple[str, ...]:
        """Return the names of the fields of a message, none of a value."""
        if type(value) not in members:
            listed = getattr(type(value), names, ())
            members[type(value)] = tuple(name for name in listed if not name.startswith("__"))
        return members[type(value)]

    def plain(value: Any) -> Any:
        """Return a message as a dict, which Arrow understands."""
        return {name: plain(getattr(value, name)) for name in fields(value)} if fields(value) else value

    def add(message: Any, prefix: str, column: dict[str, list[Any]]) -> None:
        for name in fields(message):
            value = getattr(message, name)
            if fields(value):
                add(value, f"{prefix}{name}.", column)
            elif isinstance(value, list) and value and fields(value[0]):
                column.setdefault(prefix + name, []).append([plain(one) for one in value])
            else:
                column.setdefault(prefix + name, []).append(value)

    for topic, message in messages:
        add(message, "", columns.setdefault(topic, {}))
    return {
        topic: {name: _array(values) for name, values in column.items()} for topic, column in columns.items()
    }


def _array(values: list[Any]) -> np.ndarray:
    """Return numbers and texts as an array, other values as one of objects."""
    if isinstance(values[0], int | float | str | bool):
        return np.array(values)
    array = np.empty(len(values), object)
    array[:] = values
    return array
