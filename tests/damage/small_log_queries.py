"""Queries for thousands of small damaged logs in the process of a test: answers must be fast and without crashes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice

import numpy as np

import logreel
from logreel.errors import LogError
from logreel.index.message_index import MessageIndex

#: Of a processor: ten times what the slowest case takes here, or nearly; growth has tests of its own.
SECONDS = 30.0
#: So many fields of a channel are read one by one, and so many messages decoded; the rest comes as tables.
FIELDS, MESSAGES = 3, 40


@contextmanager
def in_time(case: object = "") -> Iterator[None]:
    """Fail if the block takes longer than any query of a small log may."""
    begin = time.process_time()
    yield
    assert time.process_time() - begin < SECONDS, case


def read_all(data: bytes, case: object = "") -> logreel.Log | None:
    """Return the log after all queries, each in time; None if it cannot be opened.

    Errors of logreel are the only ones that are caught, where one is an answer.
    """
    with in_time(case):
        try:
            log = logreel.open(data)
        except LogError:
            return None
        assert log.text is not None, case
        assert log.metadata, case
        assert log.start is None or log.start <= log.end, case
        assert log.utc_offset is None or isinstance(log.utc_offset, int), case
        for problem in log.problems:
            assert 0 <= problem.offset <= problem.offset + problem.size <= len(data), (case, problem)
        for ch in log.channels.values():
            assert len(ch.times) == len(ch), case
            for table in (ch.to_arrow(), ch.to_arrow(interpolate=True), ch.to_arrow(explode=False)):
                table.validate(full=True)
            for name in ch.fields[:FIELDS]:
                ch.to_arrow([name])
        for message in islice(log.messages(list(log.channels)), MESSAGES):
            with suppress(LogError):
                message.decode()
    return log


def by_place(
    index: MessageIndex, channels: Iterable[int], *columns: Callable[[int], np.ndarray]
) -> list[tuple[int, ...]]:
    """Return columns of all messages, in the order of their offsets.

    Without the merge of channels, which has tests of its own and takes longer than opening a small log.
    """
    numbers = [number for number in channels if index.count(number)]
    if not numbers:
        return []
    offset, *parts = (
        np.concatenate([column(number) for number in numbers]) for column in (index.offsets, *columns)
    )
    order = offset.argsort(kind="stable")
    return list(zip(*(part[order].tolist() for part in parts), strict=True))
