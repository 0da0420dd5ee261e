"""Logs of several formats as one log of the format that all tools read."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from logreel.errors import UsageError
from logreel.io.atomic_file import exists, target_of
from logreel.log.log import Log
from logreel.log.times import Time
from logreel.ops.open_logs import open_many
from logreel.ops.rewrite.merge import kept_topics
from logreel.ops.rewrite.merge import merge as merge_alike
from logreel.ops.rewrite.target import Progress, Rewritten
from logreel.outputs.convert import convert
from logreel.registry.format import Format
from logreel.registry.open import open_log
from logreel.registry.registry import formats

if TYPE_CHECKING:
    from logreel.io.source import Definitions, Readable


def merge(
    sources: Iterable[Readable | Log],
    dst: str | os.PathLike[str],
    *,
    topics: str | Iterable[str] | None = None,
    exclude: str | Iterable[str] = (),
    start: Time | None = None,
    end: Time | None = None,
    align: str | None = None,
    prefixes: Sequence[str] = (),
    rename: Mapping[str, str] | None = None,
    compression: str | None = None,
    chunk_bytes: int | None = None,
    force: bool = False,
    progress: Progress | None = None,
    definitions: Definitions = (),
) -> Rewritten:
    """Write several logs as one log, by time; tells what was written.

    dst       of the format of the logs; or ``x.mcap`` for logs of any formats, each of which is converted as
              ``logreel.convert`` does
    topics, exclude  as for ``slice``; each has to fit a channel of one log at least
    start, end  as for ``slice``, by the clock that the new log gets, counted from where the first of the logs begins
    align     how the clocks of the logs behind the first one are moved: ``utc`` so that wall-clock times agree, which
              all become where the clocks are of different kinds; ``start`` so that all begin together; or a length of
              time such as ``+2.5s``; None: not at all
    prefixes  one per log, put in front of its topics; an empty one for none
    rename    new topics by old ones, before prefixes
    compression, chunk_bytes, force, progress, definitions  as for ``slice``

    Channels of one topic and one definition become one; of a topic with several definitions further ones get another
    name, which ``notes`` tells. What the logs say besides messages is taken from the first one that says it. Raises
    UsageError for logs of several formats where *dst* is not for all of them, and for clocks of different kinds that
    are not to be moved, and as ``slice`` does.
    """
    with contextlib.ExitStack() as stack:
        logs = open_many(sources, stack, definitions)
        fmt = _exchange(os.fspath(dst), logs)
        if fmt is None:
            return merge_alike(
                logs,
                dst,
                topics=topics,
                exclude=exclude,
                start=start,
                end=end,
                align=align,
                prefixes=prefixes,
                rename=rename,
                compression=compression,
                chunk_bytes=chunk_bytes,
                force=force,
                progress=progress,
            )
        _check_output(os.fspath(dst), logs, force)
        kept = kept_topics(logs, topics, exclude)
        if prefixes and len(prefixes) != len(logs):
            raise UsageError(f"{len(prefixes)} prefixes for {len(logs)} logs; expected one per log")
        chosen = [n for n, names in enumerate(kept) if names]
        everything = topics is None and not exclude
        place = os.path.dirname(os.path.abspath(dst))
        with tempfile.TemporaryDirectory(prefix=".logreel-merge-", dir=place) as folder:
            notes, skipped, same, known = list[str](), list[str](), list[Log](), dict[str, str]()
            for n in chosen:
                log = logs[n]
                if log.format == fmt.name and everything:
                    same.append(log)
                    continue
                path = Path(folder, f"{n}{fmt.suffixes[0]}")
                known[str(path)] = log.name
                names = None if everything else sorted(kept[n])
                done = convert(log, path, topics=names, compression=compression)
                notes += done.notes
                skipped += done.skipped
                same.append(stack.enter_context(open_log(path)))
            _check_clocks(same, align, known)
            try:
                made = merge_alike(
                    same,
                    dst,
                    start=start,
                    end=end,
                    align=align,
                    prefixes=[prefixes[n] for n in chosen] if prefixes else (),
                    rename=rename,
                    compression=compression,
                    chunk_bytes=chunk_bytes,
                    force=force,
                    progress=progress,
                )
            except UsageError as error:
                error.path = known.get(error.path or "", error.path)
                raise
            return replace(
                made,
                notes=(*notes, *(_named(text, known) for text in made.notes)),
                skipped=(*skipped, *(_named(text, known) for text in made.skipped)),
            )


def _exchange(dst: str, logs: Sequence[Log]) -> Format | None:
    """The format for exchange that *dst* names, where not all logs are of it; else None."""
    for fmt in formats().values():
        if fmt.exchange and fmt.create is not None and dst.lower().endswith(fmt.suffixes):
            return fmt if any(log.format != fmt.name for log in logs) else None
    return None


def _check_output(dst: str, logs: Sequence[Log], force: bool) -> None:
    """Refuse early what would be refused after all logs are converted."""
    if any(os.path.exists(log.name) and os.path.realpath(log.name) == os.path.realpath(dst) for log in logs):
        raise UsageError("input and output are the same file", path=dst)
    if target_of(dst).exists() and not force:
        raise exists(dst)


def _named(text: str, known: Mapping[str, str]) -> str:
    """*text* with the logs that were merged in place of the files that they were converted to."""
    for made, name in known.items():
        text = text.replace(made, name)
    return text


def _check_clocks(logs: Sequence[Log], align: str | None, known: Mapping[str, str]) -> None:
    kinds = {"boot": "since boot", "start": "since its start", "unix": "since 1970"}
    other = next((log for log in logs if log.epoch != logs[0].epoch), None)
    if align is None and other is not None:
        first = f"{_named(logs[0].name, known)} counts {kinds[logs[0].epoch]}"
        text = f"{first}, {_named(other.name, known)} {kinds[other.epoch]}: their clocks have to be aligned"
        raise UsageError(f'{text} (align="utc", "start" or a length of time)')
