"""MCAPs for other tools, read by the mcap library, its decoders, and logreel."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from mcap.reader import make_reader

import logreel
from logreel.log.times import utc_shift
from logreel.outputs.foxglove import exchange
from support.builders.contents import PLACES, SAMPLES, content, sample
from support.builders.mcap_rows import library_rows, library_summary
from support.samples.bddf.builder import walk as bddf_walk
from support.samples.ulog.builder import Builder

mcap_protobuf = pytest.importorskip("mcap_protobuf.decoder", reason="needs mcap-protobuf-support")
mcap_ros1 = pytest.importorskip("mcap_ros1.decoder", reason="needs mcap-ros1-support")

#: What is added to each sample.
ADDED = {
    ".bag": {"/odom/PoseInFrame": 50},
    ".bddf": {"blob/CompressedImage": 0},
    ".db3": {},
    ".mcap": {},
    ".rec": {"position/SceneUpdate": 80},
    ".ulg": {
        "sensor_gps/LocationFix": 15,
        "vehicle_attitude/FrameTransform": 291,
        "vehicle_global_position/LocationFix": 30,
        "vehicle_local_position/PoseInFrame": 58,
        "~text/Log": 11,
    },
    ".vel": {
        "GPSDataM/LocationFix": 2,
        "ImageM/0/CompressedImage": 5,
        "ImageM/1/CompressedImage": 5,
        "RobotPoseM/PoseInFrame": 50,
        "VelodyneRawDataM/PointCloud": 20,
        "LaserRange2DDataM/front/LaserScan": 10,
        "LaserRange2DDataM/rear/LaserScan": 40,
    },
}


def decoded(path: Path) -> dict[str, list[tuple[int, Any]]]:
    """Return times and messages by topic, as read by the mcap library and its decoders."""
    factories = [mcap_ros1.DecoderFactory(), mcap_protobuf.DecoderFactory()]
    found: dict[str, list[tuple[int, Any]]] = {}
    with path.open("rb") as file:
        for schema, channel, message in make_reader(file).iter_messages(log_time_order=False):
            ways = (f.decoder_for(channel.message_encoding, schema) for f in factories)
            decode = next(
                (way for way in ways if way), json.loads if channel.message_encoding == "json" else bytes
            )
            found.setdefault(channel.topic, []).append((message.log_time, decode(message.data)))
    return found


def agrees(theirs: Any, ours: Any) -> bool:
    """Whether a message of one of the libraries holds these plain values."""
    if isinstance(ours, dict):
        names = {f.name for f in theirs.DESCRIPTOR.fields} if hasattr(theirs, "DESCRIPTOR") else ours
        return all(agrees(getattr(theirs, name), value) for name, value in ours.items() if name in names)
    if isinstance(ours, list | tuple) and not isinstance(theirs, bytes):
        return len(theirs) == len(ours) and all(map(agrees, theirs, ours))
    if isinstance(ours, int) and not isinstance(theirs, int | float):
        words = [
            getattr(theirs, n)
            for names in (("seconds", "nanos"), ("secs", "nsecs"))
            for n in names
            if hasattr(theirs, n)
        ]
        return words[0] * 10**9 + words[1] == ours
    if isinstance(theirs, bytes) and isinstance(ours, list | tuple):
        return theirs == bytes(ours)
    return bool(theirs == ours or (theirs != theirs and ours != ours))


def convert(source: Path | str, out: Path, **options: Any) -> dict[str, int]:
    done = logreel.convert(source, out, force=True, **options)
    assert done.skipped == ()
    return {one.topic: one.rows for one in done.channels}


@pytest.mark.parametrize("suffix", SAMPLES)
def test_other_libraries_read_every_sample(tmp_path: Path, suffix: str) -> None:
    path, out = sample(tmp_path, suffix), tmp_path / "out.mcap"
    convert(path, out)
    source, log, theirs = logreel.open(path), logreel.open(out), decoded(out)
    assert log.problems == log.verify() == ()
    times = [row[1] for row in library_rows(out.read_bytes())]
    assert suffix == ".mcap" or times == sorted(times)
    assert set(log) - set(source) == set(ADDED[suffix])
    assert {topic: len(log[topic]) for topic in ADDED[suffix]} == ADDED[suffix]
    shift = utc_shift(source) or 0
    for topic in source:
        # The library does not tell further channels of a topic apart, and has no decoder for CDR.
        if f"{topic}[1]" in source or topic.endswith("[1]") or suffix in (".mcap", ".db3"):
            continue
        mine = list(source.messages([topic]))
        found = theirs.get(topic, [])
        assert [time for time, _ in found] == [m.time + shift for m in mine]
        for (_, message), due in list(zip(found, mine, strict=True))[:100]:
            assert agrees(message, due.decode()), topic


@pytest.mark.parametrize("suffix", [".ulg", ".bag", ".bddf", ".vel", ".rec"])
def test_other_libraries_read_real_logs(shared: Path, tmp_path: Path, suffix: str) -> None:
    seen = 0
    for path in sorted((shared / "data").glob(PLACES.get(suffix, f"**/*{suffix}"))):
        if path.stat().st_size > 300_000:
            continue
        log = logreel.open(path)
        # One has times before 1970, one a type without a name.
        if log.problems or path.name in ("13_odd_times_late_series.bddf", "syn_v0_star.bag"):
            continue
        convert(path, tmp_path / "a.mcap")
        theirs = decoded(tmp_path / "a.mcap")
        again = logreel.open(tmp_path / "a.mcap")
        assert {ch.metadata.get("topic", t) for t, ch in again.channels.items() if len(ch)} == set(theirs), (
            path
        )
        for topic, ch in log.channels.items():
            assert len(again[topic]) == len(ch), (path, topic)
        seen += 1
    if not seen:
        pytest.skip("no samples beside the repository (LOGREEL_SHARED)")


def test_values_of_a_flight_are_those_that_were_logged(tmp_path: Path) -> None:
    path = sample(tmp_path, ".ulg")
    convert(path, tmp_path / "a.mcap")
    flight, log = logreel.open(path), logreel.open(tmp_path / "a.mcap")
    for topic, ch in flight.channels.items():
        if len(ch):
            due, found = ch.to_arrow(), log[topic].to_arrow()
            assert found.column_names == due.column_names
            assert log[topic].times.tolist() == (ch.times + flight.utc_offset).tolist()
            due, found = due.remove_column(0), found.remove_column(0)
            assert repr(found.to_pylist()) == repr(due.to_pylist())
    fixes = log["vehicle_global_position/LocationFix"]
    assert fixes["latitude"].tolist() == flight["vehicle_global_position"]["lat"].tolist()
    assert fixes.schema.name == "foxglove.LocationFix"
    assert fixes.metadata["made_of"] == "vehicle_global_position"
    assert log["battery_status"].schema.name == "ulog.battery_status"
    assert log["battery_status"].metadata["transcoded_from"] == "ulog"
    assert {p.name: p.value for p in log.parameters.values()} == {
        p.name: p.value for p in flight.parameters.values()
    }
    assert log.metadata["sys_name"] == flight.metadata["sys_name"]


def test_bags_keep_their_messages(tmp_path: Path) -> None:
    path, out = sample(tmp_path, ".bag"), tmp_path / "a.mcap"
    convert(path, out)
    log = logreel.open(out)
    due = content(path)
    assert {topic: one for topic, one in content(out).items() if topic in due} == due
    assert log.metadata["mcap"]["profile"] == ""
    assert {s.encoding for s in library_summary(out.read_bytes()).schemas.values()} == {"ros1msg", "protobuf"}
    # Back to a bag, what was made is left out, which is no loss.
    done = logreel.convert(out, tmp_path / "b.bag", strict=True)
    assert done.skipped == ()
    assert [text for text in done.notes if "/odom/PoseInFrame" in text]
    assert content(tmp_path / "b.bag") == due
    # And to an MCAP nothing is made twice.
    convert(out, tmp_path / "c.mcap")
    assert library_rows((tmp_path / "c.mcap").read_bytes()) == library_rows(out.read_bytes())


def test_transcoded_messages_are_converted_back(tmp_path: Path) -> None:
    flight, out = sample(tmp_path, ".ulg"), tmp_path / "a.mcap"
    convert(flight, out)
    done = logreel.convert(out, tmp_path / "b.ulg", topics="sensor_*")
    before, after = logreel.open(flight), logreel.open(tmp_path / "b.ulg")
    for topic in ("sensor_accel", "sensor_accel[1]", "sensor_combined"):
        assert after[topic].schema == before[topic].schema
        assert after[topic].to_arrow().equals(before[topic].to_arrow())
    assert sum("was made of" in text for text in done.notes) == 1


def test_transcoded_messages_stay_as_they_are_byte_for_byte(tmp_path: Path) -> None:
    flight, out = sample(tmp_path, ".ulg"), tmp_path / "a.mcap"
    convert(flight, out)
    for options in ({}, {"strict": True}, {"topics": "sensor_*"}, {"topics": "*/LocationFix"}):
        with pytest.raises(logreel.IncompleteOutputError, match="nothing is written"):
            logreel.convert(out, tmp_path / "b.ulg", raw=True, **options)
    assert not (tmp_path / "b.ulg").exists()


def test_a_log_converted_byte_for_byte_is_translated_as_the_log_itself(tmp_path: Path) -> None:
    """Includes text, parameters and dropouts, which no file defines."""
    flight = sample(tmp_path, ".ulg")
    convert(flight, tmp_path / "a.mcap")
    convert(flight, tmp_path / "raw.mcap", raw=True)
    convert(tmp_path / "raw.mcap", tmp_path / "b.mcap")
    one, two = (library_rows((tmp_path / name).read_bytes()) for name in ("a.mcap", "b.mcap"))
    assert one == two
    assert {"~text", "~parameter", "~text/Log"} <= {row[0] for row in one}
    raw, log = logreel.open(tmp_path / "raw.mcap"), logreel.open(flight)
    for topic in ("~text", "~parameter", "~dropout"):
        assert raw[topic].to_arrow().equals(log[topic].to_arrow())


def test_messages_that_nothing_describes_stay_as_they_are(tmp_path: Path) -> None:
    logreel.convert(logreel.open(bddf_walk()), tmp_path / "raw.mcap", raw=True)
    convert(tmp_path / "raw.mcap", tmp_path / "b.mcap")
    due, found = content(tmp_path / "raw.mcap"), content(tmp_path / "b.mcap")
    raw = logreel.open(tmp_path / "raw.mcap")
    opaque = [ch.topic for ch in raw.channels.values() if ch.schema.encoding == "bddf"]
    assert opaque
    assert {topic: found[topic] for topic in opaque} == {topic: due[topic] for topic in opaque}


def test_types_that_foxglove_shows_are_known_by_their_whole_names(tmp_path: Path) -> None:
    text = "float64 latitude\nfloat64 longitude\nfloat64 altitude\n"
    names = {
        "ros1msg": ("sensor_msgs/NavSatFix", "gps_common/NavSatFix"),
        "ros2msg": ("sensor_msgs/msg/NavSatFix", "gps_msgs/msg/NavSatFix"),
    }
    with logreel.create(tmp_path / "a.mcap") as log:
        for encoding, types in names.items():
            for name in types:
                log.add_channel(name, logreel.Schema(name, encoding, text))
    convert(tmp_path / "a.mcap", tmp_path / "b.mcap")
    added = {topic for topic in logreel.open(tmp_path / "b.mcap") if topic.endswith("LocationFix")}
    assert added == {"gps_common/NavSatFix/LocationFix", "gps_msgs/msg/NavSatFix/LocationFix"}


def test_the_window_size_does_not_change_the_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for suffix in (".ulg", ".vel", ".bag"):
        path = sample(tmp_path, suffix)
        convert(path, tmp_path / "a.mcap")
        monkeypatch.setattr(exchange, "WINDOW", 1 << 14)
        convert(path, tmp_path / "b.mcap", chunk_bytes=5000, compression="lz4")
        monkeypatch.undo()
        one, two = (library_rows((tmp_path / name).read_bytes()) for name in ("a.mcap", "b.mcap"))
        assert one == two
        facts = logreel.open(tmp_path / "b.mcap").metadata["mcap"]
        assert facts["compression"] == ["lz4"]
        assert facts["chunks"] > 10


def test_topics_and_interval_select_messages(tmp_path: Path) -> None:
    path, out = sample(tmp_path, ".ulg"), tmp_path / "a.mcap"
    log = logreel.open(path)
    rows = convert(path, out, topics=["sensor_gps", "cpuload"], start="+1s", end="+2s")
    ch = log["sensor_gps"]
    assert log.start is not None
    inside = ((ch.times >= log.start + 10**9) & (ch.times < log.start + 2 * 10**9)).sum()
    assert rows == {"sensor_gps": inside, "cpuload": 1, "sensor_gps/LocationFix": inside}
    assert convert(path, out, topics=["cpuload"], start="+1ns", end="+1ns") == {"cpuload": 0}
    assert decoded(out) == {}


def test_topics_in_use_get_a_number(tmp_path: Path) -> None:
    flight = Builder(start_us=1_000_000).flags().format("g:uint64_t timestamp;double lat;double lon;")
    flight.subscribe("g", 0).data(0, struct.pack("<Qdd", 0, 48, 8))
    (tmp_path / "a.ulg").write_bytes(flight.bytes())
    convert(tmp_path / "a.ulg", tmp_path / "a.mcap", raw=True)
    with logreel.create(tmp_path / "b.mcap") as w:
        taken = w.add_channel("g/LocationFix", logreel.Schema("x", "jsonschema", "{}"))
        w.write(taken, 10, b"{}")
    logreel.merge([tmp_path / "a.mcap", tmp_path / "b.mcap"], tmp_path / "c.mcap")
    rows = convert(tmp_path / "c.mcap", tmp_path / "d.mcap")
    assert rows == {"g": 1, "g/LocationFix": 1, "g/LocationFix[1]": 1}
    assert {topic: len(found) for topic, found in decoded(tmp_path / "d.mcap").items()} == rows


def test_messages_that_cannot_be_decoded_are_reported(tmp_path: Path) -> None:
    flight = Builder(start_us=1_000_000).flags().format("g:uint64_t timestamp;float x;").subscribe("g", 0)
    (tmp_path / "b.ulg").write_bytes(flight.data(0, bytes(12)).bytes())
    convert(tmp_path / "b.ulg", tmp_path / "b.mcap", raw=True)
    with logreel.create(tmp_path / "c.mcap") as w:
        number = w.add_channel("g", logreel.open(tmp_path / "b.mcap")["g"].schema)
        w.write(number, 1, bytes(12))
        w.write(number, 2, bytes(3))
    done = logreel.convert(tmp_path / "c.mcap", tmp_path / "d.mcap")
    assert done.skipped == ("1 messages of 'g' were left out: they cannot be decoded",)
    assert [(one.topic, one.rows) for one in done.channels] == [("g", 1)]
    with pytest.raises(logreel.LogError, match="nothing is written"):
        logreel.convert(tmp_path / "c.mcap", tmp_path / "e.mcap", strict=True)
    assert not (tmp_path / "e.mcap").exists()


def test_unknown_encodings_stay_unchanged(tmp_path: Path) -> None:
    with logreel.create(tmp_path / "a.mcap") as w:
        w.write(w.add_channel("/x", logreel.Schema("a/B", "strange", "?")), 1, b"payload")
        fix = logreel.Schema(
            "p",
            "jsonschema",
            json.dumps(
                {
                    "type": "object",
                    "properties": {"latitude": {"type": "number"}, "longitude": {"type": "number"}},
                }
            ),
        )
        w.write(w.add_channel("/fix", fix), 2, b'{"latitude": 50, "longitude": 7}')
    assert convert(tmp_path / "a.mcap", tmp_path / "b.mcap") == {"/x": 1, "/fix": 1, "/fix/LocationFix": 1}
    found = decoded(tmp_path / "b.mcap")
    assert found["/x"] == [(1, b"payload")]
    assert found["/fix/LocationFix"][0][1].latitude == 50


def test_lost_side_columns_are_reported(tmp_path: Path) -> None:
    path = sample(tmp_path, ".bddf")
    done = logreel.convert(path, tmp_path / "a.mcap", raw=True)
    assert done.skipped == (
        "pid, n of channel 'say' left out: these numbers are stored outside its messages",
    )
    with pytest.raises(logreel.LogError, match="pid, n"):
        logreel.convert(path, tmp_path / "b.mcap", raw=True, strict=True)
    # Transcoded messages have them.
    convert(path, tmp_path / "c.mcap", strict=True)
    assert (
        logreel.open(tmp_path / "c.mcap")["say"]["pid"].tolist() == logreel.open(path)["say"]["pid"].tolist()
    )


def test_descriptors_that_are_known_are_added(tmp_path: Path) -> None:
    """The MCAP gets descriptors for protobuf messages of a BDDF file; logreel reads the original schema back."""
    (tmp_path / "a.bddf").write_bytes(bddf_walk())
    for raw in (True, False):
        done = logreel.convert(tmp_path / "a.bddf", tmp_path / "a.mcap", raw=raw, force=True)
        assert [text for text in done.skipped if "sequence of channel" in text] == list(done.skipped)
        text = decoded(tmp_path / "a.mcap")["bosdyn.api.TextMessage"]
        source = logreel.open(tmp_path / "a.bddf")
        due = [m.decode()["message"] for m in source.messages(["bosdyn.api.TextMessage"])]
        assert [message.message for _, message in text] == due
        schema = logreel.open(tmp_path / "a.mcap")["bosdyn.api.TextMessage"].schema
        assert schema == source["bosdyn.api.TextMessage"].schema
    with logreel.create(tmp_path / "b.mcap") as w:
        w.write(w.add_channel("/x", logreel.Schema("not.Known", "protobuf")), 1, b"\x08\x01")
    assert decoded(tmp_path / "b.mcap") == {"/x": [(1, b"\x08\x01")]}
    assert logreel.open(tmp_path / "b.mcap")["/x"].schema == logreel.Schema("not.Known", "protobuf")
