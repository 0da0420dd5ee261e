"""``record --like`` carries what a log says of itself besides messages, and tells what it cannot carry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import logreel
from cli_runner import Run
from logreel.formats.bddf.sample import walk
from logreel.formats.carla.sample_drive import drive as carla_drive
from logreel.formats.ulog.sample import flight
from logreel.ops.plain import plain


def _lines(log: logreel.Log) -> list[str]:
    return [
        json.dumps({"topic": m.channel.topic, "time_ns": m.time, "data": plain(m.decode())})
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


def test_metadata_of_carla_replaces_what_the_other_log_says(tmp_path: Path) -> None:
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


def test_an_mcap_keeps_what_a_ulog_says(tmp_path: Path) -> None:
    log, found, done = _again(flight(2.0), tmp_path / "x.mcap", metadata={"site": "north"})
    assert found.epoch == "boot"
    assert dict(log.metadata).items() <= dict(found.metadata).items()
    assert found.metadata["site"] == {"site": "north"}
    assert found.parameters.keys() == log.parameters.keys()
    assert not done.skipped


def test_what_a_bag_has_no_place_for_is_told(tmp_path: Path, run: Run) -> None:
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
