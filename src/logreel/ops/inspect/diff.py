"""Differences between two logs."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from difflib import unified_diff
from typing import TYPE_CHECKING, Any

from logreel.errors import UsageError
from logreel.index.ranges import Rows
from logreel.log.brief import Brief
from logreel.log.log import Channel, Log
from logreel.log.scan import Attachment, Parameter
from logreel.log.times import Time, intervals
from logreel.log.topic_match import listed, match_in_each
from logreel.ops.inspect.compare import Compared, compare
from logreel.ops.inspect.stats import FieldStats, field_stats
from logreel.ops.inspect.text import lines_between
from logreel.ops.json_values import to_json_values
from logreel.registry.open_logs import open_many, read_itself

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.joined_log import Openable

#: Lines of context in diffs of definitions.
CONTEXT = 3
#: What can be compared.
LOG, METADATA, PARAMS, ATTACHMENTS, TOPICS, MESSAGES, TEXT = SECTIONS = (
    "log", "metadata", "params", "attachments", "topics", "messages", "text",
)  # fmt: skip
#: What is compared unless something is chosen.
USUAL = (LOG, METADATA, PARAMS, ATTACHMENTS, TOPICS)


@dataclass(frozen=True, slots=True)
class Change:
    """A value that differs, as JSON data; None if a log does not have it."""

    name: str
    a: Any
    b: Any


@dataclass(frozen=True, slots=True, repr=False)
class ChannelDiff(Brief):
    """Differences of one topic.

    only      ``a`` or ``b`` if only one log has the topic, else None
    messages  number of messages in each log
    changes   changes of type, encoding, counts, times (ns), rate and metadata
    schema    unified diff of the definitions, empty if they are equal
    fields    changes of statistics of numeric fields, by path; empty if not requested
    compared  comparison of the messages, None if not requested
    """

    topic: str
    only: str | None
    messages: tuple[int, int]
    changes: tuple[Change, ...] = ()
    schema: str = ""
    fields: tuple[Change, ...] = ()
    compared: Compared | None = None

    @property
    def same(self) -> bool:
        """True where nothing differs."""
        changes = self.only or self.changes or self.schema or self.fields
        return not changes and (self.compared is None or self.compared.same)


@dataclass(frozen=True, slots=True)
class LineDiff:
    """A line of text that only one log has.

    only     ``a`` or ``b``
    time_ns  its time in that log
    level    syslog level, or None
    source   name of the sender, or empty
    """

    only: str
    time_ns: int
    level: int | None
    source: str
    text: str


@dataclass(frozen=True, slots=True)
class Span:
    """Interval of a log, start <= time < end (ns); None: unbounded."""

    start: int | None
    end: int | None

    @property
    def is_whole(self) -> bool:
        """Whether both ends are unbounded."""
        return self.start is None and self.end is None

    def rows(self, ch: Channel) -> Rows:
        """Return the rows of a channel in the interval."""
        return ch.log.index.rows_between(ch.number, self.start, self.end)


class _Side:
    """A channel of one of the logs within *span*; *ch* is None if the log does not have it."""

    def __init__(self, ch: Channel | None, span: Span) -> None:
        self.ch, self._span = ch, span

    def when(self) -> tuple[int, int | None, int | None]:
        """Return the number of messages, and the times of the first and last one in file order."""
        if self.ch is None:
            return 0, None, None
        if self._span.is_whole:
            # The first and last time are known without reading all times.
            return len(self.ch), self.ch.start, self.ch.end
        times = self.ch.times[self._span.rows(self.ch)]
        return (len(times), int(times[0]), int(times[-1])) if len(times) else (0, None, None)

    def about(self) -> dict[str, Any]:
        """Return type, encoding, counts, times, rate and metadata by name."""
        if self.ch is None:
            return {}
        metadata = {f"metadata.{name}": to_json_values(value) for name, value in self.ch.metadata.items()}
        count, first, last = self.when()
        rate = None
        if first is not None and last is not None and last > first:
            rate = (count - 1) * 1e9 / (last - first)
        return {
            "type": self.ch.schema.name,
            "encoding": self.ch.schema.encoding,
            "messages": count,
            "start_ns": first,
            "end_ns": last,
            "rate": rate,
            **metadata,
        }

    def fields(self) -> dict[str, Any]:
        """Return statistics of numeric fields by path."""
        if self.ch is None:
            return {}
        found = field_stats(self.ch, start=self._span.start, end=self._span.end)
        return {one.path: _numbers(one) for one in found or ()}


@dataclass(frozen=True, slots=True, repr=False)
class Difference(Brief):
    """Differences between two logs.

    a, b         paths of the logs
    formats      formats of the logs; different formats alone are no difference
    only         what was compared: some of SECTIONS; the others are empty
    log          changes of the clock, start and end (ns), and the number of messages
    metadata, parameters, attachments  changes by name; of parameters also e.g. ``NAME.changes``
    channels     all channels compared, those of *a* first
    text         lines that only one log has, by time; those of *a* first
    """

    a: str
    b: str
    formats: tuple[str, str]
    only: tuple[str, ...]
    log: tuple[Change, ...]
    metadata: tuple[Change, ...]
    parameters: tuple[Change, ...]
    attachments: tuple[Change, ...]
    channels: tuple[ChannelDiff, ...]
    text: tuple[LineDiff, ...]

    @property
    def same(self) -> bool:
        """True where nothing differs."""
        changes = self.log or self.metadata or self.parameters or self.attachments or self.text
        return not changes and all(channel.same for channel in self.channels)

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON data of ``diff --json``: only channels that differ or whose messages were compared."""
        found: dict[str, Any] = to_json_values(asdict(self))
        pairs = zip(found["channels"], self.channels, strict=True)
        found["channels"] = [one for one, ch in pairs if not ch.same or ch.compared is not None]
        return {"same": self.same, **found}


def diff(
    a: Openable | Log,
    b: Openable | Log,
    *,
    topics: str | Iterable[str] | None = None,
    exclude: str | Iterable[str] = (),
    start: Time | None = None,
    end: Time | None = None,
    fields: bool = False,
    messages: bool = False,
    only: str | Iterable[str] | None = None,
    definitions: Definitions = (),
) -> Difference:
    """Compare two logs: open Logs, or anything that ``logreel.open`` takes.

    topics, exclude  names or shell patterns; None: all channels
    start, end  ns, or texts, for each log separately; half-open interval of the messages and texts compared; metadata,
              parameters and attachments are those of the whole logs
    fields    also compare statistics of all numeric fields, which decodes all messages
    messages  also compare times and payloads message by message
    only      compare only these: ``log`` (clock, start, end, number of messages), ``metadata``, ``params``,
              ``attachments``, ``topics`` (definitions, counts, rates), ``messages`` (message by message),
              ``text`` (lines for people); None: all but messages and text
    definitions  as for ``logreel.open``

    Raises what ``logreel.open`` raises, TopicError for a name or pattern that matches no channel of either log, and
    UsageError for a time that cannot be read, an interval outside of both logs, and an unknown name in *only*.
    """
    wanted = _sections(only, messages, fields)
    with ExitStack() as stack:
        one, two = map(read_itself, open_many((a, b), stack, definitions, parts=True))
        a_span, b_span = (Span(*bounds) for bounds in intervals((one, two), start, end))
        chosen = _chosen(one, two, topics, exclude)
        both = [topic for topic in chosen if topic in one and topic in two] if MESSAGES in wanted else []
        compared = compare(
            one,
            two,
            {topic: (a_span.rows(one[topic]), b_span.rows(two[topic])) for topic in both},
        )
        channels = [
            _channel(
                topic,
                _Side(one.channels.get(topic), a_span),
                _Side(two.channels.get(topic), b_span),
                TOPICS in wanted,
                fields,
                compared.get(topic),
            )
            for topic in chosen
            if not {TOPICS, MESSAGES}.isdisjoint(wanted)
        ]
        return Difference(
            a=one.name,
            b=two.name,
            formats=(one.format, two.format),
            only=wanted,
            log=_changes(_facts(one, a_span), _facts(two, b_span)) if LOG in wanted else (),
            metadata=_changes(to_json_values(one.metadata), to_json_values(two.metadata))
            if METADATA in wanted
            else (),
            parameters=tuple(_parameters(one.parameters, two.parameters)) if PARAMS in wanted else (),
            attachments=_attachments(one.attachments, two.attachments) if ATTACHMENTS in wanted else (),
            channels=tuple(channels),
            text=_text(one, a_span, two, b_span) if TEXT in wanted else (),
        )


def _sections(only: str | Iterable[str] | None, messages: bool, fields: bool) -> tuple[str, ...]:
    """Return what is to be compared; raises UsageError for an unknown name, and for *fields* without topics."""
    names = USUAL if only is None else listed(only)
    for name in names:
        if name not in SECTIONS:
            raise UsageError(f"nothing is called {name!r}: what can be compared is {', '.join(SECTIONS)}")
    wanted = {*names, MESSAGES} if messages else {*names}
    if fields and TOPICS not in wanted:
        raise UsageError(
            "fields are compared with the topics", hint="add 'topics' to only", cli="add --only topics"
        )
    return tuple(name for name in SECTIONS if name in wanted)


def _chosen(
    one: Log, two: Log, topics: str | Iterable[str] | None, exclude: str | Iterable[str]
) -> list[str]:
    names = list(dict.fromkeys([*one.channels, *two.channels]))
    path = f"{one.name}, {two.name}"
    both = (one.channels, two.channels)
    found = set(names) if topics is None else set().union(*match_in_each(both, topics, path))
    found -= set().union(*match_in_each(both, exclude, path))
    return [name for name in names if name in found]


def _changes(a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[Change, ...]:
    names = dict.fromkeys([*a, *b])
    return tuple(Change(name, a.get(name), b.get(name)) for name in names if a.get(name) != b.get(name))


def _facts(log: Log, span: Span) -> dict[str, Any]:
    start, end, messages = log.start, log.end, log.message_count
    if not span.is_whole:
        times = [ch.times[span.rows(ch)] for ch in log.channels.values() if not ch.reserved]
        times = [some for some in times if len(some)]
        start = min((int(some.min()) for some in times), default=None)
        end = max((int(some.max()) for some in times), default=None)
        messages = sum(map(len, times))
    return {
        "epoch": log.epoch,
        "utc_offset_ns": log.utc_offset,
        "start_ns": start,
        "end_ns": end,
        "messages": messages,
    }


def _parameters(a: Mapping[str, Parameter], b: Mapping[str, Parameter]) -> Iterator[Change]:
    for name in dict.fromkeys([*a, *b]):
        one, two = (_parameter(some[name]) if name in some else {} for some in (a, b))
        if one and two:
            yield from (
                Change(f"{name}.{c.name}" if c.name != "value" else name, c.a, c.b)
                for c in _changes(one, two)
            )
        else:
            yield Change(name, one.get("value"), two.get("value"))


def _parameter(one: Parameter) -> dict[str, Any]:
    return {
        "value": to_json_values(one.value),
        "type": one.type,
        "changes": [{"time_ns": c.time, "value": to_json_values(c.value)} for c in one.changes],
        "defaults": to_json_values(one.defaults),
    }


def _attachments(a: Mapping[str, Attachment], b: Mapping[str, Attachment]) -> tuple[Change, ...]:
    return _changes(*({name: _sum(one) for name, one in some.items()} for some in (a, b)))


def _sum(one: Attachment) -> dict[str, Any]:
    return {
        "media_type": one.media_type,
        "size": one.size,
        "sha256": hashlib.sha256(one.read()).hexdigest(),
    }


def _text(one: Log, a: Span, two: Log, b: Span) -> tuple[LineDiff, ...]:
    """Return the lines without a counterpart of the same level, source and text, wherever it is in the other log."""
    lines = [list(lines_between(log, None, span.start, span.end)) for log, span in ((one, a), (two, b))]
    counts = [Counter((line.level, line.source, line.text) for line in some) for some in lines]
    found: list[LineDiff] = []
    for name, some, missing in (
        ("a", lines[0], counts[0] - counts[1]),
        ("b", lines[1], counts[1] - counts[0]),
    ):
        # Of equal lines, those at the end are the surplus.
        own = []
        for line in reversed(some):
            key = line.level, line.source, line.text
            if missing[key] > 0:
                missing[key] -= 1
                own.append(LineDiff(name, line.time, *key))
        found += reversed(own)
    return tuple(found)


def _channel(
    topic: str, a: _Side, b: _Side, about: bool, fields: bool, compared: Compared | None
) -> ChannelDiff:
    counts = a.when()[0], b.when()[0]
    if a.ch is None or b.ch is None:
        return ChannelDiff(topic, "a" if b.ch is None else "b", counts)
    return ChannelDiff(
        topic,
        None,
        counts,
        _changes(a.about(), b.about()) if about else (),
        _definition(a.ch, b.ch) if about else "",
        _changes(a.fields(), b.fields()) if fields else (),
        compared,
    )


def _definition(a: Channel, b: Channel) -> str:
    one, two = (ch.schema.text.splitlines() for ch in (a, b))
    return "\n".join(unified_diff(one, two, a.log.name, b.log.name, n=CONTEXT, lineterm=""))


def _numbers(one: FieldStats) -> dict[str, Any]:
    found: dict[str, Any] = to_json_values(asdict(one))
    del found["path"]
    return found
