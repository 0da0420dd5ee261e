"""Hypothesis state machine: operations on logs in any order, compared with plain lists of messages."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)

from logreel.errors import LogError, UsageError
from logreel.log.log import Log
from logreel.ops.rewrite.parts import with_members
from logreel.ops.rewrite.recover import recover
from logreel.ops.rewrite.slice import slice_log, sort_log
from logreel.outputs.merge_formats import merge
from logreel.registry.format import Format
from logreel.testing.judge import check_continued, expect, later, no_hang, opened_as
from logreel.write.writer import create

#: Operations in one sequence.
STEPS = 6
#: Number of times that every log can be appended to.
LEAST = 3
#: Time and payload of the messages of each channel, in file order.
Rows = dict[str, list[tuple[int, bytes]]]

_SHARE = st.floats(0, 1)


@dataclass(frozen=True)
class Case:
    """A log file and the messages that it has to hold."""

    path: Path
    due: Rows
    #: Number of times that the log, or one that it was made of, was appended to.
    appended: int = 0


def check_operations(
    fmt: Format,
    sample: bytes,
    sequences: int,
    always: Collection[str] = (),
    completed: Collection[str] = (),
) -> None:
    """Run *sequences* sequences of operations that begin with *sample*; raise AssertionError at a wrong result.

    always     channels with messages in every log of the format, even if sliced by other topics
    completed  channels whose last message is completed by those after it
    """
    machine: Any = partial(Operations, fmt, sample, always, completed)
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=sequences,
            stateful_step_count=STEPS,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def messages_of(log: Log) -> Rows:
    """Return time and payload of messages by channel, in file order; without empty, reserved and synthetic channels."""
    by_topic: Rows = {
        ch.topic: [] for ch in log.match(None) if len(ch) and log.index.synthetic(ch.number) is None
    }
    for m in log.messages(list(by_topic), order="file") if by_topic else ():
        by_topic[m.channel.topic].append((m.time, bytes(m.data)))
    return by_topic


def between(due: Rows, start: int | None, end: int | None) -> Rows:
    """Return the messages with start <= time < end; without channels that have none."""
    by_topic = {
        topic: [
            row for row in messages if (start is None or start <= row[0]) and (end is None or row[0] < end)
        ]
        for topic, messages in due.items()
    }
    return {topic: messages for topic, messages in by_topic.items() if messages}


class Operations(RuleBasedStateMachine):
    """Opens, slices, sorts, merges, recovers and continues logs, and the results of these operations."""

    cases: Bundle[Case] = Bundle("cases")

    def __init__(
        self, fmt: Format, sample: bytes, always: Collection[str], completed: Collection[str]
    ) -> None:
        super().__init__()
        self._format, self._sample, self._always, self._completed = fmt, sample, always, completed
        self._folder = tempfile.TemporaryDirectory()
        self._numbers = itertools.count()

    def teardown(self) -> None:
        """Remove the files."""
        self._folder.cleanup()

    @initialize(target=cases)
    def begin(self) -> Case:
        """Begin with the sample."""
        path = self._new_path()
        path.write_bytes(self._sample)
        return Case(path, messages_of(opened_as(self._format, self._sample)))

    @rule(case=cases, first=_SHARE, last=_SHARE)
    def open(self, case: Case, first: float, last: float) -> None:
        """Open a log and read an interval, forwards and backwards."""
        log = self._opened(case.path)
        start, end = _interval(case.due, first, last)
        due, by_topic, topics = between(case.due, start, end), Rows(), list(case.due)
        try:
            forwards = list(log.messages(topics, start=start, end=end)) if topics else []
        except UsageError:
            expect(not due, "an interval with messages was refused")
            return
        for message in forwards:
            by_topic.setdefault(message.channel.topic, []).append((message.time, bytes(message.data)))
        _compare(by_topic, _by_time(due), "messages of an interval")
        times = [message.time for message in forwards]
        expect(times == sorted(times), "messages of an interval are not in the order of time")
        if topics:
            backwards = list(log.messages(topics, start=start, end=end, reverse=True))
            expect(backwards == forwards[::-1], "the reverse of an interval is another order")

    @rule(target=cases, case=cases, first=_SHARE, last=_SHARE)
    def slice(self, case: Case, first: float, last: float) -> Case:
        """Slice an interval."""
        start, end = _interval(case.due, first, last)
        return self._written(
            case, lambda path: slice_log(case.path, path, start=start, end=end), between(case.due, start, end)
        )

    @rule(target=cases, case=cases, which=st.integers(0, 1000))
    def slice_topic(self, case: Case, which: int) -> Case:
        """Slice one channel, and the channels that it is joined from."""
        if not case.due:
            return case
        topic = sorted(case.due)[which % len(case.due)]
        members = {*with_members(self._opened(case.path), [topic]), *self._always}
        due = {topic: messages for topic, messages in case.due.items() if topic in members}
        return self._written(case, lambda path: slice_log(case.path, path, topics=[topic]), due)

    @rule(target=cases, case=cases)
    def sort(self, case: Case) -> Case:
        """Sort by time."""
        return self._written(case, lambda path: sort_log(case.path, path), _by_time(case.due))

    @rule(target=cases, first=cases, other=cases)
    def merge(self, first: Case, other: Case) -> Case:
        """Merge two logs; where both have the same message, a format may keep one of the two."""
        due = _by_time({topic: self._of_both(topic, first, other) for topic in {**first.due, **other.due}})
        most = max(first, other, key=lambda case: case.appended)
        case = self._written(most, lambda path: merge([first.path, other.path], path), due, once=True)
        return case if case is not most else first

    def _of_both(self, topic: str, first: Case, other: Case) -> list[tuple[int, bytes]]:
        """Return the messages of a channel in two logs; a message that one log has completed is that of the first."""
        messages, others = first.due.get(topic, []), other.due.get(topic, [])
        if topic in self._completed:
            known = {row[0] for row in messages}
            others = [row for row in others if row[0] not in known]
        return [*messages, *others]

    @rule(target=cases, case=cases, first=_SHARE, last=_SHARE)
    def append(self, case: Case, first: float, last: float) -> Case:
        """Append the messages of an interval again, with times after all others."""
        if self._format.append is None or not case.due:
            return case
        start, end = _interval(case.due, first, last)
        path, log = self._new_path(), self._opened(case.path)
        path.write_bytes(case.path.read_bytes())
        if not between(case.due, start, end):
            return case
        due = later(log, log.messages(list(case.due), start=start, end=end, order="file"))
        try:
            with no_hang(), create(path, mode="a", format=self._format.name) as w:
                for ch, time, payload in due:
                    w.write(w.add_channel(ch.topic, ch.schema, ch.metadata), time, payload)
        except LogError as error:
            # A ULog can be appended to three times.
            expect(case.appended >= LEAST, f"a log cannot be continued: {error}")
            expect(path.read_bytes() == case.path.read_bytes(), "a log that cannot be continued changed")
            return case
        new = self._opened(path)
        check_continued(new, case.due, due, self._completed)
        return Case(path, messages_of(new), case.appended + 1)

    @rule(target=cases, case=cases, share=_SHARE)
    def recover(self, case: Case, share: float) -> Case:
        """Cut a log and recover what is left of it."""
        data = case.path.read_bytes()
        cut = self._new_path()
        cut.write_bytes(data[: round(len(data) * share)])
        try:
            left = messages_of(opened_as(self._format, cut.read_bytes()))
        except LogError:
            return case
        for topic, messages in left.items():
            known = set(case.due.get(topic, ()))
            expect(
                known.issuperset(messages),
                f"{topic!r}: cut at a share of {share} it has messages that never were",
            )
        if share == 1:
            _compare(left, case.due, "all of a file")
        return self._written(case, lambda path: recover(cut, path), left)

    def _written(self, case: Case, write: Callable[[Path], Any], due: Rows, once: bool = False) -> Case:
        """Return the log that *write* writes, which has to hold *due*; *case* if there is nothing to write.

        once  it may have one of several equal messages
        """
        path = self._new_path()
        try:
            with no_hang():
                done = write(path)
        except UsageError:
            expect(not due, "an operation on messages was refused")
            expect(not path.exists(), "an operation failed and left a file")
            return case
        written = messages_of(self._opened(path))
        # Where a format tells what it changed, such as numbers of frames, only the times of these have to be the same.
        _compare(written, due, "the new log", once, self._completed if getattr(done, "notes", ()) else ())
        return Case(path, written, case.appended)

    def _opened(self, path: Path) -> Log:
        log = opened_as(self._format, path.read_bytes())
        expect(not log.problems, f"a log that was written has problems: {log.problems[:1]}")
        return log

    def _new_path(self) -> Path:
        return Path(self._folder.name) / f"{next(self._numbers)}{self._format.suffixes[0]}"


def _interval(due: Rows, first: float, last: float) -> tuple[int | None, int | None]:
    """Return the times at two fractions of all messages; None at the start and the end."""
    times = sorted(row[0] for messages in due.values() for row in messages)
    low, high = sorted(round(share * len(times)) for share in (first, last))
    return (times[low] if 0 < low < len(times) else None), (times[high] if high < len(times) else None)


def _by_time(due: Rows) -> Rows:
    return {topic: sorted(messages, key=itemgetter(0)) for topic, messages in due.items()}


def _compare(actual: Rows, due: Rows, what: str, once: bool = False, by_time: Collection[str] = ()) -> None:
    """Raise AssertionError unless both are equal.

    once     *actual* may lack repetitions of messages in *due*
    by_time  channels of which only the times are compared
    """
    for topic in {**due, **actual}:
        messages, others = actual.get(topic, []), due.get(topic, [])
        if topic in by_time:
            messages, others = ([(time, b"") for time, _ in rows] for rows in (messages, others))
        if messages == others or (once and messages == list(dict.fromkeys(others))):
            continue
        differ = next((n for n, (a, b) in enumerate(zip(messages, others, strict=False)) if a != b), None)
        where = "" if differ is None else f", the first difference at number {differ}"
        raise AssertionError(
            f"{what}: {topic!r} has {len(messages)} messages where {len(others)} are due{where}"
        )
