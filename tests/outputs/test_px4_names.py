"""ULogs as MCAP by the names of foxglove/mcap#1751: read by the mcap library, and back to the same ULog."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from logreel.errors import UsageError
from support.builders.sample_logs import short_flight
from support.harness.cli_runner import Run
from support.samples.rosbag.builder import drive

mcap_reader: Any = pytest.importorskip("mcap.reader", reason="needs mcap")
mcap_protobuf: Any = pytest.importorskip("mcap_protobuf.decoder", reason="needs mcap-protobuf-support")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("names") / "flight.mcap"
    done = logreel.convert(short_flight(), path, names="mcap")
    assert done.skipped == ()
    return path


@pytest.fixture(scope="module")
def flight() -> logreel.Log:
    return logreel.open(short_flight())


def read(path: Path, topic: str) -> list[tuple[int, Any]]:
    """Return times and messages of a topic as the mcap library decodes them."""
    reader = mcap_reader.make_reader(
        io.BytesIO(path.read_bytes()), decoder_factories=[mcap_protobuf.DecoderFactory()]
    )
    return [(raw.log_time, data) for _, _, raw, data in reader.iter_decoded_messages(topics=[topic])]


def test_topics_schemas_metadata_and_profile_are_those_of_the_mcap_tool(
    written: Path, flight: logreel.Log
) -> None:
    reader = mcap_reader.make_reader(io.BytesIO(written.read_bytes()))
    assert reader.get_header().profile == "px4"
    summary = reader.get_summary()
    schemas = {one.id: one for one in summary.schemas.values()}
    found = {
        ch.topic: (schemas[ch.schema_id].name, ch.message_encoding, ch.metadata.get("multi_id"))
        for ch in summary.channels.values()
    }
    for ch in flight.channels.values():
        if not ch.reserved and len(ch):
            number = str(ch.metadata["multi_id"])
            wanted = (f"px4.{ch.schema.name}", "protobuf", number)
            assert found[f"{ch.schema.name}/{number}"] == wanted
    assert {"sensor_accel/0", "sensor_accel/1"} < set(found)
    assert found["log_message"][:2] == ("px4.log_message", "protobuf")
    assert found["parameters"][:2] == ("px4.parameter", "protobuf")
    records = {record.name: record.metadata for record in reader.iter_metadata()}
    assert records["info"]["sys_name"] == "PX4"
    assert records["info"]["ver_sw"] == flight.metadata["ver_sw"]


def test_values_are_those_of_the_log(written: Path, flight: logreel.Log) -> None:
    ch = flight["sensor_accel[1]"]
    messages = read(written, "sensor_accel/1")
    assert [data.timestamp for _, data in messages] == ch["timestamp"].tolist()
    assert np.array_equal(np.array([data.x for _, data in messages], np.float32), ch["x"])
    assert [time for time, _ in messages] == (ch.times + (flight.utc_offset or 0)).tolist()
    # A message with other messages inside.
    esc = read(written, "esc_status/0")[0][1]
    assert [one.esc_rpm for one in esc.esc] == [
        int(flight["esc_status"][f"esc[{n}].esc_rpm"][0]) for n in range(8)
    ]


def test_texts_and_parameters(written: Path, flight: logreel.Log) -> None:
    texts = [line for line in flight.text if line.kind == "text"]
    lines = read(written, "log_message")
    assert [data.text for _, data in lines] == list(flight["~text"]["text"])
    assert [data.severity for _, data in lines] == flight["~text"]["level"].tolist()
    assert [data.timestamp for _, data in lines] == (flight["~text"].times // 1000).tolist()
    assert texts
    values = read(written, "parameters")
    known = flight["~parameter"]
    assert [data.name for _, data in values] == list(known["name"])
    assert [data.value for _, data in values] == known["value"].tolist()
    assert [data.default for _, data in values] == ["default" in kind for kind in known["kind"]]


def test_what_is_added_for_other_tools_has_these_names_too(written: Path) -> None:
    log = logreel.open(written)
    made = {ch.topic: ch.metadata["made_of"] for ch in log.channels.values() if "made_of" in ch.metadata}
    assert made["sensor_gps/0/LocationFix"] == "sensor_gps/0"
    assert made["vehicle_attitude/0/FrameTransform"] == "vehicle_attitude/0"
    assert "~dropout" in log.channels


def test_only_chosen_channels_and_times_are_written(tmp_path: Path, flight: logreel.Log) -> None:
    logreel.convert(short_flight(), tmp_path / "a.mcap", names="mcap", topics="vehicle_attitude")
    made = {"vehicle_attitude/0", "vehicle_attitude/0/FrameTransform"}
    assert set(logreel.open(tmp_path / "a.mcap").channels) == made
    logreel.convert(short_flight(), tmp_path / "b.mcap", names="mcap", start="+1s", end="+2s")
    inside = [
        time for time in flight["~text"].times.tolist() if 10**9 <= time - (flight.start or 0) < 2 * 10**9
    ]
    part = logreel.open(tmp_path / "b.mcap").channels.get("log_message")
    assert (0 if part is None else len(part)) == len(inside)


def test_it_becomes_the_same_ulog_again(written: Path, flight: logreel.Log, tmp_path: Path) -> None:
    done = logreel.convert(written, tmp_path / "again.ulg")
    assert done.skipped == ()
    again = logreel.open(tmp_path / "again.ulg")
    assert set(again.channels) == set(flight.channels)
    assert [bytes(m.data) for m in again.messages()] == [bytes(m.data) for m in flight.messages()]
    assert [m.time for m in again.messages()] == [m.time for m in flight.messages()]
    assert {k: v for k, v in again.metadata.items() if k != "ulog"} == {
        k: v for k, v in flight.metadata.items() if k != "ulog"
    }
    assert {name: p.value for name, p in again.parameters.items()} == {
        name: p.value for name, p in flight.parameters.items()
    }


def test_other_logs_and_outputs_have_no_such_names(tmp_path: Path, run: Run) -> None:
    with pytest.raises(UsageError, match="only ULogs have such names"):
        logreel.convert(drive(), tmp_path / "a.mcap", names="mcap")
    assert not list(tmp_path.iterdir())
    for name, options, why in (
        ("a.bag", {}, "only .mcap has the names"),
        ("a.mcap", {"raw": True}, "copied unchanged"),
        ("a.mcap", {"names": "px4"}, "known: logreel, mcap"),
    ):
        with pytest.raises(UsageError, match=why):
            logreel.convert(short_flight(), tmp_path / name, **{"names": "mcap", **options})
    (tmp_path / "a.ulg").write_bytes(short_flight())
    assert run("convert", tmp_path / "a.ulg", tmp_path / "b.mcap", "--names", "mcap").code == 0
    assert "cpuload/0" in logreel.open(tmp_path / "b.mcap").channels
