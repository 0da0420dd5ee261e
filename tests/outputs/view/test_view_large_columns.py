"""Large columns in the viewer: samples at once, the extrema of a pyramid when it is built."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import logreel
from logreel.io.source import Source
from logreel.meaning import pyramids as pyramid
from logreel.meaning.curves import curves, extrema_between, pixel_edges
from logreel.meaning.pyramids import key_of
from logreel.outputs.view import columns
from support.builders.sample_logs import short_flight
from support.harness.serving import eventually
from support.harness.viewing import viewing

FIELD = {"topic": "sensor_combined", "field": "accelerometer_m_s2[0]"}


@pytest.fixture
def flight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOGREEL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(columns, "ROWS_IN_MEMORY", 10)
    path = tmp_path / "flight.ulg"
    path.write_bytes(short_flight())
    return path


def test_series_of_a_pyramid_are_the_extrema_of_the_pixels(flight: Path) -> None:
    with logreel.open(flight) as log:
        (curve,) = curves(log, "sensor_combined.accelerometer_m_s2[0]")
        times, start = curve.times, log.start
    files = []
    for _ in range(2):
        with viewing(flight) as page:
            assert eventually(
                lambda page=page: page.arrow("series", **FIELD, px=5).schema.metadata[b"points"] == b"extrema"
            )
            lo, hi = int(times[20] - start), int(times[-20] - start)
            got = page.arrow("series", **FIELD, px=5, from_=lo, to=hi)
        inside = slice(20, len(times) - 20)
        rows = (
            extrema_between(times[inside], curve.values[inside], pixel_edges(lo + start, hi + start, 5)) + 20
        )
        np.testing.assert_array_equal(got["t"].to_numpy()[1:-1], times[rows] - start)
        np.testing.assert_array_equal(got["v"].to_numpy()[1:-1], curve.values[rows])
        # The second viewer finds the file of the first one. Those of the first screen are there, too.
        key = key_of(Source.open(flight).identity or "", FIELD["topic"], FIELD["field"])
        files.append(Path(pyramid.place_of(key) or "").stat().st_ino)
    assert files[0] == files[1]


def test_series_are_samples_until_the_pyramid_is_built(flight: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from threading import Event

    go_on = Event()
    build = pyramid.Pyramid.build

    def slow(*given: object, **named: object) -> object:
        go_on.wait()
        return build(*given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(columns, "PATIENCE", 0.0)
    monkeypatch.setattr(pyramid.Pyramid, "build", slow)
    with viewing(flight) as page:
        try:
            got = page.arrow("series", **FIELD, px=5)
            assert got.schema.metadata[b"points"] == b"sample"
            assert 5 < len(got) <= 20
            # What fits into the pixels is exact without a pyramid.
            whole = page.arrow("series", **FIELD, px=1000)
            assert whole.schema.metadata[b"points"] == b"all"
        finally:
            go_on.set()
        assert eventually(
            lambda: page.arrow("series", **FIELD, px=5).schema.metadata[b"points"] == b"extrema"
        )


def test_pairs_and_spectra_read_pyramids(flight: Path) -> None:
    with viewing(flight) as page:
        assert eventually(
            lambda: page.arrow("series", **FIELD, px=5).schema.metadata[b"points"] == b"extrema"
        )
        name = "sensor_combined.accelerometer_m_s2[0]"
        got = page.arrow("pairs", x=name, y=name)
        np.testing.assert_array_equal(got["x"].to_numpy(), got["y"].to_numpy())
        assert page.get("spectrogram", **FIELD, width=16, height=16).status == 200
