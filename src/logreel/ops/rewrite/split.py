"""Splitting a log into several: by time, size, channel, segment, value of a field, or condition."""

from __future__ import annotations

import itertools
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import Formatter
from typing import TYPE_CHECKING, Literal, Unpack

import numpy as np

from logreel.errors import LogError, UsageError
from logreel.index.message_index import MessageIndex
from logreel.io.atomic_file import sync_folder
from logreel.log.log import Log
from logreel.log.source_files import decrypted_notes
from logreel.log.times import Length, duration_ns, interval, intervals, utc_shift, utc_text
from logreel.ops.rewrite.engine import rewrite
from logreel.ops.rewrite.parts import Part, select_part
from logreel.ops.rewrite.target import CopyOptions, Rewritten, Target, WindowsWritten, format_of
from logreel.ops.selection import Around, Selection, check_keywords, keywords
from logreel.registry.open import as_log_to_copy
from logreel.registry.registry import states_of

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.joined_log import Openable
    from logreel.ops.query.windows import OnsetWindow


#: Keys of templates that every rule of splitting has.
KEYS = ("stem", "index", "start", "end", "utc")
#: Keys that only some rules have.
MORE = ("value", "topic", "segment", "condition", "number")
#: Most characters of a value, and bytes of a file name without its suffix.
VALUE, NAME = 100, 180
_UNSAFE = re.compile(r"[^A-Za-z0-9_.\-\[\]]+")
#: Separators of paths, and characters that no file system or terminal likes.
_NO_NAME = re.compile(r"[/\\:\x00-\x1f\x7f]")
_WIDTH = re.compile(r"0?\d{1,2}")


def safe(text: str, most: int = VALUE) -> str:
    """Return *text* with at most *most* characters, all safe in file names; ``_`` if none is left."""
    return _UNSAFE.sub("_", text).strip("._")[:most] or "_"


@dataclass
class PartNames:
    """Gives each part of a log a file name of its own, inside of one folder.

    template  text with keys in braces; numbers may have a width, ``{index:03}``
    suffix    suffix of the format, added unless the template ends with it
    keys      keys that have values

    Raises UsageError for a template that cannot be used.
    """

    template: str
    suffix: str
    keys: tuple[str, ...]
    _taken: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        if self.template.lower().endswith(self.suffix.lower()):
            self.template = self.template[: len(self.template) - len(self.suffix)]
        try:
            parts = list(Formatter().parse(self.template))
        except ValueError as error:
            raise UsageError(f"cannot read the name {self.template!r}: {error}") from None
        if not self.template:
            raise UsageError("a part needs a name")
        known = ", ".join(f"{{{key}}}" for key in self.keys)
        for text, key, width, conversion in parts:
            if _NO_NAME.search(text):
                raise UsageError(f"the name {self.template!r} is that of a file in the folder, not a path")
            if key is None:
                continue
            if key not in self.keys:
                why = " for this way to split" if key in MORE else ""
                raise UsageError(f"no key {{{key}}} in names{why}; there are {known}")
            if conversion or (width and not _WIDTH.fullmatch(width)):
                raise UsageError(f"cannot read {{{key}:{width}}} in a name: write a width, as {{index:03}}")

    def name(self, values: Mapping[str, object]) -> str:
        """Return the file name of the next part; *values*: of all keys, texts or whole numbers."""
        texts = {
            key: safe(str(value)) if not isinstance(value, int) else value for key, value in values.items()
        }
        wanted = "".join(
            text + ("" if key is None else _filled(texts[key], width or ""))
            for text, key, width, _ in Formatter().parse(self.template)
        )
        # A leading dot hides a file, a leading dash looks like an option.
        name = re.sub(r"^[.\-]+", "_", wanted.encode()[:NAME].decode("utf-8", "ignore"))
        free, n = name, 1
        while free.lower() in self._taken:
            n += 1
            free = f"{name}-{n}"
        self._taken.add(free.lower())
        return free + self.suffix

    def give_back(self, name: str) -> None:
        """Allow a name again, of a part that was not written."""
        self._taken.discard(name.removesuffix(self.suffix).lower())


def _filled(value: object, width: str) -> str:
    if isinstance(value, int):
        return format(value, f"0{width}d") if width else str(value)
    return str(value).ljust(int(width), "_") if width else str(value)


PathLike = str | os.PathLike[str]
#: start <= time < end, ns; None: unbounded.
Span = tuple[int | None, int | None]
#: Most files of a split.
MOST_PARTS = 10_000
#: Approximate size of a record header, bytes.
EACH = 32


@dataclass(frozen=True, slots=True)
class SplitRule:
    """A way to split; *keys*: what its parts have besides KEYS, *name*: template of their names."""

    name: str
    keys: tuple[str, ...] = ()


RULES = {
    "every": SplitRule("{stem}_{index:03}"),
    "size": SplitRule("{stem}_{index:03}"),
    "by_topic": SplitRule("{stem}_{topic}", ("topic", "value")),
    "by_segment": SplitRule("{stem}_segment{segment}", ("segment", "value")),
    "on": SplitRule("{stem}_{index:03}_{value}", ("value",)),
    "where": SplitRule("{stem}_{index:03}"),
    "around": SplitRule("{stem}_{condition}_{number:02}", ("condition", "number")),
}


@dataclass(frozen=True, slots=True)
class SplitPart:
    """One part of a split; *labels*: values of further keys of names; *windows*: the one that it is, or none."""

    part: Part
    labels: Mapping[str, object] = field(default_factory=dict)
    windows: tuple[OnsetWindow, ...] = ()


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """How to split *log*.

    chosen   channels to write, with what is latched; without interval and conditions
    span     start and end of what is split
    """

    log: Log
    chosen: Selection
    span: Span

    def part(self, start: int | None, end: int | None) -> Part:
        """Return the messages with start <= time < end."""
        return select_part(self.log, replace(self.chosen, start=start, end=end))


@keywords(CopyOptions, Selection, Target)
def split(
    src: Openable | Log,
    folder: PathLike,
    *,
    every: Length | None = None,
    size: int | None = None,
    by_topic: bool = False,
    by_segment: bool = False,
    on: str | None = None,
    name: str | None = None,
    selection: Selection | None = None,
    definitions: Definitions = (),
    **options: Unpack[CopyOptions],
) -> list[Rewritten]:
    """Split a log into several ones in *folder*, which is created if missing; return one result per part.

    every     duration of each part, counted from *start*, or from the start of the log: ns, ``"60s"``, a timedelta
    size      largest size of a part in bytes; single messages may exceed it
    by_topic  one part per channel; text, parameters and dropouts go with the channel with most messages
    by_segment  one part for each of several logs in one file; see ``Log.segments``. Times apply to each separately
    on        ``topic.field``: a new part at each change of its value; what is before the first value belongs to it
    name      template of the file names, ``{stem}_{index:03}_{value}``; keys: ``stem`` name of the log without suffix,
              ``index`` number of the part from 0, ``start`` and ``end`` ns, ``utc`` start in UTC, and by rule ``value``
              (of *on*, or the name of that state where the format knows it; topic, segment), ``topic``, ``segment``,
              of windows ``condition``, such as ``voltage_v-below-14``, and ``number`` from 1; None: by rule
    selection, definitions, options  as for ``slice``, with two differences: what is latched is kept at the start of
              each part, and *where*, conditions in SQL on fields, each about one channel, makes a part for each
              interval in which all are true, from a message that meets one to the next message of that channel that
              does not; *around* makes a part for each window, which the result has as ``windows``, always with what is
              latched

    Exactly one of *every*, *size*, *by_topic*, *by_segment*, *on*, *where* and *around* is required. If a part cannot
    be written, those before it are removed. Raises as ``slice`` does, and LogError if the conditions are never true.
    """
    check_keywords(split, options)
    chosen = Selection.of(selection, options)
    chosen.refuse("split", "count")
    rules = {"every": every is not None, "size": size is not None, "by_topic": by_topic}
    rules |= {"by_segment": by_segment, "on": on is not None, "where": bool(chosen.where)}
    rules["around"] = chosen.around is not None
    if sum(rules.values()) != 1:
        raise UsageError("split by one of: time, size, topic, segment, value of a field, condition, windows")
    length = None if every is None else duration_ns(every)
    rule = RULES[next(key for key, is_asked in rules.items() if is_asked)]
    with as_log_to_copy(src, definitions) as log:
        decrypted_notes(log)
        log = log if chosen.segment is None else log.segment(chosen.segment)
        span = interval(log, chosen.start, chosen.end) if not by_segment else (None, None)
        stem, suffix = _stem(log, format_of(log).suffixes)
        names = PartNames(rule.name if name is None else name, suffix, (*KEYS, *rule.keys))
        place = Path(folder)
        if place.exists() and not place.is_dir():
            raise LogError("is a file, not a folder", path=os.fspath(folder))
        channels = Selection(chosen.topics, chosen.exclude)
        topics = [ch.topic for ch in select_part(log, channels).channels]
        latched = [chosen.latched] if isinstance(chosen.latched, str) else list(chosen.latched)
        kept = Selection(topics, latched=latched, keep_latched=chosen.for_log.keeps_latched)
        plan = SplitPlan(log, kept, span)
        if by_segment:
            parts = list(_by_segment(log, chosen))
        elif by_topic:
            parts = list(_by_topic(plan))
        elif on is not None:
            parts = list(_by_value(plan, on))
        elif chosen.where:
            parts = list(_by_condition(plan, chosen.where))
        elif chosen.around is not None:
            parts = list(_by_window(plan, chosen.around))
        else:
            parts = list(_by_time(plan, length, size))
        if not place.exists():
            place.mkdir()
            sync_folder(place.absolute().parent)
        return _written(plan, parts, lambda file: Target.of(place / file, options), names, stem, size)


def _written(
    plan: SplitPlan,
    parts: Iterable[SplitPart],
    target_for: Callable[[str], Target],
    names: PartNames,
    stem: str,
    size: int | None,
) -> list[Rewritten]:
    """Write each piece, those larger than *size* as two; remove all after an error."""
    todo, done = deque(parts), list[Rewritten]()
    try:
        while todo:
            labelled = todo.popleft()
            file = names.name({"stem": stem, "index": len(done), **_times(labelled.part), **labelled.labels})
            target = target_for(file)
            written = rewrite([labelled.part], target)
            halves = _halves(plan, labelled.part) if size is not None and written.size > size else []
            if halves:
                Path(target.path).unlink()
                names.give_back(file)
                todo.extendleft(SplitPart(half, labelled.labels) for half in reversed(halves))
            else:
                done.append(WindowsWritten.of(written, labelled.windows))
    except BaseException:
        for written in done:
            Path(written.path).unlink(missing_ok=True)
        raise
    return done


def _stem(log: Log, suffixes: tuple[str, ...]) -> tuple[str, str]:
    """Return the name of a log without suffix, and its suffix or the usual one of the format."""
    name = os.path.basename(log.parts[0].name)
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


def _by_time(plan: SplitPlan, every: int | None, size: int | None) -> Iterator[SplitPart]:
    first, last = plan.span
    for start, end in itertools.pairwise([first, *_cuts(plan, every, size), last]):
        yield SplitPart(plan.part(start, end))


def _by_value(plan: SplitPlan, on: str) -> Iterator[SplitPart]:
    from logreel.ops.query.where import one_field, value_changes

    log = plan.log
    changes = value_changes(log, on, plan.span, MOST_PARTS)
    ch, path = one_field(log, on)
    states = {str(number): name for number, name in states_of(log).get(ch.topic, {}).get(path, {}).items()}
    ends = [*(start for start, _ in changes[1:]), plan.span[1]]
    for (start, value), end in zip(changes, ends, strict=True):
        yield SplitPart(plan.part(start, end), {"value": states.get(value, value)})


def _by_condition(plan: SplitPlan, where: str | Iterable[str]) -> Iterator[SplitPart]:
    from logreel.ops.query.where import true_intervals

    spans = true_intervals(plan.log, where, plan.span)
    if len(spans) > MOST_PARTS:
        raise UsageError(f"that makes {len(spans)} files; at most {MOST_PARTS} are written")
    if not spans:
        raise LogError("the condition is never true, so there is nothing to write", path=plan.log.name)
    for start, end in spans:
        yield SplitPart(plan.part(start, end))


def _by_window(plan: SplitPlan, around: Around | str) -> Iterator[SplitPart]:
    from logreel.ops.query.windows import windows_of

    windows = windows_of(plan.log, around, plan.span)
    if len(windows) > MOST_PARTS:
        raise UsageError(f"that makes {len(windows)} files; at most {MOST_PARTS} are written")
    for window in windows:
        labels = {"condition": window.label, "number": window.number}
        yield SplitPart(plan.part(window.start, window.end), labels, (window,))


def _halves(plan: SplitPlan, part: Part) -> list[Part]:
    """Return *part* as two parts, cut at its middle message; [] if all messages have one time."""
    index = part.log.index
    times = np.sort(np.concatenate([index.times(n)[rows] for n, rows in part.rows.items()]))
    later = times[times > times[0]] if len(times) else times
    if not len(later):
        return []
    cut = int(max(times[len(times) // 2], later[0]))
    halved = replace(plan, log=part.log)
    return [halved.part(a, b) for a, b in ((part.start, cut), (cut, part.end))]


def _by_segment(log: Log, chosen: Selection) -> Iterator[SplitPart]:
    numbers = [segment.number for segment in log.segments if segment.messages]
    logs = [log.segment(number) for number in numbers]
    spans = intervals(logs, chosen.start, chosen.end)
    for number, segment_log, (first, last) in zip(numbers, logs, spans, strict=True):
        if (first is None and last is None) or segment_log.holds_between(first, last):
            part = select_part(segment_log, replace(chosen, start=first, end=last))
            yield SplitPart(part, {"segment": number, "value": number})


def _by_topic(plan: SplitPlan) -> Iterator[SplitPart]:
    log, latched = plan.log, plan.chosen.latched
    channels = log.match(plan.chosen.topics)
    plain = [ch for ch in channels if not ch.reserved]
    most = max(plain, key=len, default=None)
    for ch in plain:
        topics = [c.topic for c in channels if c is ch or (c.reserved and ch is most)]
        named = [topic for topic in latched if ch in log.match(topic)]
        alone = replace(plan, chosen=replace(plan.chosen, topics=topics, latched=named))
        label = safe(ch.topic) if safe(ch.topic) != "_" else "topic"
        yield SplitPart(alone.part(*plan.span), {"topic": label, "value": label})


def _cuts(plan: SplitPlan, every: int | None, size: int | None) -> list[int]:
    """Return the start times of all parts except the first."""
    log, span = plan.log, plan.span
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
    return _cuts_by_size(log.index, [ch.number for ch in log.match(plan.chosen.topics)], span, log.size, size)


def _cuts_by_size(index: MessageIndex, channels: list[int], span: Span, total: int, limit: int) -> list[int]:
    """Return times that cut messages of *channels* into parts of at most *limit* bytes, of *total* for all channels."""
    weights = sum(index.bytes_of(n) + EACH * int(index.counts[n]) for n in range(len(index.counts)))
    scale = total / max(1, weights)
    used, base, cuts = 0.0, 0.0, list[int]()
    for batch in index.select_batches(channels, *span):
        sums = used + np.cumsum((batch.size + EACH) * scale)
        while (over := int(sums.searchsorted(base + limit, side="right"))) < len(sums):
            # Messages of one time stay in one part, even if they exceed the limit.
            side: Literal["left", "right"] = "right" if cuts and batch.time[over] <= cuts[-1] else "left"
            over = int(batch.time.searchsorted(batch.time[over], side=side))
            if over == len(sums):
                break
            cuts.append(int(batch.time[over]))
            base = float(sums[over - 1]) if over else used
            if len(cuts) >= MOST_PARTS:
                raise UsageError(f"that makes more than {MOST_PARTS} files")
        used = float(sums[-1])
    return cuts
