"""Where on Earth something was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from logreel.model.lenses.base import F64, Nodes, Scaled, is_integer, is_number

if TYPE_CHECKING:
    from logreel.model.channel import Channel


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


#: Names that formats give to the same thing, most telling first.
_LATITUDE = (("latitude_deg", "longitude_deg"), ("lat", "lon"), ("latitude", "longitude"))
_ALTITUDE = ("altitude_msl_m", "alt", "altitude")
#: Whole numbers count ten-millionths of a degree and millimetres, as GPS receivers send them.
_DEGREE, _METRE = 1e-7, 1e-3


def find_position(nodes: Nodes) -> Position | None:
    """The Position that *nodes* describe, if they do."""
    for lat, lon in _LATITUDE:
        if is_number(nodes.get(lat)) and is_number(nodes.get(lon)):
            name = next((a for a in _ALTITUDE if is_number(nodes.get(a))), None)
            altitude = Scaled(name, _METRE if is_integer(nodes[name]) else 1.0) if name else None
            factor = _DEGREE if is_integer(nodes[lat]) else 1.0
            return Position(Scaled(lat, factor), Scaled(lon, factor), altitude)
    return None
