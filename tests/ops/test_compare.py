"""Comparison of two runs: what begins to differ and when, what does not count, distances and lags."""

from __future__ import annotations

import functools
import json
import struct
from pathlib import Path

import numpy as np
import pytest

import logreel
from logreel.ops.inspect.windows import (
    LAG_STEP,
    best_lag,
    cohens_d,
    drift_begin,
    independent,
    kolmogorov_smirnov,
    wasserstein,
)
from support.builders.good_runs import VEHICLES, content, faulty, start_of
from support.harness.cli_runner import Run
from support.samples.ulog.builder import Builder

SECOND = 10**9


@functools.cache
def good(vehicle: str, seed: int) -> bytes:
    return content(VEHICLES[vehicle](seed))


def test_a_run_and_itself_differ_in_nothing() -> None:
    told = logreel.compare(good("rover", 0), good("rover", 0))
    assert told.same
    assert told.as_dict()["same"] is True


def test_another_good_run_gives_nothing() -> None:
    """``make bench-comparisons`` does this with 40 pairs of each of three vehicles."""
    told = logreel.compare(good("rover", 0), good("rover", 1))
    assert told.deviations == ()


@pytest.mark.parametrize(
    ("fault", "size", "what"),
    [
        ("stuck sensor", 2, "still"),
        ("dropped topic", 2, "gap"),
        ("lower rate", 2, "rate"),
        ("delay", 2, "delay"),
        ("clock back", 2, "order"),
        ("text", 2, "text"),
        ("jump", 2, "step"),
        ("noise", 2, "spread"),
        ("no number", 2, "nan"),
        ("jitter", 1, "jitter"),
        ("drift", 2, "level"),
    ],
)
def test_a_fault_is_the_first_deviation_at_its_time(fault: str, size: int, what: str) -> None:
    check_first("rover", fault, size, what)


@pytest.mark.parametrize(
    ("vehicle", "fault", "what"),
    [
        ("multicopter", "parameter", "parameter"),
        ("multicopter", "saturation", "still"),
        ("car", "saturation", "near"),
        ("car", "mode flip", "step"),
        ("car", "bias", "level"),
    ],
)
def test_faults_of_other_vehicles(vehicle: str, fault: str, what: str) -> None:
    """Each is found in another way: settings, limits, wheels that turn alike, gears, and a jump that is no drift."""
    check_first(vehicle, fault, 2, what)


def check_first(vehicle: str, fault: str, size: int, what: str) -> None:
    run, at = faulty(vehicle, 1000, fault, size) or (None, None)
    assert run is not None
    assert at is not None
    told = logreel.compare(good(vehicle, 0), content(run))
    first = told.deviations[0]
    assert first.onset_ns is not None
    assert abs(first.onset_ns - start_of(run) - at * SECOND) < SECOND
    assert what in {one.what for one in told.deviations}
    onsets = [one.onset_ns for one in told.deviations if one.what != "order" and one.onset_ns is not None]
    assert onsets == sorted(onsets)


def test_values_are_compared_in_each_mode_with_effect_sizes() -> None:
    run, at = faulty("multicopter", 1000, "bias", 2) or (None, None)
    assert run is not None
    assert at is not None
    told = logreel.compare(good("multicopter", 0), content(run), topics="sensor_combined")
    assert told.align == "arming"
    assert told.deviations[0].field == "gyro_rad[0]"
    first = next(one for one in told.deviations if one.what == "level")
    assert "Mission" in first.state
    assert first.cohens_d is not None
    assert first.cohens_d > 3
    assert first.ks is not None
    assert first.ks > 0.9
    assert first.wasserstein == pytest.approx(0.5, abs=0.1)


def table(values: np.ndarray, topic: str = "a", name: str = "value") -> bytes:
    """Return a ULog of a float field with 100 messages per second."""
    out = Builder(start_us=0).flags().format(f"{topic}:uint64_t timestamp;float {name};").subscribe(topic, 0)
    for n, value in enumerate(values.tolist()):
        out.data(0, struct.pack("<Qf", 10_000 * (n + 1), value))
    return out.bytes()


def test_what_is_small_beside_the_level_or_happens_once_is_no_deviation() -> None:
    random = np.random.default_rng(1)
    noise = random.normal(0, 0.05, 3000)
    assert logreel.compare(table(50 + noise), table(53 + noise)).same
    assert not logreel.compare(table(50 + noise), table(60 + noise)).same
    # A slow walk is worth few independent values: another one may go elsewhere.
    walks = [np.cumsum(np.repeat(random.normal(0, 1, 30), 100)) / 100 for _ in range(2)]
    assert logreel.compare(table(walks[0] + noise), table(walks[1] + noise)).same


def windows_of_means(means: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(len(means), dtype=np.int64), means


def test_the_begin_of_a_drift_is_not_when_it_leaves_the_bound() -> None:
    t = np.arange(30) + 0.5
    noise = np.random.default_rng(3).normal(0, 0.02, 30)
    begin = drift_begin(*windows_of_means(noise + 0.3 * np.clip(t - 15.4, 0, None)), 22)
    assert begin == pytest.approx(15.4, abs=0.3)
    # A jump, a course that always rises, a wave, noise, and a jump behind a slow course are none.
    for means in (
        noise + (t > 22), noise + 0.3 * t, np.sin(t / 4), noise,
        noise - 0.1 * np.clip(t - 10, 0, None) - 2 * (t > 22),
    ):  # fmt: skip
        assert drift_begin(*windows_of_means(means), 22) is None
    assert drift_begin(*windows_of_means(np.full(30, np.nan)), 22) is None


def with_parameters(**values: float) -> bytes:
    out = Builder(start_us=0).flags()
    for name, value in values.items():
        out.parameter(f"float {name}", value)
    out.format("a:uint64_t timestamp;float value;").subscribe("a", 0)
    for n in range(900):
        out.data(0, struct.pack("<Qf", 10_000 * (n + 1), n % 7))
    return out.bytes()


def test_settings_are_deviations_and_what_the_vehicle_sets_itself_is_a_note() -> None:
    first = with_parameters(MC_ROLL_P=6.5, CAL_GYRO0_XOFF=0.1, LND_FLIGHT_T_LO=5.0, WV_NAN=float("nan"))
    second = with_parameters(MC_ROLL_P=6.6, CAL_GYRO0_XOFF=0.2, LND_FLIGHT_T_LO=9.0, WV_NAN=float("nan"))
    told = logreel.compare(first, second)
    assert [(one.what, one.field) for one in told.deviations] == [("parameter", "MC_ROLL_P")]
    assert told.deviations[0].onset_ns == logreel.open(second).start
    # The second run sets one in flight.
    later = Builder(start_us=0).flags().parameter("float MC_ROLL_P", 6.5)
    later.format("a:uint64_t timestamp;float value;").subscribe("a", 0)
    for n in range(900):
        if n == 500:
            later.parameter("float MC_ROLL_P", 7.0)
        later.data(0, struct.pack("<Qf", 10_000 * (n + 1), n % 7))
    (change,) = logreel.compare(first, later.bytes()).deviations
    assert (change.what, change.field, change.onset_ns) == ("parameter", "MC_ROLL_P", 5 * SECOND)
    assert len(told.notes) == 1
    assert "CAL_GYRO0_XOFF" in told.notes[0]
    assert "LND_FLIGHT_T_LO" in told.notes[0]


def test_what_is_not_compared_is_named() -> None:
    short = logreel.compare(table(np.arange(300.0)), table(np.arange(300.0) * 100))
    assert short.same
    assert short.not_assessed == ("values of 1 topic: fewer than 5 s in the first run, or 3 s in the second",)
    other = logreel.compare(table(np.arange(900.0)), table(np.arange(900.0), topic="b"))
    assert [(one.topic, one.what) for one in other.deviations] == [("a", "topic"), ("b", "topic")]


def test_distances_of_distributions() -> None:
    a = np.array([0.0, 1.0, 2.0, 3.0])
    assert kolmogorov_smirnov(a, a) == 0
    assert wasserstein(a, a) == 0
    assert kolmogorov_smirnov(a, a + 10) == 1
    assert wasserstein(a, a + 10) == pytest.approx(10)
    assert kolmogorov_smirnov(a, np.array([0.0, 1.0])) == pytest.approx(0.5)
    assert wasserstein(np.array([0.0]), np.array([0.0, 1.0])) == pytest.approx(0.5)
    assert cohens_d(a, a + np.std(a)) == pytest.approx(1)
    assert cohens_d(np.zeros(3), np.ones(3)) is None
    random = np.random.default_rng(0)
    assert independent(random.normal(size=1000)) > 800
    assert independent(np.arange(100.0)) < 2


def test_lags_are_found_by_correlation_or_not_at_all() -> None:
    t = np.arange(0, 60, LAG_STEP / SECOND)
    curve = np.sin(t) + np.sin(2.7 * t + 1)
    later = np.interp(t - 0.7, t, curve)
    found = best_lag(curve, later)
    assert found is not None
    assert found[0] == pytest.approx(0.7 * SECOND)
    assert found[1] > 0.99
    assert best_lag(curve, np.zeros(len(t))) is None
    assert best_lag(curve, np.random.default_rng(0).normal(size=len(t))) is None
    assert best_lag(curve[:20], curve[:20]) is None


def four_topics(lag: float) -> bytes:
    """Return a ULog of four curves, of which one comes *lag* seconds later."""
    names = "abcd"
    out = Builder(start_us=0).flags()
    for number, name in enumerate(names):
        out.format(f"{name}:uint64_t timestamp;float value;").subscribe(name, number)
    for n in range(4000):
        for number in range(4):
            t = n / 100 - (lag if number == 3 else 0)
            value = np.sin(t * (1 + 0.1 * number)) + np.sin(2.7 * t + number)
            out.data(number, struct.pack("<Qf", 10_000 * (n + 1) + number, value))
    return out.bytes()


def test_a_topic_that_lags_behind_the_others() -> None:
    (one,) = logreel.compare(four_topics(0), four_topics(0.6)).deviations
    assert (one.topic, one.what, one.onset_ns) == ("d", "lag", None)
    assert one.text.startswith("600 ms behind the other topics")


def test_alignment_that_a_log_does_not_tell_is_an_error() -> None:
    with pytest.raises(logreel.UsageError, match="armed"):
        logreel.compare(table(np.zeros(9)), table(np.zeros(9)), align="arming")
    with pytest.raises(logreel.UsageError, match="UTC"):
        logreel.compare(table(np.zeros(9)), table(np.zeros(9)), align="utc")
    with pytest.raises(logreel.UsageError, match="align is one of"):
        logreel.compare(table(np.zeros(9)), table(np.zeros(9)), align="noon")


def test_the_verb_prints_onsets_and_writes_a_page(run: Run, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    before, after = random.normal(0, 1, 3000), random.normal(0, 1, 3000)
    after[1500:] += 20
    (tmp_path / "a.ulg").write_bytes(table(before))
    (tmp_path / "b.ulg").write_bytes(table(after))
    a, b, page = (str(tmp_path / name) for name in ("a.ulg", "b.ulg", "page.html"))
    done = run("compare", a, b, "-o", page)
    assert done.code == 4
    assert "2 deviations (aligned at start)" in done.out
    assert "15.00 s" in done.out
    text = Path(page).read_text()
    evidence, _, both = text.partition('id="both"')
    assert evidence.count('<svg class="still"') == 2
    assert both.count('<svg class="still"') == 2
    assert "a.value" in text
    assert run("compare", a, a).code == 0
    told = json.loads(run("compare", a, b, "--json").out)
    assert [(one["field"], one["what"]) for one in told["deviations"]] == [
        ("value", "step"),
        ("value", "level"),
    ]
    assert len(run("compare", a, b, "--brief").out) <= 2000
    assert run("compare", a).code == 2
    assert run("compare", a, b, "-o", "x.txt").code == 2
