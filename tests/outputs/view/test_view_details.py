"""What the viewer answers about details: messages, text, parameters, problems, charts, spectra, files."""

from __future__ import annotations

import csv
import io
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import logreel
from logreel.meaning.curves import spectral_density
from logreel.outputs.view.series import in_decibels
from support.builders.sample_logs import damaged, short_flight
from support.harness.viewing import Page, viewing

ATTITUDE = {"topic": "vehicle_attitude", "field": "q[0]"}


@pytest.fixture(scope="module")
def flight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("viewed") / "flight.ulg"
    path.write_bytes(short_flight())
    return path


@pytest.fixture(scope="module")
def page(flight: Path) -> Iterator[Page]:
    with viewing(flight) as page:
        yield page


def measured(table: Any) -> Any:
    """Return the values of a series without those that break its line in gaps."""
    values = table["v"].to_numpy()
    return values[~np.isnan(values)]


def test_message_is_the_latest_at_the_moment_and_steps_go_on_from_it(page: Page, flight: Path) -> None:
    with logreel.open(flight) as log:
        ch = log["vehicle_attitude"]
        at = int(ch.times[7]) - log.start
        one = page.json("message", topic=ch.topic, at=at + 1)
        assert (one["row"], one["t"], one["size"], one["count"]) == (7, at, len(ch[7].data), len(ch))
        assert one["value"]["q"] == pytest.approx(ch["q"][7].tolist())
        assert page.json("message", topic=ch.topic, at=at + 1, step=2)["row"] == 9
        assert page.json("message", topic=ch.topic, at=at + 1, step=-100)["row"] == 0
        assert page.json("message", topic=ch.topic, at=-(10**15))["row"] is None
        assert page.json("message", topic=ch.topic, at=-(10**15), step=1)["row"] == 0


def test_array_has_the_items_of_one_message(page: Page, flight: Path) -> None:
    with logreel.open(flight) as log:
        at = int(log["vehicle_attitude"].times[3]) - log.start
        got = page.json("array", topic="vehicle_attitude", field="q", at=at)
        assert got["values"] == pytest.approx(log["vehicle_attitude"]["q"][3].tolist())
        assert (got["t"], got["count"]) == (at, 4)


def test_text_is_filtered_by_level_source_words_and_interval(page: Page, flight: Path) -> None:
    with logreel.open(flight) as log:
        every, start = list(log.text), log.start
    got = page.json("text")
    assert [line["text"] for line in got["lines"]] == [line.text for line in every]
    some = page.json("text", limit=1)
    assert len(some["lines"]) == 1
    rest = page.json("text", after=some["next"])
    assert some["lines"] + rest["lines"] == got["lines"]
    word = every[-1].text.split()[0].upper()
    found = page.json("text", q=word)["lines"]
    assert [line["text"] for line in found] == [one.text for one in every if word.lower() in one.text.lower()]
    last = every[-1].time - start
    assert page.json("text", from_=last)["lines"][0]["t"] == last
    severe = page.json("text", level="error")["lines"]
    assert all(line["level"] is None or line["level"] <= 3 for line in severe)


def test_parameters_have_value_default_and_changes(page: Page, flight: Path) -> None:
    got = {one["name"]: one for one in page.json("parameters")}
    with logreel.open(flight) as log:
        assert set(got) == set(log.parameters)
        for name, one in log.parameters.items():
            assert got[name]["value"] == one.value
            assert [c["value"] for c in got[name]["changes"]] == [c.value for c in one.changes]


def test_problems_of_a_cut_log_have_their_places(tmp_path: Path) -> None:
    path = tmp_path / "cut.ulg"
    path.write_bytes(damaged())
    with viewing(path) as page:
        got = page.json("problems")
        with logreel.open(path) as log:
            assert [(p["code"], p["offset"], p["text"]) for p in got] == [
                (p.code, p.offset, p.text) for p in log.problems
            ]
            (lost,) = [p for p in got if p["lost"]]
            assert 0 < lost["from"] <= log.duration
        assert page.json("session", None)["logs"][0]["lost"] == 1


def test_charts_name_series_that_can_be_drawn(page: Page) -> None:
    got = page.json("charts")
    assert 0 < got["first"] <= len(got["panels"])
    for panel in got["panels"][: got["first"]]:
        for one in panel["series"]:
            wanted = {name: one[name] for name in ("topic", "field", "function", "where")}
            table = page.arrow("series", **wanted)
            assert len(table) > 0


def test_functions_are_applied_to_fields(page: Page, flight: Path) -> None:
    names = [one["name"] for one in page.json("functions", None)]
    assert "roll" in names
    got = page.arrow("series", topic="vehicle_attitude", field="q", function="norm")
    np.testing.assert_allclose(measured(got), 1, atol=1e-3)
    assert page.get("series", topic="vehicle_attitude", field="q", function="nothing").status == 400


def test_sql_expressions_are_series(page: Page, flight: Path) -> None:
    pytest.importorskip("duckdb")
    got = page.arrow("series", topic="vehicle_attitude", sql='"q[0]" * 2 -- twice')
    with logreel.open(flight) as log:
        np.testing.assert_array_equal(measured(got), log["vehicle_attitude"]["q[0]"].astype(np.float64) * 2)


def test_pairs_have_y_by_its_last_value_at_the_times_of_x(page: Page, flight: Path) -> None:
    got = page.arrow("pairs", x="vehicle_local_position.x", y="vehicle_attitude.q[0]")
    with logreel.open(flight) as log:
        x, y = log["vehicle_local_position"], log["vehicle_attitude"]
        rows = y.times.searchsorted(x.times, side="right") - 1
        expected = np.where(rows >= 0, y["q[0]"][np.maximum(rows, 0)], np.nan)
        np.testing.assert_array_equal(got["x"].to_numpy(), x["x"])
        np.testing.assert_array_equal(got["y"].to_numpy(), expected)


def test_spectrogram_shows_the_frequency_of_a_sine() -> None:
    t = np.arange(4096) / 1000.0
    rows = np.stack([np.sin(2 * np.pi * 125 * t[i : i + 128]) for i in range(0, 3000, 500)])
    picture, least, most = in_decibels(spectral_density(rows))
    assert picture.shape == (64, 6)
    # 64 rows are the frequencies from 7.8 Hz to 500 Hz: 125 Hz is number 16, in row 15.
    assert (picture.argmax(axis=0) == 15).all()
    assert picture.max() == 255
    assert most - least == 80


def test_an_array_before_the_first_message_is_empty(page: Page) -> None:
    got = page.json("array", topic="vehicle_attitude", field="q", at=-(10**12))
    assert got == {"t": None, "values": [], "unit": "", "count": 0}


def test_power_density_is_that_of_the_signal_whatever_the_rate() -> None:
    rate, samples = 250.0, 512
    noise = np.random.default_rng(1).normal(size=(64, samples))
    noise[:, 100] = np.nan
    power = spectral_density(noise, rate).sum(axis=1) * rate / samples
    assert power.mean() == pytest.approx(1.0, rel=0.05)


def test_spectrogram_of_a_field_says_its_axes(page: Page) -> None:
    topic = "sensor_combined"
    body = page.get("spectrogram", topic=topic, field="accelerometer_m_s2[2]", width=32, height=16).body
    (size,) = struct.unpack_from("<I", body)
    head = json.loads(body[4 : 4 + size])
    assert len(body) - 4 - size == head["width"] * head["height"] == 32 * 16
    rate = next(one["rate"] for one in page.json("channels") if one["topic"] == topic)
    assert head["frequency_max"] == pytest.approx(rate / 2, rel=0.2)


def test_visible_fields_are_exported_as_csv_and_parquet(page: Page, flight: Path) -> None:
    with logreel.open(flight) as log:
        ch = log["vehicle_attitude"]
        lo, hi = (int(ch.times[i]) - log.start for i in (10, 20))
        reply = page.get(
            "export", kind="csv", s=["vehicle_attitude.q[0]", "vehicle_attitude.q[1]"], from_=lo, to=hi
        )
        assert reply.headers["content-disposition"] == 'attachment; filename="flight.csv"'
        rows = list(csv.reader(io.StringIO(reply.body.decode())))
        assert rows[0] == ["time_ns", "q[0]", "q[1]"]
        assert [int(row[0]) for row in rows[1:]] == ch.times[10:20].tolist()
        body = page.get("export", kind="parquet", topic="vehicle_attitude", from_=lo, to=hi).body
        assert pq.read_table(io.BytesIO(body)).num_rows == 10


def test_visible_interval_is_exported_as_the_bytes_of_slice(page: Page, flight: Path, tmp_path: Path) -> None:
    with logreel.open(flight) as log:
        lo, hi = 10**9, 2 * 10**9
        logreel.slice(log, tmp_path / "part.ulg", start=log.start + lo, end=log.start + hi)
    body = page.get("export", kind="log", from_=lo, to=hi).body
    assert body == (tmp_path / "part.ulg").read_bytes()
