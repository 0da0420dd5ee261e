"""Times in MCAPs for other tools: their clock, and the field ``timestamp``; read by other libraries."""

from __future__ import annotations

import importlib.util
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcap.reader import make_reader

import logreel
from support.builders.contents import PLACES, sample
from support.harness.cli_runner import Run
from support.samples.mcap.builder import Builder as McapBuilder
from support.samples.ulog.builder import Builder as Flight

mcap_protobuf = pytest.importorskip("mcap_protobuf.decoder", reason="needs mcap-protobuf-support")

NS = 10**9
#: When the messages of the bags here were logged, and how long before that their data were taken.
LOGGED, LATE = 1_700_000_000 * NS + 123_456_789, 33 * NS + 7
DATA = LOGGED - LATE
#: Whether a reader of MCAPs says what clock a converted log has.
CLOCKED = importlib.util.find_spec("logreel.formats.mcap.definitions") is not None
needs_clock = pytest.mark.skipif(not CLOCKED, reason="MCAPs do not tell their clock yet")

HEADER = "Header header\n"
VECTOR = "float64 x\nfloat64 y\nfloat64 z\n"
RULE = "=" * 80
STD = f"{RULE}\nMSG: std_msgs/Header\nuint32 seq\ntime stamp\nstring frame_id\n"
POINT = f"{RULE}\nMSG: geometry_msgs/Point\n{VECTOR}"
TURN = f"{RULE}\nMSG: geometry_msgs/Quaternion\nfloat64 x\nfloat64 y\nfloat64 z\nfloat64 w\n"
VECTOR3 = f"{RULE}\nMSG: geometry_msgs/Vector3\n{VECTOR}"
MOVE = f"{RULE}\nMSG: geometry_msgs/Transform\nVector3 translation\nQuaternion rotation\n{VECTOR3}{TURN}"
LIDAR = f"{RULE}\nMSG: x/Packet\ntime stamp\nuint8[1206] data\n"
CLOUD = "uint32 height\nuint32 width\nx/PointField[] fields\nbool is_bigendian\n"
CLOUD += "uint32 point_step\nuint32 row_step\nuint8[] data\n"
FIELD = f"{RULE}\nMSG: x/PointField\nstring name\nuint32 offset\nuint8 datatype\nuint32 count\n"
#: Of each schema a definition that Foxglove does not know, and fields beside the header.
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "LocationFix": (
        f"{HEADER}float64 latitude\nfloat64 longitude\n{STD}",
        {"latitude": 50.0, "longitude": 7.0},
    ),
    "PoseInFrame": (
        f"{HEADER}geometry_msgs/Point position\ngeometry_msgs/Quaternion orientation\n{STD}{POINT}{TURN}",
        {"orientation": {"w": 1.0}},
    ),
    "FrameTransform": (
        f"{HEADER}string child_frame_id\ngeometry_msgs/Transform transform\n{STD}{MOVE}",
        {"child_frame_id": "base"},
    ),
    "CompressedImage": (
        f"{HEADER}string format\nuint8[] data\n{STD}",
        {"format": "jpeg", "data": b"\xff\xd8\xff\xd9"},
    ),
    "RawImage": (
        f"{HEADER}uint32 height\nuint32 width\nstring encoding\nuint8[] data\n{STD}",
        {"height": 1, "width": 2, "encoding": "mono8", "data": b"ab"},
    ),
    "PointCloud": (f"{HEADER}{CLOUD}{STD}{FIELD}", {}),
    "LaserScan": (
        f"{HEADER}float32 angle_min\nfloat32 angle_increment\nfloat32 range_min\nfloat32 range_max\n"
        f"float32[] ranges\n{STD}",
        {"ranges": [1.0]},
    ),
    "Log": (f"{HEADER}uint8 level\nstring text\n{STD}", {"level": 6, "text": "hello"}),
}


def decoded(path: Path) -> dict[str, list[tuple[int, int, Any]]]:
    """Log time, publish time and message by topic, as the mcap library and its decoder of protobuf read them."""
    factory = mcap_protobuf.DecoderFactory()
    found: dict[str, list[tuple[int, int, Any]]] = {}
    with path.open("rb") as file:
        for schema, channel, message in make_reader(file).iter_messages(log_time_order=False):
            decode = factory.decoder_for(channel.message_encoding, schema) or bytes
            row = message.log_time, message.publish_time, decode(message.data)
            found.setdefault(channel.topic, []).append(row)
    return found


def ns(stamp: Any) -> int:
    return int(stamp.ToNanoseconds())


def stamps(message: Any) -> list[int]:
    """Every ``timestamp`` of a message of Foxglove."""
    if hasattr(message, "transforms"):
        return [ns(one.timestamp) for one in message.transforms]
    if hasattr(message, "entities"):
        return [ns(one.timestamp) for many in (message.deletions, message.entities) for one in many]
    return [ns(message.timestamp)]


def bag(path: Path, text: str, messages: list[dict[str, Any]]) -> Path:
    with logreel.create(path, force=True) as w:
        number = w.add_channel("/x", logreel.Schema("x/Mine", "ros1msg", text))
        for n, one in enumerate(messages):
            w.write(number, LOGGED + n, one)
    return path


@pytest.mark.parametrize("schema", KINDS)
def test_timestamp_is_the_time_of_the_data_and_log_time_that_of_the_log(tmp_path: Path, schema: str) -> None:
    text, fields = KINDS[schema]
    told = [DATA, 0, DATA + 5]
    path = bag(tmp_path / "a.bag", text, [{"header": {"stamp": one}, **fields} for one in told])
    logreel.convert(path, tmp_path / "a.mcap")
    found = decoded(tmp_path / "a.mcap")[f"/x/{schema}"]
    assert [(log, published) for log, published, _ in found] == [(LOGGED + n, LOGGED + n) for n in range(3)]
    # A stamp of zero tells nothing.
    assert [stamps(message) for _, _, message in found] == [[DATA], [LOGGED + 1], [DATA + 5]]


def test_each_of_many_transforms_has_its_own_stamp(tmp_path: Path) -> None:
    text = f"geometry_msgs/TransformStamped[] transforms\n{RULE}\nMSG: geometry_msgs/TransformStamped\n"
    text += f"{HEADER}string child_frame_id\nTransform transform\n{STD}{MOVE}"
    items = [{"header": {"stamp": stamp}, "child_frame_id": "c"} for stamp in (DATA, 0, DATA + 9)]
    path = bag(tmp_path / "a.bag", text, [{"transforms": items}])
    logreel.convert(path, tmp_path / "a.mcap")
    ((log, _, message),) = decoded(tmp_path / "a.mcap")["/x/FrameTransforms"]
    assert (log, stamps(message)) == (LOGGED, [DATA, LOGGED, DATA + 9])


def test_many_poses_have_the_stamp_of_their_message(tmp_path: Path) -> None:
    text = f"{HEADER}geometry_msgs/Pose[] poses\n{STD}{RULE}\nMSG: geometry_msgs/Pose\n"
    text += f"Point position\nQuaternion orientation\n{POINT}{TURN}"
    messages = [{"header": {"stamp": DATA}, "poses": [{}, {}]}, {"header": {"stamp": 0}, "poses": [{}]}]
    logreel.convert(bag(tmp_path / "a.bag", text, messages), tmp_path / "a.mcap")
    found = decoded(tmp_path / "a.mcap")["/x/PosesInFrame"]
    assert [(log, stamps(message)) for log, _, message in found] == [
        (LOGGED, [DATA]),
        (LOGGED + 1, [LOGGED + 1]),
    ]


def test_turns_of_a_scanner_have_the_stamp_of_their_first_packet(tmp_path: Path) -> None:
    """They are in the order of the log, whose times are those of the messages."""

    def packet(azimuth: int) -> bytes:
        blocks = b"".join(struct.pack("<HH", 0xEEFF, azimuth + k) + b"\1\1\1" * 32 for k in range(12))
        return blocks + bytes(6)

    azimuths = [0, 9000, 18000, 27000]
    messages = []
    for n in range(6):
        packets = [
            {"stamp": DATA + (4 * n + k) * 1000 if n != 3 else 0, "data": list(packet(a))}
            for k, a in enumerate(azimuths)
        ]
        messages.append({"header": {"stamp": DATA + n}, "packets": packets})
    text = f"{HEADER}x/Packet[] packets\n{STD}{LIDAR}"
    logreel.convert(bag(tmp_path / "a.bag", text, messages), tmp_path / "a.mcap")
    found = decoded(tmp_path / "a.mcap")["/x/PointCloud"]
    assert [log for log, _, _ in found] == [LOGGED + n for n in range(6)]
    due = [[DATA + 4 * n * 1000 if n != 3 else LOGGED + 3] for n in range(6)]
    assert [stamps(message) for _, _, message in found] == due


def test_stamps_of_two_numbers_are_stamps(tmp_path: Path) -> None:
    """As JSON spells them; one message has none."""
    number = {"type": "number"}
    stamp = {"type": "object", "properties": {"sec": {"type": "integer"}, "nsec": {"type": "integer"}}}
    header = {"type": "object", "properties": {"stamp": stamp}}
    schema = {"type": "object", "properties": {"header": header, "latitude": number, "longitude": number}}
    sec, nsec = divmod(DATA, NS)
    with logreel.create(tmp_path / "a.mcap") as w:
        channel = w.add_channel("/x", logreel.Schema("Fix", "jsonschema", json.dumps(schema)))
        place = {"latitude": 50, "longitude": 7}
        w.write(
            channel, LOGGED, json.dumps({"header": {"stamp": {"sec": sec, "nsec": nsec}}, **place}).encode()
        )
        w.write(channel, LOGGED + 1, json.dumps(place).encode())
    logreel.convert(tmp_path / "a.mcap", tmp_path / "b.mcap")
    found = decoded(tmp_path / "b.mcap")["/x/LocationFix"]
    assert [stamps(message) for _, _, message in found] == [[DATA], [LOGGED + 1]]


# ------------------------------------------------------------------------------------------------- whose clock


def flight(path: Path) -> Path:
    """A ULog with positions that were sampled 4 ms before they were published, and one that does not tell."""
    log = Flight(start_us=1_000_000).flags()
    log.format(
        "sensor_gps:uint64_t timestamp;uint64_t timestamp_sample;uint64_t time_utc_usec;double lat;double lon;"
    )
    log.subscribe("sensor_gps", 0)
    for n in range(20):
        now = 2_000_000 + n * 100_000
        sampled = now - 4_000 if n else 0
        log.data(0, struct.pack("<QQQdd", now, sampled, 1_700_000_000_000_000 + now, 50.0, 7.0))
    path.write_bytes(log.bytes())
    return path


def test_times_are_utc_if_the_offset_is_known(tmp_path: Path) -> None:
    source = logreel.open(flight(tmp_path / "a.ulg"))
    offset = source.utc_offset
    assert offset is not None
    logreel.convert(source, tmp_path / "a.mcap")
    found = decoded(tmp_path / "a.mcap")
    logged = (source["sensor_gps"].times + offset).tolist()
    assert logged[0] > 1_600_000_000 * NS
    for topic in ("sensor_gps", "sensor_gps/LocationFix"):
        assert [row[:2] for row in found[topic]] == [(time, time) for time in logged]
    # The times of the flight controller's samples are of the clock of the log, and go with it.
    due = [[logged[0]], *([time - 4_000_000] for time in logged[1:])]
    assert [stamps(message) for _, _, message in found["sensor_gps/LocationFix"]] == due
    # Values are as they were logged.
    assert [m.timestamp for _, _, m in found["sensor_gps"]] == source["sensor_gps"]["timestamp"].tolist()


@pytest.mark.parametrize("options", [{"clock": "log"}, {"clock": "log", "raw": True}, {"raw": True}])
def test_the_clock_of_the_log_can_be_kept(tmp_path: Path, options: dict[str, Any]) -> None:
    source = logreel.open(flight(tmp_path / "a.ulg"))
    logreel.convert(source, tmp_path / "a.mcap", **options)
    found = decoded(tmp_path / "a.mcap")
    logged = source["sensor_gps"].times.tolist()
    assert [row[:2] for row in found["sensor_gps"]] == [(time, time) for time in logged]
    fixes = found.get("sensor_gps/LocationFix", [])
    assert [stamps(m) for _, _, m in fixes] == (
        [] if "raw" in options else [[logged[0]], *([t - 4_000_000] for t in logged[1:])]
    )
    again = logreel.open(tmp_path / "a.mcap")
    assert (again.epoch, again.utc_offset) == (source.epoch, source.utc_offset)


def test_unknown_utc_keeps_the_clock_of_the_log(tmp_path: Path) -> None:
    log = Flight(start_us=1_000_000).flags().format("g:uint64_t timestamp;double lat;double lon;")
    (tmp_path / "a.ulg").write_bytes(
        log.subscribe("g", 0).data(0, struct.pack("<Qdd", 5_000_000, 50, 7)).bytes()
    )
    logreel.convert(tmp_path / "a.ulg", tmp_path / "a.mcap")
    ((time, _, message),) = decoded(tmp_path / "a.mcap")["g/LocationFix"]
    assert (time, stamps(message)) == (5 * NS, [5 * NS])
    with pytest.raises(logreel.UsageError, match="does not tell how its clock relates to UTC"):
        logreel.convert(tmp_path / "a.ulg", tmp_path / "b.mcap", clock="utc")
    assert not (tmp_path / "b.mcap").exists()


def test_unknown_clocks_are_refused(tmp_path: Path) -> None:
    path = flight(tmp_path / "a.ulg")
    with pytest.raises(logreel.UsageError, match="'utc' or 'log'"):
        logreel.convert(path, tmp_path / "b.mcap", clock="sensor_gps")
    with pytest.raises(logreel.UsageError, match="times of its own"):
        logreel.convert(path, tmp_path / "b.ulg", clock="utc")
    # Of tables it is a channel, as before.
    with pytest.raises(logreel.UsageError, match="aligned in time"):
        logreel.convert(path, tmp_path / "b.csv/", clock="utc")
    logreel.convert(path, tmp_path / "b.csv", align="previous", clock="sensor_gps")


def test_stamps_of_the_wall_clock_stay_where_the_log_counts_from_its_start(tmp_path: Path) -> None:
    """Stamps in the clock of the log are shifted with it."""
    text = f"{HEADER}float64 latitude\nfloat64 longitude\n{STD}"
    offset = LOGGED - 500 * NS
    out = McapBuilder()
    told = {"epoch": "boot", "utc_offset": str(offset), "clock": "log"}
    if not CLOCKED:
        told = {"epoch": "boot", "clock": json.dumps({"utc_offset": offset})}
    out.metadata("logreel", told).schema(1, "x/Fix", "ros1msg", text.encode()).channel(1, 1, "/x", "ros1")
    for n, stamp in enumerate((DATA, 499 * NS, 0)):
        seconds, rest = divmod(stamp, NS)
        out.message(1, 500 * NS + n, struct.pack("<IIIIdd", 0, seconds, rest, 0, 50.0, 7.0))
    (tmp_path / "a.mcap").write_bytes(out.bytes())
    logreel.convert(tmp_path / "a.mcap", tmp_path / "b.mcap")
    found = decoded(tmp_path / "b.mcap")["/x/LocationFix"]
    assert [log for log, _, _ in found] == [LOGGED, LOGGED + 1, LOGGED + 2]
    assert [stamps(m) for _, _, m in found] == [[DATA], [LOGGED - NS], [LOGGED + 2]]
    logreel.convert(tmp_path / "a.mcap", tmp_path / "c.mcap", clock="log")
    found = decoded(tmp_path / "c.mcap")["/x/LocationFix"]
    assert [stamps(m) for _, _, m in found] == [[DATA], [499 * NS], [500 * NS + 2]]


@pytest.mark.parametrize("suffix", [".ulg", ".vel", ".rec", ".bag", ".bddf"])
def test_every_sample_on_either_clock_differs_by_the_offset_alone(tmp_path: Path, suffix: str) -> None:
    path = sample(tmp_path, suffix)
    source = logreel.open(path)
    shift = 0 if source.epoch == "unix" else source.utc_offset or 0
    logreel.convert(path, tmp_path / "utc.mcap")
    logreel.convert(path, tmp_path / "log.mcap", clock="log")
    compare(tmp_path, shift)


@pytest.mark.parametrize("suffix", [".ulg", ".bag", ".bddf", ".vel", ".rec"])
def test_real_logs_on_either_clock_differ_by_the_offset_alone(
    shared: Path, tmp_path: Path, suffix: str
) -> None:
    seen = 0
    for path in sorted((shared / "data").glob(PLACES.get(suffix, f"**/*{suffix}"))):
        if path.stat().st_size > 200_000:
            continue
        source = logreel.open(path)
        if source.problems or not source.message_count:
            continue
        shift = 0 if source.epoch == "unix" else source.utc_offset or 0
        for clock in ("utc", "log"):
            options = {"clock": "log"} if clock == "log" else {}
            logreel.convert(path, tmp_path / f"{clock}.mcap", force=True, **options)
        compare(tmp_path, shift)
        seen += 1
    if not seen:
        pytest.skip("no samples beside the repository (LOGREEL_SHARED)")


def test_times_of_real_flights_are_those_that_pyulog_reads(shared: Path, tmp_path: Path) -> None:
    pyulog = pytest.importorskip("pyulog")
    seen = 0
    for path in sorted((shared / "data").glob("**/*.ulg")):
        if path.stat().st_size > 2_000_000:
            continue
        log = logreel.open(path)
        topics = [
            topic for topic in log if topic in ("sensor_gps", "vehicle_gps_position") and len(log[topic])
        ]
        if not topics or log.problems:
            continue
        logreel.convert(log, tmp_path / "a.mcap", topics=topics, force=True)
        offset = log.utc_offset or 0
        theirs = {d.name: d.data for d in pyulog.ULog(str(path)).data_list if d.multi_id == 0}
        for topic in topics:
            logged = theirs[topic]["timestamp"].astype(np.int64) * 1000 + offset
            sampled = theirs[topic].get("timestamp_sample", np.zeros(len(logged))).astype(np.int64) * 1000
            due = dict(
                zip(logged.tolist(), np.where(sampled > 0, sampled + offset, logged).tolist(), strict=True)
            )
            for time, published, message in decoded(tmp_path / "a.mcap").get(f"{topic}/LocationFix", []):
                assert (published, stamps(message)) == (time, [due[time]])
                seen += 1
    if not seen:
        pytest.skip("no samples beside the repository (LOGREEL_SHARED)")


def compare(folder: Path, shift: int) -> None:
    """Whether all times of utc.mcap are those of log.mcap and *shift*, and messages else the same."""
    utc, log = decoded(folder / "utc.mcap"), decoded(folder / "log.mcap")
    assert utc.keys() == log.keys()
    for topic, rows in log.items():
        assert [row[:2] for row in utc[topic]] == [(a + shift, b + shift) for a, b, _ in rows], topic
        for (_, _, mine), (_, _, due) in zip(utc[topic], rows, strict=True):
            if "/" in topic and getattr(getattr(due, "DESCRIPTOR", None), "full_name", "").startswith(
                "foxglove."
            ):
                assert stamps(mine) == [one + shift for one in stamps(due)], topic
            else:
                assert mine == due or repr(mine) == repr(due), topic


# ------------------------------------------------------------------------------------------------ reading it back


@needs_clock
@pytest.mark.parametrize("suffix", [".ulg", ".vel", ".rec"])
def test_a_log_on_utc_is_one_of_unix_time(tmp_path: Path, suffix: str) -> None:
    source = logreel.open(sample(tmp_path, suffix))
    assert source.utc_offset is not None
    logreel.convert(source, tmp_path / "a.mcap")
    log = logreel.open(tmp_path / "a.mcap")
    assert (log.epoch, log.utc_offset) == ("unix", 0)
    for topic, ch in source.channels.items():
        if len(ch):
            assert np.array_equal(log[topic].times, ch.times + source.utc_offset)


@needs_clock
@pytest.mark.parametrize("suffix", [".ulg", ".vel", ".rec", ".bag", ".bddf"])
def test_converting_back_restores_the_clock_of_the_log(tmp_path: Path, suffix: str) -> None:
    path = sample(tmp_path, suffix)
    source = logreel.open(path)
    logreel.convert(path, tmp_path / "a.mcap", raw=True, clock="utc")
    utc = logreel.open(tmp_path / "a.mcap")
    assert utc.epoch == "unix"
    logreel.convert(utc, tmp_path / f"b{suffix}")
    again = logreel.open(tmp_path / f"b{suffix}")
    assert (again.epoch, again.utc_offset) == (source.epoch, source.utc_offset)
    for topic, ch in source.channels.items():
        if not ch.reserved:
            assert np.array_equal(again[topic].times, ch.times), topic
            assert [bytes(m.data) for m in again.messages([topic])] == [
                bytes(m.data) for m in source.messages([topic])
            ]
    assert (again.start, again.end) == (source.start, source.end)


@needs_clock
def test_a_log_kept_byte_for_byte_goes_to_utc_when_it_is_translated(tmp_path: Path) -> None:
    """The record of the first conversion then says so."""
    path = sample(tmp_path, ".ulg")
    logreel.convert(path, tmp_path / "raw.mcap", raw=True)
    logreel.convert(tmp_path / "raw.mcap", tmp_path / "b.mcap")
    logreel.convert(path, tmp_path / "a.mcap")
    one, two = (logreel.open(tmp_path / name) for name in ("a.mcap", "b.mcap"))
    assert (one.epoch, one.utc_offset, one.start, one.end) == (two.epoch, two.utc_offset, two.start, two.end)
    assert dict(one.parameters) == dict(two.parameters)
    assert decoded(tmp_path / "a.mcap").keys() == decoded(tmp_path / "b.mcap").keys()


def test_the_command_line_chooses_the_clock(tmp_path: Path, run: Run) -> None:
    path, out = flight(tmp_path / "a.ulg"), tmp_path / "a.mcap"
    source = logreel.open(path)
    assert source.utc_offset is not None
    for arguments, shift in ([(), source.utc_offset], [("--clock", "log"), 0], [("--raw",), 0]):
        done = run("convert", path, out, "--force", *arguments)
        assert done.code == 0, done.err
        assert decoded(out)["sensor_gps"][0][0] == int(source["sensor_gps"].times[0]) + shift
    assert run("convert", path, out, "--force", "--clock", "gps").code == 2
    log = Flight(start_us=1_000_000).flags().format("g:uint64_t timestamp;double lat;double lon;")
    (tmp_path / "b.ulg").write_bytes(log.subscribe("g", 0).data(0, bytes(24)).bytes())
    done = run("convert", tmp_path / "b.ulg", tmp_path / "b.mcap", "--clock", "utc")
    assert done.code == 2
    assert "UTC" in done.err
