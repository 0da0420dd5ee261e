"""How the text of show_recorder_file_info is worded, release by release."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from logreel.errors import UsageError

_MOVES = ("position", "traffic_lights", "vehicle_control", "walker")
_LIGHTS = (
    *(*_MOVES, "vehicle_lights", "scene_lights", "velocity", "bounding_boxes", "trigger_volumes"),
    *("platform_time", "physics", "traffic_light_times"),
)
_BONES = (*_LIGHTS, "bones")
_DOORS = (*_BONES, "doors")


@dataclass(frozen=True, slots=True)
class Wording:
    """What releases from one on print.

    topics        packets that are printed record by record where all is asked for
    colons        of position, of rotation, of the controls of vehicles, of brake
    child_twice   the fault of the first releases: a child is said to be its own parent
    bones_line    an empty line behind bones
    ends          an empty line at the end of each frame and of the file
    """

    topics: tuple[str, ...] = ()
    place: str = ":"
    turn: str = ":"
    named: bool = True
    brake: str = ":"
    child_twice: bool = False
    bones_line: bool = False
    ends: bool = False


WORDINGS = {
    "0.9.4": Wording(child_twice=True),
    "0.9.6": Wording(_MOVES, place="", turn="", named=False),
    "0.9.10": Wording(_LIGHTS, turn="", brake=""),
    "0.9.14": Wording(_BONES, turn="", brake="", bones_line=True),
    "0.9.15": Wording(_DOORS, bones_line=True),
    "0.9.16": Wording((*_DOORS, "weather"), ends=True),
}


def wording(name: str | None, version: int, topics: Container[str]) -> Wording:
    """The wording that begins with release *name*; None: of the release that wrote a file.

    version  of the file's header
    topics   that it has

    Raises UsageError for another name.
    """
    name = _guess(version, topics) if name is None else name
    if name not in WORDINGS:
        raise UsageError(f"no generation {name!r}: use one of {', '.join(WORDINGS)}")
    return WORDINGS[name]


def _guess(version: int, topics: Container[str]) -> str:
    if version >= 2:
        return "0.9.16"
    signs = {
        "0.9.15": ("wheels", "bikers", "doors"),
        "0.9.14": ("visual_time", "bones"),
        "0.9.10": ("vehicle_lights",),
        "0.9.6": ("vehicle_control",),
    }
    return next((name for name, some in signs.items() if any(t in topics for t in some)), "0.9.4")
