"""Facts about conversions between formats: what a log holds is kept, or the conversion says what is not."""

from __future__ import annotations

from pathlib import Path

import pytest

import logreel
from logreel.ops.add import add_attachments
from support.builders.contents import content
from support.harness.cli_runner import Run
from support.samples.bddf.builder import T0
from support.samples.bddf.builder import Builder as BddfBuilder
from support.samples.carla import drive as carla
from support.samples.koblenz.builder import Builder as KoblenzBuilder
from support.samples.ulog.builder import Builder as UlogBuilder
from support.samples.ulog.builder import flight

EMPTY = logreel.Schema("std_msgs/Empty", "ros1msg", "")
START = 1_700_000_000 * 10**9


def back_again(source: Path, there: Path) -> tuple[Path, list[str]]:
    """Convert *source* to *there* and back; return the new log, and all that was said."""
    back = there.with_name(f"back{source.suffix}")
    told = [logreel.convert(source, there), logreel.convert(there, back)]
    return back, [text for one in told for text in (*one.skipped, *one.notes)]


def unset_stamps() -> bytes:
    """Return a ULog in which programs leave ``timestamp`` at 0, or published long before the log began."""
    made = UlogBuilder(600_000_000).flags().format("a:uint64_t timestamp;float x;")
    made.format("b:uint64_t timestamp;uint8_t n;").subscribe("a", 0).subscribe("b", 1)
    for step in range(60):
        time = 600_000_000 + step * 10_000
        made.data(0, time.to_bytes(8, "little") + step.to_bytes(4, "little"))
        if step % 10 == 5:
            stamp = 0 if step < 40 else 1_000_000 + step
            made.data(1, stamp.to_bytes(8, "little") + bytes([step]))
    return bytes(made.bytes())


@pytest.mark.parametrize("suffix", [".mcap", ".bag", ".bddf", ".vel"])
def test_the_field_timestamp_of_a_ulog_stays_as_it_is(tmp_path: Path, suffix: str) -> None:
    source = tmp_path / "a.ulg"
    source.write_bytes(unset_stamps())
    back, told = back_again(source, tmp_path / f"b{suffix}")
    assert content(back) == content(source)
    assert any("6 of 'b'" in text for text in told)


def test_timestamps_of_real_ulogs_stay_as_they_are_over_mcap(shared: Path, tmp_path: Path) -> None:
    for name in ("sample_log_small.ulg", "sample_appended_multiple.ulg"):
        source = shared / "data" / "ulog" / name
        back, _ = back_again(source, tmp_path / "b.mcap")
        before, after = logreel.open(source), logreel.open(back)
        assert content(after) == content(before)
        assert (after.start, after.end, after.utc_offset) == (before.start, before.end, before.utc_offset)
        back.unlink()
        (tmp_path / "b.mcap").unlink()


def test_arrays_of_arrays_of_bddf_come_back_from_mcap(tmp_path: Path) -> None:
    out = BddfBuilder()
    shapes = {"float64": [3, 3], "uint8": [100], "int16": [2, 3, 4], "uint16": [5]}
    series = {kind: out.pods({"client": "c", "varname": kind}, kind, shape) for kind, shape in shapes.items()}
    rows = out.pods({"client": "c", "varname": "rows"}, "uint8", [2, 100])
    for i in range(4):
        now = T0 + i * 10**6
        for kind, shape in shapes.items():
            count = 1
            for n in shape:
                count *= n
            out.values(series[kind], now, kind, [(i + j) % 120 for j in range(count)])
        out.values(rows, now, "uint8", [j % 256 for j in range(200)])
    source = tmp_path / "a.bddf"
    source.write_bytes(out.bytes())
    back, told = back_again(source, tmp_path / "b.mcap")
    assert told == []
    assert content(back) == content(source)
    assert {ch.topic: ch.layout for ch in logreel.open(back).channels.values()} == {
        ch.topic: ch.layout for ch in logreel.open(source).channels.values()
    }


@pytest.mark.parametrize("suffix", [".bddf", ".ulg", ".mcap"])
def test_messages_without_fields_are_converted(tmp_path: Path, suffix: str) -> None:
    source = tmp_path / "a.bag"
    with logreel.create(source) as log:
        trigger = log.add_channel("/trigger", EMPTY)
        number = log.add_channel("/number", logreel.Schema("std_msgs/UInt8", "ros1msg", "uint8 data"))
        for i in range(100):
            log.write(trigger, START + i * 10**6, b"")
            log.write(number, START + i * 10**6, bytes([i]))
    back, told = back_again(source, tmp_path / f"b{suffix}")
    assert told == []
    assert len(logreel.open(tmp_path / f"b{suffix}")["/trigger"]) == 100
    assert content(back) == content(source)


@pytest.mark.parametrize(
    ("schema", "payload"),
    [
        (logreel.Schema("std_msgs/msg/Empty", "ros2msg", ""), b"\0\1\0\0\0"),
        (EMPTY, b""),
    ],
)
def test_a_bag_holds_messages_without_fields_of_an_mcap(
    tmp_path: Path, schema: logreel.Schema, payload: bytes
) -> None:
    source = tmp_path / "a.mcap"
    with logreel.create(source) as log:
        trigger = log.add_channel("/trigger", schema)
        for i in range(100):
            log.write(trigger, START + i * 10**6, payload)
    back, told = back_again(source, tmp_path / "b.bag")
    assert told == []
    bag = logreel.open(tmp_path / "b.bag")["/trigger"]
    assert (len(bag), bag.metadata["md5sum"]) == (100, "d41d8cd98f00b204e9800998ecf8427e")
    assert content(back) == content(source)


@pytest.mark.parametrize("suffix", [".bag", ".vel", ".bddf", ".mcap"])
def test_information_and_attachments_of_a_ulog_come_back(tmp_path: Path, suffix: str) -> None:
    source = tmp_path / "a.ulg"
    source.write_bytes(flight(3.0))
    back, told = back_again(source, tmp_path / f"b{suffix}")
    before, after = logreel.open(source), logreel.open(back)
    assert len(before.metadata) > 19
    assert repr(after.metadata) == repr(before.metadata)
    assert {n: a.read() for n, a in after.attachments.items()} == {
        n: a.read() for n, a in before.attachments.items()
    }
    assert dict(after.parameters) == dict(before.parameters)
    assert (after.epoch, after.utc_offset, after.start) == (before.epoch, before.utc_offset, before.start)
    if suffix in (".bag", ".vel"):
        (said,) = [text for text in told if text.startswith("metadata")]
        assert "only kept for converting back" in said


def test_large_attachments_are_left_out_with_a_word(tmp_path: Path) -> None:
    made = UlogBuilder(5_000_000).flags().format("a:uint64_t timestamp;float x;").subscribe("a", 0)
    source = tmp_path / "a.ulg"
    source.write_bytes(bytes(made.data(0, (5_000_000).to_bytes(8, "little") + bytes(4)).bytes()))
    add_attachments(source, {"big.bin": bytes(2 << 20)})
    done = logreel.convert(source, tmp_path / "b.bag")
    (said,) = [text for text in done.skipped if text.startswith("attachment")]
    assert "big" in said


@pytest.mark.parametrize("suffix", [".vel", ".bag", ".bddf", ".mcap"])
def test_channels_without_messages_come_back(tmp_path: Path, suffix: str) -> None:
    made = UlogBuilder(5_000_000).flags()
    names = ["a", *(f"empty_{n}" for n in range(15))]
    for name in names:
        made.format(f"{name}:uint64_t timestamp;float x;")
    for number, name in enumerate(names):
        made.subscribe(name, number)
    source = tmp_path / "a.ulg"
    source.write_bytes(bytes(made.data(0, (5_000_000).to_bytes(8, "little") + bytes(4)).bytes()))
    back, _ = back_again(source, tmp_path / f"b{suffix}")
    assert content(back) == content(source)
    assert len(logreel.open(back).channels) >= 16


def test_a_part_of_a_koblenz_log_has_the_chosen_channels(tmp_path: Path) -> None:
    source, log, part = tmp_path / "a.bag", tmp_path / "b.vel", tmp_path / "c.vel"
    with logreel.create(source) as bag:
        schema = logreel.Schema("std_msgs/UInt8", "ros1msg", "uint8 data")
        first, _, _ = (bag.add_channel(topic, schema) for topic in ("/first", "/second", "/third"))
        bag.write(first, START, b"1")
    logreel.convert(source, log)
    assert list(logreel.open(log).channels) == ["FirstM", "SecondM", "ThirdM"]
    logreel.slice(log, part, topics=["FirstM", "ThirdM"])
    assert list(logreel.open(part).channels) == ["FirstM", "ThirdM"]


@pytest.mark.parametrize("suffix", [".mcap", ".bag", ".bddf", ".vel"])
def test_carla_recordings_come_back_from_other_formats(tmp_path: Path, suffix: str) -> None:
    source = tmp_path / "a.rec"
    source.write_bytes(carla.drive(4.0).bytes())
    back, _ = back_again(source, tmp_path / f"b{suffix}")
    assert content(back) == content(source)
    assert logreel.open(back).metadata == logreel.open(source).metadata


@pytest.mark.parametrize("suffix", [".mcap", ".bag", ".bddf", ".vel"])
def test_real_carla_recordings_come_back_from_other_formats(
    shared: Path, tmp_path: Path, suffix: str
) -> None:
    source = tmp_path / "a.rec"
    source.write_bytes((shared / "data/carla/sr_DistanceToLaneCenter_2020.log").read_bytes())
    back, _ = back_again(source, tmp_path / f"b{suffix}")
    assert content(back) == content(source)
    assert logreel.open(back).metadata == logreel.open(source).metadata


def test_other_logs_become_no_carla_recording_and_the_error_says_why(tmp_path: Path) -> None:
    source = tmp_path / "a.ulg"
    source.write_bytes(flight(1.0))
    with pytest.raises(logreel.IncompleteOutputError) as error:
        logreel.convert(source, tmp_path / "a.rec")
    assert "a CARLA recording holds only packets of CARLA" in str(error.value)
    assert "--raw" not in str(error.value)
    assert not (tmp_path / "a.rec").exists()


def chassis(path: Path) -> Path:
    """Write a Koblenz log of two sensors with the name of "chassis" in French, in Latin-1 and in UTF-8."""
    made = KoblenzBuilder()
    for ms in range(0, 400, 100):
        made.laser(ms, "LMS", "ch\u00e2ssis".encode("latin-1"), [1, 2, ms])
        made.laser(ms, "LMS", "b\u00e2ti", [3, ms])
    path.write_bytes(made.bytes())
    return path


def test_a_latin_1_name_of_a_sensor_has_one_spelling(tmp_path: Path, run: Run) -> None:
    source = chassis(tmp_path / "a.vel")
    ch = logreel.open(source)["LaserRange2DDataM/ch\u00e2ssis"]
    assert ch.metadata["sensor_name"] == "ch\u00e2ssis"
    assert ch.metadata["latin_1_fields"] == ["sensor_name"]
    assert {message.decode()["sensor_name"] for message in ch.log.messages([ch.topic])} == {"ch\u00e2ssis"}
    assert set(ch.to_arrow()["sensor_name"].to_pylist()) == {"ch\u00e2ssis"}
    assert set(ch["sensor_name"].tolist()) == {"ch\u00e2ssis"}
    for verb in (["info"], ["cat"], ["stats"]):
        out = run(*verb, source).out
        assert "ch\u00e2ssis" in out
        assert "\ufffd" not in out


@pytest.mark.parametrize("suffix", [".bag", ".ulg", ".bddf", ".mcap"])
def test_a_latin_1_name_of_a_sensor_comes_back_byte_for_byte(tmp_path: Path, suffix: str) -> None:
    source = chassis(tmp_path / "a.vel")
    back, told = back_again(source, tmp_path / f"b{suffix}")
    assert content(back) == content(source)
    (said,) = [text for text in told if "Latin-1" in text]
    assert said.startswith("sensor_name of channel 'LaserRange2DDataM/ch\u00e2ssis'")


@pytest.mark.parametrize("suffix", [".vel", ".ulg", ".bddf"])
def test_text_that_is_not_utf_8_is_told(tmp_path: Path, suffix: str) -> None:
    source = tmp_path / "a.bag"
    texts = [b"plain", b"ch\xe2ssis", "ch\u00e2ssis".encode(), "\ufffd".encode()]
    with logreel.create(source) as log:
        note = log.add_channel("/note", logreel.Schema("std_msgs/String", "ros1msg", "string data"))
        for i, text in enumerate(texts):
            log.write(note, START + i * 10**6, len(text).to_bytes(4, "little") + text)
    done = logreel.convert(source, tmp_path / f"b{suffix}")
    assert done.skipped == ("text in 1 messages of '/note' is not UTF-8: U+FFFD stands for what is not",)


@pytest.mark.parametrize("suffix", [".mcap", ".bddf"])
def test_bytes_for_true_other_than_1_are_told(tmp_path: Path, suffix: str) -> None:
    made = UlogBuilder(5_000_000).flags().format("a:uint64_t timestamp;float x;bool on;bool[3] more;")
    made.subscribe("a", 0)
    for step, flags in enumerate((b"\x01\0\0\0", b"\x99\0\0\0", b"\0\0\0\x02")):
        made.data(0, (5_000_000 + step).to_bytes(8, "little") + bytes(4) + flags)
    source = tmp_path / "a.ulg"
    source.write_bytes(bytes(made.bytes()))
    done = logreel.convert(source, tmp_path / f"b{suffix}")
    assert "2 messages of 'a' have other bytes than 1 for true: they become 1" in done.notes
    back, told = back_again(source, tmp_path / "b.bag")
    assert content(back) == content(source)
    assert not any("for true" in text for text in told)


def test_messages_of_a_channel_stay_in_order_over_mcap(tmp_path: Path) -> None:
    made = UlogBuilder(600_000_000).flags().format("a:uint64_t timestamp;float x;")
    made.format("b:uint64_t timestamp;uint8_t n;").subscribe("a", 0).subscribe("b", 1)
    for step in range(100):
        time = 600_000_000 + step * 10_000
        made.data(0, time.to_bytes(8, "little") + bytes(4))
        # Stamped before it is logged; the first one long before the log.
        stamp = 1_000_000 if step == 5 else time - 30_000
        if step in (5, 6, 7):
            made.data(1, stamp.to_bytes(8, "little") + bytes([step]))
    source = tmp_path / "a.ulg"
    source.write_bytes(bytes(made.bytes()))
    back, _ = back_again(source, tmp_path / "b.mcap")
    assert [bytes(m.data) for m in logreel.open(back).messages(["b"], order="file")] == [
        bytes(m.data) for m in logreel.open(source).messages(["b"], order="file")
    ]
