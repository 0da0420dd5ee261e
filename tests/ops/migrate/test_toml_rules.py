"""Rules in TOML: fields, types, units and values, for bags, ULogs and Koblenz logs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import logreel
from logreel.ops.migrate import Migrated
from support.builders.rule_files import HEADER, joined, write_bag
from support.formats import builtin_formats, sample_log

OLD = (
    "# state of a motor\nint32 rpm  # turns\nfloat64 temperature\nstring mode\nint16[] raw\nfloat64 unused\n"
)
ROWS = [
    {"rpm": 100 * n, "temperature": 273.15 + n, "mode": ["off", "on"][n % 2], "raw": [n, 2], "unused": 1}
    for n in range(6)
]


def rules(folder: Path, text: str) -> Path:
    path = folder / "rules.toml"
    path.write_text(text)
    return path


def bag(folder: Path, old: str = OLD, rows: list[dict] = ROWS, kind: str = "pkg/Motor") -> Path:
    return write_bag(
        folder / "in.bag", {"/m": (kind, old, rows), "/other": ("pkg/Other", "int8 x\n", [{}] * 4)}
    )


def migrated(source: Path, text: str, **options: bool) -> tuple[logreel.Log, Migrated]:
    out = source.parent / f"out{source.suffix}"
    done = logreel.migrate(source, out, rules=rules(source.parent, text), **options)
    return logreel.open(out), done


def test_fields_get_other_names_types_units_and_values(tmp_path: Path) -> None:
    source = bag(tmp_path)
    text = """
[[rule]]
type = "pkg/Motor"
to = "new_pkg/Motor"
remove = ["unused"]
rename = { raw = "samples" }
[rule.fields]
speed = { from = "rpm", type = "float32", scale = 0.5, offset = 1, unit = "rad/s" }
temperature = { scale = 1, offset = -273.15, type = "int16" }
mode = { type = "uint8", values = { off = 0, on = 7 } }
second = { from = "raw[1]", type = "int64" }
frame = { type = "string", value = "motor é" }
gains = { type = "float64[2]", value = [1, 2.5] }
"""
    log, done = migrated(source, text)
    assert done.skipped == ()
    ch = log["/m"]
    assert ch.schema.name == "new_pkg/Motor"
    assert ch.schema.text == (
        "# state of a motor\nfloat32 speed  # [rad/s]\nint16 temperature\nuint8 mode\nint16[] samples\n"
        "int64 second\nstring frame\nfloat64[2] gains\n"
    )
    assert [m.decode() for m in ch] == [
        {
            "speed": 50 * n + 1,
            "temperature": n,
            "mode": 7 * (n % 2),
            "samples": [n, 2],
            "second": 2,
            "frame": "motor é",
            "gains": [1, 2.5],
        }
        for n in range(6)
    ]
    before = logreel.open(source)
    assert [(m.channel.topic, m.time) for m in log.messages(order="file")] == [
        (m.channel.topic, m.time) for m in before.messages(order="file")
    ]
    assert [bytes(m.data) for m in log["/other"]] == [bytes(m.data) for m in before["/other"]]


def test_messages_with_values_out_of_range_are_left_out_and_told_unless_clamped(tmp_path: Path) -> None:
    source = bag(tmp_path)
    text = '[[rule]]\ntype = "pkg/Motor"\n[rule.fields]\nrpm = { type = "int8"OVER }\n'
    log, done = migrated(source, text.replace("OVER", ""))
    assert done.skipped == ("4 messages of '/m' were left out: rpm: a value does not fit int8",)
    assert log["/m"]["rpm"].tolist() == [0, 100]
    assert done.changes[0].messages == 2
    log, done = migrated(source, text.replace("OVER", ', overflow = "clamp"'), force=True)
    assert done.skipped == ()
    assert log["/m"]["rpm"].tolist() == [0, 100, 127, 127, 127, 127]


def test_fields_move_to_nested_messages_by_a_definition(tmp_path: Path) -> None:
    old = joined(
        "Header header\nfloat64 x\nfloat64 y\nPart[] parts\n", std_msgs__Header=HEADER, pkg__Part="int32 a\n"
    )
    rows = [{"x": n, "y": -n, "header": {"seq": n}, "parts": [{"a": k} for k in range(n)]} for n in range(3)]
    new = joined(
        "Header header\nPose2D pose\nPart[] parts\n",
        std_msgs__Header=HEADER,
        pkg__Pose2D="float32 x\nfloat32 y\nfloat32 theta\n",
        pkg__Part="float64 a\nuint32 b\n",
    )
    text = f"""
[[rule]]
type = "pkg/Place"
definition = '''{new}'''
[rule.fields]
"pose.x" = "x"
"pose.y" = {{ from = "y", scale = 2 }}
"pose.theta" = {{ value = 0.5 }}
"parts.a" = {{ scale = 0.1 }}
"parts.b" = "header.seq"
"""
    log, _ = migrated(bag(tmp_path, old, rows, "pkg/Place"), text)
    assert log["/m"][2].decode() == {
        "header": {"seq": 2, "stamp": 0, "frame_id": ""},
        "pose": {"x": 2.0, "y": -4.0, "theta": 0.5},
        "parts": [{"a": 0.0, "b": 2}, {"a": 0.1, "b": 2}],
    }


def test_another_unit_in_the_same_fields_is_applied(tmp_path: Path) -> None:
    text = '[[rule]]\ntype = "pkg/Motor"\n[rule.fields]\ntemperature = { offset = -273.15 }\n'
    log, _ = migrated(bag(tmp_path), text)
    assert log["/m"]["temperature"].round(6).tolist() == [0, 1, 2, 3, 4, 5]


def test_rules_of_one_type_apply_one_after_the_other(tmp_path: Path) -> None:
    text = """
[[rule]]
type = "pkg/Motor"
rename = { rpm = "turns" }
[[rule]]
type = "pkg/Motor"
to = "pkg/Engine"
[rule.fields]
turns = { scale = 3 }
[[rule]]
type = "pkg/Engine"
remove = ["unused"]
"""
    log, done = migrated(bag(tmp_path), text)
    assert log["/m"]["turns"].tolist() == [300 * n for n in range(6)]
    assert "unused" not in log["/m"].fields
    assert [one.rpartition(":")[2] for one in done.changes[0].rules] == ["rule 1", "rule 2", "rule 3"]


def test_topics_of_a_ulog_are_renamed_and_their_fields_scaled(tmp_path: Path) -> None:
    source = tmp_path / "in.ulg"
    source.write_bytes(sample_log("ulog"))
    before = logreel.open(source)
    fields = before["sensor_accel"].fields
    text = """
[[rule]]
type = "sensor_accel"
to = "sensor_accel_g"
remove = ["temperature"]
[rule.fields]
x = { scale = 0.10197162129779283, type = "float64", unit = "g" }
state = { type = "uint8", value = 3 }
"""
    log, done = migrated(source, text)
    assert done.skipped == ()
    assert not log.problems
    assert "sensor_accel" not in log
    for old, new in (("sensor_accel", "sensor_accel_g"), ("sensor_accel[1]", "sensor_accel_g[1]")):
        np.testing.assert_allclose(log[new]["x"], before[old]["x"].astype(float) * 0.10197162129779283)
        assert log[new]["x"].dtype == np.float64
        assert log[new].times.tolist() == before[old].times.tolist()
        assert log[new]["timestamp"].tolist() == before[old]["timestamp"].tolist()
        assert set(log[new]["state"].tolist()) == {3}
        assert set(log[new].fields) == {*fields, "state"} - {"temperature"}
    others = [ch.topic for ch in before.channels.values() if ch.schema.name != "sensor_accel"]
    for topic in others:
        assert [bytes(m.data) for m in log[topic]] == [bytes(m.data) for m in before[topic]], topic
    assert log.metadata == before.metadata
    pyulog = pytest.importorskip("pyulog")
    assert {data.name for data in pyulog.ULog(str(tmp_path / "out.ulg")).data_list} >= {"sensor_accel_g"}


def test_fields_in_arrays_of_structs_of_a_ulog_change_in_each_item(tmp_path: Path) -> None:
    source = tmp_path / "in.ulg"
    source.write_bytes(sample_log("ulog"))
    before = logreel.open(source)["esc_status"]
    text = '[[rule]]\ntype = "esc_status"\n[rule.fields]\n"esc.esc_rpm" = { scale = 0.5, type = "float32" }\n'
    log, done = migrated(source, text)
    assert done.skipped == ()
    for n in range(8):
        assert log["esc_status"][f"esc[{n}].esc_rpm"].tolist() == (before[f"esc[{n}].esc_rpm"] / 2).tolist()
        assert log["esc_status"][f"esc[{n}].esc_power"].tolist() == before[f"esc[{n}].esc_power"].tolist()


def test_values_of_a_koblenz_log_get_other_units(tmp_path: Path) -> None:
    fmt = builtin_formats()["koblenz"]
    source = tmp_path / f"in{fmt.suffixes[0]}"
    source.write_bytes(sample_log(fmt.name))
    before = logreel.open(source)
    text = '[[rule]]\ntype = "OBDDataM"\nversion = 100\n[rule.fields]\nspeed = { scale = 1.609344 }\n'
    log, done = migrated(source, text)
    assert done.skipped == ()
    assert log["OBDDataM"]["speed"].tolist() == np.round(before["OBDDataM"]["speed"] * 1.609344).tolist()
    assert log["OBDDataM"].times.tolist() == before["OBDDataM"].times.tolist()
    for ch in before.channels.values():
        if ch.topic != "OBDDataM":
            assert [bytes(m.data) for m in log[ch.topic]] == [bytes(m.data) for m in ch], ch.topic


def test_messages_of_an_undescribed_version_become_those_of_a_described_one(tmp_path: Path) -> None:
    source = tmp_path / "in.log"
    with logreel.create(source, format="koblenz") as writer:
        schema = logreel.Schema("OBDDataM", "koblenz")
        number = writer.add_channel("OBDDataM@99", schema, {"version": 99})
        for n in range(4):
            writer.write(number, n * 10**9, np.array([n, 1000 + n], "<i2").tobytes())
    assert logreel.open(source)["OBDDataM@99"].fields == ["payload"]
    text = """
[[rule]]
type = "OBDDataM"
version = 99
to_version = 100
topic = "OBDDataM"
old_definition = "int16 speed\\nint16 rpm"
definition = '''
int32 speed
int32 rpm
float32 unused1
int32 unused2
int32 unused3
float32 throttle
int32 unused4
'''
[rule.fields]
speed = { type = "int32" }
rpm = { type = "int32" }
unused1 = { value = 0.0 }
unused2 = { value = 0 }
unused3 = { value = 0 }
throttle = { value = 0.0 }
unused4 = { value = 0 }
"""
    log, done = migrated(source, text)
    assert done.skipped == ()
    assert log["OBDDataM"]["rpm"].tolist() == [1000, 1001, 1002, 1003]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[[rule]]\n", "needs type"),
        ('[[rule]]\ntype = "a/B"\nfield = 3\n', "there is no key 'field'"),
        ('[[rule]]\ntype = "a/B"\n[rule.fields]\nx = { form = "y" }\n', "needs some of"),
        ('[[rule]]\ntype = "a/B"\n[rule.fields]\n"x..y" = "y"\n', "is no path"),
        ('[[rule]]\ntype = "a/B"\nvalid = false\n', "is not complete"),
        ('[[rule]]\ntype = "pkg/Motor"\nmd5 = "1"\n', "not 32 digits"),
        ("rule = 3\n", "has a table"),
        ("[[rule]\n", "no TOML"),
        (
            '[[rule]]\ntype = "pkg/Motor"\n[rule.fields]\nnew = { value = 3 }\n',
            "new is new: the rule needs its type",
        ),
        ('[[rule]]\ntype = "pkg/Motor"\n[rule.fields]\nmode = { scale = 2 }\n', "a text has no scale"),
        (
            '[[rule]]\ntype = "pkg/Motor"\n[rule.fields]\nn = { type = "int8", value = 300 }\n',
            "does not fit int8",
        ),
        ('[[rule]]\ntype = "pkg/Motor"\ndefinition = "int32 rpm"\n', "without a place in the new type"),
        (
            '[[rule]]\ntype = "pkg/Motor"\nto = "b/C"\n[[rule]]\ntype = "pkg/Motor"\nto = "d/E"\n',
            "both rename",
        ),
    ],
)
def test_rules_that_cannot_be_used_are_refused_with_their_place(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(logreel.UsageError, match=why) as caught:
        migrated(bag(tmp_path), text)
    assert "rule" in str(caught.value)
    assert not (tmp_path / "out.bag").exists()


def test_rules_that_do_not_apply_are_told(tmp_path: Path) -> None:
    text = '[[rule]]\ntype = "pkg/Motor"\nrename = { absent = "x" }\n[[rule]]\ntype = "pkg/None"\nremove = ["x"]\n'
    log, done = migrated(bag(tmp_path), text)
    assert [m.decode() for m in log["/m"]] == ROWS
    assert any("do not apply to this version" in note for note in done.notes)
    assert any("rule 2" in note for note in done.notes)


def test_a_log_without_need_of_migration_is_copied_to_the_byte(tmp_path: Path) -> None:
    source = bag(tmp_path)
    migrated(source, '[[rule]]\ntype = "pkg/None"\nremove = ["x"]\n')
    assert (tmp_path / "out.bag").read_bytes() == source.read_bytes()
