"""Traffic that the log of a simulator knows frame by frame, in right-handed axes: objects, signs, lights, weather.

Lengths are in metres (x forward, y left, z up), angles in rad: a rotation about z (yaw), then y (pitch), then x (roll).
``Format.traffic`` makes it from a log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.io.arrays import F64, I64
from logreel.lenses.motion import quaternion
from logreel.lenses.rotation import rotated

#: Bits of ``TrafficObject.lights``.
POSITION, LOW_BEAM, HIGH_BEAM, BRAKE, RIGHT, LEFT, REVERSE, FOG, INTERIOR, SIREN = (1 << n for n in range(10))
#: The lights that are on or off, by their names in OSI.
ON_OFF = {
    "front_fog_light": FOG,
    "head_light": LOW_BEAM,
    "high_beam": HIGH_BEAM,
    "reversing_light": REVERSE,
    "emergency_vehicle_illumination": SIREN,
    "tail_light": POSITION,
}
#: What an object can be.
VEHICLE, PEDESTRIAN, PROP, SIGN = "vehicle", "pedestrian", "prop", "sign"

_MOTORCYCLES = ("harley", "kawasaki", "yamaha", "vespa")
_CATEGORIES = {"truck": "truck", "van": "van", "bus": "bus", "motorcycle": "motorbike", "bicycle": "bicycle"}


@dataclass(frozen=True, slots=True)
class TrafficObject:
    """An object in the frames in which its place is known; one row per frame.

    type         VEHICLE, PEDESTRIAN, PROP or SIGN; *model*: name of its model; *attributes*: what else is known
    centre, size float64[3]     its box in its own axes: centre, and length, width and height; NaN if unknown
    frame        int64[k]       number of the frame, ascending
    position     float64[k, 3]  its own origin
    angles       float64[k, 3]  roll, pitch, yaw, from -π to π
    velocity, acceleration      float64[k, 3] m/s, m/s²; NaN if unknown
    rates        float64[k, 3]  rad/s about x, y, z; NaN if unknown
    lights       int64[k]       bits of lights that are on; -1: unknown
    """

    id: int
    type: str
    model: str
    attributes: Mapping[str, str]
    centre: F64
    size: F64
    frame: I64
    position: F64
    angles: F64
    velocity: F64
    acceleration: F64
    rates: F64
    lights: I64

    @property
    def has_box(self) -> bool:
        """Whether its box is known."""
        return bool(np.isfinite(self.centre).all() and np.isfinite(self.size).all())

    @property
    def middle(self) -> F64:
        """float64[k, 3]: the centres of its box; its origins if it has none."""
        if not self.has_box:
            return self.position
        return np.asarray(self.position + rotated(quaternion(np.degrees(self.angles)), self.centre))


@dataclass(frozen=True, slots=True)
class TrafficLightHead:
    """A traffic light with three lamps; *state* in each frame: ``red``, ``yellow``, ``green``, ``off``, ``unknown``."""

    id: int
    model: str
    position: F64
    angles: F64
    frame: I64
    state: NDArray[Any]


@dataclass(frozen=True, slots=True)
class Weather:
    """Weather from a frame on.

    cloudiness, precipitation, fog  percent; *sun*: azimuth and elevation in rad
    """

    frame: int
    cloudiness: float
    precipitation: float
    fog: float
    sun: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Traffic:
    """All that a log knows of traffic.

    time   int64[n] ns of each frame; *host*: id of the vehicle that the log is about, None if unknown
    notes  a sentence for each thing that is left out
    """

    time: I64
    map: str
    host: int | None
    objects: tuple[TrafficObject, ...]
    heads: tuple[TrafficLightHead, ...]
    weather: tuple[Weather, ...]
    notes: tuple[str, ...] = field(default=())


def vehicle_category(attributes: Mapping[str, str], model: str) -> str:
    """Return the category of a vehicle as OpenSCENARIO names it: car, van, truck, bus, motorbike or bicycle."""
    if (stated := attributes.get("base_type", "").lower()) in _CATEGORIES:
        return _CATEGORIES[stated]
    if attributes.get("number_of_wheels") == "2":
        return "motorbike" if any(maker in model for maker in _MOTORCYCLES) else "bicycle"
    return "car"
