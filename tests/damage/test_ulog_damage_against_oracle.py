"""The ULog reader against the oracle: sound files, every truncation, thousands of mutations."""

from __future__ import annotations

import os

import numpy as np
import pytest
from mutations import mutate

import logreel
from logreel.errors import LogError
from logreel.formats.ulog import FORMAT
from logreel.io.source import Source
from logreel.log.scan import Scan
from support.oracles import ulog as ulog_oracle
from support.samples.ulog.builder import tiny

CASES = int(os.environ.get("LOGREEL_FUZZ", "600"))


def scan(data: bytes) -> Scan:
    found = FORMAT.scan(Source.open(data), None)
    assert found is not None
    return found


def rows(found: Scan) -> dict[str, list[int]]:
    """Return payload offsets by topic, for topics with messages."""
    index = found.index
    return {
        info.topic: index.offsets(i).tolist()
        for i, info in enumerate(found.channels)
        if index.counts[i] and not info.topic.startswith("~")
    }


def oracle_rows(data: bytes) -> dict[str, list[int]]:
    log = ulog_oracle.read(data)
    return {
        topic + (f"@{k}" if k > 1 else ""): [r.offset for r in records]
        for k, segment in enumerate(log.segments, 1)
        for topic, records in segment.records.items()
        if records
    }


def test_every_truncation_keeps_whole_messages_and_reports_loss() -> None:
    data = tiny()
    whole = [(at, topic) for topic, offsets in rows(scan(data)).items() for at in offsets]
    sizes = {at: int.from_bytes(data[at - 5 : at - 3], "little") - 2 for at, _ in whole}
    for cut in range(16, len(data)):
        found = scan(data[:cut])
        got = {(at, t) for t, offsets in rows(found).items() for at in offsets}
        due = {(at, t) for at, t in whole if at + sizes[at] <= cut}
        assert got == due, cut
        lost = sum(p.size for p in found.problems if p.lost)
        kept = cut - lost
        assert kept == 16 or kept <= cut


@pytest.mark.parametrize("cut", range(16))
def test_file_cut_inside_header_raises_clear_error(cut: int) -> None:

    with pytest.raises(LogError):
        logreel.open(tiny()[:cut])


def flat(topics: dict[str, list[int]]) -> set[int]:
    return {at for offsets in topics.values() for at in offsets}


@pytest.mark.parametrize("lane", range(8))
def test_mutants_lose_no_more_than_plain_reader(lane: int) -> None:
    """The plain reader accepts a message whose size is damaged; the fast reader rejects it, so it may return one
    message less per damaged interval. Only errors of logreel may occur.
    """
    base = tiny()
    for seed in range(lane, CASES, 8):
        data = mutate(base, seed)
        try:
            judge = ulog_oracle.read(data)
        except ValueError:
            with pytest.raises(LogError):
                logreel.open(data)
            continue
        found = scan(data)
        due = {r.offset for s in judge.segments for rows_ in s.records.values() for r in rows_}
        missing = due - flat(rows(found))
        assert len(missing) <= len(judge.lost), (seed, sorted(missing))
        size = len(data)
        for p in found.problems:
            assert 0 <= p.offset <= p.offset + p.size <= size, (seed, p)
        for i in range(len(found.channels)):
            end = found.index.offsets(i) + found.index.sizes(i)
            assert not len(end) or found.channels[i].topic[0] == "~" or np.all(end <= size), seed
