"""Pictures as a video takes them: packets that are encoded already, or pixels."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import UnsupportedError
from logreel.lenses import Picture
from logreel.outputs.media.pictures import encoded
from logreel.outputs.media.pixels import pixels_of

#: By what a log calls it: the codec of a video, and the kinds of NAL units that a key frame has (H.264, table 7-1;
#: H.265, table 7-1), found behind a start code by a shift and a mask.
VIDEO = {"h264": ("h264", 0, 31, {5}), "h265": ("hevc", 1, 63, set(range(16, 24)))}
_UNIT = re.compile(rb"\x00\x00\x01([^\x00])", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Frame:
    """One picture of a video.

    codec   of *packet*; empty where there are *pixels*
    size    width and height, or (0, 0) where only the packet tells
    pixels  uint8 [height, width] grey or [height, width, 3] RGB
    key     whether it can be shown without the ones before
    """

    codec: str
    size: tuple[int, int]
    packet: bytes = b""
    pixels: NDArray[np.uint8] | None = None
    key: bool = True


def frame_of(picture: Picture) -> Frame:
    """*picture* as a frame; PNG is unpacked.

    Raises UnsupportedError for one that is broken, or that no video holds.
    """
    if (pixels := pixels_of(picture)) is not None:
        return _raw(pixels, picture.encoding or "")
    if known := VIDEO.get((picture.format or "").lower()):
        codec, shift, mask, key = known
        data = bytes(picture.data)
        kinds = {unit[1][0] >> shift & mask for unit in _UNIT.finditer(data)}
        if not kinds:
            raise UnsupportedError(f"it is no packet of {picture.format}")
        return Frame(codec, (0, 0), data, key=bool(kinds & key))
    whole = encoded(picture)
    if whole.kind == ".jpg":
        return Frame("mjpeg", (whole.width, whole.height), whole.data)
    return _raw(_unpacked(whole.data), "PNG")


def _raw(pixels: NDArray[Any], name: str) -> Frame:
    if pixels.dtype != np.uint8:
        raise UnsupportedError(f"no video holds {8 * pixels.itemsize} bits of {name}")
    colours = pixels if pixels.ndim == 2 else pixels[..., :3]
    return Frame("", (pixels.shape[1], pixels.shape[0]), pixels=np.ascontiguousarray(colours))


def _unpacked(png: bytes) -> NDArray[Any]:
    import av

    try:
        (picture,) = av.CodecContext.create("png", "r").decode(av.Packet(png))
    except (av.FFmpegError, ValueError) as error:
        raise UnsupportedError("its PNG cannot be unpacked") from error
    if any(component.bits > 8 for component in picture.format.components):
        raise UnsupportedError("no video holds 16 bits of PNG")
    found: NDArray[Any] = picture.to_ndarray(format="rgb24")
    return found
