"""Which messages from before a moment still hold at it: of latched topics, of parameters, of what others need."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from logreel.errors import LogError
from logreel.io.arrays import I64
from logreel.log.log import Channel

PARAMETERS = "~parameter"
#: Last parts of topics that are latched wherever they are published, though a bag may have been written without saying
#: so: static transforms, maps, descriptions of robots.
STATIC = frozenset(
    ("tf_static", "map", "map_metadata", "static_map", "robot_description", "robot_description_semantic")
)
#: ROS 2 has latched topics as a quality of service; its recorders keep that as text.
_TRANSIENT = re.compile(r"durability:\s*(1\b|transient_local)")
#: What a log may tell beside messages: which of its publishers one is of.
_PUBLISHER = "connection"
#: Of more messages than this nobody asks each which frames it is about.
_MOST = 20_000


def is_parameters(ch: Channel) -> bool:
    """Whether the messages of *ch* are values of parameters."""
    return ch.topic.split("@")[0] == PARAMETERS


def is_told_latched(ch: Channel) -> bool:
    """Whether the log says that *ch* is latched."""
    told = ch.metadata.get("offered_qos_profiles")
    return bool(ch.metadata.get("latching")) or (
        isinstance(told, str) and _TRANSIENT.search(told) is not None
    )


def is_static(ch: Channel) -> bool:
    """Whether *ch* is latched by what it is called."""
    topic = str(ch.metadata.get("topic", ch.topic))
    return topic.startswith("/") and topic.rpartition("/")[2] in STATIC


def in_force(ch: Channel, start: int, latched: bool | None = None) -> list[int]:
    """Rows of *ch* before *start* (ns) whose content still holds then.

    latched  the channel counts as latched: the last message of each publisher holds, and of transforms each that is
             the last one of a frame; None: as the log says, or the name
    """
    if latched is None:
        latched = is_told_latched(ch) or is_static(ch)
    parameters = is_parameters(ch)
    # Later messages of other channels cannot be read without them.
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
    """Which publisher each of *rows* is of, where the log tells of several."""
    index = ch.log.index
    rule = index.rules[ch.number].side_columns.get(_PUBLISHER)
    if rule is None:
        return {}
    return dict(zip(rows.tolist(), rule.values(index, ch.number, rows).tolist(), strict=True))


def _last_of_frames(ch: Channel, start: int, before: I64) -> list[int] | None:
    """Rows with transforms of which at least one is the last one of its frame; None where they are none."""
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
    """The frames that a message of transforms is about."""
    transforms = values.get("transforms")
    if not isinstance(transforms, list):
        return set()
    return {
        str(one["child_frame_id"])
        for one in transforms
        if isinstance(one, Mapping) and "child_frame_id" in one
    }
