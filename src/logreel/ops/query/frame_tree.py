"""The tree of frames of a log: parents, coverage in time, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from logreel.errors import Finding
from logreel.io.arrays import I64
from logreel.lenses import F64
from logreel.lenses.rotation import angle_between
from logreel.log.times import duration_text
from logreel.ops.query.frame_links import Link, roots_of

#: A step is a jump if it is longer than this many metres or rad and this many times the 95th percentile of the steps.
JUMP_M, JUMP_RAD, JUMP_FACTOR, JUMP_STEPS = 0.5, 0.5, 20, 10
#: Jumps and interruptions of one link that are named; all are counted.
NAMED = 3


@dataclass(frozen=True, slots=True)
class FrameLink:
    """A link of the tree, without its numbers.

    rate       transforms per second, None for static links and those with one transform
    intervals  first and last time (ns) of each part without interruption; empty for static links
    position   of the last transform in metres, and *rotation* as x, y, z, w
    """

    child: str
    parents: tuple[str, ...]
    static: bool
    messages: int
    rate: float | None
    intervals: tuple[tuple[int, int], ...]
    topics: tuple[str, ...]
    position: tuple[float, ...]
    rotation: tuple[float, ...]

    @property
    def parent(self) -> str:
        """The parent at the end of the log."""
        return self.parents[-1]


class FrameTree:
    """The frames of a log by parent and child."""

    def __init__(
        self, links: Sequence[Link], start: int | None, end: int | None, notes: Sequence[str] = ()
    ) -> None:
        self._links, self._start, self._end, self._notes = links, start, end, notes

    @cached_property
    def links(self) -> list[FrameLink]:
        """All links, in the order of the log; of a link with several parents, the last parent is that at the end."""
        found = []
        for one in self._links:
            last = one.parents[int(one.parent[-1])]
            parents = (*(name for name in one.parents if name != last), last)
            place, turn = tuple(one.position[-1].tolist()), tuple(one.rotation[-1].tolist())
            found.append(
                FrameLink(
                    one.child,
                    parents,
                    one.static,
                    one.messages,
                    one.rate,
                    tuple(one.intervals),
                    one.topics,
                    place,
                    turn,
                )
            )
        return found

    @cached_property
    def roots(self) -> list[str]:
        """Frames without a parent, sorted."""
        return roots_of(self._links)

    def children(self, frame: str) -> list[FrameLink]:
        """Return the links below *frame* at the end of the log, sorted by name."""
        return sorted((one for one in self.links if one.parent == frame), key=lambda one: one.child)

    def walk(self) -> Iterator[tuple[int, str, FrameLink | None]]:
        """Yield depth, frame and link to its parent (None for a root) of each frame, parents first."""
        seen: set[str] = set()
        # The frames of circles hang below no root.
        tops = [*self.roots, *(one.child for one in self.links)]
        for top in tops:
            if top in seen:
                continue
            link = next((one for one in self.links if one.child == top), None)
            stack: list[tuple[int, str, FrameLink | None]] = [
                (0, top, link if top not in self.roots else None)
            ]
            while stack:
                depth, frame, here = stack.pop()
                if frame in seen:
                    continue
                seen.add(frame)
                yield depth, frame, here
                stack += [(depth + 1, one.child, one) for one in reversed(self.children(frame))]

    @cached_property
    def circles(self) -> list[list[str]]:
        """Frames that are above themselves at the end of the log, as closed paths."""
        parents = {one.child: one.parent for one in self.links}
        found: list[list[str]] = []
        done: set[str] = set()
        for frame in parents:
            way: list[str] = []
            while frame in parents and frame not in done and frame not in way:
                way.append(frame)
                frame = parents[frame]
            if frame in way:
                found.append([*way[way.index(frame) :], frame])
            done.update(way)
        return found

    @cached_property
    def findings(self) -> list[Finding]:
        """What is wrong with the tree: errors, then warnings, then notes."""
        found = [*self._of_tree(), *(one for link in self._links for one in self._of_link(link))]
        found += [Finding("tf-note", "note", None, 0, note) for note in self._notes]
        return sorted(found, key=lambda one: ("error", "warn", "note").index(one.severity))

    def _of_tree(self) -> Iterator[Finding]:
        for circle in self.circles:
            yield Finding("tf-circle", "error", None, 0, f"the frames form a circle: {' → '.join(circle)}")
        if len(self.roots) > 1:
            yield Finding(
                "tf-roots",
                "warn",
                None,
                0,
                f"{len(self.roots)} trees without a link between them: below {', '.join(self.roots)}",
            )

    def _of_link(self, link: Link) -> Iterator[Finding]:
        topic, name = link.topics[0] if link.topics else None, f"{link.parents[-1]} → {link.child}"

        def finding(code: str, severity: Any, text: str, time: int | None = None, count: int = 1) -> Finding:
            return Finding(code, severity, None, 0, text, topic, time, count)

        if len(link.parents) > 1:
            change = int(np.flatnonzero(np.diff(link.parent) != 0)[0]) + 1 if not link.static else 0
            changes = int(np.count_nonzero(np.diff(link.parent)))
            parents = ", ".join(link.parents)
            text = f"{link.child} has {len(link.parents)} parents: {parents}; it changes {_times(changes)}"
            yield finding("tf-parents", "warn", text, int(link.time[change]), changes)
        if link.mixed:
            kind = "static" if link.static else "moving"
            text = f"{name} is sent as static and as moving; it is taken as {kind}, as sent first"
            yield finding("tf-mixed", "warn", text, link.start)
        if link.unusable:
            text = f"{link.unusable} of {link.messages} transforms {name} contain NaN, infinity or a zero quaternion"
            yield finding("tf-unusable", "warn", text, None, link.unusable)
        if link.backward:
            text = f"{link.backward} transforms {name} are older than the one before in the log"
            yield finding("tf-backward", "note", text, None, link.backward)
        if link.static:
            return
        if len(link) == 1 and link.messages > 0:
            text = f"{name} is known at one moment only, and is not marked as static"
            yield finding("tf-once", "note", text, link.start)
        gaps = link.gaps
        if len(gaps):
            longest = int(np.diff(gaps, axis=1).max())
            text = f"{name} is interrupted {_times(len(gaps))}, at most for {duration_text(longest)}"
            yield finding("tf-gap", "warn", text, int(gaps[0, 0]), len(gaps))
        at, far = jumps(link)
        if len(at):
            text = f"{name} jumps {_times(len(at))}, at most by {far}"
            yield finding("tf-jump", "warn", text, int(link.time[at[0]]), len(at))

    def as_dict(self) -> dict[str, Any]:
        """Return the tree as JSON data; times in ns."""
        return {
            "frames": sorted({name for one in self.links for name in (one.child, *one.parents)}),
            "roots": self.roots,
            "links": [asdict(one) | {"parent": one.parent} for one in self.links],
            "findings": [one.as_dict() for one in self.findings],
        }


def jumps(link: Link) -> tuple[I64, str]:
    """Return the rows of *link* after which it jumps, and the greatest jump as text."""
    if link.static or len(link) <= JUMP_STEPS:
        return np.zeros(0, np.int64), ""
    same = np.diff(link.parent) == 0
    moved = np.linalg.norm(np.diff(link.position, axis=0), axis=1)
    turned = angle_between(link.rotation[1:], link.rotation[:-1])
    far = _beyond(moved, JUMP_M) & same
    wide = _beyond(turned, JUMP_RAD) & same
    rows = np.flatnonzero(far | wide)
    text = (
        f"{moved[far].max():.3g} m"
        if far.any()
        else f"{np.degrees(turned[wide].max()):.0f}°"
        if wide.any()
        else ""
    )
    return rows, text


def _beyond(steps: F64, least: float) -> Any:
    return steps > max(least, JUMP_FACTOR * float(np.percentile(steps, 95)))


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
