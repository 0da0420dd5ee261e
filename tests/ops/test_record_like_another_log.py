"""``record --like`` copies the content of a log besides messages, and reports what it cannot copy."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

import logreel
from logreel.log.scan import Schema
from logreel.ops.json_values import to_json_values
from support.harness.cli_runner import Run
from support.samples.bddf.builder import walk
from support.samples.carla.builder import eventful
from support.samples.carla.drive import drive as carla_drive
from support.samples.carla.records import RELEASES
from support.samples.mcap.walk import walk as walk_mcap
from support.samples.ulog.builder import Builder, flight


def _lines(log: logreel.Log) -> list[str]:
    return [
        json.dumps({"topic": m.channel.topic, "time_ns": m.time, "data": to_json_values(m.decode())})
        for m in log.messages()
    ]


def _again(data: bytes, out: Path, **options: Any) -> tuple[logreel.Log, logreel.Log, Any]:
    log = logreel.open(data)
    done = logreel.record(_lines(log), out, like=log, **options)
    return log, logreel.open(out), done


def test_a_recording_of_carla_keeps_its_map_and_date(tmp_path: Path) -> None:
    log, found, done = _again(carla_drive(3.0).bytes(), tmp_path / "x.rec", format="carla")
    assert {k: found.metadata[k] for k in ("map", "date_unix", "format_version")} == {
        k: log.metadata[k] for k in ("map", "date_unix", "format_version")
    }
    assert not done.skipped
    assert found.message_count == log.message_count


@pytest.mark.parametrize("release", RELEASES)
def test_a_recording_of_carla_is_of_the_same_release(release: str, tmp_path: Path) -> None:
    made = eventful(release).bytes()
    log, found, done = _again(made, tmp_path / "x.rec", format="carla")
    assert {**found.metadata} == {**log.metadata}
    assert not done.skipped
    assert _lines(found) == _lines(log)
    logreel.convert(made, tmp_path / "x.mcap", raw=True)
    with logreel.open(tmp_path / "x.mcap") as packed:
        logreel.record(_lines(log), tmp_path / "y.rec", like=packed)
    assert logreel.open(tmp_path / "y.rec").metadata["release"] == log.metadata["release"]


def test_options_take_precedence_over_the_other_log(tmp_path: Path) -> None:
    log = logreel.open(walk_mcap())
    for given, due in ({}, []), ({"compression": "lz4"}, ["lz4"]):
        logreel.record(_lines(log), tmp_path / "x.mcap", like=log, force=True, **given)
        found = logreel.open(tmp_path / "x.mcap").metadata["mcap"]
        assert found["compression"] == (due or log.metadata["mcap"]["compression"])
        assert found["profile"] == log.metadata["mcap"]["profile"]


def test_reserved_annotations_and_absent_checksums_of_bddf_are_taken_over(tmp_path: Path) -> None:
    source = tmp_path / "a.bddf"
    with logreel.create(source, reserved=True, checksum="none") as w:
        w.metadata("robot", "R1")
        schema = Schema("float64", "bddf")
        number = w.add_channel("speed", schema, {"spec": {"name": "speed"}, "annotations": {"unit": "m/s"}})
        w.write(number, 10**9, {"records": [{"value": 1.5}]})
    log, found, done = _again(source.read_bytes(), tmp_path / "x.bddf")
    assert not done.skipped
    assert found.metadata == log.metadata
    assert found["speed"].metadata == log["speed"].metadata
    logreel.convert(source, tmp_path / "x.mcap", raw=True)
    logreel.record(_lines(log), tmp_path / "y.bddf", like=tmp_path / "x.mcap")
    again = logreel.open(tmp_path / "y.bddf")
    assert again.metadata["robot"] == "R1"
    assert again["speed"].metadata["annotations"] == {"unit": "m/s"}


def test_metadata_option_replaces_metadata_of_the_carla_log(tmp_path: Path) -> None:
    log, found, _ = _again(
        carla_drive(3.0).bytes(), tmp_path / "x.rec", format="carla", metadata={"map": "Town99"}
    )
    assert found.metadata["map"] == "Town99"
    assert found.metadata["date_unix"] == log.metadata["date_unix"]


def test_a_bddf_file_keeps_its_annotations(tmp_path: Path) -> None:
    data = walk()
    log, found, _ = _again(data, tmp_path / "x.bddf", metadata={"operator": "Ann"})
    assert found.metadata["operator"] == "Ann"
    kept = {k: v for k, v in log.metadata.items() if isinstance(v, str) and k != "sha1"}
    assert kept
    assert {k: found.metadata.get(k) for k in kept} == kept


def test_a_ulog_keeps_information_and_parameters(tmp_path: Path) -> None:
    log, found, done = _again(flight(2.0), tmp_path / "x.ulg", metadata={"site": "north", "runs": 7})
    added = {"site": "char[]", "runs": "int32_t"}
    due = {**log.metadata, "site": "north", "runs": 7}
    due["ulog"] = {**due["ulog"], "types": {**due["ulog"]["types"], **added}}
    assert due == dict(found.metadata)
    assert {p.name: (p.value, dict(p.defaults)) for p in found.parameters.values()} == {
        p.name: (p.value, dict(p.defaults)) for p in log.parameters.values()
    }
    assert any("~text" in note for note in done.notes)


def test_an_mcap_keeps_metadata_and_parameters_of_a_ulog(tmp_path: Path) -> None:
    log, found, done = _again(flight(2.0), tmp_path / "x.mcap", metadata={"site": "north"})
    assert found.epoch == "boot"
    assert dict(log.metadata).items() <= dict(found.metadata).items()
    assert found.metadata["site"] == {"site": "north"}
    assert found.parameters.keys() == log.parameters.keys()
    assert not done.skipped


def test_content_that_a_bag_cannot_hold_is_reported(tmp_path: Path, run: Run) -> None:
    (tmp_path / "x.ulg").write_bytes(flight(2.0))
    topic = next(ch.topic for ch in logreel.open(tmp_path / "x.ulg").match(None) if len(ch))
    lines = _lines(logreel.open(tmp_path / "x.ulg"))
    (tmp_path / "x.ndjson").write_text("\n".join(one for one in lines if json.loads(one)["topic"] == topic))
    done = run("record", tmp_path / "x.bag", "--from", tmp_path / "x.ndjson", "--like", tmp_path / "x.ulg")
    assert done.code == 3
    assert "metadata" in done.err
    assert "parameter" in done.err


def test_the_command_line_sets_metadata(tmp_path: Path, run: Run) -> None:
    (tmp_path / "x.ndjson").write_text('{"topic": "a", "time_ns": 1000, "data": {"x": 1}}\n')
    given = ["--metadata", "name=Ann", "--metadata", "n=7", "--metadata", "f=1.5", "--metadata", 'id="7"']
    done = run("record", tmp_path / "x.ulg", "--from", tmp_path / "x.ndjson", *given)
    assert done.code == 0
    told = logreel.open(tmp_path / "x.ulg").metadata
    assert [told[name] for name in ("name", "n", "f", "id")] == ["Ann", 7, pytest.approx(1.5), "7"]
    refused = run("record", tmp_path / "y.ulg", "--from", tmp_path / "x.ndjson", "--metadata", "name")
    assert (refused.code, "NAME=VALUE" in refused.err) == (2, True)
    refused = run("record", tmp_path / "y.bag", "--from", tmp_path / "x.ndjson", "--metadata", "name=Ann")
    assert refused.code == 3
    assert "'name' left out" in refused.err


def _said(path: Path) -> list[tuple[int, int | None, str]]:
    return [(line.time, line.level, line.text) for line in logreel.open(path).text]


def test_text_of_a_ulog_is_copied_if_no_line_is_text(tmp_path: Path, run: Run) -> None:
    source, lines, out = tmp_path / "a.ulg", tmp_path / "a.ndjson", tmp_path / "b.ulg"
    source.write_bytes(flight(2.0))
    lines.write_text(run("cat", source, "--format", "ndjson").out)
    done = run("record", out, "--from", lines, "--like", source)
    assert (done.code, "'~text' came along" in done.err) == (0, True)
    assert len(logreel.open(source)["~text"]) > 5
    assert _said(out) == _said(source)


def test_text_given_as_lines_is_not_duplicated(tmp_path: Path, run: Run) -> None:
    source, lines, out = tmp_path / "a.ulg", tmp_path / "a.ndjson", tmp_path / "b.ulg"
    source.write_bytes(flight(2.0))
    lines.write_text(run("cat", source, "-t", "*", "-t", "~text", "--format", "ndjson").out)
    done = run("record", out, "--from", lines, "--like", source)
    assert (done.code, "was left alone" in done.err) == (0, True)
    assert len(logreel.open(out)["~text"]) == len(logreel.open(source)["~text"])
    assert _said(out) == _said(source)
    one = next(text for text in lines.read_text().splitlines() if '"~text"' in text)
    logreel.record([*_lines(logreel.open(source)), one], out, like=source, force=True)
    assert len(logreel.open(out)["~text"]) == 1


def test_text_is_copied_for_the_recorded_interval(tmp_path: Path) -> None:
    log = logreel.open(flight(2.0))
    text = log["~text"].times.tolist()
    some = [line for line in _lines(log) if text[3] <= json.loads(line)["time_ns"] <= text[6]]
    times = [json.loads(line)["time_ns"] for line in some]
    done = logreel.record(some, tmp_path / "x.ulg", like=log)
    due = [time for time in text if times[0] <= time <= times[-1]]
    assert 2 <= len(due) < len(text)
    assert logreel.open(tmp_path / "x.ulg")["~text"].times.tolist() == due
    assert any(f"{len(due)} of {len(text)} messages of '~text' came along" in note for note in done.notes)
    later = json.dumps(json.loads(some[0]) | {"time_ns": 10**15})
    logreel.record([later], tmp_path / "y.ulg", like=log)
    assert "~text" not in logreel.open(tmp_path / "y.ulg")
    assert not logreel.record([], tmp_path / "z.ulg", like=log).skipped


def test_text_before_the_first_message_is_copied(tmp_path: Path) -> None:
    made = Builder(5 * 10**6).flags().format("a:uint64_t timestamp;float x;").subscribe("a", 0)
    made.text(4, 6 * 10**6, "booting").raw("L", b"\x34" + struct.pack("<Q", 7 * 10**6) + b"caf\xe9")
    for time in (8, 9):
        made.data(0, struct.pack("<Qf", time * 10**6, 1))
    made.text(6, 10 * 10**6, "off")
    data = bytes(made.bytes())
    log, found, done = _again(data, tmp_path / "x.ulg")
    assert not done.skipped
    payloads = [[(m.time, bytes(m.data)) for m in one.messages(["~text"])] for one in (log, found)]
    assert payloads[0] == payloads[1]
    assert len(payloads[0]) == 3


TICK, SHAPES = "bosdyn.api.SignalTick", "bosdyn.api.SignalSchema"


def test_values_that_reading_derives_of_signal_ticks_are_left_out(tmp_path: Path) -> None:
    log = logreel.open(walk(2.0))
    lines = [line for line in _lines(log) if json.loads(line)["topic"] in (TICK, SHAPES)]
    assert any('"motor"' in line for line in lines)
    done = logreel.record(lines, tmp_path / "x.bddf", like=log)
    assert (done.skipped, done.broken) == ((), 0)
    found = logreel.open(tmp_path / "x.bddf")
    assert [bytes(m.data) for m in found.messages([TICK])] == [bytes(m.data) for m in log.messages([TICK])]
    assert found[TICK]["motor"].tolist() == log[TICK]["motor"].tolist()
    unknown = json.dumps(
        {"topic": TICK, "time_ns": 10**18, "data": {"sequence": 1, "rotor": {"torque": 1.0}}}
    )
    done = logreel.record([*lines, unknown], tmp_path / "x.bddf", like=log, force=True)
    assert done.broken == 1
    assert "rotor" in done.skipped[0]


@pytest.mark.parametrize("as_bytes", [True, False])
def test_ticks_written_as_they_were_decoded_follow_the_schema_before_them(
    as_bytes: bool, tmp_path: Path
) -> None:
    log = logreel.open(walk(2.0))
    with logreel.create(tmp_path / "x.bddf") as w:
        numbers = {t: w.add_channel(t, log[t].schema, log[t].metadata) for t in (SHAPES, TICK)}
        for m in log.messages([SHAPES, TICK], order="file"):
            given = bytes(m.data) if as_bytes and m.channel.topic == SHAPES else m.decode()
            w.write(numbers[m.channel.topic], m.time, given)
    found = logreel.open(tmp_path / "x.bddf")
    assert found[TICK]["motor"].tolist() == log[TICK]["motor"].tolist()
