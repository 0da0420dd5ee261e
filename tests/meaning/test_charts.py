"""Charts that logs deserve, the curves of their series, and bands such as flight modes."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import logreel
from logreel.errors import LogError, UsageError
from logreel.formats.ulog.meaning.flight import MAIN_STATES, nav_state_names
from logreel.lenses.facts import Chart, Series
from logreel.log.columns import ColumnReader
from logreel.log.log import Channel
from logreel.meaning.charts import MAX_CHARTS, bands, charts, first_charts, side_panels
from logreel.meaning.curves import FUNCTIONS, series_curve
from support.builders.contents import SAMPLES
from support.samples.ulog.builder import flight


@pytest.fixture(scope="module")
def log() -> logreel.Log:
    return logreel.open(flight())


def titled(found: list[Chart], title: str) -> Chart:
    return next(chart for chart in found if chart.title == title)


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_each_sample_has_charts_whose_series_can_be_read(name: str) -> None:
    with logreel.open(SAMPLES[name]()) as log:
        found = charts(log)
        assert found
        assert len(found) <= MAX_CHARTS
        assert 1 <= first_charts(found) <= len(found)
        for chart in found:
            assert chart.title
            for series in chart.series:
                curve = series_curve(log, series, pixels=100)
                assert len(curve.times), (chart.title, series)
                assert len(curve.times) == len(curve.values) <= 400
                assert np.all(np.diff(curve.times) >= 0)


def test_a_flight_begins_with_attitude_altitude_and_battery(log: logreel.Log) -> None:
    found = charts(log)
    assert [chart.title for chart in found[: first_charts(found)]] == ["Attitude", "Altitude", "Battery"]
    assert side_panels(log)[0] == "map"
    assert "Spectrum of the acceleration" in [chart.title for chart in found]


def test_series_have_the_values_of_the_log(log: logreel.Log) -> None:
    # Not with roll and pitch, which it would flatten.
    assert [series.label for series in titled(charts(log), "Attitude").series] == ["roll", "pitch"]
    attitude = titled(charts(log), "Yaw angle")
    w, x, y, z = log["vehicle_attitude"]["q"].astype(float).T
    yaw = np.degrees(np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)))
    curve = series_curve(log, attitude.series[0])
    assert curve.unit == "deg"
    np.testing.assert_array_equal(curve.times, log["vehicle_attitude"].times)
    np.testing.assert_allclose(curve.values, yaw, atol=1e-9)


def test_a_reduced_series_keeps_the_extrema_when_it_is_read_in_parts(
    log: logreel.Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    series = Series("sensor_combined", "accelerometer_m_s2[2]")
    whole = series_curve(log, series)
    monkeypatch.setattr("logreel.meaning.curves.WINDOW", 1000)
    parts = series_curve(log, series, pixels=300)
    assert len(parts.times) <= 1200 < len(whole.times) == parts.count
    assert (parts.values.min(), parts.values.max()) == (whole.values.min(), whole.values.max())
    assert (parts.times[0], parts.times[-1]) == (whole.times[0], whole.times[-1])


def test_where_selects_list_items_by_name() -> None:
    with logreel.open(SAMPLES[".bag"]()) as bag:
        ch = bag["/joint_states"]
        name = "wheel_right_joint"
        curve = series_curve(bag, Series("/joint_states", "position", where=f"name={name}"))
        rows = [message.decode() for message in ch]
        expected = [row["position"][row["name"].index(name)] for row in rows]
        np.testing.assert_array_equal(curve.values, expected)
        one = series_curve(
            bag,
            Series(
                "/tf",
                "transforms.transform.rotation",
                "yaw",
                where="transforms.child_frame_id=base_footprint",
            ),
        )
        turns = [
            t["transform"]["rotation"]
            for message in bag["/tf"]
            for t in message.decode()["transforms"]
            if t["child_frame_id"] == "base_footprint"
        ]
        yaws = [
            np.degrees(
                np.arctan2(2 * (q["w"] * q["z"] + q["x"] * q["y"]), 1 - 2 * (q["y"] ** 2 + q["z"] ** 2))
            )
            for q in turns
        ]
        np.testing.assert_allclose(one.values, yaws, atol=1e-9)


def test_functions_of_times_need_no_field(log: logreel.Log) -> None:
    times = log["cpuload"].times
    found = series_curve(log, Series("cpuload", "", "interval"))
    np.testing.assert_allclose(found.values[1:], np.diff(times) / 1e6)
    assert np.isnan(found.values[0])
    assert found.unit == "ms"
    rate = series_curve(log, Series("cpuload", "", "rate"))
    np.testing.assert_allclose(rate.values[1:], 1e9 / np.diff(times))


def test_norm_derivative_and_sign(log: logreel.Log) -> None:
    accel = series_curve(log, Series("sensor_combined", "accelerometer_m_s2", "norm"))
    np.testing.assert_allclose(
        accel.values, np.linalg.norm(log["sensor_combined"]["accelerometer_m_s2"].astype(float), axis=1)
    )
    z = log["vehicle_local_position"]["z"].astype(float)
    t = log["vehicle_local_position"].times
    climb = series_curve(log, Series("vehicle_local_position", "z", "derivative"))
    np.testing.assert_allclose(climb.values[1:], np.diff(z) / (np.diff(t) / 1e9))
    assert np.isnan(climb.values[0])
    up = series_curve(log, Series("vehicle_local_position", "z", "negative"))
    np.testing.assert_array_equal(up.values, -z)


def test_every_function_says_what_it_does() -> None:
    for name, function in FUNCTIONS.items():
        assert function.name == name
        assert function.text


@pytest.mark.parametrize(
    "series",
    [
        Series("vehicle_attitude", "q"),
        Series("battery_status", "voltage_v", "roll"),
        Series("battery_status", "voltage_v", "no_such"),
        Series("battery_status", "no_such"),
        Series("no_such", "field"),
    ],
)
def test_what_cannot_be_a_curve_is_an_error(log: logreel.Log, series: Series) -> None:
    with pytest.raises(LogError):
        series_curve(log, series)


def test_the_number_of_inputs_is_said(log: logreel.Log) -> None:
    with pytest.raises(UsageError, match="has 4 numbers: for one curve there must be 1"):
        series_curve(log, Series("vehicle_attitude", "q"))


def test_bands_name_the_modes_and_where_the_names_come_from(log: logreel.Log) -> None:
    found = bands(log)
    modes = [band for band in found if band.kind == "mode"]
    assert [band.label for band in modes] == ["Position", "Mission", "Land"]
    assert modes[1].source == "vehicle_status.nav_state = 3"
    assert all(a.end == b.start for a, b in itertools.pairwise(modes))
    (armed,) = [band for band in found if band.kind == "armed"]
    status = log["vehicle_status"]
    times = status.times[status["arming_state"] == 2]
    assert (armed.start, armed.label) == (times[0], "Armed")
    assert all(log.start <= band.start < band.end <= log.end for band in found)  # type: ignore[operator]


def test_numbers_of_modes_that_were_used_again_have_the_name_of_their_release(shared: Path) -> None:
    with logreel.open(shared / "data" / "ulog" / "quadrotor_local.ulg") as new:
        names = nav_state_names(new["vehicle_status"])
        assert names[6] == "Position slow"
        assert {band.kind for band in bands(new)} >= {"mode", "armed"}
    with logreel.open(shared / "data" / "ulog" / "sample.ulg") as old:
        assert nav_state_names(old["vehicle_status"])[6] == "RC recovery"
    assert MAIN_STATES[3] == "Mission"


def test_real_flights_of_all_generations_show_attitude(shared: Path) -> None:
    for path in sorted((shared / "data" / "ulog").glob("*.ulg")):
        with logreel.open(path) as log:
            found = charts(log)
            if "vehicle_attitude" in log:
                assert found[0].title == "Attitude", path.name
            for chart in found:
                for series in chart.series:
                    assert len(series_curve(log, series, pixels=50).times), (path.name, chart.title, series)


def test_a_damaged_log_has_the_charts_of_what_is_left() -> None:
    data = flight()
    with logreel.open(data[: len(data) // 2]) as log:
        assert charts(log)[0].title == "Attitude"
        assert bands(log)


def test_channels_behind_the_last_chart_are_not_read_and_fields_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "many.mcap"
    schema = logreel.Schema("robot/Part", "ros1msg", "float64 a\nfloat32 b\nstring text\n")
    with logreel.create(path) as out:
        for number in range(3 * MAX_CHARTS):
            channel = out.add_channel(f"/part{number}", schema)
            for n in range(3):
                out.write(channel, n, {"a": n, "b": -n, "text": "nothing to draw"})
    read: list[list[str]] = []

    class Counted(ColumnReader):
        def __init__(self, ch: Channel, wanted: list[str] | None) -> None:
            read.append([ch.topic, *(wanted or [])])
            super().__init__(ch, wanted)

    monkeypatch.setattr("logreel.meaning.charts.ColumnReader", Counted)
    with logreel.open(path) as log:
        found = charts(log)
        assert len(found) == MAX_CHARTS
        assert [series.field for chart in found[:2] for series in chart.series] == ["a", "b"]
    assert {tuple(fields) for _, *fields in read} == {("a", "b")}
    assert len({topic for topic, *_ in read}) == MAX_CHARTS // 2


def test_an_empty_log_has_no_charts(tmp_path: Path) -> None:
    path = tmp_path / "empty.mcap"
    with logreel.create(path):
        pass
    with logreel.open(path) as log:
        assert charts(log) == []
        assert bands(log) == []
        assert side_panels(log) == []
