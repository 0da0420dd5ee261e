"""Text as the simulator's C++ streams print it: numbers, words of each release, first and last lines of queries."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from logreel.errors import UsageError
from logreel.formats.carla.columns import RecordingColumns
from logreel.io.arrays import I64


def number(value: float) -> str:
    """Return a number with six significant digits; NaN with its sign, as on Linux."""
    if value != value:
        return "-nan" if math.copysign(1.0, value) < 0 else "nan"
    return f"{value:g}"


def filled(template: str, rows: Iterable[tuple[float, ...]]) -> list[str]:
    """Return *template*, with ``%g`` or ``%d`` for each number, filled with every row."""
    # If a row has a NaN its sum is NaN: one comparison instead of one per number.
    return [
        template % row if (total := sum(row)) == total else _filled_with_nan(template, row) for row in rows
    ]


def _filled_with_nan(template: str, row: tuple[float, ...]) -> str:
    texts = tuple(number(value) if isinstance(value, float) else str(int(value)) for value in row)
    return template.replace("%g", "%s").replace("%d", "%s") % texts


def padded(text: str, width: int) -> str:
    """Return *text*, padded with spaces to *width* bytes."""
    return text + " " * (width - len(text.encode(errors="replace")))


def opening(about: Mapping[str, Any]) -> Iterator[str]:
    """Yield the first lines: version, map, date in UTC, and an empty line."""
    yield f"Version: {about['version']}"
    yield f"Map: {about['map']}"
    yield f"Date: {date_text(about['date_unix'])}"
    yield ""


def closing(about: Mapping[str, Any], rounded: bool = False) -> Iterator[str]:
    """Yield the last lines: an empty line, frames, and duration; *rounded*: rounded to seconds."""
    seconds = about["duration_s"]
    yield ""
    yield f"Frames: {about['frames']}"
    yield f"Duration: {f'{seconds:.0f}' if rounded else number(seconds)} seconds"


def date_text(seconds: int) -> str:
    """Return a date as C prints it, in UTC; the number if it is out of range."""
    try:
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)).strftime("%m/%d/%y %H:%M:%S")
    except OverflowError:
        return str(seconds)


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
    return next((name for name, marking in marks.items() if any(t in topics for t in marking)), "0.9.4")


class KnownActors:
    """Types and descriptions of the actors, frame by frame.

    When an actor is removed, the simulator's queries forget the actor that was added last. With *correct* they forget
    nothing, so that the description of an actor is also known after its removal.

    forgotten     int64[n]  ids of forgotten actors
    forgotten_at  int64[n]  row of the frame at which each is forgotten
    """

    def __init__(self, columns: RecordingColumns, correct: bool) -> None:
        self._descriptions = columns("actors", "description")
        ids, frame_row = columns("actors", "id").astype(np.int64), columns.frame_rows("actors")
        rows = np.arange(len(ids), dtype=np.int64)
        self.forgotten, self.forgotten_at = np.zeros((2, 0), np.int64)
        if not correct and len(ids):
            removal = columns.frame_rows("actor_removals")
            last = np.searchsorted(frame_row, removal, side="right") - 1
            self.forgotten, self.forgotten_at = ids[last[last >= 0]], removal[last >= 0]
        entries = np.concatenate([ids, self.forgotten]), np.concatenate([frame_row, self.forgotten_at])
        row = np.concatenate([rows, np.full(len(self.forgotten), -1)])
        # Ids have 32 bits, rows of frames fewer than 31: a recording of 2**31 frames would have 100 GB.
        key = entries[0] << 31 | entries[1]
        order = np.argsort(key, kind="stable")
        self._key, self._row = key[order], row[order]
        self._types = columns("actors", "type").astype(np.int64)

    def rows(self, ids: I64, frame_row: I64) -> I64:
        """Return the row of ``actors`` that describes each actor at a frame: int64[n], -1 if it is not known."""
        if not len(self._key):
            return np.full(len(ids), -1, np.int64)
        at = np.searchsorted(self._key, ids << 31 | frame_row, side="right") - 1
        latest = np.where(at >= 0, self._row[at], -1)
        return np.where(self._key[at] >> 31 == ids, latest, -1)

    def types(self, rows: I64) -> I64:
        """Return the types of actors by row; 0 for -1."""
        return (
            np.where(rows >= 0, self._types[rows], 0) if len(self._types) else np.zeros(len(rows), np.int64)
        )

    def descriptions(self, rows: I64) -> list[str]:
        """Return the descriptions of actors by row; empty for -1."""
        return [str(self._descriptions[row]) if row >= 0 else "" for row in rows.tolist()]


def recording_summary(columns: RecordingColumns) -> dict[str, Any]:
    """Return what all queries print before and after their rows: version, map, date, frames, duration."""
    metadata, ids = columns.log.metadata, columns("frames", "frame")
    elapsed = columns("frames", "elapsed")
    return {
        "version": metadata["format_version"],
        "map": metadata["map"],
        "date_unix": metadata.get("date_unix", 0),
        "frames": int(ids[-1]) if len(ids) else 0,
        "duration_s": float(elapsed[-1]) if len(elapsed) else 0.0,
    }
