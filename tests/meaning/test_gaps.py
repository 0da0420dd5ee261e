"""Gaps are found by one rule for stats, check, health, the viewer, transforms and tracks."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import logreel
from logreel.meaning.gaps import GAP_FACTOR, PERIODS, channel_gaps, gap_limit, regular_times, steps_of
from logreel.meaning.tracks import CUT_NS, Track
from logreel.ops.health.health import health
from logreel.ops.inspect.check import quick_check

times_in_order = st.lists(st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=200).map(
    lambda values: np.sort(np.array(values, np.int64))
)


@given(times_in_order)
def test_steps_do_not_overflow_and_the_limit_is_above_all_usual_ones(times: np.ndarray) -> None:
    steps = steps_of(times)
    assert steps.astype(object).tolist() == [int(b) - int(a) for a, b in pairwise(times)]
    # Half of the steps are at most the median, and 90 % at most the 90th percentile, so few are gaps.
    assert np.count_nonzero(steps > gap_limit(steps)) <= 0.1 * len(steps) + 1


def test_a_gap_is_longer_than_some_periods_and_than_what_is_usual_in_bursts() -> None:
    regular = np.full(100, 10, np.int64)
    assert gap_limit(regular) == GAP_FACTOR * 10
    bursts = np.tile(np.array([1, 1, 1, 97], np.int64), 25)
    assert gap_limit(bursts) == 2 * 97
    assert gap_limit(regular, 10**9) == 10**9
    assert gap_limit(np.zeros(0, np.int64)) == 0


def test_regular_times_have_few_long_steps_or_are_not_regular() -> None:
    times = np.arange(4 * PERIODS, dtype=np.int64) * 100
    times[PERIODS:] += 5000
    regular = regular_times(times)
    assert regular is not None
    assert (regular.period, regular.gaps.tolist()) == (100, [PERIODS - 1])
    assert regular_times(times[: PERIODS - 1]) is None
    assert regular_times(np.cumsum(np.tile([1, 1, 1, 300], 100))) is None


@pytest.mark.parametrize(("pause", "gaps"), [(5.5, 1), (7.0, 1), (4.5, 0)])
def test_stats_check_health_and_curves_find_the_same_gaps(pause: float, gaps: int, tmp_path: Path) -> None:
    path, period = tmp_path / "pause.mcap", 10**8
    with logreel.create(path) as out:
        channel = out.add_channel("a", logreel.Schema("Empty", "jsonschema", '{"type": "object"}'))
        for n in range(200):
            out.write(channel, n * period + (round((pause - 1) * period) if n >= 90 else 0), b"{}")
    with logreel.open(path) as log:
        assert logreel.stats(log)[0].gap_count == gaps
        assert len(channel_gaps(log["a"])) == gaps
        assert [f.code for f in quick_check(log).findings] == ["gap"] * gaps
        assert [d.detector for d in health(log).detections if d.detector == "gaps"] == ["gaps"] * gaps


def test_tracks_are_cut_at_gaps_and_not_in_bursts() -> None:
    times = np.arange(100, dtype=np.int64) * 10**9
    late = times + np.where(np.arange(100) >= 40, CUT_NS, 0)
    places = np.stack([np.arange(100.0), np.zeros(100), np.zeros(100)], axis=-1)
    assert Track(times, places, is_geographic=False).cuts.tolist() == []
    assert Track(late, places, is_geographic=False).cuts.tolist() == [40]
    assert Track(late, places, is_geographic=False).between(int(late[40]), None).cuts.tolist() == []
