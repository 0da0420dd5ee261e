"""Splitting a log into several: by time, size, channel, segment, value of a field, or condition."""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from logreel.errors import LogError, UsageError
from logreel.index.message_index import MessageIndex
from logreel.io.atomic_file import sync_folder
from logreel.log.decrypted import decrypted_notes
from logreel.log.joined_log import names_of
from logreel.log.log import Log
from logreel.log.times import Time, interval, intervals, utc_shift, utc_text
from logreel.ops.open_logs import as_log_to_copy
from logreel.ops.rewrite.part_names import KEYS, NAME, PartNames, safe
from logreel.ops.rewrite.parts import Part, select_part
from logreel.ops.rewrite.rewrite import rewrite
from logreel.ops.rewrite.target import Progress, Rewritten, Target, format_of
from logreel.registry.registry import states_of

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


@dataclass(frozen=True, slots=True)
class Rule:
    """A way to split; *keys*: what its parts have besides KEYS, *name*: template of their names."""

    name: str
    keys: tuple[str, ...] = ()


RULES = {
    "every": Rule("{stem}_{index:03}"),
    "size": Rule("{stem}_{index:03}"),
    "by_topic": Rule("{stem}_{topic}", ("topic", "value")),
    "by_segment": Rule("{stem}_segment{segment}", ("segment", "value")),
    "on": Rule("{stem}_{index:03}_{value}", ("value",)),
    "where": Rule("{stem}_{index:03}"),
}


@dataclass(frozen=True, slots=True)
class Piece:
    """One part of a split; *labels*: values of further keys of names."""

    part: Part
    labels: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Choice:
    """The channels to write; *latched* as for ``select_part``."""

    topics: list[str]
    keep_latched: bool
    latched: list[str]

    def part(self, log: Log, start: int | None, end: int | None) -> Part:
        """Return the messages with start <= time < end."""
        return select_part(
            log, self.topics, start=start, end=end, keep_latched=self.keep_latched, latched=self.latched
        )


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
    on: str | None = None,
    where: str | Iterable[str] = (),
    name: str | None = None,
    keep_latched: bool = False,
    latched: str | Iterable[str] = (),
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
    on        ``topic.field``: a new part at each change of its value; what is before the first value belongs to it
    where     conditions in SQL on fields, each about one channel: a part for each interval in which all are true, from
              a message that meets one to the next message of that channel that does not
    name      template of the file names, ``{stem}_{index:03}_{value}``; keys: ``stem`` name of the log without suffix,
              ``index`` number of the part from 0, ``start`` and ``end`` ns, ``utc`` start in UTC, and by rule ``value``
              (of *on*, or the name of that state where the format knows it; topic, segment), ``topic``, ``segment``;
              None: by rule
    keep_latched, latched  as for ``slice``, at the start of each part

    Exactly one of *every*, *size*, *by_topic*, *by_segment*, *on* and *where* is required; the others are as for
    ``slice``. If a part cannot be written, those before it are removed. Raises as ``slice`` does, and LogError if the
    conditions are never true.
    """
    given = {
        "every": every is not None,
        "size": size is not None,
        "by_topic": by_topic,
        "by_segment": by_segment,
    }
    given |= {"on": on is not None, "where": bool(where)}
    if sum(given.values()) != 1:
        raise UsageError("split by one of: time, size, topic, segment, value of a field, condition")
    rule = RULES[next(key for key, is_given in given.items() if is_given)]
    with as_log_to_copy(src, definitions) as log:
        decrypted_notes(log)
        span = interval(log, start, end) if not by_segment else (None, None)
        fmt = format_of(log)
        stem, suffix = _stem(log, fmt.suffixes)
        names = PartNames(rule.name if name is None else name, suffix, (*KEYS, *rule.keys))
        place = Path(folder)
        if place.exists() and not place.is_dir():
            raise LogError("is a file, not a folder", path=os.fspath(folder))
        chosen = [ch.topic for ch in select_part(log, topics, exclude).channels]
        keep = [latched] if isinstance(latched, str) else list(latched)
        choice = Choice(chosen, keep_latched or bool(keep), keep)
        if by_segment:
            pieces = list(_by_segment(log, topics, exclude, start, end, choice))
        elif by_topic:
            pieces = list(_by_topic(log, choice, span))
        elif on is not None:
            pieces = list(_by_value(log, choice, span, on))
        elif where:
            pieces = list(_by_condition(log, choice, span, where))
        else:
            pieces = list(_by_time(log, choice, span, every, size))
        if not place.exists():
            place.mkdir()
            sync_folder(place.absolute().parent)
        todo, done = deque(pieces), list[Rewritten]()
        try:
            while todo:
                piece = todo.popleft()
                file = names.name({"stem": stem, "index": len(done), **_times(piece.part), **piece.labels})
                path = place / file
                target = Target(
                    os.fspath(path),
                    compression,
                    force,
                    progress=progress,
                    chunk_bytes=chunk_bytes,
                    options=options or {},
                )
                one = rewrite([piece.part], target)
                halves = _halves(piece.part, choice) if size is not None and one.size > size else []
                if halves:
                    path.unlink()
                    names.give_back(file)
                    todo.extendleft(Piece(half, piece.labels) for half in reversed(halves))
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
    stem = safe(name[: len(name) - len(suffix)], NAME)
    return "log" if stem == "_" else stem, suffix or suffixes[0]


def _times(part: Part) -> dict[str, object]:
    """Return start and end of a part for its name."""
    log, shift = part.log, utc_shift(part.log)
    start = log.start if part.start is None else part.start
    end = log.end if part.end is None else part.end
    utc = "" if shift is None or start is None else utc_text(start + shift, 3)
    utc = utc.replace("-", "").replace(":", "").replace("T", "-")
    return {"start": start or 0, "end": end or 0, "utc": utc or "no-utc"}


def _by_time(log: Log, choice: Choice, span: Span, every: int | None, size: int | None) -> Iterator[Piece]:
    first, last = span
    for start, end in itertools.pairwise([first, *_cuts(log, choice.topics, span, every, size), last]):
        yield Piece(choice.part(log, start, end))


def _by_value(log: Log, choice: Choice, span: Span, on: str) -> Iterator[Piece]:
    from logreel.ops.query.held import one_field, value_changes

    changes = value_changes(log, on, span, MOST_PARTS)
    ch, path = one_field(log, on)
    states = {str(number): name for number, name in states_of(log).get(ch.topic, {}).get(path, {}).items()}
    ends = [*(start for start, _ in changes[1:]), span[1]]
    for (start, value), end in zip(changes, ends, strict=True):
        yield Piece(choice.part(log, start, end), {"value": states.get(value, value)})


def _by_condition(log: Log, choice: Choice, span: Span, where: str | Iterable[str]) -> Iterator[Piece]:
    from logreel.ops.query.held import true_intervals

    found = true_intervals(log, where, span)
    if len(found) > MOST_PARTS:
        raise UsageError(f"that makes {len(found)} files; at most {MOST_PARTS} are written")
    if not found:
        raise LogError("the condition is never true, so there is nothing to write", path=log.name)
    for start, end in found:
        yield Piece(choice.part(log, start, end))


def _halves(part: Part, choice: Choice) -> list[Part]:
    """Return *part* as two parts, cut at its middle message; [] if all messages have one time."""
    index = part.log.index
    times = np.sort(np.concatenate([index.times(n)[rows] for n, rows in part.rows.items()]))
    later = times[times > times[0]] if len(times) else times
    if not len(later):
        return []
    cut = int(max(times[len(times) // 2], later[0]))
    return [choice.part(part.log, a, b) for a, b in ((part.start, cut), (cut, part.end))]


def _by_segment(
    log: Log,
    topics: str | Iterable[str] | None,
    exclude: str | Iterable[str],
    start: Time | None,
    end: Time | None,
    choice: Choice,
) -> Iterator[Piece]:
    numbers = [one.number for one in log.segments if one.messages]
    logs = [log.segment(number) for number in numbers]
    for number, one, (first, last) in zip(numbers, logs, intervals(logs, start, end), strict=True):
        if (first is None and last is None) or one.holds_between(first, last):
            keep, latched = choice.keep_latched, choice.latched
            part = select_part(one, topics, exclude, first, last, keep_latched=keep, latched=latched)
            yield Piece(part, {"segment": number, "value": number})


def _by_topic(log: Log, choice: Choice, span: Span) -> Iterator[Piece]:
    channels = log.match(choice.topics)
    plain = [ch for ch in channels if not ch.reserved]
    most = max(plain, key=len, default=None)
    for ch in plain:
        mine = [c.topic for c in channels if c is ch or (c.reserved and ch is most)]
        named = [topic for topic in choice.latched if ch in log.match(topic)]
        one = Choice(mine, choice.keep_latched, named)
        label = safe(ch.topic) if safe(ch.topic) != "_" else "topic"
        yield Piece(one.part(log, *span), {"topic": label, "value": label})


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
