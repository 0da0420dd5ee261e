"""Reports: one page with what a log holds, which works offline and is safe for any content."""

from __future__ import annotations

import html
import io
import json
import re
from base64 import b64decode
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from logreel.lenses.facts import Chart, Series
from logreel.meaning.curves import spectrum
from logreel.ops.inspect.incidents import incidents
from logreel.outputs.page.chart_svg import PageClock
from logreel.outputs.page.report import panels_of
from logreel.outputs.page.report_page import CHARTS, ROWS
from logreel.outputs.page.track import grid_step
from support.builders.contents import SAMPLES
from support.builders.crash import FAILSAFE, FALL, LOW, SAID, crash
from support.harness.cli_runner import Run
from support.samples.ulog.builder import flight

#: Elements without an end.
VOID = {"meta", "link", "img", "br", "hr", "input", "line", "circle", "rect", "polyline", "path"}


@pytest.fixture(scope="module")
def log() -> logreel.Log:
    return logreel.open(flight())


@pytest.fixture(scope="module")
def report(log: logreel.Log) -> logreel.Report:
    return logreel.report(log)


def page_data(text: str) -> Any:
    """Return what the scripts of the page draw."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert found is not None
    return json.loads(found[1])


def times_of(curve: dict[str, Any]) -> Any:
    given = curve["times"]
    return given["from"] + np.frombuffer(b64decode(given["data"]), "<u4") * given["step"]


def values_of(curve: dict[str, Any]) -> Any:
    return np.frombuffer(b64decode(curve["values"]), "<f8" if curve.get("wide") else "<f4")


def as_json(**fields: Any) -> bytes:
    """Return a message of a channel of JSON."""
    return json.dumps(fields).encode()


class Page(HTMLParser):
    """Elements of a page that a browser would make of the text: tags with attributes, text by tag, unclosed tags."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("script", "style"):
            self.words.append(data)


def check_page(text: str) -> Page:
    """Assert that the page is well-formed, small, and loads and runs nothing but its own scripts."""
    page = Page(text)
    assert page.open == []
    assert len(text.encode()) < 8e6
    for tag, attributes in page.tags:
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            assert name != "style", tag
            if name in ("src", "href", "action", "data", "xlink:href"):
                assert (value or "").startswith("#"), (tag, value)
    policy = next(
        a["content"] for t, a in page.tags if t == "meta" and a.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert [t for t, _ in page.tags].count("script") == 3
    return page


def test_a_report_says_what_the_recording_is(report: logreel.Report, log: logreel.Log) -> None:
    page = check_page(report.html)
    words = " ".join(page.words)
    for word in ("2025-05-17 08:42:20 UTC", "60.0 s", "v1.16.0", "PX4_FMU_V6C", f"{log.message_count} in "):
        assert word in words, word
    sections = [a["id"] for t, a in page.tags if t == "section"]
    assert sections == [
        "findings",
        "track",
        "what-happened",
        "charts",
        "text",
        "parameters",
        "topics",
        "about-the-file",
    ]
    links = {str(a["href"]).removeprefix("#") for t, a in page.tags if t == "a"}
    assert {name for name in links if not name.startswith("chart-")} == set(sections)
    assert links <= {a.get("id") for _, a in page.tags}
    for channel in log.channels.values():
        if len(channel):
            assert channel.topic in words
    assert report.charts[:3] == ("Attitude", "Altitude", "Battery")
    assert repr(report).startswith("<logreel.Report of ")


def test_twelve_charts_stand_before_the_others_which_are_folded(report: logreel.Report) -> None:
    shown, _, folded = report.html.partition('<details class="more">')
    assert shown.count("<figure") == CHARTS == 12
    assert folded.count("<figure") == len(report.charts) - CHARTS > 0
    assert f"<summary>{len(report.charts) - CHARTS} more charts: " in folded


def test_curves_of_states_have_their_names() -> None:
    with logreel.open(flight()) as log:
        chart = Chart("Mode", (Series("vehicle_status", "nav_state"),))
        clock = PageClock(log.start or 0, log.start or 0, log.end or 0)
        (panel,) = panels_of(log, [chart], clock, [], None, None)
        (both,) = panels_of(
            log, [Chart("Two", (*chart.series, Series("battery_status", "voltage_v")))], clock, [], None, None
        )
    assert set(panel["curves"][0]["states"].values()) == {"Position", "Mission", "Land"}
    assert ">Mission</text>" in panel["svg"]
    assert "states" in both["curves"][0]
    assert ">Mission</text>" not in both["svg"]


def test_curves_have_the_values_of_the_log(report: logreel.Report, log: logreel.Log) -> None:
    data = page_data(report.html)
    assert data["span"] == [0, pytest.approx(log.duration / 1e9)]  # type: ignore[operator]
    battery = next(panel for panel in data["panels"] if panel["title"] == "Battery")
    volts = battery["curves"][0]
    assert (volts["name"], volts["unit"]) == ("voltage", "V")
    times = (log["battery_status"].times - log.start) / 1e9  # type: ignore[operator]
    np.testing.assert_allclose(times_of(volts), times, atol=1e-6)
    np.testing.assert_array_equal(values_of(volts), log["battery_status"]["voltage_v"])
    accel = next(panel for panel in data["panels"] if panel["title"] == "Acceleration")["curves"][2]
    all_values = log["sensor_combined"]["accelerometer_m_s2"][:, 2]
    assert len(values_of(accel)) < len(all_values)
    # Without a value, the line breaks at the dropouts.
    assert (np.nanmin(values_of(accel)), np.nanmax(values_of(accel))) == (all_values.min(), all_values.max())


def test_bands_and_marks_lie_at_their_times(report: logreel.Report, log: logreel.Log) -> None:
    data = page_data(report.html)
    assert [band["label"] for band in data["bands"] if band["kind"] == "mode"] == [
        "Position",
        "Mission",
        "Land",
    ]
    assert all(0 <= band["from"] < band["to"] <= data["span"][1] for band in data["bands"])
    severe = [line for line in log.text if line.level is not None and line.level <= 4]
    assert len(data["marks"]) == len(severe) > 0


def test_findings_are_the_incidents_of_the_log(report: logreel.Report, log: logreel.Log) -> None:
    assert report.findings == incidents(log).faults
    ranks = [("error", "warn", "note").index(one.severity or "") for one in report.findings]
    assert ranks == sorted(ranks)
    assert "RTCM" in report.findings[0].text


def items(text: str) -> list[str]:
    """Return the findings of a page as HTML."""
    section = text.partition('<section id="findings">')[2].partition("</section>")[0]
    return re.findall("<li .*?</li>", section)


def test_each_finding_has_its_interval_and_the_chart_that_shows_it() -> None:
    report = logreel.report(crash())
    text = report.html
    told = {one.text: items(text)[n] for n, one in enumerate(report.findings)}
    assert list(told)[:3] == [SAID, "battery_status: 3.10 V a cell", "failsafe"]
    ends = [re.findall(r'data-at="([\d.]+)" data-to="([\d.]+)"', item)[0] for item in told.values()]
    expected = [(FALL, FALL), (LOW, FALL - 0.1), (FAILSAFE, FALL), (FALL, FALL)]
    assert [tuple(map(float, pair)) for pair in ends] == [pytest.approx(pair, abs=0.11) for pair in expected]
    data = page_data(text)
    titles = [
        data["panels"][int(found[1])]["title"]
        for item in told.values()
        if (found := re.search(r'<a href="#chart-(\d+)">', item))
    ]
    assert titles == ["Attitude", "Battery", "vehicle_status: failsafe", "Attitude"]
    assert [f'id="chart-{n}"' in text for n in range(len(data["panels"]))] == [True] * len(report.charts)
    # The chart that only a finding needs stands behind the others.
    assert report.charts[-1] == "vehicle_status: failsafe"
    assert "Mode Return" in "".join(items(text)[len(told) :])


def test_a_part_has_the_findings_that_touch_it() -> None:
    report = logreel.report(crash(), start="+31s", end="+35s")
    assert [one.text for one in report.findings] == ["battery_status: 3.10 V a cell", "failsafe"]


def test_a_sound_log_says_what_was_looked_at() -> None:
    report = logreel.report(crash(sound=True))
    assert not [one for one in report.findings if one.severity != "note"]
    assert "No fault was found by " in report.html


def test_facts_of_the_summary_are_shown_with_their_notes(report: logreel.Report) -> None:
    page = check_page(report.html)
    assert "Mission 35.0 s, Position 12.6 s, Land 12.3 s" in page.words
    assert any(a.get("title") == "vehicle_status.arming_state" for t, a in page.tags if t == "td")


def test_lost_bytes_are_an_error() -> None:
    data = flight(3.0)
    with logreel.open(data[: len(data) - 20_003]) as log:
        report = logreel.report(log)
    page = check_page(report.html)
    assert ("error", "problems") in [(one.severity, one.origin) for one in report.findings]
    assert "problems" in [a.get("id") for t, a in page.tags if t == "section"]


@pytest.mark.parametrize("suffix", sorted(SAMPLES))
def test_each_sample_has_a_report(suffix: str) -> None:
    with logreel.open(SAMPLES[suffix]()) as log:
        report = logreel.report(log)
        page = check_page(report.html)
        assert report.charts
        data = page_data(report.html)
        for panel in data["panels"]:
            assert panel["about"]
            for curve in panel["curves"]:
                if panel.get("kind") != "spectrum":
                    assert len(times_of(curve)) == len(values_of(curve)) > 0
        assert log.format in " ".join(page.words)


def test_a_track_is_drawn_in_metres(report: logreel.Report, log: logreel.Log) -> None:
    page = check_page(report.html)
    lines = [a for t, a in page.tags if t == "polyline"]
    assert len(lines) == 2
    lat, lon = (log["vehicle_global_position"][name] for name in ("lat", "lon"))
    north = np.ptp(lat) * 111_320
    east = np.ptp(lon) * 111_320 * np.cos(np.radians(np.median(lat)))
    points = np.array([[float(v) for v in p.split(",")] for p in (lines[-1]["points"] or "").split()])
    wide, high = np.ptp(points, axis=0)
    assert wide / high == pytest.approx(east / north, rel=0.01)
    assert page_data(report.html)["track"]["times"]


@pytest.mark.parametrize(
    ("length", "step"), [(8.0, 1.0), (100.0, 20.0), (1000.0, 200.0), (0.5, 0.1), (30.0, 5.0)]
)
def test_grid_lines_are_at_round_numbers(length: float, step: float) -> None:
    assert grid_step(length) == pytest.approx(step)


def test_a_spectrum_has_its_peak_at_the_frequency_of_the_signal(tmp_path: Path) -> None:
    path = tmp_path / "tone.mcap"
    rate, tone, amplitude = 200.0, 37.5, 3.0
    with logreel.create(path) as out:
        ch = out.add_channel(
            "/tone",
            logreel.Schema(
                "Tone",
                "jsonschema",
                json.dumps({"type": "object", "properties": {"value": {"type": "number"}}}),
            ),
        )
        for i in range(4000):
            out.write(
                ch,
                int(i / rate * 1e9),
                as_json(value=float(7 + amplitude * np.sin(2 * np.pi * tone * i / rate))),
            )
    with logreel.open(path) as log:
        found = spectrum(log, Series("/tone", "value"), None, None)
        assert found is not None
        assert found.frequency[np.argmax(found.density)] == pytest.approx(tone, abs=0.3)
        # The power of a sine is half the square of its amplitude.
        power = float(np.sum(found.density**2) * (found.frequency[1] - found.frequency[0]))
        assert power == pytest.approx(amplitude**2 / 2, rel=0.05)


EVIL = "<script>alert(1)</script>\"'&</script><img src=x onerror=alert(2)>\u202e{title}"


def test_names_and_texts_of_a_log_are_never_markup(tmp_path: Path) -> None:
    path = tmp_path / "<b>evil&.mcap"
    fields = {EVIL: {"type": "number"}, "b": {"type": "string"}}
    with logreel.create(path) as out:
        ch = out.add_channel(
            EVIL, logreel.Schema(EVIL, "jsonschema", json.dumps({"type": "object", "properties": fields}))
        )
        text = out.add_channel(
            "/log",
            logreel.Schema(
                "Line",
                "jsonschema",
                json.dumps(
                    {
                        "type": "object",
                        "properties": {
                            "msg": {"type": "string"},
                            "level": {"type": "integer"},
                            "name": {"type": "string"},
                        },
                    }
                ),
            ),
        )
        for i in range(100):
            out.write(ch, i * 10**7, as_json(**{EVIL: i * 1.5, "b": EVIL}))
            out.write(text, i * 10**7, as_json(msg=EVIL, level=3, name=EVIL))
    with logreel.open(path) as log:
        report = logreel.report(log)
    page = check_page(report.html)
    assert not [t for t, _ in page.tags if t in ("img", "b", "iframe", "object")]
    assert html.escape("<script>alert(1)</script>", True) in report.html
    assert "\u202e" not in report.html
    assert "<script>alert(1)" not in report.html


def test_many_lines_and_curves_keep_a_report_small(tmp_path: Path) -> None:
    path = tmp_path / "many.mcap"
    line = {
        "type": "object",
        "properties": {"msg": {"type": "string"}, "level": {"type": "integer"}, "name": {"type": "string"}},
    }
    with logreel.create(path) as out:
        ch = out.add_channel("/log", logreel.Schema("Line", "jsonschema", json.dumps(line)))
        for i in range(5000):
            out.write(
                ch,
                i * 10**6,
                as_json(msg=f"{i} " + "long " * 500, level=3 if i == 4999 else 6, name="node"),
            )
    with logreel.open(path) as log:
        report = logreel.report(log)
    assert len(report.html) < 3e6
    assert report.html.count('class="at"') <= ROWS + 20
    # The most severe lines stay.
    assert "4999 long" in report.html


def test_a_part_of_the_log_is_said(log: logreel.Log) -> None:
    part = logreel.report(log, start="+10s", end="+20s", utc=True)
    data = page_data(part.html)
    assert data["utc"]
    assert data["span"][1] - data["span"][0] == pytest.approx(10)
    volts = next(panel for panel in data["panels"] if panel["title"] == "Battery")["curves"][0]
    whole = log["battery_status"].times
    first = log.start + 10 * 10**9  # type: ignore[operator]
    assert len(values_of(volts)) == ((whole >= first) & (whole < first + 10 * 10**9)).sum()
    assert "10.0 s from 2025-05-17T08:42:30" in part.html


def test_an_empty_log_has_a_report(tmp_path: Path) -> None:
    path = tmp_path / "empty.mcap"
    with logreel.create(path):
        pass
    check_page(logreel.report(path).html)


def test_save_writes_html_only_and_never_over_a_file(report: logreel.Report, tmp_path: Path) -> None:
    with pytest.raises(logreel.UsageError, match=r"name it \.html"):
        report.save(tmp_path / "report.pdf")
    out = tmp_path / "report.html"
    report.save(out)
    with pytest.raises(logreel.LogError):
        report.save(out)
    report.save(out, force=True)
    stream = io.BytesIO()
    report.save(stream)
    assert stream.getvalue() == out.read_bytes()
    assert "<iframe" in report._repr_html_()


def test_the_verb_writes_a_page(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "flight.ulg"
    path.write_bytes(flight(3.0))
    out = tmp_path / "report.html"
    done = run("report", path, "-o", out)
    assert (done.code, done.out) == (0, "")
    assert "open it in a browser" in done.err
    check_page(out.read_text("utf-8"))
    assert run("report", path, "-o", out).code == 1
    assert run("report", path, "-o", out, "--force", "-S", "+1s").code == 0
    assert run("report", path).code == 2
    piped = run("report", path, "-o", "-")
    assert piped.out.startswith("<!doctype html>")
    path.write_bytes(flight(3.0)[:-1003])
    assert run("report", path, "-o", out, "--force").code == 3
