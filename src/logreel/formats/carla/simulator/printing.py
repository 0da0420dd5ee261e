"""Text as the simulator's C++ streams print it, and the first and last lines of every query."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any


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


def closing(about: Mapping[str, Any], whole: bool = False) -> Iterator[str]:
    """Yield the last lines: an empty line, frames, and duration; *whole*: rounded to seconds."""
    seconds = about["duration_s"]
    yield ""
    yield f"Frames: {about['frames']}"
    yield f"Duration: {f'{seconds:.0f}' if whole else number(seconds)} seconds"


def date_text(seconds: int) -> str:
    """Return a date as C prints it, in UTC; the number if it is out of range."""
    try:
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)).strftime("%m/%d/%y %H:%M:%S")
    except OverflowError:
        return str(seconds)
