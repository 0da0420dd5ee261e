"""Tracks in the plane of a report have the lengths that the summary tells."""

from __future__ import annotations

import numpy as np
import pytest

from logreel.meaning.tracks import Track


@pytest.mark.parametrize("latitude", [0.0, 47.3, -65.0])
def test_metres_in_the_plane_are_those_on_the_globe(latitude: float) -> None:
    rng = np.random.default_rng(3)
    steps = rng.normal(scale=2e-5, size=(200, 2)).cumsum(axis=0)
    place = np.column_stack([latitude + steps[:, 0], 179.9995 + steps[:, 1], np.zeros(200)])
    place[:, 1] = (place[:, 1] + 180) % 360 - 180
    track = Track(np.arange(200, dtype=np.int64) * 10**9, place, is_geographic=True)
    east, north = track.in_plane(latitude, 180.0)
    assert np.hypot(np.diff(east), np.diff(north)).sum() == pytest.approx(track.way.length, rel=1e-3)


def test_a_thinned_track_keeps_its_ends_and_cuts() -> None:
    turn = np.linspace(0, 60, 20_000)
    place = np.stack([turn * np.cos(turn), turn * np.sin(turn), turn * 0], axis=-1)
    times = np.arange(20_000, dtype=np.int64) * 10**8
    times[12_000:] += 10**12
    track = Track(times, place, is_geographic=False)
    rows, cuts = track.thinned(1200)
    assert len(rows) <= 1200
    assert (rows[0], rows[-1]) == (0, 19_999)
    assert track.cuts.tolist() == [12_000]
    (cut,) = cuts.tolist()
    assert rows[cut - 1] < 12_000 <= rows[cut]
