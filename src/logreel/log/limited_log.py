"""Logs limited to some of their messages, and the checksums of these."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from logreel.index.gather import Rows
from logreel.index.merge import count_before
from logreel.log.log import Log


def with_rows(log: Log, rows: Mapping[int, Rows]) -> Log:
    """Return the same open log, whose intervals contain only *rows* of each channel (by number)."""
    return log.derive(index=log.index.restricted_to(rows))


def without_channels(log: Log, topics: Collection[str]) -> Log:
    """Return the same open log without the channels named *topics*; its text and its bounds are those of all."""
    return log.derive(shown={ch.number for topic, ch in log.channels.items() if topic not in topics})


def with_logged_times(log: Log) -> tuple[Log, dict[str, int]]:
    """Return the same open log with ``Scan.logged_times``, and the number of messages whose times differ, by topic."""
    times = log.scan.logged_times()
    if not times:
        return log, {}
    index = log.index.with_times(times)
    differ = {number: int((log.index.times(number) != logged).sum()) for number, logged in times.items()}
    topics = {ch.number: ch.topic for ch in log.channels.values()}
    return log.derive(index=index), {topics[number]: n for number, n in differ.items()}


def compare_checksums(log: Log, rows: Mapping[int, Rows]) -> None:
    """Compare the checksums of messages, *rows* by channel number, as far as reading them does not; add Problems.

    For functions that copy messages: what is wrong in the file would get a right checksum in a new one.
    """
    compare = log.scan.checksums
    if compare is None:
        return
    table = log.index.table
    touched = np.zeros(len(table.base), np.bool_)
    for number, wanted in rows.items():
        if log.index.rules[number].synthetic is None:
            first, last = table.run(number)
            ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(last - first)])
            touched |= np.diff(count_before(wanted, ends)) > 0
    compare(np.flatnonzero(touched))
