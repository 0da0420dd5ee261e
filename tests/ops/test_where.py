"""Messages that meet a condition in SQL: ``where=`` of slice and convert, against naive selections."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import logreel
from logreel.errors import NotFoundError, UsageError
from logreel.ops.query.where import _FUNCTIONS, FUNCTIONS
from support.builders.contents import SAMPLES, content, sample
from support.samples.ulog.builder import flight

pytest.importorskip("duckdb")

#: Format, condition, topic, and the same condition on a decoded message.
CASES: list[tuple[str, str, str, Any]] = [
    (".ulg", "battery_status.current_a > 15", "battery_status", lambda m: m["current_a"] > 15),
    (".ulg", 'vehicle_attitude."q[0]" < 0.9 AND vehicle_attitude.timestamp > 75000000', "vehicle_attitude",
     lambda m: m["q"][0] < 0.9 and m["timestamp"] > 75000000),
    (".bag", '"/imu".header.seq % 3 = 1', "/imu", lambda m: m["header"]["seq"] % 3 == 1),
    (".bag", "joint_states.position[1] > 0 or len(joint_states.name) = 0", "/joint_states",
     lambda m: m["position"][0] > 0 or not m["name"]),
    (".bag", "tf.transforms IS NOT NULL AND list_contains(tf.transforms.child_frame_id, 'odom')", "/tf",
     lambda m: any(one["child_frame_id"] == "odom" for one in m["transforms"])),
    (".mcap", "motor.state = 'swing' AND motor.leg IN (1, 3)", "/motor",
     lambda m: m["state"] == "swing" and m["leg"] in (1, 3)),
    (".mcap", "status.pose.y BETWEEN 0.5 AND 4 AND status.mode LIKE 'wa%' AND status.motors[2] > 1.6", "/status",
     lambda m: 0.5 <= m["pose"]["y"] <= 4 and m["mode"][:2] == "wa" and m["motors"][1] > 1.6),
    (".mcap", "foot.down AND NOT (foot.force < 20) AND len(foot.points) = 1", "/foot",
     lambda m: m["down"] and m["force"] >= 20 and len(m["points"]) == 1),
    (".bddf", 'patrol_speed."value[0]" > 50 AND patrol_speed.sample = 0', "patrol/speed",
     lambda m: m["records"][0]["value"][0] > 50),
    (".vel", "GPSDataM.second >= 51", "GPSDataM", lambda m: m["second"] >= 51),
    (".ulg", "\"~text\".level <= 5", "~text", lambda m: m["level"] <= 5),
]  # fmt: skip


@pytest.mark.parametrize(("suffix", "where", "topic", "meets"), CASES)
def test_a_slice_has_the_messages_that_a_loop_selects(
    tmp_path: Path, suffix: str, where: str, topic: str, meets: Any
) -> None:
    source, out = sample(tmp_path, suffix), tmp_path / f"out{suffix}"
    done = logreel.slice(source, out, where=where)
    with logreel.open(source) as log, logreel.open(out) as new:
        due = [(m.time, bytes(m.data)) for m in log.messages([topic], order="file") if meets(m.decode())]
        assert 0 < len(due) < len(log[topic])
        assert [(m.time, bytes(m.data)) for m in new.messages([topic], order="file")] == due
        if topic[:1] != "~":
            assert done.messages == len(due)
            assert [ch for ch in new if not ch.startswith("~")] == [topic]
            assert new.start == due[0][0]
        assert "no message meets the condition" not in done.notes


def numeric_field(ch: logreel.Channel) -> str | None:
    """The first field with numbers of more than one value, if messages have one record."""
    try:
        paths = ch.fields
    except logreel.DefinitionError:
        return None
    for path in paths:
        column = ch.to_arrow([path])
        if column.num_rows != len(ch):
            return None
        values = ch[path]
        # Times are compared with times.
        is_time = pa.types.is_temporal(column.schema.field(column.num_columns - 1).type)
        if not is_time and values.ndim == 1 and values.dtype.kind in "iuf" and len(set(values.tolist())) > 1:
            return path
    return None


@pytest.mark.parametrize("suffix", SAMPLES)
def test_slices_of_all_formats_keep_the_bytes_of_matching_messages(tmp_path: Path, suffix: str) -> None:
    source, tried = sample(tmp_path, suffix), 0
    with logreel.open(source) as log:
        for ch in log.match(None):
            path = numeric_field(ch)
            if path is None or len(ch) > 5000:
                continue
            values = ch[path]
            bound = sorted(values.tolist())[len(values) // 2]
            quoted = '"' + ch.topic.replace('"', '""') + f'"."{path}"'
            out = tmp_path / f"out{suffix}"
            logreel.slice(log, out, where=f"{quoted} >= {bound!r}", force=True)
            due = [
                (m.time, bytes(m.data))
                for m, value in zip(log.messages([ch.topic], order="file"), values, strict=True)
                if value >= bound
            ]
            with logreel.open(out) as new:
                assert content(new, "file")[ch.topic][1] == due
                assert not new.problems
            tried += 1
            if tried == 4:
                break
    assert tried


def test_a_message_with_many_records_matches_if_one_record_does(tmp_path: Path) -> None:
    source, out = sample(tmp_path, ".rec"), tmp_path / "out.rec"
    with logreel.open(source) as log:
        ids = log["position"]["id"]
        wanted = int(ids[0])
        logreel.slice(log, out, where=f"position.id = {wanted}")
        due = [
            m.time for m in log.messages(["position"])
            if any(one["id"] == wanted for one in m.decode()["records"])
        ]  # fmt: skip
    with logreel.open(out) as new:
        assert new["position"].times.tolist() == due
        assert due


def test_null_is_no_match_and_nan_is_greater_than_numbers_as_in_sql(tmp_path: Path) -> None:
    source, out = tmp_path / "a.mcap", tmp_path / "b.mcap"
    with logreel.create(source) as writer:
        schema = logreel.Schema("t", "ros1msg", "float64 x\nint32[] items")
        number = writer.add_channel("/x", schema)
        for n, x in enumerate([1.0, np.nan, 3.0, -np.inf]):
            writer.write(number, n, {"x": x, "items": [7] * (n % 2)})
    logreel.slice(source, out, where="x > 2", force=True)
    assert logreel.open(out)["/x"].times.tolist() == [1, 2]
    logreel.slice(source, out, where="x > 2 AND NOT isnan(x)", force=True)
    assert logreel.open(out)["/x"].times.tolist() == [2]
    # The first item of an empty list is NULL; NOT NULL is NULL, too.
    logreel.slice(source, out, where="NOT (items[1] = 8)", force=True)
    assert logreel.open(out)["/x"].times.tolist() == [1, 3]


def test_bare_names_test_all_channels_that_have_the_fields(tmp_path: Path) -> None:
    source, out = sample(tmp_path, ".ulg"), tmp_path / "out.ulg"
    done = logreel.slice(source, out, where="x > 0.05")
    with logreel.open(source) as log, logreel.open(out) as new:
        having = [ch.topic for ch in log.match(None) if "x" in ch.fields]
        assert [topic for topic in new if topic[:1] != "~"] == having
        for topic in having:
            assert new[topic]["x"].tolist() == [x for x in log[topic]["x"].tolist() if x > np.float32(0.05)]
    assert "without the fields of the condition" in done.notes[0]
    only = logreel.slice(source, out, topics="sensor_accel*", where="x > 0.05", force=True)
    assert not only.notes
    assert {one.topic for one in only.channels} < {*having}


def test_all_conditions_on_a_channel_have_to_hold(tmp_path: Path) -> None:
    source, out = sample(tmp_path, ".ulg"), tmp_path / "out.ulg"
    where = ["battery_status.current_a > 15", 'vehicle_attitude."q[0]" > 0', "battery_status.voltage_v < 16"]
    logreel.slice(source, out, where=where)
    with logreel.open(source) as log, logreel.open(out) as new:
        data = log["battery_status"]
        due = data.times[(data["current_a"] > 15) & (data["voltage_v"] < 16)]
        assert new["battery_status"].times.tolist() == due.tolist()
        assert {topic for topic in new if topic[:1] != "~"} == {"battery_status", "vehicle_attitude"}


def test_the_time_of_messages_is_usable_and_is_tested_before_fields_are_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from logreel.log.tables import TableReader

    read: list[int] = []
    batches = TableReader.batches

    def watched(self: TableReader, picked: Any, *args: Any) -> Any:
        read.append(picked.stop - picked.start if isinstance(picked, slice) else len(picked))
        return batches(self, picked, *args)

    monkeypatch.setattr(TableReader, "batches", watched)
    source, out = sample(tmp_path, ".ulg"), tmp_path / "out.ulg"
    with logreel.open(source) as log:
        times = log["vehicle_attitude"].times
        middle = int(times[len(times) // 2])
        logreel.slice(log, out, where=f"time_ns < {middle} AND vehicle_attitude.timestamp > 0")
        assert read == [len(times) // 2]
        assert logreel.open(out)["vehicle_attitude"].times.tolist() == times[: len(times) // 2].tolist()
        read.clear()
        logreel.slice(log, out, where=f"time > INTERVAL {middle // 1000} MICROSECONDS", force=True)
        assert read == []
        assert all(m.time > middle for m in logreel.open(out).messages())


def test_count_and_interval_are_those_of_matching_messages(tmp_path: Path) -> None:
    source, out = sample(tmp_path, ".ulg"), tmp_path / "out.ulg"
    with logreel.open(source) as log:
        data = log["battery_status"]
        due = data.times[data["current_a"] > 15]
        logreel.slice(log, out, where="battery_status.current_a > 15", start=int(due[1]), count=2)
    assert logreel.open(out)["battery_status"].times.tolist() == due[1:3].tolist()


@pytest.mark.parametrize("name", ["x.csv", "x.ndjson", "x.parquet", "x.mcap", "x.ulg"])
def test_conversions_have_only_matching_messages(tmp_path: Path, name: str) -> None:
    source, out = sample(tmp_path, ".ulg"), tmp_path / name
    done = logreel.convert(source, out, topics=["battery_status"], where="current_a > 15")
    with logreel.open(source) as log:
        due = log["battery_status"]["current_a"]
        assert done.rows == int((due > 15).sum()) > 0
        assert done.rows < len(due)


def test_aligned_tables_have_only_matching_messages(tmp_path: Path) -> None:
    source, out = sample(tmp_path, ".ulg"), tmp_path / "x.csv"
    logreel.convert(
        source, out, topics={"battery_status": ["current_a"], "vehicle_attitude": ["timestamp"]}, align="previous",
        rate=20, where=["battery_status.current_a > 15", "vehicle_attitude.timestamp > 0"],
    )  # fmt: skip
    rows = [line.split(",")[1:] for line in out.read_text().splitlines()]
    column = [float(row[rows[0].index("battery_status.current_a")] or "nan") for row in rows[1:]]
    assert any(value == value for value in column)
    assert all(value > 15 for value in column if value == value)


def test_several_files_as_one_log_have_the_matches_of_each(tmp_path: Path) -> None:
    source = tmp_path / "a.ulg"
    source.write_bytes(flight(4.0))
    parts = [one.path for one in logreel.split(source, tmp_path / "parts", every=10**9)]
    one, many = tmp_path / "one.ulg", tmp_path / "many.ulg"
    where = 'vehicle_attitude."q[1]" > 0'
    logreel.slice(source, one, where=where)
    logreel.slice(parts, many, where=where)
    assert content(one)["vehicle_attitude"] == content(many)["vehicle_attitude"]
    assert 0 < len(logreel.open(one)["vehicle_attitude"]) < len(logreel.open(source)["vehicle_attitude"])


@pytest.mark.parametrize(
    ("where", "error", "text"),
    [
        ("battery_status.voltge_v > 1", NotFoundError, "no field 'voltge_v'; nearest: voltage_v"),
        ("voltge_v > 1", NotFoundError, "no field 'voltge_v'; nearest: voltage_v"),
        ("batery_status.voltage_v > 1", NotFoundError, "nearest: battery_status.voltage_v"),
        ("voltage_v > 1 AND latitude_deg > 1", UsageError, "no channel has all fields of the condition: voltage_v "),
        ("battery_status.voltage_v > 1 AND vehicle_attitude.timestamp > 1", UsageError, "write one for each"),
        ("voltage_v >", UsageError, "the condition cannot be read"),
        ("voltage_v > 1; DROP TABLE x", UsageError, "the condition cannot be read"),
        ("voltage_v > (SELECT 1)", UsageError, "must not have a subquery"),
        ("voltage_v > 1) AS a, (2", UsageError, "one value for each row, not a query"),
        ("true) FROM read_csv('/etc/passwd') WHERE (true", UsageError, "one value for each row, not a query"),
        ("voltage_v > getenv('HOME')", UsageError, "must not use 'getenv'"),
        ("voltage_v > avg(voltage_v)", UsageError, "must not use 'avg'"),
        ("voltage_v > lag(voltage_v) OVER ()", UsageError, "must not have a window"),
        ("repeat('x', 1000000000) = 'y'", UsageError, "must not use 'repeat'"),
        ("q[0] > 1", UsageError, 'SQL counts items from 1: write q[1], or with a path in quotes "q[0]"'),
        ("voltage_v > 'high'", UsageError, "cannot be applied to 'battery_status': Conversion Error"),
        ("*", UsageError, "must not have a star"),
        (" ", UsageError, "the condition"),
        ("/imu.x > 3", UsageError, 'write topics with a slash in double quotes: "/imu"'),
        ("voltage_v > 1 AND /imu/raw.x > 3", UsageError, 'in double quotes: "/imu/raw"'),
        ("(" * 20_000 + "1" + ")" * 20_000, UsageError, "the condition"),
    ],
)  # fmt: skip
def test_wrong_conditions_are_usage_errors_that_say_what_exists(
    tmp_path: Path, where: str, error: type[Exception], text: str
) -> None:
    with pytest.raises(error) as raised:
        logreel.slice(sample(tmp_path, ".ulg"), tmp_path / "out.ulg", where=where)
    assert text in str(raised.value)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(("out", "."))] == []


def test_a_condition_on_a_channel_that_is_not_chosen_is_an_error(tmp_path: Path) -> None:
    source = sample(tmp_path, ".ulg")
    with pytest.raises(UsageError, match="about 'battery_status', which is not among the chosen channels"):
        logreel.slice(
            source, tmp_path / "x.ulg", topics="vehicle_attitude", where="battery_status.voltage_v > 1"
        )


def test_a_name_that_may_be_a_channel_or_a_field_is_an_error(tmp_path: Path) -> None:
    source, out = tmp_path / "a.mcap", tmp_path / "b.mcap"
    with logreel.create(source) as writer:
        inner = logreel.Schema("pkg/A", "ros1msg", "Point pose\n" + "=" * 80 + "\nMSG: pkg/Point\nfloat64 x")
        a = writer.add_channel("/a", inner)
        b = writer.add_channel("/pose", logreel.Schema("pkg/B", "ros1msg", "float64 x"))
        for n in range(4):
            writer.write(a, n, {"pose": {"x": n}})
            writer.write(b, n, {"x": -n})
    with pytest.raises(
        UsageError, match=r"pose\.x may be 'x' of '/pose', or a field of '/a'; choose the channel"
    ):
        logreel.slice(source, out, where="pose.x > 1")
    logreel.slice(source, out, where="pose.x > 1", topics="/a")
    assert logreel.open(out)["/a"].times.tolist() == [2, 3]
    logreel.slice(source, out, where='"/pose".x < -1', force=True)
    assert logreel.open(out)["/pose"].times.tolist() == [2, 3]


def test_topics_with_dots_and_colons_in_their_names_can_be_named(tmp_path: Path) -> None:
    source, out = tmp_path / "a.mcap", tmp_path / "b.mcap"
    with logreel.create(source) as writer:
        for topic in ("imu.raw", "a:b"):
            number = writer.add_channel(topic, logreel.Schema("pkg/B", "ros1msg", "float64 x"))
            for n in range(4):
                writer.write(number, n, {"x": n})
    for topic in ("imu.raw", '"imu.raw"', "imu_raw", '"a:b"', "a_b"):
        done = logreel.slice(source, out, where=f"{topic}.x >= 2", force=True)
        assert [(one.topic, one.messages) for one in done.channels] == [
            ("a:b" if topic.strip('"')[0] == "a" else "imu.raw", 2)
        ]


def test_state_in_force_is_kept_only_if_it_meets_the_condition(tmp_path: Path) -> None:
    source, out = sample(tmp_path, ".bag"), tmp_path / "out.bag"
    with logreel.open(source) as log:
        start = int(log.start or 0) + 500_000_000
        assert log["/map"].times.tolist() < [start]
        for bound, due in (("> 0", 1), ("< 0", 0)):
            where = f'"/map".info.width {bound}'
            logreel.slice(log, out, topics="/map", start=start, keep_latched=True, where=where, force=True)
            assert len(logreel.open(out).get("/map", ())) == due


def test_duckdb_has_every_function_that_may_be_used() -> None:
    import duckdb

    known = {name for (name,) in duckdb.sql("SELECT function_name FROM duckdb_functions()").fetchall()}
    assert {name for name in FUNCTIONS | _FUNCTIONS if name.isidentifier()} <= known
