"""Merging of several logs into one, in one pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from logreel.errors import UsageError
from logreel.log.joined_log import Together, clock_shifts, earlier
from logreel.log.log import Log
from logreel.log.part_checks import RecordingFacts, boot_differences
from logreel.log.times import interval
from logreel.log.topic_match import match_in_each
from logreel.ops.rewrite.engine import NewChannel, NewLog, Transform, rewrite
from logreel.ops.rewrite.parts import Part
from logreel.ops.rewrite.streams import MessageBatch
from logreel.ops.rewrite.target import Rewritten, Target, TargetOptions
from logreel.ops.selection import Selection, SpanOptions


class MergeOptions(SpanOptions, TargetOptions, total=False):
    """What to merge, and how to write it, as keyword arguments."""


@dataclass(frozen=True, slots=True)
class Joining:
    """How several logs become one; the members are parameters of ``merge``."""

    align: str | None = None
    anyway: bool = False
    prefixes: Sequence[str] = ()
    rename: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MergedLog:
    """One of the logs.

    part  its channels, with all messages
    log   the log by the clock that its messages have with the shift of *part*
    """

    part: Part
    log: Log


def merge_same_format(logs: Sequence[Log], chosen: Selection, target: Target, joining: Joining) -> Rewritten:
    """Merge open logs of one format; parameters as for ``merge``."""
    if not logs:
        raise UsageError("there is nothing to merge")
    check_prefixes(logs, joining.prefixes)
    for old in joining.rename:
        if not any(old in log for log in logs):
            raise UsageError(f"no log has a channel {old!r} to rename")
    merged = [
        MergedLog(
            Part(log, {ch.number: slice(0, len(ch)) for ch in log.channels.values() if ch.topic in kept}), log
        )
        for log, kept in zip(logs, kept_topics(logs, chosen), strict=True)
    ]
    shifts, span = _aligned(merged, chosen, joining)
    parts = list[Part]()
    for source, shift, prefix in zip(merged, shifts, joining.prefixes or [""] * len(logs), strict=True):
        log, changes = source.log, joining.rename
        start, end = earlier(span, shift)
        rows = {number: log.index.rows_between(number, start, end) for number in source.part.rows}
        names = {
            ch.number: prefix + changes.get(ch.topic, ch.topic)
            for ch in log.channels.values()
            if not ch.reserved and (prefix or ch.topic in changes)
        }
        parts.append(Part(log, rows, start, end, names=names, shift=shift))
    return rewrite(_joined(parts, merged, joining), target, by_time=True)


def merge_translated(
    merged: Sequence[MergedLog],
    chosen: Selection,
    target: Target,
    joining: Joining,
    translation: Transform,
) -> Rewritten:
    """Merge logs whose messages *translation* gives other schemas; parameters as for ``merge``."""
    shifts, span = _aligned(merged, chosen, joining)
    parts = [
        replace(source.part, shift=source.part.shift + shift, content_shift=source.part.shift)
        for source, shift in zip(merged, shifts, strict=True)
    ]
    transforms = [translation, _Arranged(joining, span)]
    return rewrite(_joined(parts, merged, joining), target, True, transforms)


def _aligned(
    merged: Sequence[MergedLog], chosen: Selection, joining: Joining
) -> tuple[list[int], tuple[int | None, int | None]]:
    """Return ns to add to the times of each log, and the interval by the clock of the new log."""
    logs = [source.log for source in merged]
    reason = _different_clocks(logs) if joining.align is None else ""
    if reason and not joining.anyway:
        raise UsageError(
            f"{reason}: their times have to be aligned",
            hint="align is utc, start or a length of time; anyway insists",
        )
    shifts = clock_shifts(logs, joining.align)
    return shifts, interval(Together(logs, shifts), chosen.start, chosen.end)


def _joined(parts: list[Part], merged: Sequence[MergedLog], joining: Joining) -> list[Part]:
    """Return *parts*, of which the first says so if the logs are of different recordings."""
    reason = _different_clocks([source.log for source in merged]) if joining.align is None else ""
    if not reason:
        return parts
    notes = (*parts[0].notes, f"merged anyway: {reason}")
    return [replace(parts[0], joined=reason, notes=notes), *parts[1:]]


@dataclass
class _Arranged(Transform):
    """Topics and the interval of a merged log."""

    joining: Joining
    span: tuple[int | None, int | None]

    def channels(self, new: NewLog, channels: Sequence[NewChannel]) -> Sequence[NewChannel]:
        """Return the channels with their new topics; raises UsageError for a channel to rename that no log has."""
        changes, prefixes = self.joining.rename, self.joining.prefixes
        topics = {ch.topic for ch in channels}
        for old in changes:
            if old not in topics:
                raise UsageError(f"no log has a channel {old!r} to rename")
        for ch in channels:
            prefix = prefixes[ch.part] if prefixes else ""
            if not ch.topic.startswith("~") and (prefix or ch.topic in changes):
                ch.topic, ch.is_named = prefix + changes.get(ch.topic, ch.topic), True
        return channels

    def batches(self, new: NewLog, batches: Iterable[MessageBatch]) -> Iterator[MessageBatch]:
        """Yield the messages in the interval."""
        start, end = self.span
        for batch in batches:
            is_inside = np.ones(len(batch.time), bool) if start is None else batch.time >= start
            if end is not None:
                is_inside &= batch.time < end
            if not is_inside.all():
                new.pass_over(batch.rows(np.flatnonzero(~is_inside)))
                batch = batch.rows(np.flatnonzero(is_inside))
            yield batch


def check_prefixes(logs: Sequence[Log], prefixes: Sequence[str]) -> None:
    """Raise UsageError if there is not one prefix for each log, or none at all."""
    if prefixes and len(prefixes) != len(logs):
        raise UsageError(f"{len(prefixes)} prefixes for {len(logs)} logs; expected one per log")


def _different_clocks(logs: Sequence[Log]) -> str:
    """Return a sentence on logs whose clocks began at different times, so that their times have nothing in common."""
    recorded = [RecordingFacts.of(part, ()) for log in logs for part in log.parts]
    return next(boot_differences(recorded), "")


def span_of(selection: Selection | None, options: MergeOptions) -> Selection:
    """Return the channels and the interval of a merge; raises UsageError for what only a single log has."""
    chosen = Selection.of(selection, options)
    chosen.refuse("merge", "where", "segment", "count", "latched", "keep_latched", "around")
    return chosen


def kept_topics(logs: Sequence[Log], chosen: Selection) -> list[set[str]]:
    """Return the selected topics of each log; raises TopicError for a name or pattern that matches nothing."""
    channels = [log.channels for log in logs]
    kept = [set(log) for log in logs] if chosen.topics is None else match_in_each(channels, chosen.topics)
    kept = [names - more for names, more in zip(kept, match_in_each(channels, chosen.exclude), strict=True)]
    if any(channels) and not any(kept):
        raise UsageError("no channel is left")
    return kept
