"""Summary of a log without decoding messages, and what it says of its recording."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from itertools import islice
from typing import TYPE_CHECKING, Any

from logreel.dataclass import asdict, dataclass, replace
from logreel.errors import LogError, Problem
from logreel.log.log import Channel, Log
from logreel.log.scan import Block, Brief, Segment, Tabular
from logreel.log.times import Time, duration_text, mean_rate, utc_shift, utc_text
from logreel.ops.selection import Selection
from logreel.registry.open import as_open_log
from logreel.registry.registry import meaning_of

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.joined_log import Openable


@dataclass(frozen=True, slots=True, repr=False)
class ChannelSummary(Brief):
    """Summary of one channel; times in ns, None if empty.

    bytes     payload bytes; None if counting them would read or decompress a large log
    metadata  metadata of the channel
    """

    topic: str
    type: str
    encoding: str
    messages: int
    bytes: int | None
    start_ns: int | None
    end_ns: int | None
    metadata: Mapping[str, Any]

    @property
    def rate(self) -> float | None:
        """Messages per second between the first and the last one; None as for ``Channel.rate``."""
        if self.start_ns is None or self.end_ns is None:
            return None
        return mean_rate(self.messages - 1, self.end_ns - self.start_ns)


@dataclass(frozen=True, slots=True)
class AttachmentInfo:
    """One attachment: name, MIME type, size in bytes."""

    name: str
    media_type: str
    size: int


@dataclass(frozen=True, slots=True, repr=False)
class Info(Tabular):
    """Summary of a log.

    messages       messages of all channels except reserved ones
    channels       all channels in file order, also empty and reserved ones
    segments       the logs in the file, nearly always one
    files          names of the files of a log that is opened from several; else empty
    utc_offset_ns  ns to add to a time to get Unix time, or None; not in ``as_dict``
    utc_notes      sentences about other sources of UTC in the log that differ, as ``Log.utc_notes``
    """

    path: str
    format: str
    version: str
    size: int
    epoch: str
    start_ns: int | None
    end_ns: int | None
    messages: int
    channels: tuple[ChannelSummary, ...]
    metadata: Mapping[str, Any]
    attachments: tuple[AttachmentInfo, ...]
    problems: tuple[Problem, ...]
    utc_offset_ns: int | None
    segments: tuple[Segment, ...]
    files: tuple[str, ...] = ()
    utc_notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON data of ``info --json``, with times in ns."""
        from logreel.ops.json_values import to_json_values

        return {
            "path": self.path,
            **({"files": list(self.files)} if self.files else {}),
            "format": self.format,
            "version": self.version,
            "size": self.size,
            "epoch": self.epoch,
            "start_ns": self.start_ns,
            "end_ns": self.end_ns,
            **({"utc_notes": list(self.utc_notes)} if self.utc_notes else {}),
            "messages": self.messages,
            "channels": [asdict(c) | {"metadata": to_json_values(c.metadata)} for c in self.channels],
            "metadata": to_json_values(self.metadata),
            "attachments": [asdict(attachment) for attachment in self.attachments],
            "segments": [
                {
                    "number": s.number,
                    "offset": s.offset,
                    "start_ns": s.start,
                    "end_ns": s.end,
                    "messages": s.messages,
                }
                for s in self.segments
            ],
            "problems": [problem.as_dict() for problem in self.problems],
        }

    def _blocks(self) -> Iterator[Block]:
        filled = [ch for ch in self.channels if ch.messages]
        used = sum(not ch.topic.startswith("~") for ch in filled)
        rows = [("format", f"{self.format} {self.version}".strip()), ("size", f"{self.size:,} bytes")]
        if self.start_ns is not None and self.end_ns is not None:
            shift = 0 if self.epoch == "unix" else self.utc_offset_ns
            clock = f"{self.start_ns / 1e9:.6f} s ({self.epoch})"
            rows += [
                ("start", clock if shift is None else utc_text(self.start_ns + shift, 3)),
                ("duration", duration_text(self.end_ns - self.start_ns)),
            ]
        rows.append(("messages", f"{self.messages} in {used} channel{'s' * (used != 1)}"))
        rows += [
            ("log in it", f"{segment.number}: {segment.messages} messages")
            for segment in self.segments
            if len(self.segments) > 1
        ]
        rows += [("problem", problem.text) for problem in self.problems] or [("problems", "none")]
        yield Block(self.path, (), rows)
        if filled:
            cells = [
                (ch.topic, ch.type, str(ch.messages), "" if ch.rate is None else f"{ch.rate:.4g} Hz")
                for ch in filled
            ]
            yield Block("channels", ("channel", "type", "messages", "rate"), cells)


def select_channels(
    log: Log, topics: str | Iterable[str] | None, exclude: str | Iterable[str] = ()
) -> list[Channel]:
    """Return the channels that *topics* select, None: all, without those that *exclude* selects, in file order."""
    without = {ch.number for ch in log.match(exclude)} if exclude else set()
    chosen = log.channels.values() if topics is None else log.match(topics)
    return [ch for ch in chosen if ch.number not in without]


def info(
    what: Openable | Log,
    *,
    topics: str | Iterable[str] | None = None,
    exclude: str | Iterable[str] = (),
    start: Time | None = None,
    end: Time | None = None,
    where: str | Iterable[str] = (),
    segment: int | None = None,
    definitions: Definitions = (),
) -> Info:
    """Return a summary of a log without decoding its messages.

    what         an open Log, or anything that ``logreel.open`` takes
    topics, exclude  channels to list and to leave out, as for ``Log.match``; None: all, reserved ones too
    start, end, where  summarize the log that ``slice`` would write for these
    segment      number of one log of a file with several; see ``Log.segments``
    definitions  as for ``logreel.open``
    """
    selection = Selection(None, (), start, end, where, segment)
    if selection.is_part:
        # The part has no other channels.
        selection = replace(selection, topics=topics, exclude=exclude)
        topics, exclude = None, ()
    with as_open_log(what, definitions) as opened, _selected(opened, selection) as log:
        channels = tuple(
            ChannelSummary(
                ch.topic,
                ch.schema.name,
                ch.schema.encoding,
                len(ch),
                ch.bytes if log.index.sizes_are_cheap else None,
                ch.start,
                ch.end,
                dict(ch.metadata),
            )
            for ch in select_channels(log, topics, exclude)
        )
        attachments = tuple(AttachmentInfo(a.name, a.media_type, a.size) for a in log.attachments.values())
        return Info(
            path=log.name,
            format=log.format,
            version=log.version,
            size=log.size,
            epoch=log.epoch,
            start_ns=log.start,
            end_ns=log.end,
            messages=log.message_count,
            channels=channels,
            metadata=dict(log.metadata),
            attachments=attachments,
            problems=log.problems,
            utc_offset_ns=log.utc_offset,
            segments=log.segments,
            files=tuple(part.name for part in log.parts if part is not log),
            utc_notes=log.utc_notes,
        )


def _selected(log: Log, selection: Selection) -> AbstractContextManager[Log]:
    if selection.segment is None and not selection.is_part:
        return nullcontext(log)
    from logreel.ops.rewrite.selected_log import selected_log

    return selected_log(log, selection)


#: Facts of the first section of the summary that are shown, and the longest text of one.
FACTS, LONGEST = 6, 80


def facts(log: Log) -> list[tuple[str, str]]:
    """Return label and value of what *log* says of its recording: start, duration, format, and what recorded it."""
    shift = utc_shift(log)
    labelled: list[tuple[str, str]] = []
    if log.start is not None and shift is not None:
        labelled.append(("Start", utc_text(log.start + shift, 0).replace("T", " ").replace("Z", " UTC")))
    labelled += [("Duration", duration_text(log.duration)), ("Format", f"{log.format} {log.version}".strip())]
    return [*labelled, *recorded_by(log)]


def recorded_by(log: Log) -> list[tuple[str, str]]:
    """Return label and value of what *log* says of the robot, vehicle or world: the first section of its summary."""
    with suppress(LogError):
        for section in islice(meaning_of(log), 1):
            short = [fact for fact in section if len(fact.text) <= LONGEST]
            return [(fact.label.capitalize(), fact.text) for fact in short[:FACTS]]
    return []
