"""Writing a part of a log, and a log sorted by time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from logreel.io.output_stream import Destination
from logreel.log.log import Log
from logreel.log.times import Time, interval
from logreel.ops.open_logs import as_log_to_copy
from logreel.ops.rewrite.parts import part_of, select_part, with_members
from logreel.ops.rewrite.rewrite import rewrite
from logreel.ops.rewrite.target import Progress, Rewritten, Target

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.joined_log import Openable
    from logreel.ops.selection import Selection


def slice_log(
    src: Openable | Log,
    dst: Destination,
    *,
    topics: str | Iterable[str] | None = None,
    exclude: str | Iterable[str] = (),
    start: Time | None = None,
    end: Time | None = None,
    where: str | Iterable[str] = (),
    count: int | None = None,
    keep_latched: bool = False,
    latched: str | Iterable[str] = (),
    segment: int | None = None,
    compression: str | None = None,
    chunk_bytes: int | None = None,
    options: Mapping[str, Any] | None = None,
    force: bool = False,
    progress: Progress | None = None,
    definitions: Definitions = (),
) -> Rewritten:
    """Write a part of a log as a log of the same format, in the same order.

    dst              a path, or a binary file object, which is written in order
    topics, exclude  names or shell patterns; None: all, including text, parameters and dropouts; a channel that is
                     joined from others includes these
    start, end       ns, or texts; half-open interval
    where            conditions in SQL on fields, ``"battery_status.voltage_v < 14"``: only messages that meet them, of
                     the channels that have these fields; see "Messages that meet a condition" in the documentation
    count            only the first *count* messages in the file
    keep_latched     also keep what is in force at *start*: the last message of latched topics, all static transforms,
                     parameters and actors; such messages get the time of the first one in the slice
    latched          topics that count as latched, in addition to those marked in the log and those always latched
                     (``/tf_static``, ``/map``, ``/robot_description`` …); implies *keep_latched*
    segment          number of one log of a file with several; see ``Log.segments``
    compression      compression of the new file; None: as in the source
    chunk_bytes      size of chunks; None: about as in the source
    options          further options of the format of the new log, as for ``logreel.create``: ``{"version": "1.2"}``
    force            replace *dst*
    progress         called with the number of messages written and the total
    definitions      as for ``logreel.open``; the new log contains those that it needs

    Raises UsageError, TopicError, UnsupportedError for a format that cannot be written, LogError if *dst* exists.
    """
    with as_log_to_copy(src, definitions) as log:
        log = log if segment is None else log.segment(segment)
        first, last = interval(log, start, end)
        wanted = None if topics is None else with_members(log, topics)
        keep = keep_latched or bool(latched)
        part = select_part(log, wanted, exclude, first, last, count, keep, latched, where)
        target = Target.of(dst, compression, chunk_bytes, force, progress, options)
        return rewrite([part], target)


def sort_log(
    src: Openable | Log,
    dst: Destination,
    *,
    selection: Selection | None = None,
    compression: str | None = None,
    chunk_bytes: int | None = None,
    options: Mapping[str, Any] | None = None,
    force: bool = False,
    progress: Progress | None = None,
    definitions: Definitions = (),
) -> Rewritten:
    """Write a log with its messages sorted by time; parameters as for ``slice``.

    selection  write only this part of the log; None: all of it
    """
    with as_log_to_copy(src, definitions) as log:
        log = log if selection is None or selection.segment is None else log.segment(selection.segment)
        target = Target.of(dst, compression, chunk_bytes, force, progress, options)
        return rewrite([part_of(log, selection)], target, by_time=True)
