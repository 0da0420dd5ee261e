"""Logs copied into a new Koblenz log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from logreel.formats.koblenz.own_types import read_types
from logreel.formats.koblenz.records import HEAD
from logreel.formats.koblenz.scan_builder import FormatState
from logreel.formats.koblenz.schema_maker import kind_of
from logreel.formats.koblenz.variant import seconds_between
from logreel.formats.koblenz.writer import KoblenzWriter
from logreel.index.merge import in_file_order
from logreel.log.log import Log
from logreel.log.scan import Schema
from logreel.write.log_copier import Excerpt, LogCopier, joined_ranges, write_ranges


class KoblenzCopier(LogCopier):
    """Copies messages as they are, and leaves room for their index."""

    writer: KoblenzWriter

    def __init__(self, writer: KoblenzWriter) -> None:
        super().__init__(writer)
        #: First and last time of the source logs, ns.
        self._interval: tuple[int, int] | None = None

    def count_key(self, topic: str, metadata: Mapping[str, Any]) -> str:
        """Return type and version: sensors of one type may get other names where one of them is missing."""
        if "type_id" in metadata:
            return f"{metadata['type_id']}@{metadata['version']}"
        message_kind = kind_of(
            topic,
            Schema(topic.partition("/")[0].partition("@")[0], "koblenz"),
            metadata,
            self.writer.schemas.own,
        )
        return f"0x{message_kind.type:08X}@{message_kind.version}"

    def copy_metadata(self, log: Log) -> list[str]:
        """Leave room for the index of the time that the source logs cover."""
        writer = self.writer
        writer.fixes_give_utc = not log.format_state.has_utc_note
        writer.schemas.own |= read_types(log.format_state.source)
        if log.start is not None and log.end is not None:
            first, last = self._interval or (log.start, log.end)
            self._interval = min(first, log.start), max(last, log.end)
            writer.index_room, writer.are_checked = seconds_between(*self._interval), True
        return []

    def copy_records(self, excerpt: Excerpt) -> bool:
        """Copy messages as they are in the file; a sound log of which all is wanted is copied to the byte."""
        writer = self.writer
        state: FormatState = excerpt.log.format_state
        if state.size_reading is not writer.size_reading or state.mark != writer.mark:
            return False
        wrong = any(p.lost or p.code in ("index", "header") for p in excerpt.log.problems)
        if excerpt.is_whole and state.has_full_index and not wrong:
            writer.write_whole(state.source.data)
            return True
        writer.schemas.own |= read_types(state.source)
        copied = [ch for ch in excerpt.log.channels.values() if ch.number in excerpt.rows]
        writer.declared |= {int(ch.metadata["type_id"], 16) for ch in copied}
        writer.version, writer.fixes_give_utc = state.source.read(4, 4), not state.has_utc_note
        times = [state.index.times(number)[rows] for number, rows in excerpt.rows.items()]
        times = [channel_times for channel_times in times if len(channel_times)]
        if times:
            first = next(iter(in_file_order(state.index, excerpt.rows))).time[0]
            writer.index_room = seconds_between(
                int(first), max(int(channel_times.max()) for channel_times in times)
            )
        writer.begin()
        for batch in in_file_order(state.index, excerpt.rows):
            start, end = batch.offset - HEAD, batch.offset + batch.size
            writer.time_index.add(batch.time, writer.out.tell() + np.cumsum(end - start) - (end - start))
            write_ranges(writer.out.put, state.source.data, *joined_ranges(start, end))
        return True
