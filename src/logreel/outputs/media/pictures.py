"""Encoded pictures, checked for completeness."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass
from logreel.errors import UnsupportedError
from logreel.lenses import Picture
from logreel.lenses.image import MAGIC as JPEG_MAGIC
from logreel.lenses.image import jpeg_size

PNG_MAGIC = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True, slots=True)
class EncodedPicture:
    """A complete encoded picture: suffix (``.jpg`` or ``.png``), bytes, and size in pixels."""

    kind: str
    data: bytes
    width: int
    height: int


def encoded(picture: Picture) -> EncodedPicture:
    """Return *picture* after a check that it is a complete JPEG or PNG.

    Raises UnsupportedError if it is not, or has another size than stated.
    """
    data = bytes(picture.data)
    if data.startswith(JPEG_MAGIC):
        suffix, size = ".jpg", jpeg_size(data)
    elif data.startswith(PNG_MAGIC):
        suffix, size = ".png", _png_size(data)
    else:
        name = picture.encoding or picture.format or "content of unknown kind"
        raise UnsupportedError(f"no picture file holds {name[:60]!r}" if data else "it is empty")
    if size is None:
        raise UnsupportedError(f"its {'JPEG' if suffix == '.jpg' else 'PNG'} is broken or cut off")
    if 0 in size:
        raise UnsupportedError("it has no pixels")
    if picture.width and picture.height and (picture.width, picture.height) != size:
        raise UnsupportedError(
            f"it is said to have {picture.width} × {picture.height} pixels, but has {size[0]} × {size[1]}"
        )
    return EncodedPicture(suffix, data, *size)


def _png_size(data: bytes) -> tuple[int, int] | None:
    """Return the size of a complete PNG, else None; all checksums are verified (PNG specification, section 5)."""
    at, size = len(PNG_MAGIC), None
    while len(data) - at >= 12:
        length, chunk_type = struct.unpack_from(">I4s", data, at)
        if length > len(data) - at - 12:
            break
        content = data[at + 4 : at + 8 + length]
        if zlib.crc32(content) != int.from_bytes(data[at + 8 + length : at + 12 + length], "big"):
            break
        if size is None:
            if chunk_type != b"IHDR" or length != 13:
                break
            size = struct.unpack_from(">II", data, at + 8)
        if chunk_type == b"IEND":
            return size
        at += 12 + length
    return None


#: Encodings with one sample per pixel; and encodings with several, with the indices of red, green, blue and alpha.
#: Encodings named by their type have the order of OpenCV.
_GREY = frozenset(
    name + bits
    for name in ("mono", "bayer_rggb", "bayer_bggr", "bayer_gbrg", "bayer_grbg")
    for bits in ("8", "16")
) | {"8UC", "16UC", "8UC1", "16UC1"}
_SAMPLES = {
    f"{name}{bits}{number}": order
    for name, number, order in (
        ("rgb", "", [0, 1, 2]),
        ("bgr", "", [2, 1, 0]),
        ("rgba", "", [0, 1, 2, 3]),
        ("bgra", "", [2, 1, 0, 3]),
        ("", "UC3", [2, 1, 0]),
        ("", "UC4", [2, 1, 0, 3]),
    )
    for bits in (8, 16)
}
#: Byte indices of both lumas, blue and red chroma in the four bytes of two pixels.
_PAIRS = {"yuv422": (1, 3, 0, 2), "yuv422_yuy2": (0, 2, 1, 3)}


def pixels_of(picture: Picture) -> NDArray[Any] | None:
    """Return pixels as grey [height, width], or RGB or RGBA [height, width, samples], of 8 or 16 bits.

    Returns None for encoded pictures and other encodings. YUV 4:2:2 becomes RGB. Raises UnsupportedError for too few
    bytes.
    """
    if picture.encoding in _GREY:
        return picture.array()
    if order := _SAMPLES.get(picture.encoding or ""):
        return picture.array()[..., order]
    if places := _PAIRS.get(picture.encoding or ""):
        return _rgb(picture.array(), *places)
    return None


def _rgb(pixels: NDArray[np.uint8], first: int, second: int, blue: int, red: int) -> NDArray[np.uint8]:
    """Return YUV 4:2:2 pixels as RGB, by ITU-R BT.601 with black at 16 and white at 235."""
    height, width = pixels.shape[:2]
    if width % 2:
        raise UnsupportedError(f"{width} pixels in a row are no pairs")
    pairs = pixels.reshape(height, width // 2, 4).astype(np.float32)
    luma = 1.164384 * (pairs[..., [first, second]] - 16)
    cb, cr = (pairs[..., [place, place]] - 128 for place in (blue, red))
    rgb = np.stack(
        [luma + 1.596027 * cr, luma - 0.391762 * cb - 0.812968 * cr, luma + 2.017232 * cb], axis=-1
    )
    rounded: NDArray[np.uint8] = np.rint(rgb).clip(0, 255).astype(np.uint8).reshape(height, width, 3)
    return rounded


_COLOUR_TYPES = {1: 0, 3: 2, 4: 6}
_UP = 2


def png(pixels: NDArray[Any]) -> bytes:
    """Return a PNG with 8 or 16 bits per sample.

    pixels  uint8 or uint16 [height, width] grey, [height, width, 3] RGB or [height, width, 4] RGBA, not empty
    """
    height, width, samples = pixels.shape if pixels.ndim == 3 else (*pixels.shape, 1)
    lines = np.ascontiguousarray(pixels.astype(pixels.dtype.newbyteorder(">"), copy=False))
    raw = lines.view(np.uint8).reshape(height, -1)
    filtered = np.empty((height, 1 + raw.shape[1]), np.uint8)
    filtered[:, 0] = _UP
    filtered[0, 1:] = raw[0]
    np.subtract(raw[1:], raw[:-1], out=filtered[1:, 1:])
    # Pixel differences rarely repeat: Z_RLE is four times as fast, and the file is not larger.
    packer = zlib.compressobj(1, zlib.DEFLATED, 15, 9, zlib.Z_RLE)
    head = struct.pack(">IIBBBBB", width, height, 8 * pixels.dtype.itemsize, _COLOUR_TYPES[samples], 0, 0, 0)
    body = packer.compress(filtered.data) + packer.flush()
    parts = ((b"IHDR", head), (b"IDAT", body), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_part(chunk_type, content) for chunk_type, content in parts)


def _part(chunk_type: bytes, content: bytes) -> bytes:
    return (
        struct.pack(">I", len(content))
        + chunk_type
        + content
        + struct.pack(">I", zlib.crc32(chunk_type + content))
    )
