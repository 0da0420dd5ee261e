"""Parameters of a request to the viewer, checked; and whether its client has gone."""

from __future__ import annotations

import re
from collections.abc import Iterable
from threading import Event

from logreel.errors import UsageError
from logreel.outputs.view.limits import CHARACTERS, PIXELS

_NUMBER = re.compile(r"-?\d{1,19}(\.\d{0,9})?(e\+?\d{1,2})?", re.ASCII)
_INT64 = 1 << 63


class Cancelled(Exception):
    """The client does not wait for the answer any more."""


class Parameters:
    """Values of the parameters of a request by name; empty ones count as missing.

    items  names and values
    known  names that the request may have; those that end with ``…`` may be repeated
    stop   set when the client has gone

    Raises UsageError for unknown, repeated and too long parameters.
    """

    def __init__(
        self, items: Iterable[tuple[str, str]], known: Iterable[str], stop: Event | None = None
    ) -> None:
        self._stop = stop or Event()
        self._found: dict[str, list[str]] = {}
        names = set(known)
        for name, value in items:
            if name not in names and f"{name}…" not in names:
                there = ", ".join(sorted(one.rstrip("…") for one in names)) or "none"
                raise UsageError(f"no parameter {name!r:.80}; there are: {there}")
            if len(value) > CHARACTERS:
                raise UsageError(f"the parameter {name!r} is longer than {CHARACTERS} characters")
            if value:
                self._found.setdefault(name, []).append(value)
        for name, values in self._found.items():
            if len(values) > 1 and name in names:
                raise UsageError(f"the parameter {name!r} is given twice")

    def check(self) -> None:
        """Raise Cancelled if the client has gone; long work calls this every some milliseconds."""
        if self._stop.is_set():
            raise Cancelled

    def __contains__(self, name: str) -> bool:
        return name in self._found

    def all(self, name: str) -> list[str]:
        """Return all values of a parameter."""
        return self._found.get(name, [])

    def get(self, name: str) -> str | None:
        """Return the value of a parameter; None if it is missing."""
        return self._found.get(name, [None])[0]

    def text(self, name: str) -> str:
        """Return the value of a parameter; raises UsageError if it is missing."""
        value = self.get(name)
        if value is None:
            raise UsageError(f"the parameter {name!r} is missing")
        return value

    def number(self, name: str, least: int, most: int, default: int | None = None) -> int:
        """Return an integer from *least* to *most*; raises UsageError, also if it is missing without *default*."""
        value = self.get(name)
        if value is None and default is not None:
            return default
        text = self.text(name)
        if not _NUMBER.fullmatch(text) or not least <= (found := int(float(text))) <= most:
            raise UsageError(f"{name} {text!r:.80} is no number from {least} to {most}")
        return found

    def pixels(self, name: str = "px", default: int | None = None) -> int:
        """Return a number of pixels; raises UsageError."""
        return self.number(name, 1, PIXELS, default)

    def time(self, name: str, default: int | None = None) -> int | None:
        """Return a time in ns after the start of the log; raises UsageError for what is no such number."""
        value = self.get(name)
        if value is None:
            return default
        whole, _, _ = value.partition(".")
        found = int(whole) if _NUMBER.fullmatch(value) and whole.lstrip("-").isdecimal() else None
        if found is None and _NUMBER.fullmatch(value):
            found = int(float(value))
        if found is None or not -_INT64 <= found < _INT64:
            raise UsageError(f"{name} {value!r:.80} is no time in ns after the start of the log")
        return found

    def interval(self) -> tuple[int | None, int | None]:
        """Return ``from`` and ``to`` in ns after the start of the log; raises UsageError if they are in wrong order."""
        lo, hi = self.time("from"), self.time("to")
        if lo is not None and hi is not None and lo > hi:
            raise UsageError(f"the interval ends at {hi} before it begins at {lo}")
        return lo, hi
