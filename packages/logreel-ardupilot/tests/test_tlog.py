"""Telemetry logs: read as pymavlink reads them, and as the suite for formats asks."""

from __future__ import annotations

from pathlib import Path

import pytest
from tlogs import START, telemetry

import logreel
from logreel.testing import FormatSuite
from logreel_ardupilot import TLOG
from logreel_ardupilot.mavlink import checksum, definitions


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


def test_frames_of_another_channel_are_refused(tmp_path: Path) -> None:
    log = logreel.open(telemetry())
    heart, attitude = log["1/1/HEARTBEAT"], log["1/1/ATTITUDE"]
    with (
        pytest.raises(logreel.errors.UsageError, match="no frame"),
        logreel.create(tmp_path / "b.tlog") as out,
    ):
        out.write(out.add_channel(heart.topic, heart.schema), START * 1000, bytes(attitude[0].data))
