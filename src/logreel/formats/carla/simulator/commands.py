"""Commands of ``logreel carla``: the queries of the simulator's client."""

from __future__ import annotations

import math
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from logreel.errors import UsageError
from logreel.formats.carla.simulator.info import info
from logreel.formats.carla.simulator.printing import WORDINGS
from logreel.formats.carla.simulator.queries import MIN_DISTANCE, MIN_TIME, blocked, collisions
from logreel.formats.carla.simulator.replay import OFFSET, PITCH, Replay, tick_log
from logreel.registry.commands import Answer, Command, Content, Example, Option, Playback

if TYPE_CHECKING:
    from logreel.log.log import Log
    from logreel.log.scan import Actor

#: Seconds between two steps.
DELTA = 0.05

OPTIONS = (
    Option("start", ("-s", "--start"), "Start at this time; below 0: from the end.", float, 0.0, "SECONDS"),
    Option("duration", ("-d", "--duration"), "Duration; 0: to the end.", float, 0.0, "SECONDS"),
    Option(
        "time_factor",
        ("-x", "--time-factor"),
        "Speed; from 2 on, poses are not interpolated.",
        float,
        1.0,
        "FACTOR",
    ),
    Option("delta", ("--delta",), "Simulated time between two steps at speed 1.", float, DELTA, "SECONDS"),
    Option("follow", ("-c", "--camera", "--follow"), "Move the spectator with this actor.", int, None, "ID"),
    Option(
        "offset",
        ("--offset",),
        "Place of this spectator: metres ahead of the actor, to its right, and above; default -10,0,5.",
        str,
        None,
        "X,Y,Z",
    ),
    Option("pitch", ("--pitch",), "Pitch of this spectator; default -25.", float, PITCH, "DEGREES"),
    Option("ignore_hero", ("-i", "--ignore-hero"), "Without actors with the role hero.", bool),
    Option("spectator", ("--move-spectator", "--spectator"), "With the recorded spectator.", bool),
    Option("sensors", ("--spawn-sensors", "--sensors"), "With sensors.", bool),
)


def replay(
    log: Log,
    start: float = 0.0,
    duration: float = 0.0,
    time_factor: float = 1.0,
    delta: float = DELTA,
    follow: int | None = None,
    offset: str | None = None,
    pitch: float = PITCH,
    ignore_hero: bool = False,
    spectator: bool = False,
    sensors: bool = False,
) -> Playback:
    """Return the steps that the simulator makes with a fixed step, with that in which it stops.

    delta      seconds between two steps; each one advances the recording by *delta* times *time_factor*
    follow     id of an actor; None or 0: the spectator follows none
    offset     text of three numbers, metres
    spectator  True: with the recorded spectator
    sensors    True: with sensors

    Other parameters are those of Replay. Raises UsageError and NotFoundError.
    """
    if offset is not None and not follow:
        raise UsageError(
            "an offset is for an actor to follow: give its id",
            hint="name the actor with follow=",
        )
    if not 0 < delta < math.inf:
        raise UsageError(f"a step is greater than 0, not {delta}")
    played = Replay(
        log,
        start,
        duration,
        time_factor,
        follow=follow or None,
        offset=OFFSET if offset is None else _offset(offset),
        pitch=pitch,
        ignore_hero=ignore_hero,
        ignore_spectator=not spectator,
        replay_sensors=sensors,
    )

    def lines() -> Iterator[str]:
        return (tick.line() for tick in played.ticks(delta, stop=True))

    def rows() -> Iterator[dict[str, Any]]:
        return (tick.to_dict() for tick in played.ticks(delta, stop=True))

    return Playback(lines, rows, partial(tick_log, played, delta), time_factor)


def _offset(text: str) -> tuple[float, float, float]:
    try:
        x, y, z = map(float, text.split(","))
    except ValueError:
        raise UsageError(f"an offset is three numbers such as -10,0,5, not {text!r}") from None
    return x, y, z


def actor_list(log: Log) -> Answer:
    """List all actors: id, type, description, role, times of first frame and removal, parent, attributes."""
    actors = list(log.actors.values())
    columns: dict[str, list[Any]] = {
        "id": [a.id for a in actors],
        "type": [a.type for a in actors],
        "description": [a.description for a in actors],
        "role": [a.attributes.get("role_name", "") for a in actors],
        "start_ns": [a.start for a in actors],
        "end_ns": [a.end for a in actors],
        "parent": [a.parent for a in actors],
        "attributes": [[{"name": k, "value": v} for k, v in a.attributes.items()] for a in actors],
    }

    def lines() -> Iterator[str]:
        yield f"{'id':>6}  {'type':<13}  {'start s':>9}  {'end s':>9}  {'parent':>6}  description"
        for a in actors:
            end = "" if a.end is None else f"{a.end / 1e9:.3f}"
            role = a.attributes.get("role_name")
            yield (
                f"{a.id:>6}  {a.type:<13}  {a.start / 1e9:>9.3f}  {end:>9}  {_parent(a):>6}  {a.description}"
                + (f" ({role})" if role else "")
            )

    return Answer("actors", columns, lines)


def _parent(actor: Actor) -> str:
    return "" if actor.parent is None else str(actor.parent)


def write(
    path: str, map: str | None = None, date: str | None = None, blueprints: str = "", ros_axes: bool = False
) -> Content:
    """Return a recording made from a table of poses or a trace of OSI, see ``write_trajectories``.

    blueprints  ``7=vehicle.audi.tt,truck=vehicle.mini.cooper``
    """
    from logreel.formats.carla.simulator.trajectories import write_trajectories

    pairs = [text.partition("=") for text in blueprints.split(",") if text]
    if any(not name or not blueprint for name, _, blueprint in pairs):
        raise UsageError(f"blueprints are NAME=BLUEPRINT, separated by commas, not {blueprints!r:.60}")
    by_name = {name.strip(): blueprint.strip() for name, _, blueprint in pairs}
    folder = tempfile.mkdtemp(prefix="logreel-trajectories-")
    made = os.path.join(folder, "made.log")

    def parts() -> Iterator[bytes]:
        with open(made, "rb") as file:
            while part := file.read(1 << 20):
                yield part

    # The caller may never ask for the bytes.
    weakref.finalize(parts, shutil.rmtree, folder, ignore_errors=True)
    done = write_trajectories(path, made, map=map, date=date, blueprints=by_name, ros_axes=ros_axes)

    return Content(
        parts, {"frames": done.frames, "actors": done.actors, "poses": done.poses}, done.notes, done.lost
    )


_CORRECT = Option("correct", ("--correct",), "Without the faults of the simulator's own query.", bool)

COMMANDS = (
    Command(
        "info",
        "Show what happens, as show_recorder_file_info prints it.",
        info,
        (
            Option("show_all", ("--all",), "Also every position, light, control and so on.", bool),
            Option(
                "release",
                ("--generation",),
                "Print as the simulator did from this release on; by default as the one that recorded.",
                tuple(WORDINGS),
            ),
        ),
        (
            Example("logreel carla info town.log", "what happens, in the words of the simulator"),
            Example(
                "logreel carla info town.log --all -o town.txt", "everything that is recorded, in a file"
            ),
        ),
    ),
    Command(
        "collisions",
        "Show collisions, as show_recorder_collisions prints them. TYPE1 and TYPE2 are the kinds of the two actors: "
        "a any, h hero, v vehicle, w walker, t traffic light, o other; with --correct also s sign, n sensor.",
        collisions,
        (Option("type1", default="a"), Option("type2", default="a"), _CORRECT),
        (
            Example("logreel carla collisions town.log", "all collisions"),
            Example("logreel carla collisions town.log h w", "those of the hero with walkers"),
        ),
    ),
    Command(
        "blocked",
        "Show actors that stand still, as show_recorder_actors_blocked prints them: for MIN_TIME seconds or longer "
        "they move less than MIN_DISTANCE centimetres.",
        blocked,
        (
            Option("min_time", kind=float, default=MIN_TIME),
            Option("min_distance", kind=float, default=MIN_DISTANCE),
            _CORRECT,
        ),
        (
            Example("logreel carla blocked town.log", "actors that stand still"),
            Example("logreel carla blocked town.log 5 100", "those that move less than 1 m in 5 s"),
        ),
    ),
    Command(
        "replay",
        "Show what the simulator applies in each step of a replay, a line per step or a JSON object per line; or play "
        "the steps to a sink: Foxglove, Rerun and others.",
        replay,
        OPTIONS,
        (
            Example("logreel carla replay town.log --json", "the steps of a replay, as lines of JSON"),
            Example("logreel carla replay town.log --to foxglove", "play the steps to Foxglove"),
        ),
        plays=True,
    ),
    Command(
        "actors",
        "Show who is in a recording, since when, and until when.",
        actor_list,
        examples=(
            Example("logreel carla actors town.log", "a table of the actors"),
            Example("logreel carla actors town.log --json", "the same as JSON"),
        ),
    ),
    Command(
        "write",
        "Write a recording that the simulator replays, from trajectories: a table of poses named x.csv, or a trace of "
        "OSI with ground truth.",
        write,
        (
            Option("map", ("--map",), "Name of the map; by default as the trace says.", str, None, "NAME"),
            Option(
                "date", ("--date",), "Date of the recording; by default as the trace says.", str, None, "DATE"
            ),
            Option(
                "blueprints",
                ("--blueprints",),
                "Blueprints of actors, by id, model or type: 7=vehicle.audi.tt,truck=vehicle.mini.cooper",
                str,
                "",
                "NAME=BLUEPRINT,…",
            ),
            Option(
                "ros_axes",
                ("--ros-axes",),
                "A table with location.x … is in metres and right-handed axes.",
                bool,
            ),
        ),
        (
            Example("logreel carla write town_gt.osi.mcap -o again.log", "the recording of a trace of OSI"),
            Example("logreel carla write poses.csv --map Town03 -o poses.log", "that of a table of poses"),
        ),
        opens=False,
    ),
)
