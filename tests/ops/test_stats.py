"""Statistics compared with plain Python."""

from __future__ import annotations

import itertools
import json
import math
import statistics
import struct

import numpy as np
import pytest

import logreel
from logreel.ops.inspect.stats import GAPS_LISTED, FieldStats, distance
from support.builders.sample_logs import hostile, short_flight
from support.samples.ulog.builder import Builder, flight


def ticks(stamps_us: list[int], values: list[float] | None = None) -> logreel.Log:
    out = Builder(start_us=1).flags().format("tick:uint64_t timestamp;float value;uint64_t big;int8_t[3] a;")
    out.subscribe("tick", 0)
    for i, stamp in enumerate(stamps_us):
        value = values[i] if values else 0.0
        out.data(0, struct.pack("<QfQ3b", stamp, value, (1 << 64) - 1 - i, i % 99, -(i % 99), 1))
    return logreel.open(out.bytes())


def test_periods_match_plain_python() -> None:
    stamps = [1000, 2000, 3100, 4000, 6000]
    (one,) = logreel.stats(ticks(stamps))
    steps = [(b - a) * 1000 for a, b in itertools.pairwise(stamps)]
    assert one.period_ns is not None
    assert (one.period_ns.min, one.period_ns.max) == (min(steps), max(steps))
    assert one.period_ns.mean == pytest.approx(statistics.mean(steps))
    assert one.period_ns.median == statistics.median(steps)
    assert one.period_ns.std == pytest.approx(statistics.pstdev(steps))
    assert one.rate == pytest.approx(1e9 / statistics.mean(steps))
    assert (one.messages, one.bytes, one.out_of_order, one.duplicates, one.gap_count) == (5, 5 * 23, 0, 0, 0)


def test_gaps_are_found_and_listed() -> None:
    stamps = [1000 * i for i in range(1, 50)] + [100_000 + 1000 * i for i in range(50)]
    (one,) = logreel.stats(ticks(stamps))
    assert one.gap_count == 1
    assert (one.gaps[0].start_ns, one.gaps[0].end_ns) == (49_000_000, 100_000_000)
    assert one.gap_ns == 51_000_000


def test_bursts_are_no_gaps() -> None:
    stamps = [10_000 * i + j for i in range(1, 40) for j in (0, 1)]
    assert logreel.stats(ticks(stamps))[0].gap_count == 0


def test_the_list_of_gaps_is_bounded() -> None:
    stamps, now = [], 1000
    for i in range(40 * GAPS_LISTED):
        now += 1_000_000 + i if i % 20 == 0 else 1000
        stamps.append(now)
    (one,) = logreel.stats(ticks(stamps))
    assert one.gap_count == 2 * GAPS_LISTED - 1
    assert len(one.gaps) == GAPS_LISTED
    assert list(one.gaps) == sorted(one.gaps, key=lambda gap: gap.start_ns)


def test_messages_out_of_order_and_equal_times_are_counted() -> None:
    (one,) = logreel.stats(ticks([1000, 3000, 2000, 3000, 4000]))
    assert (one.out_of_order, one.duplicates) == (1, 1)


def test_absurd_stamps_do_not_overflow() -> None:
    (one,) = logreel.stats(ticks([0, (1 << 64) - 1, 5]))
    assert one.period_ns is not None
    assert one.period_ns.min >= 0
    json.dumps(one.as_dict(), allow_nan=False)


def test_one_message_has_no_period() -> None:
    (one,) = logreel.stats(ticks([1000]))
    assert one.period_ns is None
    assert one.rate is None


def test_fields_match_plain_python() -> None:
    values = [1.5, math.nan, -2.0, 4.0]
    (one,) = logreel.stats(ticks([1000, 2000, 3000, 4000], values), fields=True)
    fields = {f.path: f for f in one.fields or ()}
    assert list(fields) == ["timestamp", "value", "big", "a[0]", "a[1]", "a[2]"]
    value = fields["value"]
    assert (value.count, value.nan, value.min, value.max) == (4, 1, -2.0, 4.0)
    assert value.mean == pytest.approx(3.5 / 3)
    assert (fields["big"].max, fields["big"].min) == ((1 << 64) - 1, (1 << 64) - 4)
    assert (fields["a[1]"].min, fields["a[1]"].max) == (-3, 0)


def test_infinities_are_json_strings() -> None:
    (one,) = logreel.stats(logreel.open(hostile()), fields=True)
    data = one.as_dict()
    value = next(f for f in data["fields"] if f["path"] == "value")
    assert (value["min"], value["max"], value["nan"], value["mean"]) == ("-Infinity", "Infinity", 1, "NaN")
    json.dumps(data, allow_nan=False)


def test_stats_has_all_channels_with_messages() -> None:
    log = logreel.open(short_flight())
    assert [one.topic for one in logreel.stats(log)] == [ch.topic for ch in log.match(None) if len(ch)]
    assert [one.topic for one in logreel.stats(log, "sensor_accel*")] == ["sensor_accel", "sensor_accel[1]"]


def of(least: float, mean: float, most: float) -> FieldStats:
    return FieldStats("x", 10, 0, least, most, mean, (least**2 + most**2) ** 0.5)


def test_statistics_are_as_far_apart_as_a_share_of_their_range() -> None:
    same = of(0, 5, 10)
    assert distance([same, same, same]) == 0
    assert distance([of(2, 2, 2), of(2, 2, 2)]) == 0
    assert distance([of(1, 1, 1), of(3, 3, 3)]) == 1
    assert distance([of(0, 5, 10), of(0, 6, 10)]) == pytest.approx(0.1)
    assert distance([of(0, 5, 10), of(0, 5, 20), None]) == pytest.approx(0.5, abs=0.01)
    assert distance([same, None]) is None
    assert distance([same, of(0, float("inf"), float("inf"))]) is None


def test_root_mean_squares_are_those_of_all_values() -> None:
    with logreel.open(flight(3.0)) as log:
        (channel,) = logreel.stats(log, "sensor_combined:accelerometer_m_s2")
        values = log["sensor_combined"]["accelerometer_m_s2"].astype(float)
        assert channel.fields is not None
        for n, field in enumerate(channel.fields):
            assert field.rms == pytest.approx(float(np.sqrt(np.mean(values[:, n] ** 2))))
