"""Plots: curves through the extreme values, charts, pictures and pages."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import struct
from base64 import b64decode
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import logreel
from logreel.errors import UsageError
from logreel.log.times import SECOND
from logreel.meaning.charts import charts
from logreel.meaning.columns import FieldColumn
from logreel.meaning.curves import curves, extrema
from logreel.meaning.layouts import checked_layout
from logreel.outputs import vendor
from logreel.outputs.page.chart_svg import ticks
from logreel.outputs.page.plot import page_of
from support.builders.contents import SAMPLES
from support.builders.sample_logs import tiny
from support.harness.cli_runner import Run, Spawn
from support.samples.bddf.builder import Builder, walk
from support.samples.ulog.builder import Builder as UlogBuilder
from support.samples.ulog.builder import flight

PICTURES = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.fixture(scope="module")
def log() -> logreel.Log:
    return logreel.open(flight())


def page_data(page: bytes) -> Any:
    """Return what the page draws."""
    return json.loads(re.search(rb'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])  # type: ignore[index]


def numbers(text: str) -> Any:
    return np.frombuffer(b64decode(text), "<f8")


def test_curves_have_the_values_of_the_channel(log: logreel.Log) -> None:
    (curve,) = curves(log, "battery_status.voltage_v")
    assert (curve.name, curve.count) == ("battery_status.voltage_v", len(log["battery_status"]))
    np.testing.assert_array_equal(curve.times, log["battery_status"].times)
    np.testing.assert_array_equal(curve.values, log["battery_status"]["voltage_v"])


def test_an_array_is_a_curve_per_item(log: logreel.Log) -> None:
    found = curves(log, "vehicle_attitude.q")
    assert [curve.field for curve in found] == [f"q[{i}]" for i in range(4)]
    np.testing.assert_array_equal(found[2].values, log["vehicle_attitude"]["q"][:, 2])


def test_a_topic_means_its_numeric_fields_without_the_time_of_the_message(log: logreel.Log) -> None:
    fields = [curve.field for curve in curves(log, "battery_status")]
    assert "voltage_v" in fields
    assert "timestamp" not in fields
    assert curves(log, "battery_status.timestamp")[0].field == "timestamp"


@pytest.mark.parametrize(
    ("wanted", "error", "text"),
    [
        ("~text.text", logreel.UsageError, "is no number, but string"),
        ("~text:level,text", logreel.UsageError, "is no number, but string"),
        ("~text", logreel.UsageError, None),
        ("battery_status.voltage", logreel.NotFoundError, "voltage_v"),
        ("batery_status", logreel.TopicError, "battery_status"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    log: logreel.Log, wanted: str, error: type[Exception], text: str | None
) -> None:
    if text is None:
        assert all(curve.field != "text" for curve in curves(log, wanted))
        return
    with pytest.raises(error, match=text):
        curves(log, wanted)


def test_every_sample_has_curves(tmp_path: Path) -> None:
    refusals = set[str]()
    for suffix, make in SAMPLES.items():
        opened = logreel.open(make())
        drawn = 0
        for topic in opened:
            try:
                drawn += len(logreel.plot(opened, topic).panels[0].curves)
            except logreel.UsageError as refused:
                refusals.add(re.sub("'.*?'", "", refused.text).split(": choose")[0])
        assert drawn, suffix
    assert refusals <= {" has no numeric field", " means more than 64 curves"}


def test_samples_of_a_message_have_times_of_their_own() -> None:
    log = logreel.open(walk())
    (curve,) = curves(log, "patrol/body/speed.value")
    spread = log["patrol/body/speed"].to_arrow("value", interpolate=True)["time"].to_numpy().astype(np.int64)
    np.testing.assert_array_equal(curve.times, spread)
    assert len(np.unique(curve.times)) == len(curve.times) == 100 * len(log["patrol/body/speed"])
    np.testing.assert_array_equal(FieldColumn(log["patrol/body/speed"], "value").whole()[0], curve.times)
    # Packets of actors are of one moment each.
    carla = logreel.open(SAMPLES[".rec"]())
    (x,) = curves(carla, "position.location.x")
    assert len(np.unique(x.times)) < len(x.times)


def test_samples_before_a_gap_are_not_spread_over_it() -> None:
    out = Builder()
    speed = out.pods({"schema": "body", "varname": "speed"}, "float32")
    starts = [n * SECOND + (9 * SECOND if n >= 20 else 0) for n in range(40)]
    for start in starts:
        out.data(speed, start, struct.pack("<10f", *range(10)))
    log = logreel.open(out.bytes())
    (topic,) = (ch.topic for ch in log.channels.values() if not ch.reserved)
    (curve,) = curves(log, f"{topic}.value")
    assert curve.gaps == [(20 * SECOND, 29 * SECOND)]
    before = curve.times[curve.times < 29 * SECOND]
    assert before.tolist() == [n * SECOND // 10 for n in range(200)]
    assert np.flatnonzero(np.isnan(curve.broken().values)).tolist() == [200]


def test_latched_values_hold_at_the_start_and_do_not_stretch_the_axis() -> None:
    out = UlogBuilder(start_us=900_000_000).flags()
    for number, name in enumerate(("trajectory_setpoint", "value")):
        out.format(f"{name}:uint64_t timestamp;float x;").subscribe(name, number)
    out.data(0, struct.pack("<Qf", 1_000_000, 7.0))
    for tick in range(100):
        out.data(1, struct.pack("<Qf", 900_000_000 + tick * 100_000, tick))
    log = logreel.open(out.bytes())
    plot = logreel.plot(log, "trajectory_setpoint.x", "value.x")
    held, measured = (panel.curves[0] for panel in plot.panels)
    assert plot.span == (log.start, log.end)
    assert (held.times.tolist(), held.values.tolist()) == ([log.start], [7.0])
    assert len(measured.times) == 100
    # Whoever asks for a time gets what was logged then.
    assert log["trajectory_setpoint"].times.tolist() == [SECOND]


def naive(times: list[int], values: list[float], pixels: int) -> list[int]:
    """Return the rows of the extreme values of each interval, one interval after the other."""
    lo, span = times[0], times[-1] - times[0] + 1
    cells: dict[int, list[int]] = {}
    edges = lo + (span / pixels * np.arange(pixels + 1)).astype(np.int64)
    for row, at in enumerate(times):
        cells.setdefault(int(np.searchsorted(edges[:-1], at, "right")) - 1, []).append(row)
    keep = set[int]()
    for rows in cells.values():
        sound = [row for row in rows if values[row] == values[row]]
        keep |= {rows[0], rows[-1]}
        if sound:
            keep |= {min(sound, key=lambda r: values[r]), max(sound, key=lambda r: values[r])}
    return sorted(keep)


@given(
    st.lists(
        st.tuples(st.integers(0, 1000), st.sampled_from([0.0, 1.0, -3.5, float("nan"), float("inf"), 7.25])),
        min_size=1,
        max_size=60,
    ),
    st.integers(1, 20),
)
def test_extrema_are_those_of_a_plain_loop(points: list[tuple[int, float]], pixels: int) -> None:
    points.sort(key=lambda point: point[0])
    times, values = [t for t, _ in points], [v for _, v in points]
    found = extrema(np.array(times, np.int64), np.array(values), pixels)
    assert found.tolist() == naive(times, values, pixels)
    assert len(found) <= 4 * pixels


def test_a_reduced_curve_keeps_its_extreme_values(log: logreel.Log) -> None:
    (curve,) = curves(log, "sensor_combined.accelerometer_m_s2[0]")
    less = curve.reduced(50)
    assert len(less.times) <= 200 < len(curve.times)
    assert (less.values.min(), less.values.max()) == (curve.values.min(), curve.values.max())
    assert (less.times[0], less.times[-1], less.count) == (curve.times[0], curve.times[-1], curve.count)


def test_a_chart_has_the_size_asked_for_and_names_and_numbers(log: logreel.Log) -> None:
    plot = logreel.plot(log, "vehicle_attitude.q", "battery_status.voltage_v")
    lines = plot.text(72, 24).splitlines()
    assert max(map(len, lines)) <= 72
    assert len(lines) <= 26
    assert lines[0].startswith("vehicle_attitude  ")
    assert "q[3]" in lines[0]
    assert any(line.startswith("battery_status [V]  voltage_v") for line in lines)
    assert lines[-1].strip() == f"seconds since {plot.begins}"
    assert "\x1b" not in plot.text(72)
    assert "\x1b[38;5;" in plot.text(72, color=True)


def test_units_are_in_titles_and_legends() -> None:
    (panel,) = logreel.plot(SAMPLES[".rec"](), "velocity:linear.x,linear.y").panels
    assert panel.title == "velocity [m/s]"
    assert panel.names == ["linear.x", "linear.y"]


def test_charts_have_units_that_only_the_charts_of_the_format_know(log: logreel.Log) -> None:
    plot = logreel.plot(log, "battery_status:voltage_v,current_a", "battery_status.current_a")
    assert [panel.title for panel in plot.panels] == ["battery_status", "battery_status [A]"]
    assert plot.panels[0].labels == ["voltage_v [V]", "current_a [A]"]
    assert "voltage_v [V]" in plot.text()
    assert "voltage_v [V]" in page_of(plot)


def test_states_have_their_names_at_the_axis(log: logreel.Log, tmp_path: Path) -> None:
    plot = logreel.plot(log, "vehicle_status.nav_state", "vehicle_status:nav_state,arming_state")
    lines = plot.text(80).splitlines()
    named = [line.partition("┤")[0].strip() for line in lines[:15] if "┤" in line]
    assert named == ["Land", "Mission", "Position"]
    plot.save(tmp_path / "a.svg")
    assert "Mission" in (tmp_path / "a.svg").read_text()
    page = page_of(plot)
    ((first,), *_) = [panel["curves"] for panel in page_data(page.encode())["panels"]]
    assert set(first["states"].values()) == {"Position", "Mission", "Land"}
    assert len(re.findall(r'text-anchor="end">Mission</text>', page)) == 1
    # Of two fields with other names, one axis has numbers.
    assert plot.panels[1].states == {}


def test_a_topic_means_what_it_measures_and_no_times(tmp_path: Path) -> None:
    schema = logreel.Schema("a/B", "ros1msg", "float64 x\nint64 t\nfloat64 taken\ntime stamp\nint64 steps\n")
    with logreel.create(tmp_path / "a.bag") as writer:
        channel = writer.add_channel("/a", schema)
        for n in range(3):
            at = 1_600_000_000 * 10**9 + n * 10**9
            content = {"x": n, "t": at - 5000, "taken": at / 1e9, "stamp": at, "steps": 10**18}
            writer.write(channel, at, content)
    with logreel.open(tmp_path / "a.bag") as log:
        assert [curve.field for curve in logreel.plot(log, "/a").panels[0].curves] == ["x", "steps"]
        # What is named is drawn.
        named = logreel.plot(log, "/a:t,stamp").panels[0]
        assert [curve.field for curve in named.curves] == ["t", "stamp"]
        assert {series.field for chart in charts(log) for series in chart.series} == {"x", ""}


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (-3, 4), (0, 33.5), (1.25e9, 1.26e9), (-1e-7, 2e-7), (0, 7)]
)
def test_an_axis_has_about_five_marks(low: float, high: float) -> None:
    marks = ticks(low, high, 5)
    assert 4 <= len(marks) <= 7
    assert low - 1e-9 * (high - low) <= marks[0] < marks[-1] <= high + 1e-9 * (high - low)
    assert len(ticks(low, high, 5, 3)) <= 3


def test_the_names_of_many_curves_have_several_lines(log: logreel.Log) -> None:
    for width in (30, 60):
        lines = logreel.plot(log, "vehicle_attitude.q", "battery_status").text(width).splitlines()
        # The last line says what the times count from.
        assert max(map(len, lines[:-1])) <= width
        # Of a name that is longer than the line the end is shown.
        for label in logreel.plot(log, "battery_status").panels[0].labels:
            assert any(label[-20:] in line for line in lines), label


def test_a_chart_shows_where_the_values_are() -> None:
    """A ramp is a line from the lower left to the upper right."""
    with logreel.create(buffer := io.BytesIO(), format="ulog") as writer:
        channel = writer.add_channel(
            "ramp", logreel.Schema("ramp", "ulog", "ramp:uint64_t timestamp;float x;")
        )
        for n in range(100):
            writer.write(channel, n * 10**9, {"x": float(n)})
    body = [line[11:-1] for line in logreel.plot(buffer.getvalue(), "ramp.x").text(60).splitlines()[2:-3]]
    columns = [[i for i, c in enumerate(line) if c not in " \u2800"] for line in body]
    middles = [sum(row) / len(row) for row in columns if row]
    assert middles == sorted(middles, reverse=True)
    assert middles[0] > 40 > 8 > middles[-1]


def test_lines_break_in_gaps_and_held_values_are_steps(tmp_path: Path) -> None:
    schema = logreel.Schema("t", "ulog", "t:uint64_t timestamp;float x;")
    setpoint = logreel.Schema("setpoint", "ulog", "setpoint:uint64_t timestamp;float x;")
    with logreel.create(buffer := io.BytesIO(), format="ulog") as writer:
        even, held = writer.add_channel("t", schema), writer.add_channel("setpoint", setpoint)
        for n in range(100):
            if not 40 <= n < 60:
                writer.write(even, n * 10**8, {"x": float(n)})
            if n in (10, 50, 70):
                writer.write(held, n * 10**8, {"x": float(n)})
    log = logreel.open(buffer.getvalue())
    plot = logreel.plot(log, "t.x", "setpoint.x")
    line, steps = (panel.curves[0] for panel in plot.panels)
    (gap,) = logreel.stats(log, "t")[0].gaps
    assert line.gaps == [(gap.start_ns, gap.end_ns)]
    broken = line.broken()
    assert np.flatnonzero(np.isnan(broken.values)).tolist() == [40]
    assert (line.stepped, steps.stepped, list(steps.gaps)) == (False, True, [])
    plot.save(tmp_path / "a.svg")
    drawn = (tmp_path / "a.svg").read_text()
    paths = re.findall(r'<path d="([^"]*)"[^>]*stroke: #0072b2', drawn)
    # The two runs of the first curve.
    assert max(path.count("M") for path in paths) == 2
    assert "<pattern" in drawn
    page = page_of(plot)
    assert page.count('class="gap"') == 1
    (path,) = [p for p in re.findall(r' d="([^"]+)"', page) if "h" in p]
    assert re.fullmatch(r"M\d+ \d+h\d+v-\d+h\d+v-\d+H\d+", path)


@pytest.mark.parametrize("suffix", PICTURES)
def test_pictures_are_written(log: logreel.Log, tmp_path: Path, suffix: str) -> None:
    plot = logreel.plot(log, "vehicle_attitude.q", "battery_status.voltage_v", utc=True)
    plot.save(tmp_path / f"a{suffix}")
    content = (tmp_path / f"a{suffix}").read_bytes()
    assert content.startswith(PICTURES[suffix])
    with pytest.raises(logreel.LogError, match="exists"):
        plot.save(tmp_path / f"a{suffix}")
    plot.save(stream := io.BytesIO(), format=suffix)
    assert stream.getvalue()[:4] == content[:4]
    if suffix == ".svg":
        text = "".join(ElementTree.fromstring(content).itertext())
        assert "battery_status" in text
        assert "q[2]" in text


def test_a_page_has_all_values_and_asks_for_nothing_else(log: logreel.Log, tmp_path: Path) -> None:
    plot = logreel.plot(log, "battery_status.voltage_v")
    plot.save(tmp_path / "a.html")
    page = (tmp_path / "a.html").read_bytes()
    (curve,) = page_data(page)["panels"][0]["curves"]
    np.testing.assert_array_equal(numbers(curve["values"]), log["battery_status"]["voltage_v"])
    np.testing.assert_allclose(
        numbers(curve["times"]) * 1e9 + plot.origin, log["battery_status"].times, atol=1000
    )
    addresses = {a for a in re.findall(rb"https?://[^\s\"')]+", page) if b"w3.org" not in a}
    assert addresses <= {b"https://github.com/leeoniya/uPlot"}
    assert b"src=" not in page.replace(vendor.read("uplot", "uPlot.iife.min.js").encode(), b"")


def test_names_of_a_log_cannot_end_the_script_of_a_page(tmp_path: Path) -> None:
    topic = "</script><script>alert(1)</script>"
    with logreel.create(tmp_path / "a.bag") as writer:
        channel = writer.add_channel(topic, logreel.Schema("std_msgs/Float64", "ros1msg", "float64 data\n"))
        writer.write(channel, 10**18, {"data": 1.5})
    plot = logreel.plot(tmp_path / "a.bag", topic)
    plot.save(tmp_path / "a.html")
    page = (tmp_path / "a.html").read_text()
    assert topic not in page
    assert page_data(page.encode())["panels"][0]["title"] == topic
    assert "<iframe" in plot._repr_html_()
    assert topic not in plot._repr_html_()


def test_control_characters_of_a_log_do_not_reach_the_terminal(tmp_path: Path, run: Run) -> None:
    topic = "/a\x1b[2J$x$"
    with logreel.create(tmp_path / "a.mcap") as writer:
        channel = writer.add_channel(topic, logreel.Schema("std_msgs/Float64", "ros1msg", "float64 data\n"))
        writer.write(channel, 10**18, {"data": 1.5})
    done = run("plot", tmp_path / "a.mcap", topic)
    assert done.code == 0
    assert "\x1b" not in done.out
    logreel.plot(tmp_path / "a.mcap", topic).save(tmp_path / "a.svg")


def test_a_panel_without_messages_says_so(tmp_path: Path) -> None:
    with logreel.create(tmp_path / "a.bag") as writer:
        for topic in ("/a", "/b"):
            writer.add_channel(topic, logreel.Schema("std_msgs/Float64", "ros1msg", "float64 data\n"))
        writer.write(0, 10**18, {"data": float("nan")})
    plot = logreel.plot(tmp_path / "a.bag", "/a", "/b")
    assert "/b  data (no messages)" in plot.text()
    plot.save(tmp_path / "a.svg")
    assert "no messages" in (tmp_path / "a.svg").read_text()
    plot.save(tmp_path / "a.html")


LAYOUT = {
    "logreel": "layout",
    "version": 2,
    "panels": [
        {
            "kind": "plot",
            "title": "Attitude",
            "series": [{"means": "roll", "label": "Roll"}, {"means": "pitch"}],
        },
        {"kind": "map"},
        {"kind": "plot", "at": "right", "series": [{"topic": "battery_status", "field": "voltage_v"}]},
        {
            "kind": "plot",
            "series": [{"topic": "gone", "field": "x"}, {"topic": "battery_status", "sql": "1"}],
        },
        {"kind": "plot", "title": "Mode", "series": [{"topic": "vehicle_status", "field": "nav_state"}]},
        {"kind": "xy", "equal": True, **{a: {"topic": "vehicle_local_position", "field": a} for a in "xy"}},
        {"kind": "xy", "title": "Half", "x": {"topic": "battery_status", "field": "voltage_v"}},
    ],
}
WAY = "vehicle_local_position.y over vehicle_local_position.x"
LEFT = [
    "panel 4 lacks gone.x: the log has no such field",
    "panel 4 lacks battery_status.1: only the viewer draws SQL expressions",
    "panel 7, 'Half', lacks one of its two curves",
    "panels that only the viewer shows: 1 map",
]


def test_a_layout_names_what_is_plotted_and_what_is_not(log: logreel.Log, tmp_path: Path) -> None:
    plot = logreel.plot(log, layout=checked_layout(LAYOUT))
    assert [panel.title for panel in plot.panels] == [
        "Attitude [deg]",
        "battery_status [V]",
        "Mode",
        "vehicle_local_position: y over x",
    ]
    assert plot.panels[0].names == ["Roll", "pitch"]
    assert plot.panels[2].states
    assert plot.left_out == LEFT
    # Curves over each other have axes of their own, with names and units.
    assert plot.panels[3].labels == ["x [m]", "y [m]"]
    across, up = plot.panels[3].pair
    assert across.tolist() == log["vehicle_local_position"]["x"].astype(float).tolist()
    assert len(up) == len(across)
    lines = plot.text(80).splitlines()
    assert lines[lines.index("y [m] over x [m]") - 1] == "vehicle_local_position: y over x"
    assert plot.still().count("<img") == 4
    names = ["01-Attitude.svg", "02-battery_status", "03-Mode.svg", "04-vehicle_local_position"]
    paths = plot.save_each(os.fspath(tmp_path / "new"), format="svg")
    assert [os.path.basename(path).startswith(name) for path, name in zip(paths, names, strict=True)] == [
        True
    ] * 4
    assert "Roll" in Path(paths[0]).read_text()
    assert "Roll" not in Path(paths[1]).read_text()
    assert "y [m]" in Path(paths[3]).read_text()
    with pytest.raises(UsageError):
        logreel.plot(log, "battery_status", layout=checked_layout(LAYOUT))
    with pytest.raises(UsageError, match="gone"):
        logreel.plot(log, layout=checked_layout({"panels": LAYOUT["panels"][3:4]}))


def test_the_plots_of_a_layout_are_drawn_without_a_screen(tmp_path: Path, run: Run) -> None:
    layout, one, two = tmp_path / "layout.json", tmp_path / "one.ulg", tmp_path / "two.bag"
    layout.write_text(json.dumps(LAYOUT))
    one.write_bytes(flight())
    two.write_bytes(SAMPLES[".bag"]())
    done = run("plot", one, "--layout", layout, "-o", f"{tmp_path}/out/")
    assert (done.code, len(list((tmp_path / "out").glob("0*.png")))) == (0, 4)
    assert all(sentence in done.err for sentence in LEFT)
    assert f"wrote 4 plots to {tmp_path}/out" in done.err
    done = run("plot", one, two, "--layout", layout, "-o", f"{tmp_path}/both/", "--format", "html", "--json")
    assert len(list((tmp_path / "both/one").glob("*.html"))) == 4
    answers = [json.loads(line) for line in done.out.splitlines()]
    assert answers[0]["left_out"] == LEFT
    assert answers[0]["output"] == f"{tmp_path}/both/one"
    done = run("plot", one, "--layout", layout, "-o", tmp_path / "all.html")
    drawn = page_data((tmp_path / "all.html").read_bytes())["panels"]
    assert [len(panel["curves"]) for panel in drawn] == [2, 1, 1, 0]
    assert "Attitude" in run("plot", one, "--layout", layout).out
    layout.write_text("{}")
    done = run("plot", one, "--layout", layout)
    assert (done.code, "is no layout: it has no list of panels" in done.err) == (2, True)


def test_channels_plot_their_fields() -> None:
    opened = logreel.open(tiny())
    topic = next(topic for topic in opened if len(opened[topic].fields) > 1)
    (panel,) = opened[topic].plot().panels
    assert {curve.topic for curve in panel.curves} == {topic}
    field = panel.curves[0].field
    assert [curve.field for curve in opened[topic].plot(field).panels[0].curves] == [field]


@pytest.mark.parametrize(
    ("args", "code", "text"),
    [
        (
            ["battery_status.voltage_v", "-o", "a.xyz"],
            2,
            "is no kind of plot; there are .png, .svg, .pdf, .html",
        ),
        (["battery_status.voltage_v", "-o", "a.png", "--format", "svg"], 2, "--format is for -o -"),
        (["battery_status.voltage_v", "-S", "log:5", "-E", "log:6"], 2, "nothing between"),
        (["nothing"], 2, "no channel 'nothing'"),
        (["battery_status.voltage_v", "-o", "flight.ulg", "--force"], 2, ""),
    ],
)
def test_wrong_usage_is_one_sentence(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: list[str], code: int, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("flight.ulg").write_bytes(flight())
    done = run("plot", "flight.ulg", *args)
    assert (done.code, done.out) == (code, "")
    assert text in done.err
    assert done.err.count("\n") == 1
    assert Path("flight.ulg").read_bytes() == flight()


def test_the_verb_writes_charts_and_files(
    run: Run, spawn: Spawn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("flight.ulg").write_bytes(flight())
    done = run("plot", "flight.ulg", "battery_status.voltage_v", "--width", "60", "--height", "10")
    assert done.code == 0
    assert max(map(len, done.out.splitlines())) <= 60
    assert (
        run("plot", "flight.ulg", "battery_status.voltage_v", "-o", "a.html").err == "logreel: wrote a.html\n"
    )
    assert run("plot", "flight.ulg", "battery_status.voltage_v", "-o", "a.html").code == 1
    out = spawn(
        "-m", "logreel", "plot", "flight.ulg", "battery_status", "-o", "-", "--format", "svg", cwd=tmp_path
    )
    assert out.returncode == 0, out.stderr
    assert out.stdout.startswith(b"<?xml")


def test_libraries_of_others_are_as_they_were_fetched() -> None:
    folder = Path(vendor.__file__).parent
    kept = json.loads((folder / "vendored.json").read_text())
    for package, facts in kept.items():
        files = {path.name: path for path in (folder / package).iterdir()}
        assert files.keys() == facts["sha256"].keys()
        assert any("LICENSE" in name for name in files)
        for name, digest in facts["sha256"].items():
            assert hashlib.sha256(files[name].read_bytes()).hexdigest() == digest


def test_a_report_has_the_plots_of_a_layout(tmp_path: Path, run: Run) -> None:
    layout, path, out = tmp_path / "layout.json", tmp_path / "one.ulg", tmp_path / "one.html"
    layout.write_text(json.dumps(LAYOUT))
    path.write_bytes(flight())
    done = run("report", path, "--layout", layout, "-o", out)
    assert done.code == 0
    assert all(sentence in done.err for sentence in LEFT)
    answer = json.loads(run("report", path, "--layout", layout, "-o", out, "--force", "--json").out)
    assert (answer["charts"], answer["left_out"]) == (
        ["Attitude", "battery_status.voltage_v", "Mode", WAY],
        LEFT,
    )
    # All that is not a chart is as without a layout.
    assert '<section id="parameters">' in out.read_text()
    assert logreel.report(path, layout=layout).charts == tuple(answer["charts"])
    layout.write_text("{}")
    assert run("report", path, "--layout", layout, "-o", out, "--force").code == 2
