"""The part of a log that a selection means, as a log of its own that is not written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from logreel.dataclass import replace
from logreel.errors import notice
from logreel.log.joined_log import JoinedLog, in_part, scan_of
from logreel.log.log import Log
from logreel.log.scan import Parameter, ScanPart
from logreel.log.times import interval
from logreel.ops.selection import Selection
from logreel.registry.registry import formats

if TYPE_CHECKING:
    from logreel.ops.rewrite.parts import Part


@contextmanager
def selected_log(log: Log, selection: Selection) -> Iterator[Log]:
    """Return the log that ``slice`` would write of *log* for *selection*, with the same name, without writing it.

    So everything that it says, such as its start, text and parameters, is that of the part; parameters have the
    values in force at its start. Its problems are those of *log*, at their places there. Without a choice, *log*
    itself is returned. A format that cannot be written can be asked about a part, too.

    Raises UsageError and TopicError as ``slice`` does.
    """
    log = log if selection.segment is None else log.segment(selection.segment)
    if not selection.is_part:
        yield log
        return
    # Most logs are asked about as a whole.
    from logreel.ops.rewrite.parts import part_of

    selection = replace(selection, segment=None)
    part = part_of(log, selection)
    for text in part.notes:
        notice(f"{log.name}: {text}")
    selected = log_of_part(part)
    if selection.has_interval:
        span = interval(log, selection.start, selection.end)
        selected = selected.derive(
            parameters=lambda: [in_force(parameter, *span) for parameter in log.parameters.values()]
        )
    yield selected


@contextmanager
def sliced_log(log: Log, selection: Selection) -> Iterator[Log]:
    """Return the log that ``slice`` writes of *log* for *selection*, open, see ``written_apart``; else as above."""
    if not selection.is_part and selection.segment is None:
        yield log
        return
    from logreel.io.two_pass import written_apart
    from logreel.ops.rewrite.engine import rewrite
    from logreel.ops.rewrite.parts import part_of
    from logreel.ops.rewrite.target import Target
    from logreel.registry.open import as_log_to_copy, open_log

    with as_log_to_copy(log) as source:
        part = part_of(source, selection)
        with (
            written_apart(
                lambda path, out: rewrite([part], Target(path), out=out), Path(log.name).suffix
            ) as (_, content),
            open_log(content, format=log.format) as written,
        ):
            written.name = log.name
            yield written


def log_of_part(part: Part) -> Log:
    """Return the log of the messages of *part*, which are read where they are."""
    from logreel.index.part import PartIndex

    log = part.log
    if isinstance(log, JoinedLog):
        return _joined(log, part)
    index = PartIndex(log.index, part.rows)
    begins = None if part.is_whole else part.begins
    selected = ScanPart(index, _shown(part), part.start, part.end, begins)
    return log.derive(**selected.changes(log.scan))


def _shown(part: Part) -> set[int]:
    """Return the numbers of the channels; channels of content that is not in messages are there if they have some."""
    return {ch.number for ch in part.channels if part.count(ch.number) or not ch.reserved}


def _joined(log: JoinedLog, part: Part) -> Log:
    """Return the log of a part of several files: that of the parts of the files."""
    from logreel.ops.rewrite.parts import by_file

    parts = [log_of_part(file) for file in by_file(part)]
    if (share := formats()[log.format].share) is not None:
        parts = list(share(parts, log.shifts))
    numbers = [
        {ch.number: own[topic].number for topic, ch in file.channels.items() if topic in own}
        for file, own in zip(log.parts, parts, strict=True)
    ]
    index = log.index.with_parts([part_of_file.index for part_of_file in parts], numbers)
    members = [[(n, topic) for n, topic in names if topic in parts[n]] for names in log.members]
    in_files = {in_part(problem, file.name) for file in log.parts for problem in file.problems}
    problems = [problem for problem in log.problems if problem not in in_files]
    scan = scan_of(parts, log.shifts, index, log.scan.channels, problems)
    scan = replace(
        scan,
        epoch=log.epoch,
        metadata=log.scan.metadata,
        utc_offset=lambda: log.utc_offset,
        utc_notes=lambda: log.utc_notes,
        shown={number for number, names in enumerate(members) if names},
    )
    joined = JoinedLog(parts, log.shifts, scan, members, list)
    joined.name, joined.options = log.name, log.options
    return joined


def in_force(parameter: Parameter, start: int | None, end: int | None) -> Parameter:
    """Return a parameter with its value in force at *start*, and its changes with start <= time < end."""
    value, changes = parameter.value, []
    for change in parameter.changes:
        if start is not None and change.time < start:
            value = change.value
        elif end is None or change.time < end:
            changes.append(change)
    return replace(parameter, value=value, changes=tuple(changes))
