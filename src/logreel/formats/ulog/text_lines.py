"""Text of a ULog for people: logged strings, and PX4 events as sentences."""

from __future__ import annotations

from collections.abc import Iterator

from logreel.errors import DefinitionError
from logreel.formats.ulog import events
from logreel.formats.ulog.events import Row
from logreel.formats.ulog.found import Topic
from logreel.formats.ulog.non_data_records import NonDataRecords
from logreel.index.gather import gather_bytes
from logreel.index.message_index import MessageIndex
from logreel.io.source import Source
from logreel.log.scan import TextLine

#: Levels of syslog.
LEVELS = 8
_EVENT_TYPES = {"id": "uint32", "arguments": "uint8", "log_levels": "uint8"}
_EVENT_FIELDS = set(_EVENT_TYPES)


def text_lines(others: NonDataRecords, index: MessageIndex) -> list[TextLine]:
    """Return all lines of text in order of time; a string that was also sent as an event appears once."""
    strings, tags = [], {}
    for at in others.texts.tolist():
        level, tag, time, text = others.string_at(at)
        strings.append(events.Line(time, level if level < LEVELS else None, text.decode("utf-8", "replace")))
        if others.has_tag(at):
            tags[len(strings) - 1] = tag
    rows = [
        row
        for number, topic in enumerate(others.found.channels)
        if topic.name == "event"
        for row in _event_rows(others.source, index, number, topic)
    ]
    merged = events.lines(strings, rows, _event_definitions(others)) if rows else strings
    # By identity: two strings may be equal, and only one of them have a tag.
    source = {id(strings[i]): f"tag {tag}" for i, tag in tags.items()}
    logged = set(map(id, strings))
    lines = [
        TextLine(
            line.time,
            line.level,
            line.text,
            source.get(id(line), line.group),
            "text" if id(line) in logged else "check" if line.group else "event",
            line.repeated,
        )
        for line in merged
    ]
    return sorted(lines, key=lambda line: line.time)


def _event_definitions(others: NonDataRecords) -> events.Definitions | None:
    """Return the first usable event definitions of the log, or None."""
    most = others.source.limits.event_json_bytes
    for parts in others.keyed.multiples.get("metadata_events", []):
        try:
            return events.load(b"".join(p.key.data for p in parts), most)
        except DefinitionError:
            continue
    return None


def _event_rows(source: Source, index: MessageIndex, number: int, topic: Topic) -> Iterator[Row]:
    """Yield the messages of a topic ``event``; none if its format lacks a field that events need."""
    if topic.raw:
        return
    layout = topic.definitions.layout(topic.name)
    if not {f.name for f in layout.record.visible()} >= _EVENT_FIELDS:
        return
    offset, size, time = index.offsets(number), index.sizes(number), index.times(number)
    if layout.size is not None and (size >= layout.size).all():
        found = {name: layout.find(name) for name in _EVENT_FIELDS}
        if {name: leaf.type for name, leaf in found.items()} == _EVENT_TYPES:
            ids, arguments, levels = (
                gather_bytes(source.data, offset, leaf.width, leaf.runs[0])
                for leaf in (found[name] for name in Row._fields[1:])
            )
            columns = time, ids.view("<u4")[:, 0], arguments, levels[:, 0]
            rows = zip(*(column.tolist() for column in columns), strict=True)
            yield from (Row(at, number, bytes(given), level) for at, number, given, level in rows)
            return
    decode = layout.project(sorted(_EVENT_FIELDS)).decoder()
    for at, length, when in zip(offset.tolist(), size.tolist(), time.tolist(), strict=True):
        row = decode(memoryview(source.read(at, length)))
        yield Row(when, row["id"], bytes(row["arguments"]), row["log_levels"])
