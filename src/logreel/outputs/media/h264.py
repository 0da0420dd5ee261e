"""H.264 of pixels: streams of videos, and the frames that go into them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import UnsupportedError

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
