"""Pictures at a moment, in encodings that browsers show; and the packets of a video."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import LogError, MissingDependencyError, UnsupportedError
from logreel.lenses import Image, Picture
from logreel.meaning.channels import lenses_of
from logreel.meaning.scenes import last_time
from logreel.outputs.media.frames import VIDEO, frame_of
from logreel.outputs.media.pictures import PNG_MAGIC, pixels_of, png

if TYPE_CHECKING:
    from logreel.log.log import Channel, Log

#: Pixels of a picture that is converted, at most.
PIXELS = 64 << 20
#: Messages, and bytes, of a video that are searched back for a key frame, and sent at most in one answer.
KEY_MESSAGES, VIDEO_BYTES = 600, 32 << 20
#: First bytes of encoded pictures that browsers show, with the media type.
_MEDIA = (
    (b"\xff\xd8\xff", "image/jpeg"),
    (PNG_MAGIC, "image/png"),
    (b"GIF8", "image/gif"),
    (b"BM", "image/bmp"),
)
#: Pixel encodings that hold distances rather than brightness, and metres per unit; 0: unknown.
_DISTANCES = {"16UC1": 0.001, "mono16": 0.0, "32FC1": 1.0, "64FC1": 1.0}
#: Bytes before the PNG in a compressed depth picture of ROS: its format, and two parameters.
_DEPTH_HEAD = 12
#: Place of red, and of blue, in a square of 2 × 2 pixels behind a colour filter.
_BAYER = {"rggb": (0, 3), "bggr": (3, 0), "gbrg": (2, 1), "grbg": (1, 2)}


@dataclass(frozen=True, slots=True)
class PictureSource:
    """A channel of pictures: *kind* is ``picture`` or ``video``; *codec* is that of the first message."""

    topic: str
    kind: str
    codec: str
    count: int


@dataclass(frozen=True, slots=True)
class Shown:
    """A picture for a browser.

    time, row      ns of its message, and its number in the channel
    following      ns of the next message; None after the last one
    data, media    bytes, and their media type
    width, height  pixels in the log; 0 if unknown
    note           sentence about a conversion; empty if there is none
    """

    time: int
    row: int
    following: int | None
    data: bytes
    media: str
    width: int = 0
    height: int = 0
    note: str = ""


def picture_sources(log: Log) -> list[PictureSource]:
    """Return the channels of *log* with pictures, in file order."""
    sources = []
    for ch, lenses in lenses_of(log):
        for lens in lenses:
            if isinstance(lens, Image):
                codec = _codec(ch, lens)
                shown_as = "video" if codec in VIDEO else "picture"
                sources.append(PictureSource(ch.topic, shown_as, codec, len(ch)))
                break
    return sources


def _image(ch: Channel) -> Image | None:
    lenses = (lens for known, own in lenses_of(ch.log) if known is ch for lens in own)
    return next((lens for lens in lenses if isinstance(lens, Image)), None)


def _codec(ch: Channel, lens: Image) -> str:
    first = ch.start
    try:
        picture = next(lens.pictures(ch, first, None if first is None else first + 1), None)
    except LogError:
        picture = None
    return (picture.format or picture.encoding or "").lower() if picture is not None else ""


def picture_at(ch: Channel, at: int, width: int | None = None) -> Shown | None:
    """Return the last picture of *ch* at or before *at* (ns), or None.

    width  of the drawing in pixels: larger pictures that are converted lose rows and columns; None: all of them

    Raises UnsupportedError for a picture that cannot be shown, MissingDependencyError for a video without
    ``logreel[video]``.
    """
    time = last_time(ch, at)
    lens = next(
        (one for known, own in lenses_of(ch.log) if known is ch for one in own if isinstance(one, Image)),
        None,
    )
    if lens is None or time is None:
        return None
    picture = None
    for one in lens.pictures(ch, time, time + 1):
        picture = one
    if picture is None:
        raise UnsupportedError("the message of this picture cannot be decoded")
    row = int(np.flatnonzero(ch.times == time)[-1])
    is_video = (picture.format or "").lower() in VIDEO
    shown = _video_frame(ch, lens, time, width) if is_video else browser_picture(picture, width)
    return Shown(time, row, next_time(ch, time), *shown)


def next_time(ch: Channel, time: int) -> int | None:
    """Return the time of the first message of *ch* after *time* (ns); None if there is none."""
    times = ch.times[ch.log.index.rows_between(ch.number, time + 1, None)]
    return int(times.min()) if len(times) else None


def browser_picture(picture: Picture, width: int | None = None) -> tuple[bytes, str, int, int, str]:
    """Return bytes, media type, width, height and note of *picture* as browsers show it; raises UnsupportedError."""
    data = bytes(picture.data)
    if not data:
        raise UnsupportedError("the picture is empty")
    if picture.encoding is None:
        if (picture.format or "").lower().rstrip().endswith("compresseddepth png"):
            return _depth_png(picture, data, width)
        for magic, media in _MEDIA:
            if data.startswith(magic):
                return data, media, picture.width, picture.height, ""
        if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
            return data, "image/webp", picture.width, picture.height, ""
        raise UnsupportedError(f"no browser shows {picture.format or 'this encoding'!r:.60}")
    if picture.width * picture.height > PIXELS:
        raise UnsupportedError(f"{picture.width} × {picture.height} pixels are too many to be converted")
    pixels, note = _grey_or_colour(picture, width)
    return png(pixels), "image/png", picture.width, picture.height, note


def _grey_or_colour(picture: Picture, width: int | None) -> tuple[NDArray[np.uint8], str]:
    encoding = picture.encoding or ""
    if encoding in _DISTANCES:
        return _scaled(_smaller(picture.array(), width), _DISTANCES[encoding])
    if encoding.startswith("bayer_"):
        return _eight_bits(_smaller(_colours(picture.array(), encoding), width)), ""
    pixels = pixels_of(picture)
    if pixels is None:
        try:
            pixels = picture.array()
        except UnsupportedError as error:
            raise UnsupportedError(f"pixels in {encoding!r:.60} cannot be shown: {error.text}") from error
        return _scaled(_smaller(pixels if pixels.ndim == 2 else pixels[..., 0], width), 0.0)
    return _eight_bits(_smaller(pixels, width)), ""


def _smaller(pixels: NDArray[Any], width: int | None) -> NDArray[Any]:
    """Return every n-th row and column, so that at least *width* columns are left."""
    step = max(1, pixels.shape[1] // max(1, width)) if width else 1
    return np.ascontiguousarray(pixels[::step, ::step])


def _eight_bits(pixels: NDArray[Any]) -> NDArray[np.uint8]:
    return (
        (pixels >> 8).astype(np.uint8) if pixels.dtype.itemsize == 2 else pixels.astype(np.uint8, copy=False)
    )


def _colours(mosaic: NDArray[Any], encoding: str) -> NDArray[Any]:
    """Return RGB of half the size: each square of a colour filter is one pixel."""
    red, blue = _BAYER[encoding[6:10]]
    high, wide = (size // 2 * 2 for size in mosaic.shape)
    if not high or not wide:
        raise UnsupportedError("the picture is too small for its colour filter")
    corner = [mosaic[i // 2 : high : 2, i % 2 : wide : 2] for i in range(4)]
    green = [i for i in range(4) if i not in (red, blue)]
    middle = (corner[green[0]].astype(np.uint32) + corner[green[1]]) // 2
    return np.stack([corner[red], middle.astype(mosaic.dtype), corner[blue]], axis=-1)


def _scaled(values: NDArray[Any], metres: float) -> tuple[NDArray[np.uint8], str]:
    """Return distances or other measured values as grey from black to white, and the range as a sentence.

    The range is from the 1st to the 99th percentile. Values that are 0 or no number are unknown, and black.
    """
    with np.errstate(all="ignore"):
        number = values.astype(np.float64)
        known = np.isfinite(number) & (number != 0)
    if not known.any():
        return np.zeros(values.shape, np.uint8), "No pixel has a value."
    low, high = (float(edge) for edge in np.percentile(number[known], (1, 99)))
    wide = high - low if high > low else 1.0
    with np.errstate(all="ignore"):
        grey = np.where(known, 40 + 215 * np.clip((number - low) / wide, 0, 1), 0)
    unit, factor = (" m", metres) if metres else ("", 1.0)
    return np.nan_to_num(grey).astype(
        np.uint8
    ), f"Dark to bright: {low * factor:.3g} to {high * factor:.3g}{unit}."


def _depth_png(picture: Picture, data: bytes, width: int | None) -> tuple[bytes, str, int, int, str]:
    """Return a compressed depth picture of ROS: a PNG of distances behind a short head."""
    packed = data[_DEPTH_HEAD:]
    if not packed.startswith(PNG_MAGIC):
        raise UnsupportedError("its depth has no PNG")
    picture_format = (picture.format or "").split(";")[0].strip()
    pixels = _decode_grey16(packed)
    if pixels is None:
        return (
            packed,
            "image/png",
            0,
            0,
            "The raw depth, which is dark: logreel[video] is needed to convert it.",
        )
    high, wide = pixels.shape
    metres = _DISTANCES.get(picture_format, 0.0)
    values: NDArray[Any] = pixels
    if picture_format == "32FC1":
        # Quantised: depth = a / (value - b), with both numbers in the head (compressed_depth_image_transport).
        a, b = struct.unpack_from("<2f", data, 4)
        with np.errstate(all="ignore"):
            values = np.where(pixels == 0, 0, a / (pixels.astype(np.float64) - b))
    grey, note = _scaled(_smaller(values, width), metres)
    return png(grey), "image/png", wide, high, note


def _decode_grey16(packed: bytes) -> NDArray[np.uint16] | None:
    """Return the pixels of a PNG of 16 bits; None without the library that decodes it."""
    try:
        import av
    except ImportError:
        return None
    try:
        (frame,) = av.CodecContext.create("png", "r").decode(av.Packet(packed))
        if frame.width * frame.height > PIXELS:
            raise UnsupportedError("its PNG has too many pixels")
        pixels: NDArray[np.uint16] = frame.reformat(format="gray16le").to_ndarray()
    except (av.FFmpegError, ValueError) as error:
        raise UnsupportedError("its PNG cannot be decoded") from error
    return pixels


@dataclass(frozen=True, slots=True)
class VideoPacket:
    """One packet of a video: ns, whether it can be decoded alone, and its bytes."""

    time: int
    key: bool
    data: bytes


def video_packets(ch: Channel, start: int, end: int) -> tuple[str, list[VideoPacket]]:
    """Return the codec (``h264`` or ``h265``) and the packets of *ch* from the last key frame at or before *start*.

    The last packet is before *end* (ns). Packets that are broken or of another codec are left out. At most
    ``VIDEO_BYTES`` are returned; the last one is then earlier. Raises UnsupportedError if there is no video, and if no
    key frame is near.
    """
    lens = next(
        (one for known, own in lenses_of(ch.log) if known is ch for one in own if isinstance(one, Image)),
        None,
    )
    if lens is None:
        raise UnsupportedError(f"{ch.topic!r} has no pictures")
    times = ch.times
    rows = np.flatnonzero(times <= start)
    last = int(rows[-1]) if len(rows) else 0
    back = 8
    while True:
        first = max(0, last - back)
        codec, packets = _packets(ch, lens, int(times[first]), max(end, int(times[last]) + 1))
        keys = [i for i, one in enumerate(packets) if one.key and one.time <= max(start, int(times[last]))]
        if keys:
            return codec, _bounded(packets[keys[-1] :])
        if first == 0 or back >= KEY_MESSAGES:
            text = (
                "no key frame comes before this moment"
                if first == 0
                else "no key frame is near before this moment"
            )
            raise UnsupportedError(text)
        back *= 3


def _packets(ch: Channel, lens: Image, start: int, end: int) -> tuple[str, list[VideoPacket]]:
    codec, packets = "", []
    for picture in lens.pictures(ch, start, end):
        name = (picture.format or "").lower()
        if name not in VIDEO or (codec and name != codec):
            continue
        try:
            frame = frame_of(picture)
        except UnsupportedError:
            continue
        codec = name
        packets.append(VideoPacket(picture.time, frame.key, frame.packet))
    return codec, packets


def _bounded(packets: list[VideoPacket]) -> list[VideoPacket]:
    size = 0
    for i, packet in enumerate(packets):
        size += len(packet.data)
        if size > VIDEO_BYTES and i:
            return packets[:i]
    return packets


def _video_frame(ch: Channel, lens: Image, time: int, width: int | None) -> tuple[bytes, str, int, int, str]:
    """Return the picture of a video at *time*, decoded from the key frame before it."""
    try:
        import av
    except ImportError as error:
        raise MissingDependencyError("av", "video") from error
    codec, packets = video_packets(ch, time, time + 1)
    context = av.CodecContext.create(VIDEO[codec][0], "r")
    shown = None
    try:
        for packet in packets:
            for frame in context.decode(av.Packet(packet.data)):
                shown = frame
        for frame in context.decode(None):
            shown = frame
    except (av.FFmpegError, ValueError) as error:
        if shown is None:
            raise UnsupportedError("the video cannot be decoded here") from error
    if shown is None:
        raise UnsupportedError("the video has no picture here")
    if shown.width * shown.height > PIXELS:
        raise UnsupportedError("its pictures have too many pixels")
    pixels: NDArray[np.uint8] = shown.to_ndarray(format="rgb24")
    return png(_smaller(pixels, width)), "image/png", shown.width, shown.height, ""
