"""Questions about one log or all: kinds of data and their times, logs with data of a kind, and lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any

from logreel.errors import LogError, TopicError, UsageError
from logreel.log.log import Log
from logreel.log.scan import ALIASES, ENCODING, TOPIC, TYPE
from logreel.log.times import interval, shift_of
from logreel.log.topic_match import (
    Condition,
    Described,
    channels_with,
    fitting,
    match_topics,
    no_such_channel,
)
from logreel.ops.inspect.text import lines_between
from logreel.outputs.http.routes import Parameters
from logreel.outputs.serve.catalogue import ChannelSpan, Contents, ContentsCache, OpenLogs, ServedLog
from logreel.outputs.slice_stream import SliceRequest

#: Most logs, and seconds, that one request looks at; the answer then has the place to go on from.
EXAMINED, SECONDS = 1000, 10.0
#: Most logs that are joined for one slice.
JOINED = 100
#: Parameters that choose channels; a channel fits if it fits one value of each.
GROUPS = ("topic", "channel", "type", "service")
#: Kinds of lines of text.
KINDS = ("text", "comment", "event", "check")
#: Keys of facts that have a place of their own in a kind, or are other names of keys.
HIDDEN = {TOPIC, TYPE, ENCODING, *ALIASES}
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TextFilter:
    """Lines of text that are wanted.

    level    syslog number of the least severe level; None: all. Lines without a level always fit
    sources  names or patterns, kinds of KINDS; empty: all
    """

    level: int | None = None
    sources: tuple[str, ...] = ()
    kinds: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Question:
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
    def of(cls, parameters: Parameters) -> Question:
        """Return what the parameters of a request want; raises UsageError for those that contradict each other."""
        groups = {name: tuple(parameters.all(name)) for name in GROUPS if name in parameters}
        first, last = _unix_time(parameters, "from", "start"), _unix_time(parameters, "to", "end")
        if first is not None and last is not None and last < first:
            raise UsageError("the interval ends before it begins")
        exclude = tuple(parameters.all("exclude"))
        return cls(groups, exclude, first, last, parameters.get("start"), parameters.get("end"))

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

    def slice_of(self, log: Log, format: str | None) -> SliceRequest:
        """Return the request for a slice of *log* in the format *format*; raises as ``topics`` and ``span``."""
        start, end = self.span(log) if self.has_interval else (self.start, self.end)
        plain = {**self.groups, "topic": ()}
        if any(plain.values()):
            return SliceRequest(tuple(self.topics(log.channels)), (), start, end, format)
        return SliceRequest(self.groups.get("topic"), self.exclude, start, end, format)


def _fitting(channels: Mapping[str, Described], name: str, value: str, strict: bool) -> set[str]:
    """Return the topics of the channels for which one parameter has *value*; raises TopicError for none if *strict*."""
    if name == "topic":
        return set(match_topics(channels, value)) if strict else fitting(channels, value)
    asked = [Condition(name, value)]
    topics = channels_with(channels, asked)
    if name == "channel":
        # Channels of formats that have no such key are named by their topics.
        topics = {value} & channels.keys() or topics | channels_with(channels, [Condition(TOPIC, value)])
        asked = asked if any(name in ch.facts for ch in channels.values()) else [Condition(TOPIC, value)]
    if strict and not topics:
        raise no_such_channel(channels, asked)
    return topics


def _unix_time(parameters: Parameters, name: str, clock: str) -> int | None:
    """Return the time in ns since 1970 of ``NAME_nsec`` or ``NAME_sec``; None if there is neither."""
    names = [key for key in (f"{name}_nsec", f"{name}_sec", clock) if key in parameters]
    if len(names) > 1:
        raise UsageError(f"{' and '.join(names)} mean the same bound: give one of them")
    if not names or names[0] == clock:
        return None
    ns: int = parameters.get(names[0])
    return ns


@dataclass(frozen=True, slots=True)
class _Found:
    """Messages of a channel in the interval that was asked for."""

    topic: str
    stretch: ChannelSpan


class Queries:
    """Answers questions with plain JSON data; the logs are those of a list of entries, in its order."""

    def __init__(self, logs: OpenLogs) -> None:
        self._logs, self._contents = logs, ContentsCache(logs)

    # ---------------------------------------------------------------------------------------------- one log

    def index_of(self, entry: ServedLog, wanted: Question) -> Json:
        """Return the kinds of data of one log.

        Raises LogError if it cannot be opened, TopicError for channels that it does not have, UsageError for an
        interval outside of it.
        """
        with self._logs.cached(entry).log() as log:
            span = wanted.span(log)
            topics = wanted.topics(log.channels)
        contents = self._contents.of(entry)
        if contents.error:
            raise LogError(contents.error)
        channels = self._found(contents, topics, span)
        return {
            "kinds": _kinds([(contents, channels)]),
            "logs": [_log_json(contents, channels)],
            "skipped": [],
            "next": None,
        }

    def text_of(
        self, entry: ServedLog, wanted: Question, chosen: TextFilter, limit: int, after: str | None
    ) -> Json:
        """Return lines of one log; raises as ``index_of``."""
        begin = _place(after, [entry.id])[1]
        with self._logs.cached(entry).log() as log:
            lines = list(_lines(entry, log, wanted.span(log), chosen))
        page = lines[begin : begin + limit]
        more = f"{entry.id}.{begin + limit}" if begin + limit < len(lines) else None
        return {"lines": page, "skipped": [], "next": more}

    # --------------------------------------------------------------------------------------------- all logs

    def index(self, entries: Sequence[ServedLog], wanted: Question, limit: int, after: str | None) -> Json:
        """Return the kinds of data of the logs behind *after*, at most *limit* of those that have any."""
        matching, skipped, more = self._matching(entries, wanted, limit, after)
        logs = [_log_json(contents, channels) for contents, channels in matching]
        return {"kinds": _kinds(matching), "logs": logs, "skipped": skipped, "next": more}

    def query(self, entries: Sequence[ServedLog], wanted: Question, limit: int, after: str | None) -> Json:
        """Return the logs behind *after* that have wanted messages, at most *limit*, each with its channels."""
        matching, skipped, more = self._matching(entries, wanted, limit, after)
        logs = [
            {
                **_log_json(contents, channels),
                "channels": [_channel_json(contents, channel) for channel in channels],
            }
            for contents, channels in matching
        ]
        return {"logs": logs, "skipped": skipped, "next": more}

    def logs_to_join(
        self, entries: Sequence[ServedLog], wanted: Question
    ) -> tuple[list[ServedLog], list[Json]]:
        """Return the logs with wanted messages, for one slice of all of them, and those that cannot be asked.

        Raises UsageError if there are too many, LogError if there are none or if not all logs could be looked at.
        """
        matching, skipped, more = self._matching(entries, wanted, JOINED, None)
        if more is not None and len(matching) == JOINED:
            raise UsageError(
                f"more than {JOINED} logs have such messages: choose a shorter interval or fewer channels"
            )
        if more is not None:
            raise LogError("there are too many logs to look at for one slice: ask /query, page by page")
        if not matching:
            raise LogError(
                "no log has such messages" + (f", and {len(skipped)} cannot be asked" if skipped else "")
            )
        return [contents.entry for contents, _ in matching], skipped

    def text(
        self,
        entries: Sequence[ServedLog],
        wanted: Question,
        chosen: TextFilter,
        limit: int,
        after: str | None,
    ) -> Json:
        """Return lines of the logs behind *after*, log by log, at most *limit*."""
        begin, row = _place(after, [entry.id for entry in entries])
        page: list[Json] = []
        skipped: list[Json] = []
        for n, entry in _examined(entries, begin):
            if n is None:
                return {"lines": page, "skipped": skipped, "next": f"{entry.id}.0"}
            contents = self._contents.of(entry)
            if why := _no_answer(contents, wanted):
                skipped.append(_skipped(entry, why))
                continue
            first, last = wanted.by_clock(contents.shift or 0)
            lines: list[Json] = []
            with _reported(entry, skipped), self._logs.cached(entry).log() as log:
                lines = list(_lines(entry, log, (first, last), chosen))
            start = row if n == begin else 0
            room = limit - len(page)
            page += lines[start : start + room]
            if start + room < len(lines):
                return {"lines": page, "skipped": skipped, "next": f"{entry.id}.{start + room}"}
        return {"lines": page, "skipped": skipped, "next": None}

    def _matching(
        self, entries: Sequence[ServedLog], wanted: Question, limit: int, after: str | None
    ) -> tuple[list[tuple[Contents, list[_Found]]], list[Json], str | None]:
        """Return the logs with wanted messages, those that cannot be asked, and the id to go on from."""
        ids = [entry.id for entry in entries]
        begin = 0 if after is None else _position(after, ids) + 1
        matching: list[tuple[Contents, list[_Found]]] = []
        skipped: list[Json] = []
        for n, entry in _examined(entries, begin):
            if n is None or len(matching) == limit:
                return matching, skipped, ids[ids.index(entry.id) - 1]
            contents = self._contents.of(entry)
            if why := _no_answer(contents, wanted):
                skipped.append(_skipped(entry, why))
                continue
            with _reported(entry, skipped):
                topics = wanted.topics(contents.channels, strict=False)
                channels = self._found(contents, topics, wanted.by_clock(contents.shift or 0))
                if channels:
                    matching.append((contents, channels))
        return matching, skipped, None

    def _found(
        self, contents: Contents, topics: Iterable[str], span: tuple[int | None, int | None]
    ) -> list[_Found]:
        """Return the channels with messages in the interval; without an interval, empty ones too."""
        each = (_Found(topic, self._contents.between(contents, topic, *span)) for topic in topics)
        return [channel for channel in each if channel.stretch.messages or span == (None, None)]


def _examined(entries: Sequence[ServedLog], begin: int) -> Iterator[tuple[int | None, ServedLog]]:
    """Yield the entries from *begin* with their positions; at a limit of the request, None and the next entry."""
    end = monotonic() + SECONDS
    for n in range(begin, len(entries)):
        if n > begin and (n - begin >= EXAMINED or monotonic() >= end):
            yield None, entries[n]
            return
        yield n, entries[n]


def _no_answer(contents: Contents, wanted: Question) -> str:
    """Return why a log cannot be asked; empty if it can."""
    if contents.error:
        return contents.error
    if wanted.has_interval and contents.shift is None:
        return "its clock has no known offset to UTC"
    return ""


def _skipped(entry: ServedLog, why: str) -> Json:
    return {"id": entry.id, "name": entry.name, "why": why}


@contextmanager
def _reported(entry: ServedLog, skipped: list[Json]) -> Iterator[None]:
    """Add a log that fails in the block to those that were skipped."""
    try:
        yield
    except LogError as error:
        skipped.append(_skipped(entry, error.text))
    except OSError as error:
        skipped.append(_skipped(entry, error.strerror or "cannot be read"))


def _position(id: str, ids: list[str]) -> int:
    if id not in ids:
        raise UsageError(f"after {id!r}: there is no such log any more, begin again")
    return ids.index(id)


def _place(after: str | None, ids: list[str]) -> tuple[int, int]:
    """Return position of the log and number of the line for the parameter ``after`` of lines."""
    if after is None:
        return 0, 0
    log, _, row = after.partition(".")
    if not (row.isascii() and row.isdecimal() and len(row) < 19):
        raise UsageError(f"after {after!r} is no place in the lines: take it from next")
    return _position(log, ids), int(row)


def _lines(
    entry: ServedLog, log: Log, span: tuple[int | None, int | None], chosen: TextFilter
) -> Iterator[Json]:
    for line in lines_between(log, chosen.level, *span):
        if chosen.kinds and line.kind not in chosen.kinds:
            continue
        if chosen.sources and not any(fitting([line.source], source) for source in chosen.sources):
            continue
        yield {
            "log": entry.id, "time_ns": line.time, "kind": line.kind, "level": line.level, "source": line.source,
            "text": line.text,
        }  # fmt: skip


def _span_json(stretch: ChannelSpan, shift: int | None) -> Json:
    """Return the times of messages: as a half-open interval since 1970, and by the clock of the log."""
    if stretch.first is None or stretch.last is None:
        return dict.fromkeys(("from_nsec", "to_nsec", "start_ns", "end_ns"))
    unix = None if shift is None else (stretch.first + shift, stretch.last + shift + 1)
    since, until = unix or (None, None)
    return {"from_nsec": since, "to_nsec": until, "start_ns": stretch.first, "end_ns": stretch.last}


def _joined(stretches: Iterable[ChannelSpan]) -> ChannelSpan:
    spans = [span for span in stretches if span.first is not None and span.last is not None]
    if not spans:
        return ChannelSpan(0, None, None)
    first, last = min(span.first or 0 for span in spans), max(span.last or 0 for span in spans)
    return ChannelSpan(sum(span.messages for span in spans), first, last)


def _log_json(contents: Contents, channels: list[_Found]) -> Json:
    entry, joined = contents.entry, _joined(channel.stretch for channel in channels)
    return {
        "id": entry.id,
        "name": entry.name,
        "format": entry.format,
        "size": entry.stamp.size,
        "epoch": contents.epoch,
        "utc_offset_ns": contents.shift,
        "messages": joined.messages,
        **_span_json(joined, contents.shift),
    }


def _channel_json(contents: Contents, channel: _Found) -> Json:
    ch = contents.channels[channel.topic]
    return {
        "topic": ch.topic,
        "type": ch.type,
        "encoding": ch.encoding,
        "messages": channel.stretch.messages,
        **_span_json(channel.stretch, contents.shift),
    }


def _kinds(logs: list[tuple[Contents, list[_Found]]]) -> list[Json]:
    """Return each topic with one type and encoding: its messages and times in all *logs*, and what they say of it."""
    every: dict[tuple[str, str, str], list[tuple[Contents, _Found]]] = {}
    for contents, channels in logs:
        for channel in channels:
            ch = contents.channels[channel.topic]
            every.setdefault((ch.topic, ch.type, ch.encoding), []).append((contents, channel))
    return [_kind_json(*key, parts) for key, parts in every.items()]


def _kind_json(topic: str, type: str, encoding: str, parts: list[tuple[Contents, _Found]]) -> Json:
    facts: dict[str, dict[str, None]] = {}
    since, until = [], []
    for contents, channel in parts:
        for key, values in contents.channels[topic].facts.items():
            if key not in HIDDEN and values:
                facts.setdefault(key, {}).update(dict.fromkeys(values))
        span = _span_json(channel.stretch, contents.shift)
        if span["from_nsec"] is not None:
            since.append(span["from_nsec"])
            until.append(span["to_nsec"])
    return {
        "topic": topic,
        "type": type,
        "encoding": encoding,
        "messages": sum(channel.stretch.messages for _, channel in parts),
        "from_nsec": min(since, default=None),
        "to_nsec": max(until, default=None),
        "facts": {key: list(values) for key, values in facts.items()},
        "logs": [contents.entry.id for contents, _ in parts],
    }
