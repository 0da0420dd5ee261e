"""Readers are incremental: fed in any pieces and finished, they find what opening the whole file finds."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logreel.errors import LogError
from logreel.formats.bddf import scan_builder as bddf
from logreel.formats.bddf.reader import Reader as BddfReader
from logreel.formats.carla import scan_builder as carla
from logreel.formats.carla.reader import Reader as CarlaReader
from logreel.formats.carla.records import read_header
from logreel.formats.koblenz import scan_builder as koblenz
from logreel.formats.koblenz.framing import detect_variant
from logreel.formats.koblenz.reader import Reader as KoblenzReader
from logreel.formats.mcap import scan_builder as mcap
from logreel.formats.mcap.reader import Reader as McapReader
from logreel.formats.rosbag import scan_builder as rosbag
from logreel.formats.rosbag.definitions import Channels, Definitions
from logreel.formats.rosbag.index_builder import build_index
from logreel.formats.rosbag.reader import FoundFile
from logreel.formats.ulog import scan_builder as ulog
from logreel.formats.ulog.reader import Reader as UlogReader
from logreel.formats.ulog.records import FILE_HEADER, HEAD
from logreel.index.tail import BEGIN, last_place, rows_after, select_rows
from logreel.io.source import Chunks, Source
from logreel.log.scan import Scan
from logreel.registry.open import log_of
from support.builders.growing_samples import SAMPLES as GROWN
from support.formats import builtin_formats
from support.harness.examples import half
from support.samples.carla.builder import Builder as CarlaBuilder
from support.samples.koblenz.builder import Builder as KoblenzBuilder
from support.samples.ulog.builder import tiny as ulog_tiny

Row = tuple[str, int, bytes]


def carla_drive() -> bytes:
    out = CarlaBuilder()
    for k in range(12):
        frame = out.frame(k * 0.05)
        if k == 0:
            frame.add(1, 1, "vehicle.a.b")
        frame.position(1, (k, 0, 0))
    return out.bytes()


def koblenz_drive() -> bytes:
    out = KoblenzBuilder()
    for k in range(12):
        out.obd(1000.0 + k, 1, 2, 3.0)
    return out.bytes()


#: Format and builder of each sample.
SAMPLES: dict[str, tuple[str, Callable[[], bytes]]] = {
    "ulog": ("ulog", ulog_tiny),
    "carla": ("carla", carla_drive),
    "koblenz": ("koblenz", koblenz_drive),
    **{name: sample for name, sample in GROWN.items() if "long" not in name},
}


class Incremental(NamedTuple):
    """How a format reads from the front: a reader of a source, and the Scan of what it found when it has finished."""

    begin: Callable[[Source], Any]
    scan: Callable[[Source, Any], Scan]


def _begin_ulog(source: Source) -> UlogReader:
    if source.size < FILE_HEADER + HEAD + 40:
        raise LogError("the file ends inside its header")
    return UlogReader(source)


def _begin_carla(source: Source) -> CarlaReader:
    if read_header(source) is None:
        raise LogError("the file ends inside its header")
    return CarlaReader(source)


def _begin_koblenz(source: Source) -> KoblenzReader:
    return KoblenzReader(source, detect_variant(source))


def _begin_bag(source: Source) -> Any:
    reader = rosbag.BagGrowing()._begun(source)
    if reader is None:
        raise LogError("bags with a damaged header are read from their start")
    return reader


def _scan_koblenz(source: Source, reader: KoblenzReader) -> Scan:
    return koblenz.build(source, detect_variant(source), reader.finish())


def _scan_bag(source: Source, reader: Any) -> Scan:
    reader.finish()
    problems = list(reader.problems)
    channels = Channels(Definitions(source, problems))
    for connection in reader.connections():
        channels.add(connection)
    bag = getattr(reader, "bag", None)
    chunks = rosbag._chunks(source, bag) if isinstance(bag, FoundFile) else Chunks(source)
    parts = reader.take_parts()
    builder = build_index(parts, channels, chunks, problems)
    return rosbag.assemble("", channels, builder.index(True), builder.bounds(), problems, {}, list)


READERS = {
    "ulog": Incremental(_begin_ulog, lambda source, reader: ulog.scan(source, reader.finish())),
    "bddf": Incremental(BddfReader, lambda source, reader: bddf.ScanBuilder(source, reader.finish()).scan()),
    "carla": Incremental(
        _begin_carla, lambda source, reader: carla.ScanBuilder(source, reader.finish()).scan()
    ),
    "koblenz": Incremental(_begin_koblenz, _scan_koblenz),
    "mcap": Incremental(
        partial(McapReader, trust=False), lambda source, reader: mcap._scan_of(source, reader.finish())
    ),
    "rosbag": Incremental(_begin_bag, _scan_bag),
}


@cache
def data_of(name: str) -> bytes:
    return SAMPLES[name][1]()


@cache
def rows_of_sample(sample: str) -> list[Row]:
    name, source = SAMPLES[sample][0], Source(data_of(sample), "x")
    return content(source, name, builtin_formats()[name].scan(source, None)).rows  # type: ignore[arg-type]


class Content(NamedTuple):
    """What a Scan says."""

    channels: list[Any]
    rows: list[Row]
    problems: list[Any]
    bounds: tuple[int | None, int | None]


def content(source: Source, name: str, scan: Scan) -> Content:
    log = log_of(source, builtin_formats()[name], scan)
    rows = [
        (m.channel.topic, m.time, bytes(m.data))
        for m in log.messages([t for t in log if not log[t].reserved], order="file")
    ]
    channels = [(ch.topic, ch.schema, ch.metadata, len(ch)) for ch in log.channels.values()]
    return Content(channels, rows, list(log.problems), (log.start, log.end))


def pieces(data: st.DataObject, size: int) -> list[int]:
    """Return ends of the pieces that a file of *size* bytes comes in."""
    return [*sorted(data.draw(st.lists(st.integers(1, size), max_size=8))), size]


def damaged(data: st.DataObject, sound: bytes) -> bytes:
    """Return *sound*, or the same with some bytes overwritten, left out or added behind the first ones."""
    how = data.draw(st.sampled_from(["sound", "cut", "zeros", "lost", "doubled"]))
    at = data.draw(st.integers(min(64, len(sound) // 2), len(sound)))
    count = data.draw(st.integers(1, 40))
    if how == "cut":
        return sound[:at]
    if how == "zeros":
        return sound[:at] + bytes(min(count, len(sound) - at)) + sound[at + count :]
    if how == "lost":
        return sound[:at] + sound[at + count :]
    return sound + sound if how == "doubled" else sound


def begun(name: str, bytes_of: bytes, ends: list[int]) -> tuple[Any, list[int]]:
    """Return a reader that has begun with the first piece that it can begin with, and the ends of the others."""
    for i, end in enumerate(ends):
        with suppress(LogError):
            return READERS[name].begin(Source(bytes_of[:end], "fed")), ends[i:]
    return None, []


@pytest.mark.parametrize("sample", SAMPLES)
@settings(deadline=None, max_examples=half(25))
@given(data=st.data())
def test_a_reader_that_is_fed_in_pieces_finds_what_one_that_has_all_at_once_finds(
    sample: str, data: st.DataObject
) -> None:
    name = SAMPLES[sample][0]
    all_bytes = damaged(data, data_of(sample))
    whole = Source(all_bytes, "fed")
    try:
        due = content(whole, name, READERS[name].scan(whole, READERS[name].begin(whole)))
    except LogError:
        return
    ends = pieces(data, len(all_bytes))
    if name == "koblenz":
        # The variant of a file follows from its first messages, which have to be there.
        ends = [end for end in ends if end > len(all_bytes) // 2] or [len(all_bytes)]
    reader, rest = begun(name, all_bytes, ends)
    assert reader is not None
    for end in rest:
        with suppress(LogError):
            reader.feed(Source(all_bytes[:end], "fed"))
    source = Source(all_bytes, "fed")
    reader.feed(source)
    assert content(source, name, READERS[name].scan(source, reader)) == due


@pytest.mark.parametrize("kind", [b"Q", b"I", b"P"])
def test_a_record_without_a_key_is_told_in_one_way_wherever_the_file_had_ended(kind: bytes) -> None:
    data = bytearray(data_of("ulog"))
    at = next(
        pos
        for pos in range(16, len(data))
        if data[pos + 2 : pos + 3] == kind and 0 < data[pos] < 40 and not data[pos + 1]
    )
    data[at + 3 : at + 5] = bytes(2)
    source, ulog_reader = Source(bytes(data), "fed"), READERS["ulog"]
    due = content(source, "ulog", ulog_reader.scan(source, ulog_reader.begin(source)))
    assert due.problems
    for cut in range(100, len(data), 7):
        reader, _ = begun("ulog", bytes(data), [cut])
        if reader is not None:
            reader.feed(source)
            assert content(source, "ulog", ulog_reader.scan(source, reader)) == due, cut


@pytest.mark.parametrize("sample", SAMPLES)
@settings(deadline=None, max_examples=half(25))
@given(data=st.data())
def test_following_in_any_steps_neither_loses_nor_doubles_a_message(sample: str, data: st.DataObject) -> None:
    name = SAMPLES[sample][0]
    fmt, all_bytes, due = builtin_formats()[name], data_of(sample), rows_of_sample(sample)
    assert fmt.follow is not None
    growing, place, seen = fmt.follow(), BEGIN, list[Row]()
    for end in pieces(data, len(all_bytes)):
        source = Source(all_bytes[:end], "x")
        try:
            scan = growing.extend(source) or fmt.scan(source, None)
        except LogError:
            continue
        assert scan is not None
        log = log_of(source, fmt, scan)
        topics = [ch.topic for ch in log.channels.values()]
        rows = rows_after(log.index, place, [n for n, t in enumerate(topics) if not log[t].reserved])
        if rows:
            batch = select_rows(log.index, rows)
            for row in range(len(batch)):
                chunk, at, size = (int(a[row]) for a in (batch.chunk, batch.offset, batch.size))
                payload = bytes(log.index.chunks.view(chunk)[at : at + size])
                seen.append((topics[int(batch.channel[row])], int(batch.time[row]), payload))
        place = max(place, last_place(log.index))
    assert seen == due
    assert not np.any([not topic for topic, _, _ in seen])
