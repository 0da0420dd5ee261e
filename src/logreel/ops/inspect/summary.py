"""What happened in a recording, as sections of facts: for people, programs, reports and viewers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from logreel.errors import LogError
from logreel.lenses import Text, Transform, lenses
from logreel.lenses.charts import Band
from logreel.lenses.meaning import ERROR, WARNING, Fact, Section
from logreel.log.limited_log import without_channels
from logreel.log.log import Channel, Log
from logreel.log.shown import Block, Tabular
from logreel.log.times import Time, duration_text, interval, interval_text, utc_shift, utc_text
from logreel.meaning.charts import bands
from logreel.ops.inspect.lens_sections import by_lenses, counted
from logreel.ops.inspect.text_sections import text_sections
from logreel.ops.rewrite.selected_log import selected_log
from logreel.ops.selection import Selection
from logreel.registry.open_logs import as_open_log
from logreel.registry.registry import formats, meaning_of

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.io.source import Definitions
    from logreel.log.joined_log import Openable


#: Start of the year 2000 in ns of Unix time, before which no log of these formats was recorded.
EARLIEST_NS = 946_684_800 * 10**9
#: Findings of each log of a file with several that are named, and the longest text of one.
TOLD, LONGEST = 3, 60


@dataclass(frozen=True, slots=True, repr=False)
class Summary(Tabular):
    """What happened in a recording.

    path      name of the log
    format    name of its format
    start_ns, end_ns  ns of the log's clock; None if it is empty
    utc       UTC time of the start, as text; empty if unknown
    sections  facts by subject, the recording itself first; sections without facts are left out
    bands     intervals such as modes, armed, in the air
    """

    path: str
    format: str
    start_ns: int | None
    end_ns: int | None
    utc: str
    sections: tuple[Section, ...]
    bands: tuple[Band, ...]

    def __iter__(self) -> Iterator[Section]:
        return iter(self.sections)

    def __getitem__(self, key: str) -> Section:
        for section in self.sections:
            if section.key == key:
                return section
        raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        return any(section.key == key for section in self.sections)

    @property
    def findings(self) -> list[tuple[Section, Fact]]:
        """Facts that deserve attention with their sections, most severe first."""
        found = [(section, fact) for section in self.sections for fact in section if fact.level is not None]
        return sorted(found, key=lambda pair: pair[1].level or 0)

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON data of ``summary --json``, with times in ns."""
        return {
            "path": self.path,
            "format": self.format,
            "start_ns": self.start_ns,
            "end_ns": self.end_ns,
            "utc": self.utc,
            "sections": [section.as_dict() for section in self.sections],
            "bands": [
                {"start_ns": b.start, "end_ns": b.end, "label": b.label, "kind": b.kind, "source": b.source}
                for b in self.bands
            ],
        }

    def _blocks(self) -> Iterator[Block]:
        yield Block(self.path, (), ())
        for section in self.sections:
            rows = [
                ("" if fact.level is None else "!" if fact.level >= WARNING else "!!", fact.label, fact.text)
                for fact in section
            ]
            yield Block(section.title, (), rows)

    def table(self) -> pa.Table:
        """Return the facts as a table: section, key, label, value (JSON), unit, text, level, note."""
        import pyarrow as pa

        rows = [
            {
                "section": section.key,
                "key": fact.key,
                "label": fact.label,
                "value": json.dumps(fact.value),
                "unit": fact.unit,
                "text": fact.text,
                "level": fact.level,
                "note": fact.note,
            }
            for section in self.sections
            for fact in section
        ]
        names = ("section", "key", "label", "value", "unit", "text", "level", "note")
        schema = pa.schema([pa.field(name, pa.int8() if name == "level" else pa.string()) for name in names])
        return pa.Table.from_pylist(rows, schema)


def summary(
    what: Openable | Log,
    *,
    topics: str | Iterable[str] | None = None,
    exclude: str | Iterable[str] = (),
    start: Time | None = None,
    end: Time | None = None,
    where: str | Iterable[str] = (),
    segment: int | None = None,
    definitions: Definitions = (),
    max_messages: int | None = None,
) -> Summary:
    """Return what happened in a recording: facts from its own words and from the topics of its format.

    what     an open Log, or anything that ``logreel.open`` takes
    topics, exclude, start, end, where  ask about a part of the log, as for ``slice``; see ``Selection``
    segment  number of one log of a file with several; see ``Log.segments``
    definitions  as for ``logreel.open``
    max_messages  bounds the memory: fields of channels with more messages are not read, nor transforms and lines of
             text of channels with more than an eighth of that; the section ``left_out`` names these channels with
             their numbers of messages. None: all are read

    Channels that cannot be decoded are left out and their problems recorded; they never raise an error here.
    """
    selection = Selection(topics, exclude, start, end, where, segment)
    with as_open_log(what, definitions) as whole, selected_log(whole, selection) as every:
        log = every
        part = ""
        if selection.has_interval:
            part = interval_text(
                whole, *interval(whole if segment is None else whole.segment(segment), start, end)
            )
        shift = utc_shift(log)
        large = {} if max_messages is None else _large(log, max_messages)
        if large:
            log = without_channels(log, large)
        has_text_left_out = any(_is_text(every[topic]) for topic in large)
        spans = tuple(bands(log))
        stated = [section for section in _stated(log) if section.facts]
        sections = [
            _recording(every, part),
            *([] if segment is not None else _logs_in_file(every)),
            *stated,
            *by_lenses(log, {section.key for section in stated}, every),
            # The lines of a format are all or none.
            *(() if has_text_left_out else text_sections(log, spans, {section.key for section in stated})),
            Section("left_out", "Left out", tuple(map(_left_out, large.items()))),
        ]
        return Summary(
            log.name,
            log.format,
            log.start,
            log.end,
            "" if shift is None or log.start is None else utc_text(log.start + shift, 3),
            tuple(section for section in sections if section.facts),
            spans,
        )


def _large(log: Log, most: int) -> dict[str, int]:
    """Return the numbers of messages of channels that have too many for a summary in bounded memory, by topic."""
    found = {}
    for topic, ch in log.channels.items():
        if len(ch) > most or (len(ch) > most // 8 and (_is_text(ch) or _has_lens(ch, Transform))):
            found[topic] = len(ch)
    return found


def _is_text(ch: Channel) -> bool:
    """Return whether messages of *ch* are lines of the log's text, each of which becomes an object of Python."""
    return ch.topic.partition("[")[0] == "~text" or (not ch.reserved and _has_lens(ch, Text))


def _has_lens(ch: Channel, kind: type) -> bool:
    with suppress(LogError):
        return any(isinstance(lens, kind) for lens in lenses(ch))
    return False


def _left_out(one: tuple[str, int]) -> Fact:
    topic, count = one
    return Fact(topic, topic, count, f"{count} messages", note="too many to be read in bounded memory")


def _stated(log: Log) -> Iterator[Section]:
    """Yield the sections that the format of *log* states, up to one that cannot be read."""
    with suppress(LogError):
        yield from meaning_of(log)


def _logs_in_file(log: Log) -> Iterator[Section]:
    """Yield a section about each log of a file with several; all other sections are about the first one."""
    many = len(log.segments)
    if many < 2:
        return
    facts = [Fact("count", "logs", many, f"{many}; what follows is about the first", level=WARNING)]
    for number in range(1, many + 1):
        facts.append(_segment(log.segment(number), number))
    yield Section("segments", "Logs in the file", tuple(facts))


def _segment(log: Log, number: int) -> Fact:
    """Return when one log of a file was recorded, how long it is, and what deserves attention in it."""
    about = summary(log)
    start = f", {about.utc[:-1].replace('T', ' ')} UTC" if about.utc else ""
    text = f"{duration_text(log.duration)}{start}, {counted(log.message_count, 'message')}"
    told = [
        fact.text[:LONGEST] if section.key == "text" else f"{section.title}, {fact.label}"
        for section, fact in about.findings
    ]
    more = f" and {len(told) - TOLD} more" if len(told) > TOLD else ""
    text += f"; look at: {'; '.join(told[:TOLD])}{more}" if told else ""
    value = {
        "number": number,
        "start_ns": log.start,
        "end_ns": log.end,
        "messages": log.message_count,
        "findings": told,
    }
    return Fact(
        f"log_{number}", str(number), value, text, note=f"logreel summary --segment {number} says more"
    )


def _recording(log: Log, part: str) -> Section:
    """Return what the file itself says: format, size, time, losses; *part*: the interval looked at, or empty."""
    facts = (Fact("part", "part", part, f"{part}; times below count from its start"),) if part else ()
    return Section("recording", "Recording", (*facts, *_recording_facts(log)))


def _recording_facts(log: Log) -> Iterator[Fact]:
    fmt = formats().get(log.format)
    title = fmt.title if fmt is not None else log.format
    version = f", version {log.version}" if log.version else ""
    yield Fact("format", "format", [log.format, log.version], f"{title}{version}")
    shift = utc_shift(log)
    if log.start is None or log.end is None:
        yield Fact("messages", "messages", 0, "none", level=WARNING)
    else:
        if shift is not None:
            early = ", before there were such logs: its clock was not set"
            yield Fact(
                "start",
                "start",
                log.start,
                f"{utc_text(log.start + shift, 3)[:-1].replace('T', ' ')} UTC"
                + (early if log.start + shift < EARLIEST_NS else ""),
                "ns",
                level=WARNING if log.start + shift < EARLIEST_NS else None,
            )
        for text in log.utc_notes:
            yield Fact("utc", "UTC", text, text)
        length = log.end - log.start
        yield Fact("duration", "duration", length, duration_text(length), "ns")
        used = [ch for ch in log.channels.values() if len(ch) and not ch.reserved]
        count = sum(map(len, used))
        yield Fact("messages", "messages", count, f"{count} in {len(used)} channel{'s' * (len(used) != 1)}")
    if log.problems:
        lost = sum(problem.size for problem in log.problems if problem.lost)
        # What was lost matters more than an index that was not used.
        first = min(log.problems, key=lambda problem: not problem.lost).text
        more = f", and {len(log.problems) - 1} more" if len(log.problems) > 1 else ""
        yield Fact(
            "problems",
            "problems",
            {"count": len(log.problems), "lost_bytes": lost},
            f"{first}{more}" + (f"; {counted(lost, 'byte')} lost" if lost else ""),
            level=ERROR if lost else WARNING,
        )


def name_of(found: Summary) -> str:
    """Return the name of the file of a summary, without its folder."""
    return os.path.basename(found.path)
