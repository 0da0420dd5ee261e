"""Whether the frames of a recording follow one another: their numbers, and their times."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from logreel.errors import Finding
from logreel.formats.carla.clock import Frames
from logreel.formats.carla.records import HEAD

#: Seconds by which a sum of durations may miss the elapsed time: both are float64, rounded on different ways.
SLACK = 1e-6


def verify(frames: Frames) -> Iterator[Finding]:
    """``frame_number`` where a frame does not follow its number, ``frame_time`` where it does not follow its time."""
    number, elapsed, duration = frames.number, frames.elapsed, frames.duration
    with np.errstate(all="ignore"):
        odd = number[1:] - number[:-1] != 1
        late = np.abs(elapsed[:-1] + duration[:-1] - elapsed[1:]) > SLACK
    yield from _told(frames, odd, "frame_number", "do not have the number after that of the frame before")
    yield from _told(frames, late, "frame_time", "do not begin when the frame before ends")


def _told(frames: Frames, odd: NDArray[np.bool_], code: str, text: str) -> Iterator[Finding]:
    rows = np.flatnonzero(odd) + 1
    if len(rows):
        first, n = int(rows[0]), len(rows)
        told = f"{n} of {len(frames.number)} frames {text}; the first is frame {frames.number[first]}"
        place, time = int(frames.start[first]) - HEAD, int(frames.time[first])
        yield Finding(code, "warn", place, 0, told, None, time, n)
