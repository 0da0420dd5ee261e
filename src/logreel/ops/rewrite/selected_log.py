"""The part of a log that a selection means, as a log of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from pathlib import Path

from logreel.errors import notice
from logreel.log.log import Log
from logreel.log.scan import Parameter
from logreel.log.times import interval
from logreel.ops.selection import Selection

#: Most bytes of a file of which a part is kept in memory; parts of larger ones are temporary files.
IN_MEMORY = 64 << 20


@contextmanager
def selected_log(log: Log, selection: Selection) -> Iterator[Log]:
    """Return the log that ``slice`` would write of *log* for *selection*, open and with the same name.

    So everything that it says, such as its start, text and parameters, is that of the part; parameters have the
    values in force at its start. Its problems are those of *log*, at their places there. Without a choice, *log*
    itself is returned.

    Raises UsageError, TopicError and UnsupportedError as ``slice`` does.
    """
    log = log if selection.segment is None else log.segment(selection.segment)
    if not selection.is_part:
        yield log
        return
    # Most logs are asked about as a whole.
    from logreel.ops.rewrite.slice import slice_log
    from logreel.registry.open import open_log

    def write(to: BytesIO | Path) -> None:
        done = slice_log(log, to, selection=replace(selection, segment=None))
        for text in (*done.notes, *done.skipped):
            notice(f"{log.name}: {text}")

    with tempfile.TemporaryDirectory(prefix="logreel-") as folder:
        source: bytes | Path
        if log.size <= IN_MEMORY:
            buffer = BytesIO()
            write(buffer)
            source = buffer.getvalue()
        else:
            source = Path(folder) / f"part{Path(log.name).suffix}"
            write(source)
        with open_log(source, format=log.format) as written:
            part = written
            if part.has_other_axes and not log.has_other_axes:
                part = part.ros_axes()
            part.name = log.name
            parameters = list(part.parameters.values())
            if parameters and selection.has_interval:
                span = interval(log, selection.start, selection.end)
                parameters = [in_force(parameter, *span) for parameter in log.parameters.values()]
            yield part.derive(problems=list(log.problems), parameters=lambda: parameters)


def in_force(parameter: Parameter, start: int | None, end: int | None) -> Parameter:
    """Return a parameter with its value in force at *start*, and its changes with start <= time < end."""
    value, changes = parameter.value, []
    for change in parameter.changes:
        if start is not None and change.time < start:
            value = change.value
        elif end is None or change.time < end:
            changes.append(change)
    return replace(parameter, value=value, changes=tuple(changes))
