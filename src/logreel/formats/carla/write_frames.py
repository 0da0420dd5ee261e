"""Messages to frames: where each begins, and its number, duration and time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from logreel.io.arrays import I64

#: What a FrameStart holds.
FRAME = np.dtype([("number", "<u8"), ("duration", "<f8"), ("elapsed", "<f8")])
#: The duration of a frame that no other one follows yet.
OPEN = -1.0


@dataclass(frozen=True, slots=True)
class Last:
    """The frame that was written last.

    number    its number
    given     its number as it was given
    time      ns
    elapsed   seconds, the same
    inferred  it was made for packets without one, so that the next frame tells its duration
    place     where its content lies in the file
    """

    number: int
    given: int
    time: int
    elapsed: float
    inferred: bool
    place: int = 0


@dataclass(frozen=True, slots=True)
class Framed:
    """Messages with a frame before the first packet of each.

    row      int64[m]  the message at each place of what is to be written; -1 for a frame that was not given
    frames   bool[m]   where the frames are
    content  FRAME[f]  of these
    last     the last one of them, or the one before all
    changed  frames that got another number
    """

    row: I64
    frames: NDArray[np.bool_]
    content: NDArray[np.void]
    last: Last | None
    changed: int


def framed(
    is_frame: NDArray[np.bool_], time: I64, given: NDArray[np.void], last: Last | None, several: bool
) -> Framed:
    """Put messages into frames: a packet of another time than what is before it begins one.

    is_frame  bool[n]   messages that are FrameStarts
    time      int64[n]  ns
    given     FRAME[k]  what they hold
    last      the frame before
    several   they come from several recordings: of frames of one number and time only the first is kept, and numbers
              that do not ascend change
    """
    before = np.concatenate([time[:1] if last is None else [last.time], time[:-1]])
    begins = ~is_frame & (time != before)
    begins[0] |= last is None and not is_frame[0]
    row = np.insert(np.arange(len(time)), np.flatnonzero(begins), -1)
    frames = np.insert(is_frame, np.flatnonzero(begins), True)
    at = np.flatnonzero(frames)
    inferred = row[at] < 0
    # A frame that was not given has the time of the packet behind it.
    moment = time[row[at + inferred]]
    content = np.zeros(len(at), FRAME)
    content[~inferred] = given
    number = _filled(content["number"].astype(np.int64), last)
    if several:
        kept = ~_repeated(number, moment, last) | inferred
        whole = np.ones(len(row), bool)
        whole[at[~kept]] = False
        row, frames = row[whole], frames[whole]
        content, inferred, moment, number = content[kept], inferred[kept], moment[kept], number[kept]
    content["number"] = _ascending(number, last) if several else number
    _set_elapsed(content, moment)
    _set_durations(content, inferred)
    if len(content):
        final = content[-1]
        time_, told = int(moment[-1]), int(number[-1])
        last = Last(int(final["number"]), told, time_, float(final["elapsed"]), bool(inferred[-1]))
    return Framed(row, frames, content, last, int((content["number"] != number).sum()))


def _filled(number: I64, last: Last | None) -> I64:
    """The numbers given, where there is none (0) the one after that of the frame before."""
    place = np.arange(len(number))
    told = np.maximum.accumulate(np.where(number != 0, place, -1))
    before = last.number if last is not None else 0
    return np.where(told >= 0, number[told] + place - told, before + 1 + place)


def _repeated(number: I64, time: I64, last: Last | None) -> NDArray[np.bool_]:
    """bool[n]: frames of the same number and time as the one before."""
    again = np.zeros(len(number), bool)
    again[1:] = (number[1:] == number[:-1]) & (time[1:] == time[:-1])
    if last is not None and len(number):
        again[0] = number[0] == last.given and time[0] == last.time
    return again


def _ascending(number: I64, last: Last | None) -> I64:
    """The same numbers, each greater than all before: the next one where it is not."""
    place = np.arange(len(number))
    least = last.number + 1 if last is not None else 0
    found: I64 = place + np.maximum.accumulate(np.maximum(number - place, least))
    return found


def _set_elapsed(content: NDArray[np.void], time: I64) -> None:
    """Set the seconds of frames that say another time than they have."""
    with np.errstate(all="ignore"):
        off = np.rint(content["elapsed"] * 1e9) != time
    content["elapsed"][off] = time[off] / 1e9


def _set_durations(content: NDArray[np.void], inferred: NDArray[np.bool_]) -> None:
    """Let frames that were not given last until the next one."""
    lasts = np.full(len(content), OPEN)
    lasts[:-1] = np.diff(content["elapsed"])
    content["duration"][inferred] = lasts[inferred]
