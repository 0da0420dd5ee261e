"""Merging of several logs into one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from logreel.errors import UsageError
from logreel.io.output_stream import Destination
from logreel.log.clock_shifts import Together, clock_shifts, earlier
from logreel.log.log import Log
from logreel.log.part_checks import RecordingFacts, boot_differences
from logreel.log.times import interval
from logreel.log.topic_match import match_in_each
from logreel.ops.rewrite.parts import Part
from logreel.ops.rewrite.rewrite import rewrite
from logreel.ops.rewrite.target import Rewritten, Target, TargetOptions
from logreel.ops.selection import Selection, SpanOptions, keywords
from logreel.registry.open_logs import open_many, read_itself

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.joined_log import Openable


class MergeOptions(SpanOptions, TargetOptions, total=False):
    """What to merge, and how to write it, as keyword arguments."""


@keywords(MergeOptions, Selection, Target)
def merge(
    sources: Iterable[Openable | Log],
    dst: Destination,
    *,
    align: str | None = None,
    anyway: bool = False,
    prefixes: Sequence[str] = (),
    rename: Mapping[str, str] | None = None,
    selection: Selection | None = None,
    definitions: Definitions = (),
    **options: Unpack[MergeOptions],
) -> Rewritten:
    """Merge logs of one format into one log, by time. Parameters: see ``outputs.merge_formats.merge``.

    topics, exclude  as for ``slice``; each has to match a channel of at least one log
    start, end  as for ``slice``, by the clock of the new log; relative times count from the start of the earliest log
    align     shift of the clocks of the second and later logs: ``utc`` aligns wall-clock times, ``start`` aligns the
              starts, or a duration such as ``+2.5s``; None: no shift
    anyway    True: also logs whose clocks began at different times, or anew
    prefixes  one per log, added before its topics; may be empty
    rename    new topics by old ones, applied before prefixes
    selection, definitions, options  as for ``slice``, without conditions, a count, and what is latched

    Channels with equal topic and definition become one; with different definitions all but the first get another name,
    which ``notes`` lists. Metadata, parameters and attachments are taken from the first log that has them. Raises
    UsageError for logs of several formats, and as ``slice`` does.
    """
    chosen = span_of(selection, options)
    with contextlib.ExitStack() as stack:
        logs = [read_itself(log, also_remote=False) for log in open_many(sources, stack, definitions)]
        if not logs:
            raise UsageError("there is nothing to merge")
        if prefixes and len(prefixes) != len(logs):
            raise UsageError(f"{len(prefixes)} prefixes for {len(logs)} logs; expected one per log")
        changes = dict(rename or {})
        for old in changes:
            if not any(old in log for log in logs):
                raise UsageError(f"no log has a channel {old!r} to rename")
        kept = kept_topics(logs, chosen)
        reason = _different_clocks(logs) if align is None else ""
        if reason and not anyway:
            raise UsageError(
                f"{reason}: their times have to be aligned",
                hint="align is utc, start or a length of time; anyway insists",
            )
        shifts = clock_shifts(logs, align)
        span = interval(Together(logs, shifts), chosen.start, chosen.end)
        parts = [
            _part(log, names, shift, span, prefix, changes)
            for log, names, shift, prefix in zip(
                logs, kept, shifts, prefixes or [""] * len(logs), strict=True
            )
        ]
        if reason:
            parts[0] = replace(parts[0], joined=reason, notes=(f"merged anyway: {reason}",))
        target = Target.of(dst, options)
        return rewrite(parts, target, by_time=True)


def _different_clocks(logs: Sequence[Log]) -> str:
    """Return a sentence on logs whose clocks began at different times, so that their times have nothing in common."""
    recorded = [RecordingFacts.of(part, ()) for log in logs for part in log.parts]
    return next(boot_differences(recorded), "")


def span_of(selection: Selection | None, options: MergeOptions) -> Selection:
    """Return the channels and the interval of a merge; raises UsageError for what only a single log has."""
    chosen = Selection.of(selection, options)
    chosen.refuse("merge", "where", "segment", "count", "latched", "keep_latched")
    return chosen


def kept_topics(logs: Sequence[Log], chosen: Selection) -> list[set[str]]:
    """Return the selected topics of each log; raises TopicError for a name or pattern that matches nothing."""
    channels = [log.channels for log in logs]
    kept = [set(log) for log in logs] if chosen.topics is None else match_in_each(channels, chosen.topics)
    kept = [names - more for names, more in zip(kept, match_in_each(channels, chosen.exclude), strict=True)]
    if any(channels) and not any(kept):
        raise UsageError("no channel is left")
    return kept


def _part(
    log: Log,
    kept: set[str],
    shift: int,
    span: tuple[int | None, int | None],
    prefix: str,
    changes: Mapping[str, str],
) -> Part:
    start, end = earlier(span, shift)
    rows = {
        ch.number: log.index.rows_between(ch.number, start, end)
        for ch in log.channels.values()
        if ch.topic in kept
    }
    names = {
        ch.number: prefix + changes.get(ch.topic, ch.topic)
        for ch in log.channels.values()
        if not ch.reserved and (prefix or ch.topic in changes)
    }
    return Part(log, rows, start, end, names=names, shift=shift)
