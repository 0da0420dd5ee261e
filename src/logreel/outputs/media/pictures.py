"""Pictures: encoded ones, checked for completeness; raw pixels; files of both; frames of videos."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import UnsupportedError
from logreel.lenses import Picture
from logreel.lenses.image import MAGIC as JPEG_MAGIC
from logreel.lenses.image import jpeg_size
from logreel.outputs.media.items import MediaItem

PNG_MAGIC = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True, slots=True)
class EncodedPicture:
    """A complete encoded picture: suffix (``.jpg`` or ``.png``), bytes, and size in pixels."""

    suffix: str
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


def write_picture(picture: Picture) -> MediaItem:
    """Return JPEG and PNG unchanged, and raw pixels as PNG; YUV colours become RGB.

    Raises UnsupportedError for a picture that is broken, has another size than stated, or an encoding that no picture
    file can store.
    """
    if (pixels := pixels_of(picture)) is not None:
        return MediaItem(".png", [png(pixels)])
    blob = encoded(picture)
    return MediaItem(blob.suffix, [blob.data])


#: By format name in logs: codec, shift and mask to get the NAL unit type after a start code, and the types of key
#: frames (H.264, table 7-1; H.265, table 7-1).
VIDEO = {"h264": ("h264", 0, 31, {5}), "h265": ("hevc", 1, 63, set(range(16, 24)))}
#: Codecs whose packets need those before them.
CHAINED = ("h264", "hevc")
RGB = NDArray[np.uint8]
#: Time in ns, RGB pixels [height, width, 3] or None, and why there are none.
Decoded = tuple[int, RGB | None, str]
_UNIT = re.compile(rb"\x00\x00\x01([^\x00])", re.DOTALL)


@dataclass(frozen=True, slots=True)
class VideoFrame:
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


def frame_of(picture: Picture) -> VideoFrame:
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
        return VideoFrame(codec, (0, 0), data, key=bool(kinds & key))
    blob = encoded(picture)
    if blob.suffix == ".jpg":
        return VideoFrame("mjpeg", (blob.width, blob.height), blob.data)
    return _raw(decode_png(blob.data), "PNG")


def _raw(pixels: NDArray[Any], name: str) -> VideoFrame:
    if pixels.dtype != np.uint8:
        raise UnsupportedError(f"no video holds {8 * pixels.itemsize} bits of {name}")
    colours = pixels if pixels.ndim == 2 else pixels[..., :3]
    return VideoFrame("", (pixels.shape[1], pixels.shape[0]), pixels=np.ascontiguousarray(colours))


def decode_png(png: bytes) -> NDArray[Any]:
    """Return the pixels of a PNG: RGB uint8 [height, width, 3], or with more than 8 bits grey uint16 [height, width].

    Raises UnsupportedError for a PNG that cannot be unpacked. Needs PyAV.
    """
    import av

    try:
        (picture,) = av.CodecContext.create("png", "r").decode(av.Packet(png))
    except (av.FFmpegError, ValueError) as error:
        raise UnsupportedError("its PNG cannot be unpacked") from error
    deep = any(component.bits > 8 for component in picture.format.components)
    pixels: NDArray[Any] = picture.to_ndarray(format="gray16le" if deep else "rgb24")
    return pixels


class FrameDecoder:
    """Decodes frames to RGB; packets of video need those before them. Needs PyAV.

    size  width and height that pictures are scaled to; None: as they are
    """

    def __init__(self, size: tuple[int, int] | None) -> None:
        self._size = size
        self._contexts: dict[str, Any] = {}
        self._times: dict[int, int] = {}
        self._count = 0

    def single(self, time: int, frame: VideoFrame | None, problem: str) -> Decoded:
        """Return time, pixels and problem of a picture that needs no other."""
        import av

        if frame is None:
            return time, None, problem
        try:
            if frame.pixels is not None:
                pixels = frame.pixels
                if pixels.ndim == 2:
                    pixels = np.repeat(pixels[..., None], 3, axis=2)
                if self._size is None:
                    return time, np.ascontiguousarray(pixels), ""
                return time, self._rgb(av.VideoFrame.from_ndarray(np.ascontiguousarray(pixels), "rgb24")), ""
            decoded = av.CodecContext.create(frame.codec, "r").decode(av.Packet(frame.packet))
            if not decoded:
                return time, None, f"its {frame.codec} holds no picture"
            return time, self._rgb(decoded[0]), ""
        except (av.FFmpegError, ValueError) as error:
            return time, None, f"it cannot be decoded: {error}"

    def chained(self, time: int, frame: VideoFrame) -> Iterator[Decoded]:
        """Yield the pictures that are complete after this packet."""
        import av

        if (context := self._contexts.get(frame.codec)) is None:
            if not frame.key:
                return
            context = self._contexts[frame.codec] = av.CodecContext.create(frame.codec, "r")
            context.thread_count = 1
        packet = av.Packet(frame.packet)
        packet.pts = packet.dts = self._count
        self._times[self._count] = time
        self._count += 1
        try:
            decoded = context.decode(packet)
        except (av.FFmpegError, ValueError):
            return
        yield from self._of_time(decoded)

    def rest(self) -> Iterator[Decoded]:
        """Yield the pictures that decoders still hold."""
        import av

        for context in self._contexts.values():
            try:
                decoded = context.decode(None)
            except (av.FFmpegError, ValueError):
                continue
            yield from self._of_time(decoded)

    def _of_time(self, decoded: list[Any]) -> Iterator[Decoded]:
        for frame in decoded:
            time = self._times.pop(frame.pts, None)
            if time is not None:
                yield time, self._rgb(frame), ""

    def _rgb(self, frame: Any) -> RGB:
        width, height = self._size or (frame.width, frame.height)
        pixels: RGB = frame.reformat(width, height, "rgb24", interpolation="AREA").to_ndarray()
        return pixels


CODEC = "libx264"


def add_stream(
    file: Any, size: tuple[int, int], time_base: Fraction, key_every: int, options: dict[str, str]
) -> Any:
    """Return a new stream of a video that is being written, without B-frames, so that packets are in order.

    file       the container of av
    size       width and height; odd ones are rounded up
    time_base  seconds per unit of the times of frames
    key_every  frames from one key frame to the next
    options    of the encoder, such as ``crf``

    Raises UnsupportedError if this installation of av has no encoder.
    """
    import av

    if CODEC not in av.codecs_available:
        raise UnsupportedError(f"this installation of av has no {CODEC} to encode it")
    stream = file.add_stream(CODEC, options=options)
    stream.width, stream.height = (length + length % 2 for length in size)
    stream.pix_fmt = "yuv420p"
    stream.time_base = stream.codec_context.time_base = time_base
    stream.codec_context.max_b_frames = 0
    stream.codec_context.gop_size = key_every
    return stream


def encode(stream: Any, pixels: NDArray[np.uint8], at: int, time_base: Fraction) -> list[Any]:
    """Return the packets that come out when a picture goes in.

    pixels  [height, width] grey or [height, width, 3] RGB
    at      its time in units of *time_base*

    Raises UnsupportedError if the encoder refuses it.
    """
    import av

    # 4:2:0 colours need an even width and height.
    edge = [(0, pixels.shape[0] % 2), (0, pixels.shape[1] % 2), (0, 0)][: pixels.ndim]
    if any(map(any, edge)):
        pixels = np.pad(pixels, edge, mode="edge")
    frame = av.VideoFrame.from_ndarray(pixels, "gray" if pixels.ndim == 2 else "rgb24")
    frame = frame.reformat(format="yuv420p")
    frame.pts, frame.time_base = at, time_base
    try:
        packets: list[Any] = stream.encode(frame)
    except av.FFmpegError as error:
        raise UnsupportedError(f"{CODEC} cannot encode it") from error
    return packets
