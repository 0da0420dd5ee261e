"""The tree of frames as URDF, as a graph for Graphviz, and as lines for a terminal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

import numpy as np

from logreel.errors import UsageError
from logreel.lenses.rotation import conjugated, euler, rotated
from logreel.ops.query.frame_links import plain_name
from logreel.ops.query.frame_tree import FrameLink

if TYPE_CHECKING:
    from logreel.log.times import Time
    from logreel.ops.query.transforms import Transforms

#: Characters that XML 1.0 forbids.
_FORBIDDEN = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 65534, 65535), "�")


@dataclass(frozen=True, slots=True)
class Joint:
    """A link of the tree as it is drawn: with the tree's own root, or from a chosen frame.

    turned    whether it is drawn from child to parent
    position  float metres of the lower frame in the upper one, *rotation* x, y, z, w; at the chosen time
    """

    depth: int
    upper: str
    lower: str
    turned: bool
    link: FrameLink
    position: tuple[float, ...]
    rotation: tuple[float, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the joint as JSON data."""
        return {
            "upper": self.upper,
            "lower": self.lower,
            "static": self.link.static,
            "translation": list(self.position),
            "rotation_xyzw": list(self.rotation),
        }


def joints(frames: Transforms, fixed: str | None = None, time: Time | None = None) -> list[Joint]:
    """Return the links of *frames* from the roots down, each with its transform.

    fixed  draw the tree from this frame, and only what is connected with it; None: all, from the roots
    time   time of the transforms; None: the last of each link. The nearest one is used beyond the first and last

    Raises NotFoundError for an unknown frame, UsageError for a time that cannot be read.
    """
    if fixed is not None:
        fixed = plain_name(fixed)
        # The lookup names similar frames if it is unknown.
        frames.lookup(fixed, fixed)
    below: dict[str, list[tuple[str, FrameLink]]] = {}
    for one in frames.tree.links:
        below.setdefault(one.parent, []).append((one.child, one))
        if fixed is not None:
            below.setdefault(one.child, []).append((one.parent, one))
    found, pending, seen = list[Joint](), dict[tuple[int, str], Joint](), set[str]()
    tops = [fixed] if fixed is not None else [*frames.tree.roots, *(one.child for one in frames.tree.links)]
    for top in tops:
        stack: list[tuple[int, str]] = [(0, top)] if top not in seen else []
        seen.add(top)
        while stack:
            depth, upper = stack.pop()
            if depth:
                found.append(pending.pop((depth, upper)))
            for lower, link in sorted(below.get(upper, []), key=lambda pair: pair[0], reverse=True):
                if lower not in seen:
                    seen.add(lower)
                    pending[depth + 1, lower] = _joint(frames, depth + 1, upper, lower, link, time)
                    stack.append((depth + 1, lower))
    return found


def _joint(
    frames: Transforms, depth: int, upper: str, lower: str, link: FrameLink, time: Time | None
) -> Joint:
    turned = link.child == upper
    if time is None or link.static:
        place, turn = np.array(link.position), np.array(link.rotation)
    else:
        at = frames.link_at(link.child, time)
        place, turn = at.translation, at.rotation
    if turned:
        turn = conjugated(turn)
        place = -rotated(turn, place)
    return Joint(depth, upper, lower, turned, link, tuple(place.tolist()), tuple(turn.tolist()))


def urdf(frames: Transforms, name: str, fixed: str | None = None, time: Time | None = None) -> str:
    """Return the tree as URDF: fixed joints for static links, floating ones for moving links.

    name  of the robot; *fixed* and *time* as for ``joints``

    Raises UsageError if there are several trees and *fixed* does not choose one, or no frames.
    """
    roots = frames.tree.roots
    if fixed is None and (len(roots) > 1 or frames.tree.circles):
        raise UsageError(
            f"URDF holds one tree, and the log has several: below {', '.join(roots)}",
            path=frames.path,
            hint="choose one with fixed='FRAME'",
            cli="choose one with --fixed FRAME",
        )
    if not frames.frames:
        raise UsageError("the log has no transforms between frames", path=frames.path)
    found = joints(frames, fixed, time)
    names = [fixed if fixed is not None else roots[0], *(one.lower for one in found)]
    lines = ['<?xml version="1.0" encoding="utf-8"?>', f"<robot name={_attribute(name)}>"]
    lines += [f"  <link name={_attribute(plain_name(frame))}/>" for frame in names]
    for one in found:
        kind = "fixed" if one.link.static else "floating"
        lines += [
            f'  <joint name={_attribute(f"{one.upper}_to_{one.lower}")} type="{kind}">',
            f"    <parent link={_attribute(one.upper)}/>",
            f"    <child link={_attribute(one.lower)}/>",
            f'    <origin xyz="{_numbers(one.position)}" rpy="{_numbers(euler(np.array(one.rotation)))}"/>',
            "  </joint>",
        ]
    return "\n".join([*lines, "</robot>", ""])


def dot(frames: Transforms, fixed: str | None = None) -> str:
    """Return the tree as a graph for Graphviz: an edge per link with kind, rate, messages and coverage."""
    lines = ["digraph frames {", "  node [shape=box];"]
    lines += [f"  {_quoted(frame)};" for frame in ([] if fixed else frames.tree.roots)]
    for one in joints(frames, fixed):
        link = one.link
        text = "\n".join(["static" if link.static else "moving", f"{link.messages} messages", *link.topics])
        if link.rate is not None:
            text += f"\n{link.rate:.3g} Hz"
        style = ", style=dashed" if link.static else ""
        for parent in link.parents:
            lines.append(f"  {_quoted(parent)} -> {_quoted(link.child)} [label={_quoted(text)}{style}];")
    return "\n".join([*lines, "}", ""])


def _attribute(text: str) -> str:
    return quoteattr(text.translate(_FORBIDDEN))


def _quoted(text: str) -> str:
    safe = "".join(c if c == "\n" or c.isprintable() else "\ufffd" for c in text)
    return '"' + safe.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _numbers(values: tuple[float, ...] | np.ndarray) -> str:
    return " ".join(f"{float(value) + 0.0:.9g}" for value in values)
