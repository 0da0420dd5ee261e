"""Black pictures with the size and encoding of others."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping
from typing import Any

_PNG = b"\x89PNG\r\n\x1a\n"
#: Bytes before the PNG of a compressed depth image of ROS.
_DEPTH_HEADER = 12
#: Largest picture in pixels that is written; headers of damaged pictures can claim more.
MAX_PIXELS = 1 << 28
#: Samples per pixel by colour type of PNG.
_SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
#: Black in encodings in which it is not zero.
_BLACK = {"yuv422": b"\x80\x00", "uyvy": b"\x80\x00", "yuv422_yuy2": b"\x00\x80", "yuyv": b"\x00\x80"}


def black(data: bytes, encoding: str | None) -> bytes | None:
    """Return a black picture with the size and encoding of *data*; None if the encoding is not supported.

    encoding  name of raw pixels; None: an encoded picture, JPEG or PNG
    """
    if encoding is not None:
        unit = _BLACK.get(encoding, b"\0")
        return (unit * (len(data) // len(unit) + 1))[: len(data)]
    if not data:
        return b""
    if data[:2] == b"\xff\xd8":
        return _black_jpeg(data)
    if data[:8] == _PNG:
        return _black_png(data)
    if data[_DEPTH_HEADER : _DEPTH_HEADER + 8] == _PNG:
        made = _black_png(data[_DEPTH_HEADER:])
        return None if made is None else data[:_DEPTH_HEADER] + made
    return None


def blank(encoding_field: str | None) -> Callable[[bytes, Callable[[], Mapping[str, Any]]], bytes]:
    """Return the change of picture data; *encoding_field*: the field that names the encoding of raw pixels, or None.

    Pictures that cannot be replaced by black ones become empty.
    """

    def change(data: bytes, message: Callable[[], Mapping[str, Any]]) -> bytes:
        encoding = str(message().get(encoding_field, "")) if encoding_field else None
        made = black(data, encoding)
        return b"" if made is None else made

    return change


def _black_png(data: bytes) -> bytes | None:
    if len(data) < 33 or data[12:16] != b"IHDR":
        return None
    width, height, depth, colour, _, _, _ = struct.unpack(">IIBBBBB", data[16:29])
    if colour not in _SAMPLES or depth not in (1, 2, 4, 8, 16) or not 0 < width * height <= MAX_PIXELS:
        return None
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    row = 1 + (width * depth * _SAMPLES[colour] + 7) // 8
    packer, packed = zlib.compressobj(9), bytearray()
    for _ in range(height):
        packed += packer.compress(bytes(row))
    packed += packer.flush()
    palette = [(b"PLTE", b"\0\0\0")] if colour == 3 else []
    chunks = [(b"IHDR", header), *palette, (b"IDAT", bytes(packed)), (b"IEND", b"")]
    return _PNG + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in chunks
    )


def _black_jpeg(data: bytes) -> bytes | None:
    """Return a baseline JPEG: one block of zeros after the other, of which only the first states that it is black."""
    size_and_components = _jpeg_frame(data)
    if size_and_components is None:
        return None
    width, height, components = size_and_components
    if not 0 < width * height <= MAX_PIXELS:
        return None
    components = 1 if components not in (1, 3) else components
    blocks = ((width + 7) // 8) * ((height + 7) // 8)
    # Codes of one bit: differences of category 0, and the end of a block. Codes of two bits: category 11.
    first = "10" + format(2047 - 1024, "011b") + "0" + "00" * (components - 1)
    bits = first + "00" * components * (blocks - 1)
    bits += "1" * (-len(bits) % 8)
    scan = int(bits, 2).to_bytes(len(bits) // 8, "big").replace(b"\xff", b"\xff\x00")
    ids = range(1, components + 1)
    frame = struct.pack(">BHHB", 8, height, width, components) + b"".join(bytes((n, 0x11, 0)) for n in ids)
    dc = b"\x00" + bytes((1, 1)) + bytes(14) + b"\x00\x0b"
    ac = b"\x10" + bytes((1,)) + bytes(15) + b"\x00"
    start = bytes((components,)) + b"".join(bytes((n, 0)) for n in ids) + b"\x00\x3f\x00"
    parts = [
        (0xE0, b"JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00"),
        (0xDB, b"\x00" + b"\x01" * 64),
        (0xC0, frame),
        (0xC4, dc),
        (0xC4, ac),
        (0xDA, start),
    ]
    head = b"".join(
        b"\xff" + bytes((marker,)) + struct.pack(">H", len(body) + 2) + body for marker, body in parts
    )
    return b"\xff\xd8" + head + scan + b"\xff\xd9"


def _jpeg_frame(data: bytes) -> tuple[int, int, int] | None:
    """Return width, height and number of components of a JPEG; None if it does not say."""
    pos = 2
    while pos + 4 <= len(data):
        if data[pos] != 0xFF:
            return None
        marker = data[pos + 1]
        if marker == 0xFF or marker == 0x01 or 0xD0 <= marker <= 0xD8:
            pos += 1 if marker == 0xFF else 2
            continue
        size = int.from_bytes(data[pos + 2 : pos + 4], "big")
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            if pos + 10 > len(data):
                return None
            height, width = struct.unpack(">HH", data[pos + 5 : pos + 9])
            return width, height, data[pos + 9]
        if marker == 0xDA or size < 2:
            return None
        pos += 2 + size
    return None


def without_metadata(data: bytes) -> bytes | None:
    """Return a JPEG, PNG or WebP without Exif, XMP, IPTC, comments, texts and times; None if *data* is none of these.

    Pixels and colour profiles stay. What follows the end of the picture is left out, since it can be anything.
    """
    if data[:3] == b"\xff\xd8\xff":
        return _bare_jpeg(data)
    if data[:8] == _PNG:
        return _bare_png(data)
    if data[_DEPTH_HEADER : _DEPTH_HEADER + 8] == _PNG:
        return data[:_DEPTH_HEADER] + _bare_png(data[_DEPTH_HEADER:])
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return _bare_webp(data)
    return None


def _bare_jpeg(data: bytes) -> bytes:
    out, pos = bytearray(data[:2]), 2
    while pos + 4 <= len(data) and data[pos] == 0xFF:
        marker = data[pos + 1]
        size = int.from_bytes(data[pos + 2 : pos + 4], "big")
        if marker == 0xDA or size < 2:
            break
        # APP0 (JFIF), APP2 (colour profile) and APP14 (colours) are needed to show the picture.
        keeps = marker in (0xE0, 0xE2, 0xEE) or not (0xE0 <= marker <= 0xEF or marker == 0xFE)
        out += data[pos : pos + 2 + size] if keeps else b""
        pos += 2 + size
    end = data.rfind(b"\xff\xd9", pos)
    return bytes(out) + (data[pos : end + 2] if end >= 0 else data[pos:])


def _bare_png(data: bytes) -> bytes:
    out, pos = bytearray(data[:8]), 8
    while pos + 12 <= len(data):
        size, name = int.from_bytes(data[pos : pos + 4], "big"), data[pos + 4 : pos + 8]
        if name not in (b"eXIf", b"tEXt", b"iTXt", b"zTXt", b"tIME"):
            out += data[pos : pos + 12 + size]
        pos += 12 + size
        if name == b"IEND":
            return bytes(out)
    return bytes(out) + data[pos:]


def _bare_webp(data: bytes) -> bytes:
    out, pos = bytearray(), 12
    while pos + 8 <= len(data):
        size = int.from_bytes(data[pos + 4 : pos + 8], "little")
        chunk = bytearray(data[pos : pos + 8 + size + (size & 1)])
        if chunk[:4] == b"VP8X" and len(chunk) > 8:
            chunk[8] &= ~0x0C
        out += chunk if bytes(chunk[:4]) not in (b"EXIF", b"XMP ") else b""
        pos += 8 + size + (size & 1)
    return b"RIFF" + struct.pack("<I", 4 + len(out)) + b"WEBP" + bytes(out)
