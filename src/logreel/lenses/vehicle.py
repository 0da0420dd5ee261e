"""Poses of a vehicle whose position and attitude are in different channels, as flight controllers log them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass
from logreel.errors import LogError
from logreel.index.block_table import TIME_MAX, TIME_MIN
from logreel.io.arrays import I64
from logreel.lenses import LocalPose, Places, lenses
from logreel.lenses.motion import BODY, body_of
from logreel.lenses.rotation import PoseCurve, unit
from logreel.log.times import SECOND

if TYPE_CHECKING:
    from logreel.log.log import Channel, Log

#: Time (ns) around an interval in which values of the other channel are searched.
MARGIN = 5 * SECOND
#: Values of the other channel are held for this time (ns) before its first and after its last, then they are unknown.
HOLD = SECOND // 2
_SAME = (0.0, 0.0, 0.0, 1.0)

Part = tuple["Channel", LocalPose]


@dataclass(frozen=True, slots=True)
class VehiclePose:
    """A pose of a vehicle in its local frame, from one channel or two.

    child     name of the frame of its body: ``base_link`` for the vehicle itself, ``base_link_setpoint`` …
    position  channel with the position and its lens, or None
    attitude  channel with the attitude (or at least the heading) and its lens; as *position* if that has both
    """

    child: str
    position: Part | None
    attitude: Part

    @property
    def base(self) -> Part:
        """The channel with more messages, at whose times the pose is known."""
        if self.position is None or len(self.attitude[0]) >= len(self.position[0]):
            return self.attitude
        return self.position

    @property
    def place(self) -> Part:
        """The channel with the position, or else that with the attitude."""
        return self.position or self.base

    @property
    def topics(self) -> tuple[str, ...]:
        """The channels."""
        return tuple(dict.fromkeys(part[0].topic for part in (self.position, self.attitude) if part))

    def track(
        self, start: int | None = None, end: int | None = None, source: Channel | None = None
    ) -> Places:
        """Return the poses with start <= time < end (ns), as ``LocalPose.track``, without those that are not known.

        source  the channel at whose messages poses are wanted; None: the one with more messages

        The other channel is interpolated, but not across the reset of an estimator. If the log knows no horizontal
        position at all, x and y are 0, so that attitude and height can still be seen.
        """
        parts = [part for part in (self.position, self.attitude) if part]
        base = next((part for part in parts if source and part[0].topic == source.topic), self.base)
        other = self.attitude if base is self.position else self.position
        places = base[1].track(base[0], start, end)
        kept: NDArray[np.bool_] = np.array(
            np.zeros(len(places.time)) if places.kept is None else places.kept, np.bool_
        )
        place, turn = places.position, places.rotation
        if other is not None and other[0] is not base[0] and len(places.time):
            more = self._at(other, _times(places), kept, other is self.attitude)
            place, turn = (place, more) if other is self.attitude else (more, turn)
        if self.position is not None and not self.has_position():
            place = place.copy()
            place[:, :2] = 0.0
        good = np.isfinite(place).all(axis=1) & np.isfinite(turn).all(axis=1)
        lost = np.flatnonzero(~good)
        # A pose does not lead across unknown ones, either.
        kept[lost[lost > 0] - 1] = True
        names = [None if column is None else column[good] for column in (places.frame, places.child)]
        if names[1] is not None:
            names[1] = np.full(len(names[1]), self.child, object)
        return Places(
            places.time[good],
            place[good],
            turn[good],
            names[0],
            names[1],
            places.row[good],
            places.stamp[good],
            kept[good],
        )

    def at(self, time: int) -> PoseCurve | None:
        """Return the poses around *time* (ns), prepared for interpolation; None if none is known there."""
        places = self.track(max(time - MARGIN, TIME_MIN), min(time + MARGIN, TIME_MAX))
        when = _times(places)
        rows = np.argsort(when, kind="stable")
        rows = rows[np.append(True, np.diff(when[rows]) > 0)] if len(rows) else rows
        if not len(rows):
            return None
        turn, _ = unit(places.rotation[rows])
        kept = np.zeros(len(rows), np.bool_) if places.kept is None else places.kept[rows]
        return PoseCurve(when[rows], places.position[rows], turn, kept)

    def has_position(self) -> bool:
        """Return whether the log knows the horizontal position of the vehicle at any time."""
        return self.position is not None and _has_position(*self.position)

    def _at(
        self, other: Part, times: I64, leads_nowhere: NDArray[np.bool_], attitude: bool
    ) -> NDArray[np.float64]:
        """Return positions or rotations of the *other* channel at *times*, NaN if unknown; add to *leads_nowhere*."""
        ch, lens = other
        low, high = max(int(times.min()) - MARGIN, TIME_MIN), min(int(times.max()) + MARGIN, TIME_MAX)
        places = lens.track(ch, low, high)
        rotation, good = unit(places.rotation)
        place = places.position
        if attitude:
            place = np.zeros_like(place)
        else:
            # The attitude of this channel is not asked for, and its height is known without the horizontal position.
            rotation = np.tile(_SAME, (len(place), 1))
            place = place if self.has_position() else np.nan_to_num(place)
            good = np.asarray(np.isfinite(place).all(axis=1), np.bool_)
        out = np.full((len(times), 4 if attitude else 3), np.nan)
        own = _times(places)
        jump = (
            np.zeros(len(own), np.int64) if places.kept is None else np.append(0, np.cumsum(places.kept[:-1]))
        )
        rows = np.flatnonzero(good)
        rows = rows[np.argsort(own[rows], kind="stable")]
        rows = rows[np.append(True, np.diff(own[rows]) > 0)] if len(rows) else rows
        if not len(rows):
            return out
        time, resets = own[rows], jump[rows]
        kept = np.append(np.diff(resets) != 0, False)
        curve = PoseCurve(time, place[rows], rotation[rows], kept)
        columns = curve.at(times, True, None, np.ones(len(times), np.bool_))
        known = (times >= time[0] - HOLD) & (times <= time[-1] + HOLD)
        out[known] = columns[1 if attitude else 0].T[known]
        # Between two moments at which the other channel was reset, the pose jumps.
        count = resets[np.clip(np.searchsorted(time, times, side="right") - 1, 0, None)]
        leads_nowhere[:-1] |= np.diff(count) != 0
        return out


def _times(places: Places) -> I64:
    """Return int64[k] ns of measurement; those of logging where there are none."""
    return np.where(places.stamp != 0, places.stamp, places.time)


#: A channel by its topic, with its lens: caches must not keep a log alive.
_Named = tuple[str, LocalPose]
_POSES: WeakKeyDictionary[Log, tuple[bytes, list[tuple[str, _Named | None, _Named]]]] = WeakKeyDictionary()
_KNOWN: WeakKeyDictionary[Channel, tuple[int, bool]] = WeakKeyDictionary()


def vehicle_poses(log: Log) -> list[VehiclePose]:
    """Return the poses of vehicles in *log*: the vehicle itself first, then others in the order of the log."""
    # Asked for each channel of a conversion: the counts of all at once.
    counts = log.index.counts.tobytes()
    known = _POSES.get(log)
    if known is None or known[0] != counts:
        known = _POSES[log] = (counts, list(_poses_of(log)))

    def part(named: _Named) -> Part:
        return log.channels[named[0]], named[1]

    return [VehiclePose(child, place and part(place), part(turn)) for child, place, turn in known[1]]


def _poses_of(log: Log) -> Iterator[tuple[str, _Named | None, _Named]]:
    parts: dict[str, list[Part]] = {}
    for ch in log.channels.values():
        for lens in lenses(ch) if len(ch) and not ch.reserved else ():
            if isinstance(lens, LocalPose) and lens.aerospace:
                parts.setdefault(body_of(ch.topic), []).append((ch, lens))
    for child in sorted(parts, key=lambda name: name != BODY):
        several = [(ch.topic, lens) for ch, lens in sorted(parts[child], key=lambda part: -len(part[0]))]
        place = next((named for named in several if named[1].position), None)
        turn = next((named for named in several if named[1].attitude), None)
        if turn is None:
            # Without attitude, the heading is known at best.
            turn = place if place is not None and place[1].heading else None
        if turn is not None:
            yield child, place, turn


def _has_position(ch: Channel, lens: LocalPose) -> bool:
    """Return whether *ch* knows a horizontal position at any time."""
    known = _KNOWN.get(ch)
    if known is None or known[0] != len(ch):
        try:
            is_known = bool(np.isfinite(lens.track(ch).position[:, :2]).all(axis=1).any())
        except LogError:
            is_known = False
        known = _KNOWN[ch] = (len(ch), is_known)
    return known[1]
