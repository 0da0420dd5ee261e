"""Verify that the frames of a recording follow each other, by their numbers and their times."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from logreel.errors import Finding
from logreel.formats.carla.clock import Frames
from logreel.formats.carla.records import HEAD

#: Tolerance in seconds between elapsed time plus duration and the next elapsed time: both are rounded float64.
SLACK = 1e-6
#: Versions of the recorder.
VERSIONS = (1, 2)


def verify(frames: Frames, version: int | None) -> Iterator[Finding]:
    """Yield ``version`` for an unknown one, ``frame_number`` and ``frame_time`` if frames do not follow each other.

    version  of the recorder, as the header states it; None if the header is damaged
    """
    if version is not None and version not in VERSIONS:
        text = (
            f"the header states version {version} of the recorder, known are {VERSIONS[0]} and {VERSIONS[1]}"
        )
        yield Finding("version", "warn", 0, 2, text)
    number, elapsed, duration = frames.number, frames.elapsed, frames.duration
    with np.errstate(all="ignore"):
        odd = number[1:] - number[:-1] != 1
        late = np.abs(elapsed[:-1] + duration[:-1] - elapsed[1:]) > SLACK
    yield from _finding(frames, odd, "frame_number", "do not have the number after that of the frame before")
    yield from _finding(frames, late, "frame_time", "do not begin when the frame before ends")


def _finding(frames: Frames, odd: NDArray[np.bool_], code: str, text: str) -> Iterator[Finding]:
    rows = np.flatnonzero(odd) + 1
    if len(rows):
        first, n = int(rows[0]), len(rows)
        message = f"{n} of {len(frames.number)} frames {text}; the first is frame {frames.number[first]}"
        offset, time = int(frames.start[first]) - HEAD, int(frames.time[first])
        yield Finding(code, "warn", offset, 0, message, None, time, n)
