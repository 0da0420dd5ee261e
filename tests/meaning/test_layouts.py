"""Layout files: what is refused, and which fields of another log a layout means."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import logreel
from browser.samples import SAMPLES, content
from logreel.errors import UsageError
from logreel.lenses.facts import Series
from logreel.meaning.layouts import (
    BYTES,
    CURVES,
    MEANINGS,
    PANELS,
    LayoutCurve,
    checked_layout,
    found_series,
    meanings,
    read_layout,
)

PLOT = {"kind": "plot", "series": [{"topic": "battery_status", "field": "voltage_v"}]}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ([], "no JSON object"),
        ({"logreel": "notes", "panels": []}, "says that it is a 'notes'"),
        ({"version": 3, "panels": []}, "version 3, this logreel reads up to 2"),
        ({"panels": {}}, "no list of panels"),
        ({"panels": [PLOT] * (PANELS + 1)}, "201 panels"),
        ({"panels": [PLOT, 5]}, "panels[1] is no object"),
        ({"panels": [{"series": []}]}, "panels[0].kind"),
        ({"panels": [{**PLOT, "title": 5}]}, "panels[0].title"),
        ({"panels": [{**PLOT, "at": "left"}]}, "panels[0].at is not one of row, right, below"),
        ({"panels": [{**PLOT, "wide": -1}]}, "panels[0].wide"),
        ({"panels": [{**PLOT, "height": True}]}, "panels[0].height"),
        ({"panels": [{"kind": "plot", "series": [3]}]}, "panels[0].series[0] is no object"),
        ({"panels": [{"kind": "plot", "series": [{"topic": 3}]}]}, "panels[0].series[0]: topic"),
        ({"panels": [{"kind": "plot", "series": [{}] * (CURVES + 1)}]}, "more than 64 curves"),
        ({"panels": [{"kind": "xy", "x": {"topic": "a", "field": "b" * 3000}}]}, "panels[0].x: field"),
    ],
)
def test_what_is_no_layout_is_refused_with_the_place(wrong: Any, words: str) -> None:
    with pytest.raises(UsageError) as error:
        checked_layout(wrong)
    assert words in str(error.value)


@pytest.mark.parametrize(
    "text", ["", "{", '{"panels": [', "[" * 100_000, '{"panels": [NaN]}', " " * (BYTES + 1), "\xff"]
)
def test_a_file_that_is_no_layout_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError) as error:
        read_layout(path)
    assert str(path) in str(error.value)
    assert "is no layout" in str(error.value)


def test_a_layout_keeps_what_the_page_needs(tmp_path: Path) -> None:
    data = {"logreel": "layout", "version": 1, "panels": [PLOT, {"kind": "map"}], "theme": "dark"}
    (tmp_path / "x.json").write_text(json.dumps(data))
    layout = read_layout(tmp_path / "x.json")
    assert layout.data == data
    assert [panel.panel for panel in layout.panels] == ["plot", "map"]
    assert layout.panels[0].curves == (LayoutCurve("battery_status", "voltage_v"),)


@pytest.mark.parametrize("name", SAMPLES)
def test_meanings_are_series_of_the_log(name: str) -> None:
    with logreel.open(content(name)) as log:
        known = meanings(log)
        assert {*known} <= {*MEANINGS}
        assert "altitude" in known
        for meaning in known:
            assert found_series(log, LayoutCurve(means=meaning), known) is not None


def test_one_layout_means_the_fields_of_each_log() -> None:
    wanted = LayoutCurve("vehicle_attitude", "q", "roll", means="roll", label="Roll")
    found = {}
    for name in ("ulog", "rosbag", "koblenz", "carla"):
        with logreel.open(content(name)) as log:
            found[name] = found_series(log, wanted, meanings(log))
    assert found == {
        "ulog": Series("vehicle_attitude", "q", "roll", "Roll"),
        "rosbag": Series("/odom", "pose.pose.orientation", "roll", "Roll", "deg"),
        "koblenz": Series("RobotPoseM", "quaternion", "roll", "Roll", "deg"),
        "carla": None,
    }


@pytest.mark.parametrize(
    ("topic", "wanted", "found"),
    [
        ("/robot1/imu/data", "/robot1/imu/data", True),
        ("/robot1/imu/data", "/robot2/imu/data", True),
        ("/robot1/imu/data", "/imu/data", True),
        ("/imu/data", "/robot1/imu/data", True),
        ("/fleet/robot1/imu/data", "imu/data", True),
        ("/fleet/robot1/imu/data", "data", True),
        ("/gps/data", "/imu/data/raw", False),
        ("/fleet/robot1/imu/data", "/imu/data", False),
        ("/imu", "/gps", False),
    ],
)
def test_topics_fit_without_their_namespace(tmp_path: Path, topic: str, wanted: str, found: bool) -> None:
    with logreel.create(tmp_path / "x.mcap") as out:
        out.write(out.add_channel(topic, logreel.Schema("t/X", "ros1msg", "float64 x\n")), 1, {"x": 1.5})
    with logreel.open(tmp_path / "x.mcap") as log:
        series = found_series(log, LayoutCurve(wanted, "x"), {})
        assert (series and series.topic) == (topic if found else None)
        assert found_series(log, LayoutCurve(wanted, "y"), {}) is None
