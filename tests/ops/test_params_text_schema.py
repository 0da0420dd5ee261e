"""Parameters, text and schemas."""

from __future__ import annotations

import pytest

import logreel
from logreel.errors import UsageError
from logreel.ops.inspect.params import params
from logreel.ops.inspect.schema import schema
from logreel.ops.inspect.text import level_name, level_number, text
from support.builders.sample_logs import short_flight, tiny


def test_parameters_can_be_filtered() -> None:
    log = logreel.open(tiny())
    assert [p.name for p in params(log)] == ["GAIN", "MODE"]
    assert [p.name for p in params(log, changed=True)] == ["MODE"]
    assert [p.name for p in params(log, defaults=True)] == ["GAIN", "MODE"]
    many = logreel.open(short_flight())
    assert len(params(many)) == len(many.parameters)
    assert all(p.changes for p in params(many, changed=True))
    assert all(p.value not in p.defaults.values() for p in params(many, defaults=True))


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
