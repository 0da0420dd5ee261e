"""What a channel means, recognised from its schema, whatever the format.

Maps, pictures, text and exchange formats are written against lenses, once, never against a format. A lens names the
fields that carry the meaning and how to bring them to common units.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DefinitionError
from logreel.model.layout import Bytes, FixedArray, Node, Scalar, Sequence, String
from logreel.model.scan import TextLine

if TYPE_CHECKING:
    from logreel.model.channel import Channel
    from logreel.model.log import Log

F64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Scaled:
    """A field and the factor that brings it to the lens's unit."""

    path: str
    factor: float = 1.0

    def of(self, ch: Channel) -> F64:
        """float64[n] in the unit of the lens."""
        return np.asarray(ch[self.path], np.float64) * self.factor


@dataclass(frozen=True, slots=True)
class Position:
    """Where on Earth something was: latitude and longitude in degrees, altitude in metres where there is one."""

    latitude: Scaled
    longitude: Scaled
    altitude: Scaled | None

    def track(self, ch: Channel) -> tuple[F64, F64, F64]:
        """float64[n] each: degrees, degrees, metres (NaN where the channel has no altitude)."""
        lat, lon = self.latitude.of(ch), self.longitude.of(ch)
        return lat, lon, self.altitude.of(ch) if self.altitude else np.full(len(lat), np.nan)


@dataclass(frozen=True, slots=True)
class Text:
    """Lines for people to read; *level* is a syslog number, *source* says who spoke."""

    text: str
    level: str | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Image:
    """Pictures: encoded bytes (``format`` names the codec) or raw pixels (``encoding``, ``width``, ``height``)."""

    data: str
    format: str | None = None
    encoding: str | None = None
    width: str | None = None
    height: str | None = None


Lens = Position | Text | Image

#: Names that formats give to the same thing, most telling first.
_LATITUDE = (("latitude_deg", "longitude_deg"), ("lat", "lon"), ("latitude", "longitude"))
_ALTITUDE = ("altitude_msl_m", "alt", "altitude")
#: Whole numbers count ten-millionths of a degree and millimetres, as GPS receivers send them.
_DEGREE, _METRE = 1e-7, 1e-3


def _is_integer(node: Node) -> bool:
    return isinstance(node, Scalar) and node.type.lstrip("u").startswith("int")


def _is_number(node: Node | None) -> bool:
    return isinstance(node, Scalar) and (node.type.startswith("float") or _is_integer(node))


def _is_text(node: Node | None) -> bool:
    return isinstance(node, String) or (isinstance(node, FixedArray) and node.item == Scalar("char"))


def _is_blob(node: Node | None) -> bool:
    return isinstance(node, Bytes) or (isinstance(node, Sequence) and node.item == Scalar("uint8"))


def _position(nodes: dict[str, Node]) -> Position | None:
    for lat, lon in _LATITUDE:
        if _is_number(nodes.get(lat)) and _is_number(nodes.get(lon)):
            name = next((a for a in _ALTITUDE if _is_number(nodes.get(a))), None)
            altitude = Scaled(name, _METRE if _is_integer(nodes[name]) else 1.0) if name else None
            factor = _DEGREE if _is_integer(nodes[lat]) else 1.0
            return Position(Scaled(lat, factor), Scaled(lon, factor), altitude)
    return None


def _text(nodes: dict[str, Node]) -> Text | None:
    name = next((n for n in ("text", "msg", "message") if isinstance(nodes.get(n), String)), None)
    if name is None or not (
        level := next((n for n in ("level", "severity") if _is_number(nodes.get(n))), None)
    ):
        return None
    source = next((n for n in ("source", "name") if isinstance(nodes.get(n), String)), None)
    return Text(name, level, source)


def _image(nodes: dict[str, Node]) -> Image | None:
    if not _is_blob(nodes.get("data")):
        return None
    if _is_text(nodes.get("format")):
        return Image("data", format="format")
    if _is_text(nodes.get("encoding")) and _is_number(nodes.get("width")) and _is_number(nodes.get("height")):
        return Image("data", encoding="encoding", width="width", height="height")
    return None


def lenses(ch: Channel) -> list[Lens]:
    """What the messages of *ch* mean; empty where nothing is recognised or the definition cannot be used."""
    try:
        nodes = {f.name: f.node for f in ch.layout.record.visible()}
    except DefinitionError:
        return []
    found = (_position(nodes), _text(nodes), _image(nodes))
    return [lens for lens in found if lens is not None]


def text_lines(log: Log) -> Iterator[TextLine]:
    """The lines of all channels that carry text, by time."""
    lines: list[TextLine] = []
    for ch in log.channels.values():
        for lens in lenses(ch):
            if isinstance(lens, Text) and len(ch):
                level = ch[lens.level].tolist() if lens.level else [None] * len(ch)
                source = ch[lens.source].tolist() if lens.source else [""] * len(ch)
                lines += map(TextLine, ch.times.tolist(), level, ch[lens.text].tolist(), source)
    return iter(sorted(lines, key=lambda line: line.time))
