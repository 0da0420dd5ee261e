"""Times as people write and read them; inside they are int64 nanoseconds of the log's clock."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Protocol

from logreel.errors import UsageError

if TYPE_CHECKING:
    from logreel.model.log import Log


class Clocked(Protocol):
    """What times can be relative to: a Log, or something else with a clock. See ``Log`` for what these are."""

    @property
    def name(self) -> str: ...

    @property
    def epoch(self) -> str: ...

    @property
    def start(self) -> int | None: ...

    @property
    def end(self) -> int | None: ...

    @property
    def utc_offset(self) -> int | None: ...


SECOND = 10**9
_UNITS = {
    "ns": 1, "us": 10**3, "ms": 10**6, "s": SECOND, "": SECOND, "m": 60 * SECOND, "min": 60 * SECOND,
    "h": 3600 * SECOND,
}  # fmt: skip
#: A plain number at or above this is seconds since 1970 whatever the log's clock: no robot runs for 31 years.
_UNIX_SECONDS = 10**9

_NUMBER = re.compile(r"([+-]?)(\d{1,20}(?:\.\d{0,18})?|\.\d{1,18})\s*(ns|us|ms|s|min|m|h|)")
_CLOCK = re.compile(r"([+-]?)(?:(\d{1,6}):)?(\d{1,6}):(\d{2})(\.\d{1,9})?")
_STAMP = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9})\d*)?\s*([Zz]|[+-]\d\d:\d\d)?"
)
_HINT = (
    "a time is 2024-05-01T12:00:00Z, +12.5s (from the start), -30s (from the end), 00:01:30, "
    "1714564800.5 or 123ns"
)


def parse_time(text: str, log: Clocked) -> int:
    """The time that *text* means, in ns of the clock of *log*.

    ``+12.5s`` and ``00:01:30`` count from the start of the log, ``-30s`` from its end; ``123ns`` is a time
    of the log's clock; a plain number is seconds of that clock, from a thousand million up seconds since
    1970; RFC 3339 times are UTC or carry an offset. Raises UsageError for anything else, or where the log
    does not tell its start or how its clock relates to UTC.
    """
    text = text.strip()
    if match := _STAMP.fullmatch(text):
        return _checked(_from_utc(_stamp_ns(match, text), text, log), text)
    if match := _CLOCK.fullmatch(text):
        sign, hours, minutes, seconds, fraction = match.groups()
        if int(seconds) > 59 or (hours and int(minutes) > 59):
            raise UsageError(f"{text!r} has more than 59 minutes or seconds")
        whole = (int(hours or 0) * 60 + int(minutes)) * 60 + int(seconds)
        ns = whole * SECOND + int(Decimal(fraction or 0) * SECOND)
        return _checked(_relative(sign or "+", ns, text, log), text)
    if match := _NUMBER.fullmatch(text):
        sign, number, unit = match.groups()
        ns = int(Decimal(number) * _UNITS[unit])
        if sign:
            return _checked(_relative(sign, ns, text, log), text)
        if unit in ("", "s") and log.epoch != "unix" and ns >= _UNIX_SECONDS * SECOND:
            return _checked(_from_utc(ns, text, log), text)
        return _checked(ns, text)
    raise UsageError(f"cannot read the time {text!r}: {_HINT}")


def _checked(ns: int, text: str) -> int:
    if not -(1 << 63) <= ns < 1 << 63:
        raise UsageError(f"the time {text!r} is beyond what 64 bits of nanoseconds can hold")
    return ns


def _relative(sign: str, ns: int, text: str, log: Clocked) -> int:
    edge = log.start if sign == "+" else log.end
    if edge is None:
        raise UsageError(
            f"{text!r} counts from the {'start' if sign == '+' else 'end'} of a log without messages"
        )
    return edge + ns if sign == "+" else edge - ns


def _from_utc(ns: int, text: str, log: Clocked) -> int:
    offset = 0 if log.epoch == "unix" else log.utc_offset
    if offset is None:
        raise UsageError(
            f"{text!r} is a wall-clock time, but the log does not tell how its clock relates to UTC: "
            "use +12.5s, -30s or 00:01:30",
            path=log.name,
        )
    return ns - offset


def _stamp_ns(match: re.Match[str], text: str) -> int:
    *parts, fraction, zone = match.groups()
    if zone is None:
        raise UsageError(f"{text!r} has no zone: add Z for UTC, or an offset such as +02:00")
    try:
        if zone in "Zz":
            there: timezone = UTC
        else:
            shift = timedelta(hours=int(zone[1:3]), minutes=int(zone[4:6]))
            there = timezone(-shift if zone[0] == "-" else shift)
        year, month, day, hour, minute, second = map(int, parts)
        moment = datetime(year, month, day, hour, minute, second, tzinfo=there)
    except ValueError as error:
        raise UsageError(f"{text!r} is no time: {error}") from None
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86400 + since.seconds) * SECOND + int((fraction or "0").ljust(9, "0"))


def duration_ns(text: str) -> int:
    """The length of time that *text* means: ``60s``, ``+2.5s``, ``-250ms``, ``00:01:30``. Raises UsageError."""
    text = text.strip()
    sign, ns = "", None
    if match := _NUMBER.fullmatch(text):
        sign, number, unit = match.groups()
        ns = int(Decimal(number) * _UNITS[unit])
    elif match := _CLOCK.fullmatch(text):
        sign, hours, minutes, seconds, fraction = match.groups()
        whole = (int(hours or 0) * 60 + int(minutes)) * 60 + int(seconds)
        ns = whole * SECOND + int(Decimal(fraction or 0) * SECOND)
    if ns is None:
        raise UsageError(f"cannot read the length of time {text!r}: write 60s, 250ms, 5min or 00:01:30")
    return _checked(-ns if sign == "-" else ns, text)


def interval(log: Clocked, start: str | int | None, end: str | int | None) -> tuple[int | None, int | None]:
    """The half-open interval ``[start, end)`` in ns that two times of the user mean; None is no bound.

    Raises UsageError for times that cannot be read, or an end before the start.
    """
    first, last = (parse_time(t, log) if isinstance(t, str) else t for t in (start, end))
    if first is not None and last is not None and last < first:
        raise UsageError(f"the end {end!r} lies before the start {start!r}")
    return first, last


def duration_text(ns: int | None) -> str:
    """A length of time for people: ``350 ms``, ``6.5 s``, ``2 min 05 s``, ``3 h 07 min``."""
    if ns is None:
        return "–"
    if ns < 0:
        return "-" + duration_text(-ns)
    if ns < 1000:
        return f"{ns} ns"
    if ns < 10**6:
        return f"{ns / 10**3:.3g} µs"
    if ns < 995 * 10**6:
        return f"{ns / 10**6:.3g} ms"
    if ns < 100 * SECOND:
        return f"{ns / SECOND:.1f} s"
    seconds = round(ns / SECOND)
    if seconds < 3600:
        return f"{seconds // 60} min {seconds % 60:02d} s"
    minutes = round(seconds / 60)
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60:02d} min"
    return f"{minutes // 1440} d {minutes % 1440 // 60:02d} h"


def utc_text(ns: int, digits: int = 9) -> str:
    """Nanoseconds since 1970 as RFC 3339 in UTC with *digits* decimals of a second (cut, not rounded)."""
    seconds, rest = divmod(ns, SECOND)
    try:
        moment = datetime(1970, 1, 1) + timedelta(seconds=seconds)
    except OverflowError:
        return f"{ns} ns"
    fraction = f".{rest:09d}"[: digits + 1] if digits else ""
    return f"{moment.isoformat(timespec='seconds')}{fraction}Z"


def seconds_text(ns: int, digits: int = 6) -> str:
    """A time of the log's clock in seconds, with *digits* decimals (cut, not rounded)."""
    sign, size = ("-", -ns) if ns < 0 else ("", ns)
    return f"{sign}{size // SECOND}.{size % SECOND:09d}"[: len(sign) + len(str(size // SECOND)) + 1 + digits]


def utc_shift(log: Log) -> int | None:
    """ns to add to a time of *log* to have UTC since 1970; None where the log does not tell."""
    return log.utc_offset or 0 if log.epoch == "unix" else log.utc_offset


def shift_of(log: Log, utc: bool) -> int | None:
    """ns to add to show UTC: None unless *utc*; raises UsageError where the log does not tell."""
    if not utc:
        return None
    shift = utc_shift(log)
    if shift is None:
        raise UsageError("the log does not tell how its clock relates to UTC: leave out --utc", path=log.name)
    return shift


def time_text(ns: int, shift: int | None = None) -> str:
    """One time for people: seconds of the log's clock, or UTC where *shift* (see ``shift_of``) is given."""
    return seconds_text(ns) if shift is None else utc_text(ns + shift, 6)
