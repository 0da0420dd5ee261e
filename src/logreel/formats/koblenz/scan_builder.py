"""From the walk of a file to a Scan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from logreel.errors import Finding, Problem
from logreel.formats.koblenz import clock
from logreel.formats.koblenz.framing import Kind
from logreel.formats.koblenz.reader import Walk, walk
from logreel.formats.koblenz.records import VALID_MARK, Reading, read_head, told_utc
from logreel.formats.koblenz.sensors import pose_guesses, sensors
from logreel.formats.koblenz.start import Start, find_start
from logreel.formats.koblenz.time_index import seconds_between
from logreel.index.block_table import Blocks
from logreel.index.message_index import MessageIndex
from logreel.index.rules import ChannelRules
from logreel.io.chunks import Chunks
from logreel.io.source import Source
from logreel.layout.layout import Layout
from logreel.log.scan import ChannelInfo, Scan
from logreel.log.schema import Schema

#: An index entry may point this much before its second, in ms.
SLACK_MS = 1.0
#: Entries of an index that are looked at.
MAX_ENTRIES = 1 << 16


@dataclass(frozen=True, slots=True)
class _Part:
    """One channel."""

    kind: Kind
    topic: str
    layout: Layout
    metadata: dict[str, Any] = field(default_factory=dict)


def scan(source: Source) -> Scan:
    """The Scan of a file. Raises UnsupportedError for a version from the future."""
    start = find_start(source)
    return ScanBuilder(source, start, walk(source, start)).scan()


class ScanBuilder:
    """Channels, index and metadata of what was found."""

    def __init__(self, source: Source, start: Start, found: Walk) -> None:
        self.source, self._start, self._found = source, start, found
        self._problems = list(found.problems)

    @property
    def reading(self) -> Reading:
        """What sizes count."""
        return self._found.framing.reading

    @property
    def is_noted(self) -> bool:
        """Whether UTC is told behind the end mark, and not (only) by fixes."""
        return told_utc(self.source, self._found.end) is not None

    @property
    def mark(self) -> int:
        """What valid messages are marked by."""
        return self._found.framing.mark

    @property
    def is_indexed(self) -> bool:
        """False if there are seconds, more than the one that is open to choice, that the index has no entry for."""
        return len(self._start.entries) >= max(self._seconds - 1, min(self._seconds, 1))

    def scan(self) -> Scan:
        """The Scan."""
        blocks, parts = self._parts()
        rules = []
        for i, part in enumerate(parts):
            exact = part.layout.size if not part.kind.longer and part.layout is part.kind.layout else None
            rules.append(ChannelRules(partial(_times, i), self._found.size if exact is None else exact))
        self.index = MessageIndex(Chunks(self.source), blocks, rules)
        start, end = clock.bounds(self.index)
        self._seconds = 0 if end is None else seconds_between(self._first_time(), end)
        self._check_index()
        self._gps = next((i for i, part in enumerate(parts) if part.topic == "GPSDataM"), None)
        return Scan(
            version=self._start.version,
            epoch="start",
            start=start,
            end=end,
            channels=[_info(part) for part in parts],
            index=self.index,
            problems=self._problems,
            metadata=self._metadata,
            utc_offset=lambda: self._utc_offset,
            verify=self.verify,
            format_state=self,
        )

    def verify(self) -> list[Finding]:
        """A finding ``index`` where the index has no entries for seconds of the log."""
        if self.is_indexed:
            return []
        have = len(self._start.entries)
        text = (
            f"the index has {have} entries for a log of {self._seconds} seconds; recover makes a new one"
            if have
            else "the index is empty; recover makes one"
        )
        return [Finding("index", "warn", 8, 4, text)]

    @cached_property
    def _utc_offset(self) -> int | None:
        told = told_utc(self.source, self._found.end)
        if told is not None:
            return told
        return None if self._gps is None else clock.utc_offset(self.index, self._gps)

    def _parts(self) -> tuple[Blocks, list[_Part]]:
        """The block table by channel, and the channels: kinds that have messages, split by sensor."""
        found, blocks = self._found, self._found.blocks
        live = blocks.live()
        blocks, parts, taken = blocks.reshaped(live, 0), [], set[str]()
        for number in live:
            kind = found.kinds[number]
            if not (kind.is_described and kind.known and kind.known.instance):
                told = {}
                if kind.is_described and kind.name == "RobotPoseM":
                    told = pose_guesses(self.source.read(found.blocks.first(number), 28))
                parts.append(_Part(kind, kind.name, kind.layout, told))
                continue
            each, part = sensors(kind, self.source.data, found.blocks.offsets(number))
            blocks = blocks.split(len(parts), part, len(each))
            for sensor in each:
                topic = _distinct(f"{kind.name}/{sensor.name}", taken)
                parts.append(_Part(kind, topic, sensor.layout, sensor.metadata))
        return blocks, parts

    def _metadata(self) -> Mapping[str, Any]:
        told: dict[str, Any] = {
            "index_entries": len(self._start.entries),
            "size_reading": self.reading.name,
        }
        if self._found.end is not None:
            told["end_mark"] = self._found.end
        if self.mark != VALID_MARK:
            told["valid_mark"] = f"0x{self.mark:02X}"
        return told

    def _first_time(self) -> int:
        """ns of the first message of the file, from which the seconds of its index count."""
        first = min(self._found.blocks.first(number) for number in self._found.blocks.live())
        return int(clock.stamps(self.index, np.array([first], np.int64))[0])

    def _check_index(self) -> None:
        """Note entries of the file's index that do not point to a message of their second."""
        entries, wrong = self._start.entries[:MAX_ENTRIES].tolist(), []
        first = read_head(self.source, self._start.first)
        for second, entry in enumerate(entries):
            head = read_head(self.source, entry) if entry >= 0 else None
            good = head is not None and head.mark == self.mark and head.is_plausible(self.reading)
            if not good or (head and first and head.ms < first.ms + 1000 * second - SLACK_MS):
                wrong.append(second)
        if wrong:
            at = 12 + 8 * wrong[0]
            text = f"{len(wrong)} of {len(entries)} index entries do not point to the message of their second"
            self._problems.append(Problem("index", at, 8, False, text))


def _times(channel: int, index: MessageIndex) -> Any:
    return clock.stamps(index, index.offsets(channel))


def _info(part: _Part) -> ChannelInfo:
    kind = part.kind
    notes = {"notes": kind.known.notes} if kind.known and kind.known.notes else {}
    told = {**part.metadata, "type_id": f"0x{kind.type:08X}", "version": kind.version, **notes}
    name = kind.known.name if kind.known else f"0x{kind.type:08X}"
    return ChannelInfo(part.topic, Schema(name, "koblenz"), lambda: part.layout, told)


def _distinct(topic: str, taken: set[str]) -> str:
    number, found = 0, topic
    while found in taken:
        number += 1
        found = f"{topic}[{number}]"
    taken.add(found)
    return found
