"""Capabilities that PX4's page "ULog File Format" states, one test each, through the public API."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import logreel
from support.samples.ulog.builder import Builder


def opened(out: Builder) -> logreel.Log:
    return logreel.open(bytes(out.bytes()))


def row(time_us: int, value: float) -> bytes:
    return struct.pack("<Qf", time_us, value)


def begun() -> Builder:
    return Builder(start_us=1000).flags().format("a:uint64_t timestamp;float x;")


def test_any_type_can_be_logged_because_the_file_describes_it() -> None:
    """Goals: the format is self-describing, so a reader needs no other definitions."""
    out = (
        begun().format("own:uint64_t timestamp;int8_t[3] i;own_part p;").format("own_part:double d;bool on;")
    )
    out.subscribe("own", 0).data(0, struct.pack("<Q3bd?", 5000, 1, -2, 3, 0.5, True))
    assert opened(out)["own"][0].decode() == {"timestamp": 5000, "i": [1, -2, 3], "p": {"d": 0.5, "on": True}}


def test_the_header_has_the_start_in_microseconds() -> None:
    """Header section: the timestamp is when logging started, in microseconds."""
    assert opened(begun().subscribe("a", 0).data(0, row(2000, 1.0))).start == 1_000_000


def test_every_message_has_a_time_in_microseconds() -> None:
    """Data types, format message: a field ``timestamp`` in microseconds is in each subscribed format."""
    assert opened(begun().subscribe("a", 0).data(0, row(2500, 1.0)))["a"].times.tolist() == [2_500_000]


def test_several_instances_of_a_topic() -> None:
    """Subscription message: one format can be logged for several sensors, told apart by multi_id."""
    out = begun().subscribe("a", 0, 0).subscribe("a", 1, 1).data(0, row(2000, 1.0)).data(1, row(2000, 2.0))
    log = opened(out)
    assert (log["a"]["x"].tolist(), log["a[1]"]["x"].tolist()) == ([1.0], [2.0])


def test_padding_is_no_field() -> None:
    """Format message: fields whose names begin with _padding are for alignment only and not shown."""
    out = Builder().flags().format("b:uint64_t timestamp;uint8_t n;uint8_t[3] _padding0;float x;")
    out.subscribe("b", 0).data(0, struct.pack("<QB3xf", 1000, 7, 0.5))
    assert opened(out)["b"].fields == ["timestamp", "n", "x"]


def test_information_of_the_vehicle() -> None:
    """Information message: key and value, such as the name of the system."""
    out = begun().info("char[3] sys_name", b"PX4").subscribe("a", 0).data(0, row(2000, 1.0))
    assert opened(out).metadata["sys_name"] == "PX4"


def test_long_information_comes_in_parts() -> None:
    """Multi information message: a part may continue the previous one, and is then of the same entry."""
    out = begun().info_multiple("char[2] notes", b"ab").info_multiple("char[2] notes", b"cd", True)
    log = opened(out.subscribe("a", 0).data(0, row(2000, 1.0)))
    assert log.metadata["notes"] == [["ab", "cd"]]


def test_parameters_and_their_changes() -> None:
    """Parameter message: initial values are among the definitions, later ones are changes."""
    out = (
        begun().parameter("int32_t N", 4).subscribe("a", 0).data(0, row(2000, 1.0)).parameter("int32_t N", 5)
    )
    found = opened(out).parameters["N"]
    assert (found.value, [change.value for change in found.changes]) == (4, [5])


def test_default_parameters() -> None:
    """Default parameter message: values of the system and of the airframe; missing ones are as set."""
    out = Builder().flags(compat=1).format("a:uint64_t timestamp;float x;").parameter("int32_t N", 4)
    out.default_parameter("int32_t N", 3, types=1).subscribe("a", 0).data(0, row(2000, 1.0))
    assert 3 in opened(out).parameters["N"].defaults.values()


def test_logged_strings_have_levels() -> None:
    """Logged string message: time and level of syslog, from emergency to debug."""
    out = begun().subscribe("a", 0).data(0, row(2000, 1.0)).text(4, 2500, "low battery")
    (line,) = opened(out).text
    assert (line.time, line.level, line.text) == (2_500_000, 4, "low battery")


def test_tagged_strings_name_their_source() -> None:
    """Tagged logged string message: the tag says which process wrote the line."""
    (line,) = opened(begun().subscribe("a", 0).data(0, row(2000, 1.0)).tagged(6, 3, 2500, "hello")).text
    assert (line.text, line.source) == ("hello", "tag 3")


def test_dropouts_say_what_the_logger_lost() -> None:
    """Dropout message: the duration in milliseconds in which messages were lost."""
    out = begun().subscribe("a", 0).data(0, row(2000, 1.0)).dropout(17).data(0, row(90_000, 2.0))
    assert opened(out)["~dropout"]["duration"].tolist() == [17]


def test_unknown_messages_are_ignored() -> None:
    """Header of messages: a reader skips messages of kinds that it does not know, by their size."""
    out = begun().subscribe("a", 0).data(0, row(2000, 1.0)).raw("z", b"future").data(0, row(3000, 2.0))
    assert opened(out)["a"]["x"].tolist() == [1.0, 2.0]


def test_trailing_fields_can_be_added_to_a_format() -> None:
    """Format message: the fields are those in the file, so logs of any version of a topic can be read."""
    old = begun().subscribe("a", 0).data(0, row(2000, 1.0))
    new = Builder().flags().format("a:uint64_t timestamp;float x;float y;").subscribe("a", 0)
    new.data(0, row(2000, 1.0) + struct.pack("<f", 2.0))
    assert (opened(old)["a"].fields, opened(new)["a"].fields) == (["timestamp", "x"], ["timestamp", "x", "y"])


def test_a_log_that_ends_early_can_be_read() -> None:
    """Data section: after a power loss the last message may be incomplete; all before it is there."""
    data = bytes(begun().subscribe("a", 0).data(0, row(2000, 1.0)).data(0, row(3000, 2.0)).bytes())
    log = logreel.open(data[:-5])
    assert log["a"]["x"].tolist() == [1.0]
    assert [problem.code for problem in log.problems] == ["truncated"]


def test_data_after_damage_is_found() -> None:
    """Synchronization message: a reader finds the next message after a damaged part."""
    out = begun().subscribe("a", 0)
    for step in range(20):
        out.data(0, row(2000 + step, 1.0))
    out.junk(b"\xff" * 50).sync()
    for step in range(20):
        out.data(0, row(3000 + step, 2.0))
    assert sorted(set(opened(out)["a"]["x"].tolist())) == [1.0, 2.0]


def test_appended_data_are_read() -> None:
    """Flag bits message: data can be appended after a crash; their offset is in the flags."""
    out = begun().subscribe("a", 0).data(0, row(2000, 1.0)).append_part().text(2, 2500, "hardfault")
    assert [line.text for line in opened(out).text] == ["hardfault"]


def test_unknown_incompatible_flags_are_refused() -> None:
    """Flag bits message: a reader must not read a log with an incompatible bit that it does not know."""
    out = Builder().flags(incompat=1 << 5).format("a:uint64_t timestamp;float x;").subscribe("a", 0)
    with pytest.raises(logreel.UnsupportedError):
        opened(out.data(0, row(2000, 1.0)))


def test_a_log_can_be_written(tmp_path: Path) -> None:
    """Whole page: definitions first, then data."""
    with logreel.create(tmp_path / "a.ulg") as out:
        channel = out.add_channel("a", logreel.Schema("a", "ulog", "a:uint64_t timestamp;float x;"))
        out.write(channel, 2_000_000, {"x": 1.0})
    assert logreel.open(tmp_path / "a.ulg")["a"][0].decode() == {"timestamp": 2000, "x": 1.0}
