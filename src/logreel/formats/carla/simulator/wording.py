"""Wording of the text of ``show_recorder_file_info`` by release."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Any

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
    """Text printed by a release and those after it.

    topics        packets that are printed record by record if everything is asked for
    place, turn   text after the words Location and Rotation
    named         True: names of vehicle and walker controls are followed by a colon
    brake         text after the word Brake
    child_twice   True: the child is printed as its own parent, a fault of the first releases
    bones_line    True: an empty line follows bones
    ends          True: an empty line follows each frame and the last one
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
    "0.9.16": Wording(_DOORS, bones_line=True),
    "0.9.17": Wording((*_DOORS, "weather"), ends=True),
    "0.10": Wording((*_DOORS, "weather"), bones_line=True),
}


def wording(name: str | None, about: Mapping[str, Any], topics: Container[str]) -> Wording:
    """Return the wording of release *name*; None: of the release that wrote a recording.

    about   metadata of the recording
    topics  its topics

    Raises UsageError for an unknown name.
    """
    name = _infer_release(about, topics) if name is None else name
    if name not in WORDINGS:
        raise UsageError(f"no generation {name!r}: use one of {', '.join(WORDINGS)}")
    return WORDINGS[name]


def _infer_release(about: Mapping[str, Any], topics: Container[str]) -> str:
    if about["engine"] == "UE5":
        return "0.10"
    if about["format_version"] >= 2:
        return "0.9.17" if "weather" in topics else "0.9.16"
    marks = {
        "0.9.15": ("wheels", "bikers", "doors"),
        "0.9.14": ("visual_time", "bones"),
        "0.9.10": ("vehicle_lights",),
        "0.9.6": ("vehicle_control",),
    }
    return next((name for name, some in marks.items() if any(t in topics for t in some)), "0.9.4")
