"""Writing parts of a log: slice, split, sort."""

from __future__ import annotations

import itertools
import os
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from logreel.errors import LogError, UsageError
from logreel.index.message_index import MessageIndex
from logreel.io.output_stream import Destination
from logreel.log.joined_log import names_of
from logreel.log.log import Log
from logreel.log.times import Time, interval, intervals
from logreel.ops.open_logs import as_open_log
from logreel.ops.rewrite.parts import Part, select_part, whole_log, with_members
from logreel.ops.rewrite.rewrite import rewrite
from logreel.ops.rewrite.target import Progress, Rewritten, Target, format_of

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.joined_log import Openable

PathLike = str | os.PathLike[str]
#: start <= time < end, ns; None: unbounded.
Span = tuple[int | None, int | None]
#: Most files of a split.
MOST_PARTS = 10_000
#: Approximate size of a record header, bytes.
EACH = 32
#: Most characters of a topic in a file name.
NAME = 100
_UNSAFE = re.compile(r"[^A-Za-z0-9_.\-\[\]]+")


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
    with as_open_log(src, definitions) as log:
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
    compression: str | None = None,
    chunk_bytes: int | None = None,
    options: Mapping[str, Any] | None = None,
    force: bool = False,
    progress: Progress | None = None,
    definitions: Definitions = (),
) -> Rewritten:
    """Write a log with its messages sorted by time; parameters as for ``slice``."""
    with as_open_log(src, definitions) as log:
        target = Target.of(dst, compression, chunk_bytes, force, progress, options)
        return rewrite([whole_log(log)], target, by_time=True)


def split(
    src: Openable | Log,
    folder: PathLike,
    *,
    topics: str | Iterable[str] | None = None,
    exclude: str | Iterable[str] = (),
    start: Time | None = None,
    end: Time | None = None,
    every: int | None = None,
    size: int | None = None,
    by_topic: bool = False,
    by_segment: bool = False,
    compression: str | None = None,
    chunk_bytes: int | None = None,
    options: Mapping[str, Any] | None = None,
    force: bool = False,
    progress: Progress | None = None,
    definitions: Definitions = (),
) -> list[Rewritten]:
    """Split a log into several ones in *folder*, which is created if missing; return one result per part.

    topics, exclude, start, end  as for ``slice``; with *by_segment*, times apply to each segment separately
    every     duration of each part in ns, counted from *start*, or from the start of the log
    size      largest size of a part in bytes; single messages may exceed it
    by_topic  one part per channel; text, parameters and dropouts go with the channel with most messages
    by_segment  one part for each of several logs in one file; see ``Log.segments``

    Exactly one of *every*, *size*, *by_topic* and *by_segment* is required; the others are as for ``slice``. If a part
    cannot be written, those before it are removed. Raises as ``slice`` does.
    """
    if sum((every is not None, size is not None, by_topic, by_segment)) != 1:
        raise UsageError("split by one of: time, size, topic, segment")
    with as_open_log(src, definitions) as log:
        span = interval(log, start, end) if not by_segment else (None, None)
        fmt = format_of(log)
        base, suffix, place = *_stem(log, fmt.suffixes), Path(folder)
        if place.exists() and not place.is_dir():
            raise LogError("is a file, not a folder", path=os.fspath(folder))
        names = [ch.topic for ch in select_part(log, topics, exclude).channels]
        if by_segment:
            named = list(_by_segment(log, topics, exclude, start, end))
        else:
            named = list(_by_topic(log, names, span) if by_topic else _by_time(log, names, span, every, size))
        place.mkdir(exist_ok=True)
        todo, done = deque(named), list[Rewritten]()
        try:
            while todo:
                name, part = todo.popleft()
                path = place / f"{base}_{name or f'{len(done):03d}'}{suffix}"
                target = Target(
                    os.fspath(path),
                    compression,
                    force,
                    progress=progress,
                    chunk_bytes=chunk_bytes,
                    options=options or {},
                )
                one = rewrite([part], target)
                halves = _halves(part) if size is not None and one.size > size else []
                if halves:
                    path.unlink()
                    todo.extendleft(("", half) for half in reversed(halves))
                else:
                    done.append(one)
        except BaseException:
            for one in done:
                Path(one.path).unlink(missing_ok=True)
            raise
        return done


def _stem(log: Log, suffixes: tuple[str, ...]) -> tuple[str, str]:
    """Return the name of a log without suffix, and its suffix or the usual one of the format."""
    name = os.path.basename(names_of(log)[0])
    suffix = next((s for s in suffixes if name.lower().endswith(s)), "")
    stem = _UNSAFE.sub("_", name[: len(name) - len(suffix)]).strip("._")
    return stem or "log", suffix or suffixes[0]


def _by_time(
    log: Log, names: list[str], span: Span, every: int | None, size: int | None
) -> Iterator[tuple[str, Part]]:
    first, last = span
    for start, end in itertools.pairwise([first, *_cuts(log, names, span, every, size), last]):
        yield "", select_part(log, names, start=start, end=end)


def _halves(part: Part) -> list[Part]:
    """Return *part* as two parts, cut at its middle message; [] if all messages have one time."""
    index = part.log.index
    times = np.sort(np.concatenate([index.times(n)[rows] for n, rows in part.rows.items()]))
    later = times[times > times[0]] if len(times) else times
    if not len(later):
        return []
    cut = int(max(times[len(times) // 2], later[0]))
    names = [ch.topic for ch in part.channels]
    return [select_part(part.log, names, start=a, end=b) for a, b in ((part.start, cut), (cut, part.end))]


def _by_segment(
    log: Log,
    topics: str | Iterable[str] | None,
    exclude: str | Iterable[str],
    start: Time | None,
    end: Time | None,
) -> Iterator[tuple[str, Part]]:
    numbers = [one.number for one in log.segments if one.messages]
    logs = [log.segment(number) for number in numbers]
    for number, one, (first, last) in zip(numbers, logs, intervals(logs, start, end), strict=True):
        if (first is None and last is None) or one.holds_between(first, last):
            yield f"segment{number}", select_part(one, topics, exclude, first, last)


def _by_topic(log: Log, chosen: list[str], span: Span) -> Iterator[tuple[str, Part]]:
    channels = log.match(chosen)
    plain = [ch for ch in channels if not ch.reserved]
    most = max(plain, key=len, default=None)
    names: set[str] = set()
    for ch in plain:
        name = label = _UNSAFE.sub("_", ch.topic).strip("._")[:NAME] or "topic"
        n = 1
        while name.lower() in names:
            n += 1
            name = f"{label}-{n}"
        names.add(name.lower())
        mine = [c.topic for c in channels if c is ch or (c.reserved and ch is most)]
        yield name, select_part(log, mine, start=span[0], end=span[1])


def _cuts(log: Log, names: list[str], span: Span, every: int | None, size: int | None) -> list[int]:
    """Return the start times of all parts except the first."""
    if log.start is None or log.end is None:
        return []
    first, last = span
    begin = log.start if first is None else max(log.start, first)
    stop = log.end if last is None else min(log.end, last - 1)
    if every is not None:
        if every <= 0:
            raise UsageError("a part lasts longer than nothing")
        count = max(0, stop - begin) // every
        if count >= MOST_PARTS:
            raise UsageError(f"that makes {count + 1} files; at most {MOST_PARTS} are written")
        return [begin + every * n for n in range(1, count + 1)]
    if size is None or size <= 0:
        raise UsageError("a part holds more than nothing")
    return _cuts_by_size(log.index, [ch.number for ch in log.match(names)], span, log.size, size)


def _cuts_by_size(index: MessageIndex, channels: list[int], span: Span, total: int, limit: int) -> list[int]:
    """Return times that cut messages of *channels* into parts of at most *limit* bytes, of *total* for all channels."""
    weights = sum(index.bytes_of(n) + EACH * int(index.counts[n]) for n in range(len(index.counts)))
    scale = total / max(1, weights)
    used, base, cuts = 0.0, 0.0, list[int]()
    for piece in index.select_batches(channels, *span):
        sums = used + np.cumsum((piece.size + EACH) * scale)
        while (over := int(sums.searchsorted(base + limit, side="right"))) < len(sums):
            # Messages of one time stay in one part, even if they exceed the limit.
            side: Literal["left", "right"] = "right" if cuts and piece.time[over] <= cuts[-1] else "left"
            over = int(piece.time.searchsorted(piece.time[over], side=side))
            if over == len(sums):
                break
            cuts.append(int(piece.time[over]))
            base = float(sums[over - 1]) if over else used
            if len(cuts) >= MOST_PARTS:
                raise UsageError(f"that makes more than {MOST_PARTS} files")
        used = float(sums[-1])
    return cuts
