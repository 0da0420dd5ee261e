"""Encoded pictures, checked for completeness."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

from logreel.errors import UnsupportedError
from logreel.lenses import Picture
from logreel.lenses.sensors.jpeg import MAGIC as JPEG_MAGIC
from logreel.lenses.sensors.jpeg import jpeg_size

PNG_MAGIC = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True, slots=True)
class Encoded:
    """A complete encoded picture: suffix (``.jpg`` or ``.png``), bytes, and size in pixels."""

    kind: str
    data: bytes
    width: int
    height: int


def encoded(picture: Picture) -> Encoded:
    """Return *picture* after a check that it is a complete JPEG or PNG.

    Raises UnsupportedError if it is not, or has another size than stated.
    """
    data = bytes(picture.data)
    if data.startswith(JPEG_MAGIC):
        kind, size = ".jpg", jpeg_size(data)
    elif data.startswith(PNG_MAGIC):
        kind, size = ".png", _png_size(data)
    else:
        name = picture.encoding or picture.format or "content of unknown kind"
        raise UnsupportedError(f"no picture file holds {name[:60]!r}" if data else "it is empty")
    if size is None:
        raise UnsupportedError(f"its {'JPEG' if kind == '.jpg' else 'PNG'} is broken or cut off")
    if 0 in size:
        raise UnsupportedError("it has no pixels")
    if picture.width and picture.height and (picture.width, picture.height) != size:
        raise UnsupportedError(
            f"it is said to have {picture.width} × {picture.height} pixels, but has {size[0]} × {size[1]}"
        )
    return Encoded(kind, data, *size)


def _png_size(data: bytes) -> tuple[int, int] | None:
    """Return the size of a complete PNG, else None; all checksums are verified (PNG specification, section 5)."""
    at, size = len(PNG_MAGIC), None
    while len(data) - at >= 12:
        length, kind = struct.unpack_from(">I4s", data, at)
        if length > len(data) - at - 12:
            break
        content = data[at + 4 : at + 8 + length]
        if zlib.crc32(content) != int.from_bytes(data[at + 8 + length : at + 12 + length], "big"):
            break
        if size is None:
            if kind != b"IHDR" or length != 13:
                break
            size = struct.unpack_from(">II", data, at + 8)
        if kind == b"IEND":
            return size
        at += 12 + length
    return None
