"""Images of cameras, encoded or as raw pixels."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass, replace
from logreel.errors import Problem, UnsupportedError
from logreel.lenses.base import Nodes, Stamp, find_stamp, is_blob, is_number, is_text, stamped_rows

if TYPE_CHECKING:
    from logreel.log.log import Channel


#: Maximum of segments before the pixels; a colour profile takes up to 255.
_MAX_SEGMENTS = 4096
_SCAN = 0xDA
#: Markers of segments that may come before the pixels.
_SEGMENTS = frozenset(range(0xC0, 0xFF)) - frozenset(range(0xD0, _SCAN))
#: Markers of a frame header: C0 to CF except those of tables.
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
MAGIC, _END = b"\xff\xd8\xff", b"\xff\xd9"


def jpeg_size(data: bytes) -> tuple[int, int] | None:
    """Return width and height of a JPEG; None for other, damaged or truncated data.

    Source: ITU-T T.81, annex B: segments up to the scan, one of which is the frame header, and an end marker.
    """
    if not data.startswith(MAGIC):
        return None
    at, size = 2, None
    for _ in range(_MAX_SEGMENTS):
        while data[at : at + 2] == b"\xff\xff":
            at += 1
        if len(data) - at < 4 or data[at] != 0xFF:
            break
        marker, length = data[at + 1], int.from_bytes(data[at + 2 : at + 4], "big")
        if marker not in _SEGMENTS or length < 2 or length > len(data) - at - 2:
            break
        if marker in _FRAMES and length >= 8:
            high, wide = (int.from_bytes(data[at + i : at + i + 2], "big") for i in (5, 7))
            size = wide, high
        at += 2 + length
        if marker == _SCAN:
            return size if data.rfind(_END) >= at else None
    return None


#: Pixel encodings: the NumPy type of a sample, and samples per pixel.
_NAMED = {"yuv422": ("u1", 2), "yuv422_yuy2": ("u1", 2)}
_COLOURS = {"mono": 1, "rgb": 3, "bgr": 3, "rgba": 4, "bgra": 4}
_COLOUR = re.compile(r"(mono|rgba?|bgra?|bayer_\w{4})(8|16)")
_PLAIN = re.compile(r"(8|16|32|64)([USF])C(\d{0,3})")


@dataclass(frozen=True, slots=True)
class Picture:
    """One image.

    time      ns
    data      encoded bytes, or rows of pixels from the top
    format    codec as stated by the log (``jpeg``, ``rgb8; jpeg compressed bgr8``), or None for raw pixels
    encoding  name of the raw pixels (``rgb8``, ``32FC1``), or None
    stamp     ns when it was taken, according to the message; 0 if unknown
    """

    time: int
    data: memoryview
    format: str | None = None
    encoding: str | None = None
    width: int = 0
    height: int = 0
    big_endian: bool = False
    stamp: int = 0

    def array(self) -> NDArray[Any]:
        """Return the raw pixels as stored: [height, width] or [height, width, samples].

        Raises UnsupportedError for an encoded image, an unknown pixel encoding, or too few bytes.
        """
        pixel_type, samples = _pixel_type(self.encoding or "")
        if not pixel_type:
            raise UnsupportedError(f"no raw pixels that are known: {self.encoding or self.format or '?'}")
        dtype = np.dtype(pixel_type).newbyteorder(">" if self.big_endian else "<")
        flat = np.frombuffer(self.data, np.uint8)
        used = self.width * samples * dtype.itemsize
        step = len(flat) // self.height if self.height else 0
        if step < used or not used:
            raise UnsupportedError(
                f"{len(flat)} bytes are no picture of {self.width} × {self.height} pixels {self.encoding}"
            )
        # The rest of a row is padding.
        lines = np.ascontiguousarray(flat[: step * self.height].reshape(self.height, step)[:, :used])
        shape = (self.height, self.width) if samples == 1 else (self.height, self.width, samples)
        return lines.view(dtype).reshape(shape)


def _pixel_type(encoding: str) -> tuple[str, int]:
    if encoding in _NAMED:
        return _NAMED[encoding]
    if m := _COLOUR.fullmatch(encoding):
        return f"u{int(m[2]) // 8}", _COLOURS.get(m[1], 1)
    if m := _PLAIN.fullmatch(encoding):
        dtype = {"U": "u", "S": "i", "F": "f"}[m[2]] + str(int(m[1]) // 8)
        return ("", 0) if dtype == "f1" else (dtype, int(m[3] or 1))
    return "", 0


@dataclass(frozen=True, slots=True)
class Image:
    """Images: encoded bytes (``format`` names the codec) or raw pixels (``encoding``, ``width``, ``height``).

    Without ``format``, ``encoding`` and ``codec``, they are JPEGs of a stated width and height.

    codec  codec of all images, if it is not in the messages
    """

    data: str
    format: str | None = None
    encoding: str | None = None
    width: str | None = None
    height: str | None = None
    big_endian: str | None = None
    stamp: Stamp | None = None
    codec: str | None = None

    def pictures(self, ch: Channel, start: int | None = None, end: int | None = None) -> Iterator[Picture]:
        """Yield the images of *ch* with start <= time < end (ns), in file order, decoding in small batches.

        A JPEG whose size differs from the stated one is noted as a Problem with code ``picture``.
        """
        names = (self.data, self.format, self.encoding, self.width, self.height, self.big_endian)
        paths = [name for name in names if name]
        for time, stamp, value in stamped_rows(ch, paths, self.stamp, start, end):
            picture = Picture(
                time,
                value[self.data].data,
                value[self.format] if self.format else self.codec,
                value[self.encoding] if self.encoding else None,
                value[self.width] if self.width else 0,
                value[self.height] if self.height else 0,
                bool(value[self.big_endian]) if self.big_endian else False,
                stamp,
            )
            yield picture if picture.format or self.encoding else _as_jpeg(ch, picture)


def _as_jpeg(ch: Channel, picture: Picture) -> Picture:
    """Return an image of unstated codec as a JPEG; note a Problem if it is none or has another size than stated."""
    size = jpeg_size(bytes(picture.data))
    if size is None or size != (picture.width, picture.height):
        have = "no whole JPEG" if size is None else f"{size[0]} × {size[1]} pixels"
        text = f"{ch.topic}: a picture that should have {picture.width} × {picture.height} pixels has {have}"
        ch.log.note(Problem("picture", 0, 0, False, text))
    return picture if size is None else replace(picture, format="jpeg")


def find_image(nodes: Nodes) -> Image | None:
    """Return the Image that *nodes* describe, or None."""
    if not is_blob(nodes.get("data")):
        return None
    sized = is_number(nodes.get("width")) and is_number(nodes.get("height"))
    if sized and is_number(nodes.get("compressed")):
        return Image("data", width="width", height="height", stamp=find_stamp(nodes))
    if is_text(nodes.get("format")):
        return Image("data", format="format", stamp=find_stamp(nodes))
    if is_text(nodes.get("encoding")) and sized:
        big = "is_bigendian" if is_number(nodes.get("is_bigendian")) else None
        return Image("data", None, "encoding", "width", "height", big_endian=big, stamp=find_stamp(nodes))
    return None


def find_encoded_image(ch: Channel) -> Image | None:
    """Return the Image of a channel whose payloads are image files, as a content type such as ``image/jpeg`` says."""
    media, _, codec = ch.schema.encoding.partition("/")
    return Image("data", codec=codec) if media == "image" and ch.fields == ["data"] else None
