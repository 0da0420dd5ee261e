"""Several files opened as one log give the same answers as their merge."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import logreel
from logreel import Log
from logreel.log.joined_log import JOINED, JoinedLog
from support.builders.sample_logs import short_flight
from support.formats import builtin_formats, sample_log, small_log
from support.harness.one_database import one_database
from support.samples.bddf.builder import T0, Builder
from support.samples.ulog.builder import flight

FORMATS = [name for name, fmt in builtin_formats().items() if fmt.create is not None]
#: Functions that return the recording of a format, where it has to be longer than a small log.
WHOLE: dict[str, Callable[[str], bytes]] = {
    "carla": sample_log,
    "rosbag2": sample_log,
    "ulog": lambda _: short_flight(),
}


@dataclass
class Parts:
    """A recording as files that follow each other, opened as one log, and their merge."""

    folder: Path
    files: list[Path]
    log: JoinedLog
    merged: Log
    suffix: str


@pytest.fixture(scope="module", params=FORMATS)
def parts(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parts]:
    fmt = builtin_formats()[request.param]
    folder, suffix = tmp_path_factory.mktemp(request.param), fmt.suffixes[0]
    whole = folder / f"whole{suffix}"
    whole.write_bytes(WHOLE.get(fmt.name, small_log)(fmt.name))
    with logreel.open(whole) as log:
        assert log.duration
        logreel.split(log, folder / "parts", every=log.duration // 3 + 1)
    files = sorted((folder / "parts").iterdir())
    assert len(files) == 3
    logreel.merge(files, folder / f"merged{suffix}")
    with logreel.open(files[::-1]) as joined, logreel.open(folder / f"merged{suffix}") as merged:
        assert isinstance(joined, JoinedLog)
        yield Parts(folder, files, joined, merged, suffix)


def messages(log: Log, **options: Any) -> list[tuple[int, str, bytes]]:
    return [(m.time, m.channel.topic, bytes(m.data)) for m in log.messages(**options)]


def channels(parts: Parts) -> Iterator[tuple[logreel.Channel, logreel.Channel]]:
    """Yield each channel of the joined log with that of the merge."""
    for topic, ch in parts.log.items():
        yield ch, parts.merged[topic]


def test_a_log_of_parts_has_the_channels_bounds_and_clock_of_the_merge(parts: Parts) -> None:
    log, merged = parts.log, parts.merged
    assert set(log) == set(merged)
    assert (log.start, log.end, log.epoch, log.utc_offset) == (
        merged.start,
        merged.end,
        merged.epoch,
        merged.utc_offset,
    )
    assert (log.format, log.version, log.message_count) == (
        merged.format,
        merged.version,
        merged.message_count,
    )
    assert log.problems == () == merged.problems
    assert log.size == sum(file.stat().st_size for file in parts.files)


def test_a_log_of_parts_has_the_messages_of_the_merge(parts: Parts) -> None:
    assert messages(parts.log) == messages(parts.merged)
    assert messages(parts.log, order="file") == [
        one for file in parts.log.parts for one in messages(file, order="file")
    ]
    middle = {"start": _at(parts, 0.2), "end": _at(parts, 0.8)}
    assert messages(parts.log, **middle) == messages(parts.merged, **middle)
    backwards = messages(parts.log, reverse=True)
    assert backwards == messages(parts.merged, reverse=True)


def alike(one: pa.Table, two: pa.Table) -> bool:
    """Return whether two tables have the same content; NaN equals NaN."""
    if one.schema != two.schema or len(one) != len(two):
        return repr(one.to_pylist()) == repr(two.to_pylist())
    pairs = zip(one.columns, two.columns, strict=True)
    return all(
        ours.equals(theirs) or repr(ours.to_pylist()) == repr(theirs.to_pylist()) for ours, theirs in pairs
    )


def _at(parts: Parts, share: float) -> int:
    assert parts.log.start is not None
    assert parts.log.duration is not None
    return parts.log.start + int(parts.log.duration * share)


def test_a_log_of_parts_has_the_tables_of_the_merge(parts: Parts) -> None:
    together = parts.log.tables()
    for ours, theirs in channels(parts):
        got, due = ours.to_arrow(), theirs.to_arrow()
        assert got.schema == due.schema
        assert alike(got, due), ours.topic
        if ours.topic in together:
            assert alike(together[ours.topic], due), ours.topic
        span = _at(parts, 0.3), _at(parts, 0.7)
        assert alike(ours.to_arrow(None, *span), theirs.to_arrow(None, *span))
        assert np.array_equal(ours.times, theirs.times)
        assert (len(ours), ours.bytes, ours.start, ours.end) == (
            len(theirs),
            theirs.bytes,
            theirs.start,
            theirs.end,
        )


def test_a_log_of_parts_has_the_fields_and_decoded_messages_of_the_merge(parts: Parts) -> None:
    for ours, theirs in channels(parts):
        for path in ours.fields[:4]:
            assert repr(ours[path]) == repr(theirs[path]), (ours.topic, path)
        for at in (0, len(ours) // 2, len(ours) - 1) if len(ours) else ():
            assert bytes(ours[at].data) == bytes(theirs[at].data)
            assert repr(ours[at].decode()) == repr(theirs[at].decode()), ours.topic
        last = [bytes(m.data) for m in ours[-3:]]
        assert last == [bytes(m.data) for m in theirs[-3:]]


def test_a_log_of_parts_has_the_text_parameters_and_attachments_of_the_merge(parts: Parts) -> None:
    log, merged = parts.log, parts.merged
    assert log.text == merged.text
    assert repr(dict(log.parameters)) == repr(dict(merged.parameters))
    assert {name: a.read() for name, a in log.attachments.items()} == {
        name: a.read() for name, a in merged.attachments.items()
    }
    assert set(log.metadata) == set(merged.metadata)


def test_a_slice_of_parts_is_the_slice_of_the_merge(parts: Parts) -> None:
    span = {"start": _at(parts, 0.2), "end": _at(parts, 0.8)}
    one, two = (parts.folder / f"{name}{parts.suffix}" for name in ("one", "two"))
    logreel.slice(parts.log, one, force=True, **span)
    logreel.slice(parts.merged, two, force=True, **span)
    with logreel.open(one) as ours, logreel.open(two) as theirs:
        assert messages(ours) == messages(theirs)
        assert set(ours) == set(theirs)
        assert (ours.start, ours.end, ours.utc_offset) == (theirs.start, theirs.end, theirs.utc_offset)


#: Metadata about the bytes of a file, which are those of the first of several files.
OF_FILE = {"chunks", "compression", "sha1", "size_reading", "end_mark", "index_entries", "mcap", "indexed"}


#: Metadata of a copy about the files that it is made of.
OF_COPY = ("log", "joined_anyway")


def without_file(value: Any) -> Any:
    """Return metadata without what channels keep of the file that they were in: parts and a merge are other files."""
    if isinstance(value, Mapping):
        return {name: without_file(item) for name, item in value.items() if name not in OF_COPY}
    if isinstance(value, list):
        return [without_file(item) for item in value]
    if isinstance(value, str) and value.startswith("{"):
        return without_file(json.loads(value))
    return repr(value)


def content(path: Path) -> dict[str, Any]:
    """Return everything that a log holds."""
    with logreel.open(path) as log:
        return {
            "messages": messages(log),
            "channels": {topic: (ch.schema, without_file(ch.metadata)) for topic, ch in log.items()},
            "metadata": {
                name: without_file(value)
                for name, value in log.metadata.items()
                if name not in (*OF_FILE, JOINED)
            },
            "attachments": {name: (one.read(), one.time) for name, one in log.attachments.items()},
            "parameters": repr(dict(log.parameters)),
            "text": log.text,
            "clock": (log.start, log.end, log.epoch, log.utc_offset),
            "from": (log.converted_from, log.problems),
        }


@pytest.mark.parametrize(
    "options", [{}, {"raw": True}, {"clock": "log"}, {"count": 40}, {"start": "+1s"}], ids=str
)
def test_a_conversion_of_parts_is_that_of_the_merge(parts: Parts, options: dict[str, Any]) -> None:
    one, two = (parts.folder / f"{name}.mcap" for name in ("one", "two"))
    if parts.log.format == "mcap":
        one, two = (path.with_suffix(".bag") for path in (one, two))
        options = {name: value for name, value in options.items() if name != "clock"}
    logreel.convert(parts.log, one, force=True, **options)
    logreel.convert(parts.merged, two, force=True, **options)
    due = content(two)
    assert due["messages"]
    assert content(one) == due


def test_a_conversion_of_files_that_overlap_is_that_of_the_merge(tmp_path: Path) -> None:
    files = [tmp_path / "1.ulg", tmp_path / "2.ulg"]
    for file, seconds in zip(files, (4.0, 3.0), strict=True):
        file.write_bytes(flight(seconds))
    logreel.merge(files, tmp_path / "merged.ulg", anyway=True)
    with logreel.open(files, anyway=True) as log:
        logreel.convert(log, tmp_path / "one.mcap")
    logreel.convert(tmp_path / "merged.ulg", tmp_path / "two.mcap")
    assert content(tmp_path / "one.mcap") == content(tmp_path / "two.mcap")


@pytest.mark.parametrize("align", [None, "+100s"])
def test_files_with_shifted_clocks_are_converted_without_a_temporary_file(
    tmp_path: Path, align: str | None
) -> None:
    files = [tmp_path / "1.ulg", tmp_path / "2.ulg"]
    for file, seconds in zip(files, (4.0, 3.0), strict=True):
        file.write_bytes(flight(seconds))
    logreel.merge(files, tmp_path / "merged.ulg", align=align, anyway=True)
    out, seen = tmp_path / "out", set[str]()
    out.mkdir()
    with logreel.open(files, align=align, anyway=True) as log:
        logreel.convert(log, out / "one.mcap", progress=lambda *_: seen.update(os.listdir(out)))
    assert not any(name.startswith(".logreel-parts-") for name in seen)
    assert os.listdir(out) == ["one.mcap"]
    logreel.convert(tmp_path / "merged.ulg", tmp_path / "two.mcap")
    # Also the fields with times are shifted.
    assert content(out / "one.mcap") == content(tmp_path / "two.mcap")


def in_order_of_columns(table: pa.Table) -> pa.Table:
    """Return *table* with its columns by name: channels of several files may be in another order."""
    return table.select(sorted(table.column_names))


@pytest.mark.parametrize(
    "options", [{"interpolate": True}, {"utc": True}, {"interpolate": True, "utc": True}]
)
def test_records_of_parts_have_the_times_that_they_have_in_the_merge(
    parts: Parts, options: dict[str, bool]
) -> None:
    if "utc" in options and parts.merged.utc_offset is None and parts.merged.epoch != "unix":
        with pytest.raises(logreel.UsageError, match="UTC"):
            next(iter(parts.log.values())).to_arrow(**options)
        return
    middle = _at(parts, 0.2), _at(parts, 0.8)
    for ours, theirs in channels(parts):
        assert alike(ours.to_arrow(**options), theirs.to_arrow(**options)), ours.topic
        assert alike(ours.to_arrow(None, *middle, **options), theirs.to_arrow(None, *middle, **options))


@pytest.mark.parametrize(
    "options",
    [
        {"rate": 25},
        {"rate": 20, "method": "nearest", "interpolate": True},
        {"rate": 10, "tolerance": "20ms", "start": "+1s"},
    ],
)
def test_aligned_tables_of_parts_are_those_of_the_merge(parts: Parts, options: dict[str, Any]) -> None:
    got, due = (logreel.align(log, **options) for log in (parts.log, parts.merged))
    assert len(due)
    assert alike(in_order_of_columns(got), in_order_of_columns(due))


def test_queries_of_parts_give_the_rows_of_the_merge(parts: Parts) -> None:
    with one_database():
        for ours, theirs in channels(parts):
            if not len(theirs):
                continue
            query = f'SELECT * EXCLUDE (log) FROM "{ours.topic}" ORDER BY ALL'
            got, due = logreel.sql(query, parts.log), logreel.sql(query, parts.merged)
            assert len(due)
            assert alike(got, due), ours.topic


def test_lazy_frames_of_parts_are_those_of_the_merge(parts: Parts) -> None:
    polars = pytest.importorskip("polars")
    for ours, theirs in channels(parts):
        scan = logreel.scan_polars(ours.log, ours.topic)
        due = logreel.scan_polars(theirs.log, theirs.topic).collect()
        assert alike_frames(scan.collect(), due), ours.topic
        if len(theirs):
            is_last = polars.col("time") == due["time"].max()
            due = due.filter(is_last)
            assert len(due)
            assert alike_frames(scan.filter(is_last).collect(), due), ours.topic


def alike_frames(got: Any, due: Any) -> bool:
    """Compare values and types of frames of Polars; NaN equals NaN, also in lists, of which only their text tells."""
    same = got.schema == due.schema and got.equals(due)
    return same or repr(got.rows()) == repr(due.rows())


def test_statistics_of_the_fields_of_parts_are_those_of_the_merge(parts: Parts) -> None:
    got, due = (
        {one.topic: one.as_dict() for one in logreel.stats(log, fields=True)}
        for log in (parts.log, parts.merged)
    )
    assert any(one["fields"] for one in due.values())
    assert got.keys() == due.keys()
    assert {topic: repr(got[topic]) for topic in due} == {topic: repr(one) for topic, one in due.items()}


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_files_of_tables_of_parts_have_the_rows_of_those_of_the_merge(parts: Parts, suffix: str) -> None:
    made = []
    for name, log in (("one", parts.log), ("two", parts.merged)):
        folder = parts.folder / f"{name}.{suffix}"
        logreel.convert(log, f"{folder}/", force=True, interpolate=True)
        made.append({file.name: file for file in folder.iterdir() if file.suffix == f".{suffix}"})
    ours, theirs = made
    assert ours.keys() == theirs.keys() != set()
    for name, file in theirs.items():
        if suffix == "csv":
            assert ours[name].read_bytes() == file.read_bytes(), name
            continue
        got, due = pq.read_table(ours[name]), pq.read_table(file)
        assert got.schema == due.schema
        assert len(due) or not len(parts.merged.get(name.removesuffix(".parquet"), ()))
        assert alike(got, due), name


def test_records_of_files_that_overlap_are_spread_up_to_the_next_message_of_any_file(tmp_path: Path) -> None:
    files = []
    for n, times in enumerate(((0, 300, 400), (100, 420, 500))):
        out = Builder()
        series = out.pods({"varname": "v"}, "float32")
        for at in times:
            out.values(series, T0 + at, "float32", [at, at + 1])
        files.append(tmp_path / f"{n}.bddf")
        files[-1].write_bytes(out.bytes())
    logreel.merge(files, tmp_path / "merged.bddf")
    with logreel.open(files) as log, logreel.open(tmp_path / "merged.bddf") as merged:
        got, due = (one["v"].to_arrow(interpolate=True) for one in (log, merged))
        times = [at - T0 for at in np.asarray(due["time"].cast("int64")).tolist()]
        assert times == [0, 50, 100, 200, 300, 350, 400, 410, 420, 460, 500, 540]
        assert got.to_pylist() == due.to_pylist()


def test_a_log_of_parts_can_be_handed_to_another_process_and_closed(parts: Parts) -> None:
    again = pickle.loads(pickle.dumps(parts.log))  # noqa: S301
    assert (again.name, again.message_count) == (parts.log.name, parts.log.message_count)
    channel = pickle.loads(pickle.dumps(next(ch for ch in parts.log.values() if len(ch))))  # noqa: S301
    assert len(channel)
    with again:
        assert len(again) == len(parts.log)
    with pytest.raises(logreel.LogError, match="closed"):
        next(again.messages())
