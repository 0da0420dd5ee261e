"""Pictures as archetypes of Rerun."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from logreel.errors import UnsupportedError
from logreel.lenses import Image
from logreel.outputs.job import SkipCounter
from logreel.outputs.media.frames import VIDEO, frame_of
from logreel.outputs.media.pictures import Encoded, encoded
from logreel.outputs.media.pixels import pixels_of
from logreel.outputs.rerun.scene import Rows, Scene

if TYPE_CHECKING:
    from logreel.log.log import Channel

_MEDIA = {".jpg": "image/jpeg", ".png": "image/png"}
#: Units per metre of depth images, by encoding.
_DEPTH = {"16UC1": 1000.0, "32FC1": 1.0}
_MODELS = {1: "L", 3: "RGB", 4: "RGBA"}


def show_pictures(scene: Scene, ch: Channel, lens: Image) -> int:
    """Send the pictures of *ch*: encoded ones and video packets unchanged, raw ones as pixels; return their number."""
    bad, rows = SkipCounter(), Rows(scene, scene.path(ch))
    codec = ""
    for picture in lens.pictures(ch, scene.job.start, scene.job.end):
        try:
            if (picture.format or "").lower() in VIDEO:
                frame = frame_of(picture)
                if frame.codec != codec:
                    codec = frame.codec
                    scene.fix(scene.path(ch), _stream(codec))
                rows.add(_samples, picture.time, frame.packet, len(frame.packet))
            elif meter := _DEPTH.get(picture.encoding or ""):
                rows.add(_depths, picture.time, (picture.array(), meter), len(picture.data))
            elif (pixels := pixels_of(picture)) is not None:
                rows.add(_images, picture.time, pixels, pixels.nbytes)
            else:
                whole = encoded(picture)
                rows.add(_encoded, picture.time, whole, len(whole.data))
        except UnsupportedError as error:
            bad.add(error.text)
        scene.job.advance(1)
    scene.job.skipped += bad.sentences("picture", f"of {ch.topic!r} left out")
    return rows.send()


def _encoded(pictures: list[Encoded]) -> Iterable[Any]:
    import rerun

    blobs, kinds = [one.data for one in pictures], [_MEDIA[one.kind] for one in pictures]
    columns: Iterable[Any] = rerun.EncodedImage.columns(blob=blobs, media_type=kinds)
    return columns


def _samples(packets: list[bytes]) -> Iterable[Any]:
    import rerun

    columns: Iterable[Any] = rerun.VideoStream.columns(sample=packets)
    return columns


def _stream(codec: str) -> Any:
    import rerun

    return rerun.VideoStream(codec=rerun.VideoCodec.H264 if codec == "h264" else rerun.VideoCodec.H265)


def _images(images: list[NDArray[Any]]) -> Iterable[Any]:
    import rerun

    buffers, formats = [_bytes(image) for image in images], [_format(image) for image in images]
    columns: Iterable[Any] = rerun.Image.columns(buffer=buffers, format=formats)
    return columns


def _depths(images: list[tuple[NDArray[Any], float]]) -> Iterable[Any]:
    import rerun

    columns: Iterable[Any] = rerun.DepthImage.columns(
        buffer=[_bytes(image) for image, _ in images],
        format=[_format(image) for image, _ in images],
        meter=[meter for _, meter in images],
    )
    return columns


def _bytes(image: NDArray[Any]) -> bytes:
    return image.astype(image.dtype.newbyteorder("<"), copy=False).tobytes()


def _format(image: NDArray[Any]) -> Any:
    import rerun

    high, wide, samples = image.shape if image.ndim == 3 else (*image.shape, 1)
    kind = "F" if image.dtype.kind == "f" else "U"
    return rerun.components.ImageFormat(
        width=wide,
        height=high,
        color_model=getattr(rerun.ColorModel, _MODELS[samples]),
        channel_datatype=getattr(rerun.ChannelDatatype, f"{kind}{8 * image.dtype.itemsize}"),
    )
