"""Text as the simulator's C++ streams print it, and what every query begins and ends with."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any


def number(value: float) -> str:
    """Six significant digits; what is not a number with its sign, as on Linux."""
    if value != value:
        return "-nan" if math.copysign(1.0, value) < 0 else "nan"
    return f"{value:g}"


def filled(template: str, rows: Iterable[tuple[float, ...]]) -> list[str]:
    """*template*, which has ``%g`` or ``%d`` for each number, filled for every row."""
    # A sum tells by one comparison whether a row may hold something that is not a number.
    return [template % row if (total := sum(row)) == total else _strange(template, row) for row in rows]


def _strange(template: str, row: tuple[float, ...]) -> str:
    texts = tuple(number(value) if isinstance(value, float) else str(int(value)) for value in row)
    return template.replace("%g", "%s").replace("%d", "%s") % texts


def padded(text: str, width: int) -> str:
    """*text* with blanks behind it until it has so many bytes."""
    return text + " " * (width - len(text.encode(errors="replace")))


def opening(about: Mapping[str, Any]) -> Iterator[str]:
    """Version, map, date in UTC, an empty line."""
    yield f"Version: {about['version']}"
    yield f"Map: {about['map']}"
    yield f"Date: {date_text(about['date_unix'])}"
    yield ""


def closing(about: Mapping[str, Any], whole: bool = False) -> Iterator[str]:
    """An empty line, frames, duration; *whole*: rounded to seconds."""
    seconds = about["duration_s"]
    yield ""
    yield f"Frames: {about['frames']}"
    yield f"Duration: {f'{seconds:.0f}' if whole else number(seconds)} seconds"


def date_text(seconds: int) -> str:
    """A date as C prints it, in UTC; the number where it is no date."""
    try:
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)).strftime("%m/%d/%y %H:%M:%S")
    except OverflowError:
        return str(seconds)
