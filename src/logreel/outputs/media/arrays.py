"""Pictures, point clouds and positions of a channel as NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import MissingDependencyError, Problem, UnsupportedError
from logreel.lenses import Fixes, Picture, Points
from logreel.log.times import Time, interval
from logreel.outputs.media.pictures import (
    CHAINED,
    PNG_MAGIC,
    Decoded,
    FrameDecoder,
    decode_png,
    encoded,
    frame_of,
    pixels_of,
)
from logreel.outputs.registry import readers

if TYPE_CHECKING:
    from logreel.log.log import Channel


@dataclass(frozen=True, slots=True)
class DecodedPicture:
    """One picture.

    time    ns, when the logger took the message
    pixels  RGB uint8 [height, width, 3]; raw pixels as recorded: grey and depth [height, width], RGB, or RGBA;
            of a PNG with 16 bits grey uint16 [height, width]
    """

    time: int
    pixels: NDArray[Any]


def pictures(ch: Channel, start: Time | None = None, end: Time | None = None) -> Iterator[DecodedPicture]:
    """Yield the pictures of a channel with start <= time < end, in file order, decoding one at a time.

    JPEG, PNG and video (H.264, H.265) need ``logreel[video]``. Of video, what comes before the first key frame of the
    interval is left out. A picture that cannot be decoded is left out and noted as a Problem with code ``picture``.

    Raises UnsupportedError for a channel without pictures, MissingDependencyError.
    """
    return _decoded(ch, _readers(ch, "pictures"), *interval(ch.log, start, end))


def clouds(ch: Channel, start: Time | None = None, end: Time | None = None) -> Iterator[Points]:
    """Yield the point clouds of a channel with start <= time < end, of a laser scanner one for each turn or scan.

    ``cloud.xyz`` is float64[k, 3] in metres, ``cloud.fields`` has the arrays of all fields, ``cloud.time`` is ns.
    Raises UnsupportedError for a channel without point clouds.
    """
    reads, (lo, hi) = _readers(ch, "clouds"), interval(ch.log, start, end)
    return chain.from_iterable(read(ch, lo, hi) for read in reads)


def positions(ch: Channel, start: Time | None = None, end: Time | None = None) -> Fixes:
    """Return the valid positions of a channel with start <= time < end, in order of time, as arrays.

    ``latitude`` and ``longitude`` float64[n] degrees, ``altitude`` float64[n] metres (NaN where unknown), ``time``
    int64[n] ns. Raises UnsupportedError for a channel without positions.
    """
    read, *_ = _readers(ch, "fixes")
    fixes: Fixes = read(ch, *interval(ch.log, start, end), quality=True)
    fixes = fixes.take(fixes.valid)
    return fixes.take(np.argsort(fixes.time, kind="stable"))


def _readers(ch: Channel, reads: str) -> list[Callable[..., Any]]:
    methods = readers(ch, reads)
    if not methods:
        contents = {"fixes": "positions", "clouds": "point clouds"}.get(reads, reads)
        raise UnsupportedError(f"{ch.topic!r} has no {contents} that are known", path=ch.log.name)
    return methods


def _decoded(
    ch: Channel, reads: list[Callable[..., Iterator[Picture]]], lo: int | None, hi: int | None
) -> Iterator[DecodedPicture]:
    decoder = FrameDecoder(None)
    try:
        for picture in chain.from_iterable(read(ch, lo, hi) for read in reads):
            try:
                raw = pixels_of(picture)
                if raw is None and picture.encoding is not None:
                    raw = picture.array()
                elif raw is None and bytes(picture.data[:8]) == PNG_MAGIC:
                    # Depth images are PNGs of 16 bits.
                    raw = decode_png(encoded(picture).data)
            except UnsupportedError as error:
                _note(ch, picture.time, error.text)
                continue
            if raw is not None:
                yield DecodedPicture(picture.time, raw)
            else:
                yield from _whole(ch, _frames(decoder, picture))
        yield from _whole(ch, decoder.rest())
    except ModuleNotFoundError as error:
        raise MissingDependencyError("av", "video") from error


def _frames(decoder: FrameDecoder, picture: Picture) -> Iterator[Decoded]:
    try:
        frame = frame_of(picture)
    except UnsupportedError as error:
        yield picture.time, None, error.text
        return
    if frame.codec in CHAINED:
        yield from decoder.chained(picture.time, frame)
    else:
        yield decoder.single(picture.time, frame, "")


def _whole(ch: Channel, decoded: Iterator[Decoded]) -> Iterator[DecodedPicture]:
    for time, pixels, problem in decoded:
        if pixels is None:
            _note(ch, time, problem)
        else:
            yield DecodedPicture(time, pixels)


def _note(ch: Channel, time: int, why: str) -> None:
    ch.log.note(Problem("picture", 0, 0, False, f"{ch.topic}: the picture at {time} ns is left out: {why}"))
