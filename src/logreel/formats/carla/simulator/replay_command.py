"""The command ``replay``: the steps of a replay as text, as JSON, or played to a sink."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from logreel.errors import UsageError
from logreel.formats.carla.simulator.replay import OFFSET, PITCH, Replay
from logreel.formats.carla.simulator.tick_log import tick_log
from logreel.registry.commands import Option, Playback

if TYPE_CHECKING:
    from logreel.log.log import Log

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
            hint="name the actor with follow",
            cli="name the actor with --follow",
        )
    if not 0 < delta < math.inf:
        raise UsageError(f"a step is greater than 0, not {delta}")
    found = Replay(
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
        return (tick.line() for tick in found.ticks(delta, stop=True))

    def rows() -> Iterator[dict[str, Any]]:
        return (tick.to_dict() for tick in found.ticks(delta, stop=True))

    return Playback(lines, rows, partial(tick_log, found, delta), time_factor)


def _offset(text: str) -> tuple[float, float, float]:
    try:
        x, y, z = map(float, text.split(","))
    except ValueError:
        raise UsageError(f"an offset is three numbers such as -10,0,5, not {text!r}") from None
    return x, y, z
