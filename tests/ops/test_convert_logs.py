"""Logs of every format converted to MCAP and back keep messages, schemas and other content."""

from __future__ import annotations

from pathlib import Path

import pytest

import logreel
from support.builders.contents import LAYOUT, SAMPLES, content, other_content
from support.builders.mcap_rows import library_rows
from support.formats import builtin_formats, sample_log
from support.samples.bddf.builder import walk as bddf_walk
from support.samples.ulog.builder import Builder

OWN = {f.name: f for f in builtin_formats().values() if f.name != "mcap"}


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def without(metadata: dict[str, object]) -> dict[str, object]:
    """Return the metadata without facts of the file itself, which differ in a new file."""
    return {
        name: value for name, value in metadata.items() if name not in ("checksum", "size_reading", *LAYOUT)
    }


def check(source: Path, folder: Path) -> list[str]:
    """Convert a log to MCAP, and back if possible; return the sentences about skipped content."""
    log, there = logreel.open(source), folder / "x.mcap"
    done = logreel.convert(source, there, raw=True, force=True)
    other = logreel.open(there)
    left_out = [text for text in done.skipped if "stored outside its messages" not in text]
    if left_out:
        return left_out
    due = content(log)
    assert content(other) == due
    assert [ch.schema for ch in other.channels.values()] == [ch.schema for ch in log.channels.values()]
    assert len(library_rows(there.read_bytes())) == sum(len(messages) for _, messages in due.values())
    mine, its = other_content(log), other_content(other)
    assert repr(mine[0]) == repr(its[0])
    assert mine[1:3] == its[1:3]
    assert mine[4:] == its[4:]
    assert (other.epoch, other.converted_from) == (log.epoch, log.format)
    assert other.verify() == ()
    fmt = builtin_formats()[log.format]
    if fmt.create is not None:
        back = folder / f"x{fmt.suffixes[0]}"
        again = logreel.convert(there, back, force=True, strict=True)
        assert not again.skipped
        third = logreel.open(back)
        assert content(third) == due
        assert repr(without(other_content(third)[0])) == repr(without(mine[0]))
        assert other_content(third)[1:] == mine[1:]
    return []


@pytest.mark.parametrize("name", OWN)
def test_samples_of_every_format_survive_mcap_and_back(name: str, tmp_path: Path) -> None:
    make = {f.suffixes[0]: f for f in OWN.values()}.get
    fmt = OWN[name]
    data = SAMPLES[fmt.suffixes[0]]() if fmt.suffixes[0] in SAMPLES else sample_log(fmt.name)  # type: ignore[misc]
    assert make(fmt.suffixes[0]) is not None
    assert check(written(tmp_path / f"a{fmt.suffixes[0]}", data), tmp_path) == []


@pytest.mark.parametrize("folder", ["ulog", "rosbag", "bddf", "carla", "koblenz"])
def test_real_logs_survive_mcap_and_back(shared: Path, tmp_path: Path, folder: str) -> None:
    files = [
        f
        for f in sorted((shared / "data" / folder).rglob("*.*"))
        if f.suffix in (".ulg", ".bag", ".bddf", ".log")
    ]
    seen = 0
    for path in files:
        if path.stat().st_size > 600_000:
            continue
        skipped = check(path, tmp_path)
        # One sample has times before 1970.
        assert not skipped or (folder == "bddf" and "cannot hold their times" in skipped[0]), path
        seen += 1
    if not seen:
        pytest.skip("no samples beside the repository (LOGREEL_SHARED)")


def test_bags_have_the_profile_and_hints_that_other_tools_know(tmp_path: Path) -> None:
    bag = written(tmp_path / "a.bag", SAMPLES[".bag"]())
    logreel.convert(bag, tmp_path / "a.mcap", raw=True)
    log = logreel.open(tmp_path / "a.mcap")
    assert log.metadata["mcap"]["profile"] == "ros1"
    assert log.metadata["mcap"]["converted_from"].items() >= {"format": "rosbag", "version": "2.0"}.items()
    entries = mcap_channel(tmp_path / "a.mcap", "/imu")
    assert entries["callerid"] == "/robot"
    assert len(entries["md5sum"]) == 32
    assert log["/imu"]["orientation.w"].tolist() == logreel.open(bag)["/imu"]["orientation.w"].tolist()


def mcap_channel(path: Path, topic: str) -> dict[str, str]:
    from mcap.reader import make_reader

    with path.open("rb") as file:
        summary = make_reader(file).get_summary()
        assert summary is not None
        return next(c.metadata for c in summary.channels.values() if c.topic == topic)


def test_a_flight_in_an_mcap_is_decoded_like_one(tmp_path: Path) -> None:
    flight = written(tmp_path / "a.ulg", SAMPLES[".ulg"]())
    logreel.convert(flight, tmp_path / "a.mcap", raw=True)
    one, two = logreel.open(flight), logreel.open(tmp_path / "a.mcap")
    for topic in ("sensor_accel", "vehicle_attitude"):
        assert two[topic].to_arrow().equals(one[topic].to_arrow())


def test_content_that_the_other_format_cannot_hold_is_reported(tmp_path: Path) -> None:
    mcap = written(tmp_path / "a.mcap", SAMPLES[".mcap"]())
    done = logreel.convert(mcap, tmp_path / "a.bag", raw=True)
    assert [one.topic for one in done.channels] == ["/imu", "/fix"]
    assert sum(text.startswith("channel '/") for text in done.skipped) == 4
    assert any("metadata 'robot' left out" in text for text in done.skipped)
    assert any("attachment 'calibration.yaml' left out" in text for text in done.skipped)
    assert content(tmp_path / "a.bag")["/imu"] == content(mcap)["/imu"]
    with pytest.raises(logreel.LogError, match="nothing is written, because"):
        logreel.convert(mcap, tmp_path / "b.bag", strict=True, raw=True)
    assert not (tmp_path / "b.bag").exists()
    logreel.convert(mcap, tmp_path / "c.bag", topics=["/imu"], start="+1s")
    assert len(logreel.open(tmp_path / "c.bag")["/imu"]) == 500


WRITABLE = {f.suffixes[0]: f for f in builtin_formats().values() if f.create is not None}


@pytest.mark.parametrize("suffix", sorted(WRITABLE.keys() - {".mcap", ".bddf"}))
def test_a_conversion_without_any_message_is_refused(tmp_path: Path, suffix: str) -> None:
    source, target = written(tmp_path / "a.bddf", bddf_walk()), tmp_path / f"a{suffix}"
    messages = len(list(logreel.open(source).messages(order="file")))
    with pytest.raises(
        logreel.IncompleteOutputError, match=rf"none of the {messages} messages \(MCAP, "
    ) as found:
        logreel.convert(source, target, raw=True)
    channels = [text for text in found.value.skipped if text.startswith("channel ")]
    assert len(channels) == len(logreel.open(source).channels)
    target.write_bytes(b"older")
    with pytest.raises(logreel.IncompleteOutputError):
        logreel.recover(source, target, force=True)
    assert target.read_bytes() == b"older"
    assert {path.name for path in tmp_path.iterdir()} == {source.name, target.name}
    # Where there is nothing, nothing is lost.
    done = logreel.convert(source, target, start="+1ns", end="+1ns", force=True)
    assert not done.rows
    assert not logreel.open(target).problems


def test_a_channel_that_a_format_cannot_name_is_left_out_alone(tmp_path: Path) -> None:
    """If BDDF cannot declare a channel, it cannot join it with other channels either."""
    with logreel.create(tmp_path / "a.mcap") as log:
        for topic, schema in (
            ("said", logreel.Schema("line", "text/plain")),
            ("/wind", logreel.Schema("geometry_msgs/Vector3", "ros1msg")),
        ):
            log.write(log.add_channel(topic, schema), 10**18, bytes(24))
    done = logreel.convert(tmp_path / "a.mcap", tmp_path / "a.bddf", raw=True)
    assert [(one.topic, one.rows) for one in done.channels] == [("said", 1)]
    assert [text for text in done.skipped if "'/wind' (1 messages) was left out" in text]
    with pytest.raises(logreel.IncompleteOutputError, match="BDDF can hold none of the 1 messages"):
        logreel.convert(tmp_path / "a.mcap", tmp_path / "b.bddf", topics="/wind", raw=True)


@pytest.mark.parametrize("suffix", WRITABLE)
@pytest.mark.parametrize("other", WRITABLE)
def test_a_log_without_messages_can_be_converted(tmp_path: Path, suffix: str, other: str) -> None:
    source, target = tmp_path / f"a{suffix}", tmp_path / f"b{other}"
    with logreel.create(source):
        pass
    assert logreel.convert(source, target).rows == 0
    log = logreel.open(target)
    assert (log.format, log.problems) == (WRITABLE[other].name, ())
    assert not sum(map(len, log.channels.values()))


def test_recover_can_write_another_format(tmp_path: Path) -> None:
    flight = written(tmp_path / "a.ulg", SAMPLES[".ulg"]()[:-50])
    done = logreel.recover(flight, tmp_path / "a.mcap")
    assert done.lost_bytes > 0
    assert content(tmp_path / "a.mcap") == content(flight)


def test_options_of_logs_are_for_logs(tmp_path: Path) -> None:
    flight = written(tmp_path / "a.ulg", SAMPLES[".ulg"]())
    for options in ({"raw": True}, {"strict": True}, {"compression": "lz4"}):
        with pytest.raises(logreel.UsageError, match="is no log"):
            logreel.convert(flight, tmp_path / "a.ndjson", **options)
    with pytest.raises(logreel.UsageError, match="leave out utc=True"):
        logreel.convert(flight, tmp_path / "a.mcap", utc=True)
    with pytest.raises(logreel.UsageError, match="same file"):
        logreel.convert(flight, flight, force=True)
    with pytest.raises(logreel.UsageError, match="compression"):
        logreel.convert(flight, tmp_path / "b.ulg", compression="lz4")
    logreel.convert(flight, tmp_path / "a.mcap", compression="lz4")
    assert logreel.open(tmp_path / "a.mcap").metadata["mcap"]["compression"] == ["lz4"]
    logreel.convert(flight, tmp_path / "c.ulg")
    assert (tmp_path / "c.ulg").read_bytes() == flight.read_bytes()


def test_nan_and_infinities_are_json_strings(tmp_path: Path) -> None:
    """Information of any type, parameters with defaults and changes, binary attachments."""
    out = Builder(start_us=1_000_000).flags().info("sys_name", "PX4").format("a:uint64_t timestamp;float x;")
    out.info_multiple("uint8_t[4] blob", b"\x00\x01\xfe\xff").info_multiple(
        "char[3] lines", b"one"
    ).parameter("P", 0.1)
    out.subscribe("a", 0).data(0, bytes(8) + b"\0\0\xc0\x7f").parameter("P", float("inf"))
    assert check(written(tmp_path / "a.ulg", out.bytes()), tmp_path) == []


def test_channels_with_impossible_names_are_left_out_and_reported(tmp_path: Path) -> None:
    """Channels of text and parameters, whose names begin with a tilde, are no usage error."""
    flight = written(tmp_path / "a.ulg", SAMPLES[".ulg"]())
    with pytest.raises(logreel.IncompleteOutputError, match="can hold none of the") as caught:
        logreel.convert(flight, tmp_path / "none.bddf", raw=True)
    assert any("'~text'" in text for text in caught.value.skipped)
    logreel.convert(flight, tmp_path / "b.mcap")
    done = logreel.convert(tmp_path / "b.mcap", tmp_path / "b.bddf", raw=True)
    assert [text for text in done.skipped if text.startswith("channel '~parameter' (")]
    assert sum(one.rows for one in done.channels) > 0
    assert len(logreel.open(tmp_path / "b.bddf").channels) == len(done.channels)
