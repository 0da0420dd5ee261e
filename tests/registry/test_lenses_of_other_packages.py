"""Lenses, outputs and definition languages of other packages: added by entry point, never able to break logreel."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import metadata
from typing import Any

import pytest

import logreel
from logreel.errors import UsageError
from logreel.layout.nodes import Struct
from logreel.lenses import LENSES, lenses
from logreel.lenses.base import LensFinder, Scaled
from logreel.lenses.position import Position
from logreel.outputs.registry import OUTPUTS, Output, Shape, find_output
from logreel.registry.registry import lazy
from logreel.schemas.languages import LANGUAGES, Language, language_named, language_of, message_encoding
from support.samples.ulog.builder import flight


class Point:
    """An entry point like those of importlib.metadata."""

    def __init__(self, name: str, entry: Any) -> None:
        self.name, self.value, self.load = name, f"other:{name}", lambda: entry


Install = Callable[..., None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Return a function that replaces the entry points of one group by entries by name."""

    def forget() -> None:
        for registry in (LENSES, OUTPUTS, LANGUAGES):
            registry.forget()

    def entry_points(group: str, **entries: Any) -> None:
        points = [Point(name, entry) for name, entry in entries.items()]
        monkeypatch.setattr(metadata, "entry_points", lambda group, of=group: points if group == of else [])
        forget()

    yield entry_points
    forget()


def _fail(nodes: Any) -> Any:
    raise KeyError("nothing")


def test_a_lens_is_asked_after_those_of_logreel_and_has_a_name(install: Install) -> None:
    here = Position(Scaled("q[0]"), Scaled("q[1]"), None)
    install(
        "logreel.lenses", odd=LensFinder("odd", lambda ch: here if ch.topic == "vehicle_attitude" else None)
    )
    log = logreel.open(flight())
    assert lenses(log["vehicle_attitude"])[-1] is here
    assert "vehicle_attitude" in [ch.topic for ch in log.match("lens=odd")]


def test_a_lens_that_fails_is_told_once_and_left_out(install: Install) -> None:
    install("logreel.lenses", broken=LensFinder("broken", _fail, by_fields=True), other=object())
    log = logreel.open(flight())
    text = r"left out: (looking at .* failed|other:other is no LensFinder)"
    with pytest.warns(RuntimeWarning, match=text) as told:
        all(lenses(ch) is not None for ch in log.values())
    assert len(told) == 2


def test_an_output_of_another_package_is_found_by_its_suffix(install: Install) -> None:
    other = Output(".xyz", "Other", lazy("other:write"), Shape.WHOLE)
    install("logreel.outputs", xyz=other, csv=Output(".csv", "Fake", lazy("other:write"), Shape.WHOLE))
    assert find_output("a.xyz") is other
    assert find_output("a.csv").title == "Comma-separated values"
    with pytest.raises(UsageError, match=r"names no output; known: .*\.xyz"):
        find_output("a.nothing")
    with pytest.raises(
        UsageError, match=r"Output\.write is a function: lazy\('module:name'\), not the text 'other'"
    ):
        Output(".xyz", "Other", "other", Shape.WHOLE)  # type: ignore[arg-type]


def test_a_language_of_another_package_may_be_one_that_logreel_only_names(install: Install) -> None:
    schema = logreel.Schema("a/B", "omgidl", "module a {};")
    assert message_encoding(schema) == "cdr"
    unread = language_of(schema, "cdr")
    assert unread is not None
    assert unread.layout(schema) is unread.decoder(schema) is unread.serializer(schema) is None

    class Idl(Language):
        def layout(self, schema: logreel.Schema, hints: Any = None) -> logreel.Layout:
            return logreel.Layout(Struct(()), schema.name)

    install("logreel.languages", omgidl=Idl("omgidl", "cdr"), ros1msg=Idl("ros1msg", "fake"))
    known = language_of(schema, "cdr")
    assert known is not None
    assert known.layout(schema) is not None
    assert language_of(schema, "json") is None
    ros1 = language_named("ros1msg")
    assert ros1 is not None
    assert ros1.encoding == "ros1"
