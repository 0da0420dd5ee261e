"""A log that is written to be read again is kept in memory while it is small; streams and du need no file at all."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

import logreel
from logreel.io.append_file import Appender
from logreel.io.source import SPOOL_BYTES
from logreel.io.two_pass import DryRun, StreamOut
from logreel.ops.rewrite import engine, read_back
from logreel.registry.registry import formats
from support.builders.contents import SAMPLES
from support.harness.written_files import written_files
from support.samples.mcap.walk import walk
from support.samples.rosbag.builder import drive
from support.samples.ulog.builder import flight

#: An edit that all formats take.
SHIFT = {"shift": "1s"}
#: Suffixes of formats whose readers need all of a log: channels follow from messages; pages of a database.
NEED_ALL = {".vel", ".db3"}
#: Logs of several blocks, of which one is half a megabyte in most formats.
LARGE = {".bag": lambda: drive(3.0), ".mcap": lambda: walk(120.0), ".ulg": lambda: flight(40.0)}
#: Suffixes of formats with chunks of a size that can be chosen.
CHUNKED = {".bag", ".mcap"}


@pytest.fixture(params=[SPOOL_BYTES, 1000], ids=["memory", "file"])
def room(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Bytes that are kept in memory."""
    monkeypatch.setattr("logreel.io.two_pass.SPOOL_BYTES", request.param)
    return int(request.param)


def others(written: list[str], *names: str) -> list[str]:
    """Return what was written besides the files *names*, also under their unfinished names."""
    return [
        name
        for name in written
        if name not in names and not (name.startswith(".logreel-") and name.endswith(".partial"))
    ]


def test_du_of_a_part_counts_what_slice_writes(room: int, tmp_path: Path) -> None:
    for suffix, make in SAMPLES.items():
        source, out = tmp_path / f"a{suffix}", tmp_path / f"part{suffix}"
        source.write_bytes(make())
        with logreel.open(source) as log:
            middle = (log.duration or 0) // 2
            logreel.slice(log, out, end=f"+{middle}ns")
            with written_files() as written:
                usage = logreel.du(log, end=f"+{middle}ns")
        assert bool(written) == (room == 1000 and suffix in NEED_ALL), (suffix, written)
        counted = logreel.du(out)
        assert (usage.size, usage.topics, usage.other) == (counted.size, counted.topics, counted.other), (
            suffix
        )
        assert usage.path == str(source)


def test_a_stream_gets_what_was_verified(room: int, tmp_path: Path) -> None:
    for suffix, make in SAMPLES.items():
        source, file, stream = tmp_path / f"a{suffix}", tmp_path / f"out{suffix}", io.BytesIO()
        source.write_bytes(make())
        logreel.edit(source, file, **SHIFT)
        with written_files() as written:
            logreel.edit(source, stream, **SHIFT)
        assert bool(written) == (room == 1000 and suffix in NEED_ALL), (suffix, written)
        assert stream.getvalue() == file.read_bytes(), suffix
    damaged, file, stream = flight(1.0)[:-9], tmp_path / "whole.ulg", io.BytesIO()
    logreel.recover(damaged, file)
    with written_files() as written:
        logreel.recover(damaged, stream)
    assert not written
    assert stream.getvalue() == file.read_bytes()


def test_nothing_is_sent_of_a_log_that_is_not_as_due(
    room: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, stream = tmp_path / "a.ulg", io.BytesIO()
    source.write_bytes(flight(1.0))

    def refuse(*_: object) -> None:
        raise logreel.LogError("not as due")

    monkeypatch.setattr(engine.NewLog, "_compare_counts", refuse)
    with pytest.raises(logreel.LogError, match="not as due"):
        logreel.edit(source, stream, **SHIFT)
    assert stream.getvalue() == b""


@pytest.fixture
def forgotten(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Sizes of what was forgotten while logs are read back in small steps, on any system."""
    monkeypatch.setattr("logreel.io.two_pass.SPOOL_BYTES", 1000)
    monkeypatch.setattr("logreel.io.two_pass.PIECE", 1 << 12)
    monkeypatch.setattr(read_back, "STEP", 1 << 14)
    monkeypatch.setattr(read_back, "HEAD", 1 << 12)
    sizes: list[int] = []

    def forget(memory: Any, start: int, stop: int) -> None:
        if stop > start:
            memory[start:stop] = bytes(stop - start)
            sizes.append(stop - start)

    monkeypatch.setattr(read_back._Memory, "forget", forget)
    return sizes


@pytest.mark.parametrize("suffix", sorted(SAMPLES.keys() - NEED_ALL))
def test_what_was_read_back_is_forgotten(suffix: str, tmp_path: Path, forgotten: list[int]) -> None:
    source, file, stream = tmp_path / f"a{suffix}", tmp_path / f"out{suffix}", io.BytesIO()
    source.write_bytes(SAMPLES[suffix]())
    options = {**SHIFT, **({"chunk_bytes": 1 << 12} if suffix in CHUNKED else {})}
    due = logreel.edit(source, file, **options)
    done = logreel.edit(source, stream, **options)
    assert stream.getvalue() == file.read_bytes()
    assert (done.size, done.channels, done.notes) == (due.size, due.channels, due.notes)
    assert done.changes == due.changes
    assert sum(forgotten) > done.size // 2


@pytest.mark.parametrize("compression", ["as it is", "none"])
@pytest.mark.parametrize("suffix", sorted(SAMPLES.keys() - NEED_ALL))
def test_du_counts_what_is_forgotten(
    suffix: str, compression: str, tmp_path: Path, forgotten: list[int]
) -> None:
    source, part = tmp_path / f"a{suffix}", tmp_path / f"part{suffix}"
    source.write_bytes({**SAMPLES, **LARGE}[suffix]())
    if suffix in CHUNKED:
        options = {} if compression == "as it is" else {"compression": compression}
        again = tmp_path / f"b{suffix}"
        logreel.edit(source, again, **SHIFT, chunk_bytes=1 << 12, **options)
        source = again
    with logreel.open(source) as log:
        end = f"+{(log.duration or 0) * 9 // 10}ns"
        logreel.slice(log, part, end=end)
        usage, counted = logreel.du(log, end=end), logreel.du(part)
    assert usage.as_dict() == {**counted.as_dict(), "path": str(source)}
    assert sum(forgotten) > usage.size // 3 or suffix not in LARGE


def test_a_search_before_sending_says_what_may_identify(tmp_path: Path, forgotten: list[int]) -> None:
    source, file, stream = tmp_path / "a.ulg", tmp_path / "out.ulg", io.BytesIO()
    source.write_bytes(flight(3.0))
    due = logreel.edit(source, file, redact=["place", "identity"])
    done = logreel.edit(source, stream, redact=["place", "identity"])
    assert forgotten
    assert done.may_identify == due.may_identify
    assert due.may_identify


def test_a_stream_gets_no_other_bytes_than_those_that_were_read(tmp_path: Path) -> None:
    content, sent = flight(1.0), list[bytes]()

    def make(out: Appender) -> None:
        out.write(content)
        out.finish()

    dry_run = DryRun("a.ulg", make=make)
    make(dry_run)
    back = read_back.ReadBack(dry_run, formats()["ulog"], make)
    make(back)
    with logreel.open(content) as log:
        assert {ch.topic: len(ch) for ch in back.log().values()} == {ch.topic: len(ch) for ch in log.values()}
        assert (back.times("sensor_combined") == log["sensor_combined"].times).all()
    take = back.checked(sent.append)
    make(StreamOut("a.ulg", take))
    assert b"".join(sent) == content
    sent.clear()
    content = content[:-1] + bytes([content[-1] ^ 1])
    with pytest.raises(logreel.LogError, match="changed by another program"):
        make(StreamOut("a.ulg", back.checked(sent.append)))
    assert len(b"".join(sent)) < len(content)


def test_files_with_changes_become_one_log(room: int, tmp_path: Path) -> None:
    files = [tmp_path / "1.ulg", tmp_path / "2.ulg"]
    for file, seconds in zip(files, (4.0, 3.0), strict=True):
        file.write_bytes(flight(seconds))
    out = tmp_path / "out.mcap"
    with logreel.open(files, align="+100s", anyway=True) as log:
        counts = {ch.topic: len(ch) for ch in log.values()}
        with written_files() as written:
            logreel.convert(log, out, edit={"rename": {"vehicle_attitude": "attitude"}})
    assert bool(others(written, "out.mcap")) == (room == 1000), written
    with logreel.open(out) as log:
        assert len(log["attitude"]) == counts["vehicle_attitude"]
