"""Columns of single fields of protobuf messages: those of all fields, and no other field is converted."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

import logreel
from logreel.schemas.protobuf import layouts
from support.samples.ulog.builder import flight


def test_only_the_fields_asked_for_are_converted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "flight.mcap"
    logreel.convert(flight(5), path)
    converted = list[str]()
    own = layouts.ProtoColumns._tables_of

    def tables_of(reader: layouts.ProtoColumns, names: Collection[str]) -> object:
        converted.extend(names)
        return own(reader, names)

    monkeypatch.setattr(layouts.ProtoColumns, "_tables_of", tables_of)
    compared = 0
    with logreel.open(path) as log:
        for ch in log.channels.values():
            if ch.schema.encoding == "protobuf" and len(ch):
                every = ch.to_arrow()
                for name in every.column_names[1:]:
                    converted.clear()
                    assert repr(ch.to_arrow([name])[name].to_pylist()) == repr(every[name].to_pylist())
                    assert set(converted) == {name.partition(".")[0]}
                    compared += 1
    assert compared > 3
