"""Names of flight modes, and when the vehicle was in which mode, armed, in the air, or in failsafe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.lenses.facts import Band

if TYPE_CHECKING:
    from logreel.io.arrays import I64
    from logreel.log.log import Channel, Log

#: ``nav_state`` of ``vehicle_status``: the numbers that have one meaning in all releases of PX4 since 2014.
NAV_STATES = {
    0: "Manual",
    1: "Altitude",
    2: "Position",
    3: "Mission",
    4: "Hold",
    5: "Return",
    10: "Acro",
    12: "Descend",
    13: "Termination",
    14: "Offboard",
    15: "Stabilized",
    17: "Takeoff",
    18: "Land",
    19: "Follow target",
    20: "Precision land",
    21: "Orbit",
    22: "VTOL takeoff",
    **{22 + n: f"External {n}" for n in range(1, 9)},
}
#: Numbers whose meaning changed: until v1.13 they had these names …
OLD_NAV_STATES = {
    6: "RC recovery",
    7: "Return to ground station",
    8: "Land, engine failure",
    9: "Land, GPS failure",
    11: "Land",
    16: "Rattitude",
}
#: … and have these since v1.15, some since later releases.
NEW_NAV_STATES = {6: "Position slow", 7: "Guided course", 8: "Altitude cruise"}
#: A field that ``vehicle_status`` has since the releases whose free numbers are used again.
NEW_FIELD = "valid_nav_states_mask"

#: ``main_state`` of ``commander_state``: the mode that the pilot chose; until v1.13.
MAIN_STATES = {
    0: "Manual",
    1: "Altitude",
    2: "Position",
    3: "Mission",
    4: "Hold",
    5: "Return",
    6: "Acro",
    7: "Offboard",
    8: "Stabilized",
    9: "Rattitude",
    10: "Takeoff",
    11: "Land",
    12: "Follow target",
    13: "Precision land",
    14: "Orbit",
}
#: ``arming_state`` of ``vehicle_status`` in all releases.
ARMED = 2


def bands(log: Log) -> Iterator[Band]:
    """Yield flight modes, armed intervals, flights and failsafes of *log*."""
    status = _channel(log, "vehicle_status")
    chosen = _channel(log, "commander_state")
    if status is not None and "nav_state" in status:
        yield from _runs(log, status, "nav_state", "mode", nav_state_names(status).get)
    elif chosen is not None and "main_state" in chosen:
        yield from _runs(log, chosen, "main_state", "mode", MAIN_STATES.get)
    if status is not None and "arming_state" in status:
        yield from _where(log, status, "arming_state", "armed", "Armed", lambda v: v == ARMED)
    elif (armed := _channel(log, "actuator_armed")) is not None and "armed" in armed:
        yield from _where(log, armed, "armed", "armed", "Armed", lambda v: v != 0)
    landed = _channel(log, "vehicle_land_detected")
    if landed is not None and "landed" in landed:
        yield from _where(log, landed, "landed", "air", "In the air", lambda v: v == 0)
    if status is not None and "failsafe" in status:
        yield from _where(log, status, "failsafe", "failsafe", "Failsafe", lambda v: v != 0)


def nav_state_names(status: Channel) -> dict[int, str]:
    """Return the names of ``nav_state`` by number, for the release whose fields *status* has."""
    return NAV_STATES | (NEW_NAV_STATES if NEW_FIELD in status else OLD_NAV_STATES)


def _channel(log: Log, topic: str) -> Channel | None:
    ch = log.channels.get(topic)
    return ch if ch is not None and len(ch) else None


def _runs(
    log: Log, ch: Channel, field: str, band_kind: str, name: Callable[[int], str | None]
) -> Iterator[Band]:
    """Yield a band for each run of equal values; the last one lasts until the end of the log."""
    source = f"{ch.topic}.{field}"
    times, values, ends = _states(log, ch, field)
    for start, end, value in zip(times.tolist(), ends.tolist(), values.tolist(), strict=True):
        yield Band(start, end, name(value) or f"Mode {value}", band_kind, f"{source} = {value}")


def _where(
    log: Log, ch: Channel, field: str, band_kind: str, label: str, test: Callable[[Any], NDArray[np.bool_]]
) -> Iterator[Band]:
    """Yield a band for each interval in which the values of a field pass *test*."""
    times, values, ends = _states(log, ch, field, test)
    for start, end, value in zip(times.tolist(), ends.tolist(), values.tolist(), strict=True):
        if value:
            yield Band(start, end, label, band_kind, f"{ch.topic}.{field}")


def _states(
    log: Log, ch: Channel, field: str, test: Callable[[Any], NDArray[np.bool_]] | None = None
) -> tuple[I64, NDArray[Any], I64]:
    """Return start, value and end of each run of equal values, in order of time."""
    values = np.ma.filled(ch[field], 0)
    if test is not None:
        values = test(values)
    times = ch.times
    order = np.argsort(times, kind="stable")
    times, values = times[order], values[order]
    changed = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    end = max(times[-1], log.end or 0)
    return times[changed], values[changed], np.append(times[changed][1:], end)
