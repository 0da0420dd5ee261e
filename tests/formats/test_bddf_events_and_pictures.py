"""BDDF events as text with level and parameters, and pictures by content type."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

import logreel
from logreel.formats.bddf.scan_builder import parameter
from support.harness.cli_runner import Run
from support.samples.bddf.builder import Builder, event, num, raw, stamp
from support.samples.grey_jpeg import jpeg

T0 = 1_700_000_000 * 10**9


def real(field: int, value: float) -> bytes:
    return bytes([field * 8 + 1]) + struct.pack("<d", value)


def events(*messages: bytes) -> bytes:
    out = Builder({})
    series = out.messages("bosdyn.api.Event")
    for n, message in enumerate(messages):
        out.data(series, T0 + n * 10**9, message)
    return out.bytes()


@pytest.mark.parametrize(
    ("level", "name", "severity"),
    [
        (0, "", None),
        (1, " [low]", 6),
        (2, " [medium]", 5),
        (3, " [high]", 4),
        (4, " [mission critical]", 2),
        (5, " [system critical]", 1),
        (77, "", None),
    ],
)
def test_an_event_has_the_name_of_its_level(level: int, name: str, severity: int | None) -> None:
    (line,) = logreel.open(events(event("me:fault", "motor hot", T0, T0) + num(7, level))).text
    assert (line.text, line.level, line.kind) == (f"me:fault: motor hot{name}", severity, "event")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (num(3, -5), "x=-5 m"),
        (real(4, 81.5), "x=81.5 m"),
        (raw(5, stamp(T0 + 1)), "x=2023-11-14T22:13:20.000000001Z m"),
        (raw(6, stamp(1_500_000_000)), "x=1.500000000 s m"),
        (raw(7, 'a "b"'), 'x="a \\"b\\"" m'),
        (num(8, 1), "x=true m"),
        (bytes([8 * 8, 0]), "x=false m"),
        (b"", "x= m"),
    ],
)
def test_a_parameter_has_label_value_and_units(value: bytes, text: str) -> None:
    assert parameter(raw(1, "x") + raw(2, "m") + value) == text


def test_parameters_of_an_event_are_in_its_text(run: Run, tmp_path: Path) -> None:
    message = event("me:step", "stairs", T0, T0) + num(7, 3)
    message += raw(8, raw(1, "steps") + num(3, 12)) + raw(8, raw(1, "slope") + raw(2, "deg") + real(4, 31.25))
    (tmp_path / "a.bddf").write_bytes(events(event("me:quiet", "nothing", T0, T0) + num(7, 1), message))
    assert [line.text for line in logreel.open(tmp_path / "a.bddf").text][1] == (
        "me:step: stairs [high] steps=12 slope=31.25 deg"
    )
    shown = run("text", tmp_path / "a.bddf", "--level", "warning").out
    assert "stairs" in shown
    assert "nothing" not in shown


@pytest.mark.parametrize("end", range(1, 40, 3))
def test_a_cut_parameter_makes_no_line_and_no_error(end: int) -> None:
    whole = raw(8, raw(1, "slope") + raw(2, "degrees of arc") + real(4, 31.25))
    log = logreel.open(events(event("me:step", "stairs", T0, T0) + whole[:end]))
    assert len(log.text) in (0, 1)


def test_pictures_are_found_by_their_content_type(tmp_path: Path, run: Run) -> None:
    out, picture = Builder({}), jpeg(np.full((8, 16), 90, np.uint8))
    series = out.messages("camera/front", "image/jpeg", "image")
    other = out.messages("notes", "application/octet-stream", "bytes")
    for n in range(3):
        out.data(series, T0 + n * 10**9, picture)
        out.data(other, T0 + n * 10**9, b"no picture")
    (tmp_path / "a.bddf").write_bytes(out.bytes())
    assert run("convert", tmp_path / "a.bddf", f"{tmp_path}/a.jpg/").code == 0
    files = sorted((tmp_path / "a.jpg").rglob("*.jpg"))
    assert [file.read_bytes() for file in files] == [picture] * 3
