"""Text lines of a recording: actors that appear, are removed or attached, and collisions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from logreel.log.scan import TextLine

#: Yields time (ns), frame number and record for all records of a topic.
Events = Callable[[str], Iterator[tuple[int, int, dict[str, Any]]]]

#: Syslog severities.
_NOTICE, _WARNING = 5, 4
#: Id of a collision partner that is not an actor.
_NOBODY = 0xFFFFFFFF


def lines(events: Events) -> list[TextLine]:
    """Return text lines by time; actors in the first frame with actors are only counted."""
    names: dict[int, str] = {}
    found: list[TextLine] = []
    there = 0
    begin = None
    for time, frame, actor in events("actors"):
        begin = (frame, time) if begin is None else begin
        names[actor["id"]] = f"{actor['description']} ({actor['id']})"
        if frame == begin[0]:
            there += 1
        else:
            found.append(TextLine(time, _NOTICE, f"{names[actor['id']]} appears"))
    if begin is not None:
        found.insert(0, TextLine(begin[1], _NOTICE, f"the recording begins with {there} actors"))

    def name(actor: int) -> str:
        return names.get(actor, "something" if actor == _NOBODY else f"actor {actor}")

    for time, _, removal in events("actor_removals"):
        found.append(TextLine(time, _NOTICE, f"{name(removal['id'])} is removed"))
    for time, _, one in events("actor_parents"):
        found.append(TextLine(time, _NOTICE, f"{name(one['child'])} is attached to {name(one['parent'])}"))
    before: set[tuple[int, int]] = set()
    now: set[tuple[int, int]] = set()
    last = -1
    for time, frame, hit in events("collisions"):
        if frame != last:
            before, now, last = (now if frame == last + 1 else set()), set(), frame
        pair = hit["actor1"], hit["actor2"]
        now.add(pair)
        if pair not in before:
            found.append(TextLine(time, _WARNING, f"{name(pair[0])} hits {name(pair[1])}"))
    return sorted(found, key=lambda line: line.time)
