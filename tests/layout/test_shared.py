"""Layouts that logs of one process share, and the parts that a Layout keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

import logreel
from logreel.layout import layout as layouts
from logreel.layout.layout import Layout, shared
from logreel.layout.nodes import Field, Scalar, Struct
from support.samples.ulog.builder import flight


def _layout(name: str) -> Layout:
    return Layout(Struct((Field(name, Scalar("int32")),)), name)


def test_logs_with_the_same_definitions_share_their_layouts(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"{number}.ulg").write_bytes(flight(1.0, number))
    with logreel.open(tmp_path / "1.ulg") as one, logreel.open(tmp_path / "2.ulg") as other:
        for topic in one.channels:
            if topic in other.channels and one[topic].schema.text == other[topic].schema.text:
                assert one[topic].layout == other[topic].layout
        assert one["vehicle_attitude"].layout is other["vehicle_attitude"].layout


def test_other_definitions_are_not_shared() -> None:
    assert shared(("test", "a"), lambda: _layout("a")) is shared(("test", "a"), lambda: _layout("b"))
    assert shared(("test", "b"), lambda: _layout("b")).root != _layout("a").root


def test_the_layout_that_was_not_used_for_longest_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layouts, "MAX_SHARED", 2)
    monkeypatch.setattr(layouts, "_shared", {})
    first, second = (shared(("test", name), lambda name=name: _layout(name)) for name in "ab")
    assert shared(("test", "a"), lambda: _layout("a")) is first
    shared(("test", "c"), lambda: _layout("c"))
    assert shared(("test", "b"), lambda: _layout("b")) is not second


def test_large_layouts_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layouts, "MAX_SHARED_NODES", 0)
    assert shared(("test", "large"), lambda: _layout("x")) is not shared(
        ("test", "large"), lambda: _layout("x")
    )


def test_a_layout_keeps_its_parts_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    layout = Layout(Struct(tuple(Field(name, Scalar("int32")) for name in "abc")))
    assert layout.project(["a"]) is layout.project(iter(["a"]))
    assert (
        layout.project(["a"]) == Layout(Struct((Field("a", Scalar("int32")),)))
        or layout.project(["a"]).size == 12
    )
    monkeypatch.setattr(layouts, "MAX_PARTS", 1)
    assert layout.project(["b"]) is not layout.project(["b"])
