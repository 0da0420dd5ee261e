"""Differences between two logs: what they say of themselves, their channels, and their messages one by one."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from difflib import unified_diff
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import UsageError
from logreel.index.gather import Rows
from logreel.io.arrays import I64
from logreel.log.log import Channel, Log
from logreel.log.scan import Attachment, Brief, Parameter
from logreel.log.times import Time, intervals, seconds_text
from logreel.log.topic_match import listed, match_in_each
from logreel.meaning.charts import COUNTERS
from logreel.ops.inspect.digests import Digests, digests
from logreel.ops.inspect.stats import FieldStats, distance, field_stats
from logreel.ops.inspect.text import lines_between
from logreel.ops.json_values import to_json_values
from logreel.registry.open import open_many, read_itself

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.joined_log import Openable


@dataclass(frozen=True, slots=True)
class First:
    """First difference by time.

    what  ``changed``, ``only_a`` or ``only_b``
    a, b  number of the message in its channel in each log, in file order; None if it is missing there
    """

    what: str
    time_ns: int
    a: int | None
    b: int | None


@dataclass(frozen=True, slots=True)
class Compared:
    """Comparison of one channel of two logs: messages paired by time, those of equal time in their order.

    by       ``payload``: pairs are equal if their bytes are; ``time``: all pairs are equal, since the logs encode this
             channel differently
    equal    equal pairs
    changed  pairs whose bytes differ
    only_a, only_b  messages without a counterpart
    """

    by: str
    equal: int
    changed: int
    only_a: int
    only_b: int
    first: First | None

    @property
    def same(self) -> bool:
        """Whether all messages have an equal counterpart."""
        return self.first is None

    def first_text(self) -> str:
        """Return where the first difference is; empty if there is none."""
        if self.first is None:
            return ""
        places = ("A", self.first.a), ("B", self.first.b)
        rows = [f"{log}[{row}]" for log, row in places if row is not None]
        return f"{', '.join(rows)} at {seconds_text(self.first.time_ns)} s"


def compare(log_a: Log, log_b: Log, rows: Mapping[str, tuple[Rows, Rows]]) -> dict[str, Compared]:
    """Compare the messages of topics that both logs have; return the results by topic. Each log is read once.

    rows  messages of log *log_a* and of log *log_b*, by topic
    """
    digests_a = digests(log_a, {log_a[name].number: chosen for name, (chosen, _) in rows.items()})
    digests_b = digests(log_b, {log_b[name].number: chosen for name, (_, chosen) in rows.items()})
    compared = {}
    for name, both in rows.items():
        a, b = log_a[name], log_b[name]
        by_payload = a.schema.encoding == b.schema.encoding
        compared[name] = _paired(digests_a[a.number], digests_b[b.number], both, by_payload)
    return compared


def _paired(a: Digests, b: Digests, rows: tuple[Rows, Rows], by_payload: bool) -> Compared:
    time = np.concatenate([a.time, b.time])
    turn = np.concatenate([_occurrences(a.time), _occurrences(b.time)])
    side = np.repeat(np.array([0, 1], np.int8), [len(a.time), len(b.time)])
    order = np.lexsort((side, turn, time))
    time, turn = time[order], turn[order]
    # A pair is at i and i + 1, the message of the first log first.
    pair = (time[1:] == time[:-1]) & (turn[1:] == turn[:-1])
    alike = pair.copy()
    if by_payload:
        for column in (np.concatenate(both)[order] for both in zip(a.keys(), b.keys(), strict=True)):
            alike &= column[1:] == column[:-1]
    pairs, equal = int(pair.sum()), int(alike.sum())
    odd = np.ones(len(order), np.bool_)
    odd[1:] &= ~alike
    odd[:-1] &= ~alike
    return Compared(
        "payload" if by_payload else "time",
        equal,
        pairs - equal,
        len(a.time) - pairs,
        len(b.time) - pairs,
        _first_difference(int(np.argmax(odd)), order, time, pair, len(a.time), rows) if odd.any() else None,
    )


def _occurrences(time: I64) -> I64:
    """Return int64[n]: the number of earlier messages with the same time, for each message."""
    order = np.argsort(time, kind="stable")
    ordered = time[order]
    first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(order)])
    turn = np.arange(len(order), dtype=np.int64)
    turn -= np.repeat(first, np.diff(np.append(first, len(order))))
    earlier = np.empty(len(order), np.int64)
    earlier[order] = turn
    return earlier


def _first_difference(
    at: int, order: I64, time: I64, pair: NDArray[np.bool_], split: int, rows: tuple[Rows, Rows]
) -> First:
    row = int(order[at])
    if at < len(pair) and pair[at]:
        other = int(order[at + 1]) - split
        return First("changed", int(time[at]), _row_number(rows[0], row), _row_number(rows[1], other))
    if row < split:
        return First("only_a", int(time[at]), _row_number(rows[0], row), None)
    return First("only_b", int(time[at]), None, _row_number(rows[1], row - split))


def _row_number(rows: Rows, at: int) -> int:
    """Return the number in its channel of message *at* of *rows*."""
    return int(rows.start) + at if isinstance(rows, slice) else int(rows[at])


#: Lines of context in diffs of definitions.
CONTEXT = 3
#: What can be compared.
LOG, METADATA, PARAMS, ATTACHMENTS, TOPICS, MESSAGES, TEXT = SECTIONS = (
    "log", "metadata", "params", "attachments", "topics", "messages", "text",
)  # fmt: skip
#: What is compared unless something is chosen.
USUAL = (LOG, METADATA, PARAMS, ATTACHMENTS, TOPICS)


@dataclass(frozen=True, slots=True)
class ValueDiff:
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
    fields    changes of statistics of numeric fields, by path, the most different first; empty if not requested
    compared  comparison of the messages, None if not requested
    """

    topic: str
    only: str | None
    messages: tuple[int, int]
    changes: tuple[ValueDiff, ...] = ()
    schema: str = ""
    fields: tuple[ValueDiff, ...] = ()
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

    def fields(self) -> dict[str, FieldStats]:
        """Return statistics of numeric fields by path."""
        if self.ch is None:
            return {}
        stats = field_stats(self.ch, start=self._span.start, end=self._span.end)
        return {field.path: field for field in stats or ()}


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
    log: tuple[ValueDiff, ...]
    metadata: tuple[ValueDiff, ...]
    parameters: tuple[ValueDiff, ...]
    attachments: tuple[ValueDiff, ...]
    channels: tuple[ChannelDiff, ...]
    text: tuple[LineDiff, ...]

    @property
    def same(self) -> bool:
        """True where nothing differs."""
        changes = self.log or self.metadata or self.parameters or self.attachments or self.text
        return not changes and all(channel.same for channel in self.channels)

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON data of ``diff --json``: only channels that differ or whose messages were compared."""
        data: dict[str, Any] = to_json_values(asdict(self))
        pairs = zip(data["channels"], self.channels, strict=True)
        data["channels"] = [channel for channel, ch in pairs if not ch.same or ch.compared is not None]
        return {"same": self.same, **data}


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
        log_a, log_b = map(read_itself, open_many((a, b), stack, definitions, parts=True))
        a_span, b_span = (Span(*bounds) for bounds in intervals((log_a, log_b), start, end))
        names = _chosen(log_a, log_b, topics, exclude)
        return Difference(
            a=log_a.name,
            b=log_b.name,
            formats=(log_a.format, log_b.format),
            only=wanted,
            log=_changes(_facts(log_a, a_span), _facts(log_b, b_span)) if LOG in wanted else (),
            metadata=_changes(to_json_values(log_a.metadata), to_json_values(log_b.metadata))
            if METADATA in wanted
            else (),
            parameters=tuple(_parameters(log_a.parameters, log_b.parameters)) if PARAMS in wanted else (),
            attachments=_attachments(log_a.attachments, log_b.attachments) if ATTACHMENTS in wanted else (),
            channels=tuple(_channels(names, log_a, a_span, log_b, b_span, wanted, fields)),
            text=_text(log_a, a_span, log_b, b_span) if TEXT in wanted else (),
        )


def _sections(only: str | Iterable[str] | None, messages: bool, fields: bool) -> tuple[str, ...]:
    """Return what is to be compared; raises UsageError for an unknown name, and for *fields* without topics."""
    names = USUAL if only is None else listed(only)
    for name in names:
        if name not in SECTIONS:
            raise UsageError(f"nothing is called {name!r}: what can be compared is {', '.join(SECTIONS)}")
    wanted = {*names, MESSAGES} if messages else {*names}
    if fields and TOPICS not in wanted:
        raise UsageError("fields are compared with the topics", hint="add topics to only=")
    return tuple(name for name in SECTIONS if name in wanted)


def _chosen(
    log_a: Log, log_b: Log, topics: str | Iterable[str] | None, exclude: str | Iterable[str]
) -> list[str]:
    names = list(dict.fromkeys([*log_a.channels, *log_b.channels]))
    path = f"{log_a.name}, {log_b.name}"
    both = (log_a.channels, log_b.channels)
    chosen = set(names) if topics is None else set().union(*match_in_each(both, topics, path))
    chosen -= set().union(*match_in_each(both, exclude, path))
    return [name for name in names if name in chosen]


def _changes(a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[ValueDiff, ...]:
    names = dict.fromkeys([*a, *b])
    return tuple(ValueDiff(name, a.get(name), b.get(name)) for name in names if a.get(name) != b.get(name))


def _facts(log: Log, span: Span) -> dict[str, Any]:
    start, end, messages = log.start, log.end, log.message_count
    if not span.is_whole:
        times = [ch.times[span.rows(ch)] for ch in log.channels.values() if not ch.reserved]
        times = [stamps for stamps in times if len(stamps)]
        start = min((int(stamps.min()) for stamps in times), default=None)
        end = max((int(stamps.max()) for stamps in times), default=None)
        messages = sum(map(len, times))
    return {
        "epoch": log.epoch,
        "utc_offset_ns": log.utc_offset,
        "start_ns": start,
        "end_ns": end,
        "messages": messages,
    }


def _parameters(a: Mapping[str, Parameter], b: Mapping[str, Parameter]) -> Iterator[ValueDiff]:
    for name in dict.fromkeys([*a, *b]):
        in_a, in_b = (_parameter(parameters[name]) if name in parameters else {} for parameters in (a, b))
        if in_a and in_b:
            yield from (
                ValueDiff(f"{name}.{c.name}" if c.name != "value" else name, c.a, c.b)
                for c in _changes(in_a, in_b)
            )
        else:
            yield ValueDiff(name, in_a.get("value"), in_b.get("value"))


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "value": to_json_values(parameter.value),
        "type": parameter.type,
        "changes": [{"time_ns": c.time, "value": to_json_values(c.value)} for c in parameter.changes],
        "defaults": to_json_values(parameter.defaults),
    }


def _attachments(a: Mapping[str, Attachment], b: Mapping[str, Attachment]) -> tuple[ValueDiff, ...]:
    return _changes(
        *({name: _sum(attachment) for name, attachment in attachments.items()} for attachments in (a, b))
    )


def _sum(attachment: Attachment) -> dict[str, Any]:
    return {
        "media_type": attachment.media_type,
        "size": attachment.size,
        "sha256": hashlib.sha256(attachment.read()).hexdigest(),
    }


def _text(log_a: Log, a: Span, log_b: Log, b: Span) -> tuple[LineDiff, ...]:
    """Return the lines without a counterpart of the same level, source and text, wherever it is in the other log."""
    lines = [list(lines_between(log, None, span.start, span.end)) for log, span in ((log_a, a), (log_b, b))]
    counts = [Counter((line.level, line.source, line.text) for line in side) for side in lines]
    surplus: list[LineDiff] = []
    for name, side, missing in (
        ("a", lines[0], counts[0] - counts[1]),
        ("b", lines[1], counts[1] - counts[0]),
    ):
        # Of equal lines, those at the end are the surplus.
        own = []
        for line in reversed(side):
            key = line.level, line.source, line.text
            if missing[key] > 0:
                missing[key] -= 1
                own.append(LineDiff(name, line.time, *key))
        surplus += reversed(own)
    return tuple(surplus)


def _channels(
    topics: list[str], log_a: Log, a: Span, log_b: Log, b: Span, wanted: tuple[str, ...], fields: bool
) -> list[ChannelDiff]:
    """Return the differences of *topics*; empty if neither topics nor messages are *wanted*."""
    if {TOPICS, MESSAGES}.isdisjoint(wanted):
        return []
    both = [topic for topic in topics if topic in log_a and topic in log_b] if MESSAGES in wanted else []
    compared = compare(log_a, log_b, {topic: (a.rows(log_a[topic]), b.rows(log_b[topic])) for topic in both})
    return [
        _channel(
            topic,
            _Side(log_a.channels.get(topic), a),
            _Side(log_b.channels.get(topic), b),
            TOPICS in wanted,
            fields,
            compared.get(topic),
        )
        for topic in topics
    ]


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
        _field_changes(a.fields(), b.fields()) if fields else (),
        compared,
    )


def _field_changes(a: Mapping[str, FieldStats], b: Mapping[str, FieldStats]) -> tuple[ValueDiff, ...]:
    return tuple(
        ValueDiff(field.path, *(None if stats is None else _numbers(stats) for stats in field.stats))
        for field in side_by_side([a, b])
        if field.stats[0] != field.stats[1]
    )


@dataclass(frozen=True, slots=True)
class FieldsBeside:
    """Statistics of one field in several logs.

    stats     one for each log; None where a log does not have the field
    distance  how far they are apart, see ``stats.distance``; None if fewer than two logs have values
    """

    path: str
    stats: tuple[FieldStats | None, ...]
    distance: float | None


def side_by_side(logs: Sequence[Mapping[str, FieldStats]]) -> list[FieldsBeside]:
    """Return the statistics of the fields of several logs, the most different first.

    Behind these stand times, counters and numbers of messages, which always differ, then what one log alone has.
    """
    beside = []
    for path in dict.fromkeys(path for stats in logs for path in stats):
        of_each = tuple(stats.get(path) for stats in logs)
        beside.append(FieldsBeside(path, of_each, distance(of_each)))
    return sorted(beside, key=lambda field: rank(field.path, field.distance))


def rank(path: str, apart: float | None) -> tuple[bool, bool, float]:
    """Return the place of a field among others by the distance of its statistics, see ``side_by_side``."""
    return apart is None, re.split(r"[.\n]", path)[-1].lower() in COUNTERS, -(apart or 0)


def _definition(a: Channel, b: Channel) -> str:
    text_a, text_b = (ch.schema.text.splitlines() for ch in (a, b))
    return "\n".join(unified_diff(text_a, text_b, a.log.name, b.log.name, n=CONTEXT, lineterm=""))


def _numbers(stats: FieldStats) -> dict[str, Any]:
    numbers: dict[str, Any] = to_json_values(asdict(stats))
    del numbers["path"]
    return numbers
