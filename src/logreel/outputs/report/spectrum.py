"""Spectra of regular series, by the mean of the power of overlapping segments (Welch)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from logreel.io.arrays import I64
from logreel.ops.query.functions import series_curve

if TYPE_CHECKING:
    from logreel.lenses.charts import Series
    from logreel.log.log import Log

F64 = NDArray[np.float64]
#: Samples of a segment, and the least number of them.
SEGMENT, LEAST = 1024, 64
#: Messages that are read of a channel; of a longer one, equal parts all over the log.
MOST, PARTS = 1_000_000, 50
#: A step longer than this many median steps ends a segment; over shorter ones, values are interpolated.
GAP = 6


@dataclass(frozen=True, slots=True)
class Spectrum:
    """Amplitude spectral density of one series.

    frequency  float64[n] Hz
    density    float64[n] unit per √Hz
    segments   number of segments in the mean
    """

    series: Series
    unit: str
    frequency: F64
    density: F64
    segments: int


def spectrum(log: Log, series: Series, start: int | None, end: int | None) -> Spectrum | None:
    """Return the spectrum of a series between two times (ns); None if it is too short or too irregular."""
    total: F64 | None = None
    count, unit, rate = 0, "", 0.0
    for lo, hi in _parts(log, series, start, end):
        curve = series_curve(log, series, lo, hi)
        unit = curve.unit
        if rate == 0 and len(curve.times) > LEAST:
            step = float(np.median(np.diff(curve.times))) / 1e9
            rate = 1 / step if step > 0 else 0.0
        if rate == 0:
            continue
        for values in _segments(curve.times, curve.values, rate):
            power = _power(values, rate)
            if total is None:
                total = np.zeros_like(power)
            if len(power) == len(total):
                total += power
                count += 1
    if total is None or not count:
        return None
    frequency = np.arange(len(total)) * rate / (2 * (len(total) - 1))
    # The mean of a segment is removed, so the first value says nothing.
    return Spectrum(series, unit, frequency[1:], np.sqrt(total / count)[1:], count)


def _parts(
    log: Log, series: Series, start: int | None, end: int | None
) -> list[tuple[int | None, int | None]]:
    ch = log[series.topic]
    first, last = log.start if start is None else start, log.end if end is None else end
    if len(ch) <= MOST or first is None or last is None:
        return [(start, end)]
    share = (last - first) * MOST // len(ch) // PARTS
    return [(at, at + share) for at in (first + (last - first) * n // PARTS for n in range(PARTS))]


def _segments(times: I64, values: F64, rate: float) -> list[F64]:
    """Return evenly sampled segments of equal length that overlap by half, without long gaps and missing values."""
    good = np.isfinite(values)
    times, values = times[good], values[good]
    size = SEGMENT
    while size > len(values) // 4 and size > LEAST:
        size //= 2
    step = 1e9 / rate
    broken = np.flatnonzero(np.diff(times) > GAP * step) + 1
    found = []
    for part in np.split(np.arange(len(times)), broken):
        if len(part) < size:
            continue
        since = times[part] - times[part[0]]
        even = np.interp(np.arange(0, since[-1] + 1, step), since, values[part])
        found += [even[at : at + size] for at in range(0, len(even) - size + 1, size // 2)]
    return found


def _power(values: F64, rate: float) -> F64:
    """Return the one-sided power spectral density of a segment."""
    window = np.hanning(len(values))
    density: F64 = np.abs(np.fft.rfft((values - values.mean()) * window)) ** 2 / (rate * np.sum(window**2))
    density[1:-1] *= 2
    return density
