"""Pictures of a channel as RGB of one size, decoded one at a time, for the frames of an episode."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.errors import LogError, MissingDependencyError, UnsupportedError
from logreel.io.arrays import I64
from logreel.log.log import Channel
from logreel.outputs.media.frames import CHAINED, RGB, Decoded, Frame, FrameDecoder, frame_of
from logreel.outputs.registry import readers

if TYPE_CHECKING:
    from logreel.lenses import Picture

#: Messages that are first searched for a key frame.
_BACK = 64


class BrokenPicturesError(LogError):
    """Pictures that cannot be decoded, or have another size; raised after all others were used.

    topic, times  the channel, and ns of these messages
    """

    def __init__(self, topic: str, times: set[int], why: str) -> None:
        super().__init__(f"{len(times)} picture{'s' * (len(times) != 1)} of {topic!r} cannot be used: {why}")
        self.topic, self.times = topic, times


def frames(
    ch: Channel, times: I64, size: tuple[int, int] | None, shape: tuple[int, int] | None
) -> Iterator[RGB]:
    """Yield uint8[height, width, 3] for each of *times*, which are times of messages of *ch* (ns), ascending.

    size   width and height that pictures are scaled to; None: as they are
    shape  height and width that they must have then; None: those of the first one

    A picture that cannot be used is replaced by zeros; after the last one BrokenPicturesError is raised, which names
    them. Needs ``logreel[train]``.
    """
    try:
        import av  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError("av", "train") from error
    expected = shape if size is None else (size[1], size[0])
    broken, why = set[int](), ""
    coming = _decoded(ch, np.unique(times), size)
    now, pixels, problem = next(coming, (None, None, ""))
    last: RGB | None = None
    for time in times.tolist():
        while now is not None and now < time:
            now, pixels, problem = next(coming, (None, None, ""))
        found = pixels if now == time else None
        reason = problem if now == time else "it is missing"
        if found is not None and expected is None:
            expected = found.shape[:2]
        if found is not None and found.shape[:2] != expected:
            reason = f"{found.shape[1]} × {found.shape[0]} pixels instead of {expected[1]} × {expected[0]}"  # type: ignore[index]
            found = None
        if found is None:
            broken.add(time)
            why = why or reason
        last = found
        yield np.zeros((*(expected or (2, 2)), 3), np.uint8) if last is None else last
    if broken:
        raise BrokenPicturesError(ch.topic, broken, why)


def first_shape(ch: Channel, times: I64, size: tuple[int, int] | None) -> tuple[int, int] | None:
    """Return height and width of the first picture of *ch* at *times* (ns) that can be decoded; None if none can."""
    if size is not None:
        return size[1], size[0]
    for _, pixels, _ in _decoded(ch, np.unique(times), None):
        if pixels is not None:
            return pixels.shape[0], pixels.shape[1]
    return None


def _decoded(ch: Channel, wanted: I64, size: tuple[int, int] | None) -> Iterator[Decoded]:
    """Yield time, pixels and problem of the pictures at the times *wanted*, ascending; some may be missing."""
    decoder = FrameDecoder(size)
    held: tuple[int, Frame | None, str] | None = None
    for picture in _pictures(ch, wanted):
        try:
            frame, problem = frame_of(picture), ""
        except UnsupportedError as error:
            frame, problem = None, error.text
        if frame is not None and frame.codec in CHAINED:
            yield from _among(decoder.chained(picture.time, frame), wanted)
            continue
        # Of several pictures at one time, the last one counts.
        if held is not None and held[0] != picture.time:
            yield decoder.single(*held)
        held = (picture.time, frame, problem) if _is_among(picture.time, wanted) else None
    if held is not None:
        yield decoder.single(*held)
    yield from _among(decoder.rest(), wanted)


def _among(decoded: Iterator[Decoded], wanted: I64) -> Iterator[Decoded]:
    return (one for one in decoded if _is_among(one[0], wanted))


def _is_among(time: int, wanted: I64) -> bool:
    at = int(wanted.searchsorted(time))
    return at < len(wanted) and int(wanted[at]) == time


def _pictures(ch: Channel, wanted: I64) -> Iterator[Picture]:
    """Yield the pictures around *wanted* in order of time, with those that are needed to decode them."""
    if not len(wanted):
        return
    reads = readers(ch, "pictures")

    def between(start: int, end: int) -> Iterator[Picture]:
        return chain.from_iterable(read(ch, start, end) for read in reads)

    first, end = int(wanted[0]), int(wanted[-1]) + 1
    rows = ch.log.index.rows_between(ch.number, first, end)
    times = ch.times[rows]
    if (times[1:] < times[:-1]).any():
        for time in wanted.tolist():
            yield from between(time, time + 1)
        return
    start = _key_before(ch, first, between)
    yield from between(first if start is None else start, end)


def _key_before(ch: Channel, first: int, between: Any) -> int | None:
    """Return the time of the last key frame at or before *first* of a channel with video; None for other pictures."""
    earlier = np.sort(ch.times[ch.log.index.rows_between(ch.number, None, first + 1)])
    back = _BACK
    while True:
        start = int(earlier[max(0, len(earlier) - back)])
        key: int | None = None
        for picture in between(start, first + 1):
            try:
                frame = frame_of(picture)
            except UnsupportedError:
                continue
            if frame.codec not in CHAINED:
                return None
            key = picture.time if frame.key else key
        if key is not None or back >= len(earlier):
            return key
        back *= 4
