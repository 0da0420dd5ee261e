"""Parameters, text and schemas."""

from __future__ import annotations

import struct

import pytest

import logreel
from logreel.errors import UsageError
from logreel.log.scan import Change, Parameter
from logreel.ops.inspect.params import params
from logreel.ops.inspect.schema import schema
from logreel.ops.inspect.text import level_name, level_number, text
from support.builders.sample_logs import short_flight, tiny
from support.samples.ulog.builder import Builder


def test_parameters_can_be_filtered() -> None:
    log = logreel.open(tiny())
    assert [p.name for p in params(log)] == ["GAIN", "MODE"]
    assert [p.name for p in params(log, changed=True)] == ["MODE"]
    assert [p.name for p in params(log, defaults=True)] == ["GAIN", "MODE"]
    many = logreel.open(short_flight())
    assert len(params(many)) == len(many.parameters)
    assert all(p.changes for p in params(many, changed=True))
    assert all(p.value not in p.defaults.values() for p in params(many, defaults=True))


def test_parameters_are_chosen_by_names_and_patterns() -> None:
    log = logreel.open(short_flight())
    every = [p.name for p in params(log)]
    assert [p.name for p in params(log, "BAT*")] == [name for name in every if name.startswith("BAT")] != []
    assert [p.name for p in params(log, ["re:MC_.*_P", every[0]])] == sorted(
        {every[0], *(name for name in every if name.startswith("MC_") and name.endswith("_P"))}
    )
    (moved, *_) = params(log, changed=True)
    assert params(log, [moved.name, every[0]], changed=True) == [moved]
    with pytest.raises(logreel.NotFoundError, match=f"no parameter '{every[0]}x'; nearest: .*{every[0]}"):
        params(log, f"{every[0]}x")
    with pytest.raises(logreel.UsageError, match="not a regular expression"):
        params(log, "re:(")


def test_a_value_that_is_logged_again_is_no_change() -> None:
    nan = float("nan")
    same = Parameter("SAME", "int32_t", 3, (Change(1, 3), Change(2, 3)))
    moved = Parameter("MOVED", "int32_t", 3, (Change(1, 3), Change(2, 4), Change(3, 4), Change(4, 3)))
    late = Parameter("LATE", "int32_t", None, (Change(1, 3), Change(2, 3)))
    empty = Parameter("EMPTY", "float", nan, (Change(1, nan), Change(2, 1.0)))
    assert [len(p.real_changes) for p in (same, moved, late, empty)] == [0, 2, 1, 1]
    assert [c.time for c in moved.real_changes] == [2, 4]
    assert [p.final for p in (same, moved, late)] == [3, 3, 3]


def test_changed_shows_only_real_changes_of_a_log() -> None:
    out = Builder(start_us=1_000_000).flags()
    out.parameter("SAME", 3).parameter("MOVED", 3).format("odd:uint64_t timestamp;float value;").subscribe(
        "odd", 0
    )
    for name, value in (("SAME", 3), ("MOVED", 3), ("MOVED", 5)):
        out.data(0, struct.pack("<Qf", 1_000_100, 0.5)).parameter(name, value)
    log = logreel.open(out.bytes())
    assert [len(p.changes) for p in params(log)] == [2, 1]
    assert [(p.name, p.value, p.final) for p in params(log, changed=True)] == [("MOVED", 3, 5)]


def test_text_can_be_filtered() -> None:
    log = logreel.open(tiny())
    assert [line.text for line in text(log)] == ["running", "check the belt", ""]
    assert [line.text for line in text(log, 4)] == ["check the belt", ""]
    assert [line.text for line in text(log, 4, end=log.text[-1].time)] == ["check the belt"]


def test_levels_have_names() -> None:
    assert [level_number(name) for name in ("warning", "WARN", "err", "0", "7", "deb")] == [4, 4, 3, 0, 7, 7]
    assert [level_name(n) for n in (None, 3, 99)] == ["", "error", "99"]
    for name in ("", "e", "loud", "8"):
        with pytest.raises(UsageError, match="no level"):
            level_number(name)


def test_a_schema_has_its_text_and_fields() -> None:
    found = schema(logreel.open(tiny())["pair"])
    assert found.text.startswith("pair:uint64_t timestamp;")
    assert found.fields is not None
    assert [(f.path, f.type) for f in found.fields] == [
        ("timestamp", "uint64"), ("flag", "uint8"), ("cells[2].volt", "float32"), ("cells[2].id", "uint8"),
    ]  # fmt: skip
    (field,) = schema(logreel.open(tiny())["~dropout"]).fields or ()
    assert field.unit == "ms"
