"""Messages in force at a time: of latched topics, of parameters, and of channels that others need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from logreel.errors import LogError
from logreel.io.arrays import I64
from logreel.log.channel_facts import is_marked_latched
from logreel.log.log import Channel

PARAMETERS = "~parameter"
#: Last parts of topics that count as latched, since bags do not always store that: static transforms, maps, robot
#: descriptions.
STATIC = frozenset(
    ("tf_static", "map", "map_metadata", "static_map", "robot_description", "robot_description_semantic")
)
#: Side column with the number of the publisher.
_PUBLISHER = "connection"
#: Most messages that are decoded to find their frames.
_MOST = 20_000


def is_parameters(ch: Channel) -> bool:
    """Return whether the messages of *ch* are values of parameters."""
    return ch.topic.split("@")[0] == PARAMETERS


def is_latched_by_name(ch: Channel) -> bool:
    """Return whether *ch* counts as latched by its name."""
    topic = str(ch.metadata.get("topic", ch.topic))
    return topic.startswith("/") and topic.rpartition("/")[2] in STATIC


def in_force(ch: Channel, start: int, latched: bool | None = None) -> list[int]:
    """Return the rows of *ch* before *start* (ns) that are in force at *start*.

    latched  True: the last message of each publisher is in force, and of transforms the last one of each frame;
             None: if the log marks the channel as latched, or its name is that of a latched topic
    """
    if latched is None:
        latched = is_marked_latched(ch) or is_latched_by_name(ch)
    parameters = is_parameters(ch)
    # Other channels cannot be read without these messages.
    needed = bool(ch.metadata.get("is_metadata"))
    if not (parameters or needed or latched):
        return []
    times = ch.times
    before = np.flatnonzero(times < start)
    if not len(before):
        return []
    if parameters:
        names = ch["name"][before]
        return sorted({str(name): int(row) for name, row in zip(names, before, strict=True)}.values())
    if needed:
        return [int(row) for row in before]
    rows = _last_of_frames(ch, start, before)
    return _last_of_publishers(ch, times, before) if rows is None else rows


def _last_of_publishers(ch: Channel, times: I64, before: I64) -> list[int]:
    found = dict[int, int]()
    publisher = _publishers(ch, before)
    for row in before[np.argsort(times[before], kind="stable")].tolist():
        found[publisher.get(row, 0)] = row
    return sorted(found.values())


def _publishers(ch: Channel, rows: I64) -> dict[int, int]:
    """Return the publisher by row; empty if the log does not store publishers."""
    index = ch.log.index
    rule = index.rules[ch.number].side_columns.get(_PUBLISHER)
    if rule is None:
        return {}
    return dict(zip(rows.tolist(), rule.values(index, ch.number, rows).tolist(), strict=True))


def _last_of_frames(ch: Channel, start: int, before: I64) -> list[int] | None:
    """Return the rows with the last transform of some frame; None if the messages are no transforms."""
    if len(before) > _MOST:
        return None
    try:
        messages = [m.decode() for m in ch.log.messages([ch.topic], end=start, order="file")]
    except LogError:
        return None
    frames = [_frames(values) for values in messages]
    if len(frames) != len(before) or not any(frames):
        return None
    times = ch.times[before]
    seen, found = set[str](), list[int]()
    for i in np.argsort(times, kind="stable")[::-1].tolist():
        if frames[i] - seen:
            seen |= frames[i]
            found.append(int(before[i]))
    return sorted(found)


def _frames(values: Mapping[str, Any]) -> set[str]:
    """Return the child frames of a message of transforms."""
    transforms = values.get("transforms")
    if not isinstance(transforms, list):
        return set()
    return {
        str(one["child_frame_id"])
        for one in transforms
        if isinstance(one, Mapping) and "child_frame_id" in one
    }
