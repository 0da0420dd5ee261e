"""Values at regular times, against a search through all messages."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import logreel
from logreel.errors import NotFoundError, UsageError
from logreel.outputs.dataset.planning import NEVER, LogPlan, VectorSampler, stretches
from logreel.outputs.dataset.spec import Feature, read_spec
from support.builders.training_logs import robot_spec, write_robot
from support.samples.ulog.builder import Builder, flight

FAR = 10**12


def log_of(times: list[int], values: list[float]) -> bytes:
    """A log with one topic, at times in µs that may be in any order."""
    out = Builder(1).flags().format("a:uint64_t timestamp;float x;uint8_t[2] c;").subscribe("a", 0)
    for t, x in zip(times, values, strict=True):
        out.data(0, struct.pack("<Qf2B", t, x, 1, 2))
    return out.bytes()


def naive(times: list[int], values: list[float], at: int, method: str) -> tuple[float | None, int | None]:
    """Return value and distance at a time in ns, by looking at every message; of equal times the last one counts."""
    every = sorted(((t * 1000, n, x) for n, (t, x) in enumerate(zip(times, values, strict=True))))
    before = max((one for one in every if one[0] <= at), default=None)
    after = min((one for one in every if one[0] >= at), key=lambda one: one[0], default=None)
    if method == "previous" or (method == "nearest" and after is None):
        return (None, None) if before is None else (before[2], at - before[0])
    if method == "nearest":
        if before is None or at - before[0] > after[0] - at:
            return after[2], after[0] - at
        return before[2], at - before[0]
    if before is None or after is None:
        return None, None
    span = after[0] - before[0]
    part = (at - before[0]) / span if span else 0.0
    return before[2] + part * (after[2] - before[2]), max(at - before[0], after[0] - at)


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.integers(1000, 1400), st.integers(-50, 50)), min_size=1, max_size=30),
    st.lists(st.integers(900_000, 1_500_000), min_size=1, max_size=20),
    st.sampled_from(["nearest", "previous", "linear"]),
    st.sampled_from([0, 20_000, -20_000]),
)
def test_values_are_those_of_a_search(
    messages: list[tuple[int, int]], at: list[int], method: str, offset: int
) -> None:
    times, values = [t for t, _ in messages], [float(x) for _, x in messages]
    feature = Feature("f", ("a.x", "a.c"), method=method, max_error=FAR, offset=offset)
    with logreel.open(log_of(times, values)) as log:
        found = VectorSampler(log, feature).at(np.array(sorted(at), np.int64))
    assert found.names == ("x", "c[0]", "c[1]")
    for i, t in enumerate(sorted(at)):
        value, distance = naive(times, values, t + offset, method)
        if value is None:
            assert found.errors[i] == NEVER
        else:
            assert found.errors[i] == distance
            assert found.values[i, 0] == pytest.approx(value, abs=1e-4)
            assert found.values[i, 1:].tolist() == [1, 2]


def test_order_and_repeats_of_fields_are_kept() -> None:
    feature = Feature("f", ("a.c[1]", "a.x", "a.c[1]", "a.c[0]"), max_error=FAR)
    with logreel.open(log_of([1000, 1100], [5, 6])) as log:
        found = VectorSampler(log, feature).at(np.array([1_000_000]))
    assert found.values.tolist() == [[2, 5, 2, 1]]


def test_what_is_no_finite_number_is_no_value() -> None:
    feature = Feature("f", ("a.x",), max_error=FAR)
    with logreel.open(log_of([1000, 1100, 1200], [5, float("nan"), float("inf")])) as log:
        found = VectorSampler(log, feature).at(np.array([1_000_000, 1_100_000, 1_200_000]))
    assert (found.errors == NEVER).tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (("a",), "is not one field of one channel"),
        (("b.x",), "no channel 'b"),
        (("a.y",), "no field 'y'"),
    ],
)
def test_wrong_fields_are_refused(fields: tuple[str, ...], text: str) -> None:
    with logreel.open(log_of([1000], [5])) as log, pytest.raises((UsageError, NotFoundError), match=text):
        VectorSampler(log, Feature("f", fields, max_error=FAR))


def test_names_have_to_fit_the_elements() -> None:
    with logreel.open(log_of([1000], [5])) as log, pytest.raises(UsageError, match="2 names for 3 elements"):
        VectorSampler(log, Feature("f", ("a.x", "a.c"), names=("p", "q"), max_error=FAR))


def test_armed_intervals_of_a_flight_are_episodes() -> None:
    with logreel.open(flight(20)) as log:
        from logreel.meaning.charts import bands

        wanted = [(one.start, one.end) for one in bands(log) if one.kind == "armed"]
        features = {"a": {"fields": ["vehicle_attitude.q"], "max_error": "1s"}}
        spec: dict[str, Any] = {"rate": 5, "features": features, "episodes": {"band": "armed"}}
        assert [(one.start, one.end) for one in stretches(log, read_spec(spec))] == wanted
        assert wanted
        named = read_spec(spec | {"episodes": {"band": "mode=Nothing"}})
        assert stretches(log, named) == []
        with pytest.raises(NotFoundError, match="armed"):
            stretches(log, read_spec(spec | {"episodes": {"band": "harmed"}}))


def test_frames_of_parts_are_in_no_other_part(tmp_path: Path) -> None:
    with logreel.open(write_robot(tmp_path / "x.bag", 3.0, gap=(1.0, 1.5))) as log:
        (one,) = LogPlan(log, read_spec(robot_spec())).stretches()
        parts = one.parts()
        good = np.flatnonzero(one.good())
    assert np.array_equal(np.concatenate(parts), good)
    assert all((np.diff(part) == 1).all() for part in parts)
    assert len(parts) == 2
