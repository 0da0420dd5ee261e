"""Pictures as frames of a video: encoded packets or raw pixels."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass
from logreel.errors import UnsupportedError
from logreel.lenses import Picture
from logreel.outputs.media.pictures import encoded, pixels_of

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
    if blob.kind == ".jpg":
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
