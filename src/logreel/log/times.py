"""Convert times that users give to int64 nanoseconds of the clock of a log, and back to text.

Every ``start`` and ``end`` of the library and of the command line goes through ``interval``, every time of a message
that is written through ``written_ns``.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from logreel.dataclass import dataclass, lazy_pattern
from logreel.errors import UsageError
from logreel.index.block_table import checked_ns, refused_time, whole_ns
from logreel.io.arrays import I64

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: A time given by a user. Timestamps and Timedeltas of pandas are datetimes and timedeltas, too.
Time = int | np.integer[Any] | str | datetime | timedelta | np.datetime64 | np.timedelta64
#: A duration given by a user; int is ns.
Length = int | np.integer[Any] | str | timedelta | np.timedelta64


class Clocked(Protocol):
    """An object to which times can be relative, such as a Log; see there for its members."""

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

    def holds_between(self, start: int | None, end: int | None) -> bool:
        """Return whether any message has start <= time < end, even outside of ``self.start`` and ``end``."""


#: Shortest mean period between messages, ns, of which a rate is told.
LEAST_PERIOD = 1_000
SECOND = 10**9
_UNITS = {
    "ns": 1, "us": 10**3, "ms": 10**6, "s": SECOND, "": SECOND, "m": 60 * SECOND, "min": 60 * SECOND,
    "h": 3600 * SECOND,
}  # fmt: skip
#: Seconds from which a number means seconds since 1970, and not after the start: no log lasts for three years.
_UNIX_SECONDS = 10**8
#: Prefix of times of the log's own clock.
_LOG_CLOCK = "log:"

_NUMBER = lazy_pattern(r"([+-]?)(\d{1,20}(?:\.\d{0,18})?|\.\d{1,18})\s*(ns|us|ms|s|min|m|h|)")
_CLOCK = lazy_pattern(r"([+-]?)(?:(\d{1,6}):)?(\d{1,6}):(\d{2})(\.\d{1,9})?")
#: A number without sign and unit.
_BARE = lazy_pattern(r"\d+(\.\d*)?|\.\d+")
_STAMP = lazy_pattern(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9})\d*)?\s*([Zz]|[+-]\d\d:\d\d)?"
)
_HINT = (
    "a time is 12.5 or +12.5s (from the start), -30s (from the end), 00:01:30, 2024-05-01T12:00:00Z, "
    "1714564800.5 (since 1970), or log:598.6 (the log's own clock)"
)
_ACCEPTED = (
    "a time is int ns of the log's clock, text such as '+12.5s', '-30s', '00:01:30' or '2024-05-01T12:00:00Z', "
    "an aware datetime, a numpy.datetime64 (UTC), or a timedelta after the start (negative: before the end)"
)
_WRITTEN = (
    "the time of a message is int ns, an aware datetime, a numpy.datetime64 (UTC), a timedelta after the first "
    "message, or text such as '2024-05-01T12:00:00Z', '+12.5s' or '123ns'"
)
_LENGTHS = "a length of time is int ns, text such as '2.5s', '250ms' or '00:01:30', or a timedelta"
_DAY = 86400
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: NumPy units in ns; months, years and the generic unit have no fixed length.
_NUMPY_UNITS = {"W": 7 * _DAY * SECOND, "D": _DAY * SECOND, "h": 3600 * SECOND, "m": 60 * SECOND, "s": SECOND,
                "ms": 10**6, "us": 10**3, "ns": 1}  # fmt: skip
_FINER_UNITS = {"ps": 10**3, "fs": 10**6, "as": 10**9}


def time_ns(value: Time, log: Clocked) -> int:
    """Return the time *value* in ns of the clock of *log*.

    int                   ns of the log's clock
    str                   see ``parse_time``
    datetime, datetime64  wall-clock time: aware, or UTC where numpy knows no zones
    timedelta             after the start of the log; negative: before its end

    Raises UsageError for all else, above all floats and datetimes without a zone, and where the log does not tell
    its start or how its clock relates to UTC.
    """
    if isinstance(value, str):
        return parse_time(value, log)
    shown = repr(value)
    if isinstance(value, np.datetime64):
        return checked_ns(_from_utc(_numpy_ns(value, _ACCEPTED), shown, log), shown)
    if isinstance(value, datetime) and _is_aware(value):
        return checked_ns(_from_utc(_datetime_ns(value), shown, log), shown)
    if isinstance(value, (timedelta, np.timedelta64)):
        ns = _delta_ns(value, _ACCEPTED)
        return checked_ns(_relative("-" if ns < 0 else "+", abs(ns), shown, log), shown)
    return whole_ns(value, _ACCEPTED)


@dataclass(frozen=True)
class WriterClock:
    """The clock of a log that is being written, of which no end is known.

    start  time of the first message that was written, ns; None: none was
    """

    name: str
    epoch: str
    start: int | None
    utc_offset: int | None
    end: int | None = None

    @classmethod
    def begun(cls, name: str, epoch: str, start: int | None) -> WriterClock:
        """Return the clock of a new log; times of its first message shortly after 1970 are those of another clock."""
        if epoch == "unix" and start is not None and start < _UNIX_SECONDS * SECOND:
            epoch = "boot"
        return cls(name, epoch, start, 0 if epoch == "unix" else None)

    def holds_between(self, start: int | None, end: int | None) -> bool:
        """Return True: any message may come."""
        return True


def written_ns(value: Time, clock: Callable[[], WriterClock]) -> int:
    """Return the time of a message that is written, in ns of the clock of the new log.

    Accepts what ``time_ns`` accepts, except numbers as text, which could be seconds since 1970 or after the start, and
    times that count from the end.

    clock  returns the clock; only called for times that are no integers

    Raises UsageError for all else, and for times after the first message before one is written.
    """
    if type(value) is int:
        return checked_ns(value, repr(value))
    if isinstance(value, str):
        if _BARE.fullmatch(value.strip()):
            raise refused_time(value, _WRITTEN)
        if value.strip()[:1] == "-":
            raise UsageError(f"{value!r} counts from the end of a log that is still written: {_WRITTEN}")
        return parse_time(value, clock())
    if isinstance(value, (timedelta, np.timedelta64)):
        ns = _delta_ns(value, _WRITTEN)
        return checked_ns(_relative("+", ns, repr(value), clock()), repr(value))
    if isinstance(value, (datetime, np.datetime64)):
        if value != value or (isinstance(value, np.datetime64) and np.isnat(value)):
            raise refused_time(value, _WRITTEN)
        return time_ns(value, clock())
    return whole_ns(value, _WRITTEN)


def written_array(values: NDArray[Any], clock: Callable[[], WriterClock]) -> I64:
    """Return int64[n]: times of messages that are written, given as integers (ns) or datetime64 (UTC).

    Raises UsageError for other types, NaT, and what 64 bits cannot hold.
    """
    values = np.asarray(values)
    if values.dtype == np.int64:
        return values
    if values.dtype.kind == "M" and len(values):
        if len(missing := values[np.isnat(values)]):
            raise refused_time(missing[0], _WRITTEN)
        # The same arithmetic for all: one element shows whether the clock knows UTC, the extremes whether it fits.
        shift = written_ns(np.datetime64(0, "ns"), clock)
        for edge in (values.min(), values.max()):
            written_ns(edge, clock)
        return values.astype("datetime64[ns]").astype(np.int64) + shift
    if values.dtype.kind in "iuM":
        for edge in (values.min(), values.max()) if len(values) else ():
            checked_ns(int(edge), repr(edge))
        return values.astype(np.int64)
    raise refused_time(values, _WRITTEN)


def _is_aware(value: datetime) -> bool:
    """Return True for a datetime with a zone, False for NaT of pandas; raises UsageError without a zone."""
    if value != value:
        return False
    if value.utcoffset() is None:
        raise UsageError(f"{value!r} has no zone: give it one, such as tzinfo=datetime.UTC")
    return True


def _datetime_ns(value: datetime) -> int:
    # A Timestamp of pandas has nanoseconds and different arithmetic, so only its fields are used.
    zone, ns = value.utcoffset() or timedelta(), getattr(value, "nanosecond", 0)
    there = datetime(
        value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond, UTC
    )
    return _timedelta_ns(there - _EPOCH) - _timedelta_ns(zone) + ns


def _timedelta_ns(value: timedelta) -> int:
    whole = (value.days * _DAY + value.seconds) * SECOND + value.microseconds * 1000
    return whole + int(getattr(value, "nanoseconds", 0))


def _delta_ns(value: timedelta | np.timedelta64, accepted: str) -> int:
    return _numpy_ns(value, accepted) if isinstance(value, np.timedelta64) else _timedelta_ns(value)


def _numpy_ns(value: np.datetime64 | np.timedelta64, accepted: str) -> int:
    """Return ns since 1970, or of a duration, without the overflow of NumPy conversions."""
    if np.isnat(value):
        raise refused_time(value, accepted)
    unit, step = np.datetime_data(value.dtype)
    if isinstance(value, np.datetime64) and unit in ("Y", "M"):
        return _numpy_ns(value.astype("datetime64[D]"), accepted)
    count = int(value.astype(np.int64)) * step
    if unit in _NUMPY_UNITS:
        return count * _NUMPY_UNITS[unit]
    if unit in _FINER_UNITS:
        return count // _FINER_UNITS[unit]
    raise refused_time(value, accepted)


def parse_time(text: str, log: Clocked) -> int:
    """Return the time *text* in ns of the clock of *log*.

    ``+12.5s``, ``00:01:30`` and ``12.5`` count from the start of the log, ``-30s`` from its end. A number without sign
    is seconds since 1970 if it is 10⁸ seconds or more. ``log:598.6`` and ``123ns`` are times of the log's clock; RFC
    3339 times are UTC or carry an offset. Raises UsageError for anything else, or where the log does not tell its start
    or how its clock relates to UTC.
    """
    text = text.strip()
    if text[: len(_LOG_CLOCK)].lower() == _LOG_CLOCK:
        by_clock = _signed_ns(text[len(_LOG_CLOCK) :].strip())
        if by_clock is None:
            raise UsageError(f"cannot read the time {text!r}: {_HINT}")
        return checked_ns(by_clock, text)
    if match := _STAMP.fullmatch(text):
        return checked_ns(_from_utc(_stamp_ns(match, text), text, log), text)
    if match := _CLOCK.fullmatch(text):
        sign, ns = match[1], _clock_ns(match, text)
        return checked_ns(_relative(sign or "+", ns, text, log), text)
    if match := _NUMBER.fullmatch(text):
        sign, number, unit = match.groups()
        ns = _exact(number, _UNITS[unit])
        if not sign and unit == "ns":
            return checked_ns(ns, text)
        if not sign and ns >= _UNIX_SECONDS * SECOND:
            return checked_ns(_from_utc(ns, text, log), text)
        return checked_ns(_relative(sign or "+", ns, text, log), text)
    raise UsageError(f"cannot read the time {text!r}: {_HINT}")


def _signed_ns(text: str) -> int | None:
    """Return a number with or without unit, or ``00:01:30``, as ns; None for other text."""
    if match := _NUMBER.fullmatch(text):
        sign, number, unit = match.groups()
        ns = _exact(number, _UNITS[unit])
    elif match := _CLOCK.fullmatch(text):
        sign, ns = match[1], _clock_ns(match, text)
    else:
        return None
    return -ns if sign == "-" else ns


def _clock_ns(match: re.Match[str], text: str) -> int:
    """Return the size of hours, minutes and seconds in ns."""
    _, hours, minutes, seconds, fraction = match.groups()
    if int(seconds) > 59 or (hours and int(minutes) > 59):
        raise UsageError(f"{text!r} has more than 59 minutes or seconds")
    whole = (int(hours or 0) * 60 + int(minutes)) * 60 + int(seconds)
    return whole * SECOND + _exact(fraction or "0", SECOND)


def _relative(sign: str, ns: int, text: str, log: Clocked) -> int:
    edge = log.start if sign == "+" else log.end
    if edge is None and isinstance(log, WriterClock):
        raise UsageError(f"{text!r} counts from the first message, and none has been written", path=log.name)
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


def duration_ns(value: Length) -> int:
    """Return a duration in ns, given as int ns, text (``60s``, ``-250ms``, ``00:01:30``), or a timedelta.

    Raises UsageError for other values.
    """
    if isinstance(value, (timedelta, np.timedelta64)):
        return checked_ns(_delta_ns(value, _LENGTHS), repr(value))
    return _parse_duration(value) if isinstance(value, str) else whole_ns(value, _LENGTHS)


def _parse_duration(text: str) -> int:
    ns = _signed_ns(text.strip())
    if ns is None:
        raise UsageError(f"cannot read the length of time {text!r}: write 60s, 250ms, 5min or 00:01:30")
    return checked_ns(ns, text)


#: Functions that are called with a log and the interval in ns that was taken for times given as text, datetime or
#: timedelta; the command line adds one that prints it.
listeners: list[Callable[[Clocked, int | None, int | None], None]] = []


def interval(log: Clocked, start: Time | None, end: Time | None) -> tuple[int | None, int | None]:
    """Return the half-open interval ``[start, end)`` in ns for two times that users give; None: no bound.

    Raises UsageError for a time that cannot be read, an end before the start, or an interval outside of the log. For
    a log without messages no interval is outside.
    """
    first, last = _bounds(log, start, end)
    if not _overlaps(log, first, last):
        raise _no_overlap_error(log, first, last)
    _tell(log, (start, end), (first, last))
    return first, last


def interval_so_far(log: Clocked, start: Time | None, end: Time | None) -> tuple[int | None, int | None]:
    """Return the same as ``interval`` for a log that grows: it may reach the interval later."""
    first, last = (None if t is None else time_ns(t, log) for t in (start, end))
    _tell(log, (start, end), (first, last))
    return first, last


def _tell(log: Clocked, asked: Sequence[Time | None], taken: tuple[int | None, int | None]) -> None:
    """Pass the interval to the listeners, unless it was given in ns, as functions of the library do to each other."""
    if listeners and not all(time is None or isinstance(time, (int, np.integer)) for time in asked):
        for listener in listeners:
            listener(log, *taken)


def interval_text(log: Clocked, first: int | None, last: int | None) -> str:
    """Return an interval in ns as text: after the start of the log, and in UTC, or else by the clock of the log."""
    zero, shift = log.start, utc_shift(log)
    spans = [] if zero is None else [_span_text(first, last, lambda ns: _after_start(ns - zero))]
    if shift is None:
        spans.append(_span_text(first, last, clock_text))
    else:
        spans.append(_span_text(first, last, lambda ns: _short_utc(ns + shift)))
    return ", ".join(spans)


def _span_text(first: int | None, last: int | None, text: Callable[[int], str]) -> str:
    begin = "the start" if first is None else text(first)
    return f"{begin} to {'the end' if last is None else text(last)}"


def _after_start(ns: int) -> str:
    return f"+{_short_seconds(ns)} s" if ns >= 0 else f"{_short_seconds(-ns)} s before the start"


def _short_seconds(ns: int) -> str:
    return seconds_text(ns, 9).rstrip("0").rstrip(".")


def _short_utc(ns: int) -> str:
    text = utc_text(ns)
    return text if "." not in text else text[:-1].rstrip("0").rstrip(".") + "Z"


def clock_text(ns: int) -> str:
    """Return a time of the clock of a log as ``parse_time`` reads it: ``log:598.6``."""
    return _LOG_CLOCK + _short_seconds(ns)


def stored_times(start: Time | None, end: Time | None) -> tuple[int | str | None, int | str | None]:
    """Return two times that users give as ints and text, e.g. for JSON, that mean the same for any log.

    Raises UsageError for a time that cannot be read, and for an end that lies before the start whatever the log is.
    """
    clocks = [_Clock(*values) for values in itertools.product((-_FAR, 0, _FAR), repeat=3)]
    if start is not None and end is not None and all(_is_reversed(start, end, clock) for clock in clocks):
        raise UsageError(f"the end {end!r} lies before the start {start!r}")
    return _stored(start), _stored(end)


#: Far from any time that users give, so that times of different kinds have both orders.
_FAR = 4 * 10**18


@dataclass(frozen=True)
class _Clock:
    """The clock of a log that does not exist."""

    start: int | None
    end: int | None
    utc_offset: int | None
    name = ""
    epoch = "boot"

    def holds_between(self, start: int | None, end: int | None) -> bool:
        return True


def _is_reversed(start: Time, end: Time, clock: _Clock) -> bool:
    return time_ns(end, clock) < time_ns(start, clock)


def _stored(value: Time | None) -> int | str | None:
    if value is None:
        return None
    ns = time_ns(value, _Clock(0, 0, 0))
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, (timedelta, np.timedelta64)):
        return f"{'-' if ns < 0 else '+'}{abs(ns)}ns"
    return utc_text(ns) if isinstance(value, (datetime, np.datetime64)) else ns


def intervals(
    logs: Sequence[Clocked], start: Time | None, end: Time | None
) -> list[tuple[int | None, int | None]]:
    """Return ``interval`` for each of several logs; raises UsageError only if it is outside of all of them."""
    spans = [_bounds(log, start, end) for log in logs]
    touched = [(log, span) for log, span in zip(logs, spans, strict=True) if _overlaps(log, *span)]
    if logs and not touched:
        raise _no_overlap_error(logs[0], *spans[0])
    for log, span in touched:
        _tell(log, (start, end), span)
    return spans


def _bounds(log: Clocked, start: Time | None, end: Time | None) -> tuple[int | None, int | None]:
    first, last = (None if t is None else time_ns(t, log) for t in (start, end))
    if first is not None and last is not None and last < first:
        raise UsageError(f"the end {end!r} lies before the start {start!r}")
    return first, last


def _overlaps(log: Clocked, first: int | None, last: int | None) -> bool:
    """Return whether the interval overlaps the log, or contains a message outside of its bounds."""
    if (first is None and last is None) or log.start is None or log.end is None:
        return True
    # An empty interval overlaps the log if it is inside of it.
    before = last is not None and last <= log.start and not first == last == log.start
    inside = not before and (first is None or first <= log.end)
    return inside or log.holds_between(first, last)


def _no_overlap_error(log: Clocked, first: int | None, last: int | None) -> UsageError:
    begin, finish = log.start or 0, log.end or 0

    def shown(ns: int) -> str:
        return utc_text(ns, 6) if log.epoch == "unix" else clock_text(ns)

    def asked(ns: int) -> str:
        return f"{shown(ns)} ({_after_start(ns - begin)})"

    between = "the start" if first is None else asked(first)
    until = "the end" if last is None else asked(last)
    covers = f"{shown(begin)} to {shown(finish)} ({_short_seconds(finish - begin)} s)"
    text = f"nothing between {between} and {until}; the log covers {covers}"
    name = "end" if first is None else "start"
    for some, ns in (("+5s", 5 * SECOND), ("+100ms", SECOND // 10)):
        if finish - begin > ns:
            return UsageError(text, path=log.name, hint=f'after the start: {name}="{some}"')
    return UsageError(text, path=log.name)


def duration_text(ns: int | None) -> str:
    """Return a duration as text for people: ``350 ms``, ``6.5 s``, ``2 min 05 s``, ``3 h 07 min``."""
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


def _exact(number: str, unit: int) -> int:
    """Return a decimal *number* of units of *unit* ns as ns, without the errors of floats."""
    # Most logs are opened without a time as text.
    from decimal import Decimal

    return int(Decimal(number) * unit)


def utc_text(ns: int, digits: int = 9) -> str:
    """Return ns since 1970 as RFC 3339 in UTC, with *digits* decimals of a second (cut, not rounded)."""
    seconds, rest = divmod(ns, SECOND)
    try:
        moment = datetime(1970, 1, 1) + timedelta(seconds=seconds)
    except OverflowError:
        return f"{ns} ns"
    fraction = f".{rest:09d}"[: digits + 1] if digits else ""
    return f"{moment.isoformat(timespec='seconds')}{fraction}Z"


def seconds_text(ns: int, digits: int = 6) -> str:
    """Return a time of the clock of a log in seconds, with *digits* decimals (cut, not rounded)."""
    sign, size = ("-", -ns) if ns < 0 else ("", ns)
    return f"{sign}{size // SECOND}.{size % SECOND:09d}"[: len(sign) + len(str(size // SECOND)) + 1 + digits]


def utc_shift(log: Clocked) -> int | None:
    """Return the ns from the clock of *log* to UTC since 1970; None if unknown."""
    return log.utc_offset or 0 if log.epoch == "unix" else log.utc_offset


def shift_of(log: Clocked, utc: bool) -> int | None:
    """Return the ns to add to show UTC, None unless *utc*; raises UsageError if the offset is unknown."""
    if not utc:
        return None
    shift = utc_shift(log)
    if shift is None:
        raise UsageError(
            "the log does not tell how its clock relates to UTC",
            path=log.name,
            hint="leave out utc=True",
        )
    return shift


def time_text(ns: int, shift: int | None = None) -> str:
    """Return a time as text: seconds of the clock of the log, or UTC if *shift* (see ``shift_of``) is given."""
    return seconds_text(ns) if shift is None else utc_text(ns + shift, 6)


def mean_rate(steps: int, span: int) -> float | None:
    """Return how many of *steps* there are per second of *span* ns; None if no rate can be told.

    Messages that follow each other within less than a microsecond were stamped together: their number says nothing
    about a rate.
    """
    return None if span <= 0 or span < steps * LEAST_PERIOD else steps * 1e9 / span
