"""Assign packets to frames, and compute numbers, durations and times of the frames."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from logreel.io.arrays import I64

#: Payload of a FrameStart.
FRAME = np.dtype([("number", "<u8"), ("duration", "<f8"), ("elapsed", "<f8")])
#: Duration of a frame that is not followed by another one yet.
OPEN = -1.0


@dataclass(frozen=True, slots=True)
class LastFrame:
    """The frame written last.

    number    its number in the file
    given     its number as given
    time      ns
    elapsed   the same in seconds
    inferred  True: its duration follows from the next frame
    place     offset of its payload in the file
    """

    number: int
    given: int
    time: int
    elapsed: float
    inferred: bool
    place: int = 0


@dataclass(frozen=True, slots=True)
class FramedPackets:
    """Packets and frames in the order in which they are written.

    row      int64[m]  number of the message; -1 for a frame that was added
    frames   bool[m]   True for frames
    content  FRAME[f]  payloads of the frames
    last     the last frame; without frames the one before them
    changed  number of frames that got another number
    """

    row: I64
    frames: NDArray[np.bool_]
    content: NDArray[np.void]
    last: LastFrame | None
    changed: int


def assign_frames(
    is_frame: NDArray[np.bool_],
    time: I64,
    given: NDArray[np.void],
    last: LastFrame | None,
    several: bool,
    continues: bool = False,
) -> FramedPackets:
    """Add the missing frames: a packet with another time than the message before it begins a frame.

    is_frame  bool[n]   True for messages that are FrameStarts
    time      int64[n]  ns
    given     FRAME[k]  payloads of the FrameStarts
    last      the frame before these messages
    several   True: the messages are from several recordings. Of frames with the same number and time only the first
              is kept, and numbers that do not ascend are changed
    continues  True: frames at other times than they state, by the clock of another recording, also get new durations
    """
    before = np.concatenate([time[:1] if last is None else [last.time], time[:-1]])
    begins = ~is_frame & (time != before)
    begins[0] |= last is None and not is_frame[0]
    row = np.insert(np.arange(len(time)), np.flatnonzero(begins), -1)
    frames = np.insert(is_frame, np.flatnonzero(begins), True)
    at = np.flatnonzero(frames)
    inferred = row[at] < 0
    # A frame that was added has the time of the packet after it.
    moment = time[row[at + inferred]]
    content = np.zeros(len(at), FRAME)
    content[~inferred] = given
    number = _fill_numbers(content["number"].astype(np.int64), last)
    if several:
        kept = ~_is_repeated(number, moment, last) | inferred
        whole = np.ones(len(row), bool)
        whole[at[~kept]] = False
        row, frames = row[whole], frames[whole]
        content, inferred, moment, number = content[kept], inferred[kept], moment[kept], number[kept]
    content["number"] = _ascending_numbers(number, last) if several else number
    moved = _set_elapsed(content, moment)
    if continues:
        inferred = inferred | moved
    _set_durations(content, inferred)
    if len(content):
        final = content[-1]
        last_time, last_number = int(moment[-1]), int(number[-1])
        last = LastFrame(
            int(final["number"]), last_number, last_time, float(final["elapsed"]), bool(inferred[-1])
        )
    return FramedPackets(row, frames, content, last, int((content["number"] != number).sum()))


def _fill_numbers(number: I64, last: LastFrame | None) -> I64:
    """Return the numbers given; 0 is replaced by the number after that of the frame before."""
    place = np.arange(len(number))
    numbered = np.maximum.accumulate(np.where(number != 0, place, -1))
    before = last.number if last is not None else 0
    return np.where(numbered >= 0, number[numbered] + place - numbered, before + 1 + place)


def _is_repeated(number: I64, time: I64, last: LastFrame | None) -> NDArray[np.bool_]:
    """Return bool[n]: True for frames with the number and time of the frame before."""
    again = np.zeros(len(number), bool)
    again[1:] = (number[1:] == number[:-1]) & (time[1:] == time[:-1])
    if last is not None and len(number):
        again[0] = number[0] == last.given and time[0] == last.time
    return again


def _ascending_numbers(number: I64, last: LastFrame | None) -> I64:
    """Return the numbers in strictly ascending order: a number that is too small becomes the next one."""
    place = np.arange(len(number))
    least = last.number + 1 if last is not None else 0
    found: I64 = place + np.maximum.accumulate(np.maximum(number - place, least))
    return found


def _set_elapsed(content: NDArray[np.void], time: I64) -> NDArray[np.bool_]:
    """Correct the elapsed seconds of frames whose time differs from them; return bool[n], True for these."""
    with np.errstate(all="ignore"):
        off = np.rint(content["elapsed"] * 1e9) != time
    content["elapsed"][off] = time[off] / 1e9
    return np.asarray(off)


def _set_durations(content: NDArray[np.void], inferred: NDArray[np.bool_]) -> None:
    """Set the durations of *inferred* frames to the time until the next frame."""
    lasts = np.full(len(content), OPEN)
    lasts[:-1] = np.diff(content["elapsed"])
    content["duration"][inferred] = lasts[inferred]
