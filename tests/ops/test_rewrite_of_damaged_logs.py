"""Content that a new log cannot hold is left out and reported; the log is still written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import logreel
from support.builders.bag_variants import SYNTHETIC
from support.samples.bddf.builder import walk
from support.samples.rosbag.builder import CHATTER, COUNT, START, Builder, string, tiny

VERBS: list[Callable[..., Any]] = [logreel.slice, logreel.sort, logreel.recover]


@pytest.fixture(params=VERBS, ids=["slice", "sort", "recover"])
def verb(request: pytest.FixtureRequest) -> Callable[..., Any]:
    found: Callable[..., Any] = request.param
    return found


def test_messages_that_only_the_index_has_are_left_out_and_reported(
    verb: Callable[..., Any], tmp_path: Path
) -> None:
    out = Builder()
    numbers = [out.connection(topic) for topic in (CHATTER, COUNT)]
    for k in range(6):
        out.message(numbers[k % 2], START + k, string("abcd"))
    conn, stamp, place = out.chunks[-1].entries[2]
    # The index tells another time than the message, so that it is not this one.
    out.chunks[-1].entries[2] = (conn, stamp + 1000, place)
    source = tmp_path / "source.bag"
    source.write_bytes(out.bytes())
    done = verb(source, tmp_path / "out.bag")
    assert (done.messages, len(done.skipped)) == (5, 1)
    assert "1 messages of '/chatter' were left out" in done.skipped[0]
    log = logreel.open(tmp_path / "out.bag")
    assert [len(ch) for ch in log.channels.values()] == [2, 3]
    assert not log.problems


def test_a_damaged_connection_costs_no_message(verb: Callable[..., Any], tmp_path: Path) -> None:
    data = bytearray(SYNTHETIC["1.2 per topic"]())
    log = logreel.open(bytes(data))
    # The checksum that the header of one message states.
    at = data.rindex(b"md5=", 0, int(log.index.select(order="file").offset[5])) + 4
    data[at : at + 1] = b"x"
    source = tmp_path / "source.bag"
    source.write_bytes(data)
    done = verb(source, tmp_path / "out.bag")
    # Damage to what a connection says costs no message.
    assert done.messages == logreel.open(source).message_count
    assert not done.skipped
    assert any("is no md5sum" in note for note in done.notes)
    assert logreel.open(tmp_path / "out.bag").message_count == done.messages


def test_messages_with_impossible_times_are_left_out_and_reported(
    verb: Callable[..., Any], tmp_path: Path
) -> None:
    name = next(name for name in SYNTHETIC if name[:2] == "0 ")
    source = tmp_path / "source.bag"
    source.write_bytes(SYNTHETIC[name]())
    log = logreel.open(source)
    before = sum(m.time < 0 for m in log.messages())
    done = verb(source, tmp_path / "out.bag")
    assert done.messages == log.message_count - before
    assert bool(done.skipped) == bool(before)


@pytest.mark.parametrize("name", ["1.1 rosrecord", "1.2 indexed", "1.2 per topic"])
def test_old_bags_become_2_0(verb: Callable[..., Any], name: str, tmp_path: Path) -> None:
    source = tmp_path / "source.bag"
    source.write_bytes(SYNTHETIC[name]())
    done, before = verb(source, tmp_path / "out.bag"), logreel.open(source)
    after = logreel.open(tmp_path / "out.bag")
    assert (done.notes, done.skipped) == ((f"version {before.version} of ROS 1 bag became 2.0",), ())
    assert after.version == "2.0"
    assert sorted((m.channel.topic, m.time, bytes(m.data)) for m in after.messages()) == sorted(
        (m.channel.topic, m.time, bytes(m.data)) for m in before.messages()
    )


def test_impossible_names_and_shifts_raise_usage_errors(tmp_path: Path) -> None:
    source = tmp_path / "source.bag"
    source.write_bytes(tiny())
    with pytest.raises(logreel.UsageError, match="printable"):
        logreel.merge([source], tmp_path / "out.bag", prefixes=["\x01"])
    with pytest.raises(logreel.UsageError, match="time -"):
        logreel.merge([source, source], tmp_path / "out.bag", align="-2000000000s")
    assert not (tmp_path / "out.bag").exists()


def test_a_numbered_channel_alone_gets_its_topic_back(tmp_path: Path) -> None:
    name = next(name for name in SYNTHETIC if "connections" in name)
    source = tmp_path / "source.bag"
    source.write_bytes(SYNTHETIC[name]())
    log = logreel.open(source)
    topic = next(topic for topic in log if topic.endswith("[1]"))
    done = logreel.slice(source, tmp_path / "out.bag", topics=[topic])
    assert done.messages == len(log[topic]) > 0
    found = logreel.open(tmp_path / "out.bag")
    assert {name: len(ch) for name, ch in found.channels.items()} == {topic[:-3]: len(log[topic])}


def test_a_slice_of_a_struct_includes_its_members(tmp_path: Path) -> None:
    source = tmp_path / "source.bddf"
    source.write_bytes(walk(1))
    log = logreel.open(source)
    struct = next(ch for ch in log.channels.values() if ch.schema.name == "struct")
    names = {
        ch.topic for ch in log.channels.values() if ch.metadata["hash"] in struct.metadata["members"].values()
    }
    logreel.slice(source, tmp_path / "out.bddf", topics=[struct.topic])
    found = logreel.open(tmp_path / "out.bddf")
    assert set(found) == {struct.topic, *names}
    assert found[struct.topic].to_arrow().equals(struct.to_arrow())
    logreel.slice(source, tmp_path / "bare.bddf", topics=[struct.topic], exclude=sorted(names))
    assert len(logreel.open(tmp_path / "bare.bddf")[struct.topic]) == 0
