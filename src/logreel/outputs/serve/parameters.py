"""Query parameters of requests: checked, and as channels and intervals of logs."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from starlette.requests import Request

from logreel.errors import TopicError, UsageError
from logreel.log.channel_facts import TOPIC
from logreel.log.log import Log
from logreel.log.times import interval, shift_of
from logreel.log.topic_match import (
    Condition,
    Described,
    channels_with,
    check_pattern,
    fitting,
    match_topics,
    no_such_channel,
)
from logreel.outputs.slice_stream import SliceRequest

#: Parameters that choose channels; each may be repeated.
CHANNELS = ("topic", "exclude", "channel", "type", "service")
#: Parameters of an interval since 1970, and of one by the clock of a log.
UNIX, CLOCK = ("from_nsec", "from_sec", "to_nsec", "to_sec"), ("start", "end")
#: Default and maximum number of items in a page.
PAGE, MOST = 100, 1000
_SECONDS = re.compile(r"-?\d{1,10}(\.\d{1,9})?", re.ASCII)
_WHOLE = re.compile(r"-?\d{1,19}", re.ASCII)
_INT64 = range(-(1 << 63), 1 << 63)


def parameters(
    request: Request, single: Collection[str] = (), several: Collection[str] = ()
) -> dict[str, str]:
    """Return the values of the parameters *single*; raises UsageError for unknown, repeated or empty parameters."""
    found: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name == "token":
            continue
        if name not in single and name not in several:
            known = ", ".join((*single, *several)) or "none"
            raise UsageError(f"no parameter {name!r}; there are: {known}")
        if name in found and name in single:
            raise UsageError(f"the parameter {name!r} is given twice")
        if not value:
            raise UsageError(f"the parameter {name!r} is empty")
        found[name] = value
    return found


def page_size(given: Mapping[str, str]) -> int:
    """Return the parameter ``limit``; raises UsageError."""
    limit = given.get("limit", str(PAGE))
    if not limit.isdecimal() or not limit.isascii() or len(limit) > 9 or not 1 <= int(limit) <= MOST:
        raise UsageError(f"the limit {limit!r} is no number from 1 to {MOST}")
    return int(limit)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The channels and the interval that a request is about.

    groups  conditions or patterns by parameter; a channel fits if it fits one of each group
    exclude  as for ``Log.match``
    first, last  half-open interval in ns since 1970; None: no bound
    start, end  times by the clock of a log, as text; None: no bound
    """

    groups: Mapping[str, tuple[str, ...]]
    exclude: tuple[str, ...]
    first: int | None
    last: int | None
    start: str | None = None
    end: str | None = None

    @classmethod
    def of(cls, request: Request, given: Mapping[str, str]) -> Wanted:
        """Return what the parameters of *request* want; *given*: those that are not repeated.

        Raises UsageError for times and regular expressions that cannot be read, and parameters that contradict each
        other.
        """
        query = request.query_params
        groups = {name: tuple(query.getlist(name)) for name in CHANNELS if name != "exclude"}
        exclude = tuple(query.getlist("exclude"))
        for text in (*exclude, *(one for group in groups.values() for one in group)):
            check_pattern(text)
        first, last = _unix_time(given, "from", "start"), _unix_time(given, "to", "end")
        if first is not None and last is not None and last < first:
            raise UsageError("the interval ends before it begins")
        return cls(groups, exclude, first, last, given.get("start"), given.get("end"))

    @property
    def has_interval(self) -> bool:
        """Whether the interval has a bound since 1970."""
        return self.first is not None or self.last is not None

    @property
    def chooses(self) -> bool:
        """Whether a parameter chooses channels."""
        return any(self.groups.values())

    def topics(self, channels: Mapping[str, Described], *, strict: bool = True) -> list[str]:
        """Return the topics of the chosen *channels*; without any choice, those that are not reserved.

        Raises TopicError, if *strict*, for what selects none of them.
        """
        chosen = None if self.chooses else set(match_topics(channels, None))
        for name, values in self.groups.items():
            if values:
                fits = set().union(*(_fitting(channels, name, value, strict) for value in values))
                chosen = fits if chosen is None else chosen & fits
        chosen = chosen or set()
        for value in self.exclude:
            chosen -= _fitting(channels, "topic", value, strict)
        if strict and self.chooses and not chosen:
            every = [f"{name}={value}" for name, values in self.groups.items() for value in values]
            raise TopicError("channel with all of", ", ".join(every), (), none="each alone has some")
        return [topic for topic in channels if topic in chosen]

    def span(self, log: Log) -> tuple[int | None, int | None]:
        """Return the interval in ns by the clock of *log*.

        Raises UsageError if it is outside of the log, and for times since 1970 if the log's offset to UTC is unknown.
        """
        shift = shift_of(log, self.has_interval) or 0
        first, last = self.by_clock(shift)
        return interval(log, self.start if first is None else first, self.end if last is None else last)

    def by_clock(self, shift: int) -> tuple[int | None, int | None]:
        """Return the interval since 1970 by a clock that is *shift* ns behind."""
        return tuple(None if t is None else t - shift for t in (self.first, self.last))  # type: ignore[return-value]

    def slice_of(self, log: Log, kind: str | None) -> SliceRequest:
        """Return the request for a slice of *log* in the format *kind*; raises as ``topics`` and ``span``."""
        start, end = self.span(log) if self.has_interval else (self.start, self.end)
        plain = {**self.groups, "topic": ()}
        if any(plain.values()):
            return SliceRequest(tuple(self.topics(log.channels)), (), start, end, kind)
        return SliceRequest(self.groups["topic"] or None, self.exclude, start, end, kind)


def _fitting(channels: Mapping[str, Described], name: str, value: str, strict: bool) -> set[str]:
    """Return the topics of the channels for which one parameter has *value*; raises TopicError for none if *strict*."""
    if name == "topic":
        return set(match_topics(channels, value)) if strict else fitting(channels, value)
    asked = [Condition(name, value)]
    found = channels_with(channels, asked)
    if name == "channel":
        # Channels of formats that have no such key are named by their topics.
        found = {value} & channels.keys() or found | channels_with(channels, [Condition(TOPIC, value)])
        asked = asked if any(name in ch.facts for ch in channels.values()) else [Condition(TOPIC, value)]
    if strict and not found:
        raise no_such_channel(channels, asked)
    return found


def _unix_time(given: Mapping[str, str], name: str, clock: str) -> int | None:
    """Return the time in ns since 1970 of ``NAME_nsec`` or ``NAME_sec``; None if there is neither."""
    names = [key for key in (f"{name}_nsec", f"{name}_sec", clock) if key in given]
    if len(names) > 1:
        raise UsageError(f"{' and '.join(names)} mean the same bound: give one of them")
    if not names or names[0] == clock:
        return None
    text = given[names[0]]
    if names[0].endswith("_nsec"):
        ns = int(text) if _WHOLE.fullmatch(text) else None
    else:
        ns = int(Decimal(text) * 10**9) if _SECONDS.fullmatch(text) else None
    if ns is None or ns not in _INT64:
        unit = "integer nanoseconds" if names[0].endswith("_nsec") else "seconds"
        raise UsageError(f"{names[0]} {text!r} is no number of {unit} since 1970")
    return ns


def one_of(given: Iterable[str], known: Collection[str], name: str) -> set[str]:
    """Return *given* as a set; raises UsageError for a value that is not *known*."""
    found = set(given)
    for value in found:
        if value not in known:
            raise UsageError(f"no {name} {value!r}; there are: {', '.join(known)}")
    return found
