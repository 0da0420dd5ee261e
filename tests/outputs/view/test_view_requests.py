"""What the viewer answers about a log: session, channels, series, overview."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import logreel
from logreel.meaning.curves import curves
from support.builders.pitfalls import pitfalls
from support.builders.sample_logs import short_flight
from support.harness.viewing import Page, streams, viewing

FIELD = {"topic": "vehicle_attitude", "field": "q[0]"}


WITH_GAPS = (
    {"topic": "battery_status", "field": "voltage_v"},
    {"topic": "vehicle_local_position_setpoint", "field": "z"},
    {"topic": "vehicle_status", "field": "nav_state"},
)


@pytest.fixture(scope="module")
def flight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("viewed") / "flight.ulg"
    path.write_bytes(short_flight())
    return path


@pytest.fixture(scope="module")
def page(flight: Path) -> Iterator[Page]:
    with viewing(flight) as page:
        # This answer waits until the log is open.
        page.json("session", None)
        yield page


def test_session_has_each_log_with_its_times_as_text(page: Page, flight: Path) -> None:
    (one,) = page.json("session", None)["logs"]
    with logreel.open(flight) as log:
        assert (one["id"], one["name"], one["format"]) == ("0", "flight.ulg", "ulog")
        assert int(one["start"]) == log.start
        assert one["duration"] == log.duration
        assert one["messages"] == log.message_count
        assert one["opened"]
        assert one["error"] is None


def test_curves_of_a_layout_are_series_of_the_log(page: Page) -> None:
    assert page.json("session", None)["logs"][0]["kind"] == "ulog rotary wing"
    wanted = [
        {"topic": "/robot/battery_status", "field": "voltage_v", "label": "U", "unit": "V"},
        {"topic": "/odom", "field": "pose.pose.orientation", "function": "roll", "means": "roll"},
        {"topic": "nothing", "field": "x"},
        {"topic": "battery_status", "field": "voltage_v"},
    ]
    got = page.json("layout", s=[json.dumps(one) for one in wanted])
    assert [one and (one["topic"], one["field"], one["function"], one["label"]) for one in got] == [
        ("battery_status", "voltage_v", "", "U"),
        ("vehicle_attitude", "q", "roll", "roll"),
        None,
        ("battery_status", "voltage_v", "", ""),
    ]
    assert page.json("charts")["meanings"]["roll"]["topic"] == "vehicle_attitude"
    assert page.get("layout", s='{"topic": 3}').status == 400


def test_channels_list_their_numeric_fields_by_the_paths_of_plot(page: Page) -> None:
    channels = {one["topic"]: one for one in page.json("channels")}
    q = next(one for one in channels["vehicle_attitude"]["fields"] if one["path"] == "q")
    assert (q["type"], q["items"], q["number"]) == ("float32", 4, True)
    assert channels["vehicle_attitude"]["count"] > 0


def test_states_have_names(page: Page) -> None:
    channels = {one["topic"]: one for one in page.json("channels")}
    fields = {one["path"]: one for one in channels["vehicle_status"]["fields"]}
    assert fields["nav_state"]["enum"]["3"] == "Mission"
    assert fields["arming_state"]["enum"]["2"] == "Armed"
    assert fields["timestamp"]["enum"] is None


def test_series_equal_the_curve_of_the_field(page: Page, flight: Path) -> None:
    got = page.arrow("series", **FIELD)
    with logreel.open(flight) as log:
        curve = curves(log, "vehicle_attitude.q[0]")[0].broken()
        np.testing.assert_array_equal(got["t"].to_numpy(), curve.times - log.start)
        np.testing.assert_array_equal(got["v"].to_numpy(), curve.values)
    assert got.schema.metadata[b"count"] == str(curve.count).encode()
    assert got.schema.metadata[b"points"] == b"all"


def test_series_of_a_window_have_one_point_on_either_side(page: Page) -> None:
    t = page.arrow("series", **FIELD)["t"].to_numpy()
    lo, hi = int(t[5]), int(t[9])
    got = page.arrow("series", **FIELD, from_=lo, to=hi)
    np.testing.assert_array_equal(got["t"].to_numpy(), t[4:10])
    assert got.schema.metadata[b"count"] == b"4"


def test_series_have_at_most_four_points_a_pixel(page: Page) -> None:
    got = page.arrow("series", **FIELD, px=3)
    assert len(got) <= 12
    assert got.schema.metadata[b"points"] == b"extrema"


def test_several_series_come_as_one_answer_and_a_wrong_one_says_why(page: Page) -> None:
    wanted = [FIELD, {"topic": "vehicle_attitude", "field": "nothing"}, {**FIELD, "field": "q[1]"}]
    good, bad, other = streams(page.get("series", s=[json.dumps(one) for one in wanted]).body)
    assert len(good) == len(other) > 0
    assert len(bad) == 0
    assert b"no field 'nothing'" in bad.schema.metadata[b"error"]


def test_overview_counts_the_messages_of_each_bin(page: Page, flight: Path) -> None:
    got = page.json("overview", bins=10)
    with logreel.open(flight) as log:
        assert len(got["density"]) == 10
        each = [ch.times for ch in log.channels.values() if not ch.reserved]
        inside = [(t >= log.start) & (t <= log.end) for t in each]
        assert sum(got["density"]) == pytest.approx(sum(map(np.count_nonzero, inside)), abs=1)
        assert sum(got["density"]) > 1000
    assert got["complete"] is True
    assert all(max(one["density"]) == 255 for one in got["channels"])


def test_gaps_are_those_of_stats_and_even_messages_leave_no_hole_in_the_density(tmp_path: Path) -> None:
    path = tmp_path / "pitfalls.ulg"
    path.write_bytes(pitfalls())
    with viewing(path) as page:
        # This answer waits until the log is open.
        start = int(page.json("session", None)["logs"][0]["start"])
        overview = page.json("overview", bins=1600)
        got = streams(page.get("series", s=[json.dumps(one) for one in WITH_GAPS]).body)
    stated = {
        (one.topic, gap.start_ns - start, gap.end_ns - start)
        for one in logreel.stats(path)
        for gap in one.gaps
    }
    assert {(gap["topic"], gap["from"], gap["to"]) for gap in overview["gaps"]} == stated
    assert len(stated) == 1
    # 20 Hz in bins of 25 ms: counted one by one, each second bin would be empty.
    (attitude,) = [one["density"] for one in overview["channels"] if one["topic"] == "vehicle_attitude"]
    assert min(attitude[:-4]) > 0.95 * max(attitude)
    (battery,) = [one["density"] for one in overview["channels"] if one["topic"] == "battery_status"]
    assert set(battery[490:700]) == {0}
    lines = [table.schema.metadata for table in got]
    assert [json.loads(about[b"gaps"]) for about in lines if b"gaps" in about] == [
        [[gap[1], gap[2]] for gap in stated]
    ]
    assert [about.get(b"held") for about in lines] == [None, b"yes", b"yes"]
    assert np.isnan(got[0]["v"].to_numpy()).sum() == 1
