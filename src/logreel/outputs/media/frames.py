"""Pictures as frames of a video: encoded packets or raw pixels."""

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

#: By format name in logs: codec, shift and mask to get the NAL unit type after a start code, and the types of key
#: frames (H.264, table 7-1; H.265, table 7-1).
VIDEO = {"h264": ("h264", 0, 31, {5}), "h265": ("hevc", 1, 63, set(range(16, 24)))}
_UNIT = re.compile(rb"\x00\x00\x01([^\x00])", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Frame:
    """One picture of a video.

    codec   codec of *packet*; empty for *pixels*
    size    width and height; (0, 0) if only the packet contains them
    pixels  uint8 [height, width] grey or [height, width, 3] RGB
    key     True: can be decoded without previous frames
    """

    codec: str
    size: tuple[int, int]
    packet: bytes = b""
    pixels: NDArray[np.uint8] | None = None
    key: bool = True


def frame_of(picture: Picture) -> Frame:
    """Return *picture* as a frame; PNG is decoded.

    Raises UnsupportedError for a broken picture, or one that no video can store.
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
    return _raw(_decode_png(whole.data), "PNG")


def _raw(pixels: NDArray[Any], name: str) -> Frame:
    if pixels.dtype != np.uint8:
        raise UnsupportedError(f"no video holds {8 * pixels.itemsize} bits of {name}")
    colours = pixels if pixels.ndim == 2 else pixels[..., :3]
    return Frame("", (pixels.shape[1], pixels.shape[0]), pixels=np.ascontiguousarray(colours))


def _decode_png(png: bytes) -> NDArray[Any]:
    import av

    try:
        (picture,) = av.CodecContext.create("png", "r").decode(av.Packet(png))
    except (av.FFmpegError, ValueError) as error:
        raise UnsupportedError("its PNG cannot be unpacked") from error
    if any(component.bits > 8 for component in picture.format.components):
        raise UnsupportedError("no video holds 16 bits of PNG")
    found: NDArray[Any] = picture.to_ndarray(format="rgb24")
    return found
