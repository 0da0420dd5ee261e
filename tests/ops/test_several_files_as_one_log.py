"""Several files opened as one log give the same answers as their merge."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import logreel
from logreel import Log
from logreel.log.joined_log import JoinedLog
from logreel.registry.registry import formats
from support.builders.sample_logs import short_flight

FORMATS = [name for name, fmt in formats().items() if fmt.create is not None and fmt.sample is not None]


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
    fmt = formats()[request.param]
    folder, suffix = tmp_path_factory.mktemp(request.param), fmt.suffixes[0]
    assert fmt.sample is not None
    whole = folder / f"whole{suffix}"
    whole.write_bytes(short_flight() if request.param == "ulog" else fmt.sample())
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
    return one.equals(two) or repr(one.to_pylist()) == repr(two.to_pylist())


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


def test_a_conversion_of_parts_is_that_of_the_merge(parts: Parts) -> None:
    for raw in (False, True):
        one, two = (parts.folder / f"{name}.mcap" for name in ("one", "two"))
        logreel.convert(parts.log, one, force=True, raw=raw)
        logreel.convert(parts.merged, two, force=True, raw=raw)
        with logreel.open(one) as ours, logreel.open(two) as theirs:
            assert messages(ours) == messages(theirs)
            assert set(ours) == set(theirs)


def test_a_log_of_parts_can_be_handed_to_another_process_and_closed(parts: Parts) -> None:
    again = pickle.loads(pickle.dumps(parts.log))  # noqa: S301
    assert (again.name, again.message_count) == (parts.log.name, parts.log.message_count)
    channel = pickle.loads(pickle.dumps(next(ch for ch in parts.log.values() if len(ch))))  # noqa: S301
    assert len(channel)
    with again:
        assert len(again) == len(parts.log)
    with pytest.raises(logreel.LogError, match="closed"):
        next(again.messages())
