"""A map as metrics use it: waypoints in the middle of lanes, with the names of the simulator's package ``carla``."""

from __future__ import annotations

import math
from enum import IntFlag
from typing import Any

import numpy as np

from logreel_carla_metrics.opendrive import F64, STEP, Road, Section, roads_of
from logreel_carla_metrics.values import Location, Rotation, Transform, Vector3D


class LaneType(IntFlag):
    """Types of lanes, as of OpenDRIVE."""

    NONE = 1
    Driving = 2
    Stop = 4
    Shoulder = 8
    Biking = 16
    Sidewalk = 32
    Border = 64
    Restricted = 128
    Parking = 256
    Bidirectional = 512
    Median = 1024
    Any = -2


_TYPES = {kind.name.lower(): kind for kind in LaneType if kind.name}


class Waypoint:
    """A point in the middle of a lane, which looks along the lane.

    Lanes with ids below 0 lead along the road, those above 0 against it.
    """

    def __init__(self, town: Map, road: Road, section: Section, lane: int, s: float) -> None:
        self._map, self._road, self._section = town, road, section
        self.road_id, self.section_id, self.lane_id, self.s = road.id, section.number, lane, s
        self.junction_id, self.is_junction = road.junction, road.junction >= 0
        self.lane_width = section.lanes[lane].width(s)
        self.lane_type = _lane_type(section.lanes[lane].type)
        ((x, y, z, heading, slope),) = road.lane_points(section, lane, np.array([s])).tolist()
        along = lane < 0
        pitch, yaw = math.degrees(math.atan(slope)), -math.degrees(heading)
        # The axes of OpenDRIVE are right-handed.
        rotation = Rotation(pitch if along else -pitch, _wrapped(yaw if along else yaw + 180.0))
        self.transform = Transform(Location(x, -y, z), rotation)

    def __repr__(self) -> str:
        return f"Waypoint(road {self.road_id}, lane {self.lane_id}, s {self.s:.3f})"

    def get_left_lane(self) -> Waypoint | None:
        """Return the point on the lane to the left, or None."""
        return self._neighbour(1)

    def get_right_lane(self) -> Waypoint | None:
        """Return the point on the lane to the right, or None."""
        return self._neighbour(-1)

    def _neighbour(self, side: int) -> Waypoint | None:
        lane = self.lane_id + side * (1 if self.lane_id < 0 else -1)
        # Lane 0 is the line between the directions.
        lane = lane or (1 if self.lane_id < 0 else -1)
        if lane not in self._section.lanes:
            return None
        return Waypoint(self._map, self._road, self._section, lane, self.s)


class Map:
    """A map of a town.

    name          name of the town
    xodr_content  text of an OpenDRIVE map

    Raises UsageError for text that is no OpenDRIVE map.
    """

    def __init__(self, name: str, xodr_content: str) -> None:
        self.name, self._text = name, xodr_content
        self._roads = roads_of(xodr_content)
        self._sampled: dict[LaneType, _Samples] = {}

    def to_opendrive(self) -> str:
        """Return the text of the map."""
        return self._text

    def get_waypoint(
        self, location: Vector3D, project_to_road: bool = True, lane_type: LaneType = LaneType.Driving
    ) -> Waypoint | None:
        """Return the nearest point in the middle of a lane.

        project_to_road  False: None if the location is on no lane
        lane_type        types of lanes that are considered

        None if there is no such lane.
        """
        if lane_type not in self._sampled:
            self._sampled[lane_type] = _Samples(self._roads, lane_type)
        found = self._sampled[lane_type].nearest(np.array([location.x, -location.y, location.z]))
        if found is None:
            return None
        waypoint = Waypoint(self, *found)
        far = waypoint.transform.location.distance_2d(location) > waypoint.lane_width / 2
        return None if far and not project_to_road else waypoint


class _Samples:
    """Points in the middle of all lanes of some types."""

    def __init__(self, roads: list[Road], lane_type: LaneType) -> None:
        self._lanes: list[tuple[Road, Section, int]] = []
        points: list[F64] = []
        places: list[F64] = []
        for road in roads:
            for section in road.sections:
                for lane in section.lanes:
                    if not _lane_type(section.lanes[lane].type) & lane_type:
                        continue
                    length = max(section.end - section.start, 0.0)
                    s = section.start + np.linspace(0.0, length, max(math.ceil(length / STEP), 1) + 1)
                    points.append(road.lane_points(section, lane, s)[:, :3])
                    places.append(s)
                    self._lanes.append((road, section, lane))
        counts = [len(s) for s in places]
        self._points = np.concatenate([np.zeros((0, 3)), *points])
        self._s = np.concatenate([np.zeros(0), *places])
        self._lane = np.repeat(np.arange(len(counts)), counts)

    def nearest(self, point: F64) -> tuple[Road, Section, int, float] | None:
        """Return road, section, lane and distance along the road of the nearest point, right-handed axes."""
        if not len(self._points):
            return None
        apart = ((self._points - point) ** 2).sum(axis=1)
        at = int(apart.argmin())
        best, s = float(apart[at]), float(self._s[at])
        for other in (at - 1, at + 1):
            if 0 <= other < len(self._s) and self._lane[other] == self._lane[at]:
                line = self._points[other] - self._points[at]
                square = float(line @ line)
                part = float(np.clip((point - self._points[at]) @ line / square, 0.0, 1.0)) if square else 0.0
                rest = self._points[at] + part * line - point
                if float(rest @ rest) < best:
                    best = float(rest @ rest)
                    s = float(self._s[at] + part * (self._s[other] - self._s[at]))
        return (*self._lanes[int(self._lane[at])], s)


def _lane_type(name: str) -> LaneType:
    return _TYPES.get(name.lower(), LaneType.NONE)


def _wrapped(angle: float) -> float:
    """Return the same angle in (-180, 180] degrees."""
    rest: Any = math.fmod(angle, 360.0)
    return float(rest - 360.0 if rest > 180.0 else rest + 360.0 if rest <= -180.0 else rest)
