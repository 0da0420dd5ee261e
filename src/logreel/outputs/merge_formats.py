"""Merging logs of several formats into one log of a format for exchange (MCAP)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from logreel.errors import UsageError
from logreel.io.atomic_file import exists, keep_sources, target_of
from logreel.io.output_stream import Destination
from logreel.log.log import Log
from logreel.log.source_files import inputs_of
from logreel.ops.rewrite.merge import (
    Joining,
    MergedLog,
    MergeOptions,
    check_prefixes,
    kept_topics,
    merge_same_format,
    merge_translated,
    span_of,
)
from logreel.ops.rewrite.parts import Part, by_file, shift_clock, whole_log
from logreel.ops.rewrite.target import Rewritten, Target, log_output_of
from logreel.ops.selection import Selection, check_keywords, keywords
from logreel.registry.format import Format
from logreel.registry.open import open_many, read_itself
from logreel.registry.registry import formats

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.joined_log import Openable


@keywords(MergeOptions, Selection, Target)
def merge(
    sources: Iterable[Openable | Log],
    dst: Destination,
    *,
    format: str | None = None,
    align: str | None = None,
    anyway: bool = False,
    prefixes: Sequence[str] = (),
    rename: Mapping[str, str] | None = None,
    selection: Selection | None = None,
    definitions: Definitions = (),
    **options: Unpack[MergeOptions],
) -> Rewritten:
    """Merge several logs into one log, in time order; return a summary.

    dst       path of the new log, in the format of the logs; or ``x.mcap`` for logs of any formats, each of which is
              converted as by ``logreel.convert``; or a binary file object, which is written in order
    format    for a file object: the format of the new log, such as ``mcap``; None: that of the logs
    topics, exclude  as for ``slice``; each has to match a channel of at least one log
    start, end  as for ``slice``, by the clock of the new log; relative times count from the start of the earliest log
    align     how the clocks of all logs but the first are shifted: ``utc`` so that UTC times agree (clocks of different
              kinds all become UTC); ``start`` so that all logs start at the same time; or by a duration such as
              ``+2.5s``; None: not shifted
    anyway    True: merge logs whose clocks began at different times as if they had one clock
    prefixes  one prefix per log for its topics; may be empty
    rename    new topics by old topics, before prefixes
    selection, definitions, options  as for ``slice``, without conditions, a count, and what is latched

    Channels with the same topic and definition become one channel. If a topic has several definitions, further channels
    get another name, which is in ``notes``. Metadata, parameters and attachments are taken from the first log that has
    them. Raises UsageError for logs of several formats if *dst* is not for exchange, for clocks of different kinds
    without *align*, and as ``slice`` does.
    """
    check_keywords(merge, options)
    chosen = span_of(selection, options)
    with contextlib.ExitStack() as stack:
        logs = [read_itself(log, also_remote=False) for log in open_many(sources, stack, definitions)]
        path, stream, _ = log_output_of(dst, format)
        joining = Joining(align, anyway, prefixes, dict(rename or {}))
        fmt = _format_for_exchange(path, logs)
        if fmt is None:
            return merge_same_format(logs, chosen, Target.of(stream or path, options), joining)
        target = Target.of(stream or path, options, foreign=True, format=fmt.name)
        if stream is None:
            _check_output(path, logs, target.force)
        else:
            stream.keep_sources(name for log in logs for name in inputs_of(log))
        kept = kept_topics(logs, chosen)
        check_prefixes(logs, prefixes)
        used = [n for n, names in enumerate(kept) if names]
        is_all = chosen.topics is None and not chosen.exclude
        # Loaded here, because logs of one format do not need it.
        from logreel.outputs.convert import part_to_convert
        from logreel.outputs.foxglove.exchange import Exchange

        merged, stays = list[MergedLog](), set[int]()
        for n in used:
            log = logs[n]
            if log.format == fmt.name and is_all:
                stays.update(id(source.log) for source in by_file(whole_log(log)))
                merged += [MergedLog(part, part.log) for part in by_file(whole_log(log))]
                continue
            part = part_to_convert(log, target, Selection(None if is_all else sorted(kept[n])))
            merged.append(MergedLog(part, _by_new_clock(part)))
        _check_clocks([source.log for source in merged], align)
        joining = replace(joining, prefixes=[prefixes[n] for n in used] if prefixes else ())
        exchange = Exchange(
            converts=lambda part: id(part.log) not in stays, field_shift=lambda part: part.content_shift or 0
        )
        return merge_translated(merged, chosen, target, joining, exchange)


def _by_new_clock(part: Part) -> Log:
    """Return the log of a part by the clock that its messages have with their shift, as a conversion writes it."""
    log, index, shift = part.log, part.log.index, part.shift
    if not part.is_whole:
        times = [channel_times for number in part.rows if len(channel_times := index.times(number))]
        first = min((int(channel_times.min()) for channel_times in times), default=None)
        last = max((int(channel_times.max()) for channel_times in times), default=None)
        log = log.derive(bounds=lambda: (first, last))
    if shift:
        numbers = [n for n in range(len(index.rules)) if index.synthetic(n) is None]
        log = log.derive(index=index.with_times({n: index.times(n) + shift for n in numbers}))
    return shift_clock(log, shift)


def _format_for_exchange(dst: str, logs: Sequence[Log]) -> Format | None:
    """Return the format for exchange of *dst* if some log has another format, else None."""
    for fmt in formats().values():
        if fmt.exchange and fmt.create is not None and dst.lower().endswith(fmt.suffixes):
            return fmt if any(log.format != fmt.name for log in logs) else None
    return None


def _check_output(dst: str, logs: Sequence[Log], force: bool) -> None:
    """Raise for an output that cannot be written, before the logs are converted."""
    keep_sources(dst, [name for log in logs for name in inputs_of(log)])
    if target_of(dst).exists() and not force:
        raise exists(dst)


def _check_clocks(logs: Sequence[Log], align: str | None) -> None:
    """Raise UsageError for clocks of different kinds without *align*."""
    kinds = {"boot": "since boot", "start": "since its start", "unix": "since 1970"}
    other = next((log for log in logs if log.epoch != logs[0].epoch), None)
    if align is None and other is not None:
        first = f"{logs[0].name} counts {kinds[logs[0].epoch]}"
        text = f"{first}, {other.name} {kinds[other.epoch]}: their clocks have to be aligned"
        raise UsageError(f'{text} (align="utc", "start" or a length of time)')
