"""Growing logs: reading on, byte by byte or in larger steps, gives what opening the whole file gives."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import suppress

import numpy as np
import pytest

from logreel.errors import LogError
from logreel.index import growing_table
from logreel.index.tail import BEGIN, MessagePlace, last_place, rows_after, select_rows
from logreel.io.source import Source
from logreel.log.log import Log
from logreel.registry.open import log_of, open_log
from support.builders.growing_samples import SAMPLES, VARIANTS
from support.formats import builtin_formats

Row = tuple[str, int, bytes]


def rows_of(log: Log, order: str = "file") -> list[Row]:
    return [
        (m.channel.topic, m.time, bytes(m.data))
        for m in log.messages([n for n in log if not log[n].reserved], order=order)
    ]


class Grown:
    """Messages that a growing log yields: those after the place of the last one."""

    def __init__(self, name: str) -> None:
        self.format = builtin_formats()[name]
        assert self.format.follow is not None
        self.growing = self.format.follow()
        self.place: MessagePlace = BEGIN
        self.rows: list[Row] = []
        self.undecided = 0
        self.log: Log | None = None

    def extend(self, data: bytes, is_final: bool = False) -> None:
        """Read on; *is_final*: the file is complete, and scanned as by opening it."""
        source = Source(data, "growing")
        scan = None if is_final else self.growing.extend(source)
        if scan is None:
            # As log.refresh does.
            self.undecided += 1
            scan = self.format.scan(source, None)
            assert scan is not None
        self.log = log = log_of(source, self.format, scan)
        new = rows_after(log.index, self.place, range(len(log.channels)))
        topics = [ch.topic for ch in log.channels.values()]
        if not new:
            return
        picked = select_rows(log.index, new)
        for one in range(len(picked)):
            chunk, at, size = int(picked.chunk[one]), int(picked.offset[one]), int(picked.size[one])
            payload = bytes(log.index.chunks.view(chunk)[at : at + size])
            self.rows.append((topics[int(picked.channel[one])], int(picked.time[one]), payload))
        self.place = max(self.place, last_place(log.index))


#: Bytes of padding, which mean nothing, that a file grows by at once where it otherwise grows byte by byte.
PADDING = b" " * 32


def prefixes(data: bytes, steps: str) -> Iterator[int]:
    """Ends of the prefixes of a file: each byte, or random steps from 1 byte to a tenth of the file."""
    size = len(data)
    at, rng = 0, random.Random(size)
    while at < size:
        step = len(PADDING) if data.startswith(PADDING * 2, at) else 1
        if steps != "bytes":
            step = int(10 ** rng.uniform(0, max(1.0, np.log10(size / 10))))
        at = min(size, at + step)
        yield at


@pytest.fixture(params=[2, growing_table.JOINED], ids=["blocks joined soon", "blocks joined late"])
def joined(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing_table, "JOINED", request.param)


#: Samples that are grown byte by byte, too; the others are too long for that.
SHORT = [name for name in SAMPLES if "long" not in name and "values" not in name]


@pytest.mark.parametrize("name", SHORT)
def test_every_byte_of_growth_gives_whole_messages_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing_table, "JOINED", 2)
    check_growth(*SAMPLES[name], "bytes")


@pytest.mark.parametrize("name", SAMPLES)
def test_every_message_comes_once_and_whole_while_a_file_grows(joined: None, name: str) -> None:
    check_growth(*SAMPLES[name], "random")


@pytest.mark.parametrize("name", VARIANTS)
def test_every_message_of_a_variant_comes_once(name: str) -> None:
    check_growth(*VARIANTS[name], "random")


def check_growth(fmt: str, build: Callable[[], bytes], steps: str) -> None:
    data = build()
    whole = open_log(data)
    due = rows_of(whole)
    grown, begun = Grown(fmt), False
    for end in prefixes(data, steps):
        if begun:
            grown.extend(data[:end])
        else:
            # The beginning of a file may be too short to be scanned.
            with suppress(LogError):
                grown.extend(data[:end])
                begun = True
        assert grown.rows == due[: len(grown.rows)], end
    log, rows = grown.log, list(grown.rows)
    # Only messages in a compressed chunk that its recorder did not finish are left for the end.
    assert rows == due or "unfinished" in {p.code for p in whole.problems}
    grown.extend(data, is_final=True)
    assert grown.rows == due
    assert log is not None
    if rows != due:
        return
    assert sorted(rows_of(log)) == sorted(due)
    assert rows_of(log, "time") == rows_of(whole, "time")
    assert {t: len(ch) for t, ch in log.channels.items()} == {t: len(ch) for t, ch in whole.channels.items()}
    assert (log.start, log.end, log.epoch) == (whole.start, whole.end, whole.epoch)
    assert [p for p in log.problems if p.lost] == [p for p in whole.problems if p.lost]
    for topic, ch in whole.channels.items():
        assert np.array_equal(log[topic].times, ch.times)
        assert log[topic].schema == ch.schema


@pytest.mark.parametrize("name", SAMPLES)
def test_an_earlier_scan_stays_valid_when_the_file_grows(joined: None, name: str) -> None:
    fmt, build = SAMPLES[name]
    data = build()
    grown = Grown(fmt)
    kept: list[tuple[Log, int]] = []
    for end in prefixes(data, "random"):
        before = grown.log
        with suppress(LogError):
            grown.extend(data[:end])
        if grown.log is not None and grown.log is not before:
            kept.append((grown.log, len(grown.rows)))
    for log, count in kept:
        assert rows_of(log) == grown.rows[:count]
        by_time = rows_of(log, "time")
        assert by_time == sorted(by_time, key=lambda row: row[1])


def test_a_growing_reader_reads_each_byte_once() -> None:
    """Where the reader is when a file has grown: behind the last complete record, not at the start."""
    for name, (fmt, build) in SAMPLES.items():
        data = build()
        grown = Grown(fmt)
        grown.extend(data)
        if grown.undecided:
            continue
        # Messages before the position may be anything now.
        ruined = bytearray(data)
        middle = slice(len(data) // 4, len(data) // 2)
        ruined[middle] = bytes(len(ruined[middle]))
        scan = grown.growing.extend(Source(bytes(ruined), "again"))
        assert scan is not None, name
        assert int(scan.index.counts.sum()) == len(open_log(data).index), name
