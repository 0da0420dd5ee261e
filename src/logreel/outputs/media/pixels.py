"""Raw pixels of pictures as grey, RGB or RGBA."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import UnsupportedError
from logreel.lenses import Picture

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
    found: NDArray[np.uint8] = np.rint(rgb).clip(0, 255).astype(np.uint8).reshape(height, width, 3)
    return found
