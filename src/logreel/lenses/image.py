"""Pictures of cameras, encoded or as raw pixels; how cameras map space to pixels; boxes around what was detected."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass, replace
from logreel.errors import LogError, Problem, UnsupportedError
from logreel.io.arrays import F64
from logreel.layout.nodes import FixedArray, Node, Sequence, Struct
from logreel.lenses.base import (
    Nodes,
    Stamp,
    find_stamp,
    frame_path,
    is_blob,
    is_float,
    is_integer,
    is_number,
    is_text,
    is_vector,
    nodes_of,
    stamped_rows,
)

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


#: Coefficients of distortion that are used: those of the rational model.
COEFFICIENTS = 8
#: Models of distortion with angles instead of tangents.
FISHEYE = ("equidistant", "fisheye", "kannala_brandt")
#: Boxes of one message, and characters of a label.
BOXES, LABEL = 1000, 80
#: Distances from the middle of a picture, as tangents or rad, in which it is looked for where distortion turns back.
_FAR = np.linspace(0, 4, 401)


@dataclass(frozen=True, slots=True, eq=False)
class CameraCalibration:
    """How a camera maps space to pixels of its pictures, which may be a part of the sensor, with pixels put together.

    frame          of the camera: x to the right, y down, z forward
    width, height  pixels
    matrix         float64[3, 3]: K
    distortion     float64[8]: k1 k2 p1 p2 k3 k4 k5 k6, or k1 k2 k3 k4 of a fisheye camera, 0 where not stated
    is_fisheye     whether distortion is a function of the angle
    projection     float64[3, 4]: P, of rectified pictures
    """

    frame: str
    width: int
    height: int
    matrix: F64
    distortion: F64
    is_fisheye: bool
    projection: F64

    def pixels(self, places: F64, rectified: bool = False) -> tuple[F64, NDArray[np.bool_]]:
        """Return float64[n, 2], pixels of *places* in the frame of the camera, and bool[n]: which are in the picture.

        places     float64[n, 3] metres
        rectified  whether the pictures have no distortion: then P counts
        """
        with np.errstate(all="ignore"):
            ahead = places[:, 2] > 0
            x, y = places[:, 0] / places[:, 2], places[:, 1] / places[:, 2]
            if rectified:
                moved = np.column_stack([places, np.ones(len(places))]) @ self.projection.T
                at = moved[:, :2] / moved[:, 2:]
            else:
                x, y, is_sound = self._distorted(x, y)
                ahead &= is_sound
                at = np.column_stack([x, y, np.ones(len(x))]) @ self.matrix[:2].T
            inside = ahead & ((at >= 0) & (at < (self.width, self.height))).all(axis=1)
        return at, inside

    def _distorted(self, x: F64, y: F64) -> tuple[F64, F64, NDArray[np.bool_]]:
        """Return distorted coordinates, and which of them the model holds for.

        Beyond the distance at which a polynomial turns back, places outside of the picture would appear in it.
        """
        distance = np.hypot(x, y)
        if self.is_fisheye:
            angle = np.arctan(distance)
            most = _turn(self._bent(_FAR))
            factor = np.where(distance > 0, self._bent(angle) / distance, 1.0)
            return x * factor, y * factor, angle <= most
        _, _, p1, p2, *_ = self.distortion
        factor, square = self._radial(distance**2), distance**2
        most = _turn(_FAR * self._radial(_FAR**2))
        return (
            x * factor + 2 * p1 * x * y + p2 * (square + 2 * x**2),
            y * factor + p1 * (square + 2 * y**2) + 2 * p2 * x * y,
            distance <= most,
        )

    def _radial(self, square: F64) -> F64:
        k1, k2, _, _, k3, k4, k5, k6 = self.distortion
        over = 1 + square * (k1 + square * (k2 + square * k3))
        factor: F64 = over / (1 + square * (k4 + square * (k5 + square * k6)))
        return factor

    def _bent(self, angle: F64) -> F64:
        k1, k2, k3, k4, *_ = self.distortion
        square = angle**2
        bent: F64 = angle * (1 + square * (k1 + square * (k2 + square * (k3 + square * k4))))
        return bent


def _turn(values: F64) -> float:
    """Return the distance from which on *values* at ``_FAR`` no longer rise; infinite if they always do."""
    falling = np.flatnonzero(~(np.diff(values) > 0))
    return float(_FAR[falling[0]]) if len(falling) else np.inf


@dataclass(frozen=True, slots=True)
class Camera:
    """Calibrations of a camera (sensor_msgs/CameraInfo, foxglove.CameraCalibration): names of the fields.

    projection  P; None: K
    model       name of the model of distortion, or None
    frame       path of the name of the frame, or None
    """

    matrix: str
    distortion: str
    projection: str | None
    model: str | None
    frame: str | None

    def calibration(self, ch: Channel, row: int) -> CameraCalibration | None:
        """Return the calibration in a message; None for one that is not calibrated. Raises DamagedError."""
        value = ch[row].decode()
        matrix = np.asarray(value[self.matrix], np.float64).reshape(-1)
        stated = np.asarray(value[self.distortion], np.float64).reshape(-1)[:COEFFICIENTS]
        if len(matrix) != 9 or not np.isfinite(matrix).all() or matrix[0] == 0 or matrix[4] == 0:
            return None
        distortion = np.zeros(COEFFICIENTS)
        distortion[: len(stated)] = np.nan_to_num(stated)
        projection = np.column_stack([matrix.reshape(3, 3), np.zeros(3)])
        if self.projection is not None:
            own = np.asarray(value[self.projection], np.float64).reshape(-1)
            if len(own) == 12 and np.isfinite(own).all() and own[0] != 0:
                projection = own.reshape(3, 4)
        sensor, (width, height) = _sensor_to_picture(value)
        return CameraCalibration(
            str(_at(value, self.frame) or ""),
            width,
            height,
            sensor @ matrix.reshape(3, 3),
            distortion,
            bool(self.model and str(value[self.model]).lower() in FISHEYE),
            sensor @ projection,
        )


def _sensor_to_picture(value: Mapping[str, Any]) -> tuple[F64, tuple[int, int]]:
    """Return float64[3, 3], pixels of the whole sensor to those of the picture, and width and height of the picture.

    A picture is the region of interest of the sensor, of which ``binning`` pixels each are one; 0 means all, and 1.
    """
    move, sizes = np.eye(3), []
    for i, (axis, length) in enumerate((("x", "width"), ("y", "height"))):
        binned = max(int(_at(value, f"binning_{axis}") or 1), 1)
        size = int(_at(value, f"roi.{length}") or 0)
        move[i, i] = 1 / binned
        move[i, 2] = -int(_at(value, f"roi.{axis}_offset") or 0) / binned
        sizes.append((size or int(value[length])) // binned)
    return move, (sizes[0], sizes[1])


def find_camera(nodes: Nodes) -> Camera | None:
    """Return the Camera that *nodes* describe, or None."""
    for k, d, p in ("KDP", "kdp"):
        if not (_is_numbers(nodes.get(k), 9) and _is_numbers(nodes.get(d))):
            continue
        if is_integer(nodes.get("width")) and is_integer(nodes.get("height")):
            model = "distortion_model" if is_text(nodes.get("distortion_model")) else None
            frame = frame_path(nodes) or ("frame_id" if is_text(nodes.get("frame_id")) else None)
            return Camera(k, d, p if _is_numbers(nodes.get(p), 12) else None, model, frame)
    return None


def _is_numbers(node: Node | None, count: int | None = None) -> bool:
    if isinstance(node, FixedArray):
        return is_float(node.item) and node.count == (count or node.count)
    return isinstance(node, Sequence) and is_float(node.item)


@dataclass(frozen=True, slots=True, eq=False)
class DetectedBox:
    """What was detected.

    label     name or number of its class
    score     0 to 1, NaN if not stated
    frame     of its numbers; empty if unknown
    position  float64[2]: the middle in pixels, or float64[3] in metres
    size      float64[2 or 3]: pixels or metres
    angle     rad, of a box in a picture
    rotation  float64[4], quaternion x, y, z, w, of a box in space
    """

    label: str
    score: float
    frame: str
    position: F64
    size: F64
    angle: float
    rotation: F64


@dataclass(frozen=True, slots=True)
class Detections:
    """Boxes around what was detected: vision_msgs, darknet_ros_msgs, jsk_recognition_msgs.

    boxes     name of the list; empty: a message is one box
    is_solid  whether boxes are in space, else in a picture
    form      ``vision``, ``corners`` (darknet) or ``pose`` (jsk)
    stamp     time of the picture
    """

    boxes: str
    is_solid: bool
    form: str
    stamp: Stamp | None = None

    def at(self, ch: Channel, row: int) -> list[DetectedBox]:
        """Return the boxes in a message, at most BOXES; those without a place are left out. Raises DamagedError."""
        value = ch[row].decode()
        frame = str(_at(value, "header.frame_id") or "")
        items = value[self.boxes] if self.boxes else [value]
        boxes = [self._box(item, frame) for item in items[:BOXES]]
        return [box for box in boxes if np.isfinite(box.position).all() and np.isfinite(box.size).all()]

    def _box(self, item: Mapping[str, Any], frame: str) -> DetectedBox:
        frame = str(_at(item, "header.frame_id") or frame)
        label, score = _class(item)
        if self.form == "corners":
            low, high = (
                np.array([item[f"{axis}{end}"] for axis in "xy"], np.float64) for end in ("min", "max")
            )
            return DetectedBox(label, score, frame, (low + high) / 2, high - low, 0.0, np.zeros(4))
        if not self.is_solid:
            centre, box = item["bbox"]["center"], item["bbox"]
            place = centre.get("position", centre)
            middle = np.array([place["x"], place["y"]], np.float64)
            size = np.array([box["size_x"], box["size_y"]], np.float64)
            return DetectedBox(
                label, score, frame, middle, size, float(centre.get("theta", 0.0)), np.zeros(4)
            )
        pose, size = (
            (item["pose"], item["dimensions"])
            if self.form == "pose"
            else (item["bbox"]["center"], item["bbox"]["size"])
        )
        return DetectedBox(
            label,
            score,
            frame,
            np.array([pose["position"][axis] for axis in "xyz"], np.float64),
            np.array([size[axis] for axis in "xyz"], np.float64),
            0.0,
            np.array([pose["orientation"][axis] for axis in "xyzw"], np.float64),
        )


def _class(item: Mapping[str, Any]) -> tuple[str, float]:
    """Return label and score of the best hypothesis about a detection."""
    results = [result.get("hypothesis", result) for result in item.get("results", ())] or [item]
    best = max(results, key=lambda result: float(result.get("score", 0.0)))
    label = next((best[name] for name in ("class_id", "Class", "id", "label") if name in best), "")
    score = next((best[name] for name in ("score", "probability", "value") if name in best), np.nan)
    return str(label)[:LABEL], float(score)


def find_detections(nodes: Nodes) -> Detections | None:
    """Return the Detections that *nodes* describe, or None."""
    for name in ("detections", "bounding_boxes", "boxes", ""):
        if name and not isinstance(nodes.get(name), Sequence):
            continue
        inner = nodes_of(nodes[name]) if name else nodes
        box = nodes_of(inner.get("bbox")) if isinstance(inner.get("bbox"), Struct) else {}
        if isinstance(inner.get("results"), Sequence) and box:
            if is_number(box.get("size_x")) and is_number(box.get("size_y")) and "center" in box:
                return Detections(name, False, "vision", find_stamp(nodes))
            if is_vector(box.get("size")) and "position" in nodes_of(box.get("center")):
                return Detections(name, True, "vision", find_stamp(nodes))
        if all(is_number(inner.get(axis + end)) for axis in "xy" for end in ("min", "max")):
            return Detections(name, False, "corners", find_stamp(nodes))
        pose = nodes_of(inner.get("pose"))
        if is_vector(inner.get("dimensions")) and is_vector(pose.get("position")) and "label" in inner:
            return Detections(name, True, "pose", find_stamp(nodes))
    return None


def _at(value: Mapping[str, Any], path: str | None) -> Any:
    """Return the member at a path of a decoded value; None if it is missing."""
    inner: Any = value
    for name in path.split(".") if path else ():
        inner = inner.get(name) if isinstance(inner, Mapping) else None
    return None if inner is value else inner


def read_calibration(ch: Channel, lens: Camera, at: int) -> CameraCalibration | None:
    """Return the calibration that holds at the moment *at* (ns): the last one before it, else the first; or None."""
    if not len(ch):
        return None
    rows = np.flatnonzero(ch.times <= at)
    try:
        return lens.calibration(ch, int(rows[-1]) if len(rows) else 0)
    except LogError:
        return None
