"""Arming checks of PX4: shown like other events, with a plain reading of definitions and rows as judge."""

from __future__ import annotations

import functools
import json
import lzma
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyulog import ULog

import logreel
from logreel.formats.ulog import events
from logreel.formats.ulog.events import Line, Row, load
from logreel.log.scan import TextLine
from logreel.ops.inspect.summary import sentences, text_sections
from logreel.ops.inspect.text import text
from support.harness.cli_runner import Run

#: Ids of a report: its summaries, and two checks.
ARMING, HEALTH, FIRST, SECOND, PLAIN = (1 << 24 | n for n in (1, 2, 3, 4, 5))
LOGS = [
    "battery_brownout",
    "corrupt_actuator_armed_wrong_size",
    "ekf_failure",
    "quadrotor_local",
    "sample_px4_events",
]


def definitions() -> events.Definitions:
    def event(name: str, kind: str = "") -> dict[str, Any]:
        return {"name": name, "message": name, "type": kind}

    groups = {
        "arming_check": {
            "events": {"1": event("arming", "summary"), "3": event("first"), "4": event("second")}
        },
        "health": {"events": {"2": event("health", "summary")}},
        "default": {"events": {"5": event("plain")}},
    }
    content = {"version": 2, "components": {"1": {"namespace": "px4", "event_groups": groups}}}
    return load(lzma.compress(json.dumps(content).encode()))


@functools.cache
def plain_events(path: Path) -> list[tuple[int, str, str, str, int]]:
    """Return time in µs, group, kind, message without arguments, and internal level of each event."""
    log = ULog(str(path), ["event"])
    parts = log.msg_info_multiple_dict["metadata_events"][0]
    content = json.loads(lzma.decompress(b"".join(bytes(part) for part in parts)))
    known = {
        int(component) << 24 | int(number): (group, one.get("type", ""), one["message"])
        for component, space in content["components"].items()
        for group, members in space.get("event_groups", {}).items()
        for number, one in members["events"].items()
    }
    rows = log.get_dataset("event").data
    columns = (rows[name].tolist() for name in ("timestamp", "id", "log_levels"))
    return [(time, *known[number], levels >> 4) for time, number, levels in zip(*columns, strict=True)]


def fits(template: str, sentence: str) -> bool:
    """Return whether *sentence* is *template* with something in place of each argument."""
    parts = re.split(r"\{[^}]*\}|<[^>]*>", template.replace("\\", ""))
    return re.fullmatch(".*".join(map(re.escape, parts)).strip(), sentence, re.DOTALL) is not None


@pytest.mark.parametrize("name", LOGS)
def test_every_event_for_people_is_a_line_of_text(shared: Path, name: str) -> None:
    path = shared / f"data/ulog/{name}.ulg"
    expected = [row for row in plain_events(path) if row[4] < 8]
    with logreel.open(path) as log:
        found = [line for line in log.text if line.kind in ("event", "check")]
    assert len(found) == len(expected) > 0
    assert Counter(line.source for line in found if line.kind == "check") == Counter(
        group for _, group, *_ in expected if group != "default"
    )
    for line, (time, group, _, template, _) in zip(
        found, sorted(expected, key=lambda row: row[0]), strict=True
    ):
        assert line.time == time * 1000
        assert (line.kind == "check") == (group != "default")
        assert fits(template, line.text), (template, line.text)


@pytest.mark.parametrize("name", LOGS)
def test_checks_are_repeated_if_the_report_before_had_them(shared: Path, name: str) -> None:
    path = shared / f"data/ulog/{name}.ulg"
    with logreel.open(path) as log:
        found = [line for line in log.text if line.kind == "check"]
        shown = [line for line in text(log, level=7) if line.kind == "check"]
        every = [line for line in text(log, level=7, repeated=True) if line.kind == "check"]
    reports: list[set[tuple[int, str]]] = [set()]
    for time, group, kind, template, level in plain_events(path):
        if group == "arming_check" and kind == "summary":
            reports.append(set())
        elif group != "default" and level < 8:
            reports[-1].add((time * 1000, template))
    new = set()
    before: set[str] = set()
    for report in reports:
        new |= {time for time, template in report if template not in before}
        before = {template for _, template in report}
    # Checks of two sensors share a template, and so a time is not that of a new check only by its template.
    assert {line.time for line in shown} >= new
    assert all(line.time in {time for report in reports for time, _ in report} for line in found)
    assert every == found
    assert [line for line in found if not line.repeated] == shown


def test_a_check_is_shown_again_after_it_passed() -> None:
    rows = [
        Row(1, ARMING, b"", 0x88),
        Row(2, FIRST, b"", 0x33),
        Row(3, HEALTH, b"", 0x88),
        Row(4, PLAIN, b"", 0x66),
        Row(5, ARMING, b"", 0x88),
        Row(6, FIRST, b"", 0x33),
        Row(7, SECOND, b"", 0x44),
        Row(8, ARMING, b"", 0x88),
        Row(9, SECOND, b"", 0x44),
        Row(10, ARMING, b"", 0x88),
        Row(11, FIRST, b"", 0x33),
    ]
    group = "arming_check"
    assert events.lines([], rows, definitions()) == [
        Line(2, 3, "first", group, False),
        Line(4, 6, "plain"),
        Line(6, 3, "first", group, True),
        Line(7, 4, "second", group, False),
        Line(9, 4, "second", group, True),
        Line(11, 3, "first", group, False),
    ]


@pytest.mark.parametrize(("levels", "expected"), [(0x66, 6), (0x64, 4), (0x46, 4), (0x6F, 6)])
def test_an_event_has_the_more_severe_of_its_two_levels(levels: int, expected: int) -> None:
    assert definitions().sentence(PLAIN, b"", levels).level == expected


def test_the_summary_has_each_check_once_and_marks_those_that_began_in_flight(shared: Path) -> None:
    path = shared / "data/ulog/ekf_failure.ulg"
    found = logreel.summary(path)["checks"]
    lines = [row for row in plain_events(path) if row[1] != "default" and row[4] < 8]
    counts = Counter(template for *_, template, _ in lines)
    assert len(found.facts) == len(counts)
    for fact in found:
        (template,) = [one for one in counts if fits(one, fact.label)]
        times = [time * 1000 for time, *_, one, _ in lines if one == template]
        assert (fact.value["first_ns"], fact.value["last_ns"]) == (times[0], times[-1])
        assert fact.value["count"] == len(times)
    assert [fact.label for fact in found if fact.level is not None] == ["Attitude failure detected"]


def test_equal_lines_are_one_sentence_with_its_times() -> None:
    lines = [TextLine(5, 4, "a "), TextLine(3, 6, "b"), TextLine(9, 3, "a"), TextLine(7, None, "a", "other")]
    found = sentences(lines)
    assert [(one.text, one.source, one.level, one.first, one.last, one.count) for one in found] == [
        ("b", "", 6, 3, 3, 1),
        ("a", "", 3, 5, 9, 2),
        ("a", "other", None, 7, 7, 1),
    ]


def test_events_that_a_format_states_are_left_out(shared: Path) -> None:
    with logreel.open(shared / "data/ulog/sample_px4_events.ulg") as log:
        assert {section.key for section in text_sections(log, (), {"events"})} == {"text", "checks"}
        (section,) = [one for one in text_sections(log, (), set()) if one.key == "events"]
        expected = [row for row in plain_events(Path(log.name)) if row[1] == "default"]
        assert len(section.facts) == len(expected)


def test_text_shows_repeated_checks_on_request(shared: Path, run: Run) -> None:
    path = shared / "data/ulog/sample_px4_events.ulg"
    assert run("text", path).out.count("No valid global position estimate") == 1
    assert run("text", path, "--all").out.count("No valid global position estimate") == 3
    assert "No valid global" not in run("text", path, "--level", "critical").out
