"""Lenses are found by names and types of fields together."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest

import logreel
from logreel.lenses import Image, Position, Text, lenses
from support.samples.ulog import builder
from support.samples.ulog.builder import Builder


def channel(fields: str, payload: bytes = b"") -> logreel.Channel:
    out = Builder(start_us=1).flags().format(f"t:uint64_t timestamp;{fields}").subscribe("t", 0)
    if payload:
        out.data(0, struct.pack("<Q", 5) + payload)
    return logreel.open(out.bytes())["t"]


@pytest.mark.parametrize(
    ("fields", "payload", "track"),
    [
        ("double lat;double lon;float alt;", struct.pack("<ddf", 47, 8, 400), (47, 8, 400)),
        (
            "int32_t lat;int32_t lon;int32_t alt;",
            struct.pack("<3i", 470000000, 80000000, 400000),
            (47, 8, 400),
        ),
        (
            "double latitude_deg;double longitude_deg;double altitude_msl_m;",
            struct.pack("<3d", 47, 8, 400),
            (47, 8, 400),
        ),
        ("double lat;double lon;", struct.pack("<2d", 47, 8), (47, 8, np.nan)),
        ("double lat;double lon;char[4] alt;", struct.pack("<2d4s", 47, 8, b"high"), (47, 8, np.nan)),
    ],
)
def test_positions_are_in_degrees_and_metres(fields: str, payload: bytes, track: tuple[float, ...]) -> None:
    ch = channel(fields, payload)
    (lens,) = lenses(ch)
    assert isinstance(lens, Position)
    np.testing.assert_allclose(np.concatenate(lens.track(ch)), track)


@pytest.mark.parametrize(
    ("field", "value", "fixed"),
    [
        ("uint8_t fix_type", b"\1", False),
        ("uint8_t fix_type", b"\2", True),
        ("bool lat_lon_valid", b"\0", False),
        ("bool lat_lon_valid", b"\1", True),
        ("int32_t quality", bytes(4), False),
        ("char[4] quality", b"good", True),
        ("float quality", bytes(4), True),
        ("uint8_t other", b"\0", True),
    ],
)
def test_unknown_positions_are_marked(field: str, value: bytes, fixed: bool) -> None:
    ch = channel(f"double lat;double lon;{field};", struct.pack("<2d", 47, 8) + value)
    (lens,) = lenses(ch)
    assert isinstance(lens, Position)
    found = lens.fixes(ch)
    assert (found.latitude.tolist(), found.fixed.tolist()) == ([47], [fixed])
    assert np.isnan(found.altitude).all()


@pytest.mark.parametrize(
    "fields",
    [
        "double lat;",
        "double[2] lat;double[2] lon;",
        "char[8] lat;char[8] lon;",
        "bool lat;bool lon;",
        "char[20] text;",
        "uint8_t[20] data;",
        "uint8_t[20] data;uint8_t format;",
        "float text;uint8_t level;",
    ],
)
def test_names_without_matching_types_give_no_lens(fields: str) -> None:
    assert not [lens for lens in lenses(channel(fields)) if isinstance(lens, Position | Text | Image)]


def test_struct_named_like_a_number_gives_no_lens() -> None:
    out = Builder().flags().format("t:uint64_t timestamp;deep lat;deep lon;").format("deep:double x;")
    assert lenses(logreel.open(out.subscribe("t", 0).bytes())["t"]) == []


def test_missing_definition_gives_no_lens() -> None:
    log = logreel.open(Builder().flags().subscribe("undefined", 0).data(0, b"raw").bytes())
    assert lenses(log["undefined"]) == []


def test_lenses_of_sample_flight() -> None:
    log = logreel.open(builder.flight(2))
    found = {ch.topic: lenses(ch) for ch in log.channels.values()}
    assert {"sensor_gps", "vehicle_global_position"} <= {
        topic for topic, kinds in found.items() if any(isinstance(k, Position) for k in kinds)
    }
    assert any(isinstance(lens, Text) for lens in found["~text"])


def test_lines_of_ros_1_and_ros_2_have_syslog_levels() -> None:
    """Levels of rosgraph_msgs/Log are bits, those of rcl_interfaces/Log tens."""
    text = "uint8 level\nstring name\nstring msg\nstring file\nstring function\nuint32 line\n"
    out = io.BytesIO()
    with logreel.create(out, format="rosbag") as w:
        ch = w.add_channel("/log", logreel.Schema("x/Log", "ros1msg", text))
        for n, level in enumerate((8, 4, 40, 30, 20, 77)):
            w.write(ch, n, {"level": level, "name": "a", "msg": "b", "file": "c", "function": "d", "line": 1})
    assert [line.level for line in logreel.open(out.getvalue()).text] == [3, 4, 3, 4, 6, None]
