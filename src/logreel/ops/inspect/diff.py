"""What two logs do not have in common."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from difflib import unified_diff
from typing import TYPE_CHECKING, Any

from logreel.index.ranges import Rows
from logreel.log.brief import Brief
from logreel.log.log import Channel, Log
from logreel.log.scan import Attachment, Parameter
from logreel.log.times import Time, intervals, seconds_text
from logreel.log.topic_match import match_topics
from logreel.ops.inspect.compare import Compared, compare
from logreel.ops.inspect.stats import FieldStats, field_stats
from logreel.ops.json_values import all_opened, plain

if TYPE_CHECKING:
    from logreel.io.source import Definitions, Readable

#: Lines of a definition shown around those that differ.
CONTEXT = 3
#: Longer values are cut for people.
WIDTH = 60


@dataclass(frozen=True, slots=True)
class Change:
    """A value that differs, as plain data; None where a log does not have it."""

    name: str
    a: Any
    b: Any


@dataclass(frozen=True, slots=True, repr=False)
class ChannelDiff(Brief):
    """One topic in both logs.

    only      ``a`` or ``b`` where just one log has it, else None
    messages  how many there are in each log
    changes   of type, encoding, counts, times (ns), rate and metadata
    schema    unified diff of the definitions, empty if they are equal
    fields    statistics of number fields by path, where they differ; empty if not asked for
    compared  the messages themselves, None if not asked for
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
        told = self.only or self.changes or self.schema or self.fields
        return not told and (self.compared is None or self.compared.same)


@dataclass(frozen=True, slots=True)
class Span:
    """What lies between two times of a log, start <= time < end (ns); None is no bound."""

    start: int | None
    end: int | None

    @property
    def is_whole(self) -> bool:
        """True where nothing is left out."""
        return self.start is None and self.end is None

    def rows(self, ch: Channel) -> Rows:
        """The messages of a channel that lie in it."""
        return ch.log.index.rows_between(ch.number, self.start, self.end)


class _Side:
    """A channel of one of the logs, or None, as far as it lies in *span*."""

    def __init__(self, ch: Channel | None, span: Span) -> None:
        self.ch, self._span = ch, span

    def when(self) -> tuple[int, int | None, int | None]:
        """How many messages there are, and the times of the first and of the last one in file order."""
        if self.ch is None:
            return 0, None, None
        if self._span.is_whole:
            # Its edges are known without reading all times.
            return len(self.ch), self.ch.start, self.ch.end
        times = self.ch.times[self._span.rows(self.ch)]
        return (len(times), int(times[0]), int(times[-1])) if len(times) else (0, None, None)

    def about(self) -> dict[str, Any]:
        """What it is, and how many messages came when."""
        if self.ch is None:
            return {}
        told = {f"metadata.{name}": plain(value) for name, value in self.ch.metadata.items()}
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
            **told,
        }

    def fields(self) -> dict[str, Any]:
        """Statistics of its number fields by path."""
        if self.ch is None:
            return {}
        found = field_stats(self.ch, start=self._span.start, end=self._span.end)
        return {one.path: _numbers(one) for one in found or ()}


@dataclass(frozen=True, slots=True, repr=False)
class Difference(Brief):
    """Two logs beside each other.

    a, b         their paths
    formats      what they are; another format alone is no difference
    log          changes of the clock, start and end (ns), and the number of messages
    metadata, parameters, attachments  changes by name; a parameter may have ``NAME.changes`` and the like
    channels     all that were compared, those of *a* first
    """

    a: str
    b: str
    formats: tuple[str, str]
    log: tuple[Change, ...]
    metadata: tuple[Change, ...]
    parameters: tuple[Change, ...]
    attachments: tuple[Change, ...]
    channels: tuple[ChannelDiff, ...]

    @property
    def same(self) -> bool:
        """True where nothing differs."""
        told = self.log or self.metadata or self.parameters or self.attachments
        return not told and all(channel.same for channel in self.channels)

    def as_dict(self) -> dict[str, Any]:
        """The object of ``diff --json``; of the channels only those that differ, or whose messages were compared."""
        found: dict[str, Any] = plain(asdict(self))
        told = zip(found["channels"], self.channels, strict=True)
        found["channels"] = [one for one, ch in told if not ch.same or ch.compared is not None]
        return {"same": self.same, **found}


def diff(
    a: Readable | Log,
    b: Readable | Log,
    *,
    topics: str | Iterable[str] | None = None,
    exclude: str | Iterable[str] = (),
    start: Time | None = None,
    end: Time | None = None,
    fields: bool = False,
    messages: bool = False,
    definitions: Definitions = (),
) -> Difference:
    """What two logs do not have in common: open Logs, or anything that ``logreel.open`` takes.

    topics, exclude  names or shell patterns; None: all channels
    start, end  ns, or times as people write them, of each log by itself; half-open: only messages between them count,
              while metadata, parameters and attachments are those of the whole logs
    fields    also compare statistics of every number field, which decodes all messages
    messages  also compare times and payloads message by message
    definitions  as for ``logreel.open``

    Raises what ``logreel.open`` raises, TopicError for a name or pattern that fits none in either log, and UsageError
    for what is no time and for an interval that touches neither log.
    """
    with ExitStack() as stack:
        one, two = all_opened((a, b), stack, definitions)
        a_span, b_span = (Span(*bounds) for bounds in intervals((one, two), start, end))
        chosen = _chosen(one, two, topics, exclude)
        both = [topic for topic in chosen if topic in one and topic in two] if messages else []
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
                fields,
                compared.get(topic),
            )
            for topic in chosen
        ]
        return Difference(
            a=one.name,
            b=two.name,
            formats=(one.format, two.format),
            log=_changes(_facts(one, a_span), _facts(two, b_span)),
            metadata=_changes(plain(one.metadata), plain(two.metadata)),
            parameters=tuple(_parameters(one.parameters, two.parameters)),
            attachments=_attachments(one.attachments, two.attachments),
            channels=tuple(channels),
        )


def _chosen(
    one: Log, two: Log, topics: str | Iterable[str] | None, exclude: str | Iterable[str]
) -> list[str]:
    names = list(dict.fromkeys([*one.channels, *two.channels]))
    path = f"{one.name}, {two.name}"
    found = names if topics is None else match_topics(names, topics, path)
    without = set(match_topics(names, exclude, path)) if exclude else set()
    return [name for name in found if name not in without]


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
        "value": plain(one.value),
        "type": one.type,
        "changes": [{"time_ns": c.time, "value": plain(c.value)} for c in one.changes],
        "defaults": plain(one.defaults),
    }


def _attachments(a: Mapping[str, Attachment], b: Mapping[str, Attachment]) -> tuple[Change, ...]:
    return _changes(*({name: _sum(one) for name, one in some.items()} for some in (a, b)))


def _sum(one: Attachment) -> dict[str, Any]:
    return {
        "media_type": one.media_type,
        "size": one.size,
        "sha256": hashlib.sha256(one.read()).hexdigest(),
    }


def _channel(topic: str, a: _Side, b: _Side, fields: bool, compared: Compared | None) -> ChannelDiff:
    counts = a.when()[0], b.when()[0]
    if a.ch is None or b.ch is None:
        return ChannelDiff(topic, "a" if b.ch is None else "b", counts)
    return ChannelDiff(
        topic,
        None,
        counts,
        _changes(a.about(), b.about()),
        _definition(a.ch, b.ch),
        _changes(a.fields(), b.fields()) if fields else (),
        compared,
    )


def _definition(a: Channel, b: Channel) -> str:
    one, two = (ch.schema.text.splitlines() for ch in (a, b))
    return "\n".join(unified_diff(one, two, a.log.name, b.log.name, n=CONTEXT, lineterm=""))


def _numbers(one: FieldStats) -> dict[str, Any]:
    found: dict[str, Any] = plain(asdict(one))
    del found["path"]
    return found


def lines(found: Difference) -> Iterator[str]:
    """The difference for people, a line for each change."""
    if found.same:
        yield f"{found.a} and {found.b}: no difference"
    if found.formats[0] != found.formats[1]:
        yield _told("log: ", Change("format", *found.formats))
    for what, changes in (
        ("log: ", found.log),
        ("metadata ", found.metadata),
        ("parameter ", found.parameters),
        ("attachment ", found.attachments),
    ):
        yield from (_told(what, change) for change in changes)
    for ch in found.channels:
        if ch.only:
            yield f"{ch.topic}: only in {found.a if ch.only == 'a' else found.b}, messages: {sum(ch.messages)}"
        yield from (_told(f"{ch.topic}: ", change) for change in ch.changes)
        yield from ch.schema.splitlines()
        yield from (_told(f"{ch.topic}: field ", change) for change in ch.fields)
        if ch.compared is not None and not ch.compared.same:
            yield f"{ch.topic}: {ch.compared.sentence()}"


def _told(what: str, change: Change) -> str:
    name = change.name.removesuffix("_ns")
    of_time = name != change.name
    return f"{what}{name}: {_short(change.a, of_time)} → {_short(change.b, of_time)}"


def _short(value: Any, of_time: bool) -> str:
    if value is None:
        return "none"
    if of_time and isinstance(value, int):
        return f"{seconds_text(value)} s"
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…"
