"""Section of a summary: the robot that a channel ``robot_description`` describes as URDF."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress

from logreel.errors import LogError
from logreel.lenses.facts import Fact
from logreel.log.log import Channel

#: Last part of the topic by convention of ROS, and field with the text.
TOPIC, FIELD = "robot_description", "data"
# Not an XML parser: a text from a log may name entities and files. No expression goes beyond one tag.
_ROBOT = re.compile(r"""<robot\b[^<>]*?\bname\s*=\s*["']([^"'<>]*)["']""")
_LINK = re.compile(r"<link\b[^<>]*\bname\s*=")
_JOINT = re.compile(r"""<joint\b[^<>]*\btype\s*=\s*["'](\w+)["']""")


def robots(channels: Iterable[Channel]) -> Iterator[Fact]:
    """Yield name, number of links and joints of the robot that the last message of each description tells."""
    for ch in channels:
        if ch.topic.rpartition("/")[2] != TOPIC:
            continue
        with suppress(LogError):
            text = ch[len(ch) - 1].decode().get(FIELD)
            if isinstance(text, str) and (fact := _robot(ch.topic, text)) is not None:
                yield fact


def _robot(topic: str, text: str) -> Fact | None:
    """Return what a URDF says, or None if *text* is none."""
    first, *others = text.split("<!--")
    plain = first + "".join(other.partition("-->")[2] for other in others)
    match = _ROBOT.search(plain)
    if match is None:
        return None
    links, joints = len(_LINK.findall(plain)), Counter(_JOINT.findall(plain))
    kinds = ", ".join(f"{count} {joint_type}" for joint_type, count in joints.most_common())
    parts = f"{links} link{'s' * (links != 1)}, {joints.total()} joint{'s' * (joints.total() != 1)}"
    return Fact(topic, topic, match[1], f"{match[1]}: {parts}" + (f" ({kinds})" if kinds else ""))
