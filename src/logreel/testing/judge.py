"""Properties of every log, also damaged ones: functions that raise AssertionError where one does not hold."""

from __future__ import annotations

import faulthandler
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice

import numpy as np

from logreel.errors import LogError, UnknownFormatError
from logreel.io.source import Source
from logreel.log.log import Channel, Log, Message
from logreel.registry.format import Format
from logreel.registry.open import log_of

#: Time limit of one case.
SECONDS = 120.0
#: Number of fields of a channel that are read one by one, and of messages that are decoded one by one.
FEW, SOME = 4, 50


def expect(truth: object, text: str) -> None:
    """Raise AssertionError with *text* unless *truth* holds."""
    if not truth:
        raise AssertionError(text)


def opened_as(fmt: Format, data: bytes) -> Log:
    """Return *data* as an open log of *fmt*, which need not be registered; raises LogError if it is no such log."""
    source = Source.open(data)
    if not fmt.sniff(source):
        raise UnknownFormatError(f"not a {fmt.title}")
    scan = fmt.scan(source, None)
    if scan is None:
        raise AssertionError(f"{fmt.name} gave no scan, though nothing was saved before")
    return log_of(source, fmt, scan)


@contextmanager
def no_hang() -> Iterator[None]:
    """End the process with a traceback if the block takes longer than SECONDS."""
    stderr = sys.__stderr__
    if stderr is None:
        yield
        return
    faulthandler.dump_traceback_later(SECONDS, exit=True, file=stderr)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def check_consistency(log: Log) -> None:
    """Check that a log is consistent, and that reading all of it raises only LogError."""
    expect(log.start is None or log.end is None or log.start <= log.end, "it ends before it starts")
    expect(len(log.index) == sum(map(len, log.channels.values())), "counts of channels and index differ")
    # Lazy properties are evaluated on access.
    values = (log.metadata, log.attachments, log.parameters, log.text, log.utc_offset, repr(log))
    expect(values[-1], "a log without a name")
    for name, attachment in log.attachments.items():
        with suppress(LogError):
            expect(
                len(attachment.read()) == attachment.size, f"attachment {name!r} is not as large as it says"
            )
    for ch in log.channels.values():
        _channel(ch)
    with suppress(LogError):
        log.tables()
    for message in islice(log.messages(list(log.channels)), SOME):
        with suppress(LogError):
            message.decode()
    _problems(log)


def _problems(log: Log) -> None:
    for problem in log.problems:
        expect(problem.text and problem.code, "a problem without a sentence")
        inside = 0 <= problem.offset <= problem.offset + problem.size <= log.size
        expect(inside, f"a problem lies outside of the file: {problem}")


def _channel(ch: Channel) -> None:
    check_payload_bounds(ch)
    expect(len(ch.times) == len(ch), f"{ch.topic!r}: not as many times as messages")
    expect((ch.start is None) == (len(ch) == 0), f"{ch.topic!r}: a first time without messages, or none with")
    with suppress(LogError):
        fields = ch.fields
        rows = ch.to_arrow().num_rows
        for name in fields[:FEW]:
            expect(len(ch[name]) == rows, f"{ch.topic!r}: {name!r} has not as many rows as the table")


def check_payload_bounds(ch: Channel) -> None:
    """Check that all payloads of a channel are inside of their chunks."""
    index = ch.log.index
    offset, size, chunk = index.offsets(ch.number), index.sizes(ch.number), index.chunk_of(ch.number)
    expect(len(offset) == len(size) == len(ch), f"{ch.topic!r}: not as many places as messages")
    for number in np.unique(chunk).tolist():
        here = chunk == number
        with suppress(LogError):
            room = len(index.chunks[number])
            inside = offset[here].min() >= 0 and size[here].min() >= 0 and (offset + size)[here].max() <= room
            expect(inside, f"{ch.topic!r}: a payload lies outside of the file")


def payloads(log: Log) -> Counter[bytes]:
    """Return the number of messages by payload, without reserved channels."""
    return Counter(bytes(message.data) for message in log.messages(order="file"))


def rows(log: Log, order: str = "file") -> dict[str, list[tuple[int, bytes]]]:
    """Return times and payloads by topic, without reserved channels."""
    by_topic: dict[str, list[tuple[int, bytes]]] = {ch.topic: [] for ch in log.match(None)}
    for message in log.messages(order=order):
        by_topic[message.channel.topic].append((message.time, bytes(message.data)))
    return by_topic


def later(log: Log, messages: Iterable[Message]) -> list[tuple[Channel, int, bytes]]:
    """Return channel, time and payload of *messages*, whole seconds later than all messages of *log*."""
    times = [message.time for message in log.messages()]
    delta = 10**9 * ((max(times) - min(times)) // 10**9 + 1) if times else 0
    return [(m.channel, m.time + delta, bytes(m.data)) for m in messages]


def check_continued(
    log: Log,
    before: Mapping[str, list[tuple[int, bytes]]],
    due: Iterable[tuple[Channel, int, bytes]],
    completed: Collection[str] = (),
) -> None:
    """Check that *log* has the messages *before* (by topic) unchanged, and then those appended.

    Payloads of the new ones are not compared: some formats write the time into them. Of *completed* channels, neither
    is that of the last old one.
    """
    continued = rows(log)
    times: dict[str, list[int]] = {}
    for ch, time, _ in due:
        times.setdefault(ch.topic, []).append(time)
    for topic in {**before, **times}:
        old, new = before.get(topic, []), continued.get(topic, [])
        if topic in completed and old and len(new) >= len(old):
            new = [*new[: len(old) - 1], (new[len(old) - 1][0], old[-1][1]), *new[len(old) :]]
        expect(new[: len(old)] == old, f"{topic!r}: appending changed messages of the old log")
        expect(
            [time for time, _ in new[len(old) :]] == times.get(topic, []), f"{topic!r}: not what was appended"
        )
    stored = [ch.topic for ch in log.match(None) if log.index.synthetic(ch.number) is None]
    expect(
        not any(continued.get(topic) for topic in stored if topic not in before), "messages of other channels"
    )
