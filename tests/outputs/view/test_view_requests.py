"""What the viewer answers about a log: session, channels, series, overview."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import logreel
from logreel.meaning.curves import curves
from support.builders.sample_logs import short_flight
from support.harness.viewing import Page, streams, viewing

FIELD = {"topic": "vehicle_attitude", "field": "q[0]"}


@pytest.fixture(scope="module")
def flight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("viewed") / "flight.ulg"
    path.write_bytes(short_flight())
    return path


@pytest.fixture(scope="module")
def page(flight: Path) -> Iterator[Page]:
    with viewing(flight) as page:
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
        (curve,) = curves(log, "vehicle_attitude.q[0]")
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
        assert sum(got["density"]) == sum(map(np.count_nonzero, inside)) > 1000
    assert got["complete"] is True
    assert all(max(one["density"]) == 255 for one in got["channels"])
