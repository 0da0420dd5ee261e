"""Layouts beside a conversion: the parts are those that other programs read, and every curve exists."""

from __future__ import annotations

import io
import json
import math
import re
import subprocess
import sys
import types
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from logreel.errors import LogError, UsageError
from logreel.lenses.facts import Series
from logreel.outputs.program_layouts import PROGRAMS, foxglove_path, plotjuggler_name
from support.builders import recordings
from support.builders.sample_logs import short_flight
from support.harness.cli_runner import Run
from support.samples.rosbag.builder import drive

LOGS = {"flight.ulg": short_flight, "drive.bag": drive}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both logs as MCAP and their layouts for two programs."""
    folder = tmp_path_factory.mktemp("layouts")
    for name, build in LOGS.items():
        (folder / name).write_bytes(build())
        out = (folder / name).with_suffix(".mcap")
        done = logreel.convert(folder / name, out, layout="foxglove")
        assert f"the layout for Foxglove is {out.with_suffix('.foxglove.json')}" in done.notes[-1]
        out.unlink()
        logreel.convert(folder / name, out, layout="plotjuggler")
    return folder


def leaves(layout: Any) -> Iterator[str]:
    """Yield the panels of a tree of Foxglove, which is binary."""
    if isinstance(layout, str):
        yield layout
        return
    assert set(layout) == {"direction", "first", "second", "splitPercentage"}
    assert layout["direction"] in ("row", "column")
    assert 0 < layout["splitPercentage"] < 100
    yield from leaves(layout["first"])
    yield from leaves(layout["second"])


def shown(data: dict[str, Any]) -> dict[str, list[Any]]:
    """Return the configurations of all panels in tabs by type; every one is in one place."""
    assert set(data) == {"configById", "globalVariables", "userNodes", "playbackConfig", "layout"}
    root = data["configById"][data["layout"]]
    names = [name for tab in root["tabs"] for name in leaves(tab["layout"])]
    assert sorted([*names, data["layout"]]) == sorted(data["configById"])
    assert root["tabs"][root["activeTabIdx"]]["title"] == "Overview"
    found: dict[str, list[Any]] = {}
    for name in names:
        found.setdefault(name.partition("!")[0], []).append(data["configById"][name])
    return found


def resolved(log: logreel.Log, path: str) -> np.ndarray:
    """Return the values of a message path without filters, read as Foxglove's documentation describes it."""
    match = re.fullmatch(r'("(?:[^"\\]|\\.)*"|[^".]+)\.(.*?)((?:\.@\w+(?:\([^)]*\))?)*)', path)
    assert match is not None, path
    topic = json.loads(match[1]) if match[1].startswith('"') else match[1]
    if match[1] == topic:
        assert re.fullmatch(r"[A-Za-z0-9_/-]+", topic)
    for function in re.findall(r"@(\w+)", match[3]):
        assert function in ("mul", "negative", "derivative")
    return np.asarray(log[topic][match[2]])


@pytest.mark.parametrize("name", ["flight", "drive"])
def test_a_layout_of_foxglove_shows_fields_that_the_new_log_has(made: Path, name: str) -> None:
    log = logreel.open(made / f"{name}.mcap")
    panels = shown(json.loads((made / f"{name}.foxglove.json").read_text()))
    plots = panels["Plot"]
    for plot in plots:
        assert plot["paths"]
        for path in plot["paths"]:
            assert path["enabled"] is True
            assert path["timestampMethod"] == "receiveTime"
            assert len(resolved(log, path["value"]))
    (scene,) = panels["3D"]
    assert all(log[topic].schema.name for topic in scene["topics"])
    assert all(topic == {"visible": True} for topic in scene["topics"].values())
    (chart,) = panels["map"]
    assert log[chart["followTopic"]].schema.name in ("foxglove.LocationFix", "sensor_msgs/NavSatFix")
    if name == "drive":
        (picture,) = panels["Image"]
        assert "Image" in log[picture["imageMode"]["imageTopic"]].schema.name
    else:
        labels = [path["label"] for plot in plots for path in plot["paths"]]
        assert any("[V]" in label for label in labels)


def test_panels_have_the_members_that_foxglove_s_own_sdk_writes(made: Path) -> None:
    sdk: Any = pytest.importorskip("foxglove.layouts", reason="needs foxglove-sdk")
    panels = shown(json.loads((made / "drive.foxglove.json").read_text()))
    plot = set(sdk.PlotConfig()._to_dict()) | {"title"}
    series = set(sdk.PlotSeries()._to_dict())
    for config in panels["Plot"]:
        assert set(config) <= plot
        assert all(set(path) <= series for path in config["paths"])


def without_places(name: str) -> str:
    """Return the name of a curve without the places of its values in arrays."""
    return re.sub(r"\[\d*\]", "", name)


@pytest.mark.parametrize("name", ["flight", "drive"])
def test_a_layout_of_plotjuggler_shows_fields_that_the_new_log_has(made: Path, name: str) -> None:
    log = logreel.open(made / f"{name}.mcap")
    root = ET.parse(made / f"{name}.plotjuggler.xml").getroot()
    fields = {
        without_places(plotjuggler_name(ch.topic, field))
        for ch in log.channels.values()
        for field in ch.fields
    }
    snippets = {one.get("name"): one for one in root.iter("snippet")}
    for one in snippets.values():
        inputs = [one.findtext("linked_source"), *(v.text for v in one.iterfind("additional_sources/*"))]
        assert {without_places(str(source)) for source in inputs} <= fields
    tabs = root.findall("tabbed_widget/Tab")
    assert tabs[0].get("tab_name") == "Overview"
    curves = 0
    for tab in tabs:
        (splitter,) = tab.findall("Container/DockSplitter")
        areas = splitter.findall("DockArea")
        assert len(areas) == int(splitter.get("count", 0)) == len(splitter.get("sizes", "").split(";"))
        for plot in splitter.iter("plot"):
            for curve in plot.findall("curve"):
                names = [curve.get("name")]
                if plot.get("mode") == "XYPlot":
                    names = [curve.get("curve_x"), curve.get("curve_y")]
                curves += 1
                for label in names:
                    assert label in snippets or without_places(str(label)) in fields
    assert curves > 10


def test_functions_of_plotjuggler_compute_what_logreel_draws(made: Path) -> None:
    root = ET.parse(made / "drive.plotjuggler.xml").getroot()
    snippets = {str(one.get("name")): str(one.findtext("function")) for one in root.iter("snippet")}
    yaw = next(body for name, body in snippets.items() if name.endswith("/yaw"))
    # An expression of Lua that is one of Python, too.
    lua = types.SimpleNamespace(
        deg=math.degrees, asin=math.asin, max=max, min=min, sqrt=math.sqrt, atan2=math.atan2, atan=None
    )
    angle = 0.7
    values = {"value": math.cos(angle / 2), "v1": 0.0, "v2": 0.0, "v3": math.sin(angle / 2)}
    found = eval(yaw.removeprefix("return "), {"math": lua, **values})  # noqa: S307
    assert math.isclose(found, math.degrees(angle))


def test_a_layout_lies_beside_a_folder_and_not_in_it() -> None:
    layout = PROGRAMS["foxglove"]
    assert layout.path("a/b.mcap") == layout.path("a/b/") == layout.path("a/b") == "a/b.foxglove.json"


def test_names_of_curves() -> None:
    assert foxglove_path(Series("/a/b", "pose.x")) == "/a/b.pose.x"
    assert foxglove_path(Series("sensor[1]", "t", "degrees")) == '"sensor[1]".t.@mul(57.29577951308232)'
    assert foxglove_path(Series("a", "z", "negative")) == "a.z.@negative"
    assert plotjuggler_name("/odom", "pose.position.x") == "/odom/pose/position/x"


def test_hostile_names_stay_inside_of_their_file(tmp_path: Path) -> None:
    topic = "/a\"<&'>b"
    rows = [{"topic": topic, "time_ns": 10**18 + n * 10**8, "data": {"x": n * 1.5}} for n in range(20)]
    lines = io.BytesIO("".join(json.dumps(row) + "\n" for row in rows).encode())
    logreel.record(iter(lines), tmp_path / "a.mcap")
    for program, suffix in (("foxglove", ".foxglove.json"), ("plotjuggler", ".plotjuggler.xml")):
        logreel.convert(tmp_path / "a.mcap", tmp_path / "b.mcap", layout=program, force=True)
        text = (tmp_path / f"b{suffix}").read_text()
        if program == "foxglove":
            (plot,) = shown(json.loads(text))["Plot"]
            assert resolved(logreel.open(tmp_path / "b.mcap"), plot["paths"][0]["value"])[1] == 1.5
        else:
            (curve,) = ET.fromstring(text).iter("curve")
            assert curve.get("name") == f"{topic}/x"


def test_renamed_channels_are_shown_by_their_new_names(tmp_path: Path) -> None:
    logreel.convert(short_flight(), tmp_path / "a.mcap", layout="foxglove", names="mcap")
    panels = shown(json.loads((tmp_path / "a.foxglove.json").read_text()))
    log = logreel.open(tmp_path / "a.mcap")
    values = [path["value"] for plot in panels["Plot"] for path in plot["paths"]]
    assert any(value.startswith("battery_status/0.") for value in values)
    assert all(len(resolved(log, value)) for value in values)


def test_a_blueprint_shows_entities_of_the_recording(tmp_path: Path) -> None:
    pytest.importorskip("rerun", reason="needs rerun-sdk")
    done = logreel.convert(drive(), tmp_path / "a.rrd", layout="rerun")
    assert "the layout for Rerun is" in done.notes[-1]
    program = [sys.executable, "-m", "rerun_cli", "rrd"]
    subprocess.run([*program, "verify", tmp_path / "a.rbl"], check=True, capture_output=True)
    printed = subprocess.run(
        [*program, "print", "-vvv", tmp_path / "a.rbl"], check=True, capture_output=True, text=True
    ).stdout
    views = re.findall(r"\[(TimeSeries|Map|3D|2D)\]", printed)
    assert {"TimeSeries", "Map", "3D", "2D"} == set(views)
    known = recordings.entities(tmp_path / "a.rrd")
    contents = {path for row in re.findall(r"\[(/[^\]\n]*)\]", printed) for path in row.split(", ")}
    curves = {path for path in contents if path.startswith("/odom/pose/")}
    assert "/odom/pose/pose/position/x" in curves
    assert curves <= set(known)
    assert "/gps/fix/**" in contents


def test_layouts_lie_beside_outputs_that_the_program_opens(tmp_path: Path, run: Run) -> None:
    for name, program, why in (
        ("a.csv/", "foxglove", "lies beside a log"),
        ("a.mcap", "rerun", r"lies beside a recording, x\.rrd"),
        ("a.rrd", "plotjuggler", "lies beside a log"),
    ):
        with pytest.raises(UsageError, match=why):
            logreel.convert(short_flight(), f"{tmp_path}/{name}", layout=program)
    (tmp_path / "a.foxglove.json").write_text("mine")
    with pytest.raises(LogError, match="exists"):
        logreel.convert(short_flight(), tmp_path / "a.mcap", layout="foxglove")
    assert not (tmp_path / "a.mcap").exists()
    assert (tmp_path / "a.foxglove.json").read_text() == "mine"
    (tmp_path / "f.ulg").write_bytes(short_flight())
    done = run("convert", tmp_path / "f.ulg", tmp_path / "a.mcap", "--layout", "foxglove", "--force")
    assert done.code == 0
    assert "the layout for Foxglove is" in done.err
    assert json.loads((tmp_path / "a.foxglove.json").read_text())["layout"]
