"""Writing a part of a log, and a log sorted by time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from logreel.io.output_stream import Destination
from logreel.log.log import Log
from logreel.ops.rewrite.engine import rewrite
from logreel.ops.rewrite.parts import part_of
from logreel.ops.rewrite.target import CopyOptions, Rewritten, Target, WindowsWritten
from logreel.ops.selection import Selection, check_keywords, keywords
from logreel.registry.open import as_log_to_copy

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.joined_log import Openable


@keywords(CopyOptions, Selection, Target)
def slice_log(
    src: Openable | Log,
    dst: Destination,
    *,
    selection: Selection | None = None,
    definitions: Definitions = (),
    **options: Unpack[CopyOptions],
) -> Rewritten:
    """Write a part of a log as a log of the same format, in the same order.

    dst          a path, or a binary file object, which is written in order
    selection    what to write; its members can be given as keyword arguments instead. A channel that is joined from
                 others includes these
    definitions  as for ``logreel.open``; the new log contains those that it needs
    options      members of ``Selection``; compression and chunk_bytes (None: as in the source); options of the format
                 of the new log, as for ``logreel.create``: ``{"version": "1.2"}``; force to replace *dst*; strict to
                 write nothing if something would be left out; and progress, which is called with the number of
                 messages written and the total

    Of windows, ``around=logreel.Around("voltage_v < 14", before="10s", after="30s")``, the new log has all, and the
    result has them as ``windows``.

    Raises UsageError, TopicError, UnsupportedError for a format that cannot be written, LogError if *dst* exists, or
    no condition of the windows begins to hold.
    """
    check_keywords(slice_log, options)
    chosen, target = Selection.of(selection, options), Target.of(dst, options)
    with as_log_to_copy(src, definitions) as log:
        part = part_of(log, chosen)
        return WindowsWritten.of(rewrite([part], target), part.windows)


@keywords(CopyOptions, Selection, Target)
def sort_log(
    src: Openable | Log,
    dst: Destination,
    *,
    selection: Selection | None = None,
    definitions: Definitions = (),
    **options: Unpack[CopyOptions],
) -> Rewritten:
    """Write a log, or a part of it, with its messages sorted by time; parameters as for ``slice``."""
    check_keywords(sort_log, options)
    chosen, target = Selection.of(selection, options), Target.of(dst, options)
    with as_log_to_copy(src, definitions) as log:
        part = part_of(log, chosen)
        return WindowsWritten.of(rewrite([part], target, by_time=True), part.windows)
