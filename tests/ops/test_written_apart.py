"""A log that is written to be counted, verified or read again is kept in memory while it is small, else in a file."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

import logreel
from logreel.io.source import SPOOL_BYTES
from logreel.ops.rewrite import engine
from support.builders.contents import SAMPLES
from support.harness.written_files import written_files
from support.samples.ulog.builder import flight

#: An edit that all formats take.
SHIFT = {"shift": "1s"}


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
        assert bool(written) == (room == 1000), (suffix, written)
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
        assert bool(written) == (room == 1000), (suffix, written)
        assert stream.getvalue() == file.read_bytes(), suffix
    damaged, file, stream = flight(1.0)[:-9], tmp_path / "whole.ulg", io.BytesIO()
    logreel.recover(damaged, file)
    with written_files() as written:
        logreel.recover(damaged, stream)
    assert bool(written) == (room == 1000), written
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
