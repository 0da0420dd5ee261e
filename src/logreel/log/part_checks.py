"""Order of the files of one log, and the Problems between them: duplicates, overlaps, missing files, other clocks."""

from __future__ import annotations

import itertools
import os
import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from logreel.dataclass import dataclass
from logreel.errors import Problem
from logreel.io.source import Buffer
from logreel.log.log import Log
from logreel.log.times import duration_text, utc_shift

#: Codes of the Problems between the files of one log.
BETWEEN_FILES = (
    "duplicate-part", "missing-part", "part-order", "part-gap", "part-overlap", "part-clock", "part-identity",
    "part-definition",
)  # fmt: skip
#: A longer silence between two numbered files of a recording is noted, ns. Recorders that split lose less.
SILENCE = 10**9
#: Consecutive files of a recorder overlap by less, ns: its threads stamp messages before they queue them.
SLIGHT = 10**9
#: Clocks of one recording drift less against UTC, ns.
DRIFT = 60 * 10**9
#: Bytes of files that are compared at once.
STEP = 1 << 18
#: Most missing numbers that are named one by one.
NAMED = 5

#: Messages, and topics, by which repeats are recognised.
REPEATED, TOPICS = 64, 16
#: Files with numbers that follow each other at once are offered as parts of one recording, ns.
FOLLOWS = 10 * 10**9
#: Words of names of metadata that say which robot, machine or run a log is of, in any format.
IDENTITY = (
    "vehicle", "robot", "drone", "uav", "host", "hostname", "machine_id", "boot_id", "sys_uuid", "serial_number",
    "tail_number", "call_sign",
)  # fmt: skip

_NUMBER = re.compile(r"(\d+)")
#: Names of metadata in words: ``robot-serial-number`` and ``robotSerialNumber`` are ``robot_serial_number``.
_NO_WORD, _HUMP = re.compile(r"[^a-z0-9]+"), re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
#: Number of a channel among those of one topic.
_INSTANCE = re.compile(r"\[\d+\]$")


def natural_key(name: str) -> tuple[object, ...]:
    """Return a sort key by which ``part_2`` comes before ``part_10``."""
    parts = _NUMBER.split(name)
    return tuple((int(text), text) if i % 2 else text.casefold() for i, text in enumerate(parts))


def shape_of(name: str) -> str:
    """Return a file name with ``#`` in place of each number; equal for the files that one recorder splits."""
    return _NUMBER.sub("#", os.path.basename(name))


def numbers(names: Sequence[str]) -> list[int] | None:
    """Return the number of each file of a recording; None if the names do not have one that distinguishes them.

    That is the last number in names that are else alike, except in numbers before it, such as a date.
    """
    bases = [os.path.splitext(os.path.basename(name))[0] for name in names]
    if len({shape_of(base) for base in bases}) != 1 or not _NUMBER.search(bases[0]):
        return None
    part_numbers = [int(_NUMBER.findall(base)[-1]) for base in bases]
    return part_numbers if len(set(part_numbers)) == len(part_numbers) else None


def is_sequence(numbered: Sequence[int]) -> bool:
    """Return whether numbers count files, with few missing; numbers such as dates and robots' names do not."""
    return max(numbered) - min(numbered) < 2 * len(numbered) + NAMED


def duplicates(logs: Sequence[Log]) -> Iterator[tuple[int, int]]:
    """Yield the numbers of logs with the same bytes as an earlier one, and of that one."""
    sizes = Counter(log.size for log in logs)
    first: dict[tuple[int, bytes], list[int]] = {}
    for n, log in enumerate(logs):
        if sizes[log.size] == 1:
            continue
        same = first.setdefault((log.size, log.source.head), [])
        for other in same:
            if _is_same(log.source.data, logs[other].source.data):
                yield n, other
                break
        else:
            same.append(n)


def _is_same(first: Buffer, second: Buffer) -> bool:
    """Return whether two buffers of equal size have the same bytes; files that differ mostly do at their end."""
    cuts = range(0, len(first), STEP)
    return all(np.array_equal(first[at : at + STEP], second[at : at + STEP]) for at in reversed(cuts))


@dataclass(frozen=True, slots=True)
class RecordingFacts:
    """What tells of which recording a log is a part.

    start, end   ns of its clock; None if it is empty
    utc          ns from its clock to UTC, or None
    identity     names of the robot, machine or run, by the name in the metadata
    definitions  definitions of each topic with messages, or their digests
    log          the open log, to compare messages; None: it is closed
    """

    name: str
    epoch: str
    start: int | None
    end: int | None
    utc: int | None
    identity: Mapping[str, str]
    definitions: Mapping[str, frozenset[Hashable]]
    log: Log | None = None

    @classmethod
    def of(cls, log: Log, identity: Collection[str]) -> RecordingFacts:
        """Return the facts of an open log; *identity* as in its Format."""
        keys_by_topic: dict[str, set[Hashable]] = {}
        for ch in log.channels.values():
            if not ch.reserved and len(ch):
                # Definitions may differ in comments.
                key = ch.metadata.get("md5sum") or ch.schema
                keys_by_topic.setdefault(_INSTANCE.sub("", ch.topic), set()).add(key)
        return cls(
            log.name,
            log.epoch,
            log.start,
            log.end,
            utc_shift(log),
            dict(_identity(log.metadata, identity)),
            {topic: frozenset(keys) for topic, keys in keys_by_topic.items()},
            log,
        )


def _identity(
    metadata: Mapping[str, Any], names: Collection[str], before: str = ""
) -> Iterator[tuple[str, str]]:
    """Yield the names and values of metadata that say which robot, machine or run a log is of."""
    for name, value in metadata.items():
        if isinstance(value, Mapping):
            yield from _identity(value, names, f"{before}{name}.")
        elif isinstance(value, (str, int)) and value not in ("", 0):
            words = f"_{_NO_WORD.sub('_', _HUMP.sub('_', name).lower()).strip('_')}_"
            if name in names or any(f"_{word}_" in words for word in IDENTITY):
                yield before + name, str(value)


def differences(logs: Sequence[RecordingFacts], aligned: bool = False) -> Iterator[tuple[str, str]]:
    """Yield a code of BETWEEN_FILES and a sentence for each kind of fact by which logs are of different recordings.

    aligned  True: their clocks differ by intention
    """
    clocks = () if aligned else clock_differences(logs)
    for code, texts in (
        ("part-identity", _different_identity(logs)),
        ("part-clock", clocks),
        ("part-definition", _different_definitions(logs)),
    ):
        yield from ((code, text) for text in itertools.islice(texts, 1))


def clock_differences(logs: Sequence[RecordingFacts]) -> Iterator[str]:
    """Yield a sentence for each two logs whose clocks began at different times, as far as they tell."""
    yield from _different_clocks(logs)
    yield from _restarted_clocks(logs)


def boot_differences(logs: Sequence[RecordingFacts]) -> Iterator[str]:
    """Yield the same, except of clocks that count from the start of their log: these begin anew by their nature."""
    yield from _different_clocks(logs)
    yield from _restarted_clocks([log for log in logs if log.epoch == "boot"])


def _different_identity(logs: Sequence[RecordingFacts]) -> Iterator[str]:
    known: dict[str, tuple[str, RecordingFacts]] = {}
    for log in logs:
        for name, value in log.identity.items():
            other, first = known.setdefault(name, (value, log))
            if value != other:
                yield f"{name} is {other:.60} in {first.name} and {value:.60} in {log.name}"


def _different_clocks(logs: Sequence[RecordingFacts]) -> Iterator[str]:
    clocks = [(log, log.utc) for log in logs if log.epoch != "unix" and log.utc is not None]
    for (first, one), (log, other) in ((clocks[0], clock) for clock in clocks[1:]):
        if abs(one - other) > DRIFT:
            apart = duration_text(abs(one - other))
            yield f"the clocks of {first.name} and {log.name} began {apart} apart in UTC"


def _restarted_clocks(logs: Sequence[RecordingFacts]) -> Iterator[str]:
    """Yield logs whose clock began again: what both have was at the same times of their clocks."""
    spans = [
        (log.start, log.end, log)
        for log in logs
        if log.epoch != "unix" and log.start is not None and log.end is not None
    ]
    spans.sort(key=lambda span: span[0])
    if not spans:
        return
    latest = spans[0]
    for span in spans[1:]:
        (first, last, before), (start, end, log) = latest, span
        common = min(last, end) - start
        topics = [topic for topic in log.definitions if topic in before.definitions]
        slight = common <= min(SLIGHT, max(last - first, end - start) // 2)
        repeats = [] if slight else [_repeats(before, log, topic, start) for topic in topics[:TOPICS]]
        if repeats and sum(repeats) * 2 <= len(repeats):
            since = "boot" if log.epoch == "boot" else "their start"
            yield (
                f"the clocks of {before.name} and {log.name} began anew: both have {topics[0]!r} "
                f"in the same {duration_text(common)} after {since}"
            )
        latest = max(latest, span, key=lambda bounds: bounds[1])


def _repeats(before: RecordingFacts, log: RecordingFacts, topic: str, start: int) -> bool:
    """Return whether two logs have the same messages from *start* on, as overlapping slices of one log have."""
    if before.log is None or log.log is None or topic not in before.log or topic not in log.log:
        return False
    some, others = (
        {
            (message.time, bytes(message.data))
            for message in itertools.islice(one.messages(topic, start=start), REPEATED)
        }
        for one in (before.log, log.log)
    )
    return len(some & others) * 2 > min(len(some), len(others))


def _different_definitions(logs: Sequence[RecordingFacts]) -> Iterator[str]:
    known: dict[str, tuple[frozenset[Hashable], RecordingFacts]] = {}
    for log in logs:
        for topic, keys in log.definitions.items():
            others, first = known.setdefault(topic, (keys, log))
            if not keys & others:
                yield f"{topic!r} is defined in another way in {log.name} than in {first.name}"


def follow_each_other(logs: Sequence[RecordingFacts]) -> bool:
    """Return whether logs, in the order of their numbers, are parts of one recording by their clocks and contents."""
    if any(log.start is None or log.end is None for log in logs):
        return False
    gaps = [(b.start or 0) - (a.end or 0) for a, b in pairwise(logs)]
    return all(-SLIGHT <= gap <= FOLLOWS for gap in gaps) and not any(differences(logs))


def overlaps(logs: Sequence[Log], shifts: Sequence[int]) -> bool:
    """Return whether any log begins before an earlier one ends."""
    return any(begins < ends for begins, ends in _edges(logs, shifts))


def _edges(logs: Sequence[Log], shifts: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the start of each log that has messages, and the latest end of those before it."""
    last: int | None = None
    for log, by in zip(logs, shifts, strict=True):
        if log.start is None or log.end is None:
            continue
        if last is not None:
            yield log.start + by, last
        last = log.end + by if last is None else max(last, log.end + by)


def problems_between(logs: Sequence[Log], shifts: Sequence[int]) -> list[Problem]:
    """Return the Problems of logs, in their order, as the parts of one log."""
    return list(_missing(logs, shifts)) + list(_overlapping(logs, shifts)) + list(_other_clocks(logs, shifts))


def _problem(code: str, text: str) -> Problem:
    return Problem(code, 0, 0, False, text)


def _missing(logs: Sequence[Log], shifts: Sequence[int]) -> Iterator[Problem]:
    numbered = numbers([log.name for log in logs])
    if numbered is None or not is_sequence(numbered):
        return
    gone = sorted(set(range(min(numbered), max(numbered))) - set(numbered))
    if gone:
        named = ", ".join(map(str, gone[:NAMED])) + (
            f" and {len(gone) - NAMED} more" if len(gone) > NAMED else ""
        )
        missing = (
            f"files with the numbers {named} are" if len(gone) > 1 else f"a file with the number {named} is"
        )
        yield _problem("missing-part", f"{missing} missing between {logs[0].name} and {logs[-1].name}")
    for (a, log, by), (b, other, more) in pairwise(zip(numbered, logs, shifts, strict=True)):
        later = (other.start or 0) + more - (log.start or 0) - by
        if b < a and not _is_slight(later, log, other):
            yield _problem(
                "part-order", f"{other.name} begins after {log.name}, although its number is lower"
            )
    for (a, log, by), (b, other, more) in pairwise(zip(numbered, logs, shifts, strict=True)):
        if log.end is None or other.start is None or b != a + 1:
            continue
        silence = other.start + more - log.end - by
        if silence > SILENCE:
            yield _problem(
                "part-gap", f"no message for {duration_text(silence)} between {log.name} and {other.name}"
            )


def _is_slight(overlap: int, log: Log, other: Log) -> bool:
    """Return whether *overlap*, in ns, is at most SLIGHT and half of the longer log, as between a recorder's files."""
    return overlap <= min(SLIGHT, max(log.duration or 0, other.duration or 0) // 2)


def _overlapping(logs: Sequence[Log], shifts: Sequence[int]) -> Iterator[Problem]:
    """Yield Problems for neighbours that overlap in time and have channels of the same topic."""
    for n, (other, more) in enumerate(zip(logs, shifts, strict=True)):
        for log, by in zip(logs[:n], shifts[:n], strict=True):
            if log.end is None or other.start is None or other.end is None:
                continue
            late = log.end + by - other.start - more
            if late <= 0 or _is_slight(late, log, other):
                continue
            topics = [
                topic
                for topic, ch in other.channels.items()
                if not ch.reserved and topic in log and len(ch) and len(log[topic])
            ]
            if topics:
                common = min(late, other.end - other.start)
                others = f" and {len(topics) - 1} more channels" if len(topics) > 1 else ""
                yield _problem(
                    "part-overlap",
                    f"{log.name} and {other.name} overlap by {duration_text(common)}, both with {topics[0]!r}{others}",
                )


def _other_clocks(logs: Sequence[Log], shifts: Sequence[int]) -> Iterator[Problem]:
    """Yield Problems for neighbours whose clocks, once shifted, differ in UTC: they are of different starts."""
    for (log, by), (other, more) in pairwise(zip(logs, shifts, strict=True)):
        one, two = utc_shift(log), utc_shift(other)
        if log.epoch == "unix" or one is None or two is None or abs(one - by - two + more) <= DRIFT:
            continue
        apart = duration_text(abs(one - by - two + more))
        yield _problem(
            "part-clock",
            f"the clocks of {log.name} and {other.name} differ by {apart}: these are different recordings, "
            "whose times agree only with align='utc'",
        )
