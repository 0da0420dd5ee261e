"""Actors as a scenario in OpenSCENARIO XML 1.0: each vehicle and pedestrian follows its trajectory of the log."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO

import numpy as np
from numpy.typing import NDArray

from logreel._version import __version__
from logreel.errors import LogError
from logreel.io.arrays import F64, I64
from logreel.lenses import ActorPose, ActorStates, lenses
from logreel.lenses.rotation import euler
from logreel.log.log import Log
from logreel.log.times import utc_shift
from logreel.meaning.traffic import vehicle_category
from logreel.outputs.registry import Job
from logreel.outputs.tracks import xml_text

#: Kinds of actors that a scenario has, and its element for them.
_ELEMENTS = {"vehicle": "Vehicle", "walker": "Pedestrian"}
#: Actors that move and turn less than this (m, rad) stand.
STILL = 1e-3
#: What the standard demands of each vehicle and a recording does not tell; no player follows a trajectory by it.
_PERFORMANCE = '<Performance maxSpeed="69" maxAcceleration="10" maxDeceleration="10"/>'
_MASS = 80


@dataclass(frozen=True, slots=True)
class _Actor:
    """An actor with its states by time, strictly increasing.

    time  int64[k] ns; *position* float64[k, 3] m: x forward, y left, z up; *angles* float64[k, 3] rad: roll, pitch, yaw
    centre, size  float64[3] m of its box in its own axes, NaN if unknown
    """

    name: str
    element: str
    category: str
    model: str
    time: I64
    position: F64
    angles: F64
    centre: F64
    size: F64

    @property
    def moves(self) -> bool:
        return bool(max(np.ptp(self.position, axis=0).max(), np.ptp(self.angles, axis=0).max()) > STILL)


def write(out: IO[bytes], job: Job) -> None:
    """Write all vehicles and pedestrians of *job*, each at its first place, and a trajectory for each that moves.

    Times are seconds since the first state; angles are continuous, so that a player turns the short way. Raises
    LogError if the log has no actors.
    """
    actors: list[_Actor] = []
    others: set[int] = set()
    for ch in job.channels:
        for lens in lenses(ch):
            if isinstance(lens, ActorPose):
                states = lens.states(ch, job.start, job.end)
                actors += _actors(job.log, states, others)
                job.rows[ch.topic] = sum(len(actor.time) for actor in actors)
        job.advance(len(ch))
    if not actors:
        raise LogError("no vehicle or pedestrian has a place in the log", path=job.log.name)
    begin = min(int(actor.time[0]) for actor in actors)
    end = max(int(actor.time[-1]) for actor in actors)
    late = sum(int(actor.time[0]) > begin for actor in actors)
    if others:
        job.notes.append(f"{len(others)} actors that are neither vehicles nor pedestrians are left out")
    if late:
        job.notes.append(f"{late} actors appear later in the log: they wait at their first place")
    out.writelines(f"{line}\n".encode() for line in _lines(job.log, actors, begin, end))


def _actors(log: Log, states: ActorStates, others: set[int]) -> Iterator[_Actor]:
    """Yield the vehicles and pedestrians; add the numbers of all other actors to *others*."""
    order = np.lexsort((states.time, states.id))
    edges = np.flatnonzero(np.diff(states.id[order])) + 1
    for rows in np.split(order, edges) if len(order) else []:
        number, actor_type = int(states.id[rows[0]]), str(states.kind[rows[0]])
        known = rows[
            np.isfinite(states.position[rows]).all(axis=1) & np.isfinite(states.rotation[rows]).all(axis=1)
        ]
        if actor_type not in _ELEMENTS or not len(known):
            others.add(number)
            continue
        known = known[np.append(True, np.diff(states.time[known]) > 0)]
        yield _Actor(
            f"{actor_type}_{number}",
            _ELEMENTS[actor_type],
            vehicle_category(
                log.actors[number].attributes if number in log.actors else {}, str(states.model[rows[0]])
            ),
            str(states.model[rows[0]]),
            states.time[known],
            states.position[known],
            np.unwrap(euler(states.rotation[known]), axis=0),
            states.centre[rows[0]],
            states.size[rows[0]],
        )


def _lines(log: Log, actors: list[_Actor], begin: int, end: int) -> Iterator[str]:
    shift = utc_shift(log)
    made = datetime.fromtimestamp(0 if shift is None else (begin + shift) // 10**9, UTC)
    about = xml_text(f"{os.path.basename(log.name)}, written by logreel {__version__}")
    town = str(log.metadata.get("map", ""))
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield "<OpenSCENARIO>"
    date = f"{made:%Y-%m-%dT%H:%M:%S}"
    yield f'<FileHeader revMajor="1" revMinor="0" date="{date}" description="{about}" author="logreel"/>'
    yield "<CatalogLocations/>"
    yield (
        f'<RoadNetwork><LogicFile filepath="{xml_text(town)}.xodr"/></RoadNetwork>'
        if town
        else "<RoadNetwork/>"
    )
    yield "<Entities>"
    for actor in actors:
        yield f'<ScenarioObject name="{actor.name}">'
        yield from _entity(actor)
        yield "</ScenarioObject>"
    yield "</Entities>"
    yield "<Storyboard>"
    yield "<Init><Actions>"
    for actor in actors:
        place = _position(actor.position[0], actor.angles[0])
        yield f'<Private entityRef="{actor.name}"><PrivateAction><TeleportAction>{place}</TeleportAction>'
        yield "</PrivateAction></Private>"
    yield "</Actions></Init>"
    moving = [actor for actor in actors if actor.moves]
    if moving:
        yield '<Story name="log"><Act name="log">'
        for actor in moving:
            yield from _maneuver(actor, begin)
        yield f"{_after(0.0, 'begin', 'StartTrigger')}</Act></Story>"
    yield _after((end - begin) / 1e9, "end", "StopTrigger")
    yield "</Storyboard>"
    yield "</OpenSCENARIO>"


def _entity(actor: _Actor) -> Iterator[str]:
    known = bool(np.isfinite(actor.size).all() and np.isfinite(actor.centre).all())
    x, y, z = actor.centre.tolist() if known else (0.0, 0.0, 0.0)
    length, width, height = actor.size.tolist() if known else (0.0, 0.0, 0.0)
    box = (
        f'<BoundingBox><Center x="{x!r}" y="{y!r}" z="{z!r}"/>'
        f'<Dimensions width="{width!r}" length="{length!r}" height="{height!r}"/></BoundingBox>'
    )
    name = xml_text(actor.model or actor.name)
    if actor.element == "Pedestrian":
        yield f'<Pedestrian name="{name}" model="{name}" mass="{_MASS}" pedestrianCategory="pedestrian">'
        yield f"{box}<Properties/></Pedestrian>"
        return
    yield f'<Vehicle name="{name}" vehicleCategory="{actor.category}">{box}{_PERFORMANCE}'
    axle = f'maxSteering="0.5" wheelDiameter="0.6" trackWidth="{width!r}" positionZ="0.3"'
    yield f'<Axles><FrontAxle {axle} positionX="{0.3 * length!r}"/>'
    yield f'<RearAxle {axle} positionX="{-0.3 * length!r}"/></Axles><Properties/></Vehicle>'


def _position(place: F64, angles: F64) -> str:
    x, y, z = place.tolist()
    roll, pitch, yaw = angles.tolist()
    return f'<Position><WorldPosition x="{x!r}" y="{y!r}" z="{z!r}" h="{yaw!r}" p="{pitch!r}" r="{roll!r}"/></Position>'


def _maneuver(actor: _Actor, begin: int) -> Iterator[str]:
    yield f'<ManeuverGroup name="{actor.name}" maximumExecutionCount="1">'
    yield f'<Actors selectTriggeringEntities="false"><EntityRef entityRef="{actor.name}"/></Actors>'
    yield f'<Maneuver name="{actor.name}"><Event name="{actor.name}" priority="overwrite"><Action name="{actor.name}">'
    yield "<PrivateAction><RoutingAction><FollowTrajectoryAction>"
    yield f'<Trajectory name="{actor.name}" closed="false"><ParameterDeclarations/><Shape><Polyline>'
    seconds: NDArray[np.float64] = (actor.time - begin) / 1e9
    for at, place, angles in zip(seconds.tolist(), actor.position, actor.angles, strict=True):
        yield f'<Vertex time="{at!r}">{_position(place, angles)}</Vertex>'
    yield "</Polyline></Shape></Trajectory>"
    yield '<TimeReference><Timing domainAbsoluteRelative="absolute" scale="1" offset="0"/></TimeReference>'
    yield '<TrajectoryFollowingMode followingMode="position"/>'
    yield "</FollowTrajectoryAction></RoutingAction></PrivateAction></Action>"
    yield f"{_after(0.0, actor.name, 'StartTrigger')}</Event></Maneuver></ManeuverGroup>"


def _after(seconds: float, name: str, element: str) -> str:
    """Return a trigger that fires at a time of the scenario."""
    rule = f'<SimulationTimeCondition value="{seconds!r}" rule="greaterThan"/>'
    condition = f'<Condition name="{name}" delay="0" conditionEdge="none"><ByValueCondition>{rule}'
    return (
        f"<{element}><ConditionGroup>{condition}</ByValueCondition></Condition></ConditionGroup></{element}>"
    )
