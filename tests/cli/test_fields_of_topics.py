"""``-t topic.field`` and ``-t topic:field,field`` choose fields in the verbs that can show some of them."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import logreel
from logreel.errors import DefinitionError, NotFoundError, TopicError, UsageError
from logreel.log.tables import column_values
from logreel.log.topic_fields import field_picker, fields_by_topic
from logreel.ops.json_values import to_json_values
from support.builders.contents import SAMPLES, sample
from support.harness.cli_runner import Run
from support.samples.ulog.builder import flight


@pytest.fixture(autouse=True)
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.ulg").write_bytes(flight(10.0))


def test_cat_shows_only_the_fields_chosen(run: Run) -> None:
    lines = run(
        "cat", "a.ulg", "-t", "esc_status.esc[1].esc_rpm", "-n", "2", "--format", "ndjson"
    ).out.splitlines()
    assert [list(json.loads(line)["data"]) for line in lines] == [["esc[1].esc_rpm"]] * 2
    text = run("cat", "a.ulg", "-t", "battery_status:current_a,voltage_v", "-n", "1").out
    assert [word.partition("=")[0] for word in text.split()[2:]] == ["current_a", "voltage_v"]
    table = list(
        csv.reader(io.StringIO(run("cat", "a.ulg", "-t", "vehicle_attitude.q", "--format", "csv").out))
    )
    assert table[0] == ["time_ns", "q[0]", "q[1]", "q[2]", "q[3]"]


def test_options_that_name_one_channel_add_their_fields(run: Run) -> None:
    args = ("cat", "a.ulg", "-n", "1", "--json")
    both = run(*args, "-t", "battery_status.voltage_v", "-t", "battery_status.current_a").json["messages"]
    assert list(both[0]["data"]) == ["voltage_v", "current_a"]
    every = run(*args, "-t", "battery_status.voltage_v", "-t", "battery_status").json["messages"]
    assert len(every[0]["data"]) > 2


@pytest.mark.parametrize("out", ["x.csv", "x.arrow", "x.parquet", "x.parquet/"])
def test_tables_have_only_the_columns_chosen(run: Run, out: str) -> None:
    assert run("convert", "a.ulg", out, "-t", "sensor_gps:latitude_deg,longitude_deg").code == 0
    if out == "x.csv":
        assert Path(out).read_text().splitlines()[0] == "time_ns,latitude_deg,longitude_deg"
    elif out == "x.parquet/":
        (entry,) = json.loads(Path("x.parquet/manifest.json").read_text())["channels"]
        assert entry["fields"] == ["latitude_deg", "longitude_deg"]
        assert pq.read_schema(Path(out) / entry["file"]).names == ["time", "latitude_deg", "longitude_deg"]
    elif out == "x.parquet":
        assert pq.read_schema(out).names == ["time", "latitude_deg", "longitude_deg"]


def test_aligned_and_long_tables_have_only_the_fields_chosen(run: Run) -> None:
    wanted = ("-t", "sensor_gps.latitude_deg", "-t", "battery_status:voltage_v")
    run("convert", "a.ulg", "x.csv", "--align", "previous", "--rate", "5Hz", *wanted)
    assert (
        Path("x.csv").read_text().splitlines()[0]
        == "time_ns,battery_status.voltage_v,sensor_gps.latitude_deg"
    )
    run("convert", "a.ulg", "y.csv", "--layout", "long", *wanted)
    rows = list(csv.reader(Path("y.csv").read_text().splitlines()))[1:]
    assert {(row[1], row[2]) for row in rows} == {
        ("battery_status", "voltage_v"),
        ("sensor_gps", "latitude_deg"),
    }
    run("convert", "a.ulg", "z.ndjson", "-n", "3", *wanted)
    assert {
        *map(tuple, (json.loads(line)["data"] for line in Path("z.ndjson").read_text().splitlines()))
    } <= {
        ("voltage_v",),
        ("latitude_deg",),
    }


def test_stats_of_chosen_fields_need_no_further_option(run: Run) -> None:
    found = run("stats", "a.ulg", "-t", "vehicle_attitude.q[0]", "-t", "sensor_gps", "--json").json[
        "channels"
    ]
    fields = {one["topic"]: one["fields"] for one in found}
    assert fields["sensor_gps"] is None
    assert [field["path"] for field in fields["vehicle_attitude"]] == ["q[0]"]


def test_a_topic_with_the_whole_text_as_name_wins(run: Run) -> None:
    lines = [{"topic": topic, "time_ns": 1, "data": {"x": 1, "y": 2}} for topic in ("imu", "imu.x")]
    Path("d.ndjson").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert run("record", "d.mcap", "--from", "d.ndjson").code == 0
    with logreel.open("d.mcap") as log:
        assert fields_by_topic(log, "imu.x") == {"imu.x": None}
        assert fields_by_topic(log, ["imu:x", "imu.x.y"]) == {"imu": ["x"], "imu.x": ["y"]}
    assert run("slice", "d.mcap", "-o", "x.mcap", "-t", "imu.x").code == 0


def test_a_pattern_with_fields_means_the_channels_that_have_them() -> None:
    with logreel.open("a.ulg") as log:
        assert fields_by_topic(log, "sensor_*.latitude_deg") == {"sensor_gps": ["latitude_deg"]}
        assert fields_by_topic(log, "sensor_accel*:x,y") == {
            "sensor_accel": ["x", "y"],
            "sensor_accel[1]": ["x", "y"],
        }
        with pytest.raises(NotFoundError, match="no field 'latitud'; nearest: latitude_deg"):
            fields_by_topic(log, "sensor_gps*.latitud")


@pytest.mark.parametrize("verb", [["cat"], ["stats"], ["convert", "x.csv/"]])
def test_an_unknown_field_is_answered_with_the_nearest(run: Run, verb: list[str]) -> None:
    done = run(verb[0], "a.ulg", *verb[1:], "-t", "battery_status.voltage")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("logreel: a.ulg: no field 'voltage'; nearest: voltage_v, ")


def test_an_unknown_topic_with_fields_is_answered_with_the_nearest_topics(run: Run) -> None:
    done = run("cat", "a.ulg", "-t", "batery_status:voltage_v,current_a")
    assert (done.code, "no channel 'batery_status:voltage_v,current_a'" in done.err) == (2, True)
    assert "nearest: battery_status" in done.err
    assert "one by one" not in done.err


@pytest.mark.parametrize(
    "line",
    [
        "slice a.ulg -o x.ulg", "merge a.ulg a.ulg -o x.ulg", "split a.ulg --every 1s -o parts", "info a.ulg",
        "schema a.ulg", "diff a.ulg a.ulg", "play a.ulg", "convert a.ulg x.mcap", "convert a.ulg x.kml",
        "convert a.ulg x.rrd",
    ],
)  # fmt: skip
def test_verbs_of_whole_channels_refuse_fields(run: Run, line: str) -> None:
    done = run(*line.split(), "-t", "sensor_gps.latitude_deg")
    assert (done.code, done.out) == (2, "")
    assert (
        "'sensor_gps.latitude_deg' names fields of 'sensor_gps', but only whole channels can be chosen here"
        in done.err
    )
    assert sorted(str(path) for path in Path().iterdir()) == ["a.ulg"]


def test_exclude_refuses_fields(run: Run) -> None:
    done = run("cat", "a.ulg", "-x", "sensor_gps.latitude_deg")
    assert (done.code, "only whole channels" in done.err) == (2, True)


def test_convert_takes_a_mapping_of_topics_to_fields() -> None:
    done = logreel.convert(
        "a.ulg", "x.arrow/", topics={"sensor_gps": ["latitude_deg"], "battery_status": None}
    )
    assert [one.topic for one in done.channels] == ["battery_status", "sensor_gps"]
    with pytest.raises(NotFoundError, match="no field 'nope'"):
        logreel.convert("a.ulg", "y.csv", topics={"sensor_gps": ["nope"]})
    with pytest.raises(TopicError):
        logreel.convert("a.ulg", "y.csv", topics={"nope": ["latitude_deg"]})
    with pytest.raises(UsageError, match="choose channels, not fields"):
        logreel.convert("a.ulg", "y.mcap", topics={"sensor_gps": ["latitude_deg"]})
    assert logreel.stats("a.ulg", {"sensor_gps": ["latitude_deg"]})[0].fields[0].path == "latitude_deg"  # type: ignore[index]


def test_library_functions_take_fields_as_text() -> None:
    logreel.convert("a.ulg", "x.csv", topics="sensor_gps:latitude_deg,longitude_deg")
    assert Path("x.csv").read_text().splitlines()[0] == "time_ns,latitude_deg,longitude_deg"
    (found,) = logreel.stats("a.ulg", "battery_status.voltage_v")
    assert [field.path for field in found.fields or ()] == ["voltage_v"]
    table = logreel.align("a.ulg", ["battery_status.voltage_v", "vehicle_attitude.q[1]"], rate=5)
    assert table.column_names == ["time", "battery_status.voltage_v", "vehicle_attitude.q[1]"]
    logreel.convert("a.ulg", "y.csv", topics=["sensor_gps.latitude_deg"], align="previous", rate=5)
    assert Path("y.csv").read_text().splitlines()[0] == "time_ns,sensor_gps.latitude_deg"
    for function in (logreel.slice, logreel.convert):
        with pytest.raises(
            UsageError, match=r"align, plot, stats, and convert to tables or \.ndjson take fields"
        ):
            function("a.ulg", "x.ulg", topics="sensor_gps.latitude_deg")


def test_topics_with_dots_and_colons_in_their_names_have_fields_in_the_library_too() -> None:
    with logreel.create("d.mcap") as writer:
        for topic in ("imu", "imu.x", "a:b"):
            number = writer.add_channel(topic, logreel.Schema("pkg/B", "ros1msg", "int32 x\nint32 y"))
            writer.write(number, 1, {"x": 1, "y": 2})
    for want, due in [
        ("imu.x", [("imu.x", None)]), ("imu:x", [("imu", ["x"])]), ("imu.x.y", [("imu.x", ["y"])]),
        ("imu.x:x,y", [("imu.x", ["x", "y"])]), ("a:b", [("a:b", None)]), ("a:b:y", [("a:b", ["y"])]),
        ("a:b.y", [("a:b", ["y"])]),
    ]:  # fmt: skip
        found = logreel.stats("d.mcap", want)
        assert [(one.topic, one.fields and [f.path for f in one.fields]) for one in found] == due


def first_values(ch: logreel.Channel, path: str) -> Any:
    """The value of a field in the first row of a table, as plain data."""
    return to_json_values(column_values(ch.to_arrow([path])[1])[0])


@pytest.mark.parametrize("suffix", SAMPLES)
def test_messages_have_the_values_that_tables_have(tmp_path: Path, suffix: str) -> None:
    with logreel.open(sample(tmp_path, suffix)) as log:
        compared = 0
        for ch in log.channels.values():
            try:
                fields = ch.fields
            except DefinitionError:
                continue
            if not len(ch) or not fields:
                continue
            pick = field_picker(ch, fields)
            assert pick is not None
            data = pick(ch[0].decode())
            data = data["records"][0] if data.get("records") else data
            for path in fields:
                column = ch.to_arrow([path])[1]
                if path in data and column.null_count == 0 and "[" not in str(column.type):
                    assert to_json_values(data[path]) == pytest.approx(first_values(ch, path), nan_ok=True), (
                        ch.topic,
                        path,
                    )
                    compared += 1
        assert compared
