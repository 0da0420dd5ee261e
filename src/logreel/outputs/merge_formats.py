"""Merging logs of several formats into one log of a format for exchange (MCAP)."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from logreel.errors import UsageError
from logreel.io.atomic_file import exists, keep_sources, target_of
from logreel.io.output_stream import Destination
from logreel.log.joined_log import inputs_of
from logreel.log.log import Log
from logreel.ops.rewrite.merge import MergeOptions, kept_topics, span_of
from logreel.ops.rewrite.merge import merge as merge_same_format
from logreel.ops.rewrite.target import Rewritten, Target, TargetOptions, log_output_of
from logreel.ops.selection import Selection, keywords
from logreel.registry.format import Format
from logreel.registry.open import open_log
from logreel.registry.open_logs import open_many, read_itself
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
    chosen = span_of(selection, options)
    targeting: Any = {name: value for name, value in options.items() if name in TargetOptions.__annotations__}
    with contextlib.ExitStack() as stack:
        logs = [read_itself(log, also_remote=False) for log in open_many(sources, stack, definitions)]
        path, stream, _ = log_output_of(dst, format)
        target = stream or path
        fmt = _format_for_exchange(path, logs)
        if fmt is None:
            return merge_same_format(
                logs,
                target,
                align=align,
                anyway=anyway,
                prefixes=prefixes,
                rename=rename,
                selection=chosen,
                **targeting,
            )
        if stream is None:
            _check_output(path, logs, bool(options.get("force")))
        else:
            stream.keep_sources(name for log in logs for name in inputs_of(log))
        kept = kept_topics(logs, chosen)
        if prefixes and len(prefixes) != len(logs):
            raise UsageError(f"{len(prefixes)} prefixes for {len(logs)} logs; expected one per log")
        used = [n for n, names in enumerate(kept) if names]
        everything = chosen.topics is None and not chosen.exclude
        place = os.path.dirname(os.path.abspath(path)) if stream is None else None
        with tempfile.TemporaryDirectory(prefix=".logreel-merge-", dir=place) as folder:
            notes, skipped, same, known = list[str](), list[str](), list[Log](), dict[str, str]()
            for n in used:
                log = logs[n]
                if log.format == fmt.name and everything:
                    same.append(log)
                    continue
                # Loaded here, because logs of one format do not need it.
                from logreel.outputs.convert import convert

                made = Path(folder, f"{n}{fmt.suffixes[0]}")
                known[str(made)] = log.name
                names = None if everything else sorted(kept[n])
                done = convert(log, made, topics=names, compression=options.get("compression"))
                notes += done.notes
                skipped += done.skipped
                same.append(stack.enter_context(open_log(made)))
            _check_clocks(same, align, known)
            try:
                merged = merge_same_format(
                    same,
                    target,
                    align=align,
                    anyway=anyway,
                    prefixes=[prefixes[n] for n in used] if prefixes else (),
                    rename=rename,
                    selection=Selection(start=chosen.start, end=chosen.end),
                    **targeting,
                )
            except UsageError as error:
                error.path = known.get(error.path or "", error.path)
                raise
            return replace(
                merged,
                notes=(*notes, *(_with_log_names(text, known) for text in merged.notes)),
                skipped=(*skipped, *(_with_log_names(text, known) for text in merged.skipped)),
            )


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


def _with_log_names(text: str, known: Mapping[str, str]) -> str:
    """Return *text* with the names of temporary files replaced by those of the logs they were converted from."""
    for made, name in known.items():
        text = text.replace(made, name)
    return text


def _check_clocks(logs: Sequence[Log], align: str | None, known: Mapping[str, str]) -> None:
    """Raise UsageError for clocks of different kinds without *align*."""
    kinds = {"boot": "since boot", "start": "since its start", "unix": "since 1970"}
    other = next((log for log in logs if log.epoch != logs[0].epoch), None)
    if align is None and other is not None:
        first = f"{_with_log_names(logs[0].name, known)} counts {kinds[logs[0].epoch]}"
        text = f"{first}, {_with_log_names(other.name, known)} {kinds[other.epoch]}: their clocks have to be aligned"
        raise UsageError(f'{text} (align="utc", "start" or a length of time)')
