"""What the public documents of ROS bags say that bags and their tools can do, one test for each capability.

The pages are those of the ROS wiki: Bags/Format, Bags/Format/1.2, Bags/Format/2.0, rosbag/Commandline, rosbag/Code API,
rosbag/Cookbook, rosbag/migration.
"""

from __future__ import annotations

import io
import struct
from pathlib import Path

import pytest

import logreel
from support.harness.cli_runner import Run
from support.samples.rosbag import old
from support.samples.rosbag.builder import START, Builder, drive, few, string, tiny, version_2_0
from support.samples.rosbag.old import Topic

CHATTER = Topic("/chatter", "std_msgs/String")


@pytest.fixture
def bag(tmp_path: Path) -> Path:
    """Return the path of a bag of version 2.0 with several topics and chunks."""
    path = tmp_path / "drive.bag"
    path.write_bytes(drive())
    return path


def content(log: logreel.Log) -> list[tuple[str, int, bytes]]:
    return [(m.channel.topic, m.time, bytes(m.data)) for m in log.messages(order="file")]


# Bags/Format


@pytest.mark.parametrize("version", ["1.1", "1.2", "2.0"])
def test_older_versions_are_read_like_the_newest_one(version: str) -> None:
    """Bags/Format: bags of earlier releases stay usable, whatever their version."""
    log = logreel.open(tiny(version))
    assert (log.version, log.problems) == (version, ())
    assert content(log) == content(logreel.open(tiny()))


# Bags/Format/1.2


def test_a_bag_is_read_after_its_message_types_are_gone() -> None:
    """Usage: the text of each definition is in the bag, so that tools need no packages."""
    text = "float32 volts\nstring cell\n"
    topic = Topic("/cell", "gone_msgs/Cell", None, text)
    payload = struct.pack("<f", 3.5) + string("a1")
    log = logreel.open(old.version_1_2([(Topic(topic.name, topic.type, "0" * 32, text), START, payload)]))
    assert next(log.messages()).decode() == {"volts": 3.5, "cell": "a1"}


def test_header_fields_come_in_any_order() -> None:
    """Format, Header format: fields of a record header may be in any order."""
    fields = [("topic", b"/chatter"), ("type", b"std_msgs/String"), ("md5", CHATTER.sum), ("op", b"\x01")]
    fields.append(("def", CHATTER.definition))
    shuffled = b"#ROSRECORD V1.2\n" + old.record(fields[::-1]) + old.record(
        [("sec", struct.pack("<I", 5)), ("op", b"\x02"), ("md5", CHATTER.sum), ("nsec", struct.pack("<I", 7)),
         ("type", b"std_msgs/String"), ("topic", b"/chatter")],
        string("hi"),
    )  # fmt: skip
    assert content(logreel.open(shuffled)) == [("/chatter", 5 * 10**9 + 7, string("hi"))]


# Bags/Format/2.0


@pytest.mark.parametrize("compression", ["none", "bz2", "lz4"])
def test_compressed_chunks_still_allow_random_access(tmp_path: Path, compression: str) -> None:
    """Overview: chunks are compressed one by one, and any message can be read without those before it."""
    path = tmp_path / "a.bag"
    path.write_bytes(drive(compression=compression, chunk_bytes=64 << 10))
    log = logreel.open(path)
    assert log.metadata["compression"] == [compression]
    last = next(log.messages("/imu", reverse=True))
    assert last.time == int(log["/imu"].times[-1])
    assert last.decode().keys() == next(log.messages("/imu")).decode().keys()


def test_statistics_come_from_the_index_of_chunks() -> None:
    """Overview: a second level of the index gives counts and times without reading messages."""
    log = logreel.open(drive(chunk_bytes=64 << 10))
    found = logreel.info(log)
    assert sum(one.messages for one in found.channels) == log.message_count == len(content(log))
    assert (log.start, log.end) == (min(t for _, t, _ in content(log)), max(t for _, t, _ in content(log)))


def test_messages_are_stored_by_connection() -> None:
    """Overview: publishers of one topic are told apart, so that their messages can be published faithfully."""
    builder = Builder()
    one = builder.connection(Topic("/t", "std_msgs/String", more=(("callerid", b"/a"), ("latching", b"1"))))
    two = builder.connection(Topic("/t", "std_msgs/String", more=(("callerid", b"/b"),)))
    builder.message(one, START, string("x")).message(two, START + 1, string("y"))
    log = logreel.open(builder.bytes())
    assert log["/t"].metadata["callerids"] == ["/a", "/b"]
    assert log["/t"].metadata["latching"] is True
    assert log.index.side_column(0, "connection").tolist() == [0, 1]


def test_unknown_records_do_not_disturb() -> None:
    """Bag records: readers go by the op field; a kind that they do not know is skipped."""
    data = bytearray(version_2_0(few()))
    unknown = old.record([("op", b"\x20"), ("what", b"later")], b"content")
    log = logreel.open(bytes(data) + unknown)
    assert content(log) == content(logreel.open(bytes(data)))


# rosbag/Commandline


def test_info_summarises_a_bag(run: Run, bag: Path) -> None:
    """info: version, duration, start, end, size, counts, compression, and types and topics with counts."""
    done = run("info", bag, "--json").json
    log = logreel.open(bag)
    assert (done["version"], done["size"], done["messages"]) == ("2.0", bag.stat().st_size, log.message_count)
    assert (done["start_ns"], done["end_ns"]) == (log.start, log.end)
    assert {one["topic"]: one["type"] for one in done["channels"]}["/imu"] == "sensor_msgs/Imu"


def test_play_merges_several_bags_by_time(tmp_path: Path) -> None:
    """play: the content of several bags is played back synchronised by time."""
    for name, shift in (("a", 0), ("b", 5)):
        (tmp_path / f"{name}.bag").write_bytes(
            version_2_0(few(START + shift, (Topic(f"/{name}", "std_msgs/String"),)))
        )
    player = logreel.Player([tmp_path / "a.bag", tmp_path / "b.bag"], rate=0)
    seen = [message.time for message in player]
    assert seen == sorted(seen)
    assert len(seen) == sum(logreel.open(tmp_path / f"{n}.bag").message_count for n in "ab")


def test_play_takes_rate_start_duration_and_topics(run: Run, bag: Path) -> None:
    """play: --rate, --start, --duration, --topics and --loop select and time what is played."""
    done = run("play", bag, "-r", "0", "-S", "+1s", "-E", "+2s", "-t", "/imu", "--to", "stdout")
    assert done.code == 0
    assert len(done.out.splitlines()) == logreel.open(bag)["/imu"].to_arrow(start="+1s", end="+2s").num_rows


def test_check_says_whether_a_bag_is_sound(run: Run, bag: Path, tmp_path: Path) -> None:
    """check: finds out whether a bag can be played as it is."""
    assert run("check", bag).code == 0
    (tmp_path / "cut.bag").write_bytes(bag.read_bytes()[:-5000])
    assert run("check", tmp_path / "cut.bag").code == 4


def test_filter_keeps_topics_and_times(run: Run, bag: Path, tmp_path: Path) -> None:
    """filter: a new bag with the messages for which an expression on topic, message and time is true."""
    assert run("slice", bag, "-o", tmp_path / "part.bag", "-t", "/imu", "-S", "+1s", "-E", "+3s").code == 0
    part, whole = logreel.open(tmp_path / "part.bag"), logreel.open(bag)
    first, last = whole.start + 10**9, whole.start + 3 * 10**9
    assert content(part) == [m for m in content(whole) if m[0] == "/imu" and first <= m[1] < last]


@pytest.mark.parametrize("compression", ["bz2", "lz4"])
def test_compress_and_decompress_keep_the_content(
    run: Run, bag: Path, tmp_path: Path, compression: str
) -> None:
    """compress, decompress: bags are packed with bz2 or lz4 and unpacked again."""
    small, again = tmp_path / "small.bag", tmp_path / "again.bag"
    assert run("slice", bag, "-o", small, "--compression", compression).code == 0
    assert run("slice", small, "-o", again, "--compression", "none").code == 0
    assert small.stat().st_size < bag.stat().st_size
    assert content(logreel.open(small)) == content(logreel.open(again)) == content(logreel.open(bag))


def test_reindex_repairs_a_bag_that_was_not_closed(run: Run, tmp_path: Path) -> None:
    """reindex: a broken bag is repaired by reading it and writing its index anew."""
    (tmp_path / "x.bag.active").write_bytes(version_2_0(few(), Builder(finished=False)))
    assert run("recover", tmp_path / "x.bag.active", "-o", tmp_path / "x.bag").code in (0, 3)
    assert content(logreel.open(tmp_path / "x.bag")) == [(t.name, time, data) for t, time, data in few()]
    assert logreel.open(tmp_path / "x.bag").problems == ()


def test_record_splits_by_size_and_duration(tmp_path: Path) -> None:
    """record: --split with --size or --duration begins a new bag after so much."""
    lines = "".join(f'{{"topic": "/n", "time_ns": {n * 10**9}, "data": {{"x": {n}}}}}\n' for n in range(1, 7))
    logreel.record(io.BytesIO(lines.encode()), tmp_path / "out.bag", split_duration="2s")
    parts = sorted(tmp_path.glob("out_*.bag"))
    assert [logreel.open(part).message_count for part in parts] == [2, 2, 2]


# rosbag/Code API


def test_messages_are_written_and_read_back_with_types(tmp_path: Path) -> None:
    """Python API: a bag opened for writing takes messages by topic; reading gives topic, message and time."""
    with logreel.create(tmp_path / "new.bag") as w:
        w.write(w.add_channel("/numbers", logreel.Schema("std_msgs/Int32", "ros1msg")), START, {"data": 42})
    (message,) = logreel.open(tmp_path / "new.bag").messages(["/numbers"])
    assert (message.channel.topic, message.time, message.decode()) == ("/numbers", START, {"data": 42})


def test_a_bag_is_continued(tmp_path: Path, bag: Path) -> None:
    """Python API, mode a: messages are added to an existing bag."""
    before = logreel.open(bag).message_count
    with logreel.create(bag, mode="a") as w:
        w.write(w.add_channel("/numbers", logreel.Schema("std_msgs/Int32", "ros1msg")), START, {"data": 1})
    assert logreel.open(bag).message_count == before + 1


def test_types_checksums_counts_and_rates_are_known_without_reading_messages(bag: Path) -> None:
    """Python API, get_type_and_topic_info: type, checksum, count, connections and frequency of each topic."""
    imu = logreel.open(bag)["/imu"]
    assert imu.metadata["md5sum"] == "6a62c6daae103f4ff57a132d6f95cec2"
    assert (imu.schema.name, len(imu), imu.metadata["connections"]) == ("sensor_msgs/Imu", 1200, 1)
    assert imu.rate == pytest.approx(100, rel=0.02)


# rosbag/Cookbook


def test_a_topic_becomes_a_table(run: Run, bag: Path, tmp_path: Path) -> None:
    """Export message contents to CSV: a file with a column for each field."""
    assert run("convert", bag, tmp_path / "imu.csv", "-t", "/imu").code == 0
    head, *rows = (tmp_path / "imu.csv").read_text().splitlines()
    assert len(rows) == 1200
    assert "angular_velocity.z" in head


def test_several_bags_become_one(run: Run, bag: Path, tmp_path: Path) -> None:
    """Merging bags: messages of several bags, by time, in one bag."""
    (tmp_path / "b.bag").write_bytes(version_2_0(few()))
    assert run("merge", bag, tmp_path / "b.bag", "-o", tmp_path / "all.bag").code == 0
    every = [*content(logreel.open(bag)), *content(logreel.open(tmp_path / "b.bag"))]
    assert sorted(content(logreel.open(tmp_path / "all.bag"))) == sorted(every)


# rosbag/migration


def test_each_message_is_of_a_known_version_of_its_type() -> None:
    """Overview: the checksum of a type tells whether a message is of the version that a program knows."""
    found = logreel.definitions.find("sensor_msgs/PointCloud")
    assert [one.version for one in found] == [
        "d8e9c3f5afbdd8a130fd1d2763945fca",
        "c47b5cedd2b77d241b27547ed7624840",
    ]
