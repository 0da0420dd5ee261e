"""Telemetry logs: read as pymavlink reads them, and as the suite for formats asks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tlogs import START, telemetry

import logreel
from logreel.testing import FormatSuite
from logreel_ardupilot import TLOG
from logreel_ardupilot.mavlink import checksum, definitions

REAL = Path(__file__).parents[3].parent / "shared/data/ardupilot/vtol_head.tlog"


class TestTlog(FormatSuite):
    format = TLOG
    samples = (lambda: telemetry(6), lambda: telemetry(2))
    cuts, mutations, sequences = 40, 20, 2


def test_values_are_those_of_pymavlink() -> None:
    # Not through mavutil, whose version of MAVLink is that of its first import in the process.
    dialect = pytest.importorskip("pymavlink.dialects.v20.ardupilotmega", reason="pymavlink is not installed")
    log, parser = logreel.open(telemetry()), dialect.MAVLink(None)
    ours = [message for message in log.messages(order="file") if "MESSAGE_" not in message.channel.topic]
    assert len(ours) == 20 * 4 + 5
    for message in ours:
        one = parser.decode(bytearray(message.data))
        topic = f"{one.get_srcSystem()}/{one.get_srcComponent()}/{one.get_type()}"
        assert message.channel.topic == topic
        due = one.to_dict()
        del due["mavpackettype"]
        assert message.decode() == due
    # Columns are what single messages are.
    for ch in log.values():
        rows = [message.decode() for message in log.messages([ch.topic], order="file")]
        assert ch.to_arrow(explode=False).select(ch.fields).to_pylist() == [
            {name: row[name] for name in ch.fields} for row in rows
        ]


def test_digests_and_layouts_of_all_messages_are_those_of_pymavlink() -> None:
    dialect = pytest.importorskip("pymavlink.dialects.v20.ardupilotmega", reason="pymavlink is not installed")
    assert len(definitions()) > 250
    for number, ours in definitions().items():
        theirs = dialect.mavlink_map[number]
        assert (ours.name, ours.extra) == (theirs.msgname, theirs.crc_extra)
        assert ours.layout.size == theirs.unpacker.size


def test_the_checksum_is_that_of_the_catalogue() -> None:
    assert checksum(b"123456789") == 0x6F91


def test_what_a_log_says_besides_its_messages() -> None:
    log = logreel.open(telemetry())
    assert (log.format, log.version, log.problems) == ("tlog", "1 and 2", ())
    assert log.start == START * 1000
    assert {ch.topic: len(ch) for ch in log.values()} == {
        "1/1/HEARTBEAT": 20,
        "1/1/ATTITUDE": 20,
        "1/1/GLOBAL_POSITION_INT": 20,
        "1/1/SERVO_OUTPUT_RAW": 20,
        "1/1/MESSAGE_60000": 5,
        "2/1/STATUSTEXT": 5,
    }
    assert {(line.level, line.text, line.source) for line in log.text} == {
        (6, "EKF3 IMU0 is using GPS", "2/1")
    }
    units = {field.name: field.unit for field in log["1/1/GLOBAL_POSITION_INT"].layout.record.fields}
    assert (units["lat"], units["alt"]) == ("degE7", "mm")


def test_a_wrong_byte_costs_its_frame_and_is_told() -> None:
    data = bytearray(telemetry())
    whole = sum(len(ch) for ch in logreel.open(bytes(data)).values())
    at = data.index(b"\xfd", 500)
    for place, lost in ((at + 12, 1), (at + 1, 1), (at, 1)):
        wrong = data.copy()
        wrong[place] ^= 0x10
        log = logreel.open(bytes(wrong))
        assert [p.lost for p in log.problems] == [True]
        assert sum(len(ch) for ch in log.values()) == whole - lost


def read_by_pymavlink(path: Path) -> list[tuple[int, str]]:
    """Return time in µs and JSON-like text of all messages that pymavlink knows."""
    program = """
import os, sys
os.environ["MAVLINK20"] = "1"
from pymavlink import mavutil
log = mavutil.mavlink_connection(sys.argv[1], dialect="ardupilotmega")
while (message := log.recv_match()) is not None:
    if message.get_type() not in ("BAD_DATA",) and not message.get_type().startswith("UNKNOWN"):
        print(round(message._timestamp * 1e6), message.get_srcSystem(), message.get_seq(), message.to_dict())
"""
    pytest.importorskip("pymavlink", reason="pymavlink is not installed")
    # In a process of its own: the version of MAVLink is that of the first import.
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True
    )
    lines = [line.split(" ", 1) for line in done.stdout.splitlines()]
    return [(int(time), text) for time, text in lines]


def test_slices_and_merges_are_read_by_pymavlink(tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.tlog" for name in ("all", "copy", "first", "second", "merged")]
    whole, copy, first, second, merged = paths
    whole.write_bytes(telemetry(30) if not REAL.exists() else REAL.read_bytes())
    due = read_by_pymavlink(whole)
    assert len(due) > 100
    logreel.slice(whole, copy)
    assert read_by_pymavlink(copy) == due
    log = logreel.open(whole)
    middle = ((log.start or 0) + (log.end or 0)) // 2
    logreel.slice(whole, first, end=middle)
    logreel.slice(whole, second, start=middle)
    logreel.merge([first, second], merged)
    assert sorted(read_by_pymavlink(merged)) == sorted(due)


def test_messages_given_by_their_fields_become_frames(tmp_path: Path) -> None:
    path = tmp_path / "a.tlog"
    values = [{"time_boot_ms": n, "roll": n / 2, "pitch": 0.0, "yaw": 0.0} for n in range(300)]
    rates = dict.fromkeys(("rollspeed", "pitchspeed", "yawspeed"), 0.0)
    with logreel.create(path) as out:
        attitude = out.add_channel("7/1/ATTITUDE", logreel.Schema("ATTITUDE", "mavlink"))
        text = out.add_channel("7/1/STATUSTEXT", logreel.Schema("STATUSTEXT", "mavlink"))
        for n, message in enumerate(values):
            out.write(attitude, START * 1000 + n * 10**6, {**message, **rates})
        out.write(text, START * 1000 + 10**9, {"severity": 6, "text": b"hello", "id": 0, "chunk_seq": 0})
    log = logreel.open(path)
    assert log.problems == ()
    assert log["7/1/ATTITUDE"]["roll"].tolist() == [n / 2 for n in range(300)]
    assert [line.text for line in log.text] == ["hello"]
    read = read_by_pymavlink(path)
    assert len(read) == 301
    assert read[3][0] == START + 3000
    assert "'time_boot_ms': 3, 'roll': 1.5" in read[3][1]
    # Sequence numbers count all messages of a sender.
    assert [int(text.split(" ")[1]) for _, text in read] == [n % 256 for n in range(301)]


def test_frames_of_another_channel_are_refused(tmp_path: Path) -> None:
    log = logreel.open(telemetry())
    heart, attitude = log["1/1/HEARTBEAT"], log["1/1/ATTITUDE"]
    with (
        pytest.raises(logreel.errors.UsageError, match="no frame"),
        logreel.create(tmp_path / "b.tlog") as out,
    ):
        out.write(out.add_channel(heart.topic, heart.schema), START * 1000, bytes(attitude[0].data))
