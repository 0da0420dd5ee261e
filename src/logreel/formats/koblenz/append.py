"""Continue an existing Koblenz log: messages follow its last one, and the index is written again at the end."""

from __future__ import annotations

from typing import Any

from logreel.errors import LogError, UsageError
from logreel.formats.koblenz.own_types import read_types
from logreel.formats.koblenz.records import HEAD, read_utc_note
from logreel.formats.koblenz.scan_builder import FormatState
from logreel.formats.koblenz.writer import KoblenzWriter
from logreel.index.merge import in_file_order
from logreel.io.append_file import Appender
from logreel.log.log import Log


def append(out: Appender, log: Log, **options: Any) -> KoblenzWriter:
    """Return the writer that continues *log*; an end mark, and what follows it, are left out.

    Raises UsageError for options that differ from those of the log, LogError where its messages cannot be continued.
    """
    state: FormatState = log.format_state
    writer = KoblenzWriter(out, **options)
    if writer.size_reading is not state.size_reading or writer.mark != state.mark:
        text = f"the log has size_reading {state.size_reading.name!r} and valid_mark 0x{state.mark:02X}"
        raise UsageError(f"{text}, which all of its messages share", path=log.name)
    wrong = next((p for p in log.problems if p.code in ("header", "after end")), None)
    if wrong is not None or state.index_room is None:
        text = "messages begin inside the index" if wrong is None else wrong.text
        raise LogError(
            f"cannot be continued: {text}",
            path=log.name,
            hint="write it again by logreel.recover, and append to that",
        )
    end = None if state.end == state.source.size else state.end
    note = read_utc_note(state.source, end) if state.has_utc_note else None
    writer.schemas.own |= read_types(state.source)
    out.keep_old(state.end)
    writer.go_on(state.index_room, note)
    rows = {ch.number: slice(0, len(ch)) for ch in log.channels.values()}
    for batch in in_file_order(state.index, rows):
        writer.time_index.add(batch.time, batch.offset - HEAD)
    writer.continue_channels(log)
    return writer
