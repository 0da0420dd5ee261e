"""Statistics of features: per episode, and combined over all of them, as LeRobot defines them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

QUANTILES = {"q01": 0.01, "q10": 0.10, "q50": 0.50, "q90": 0.90, "q99": 0.99}
#: All statistics of a feature.
KEYS = ("min", "max", "mean", "std", "count", *QUANTILES)
Stats = dict[str, NDArray[Any]]
#: Pictures are thinned out to about this many rows or columns.
_SIDE, _LARGE = 150, 300


def vector_stats(values: NDArray[Any]) -> Stats:
    """Return min, max, mean, std, count and quantiles of each column of *values* [n, k]."""
    numbers = values.astype(np.float64)
    found: Stats = {
        "min": numbers.min(axis=0),
        "max": numbers.max(axis=0),
        "mean": numbers.mean(axis=0),
        "std": numbers.std(axis=0),
        "count": np.array([len(numbers)]),
    }
    quantiles = np.quantile(numbers, list(QUANTILES.values()), axis=0)
    return found | dict(zip(QUANTILES, quantiles, strict=True))


def sampled_frames(count: int) -> set[int]:
    """Return the frames of an episode whose pictures are used for statistics."""
    number = max(min(count, 100), min(int(count**0.75), 10_000))
    return {int(i) for i in np.round(np.linspace(0, count - 1, number))}


class PictureStats:
    """Statistics of pictures per colour, of values from 0 to 1; exact for the pixels that are used."""

    def __init__(self, frames: int) -> None:
        self._chosen = sampled_frames(frames)
        self._seen = self._used = 0
        self._counts = np.zeros((3, 256), np.int64)

    def add(self, pixels: NDArray[np.uint8]) -> None:
        """Use the next picture, [height, width, 3], if it is among the chosen ones."""
        if self._seen in self._chosen:
            height, width = pixels.shape[:2]
            step = max(height, width) // _SIDE if max(height, width) >= _LARGE else 1
            thin = pixels[::step, ::step]
            for colour in range(3):
                self._counts[colour] += np.bincount(thin[..., colour].reshape(-1), minlength=256)
            self._used += 1
        self._seen += 1

    def result(self) -> Stats:
        """Return the statistics, each but the count with the shape [3, 1, 1]."""
        levels = np.arange(256) / 255
        total = self._counts.sum(axis=1)
        mean = (self._counts * levels).sum(axis=1) / total
        spread = (self._counts * (levels - mean[:, None]) ** 2).sum(axis=1) / total
        running = np.cumsum(self._counts, axis=1)
        at = {
            "min": np.array([levels[np.flatnonzero(row)[0]] for row in self._counts]),
            "max": np.array([levels[np.flatnonzero(row)[-1]] for row in self._counts]),
            "mean": mean,
            "std": np.sqrt(spread),
        }
        for name, part in QUANTILES.items():
            at[name] = np.array(
                [levels[row.searchsorted(part * n)] for row, n in zip(running, total, strict=True)]
            )
        found = {name: values.reshape(3, 1, 1) for name, values in at.items()}
        return found | {"count": np.array([self._used])}


def combined(one: Mapping[str, Stats], two: Mapping[str, Stats]) -> dict[str, Stats]:
    """Return the statistics of two sets of episodes; quantiles are the means of both, weighted by count."""
    return {name: _both(one[name], two[name]) if name in one else two[name] for name in two}


def _both(one: Stats, two: Stats) -> Stats:
    n, m = float(one["count"][0]), float(two["count"][0])

    def mean(key: str) -> NDArray[Any]:
        found: NDArray[Any] = (one[key] * n + two[key] * m) / (n + m)
        return found

    middle = mean("mean")
    spread = [part["std"] ** 2 + (part["mean"] - middle) ** 2 for part in (one, two)]
    found: Stats = {
        "min": np.minimum(one["min"], two["min"]),
        "max": np.maximum(one["max"], two["max"]),
        "mean": middle,
        "std": np.sqrt((spread[0] * n + spread[1] * m) / (n + m)),
        "count": one["count"] + two["count"],
    }
    return found | {key: mean(key) for key in QUANTILES}


def as_lists(stats: Mapping[str, Stats]) -> dict[str, dict[str, Any]]:
    """Return statistics as JSON data."""
    return {name: {key: value.tolist() for key, value in one.items()} for name, one in stats.items()}


def as_arrays(stats: Mapping[str, Mapping[str, Any]]) -> dict[str, Stats]:
    """Return statistics from JSON data."""
    return {name: {key: np.array(value) for key, value in one.items()} for name, one in stats.items()}
