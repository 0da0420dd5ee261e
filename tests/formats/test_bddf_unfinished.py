"""Unfinished BDDF files (truncated, writer killed, disk full) keep everything that was flushed."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

import logreel
from support.builders.bddf_rows import LINE, NUMBERED, POINT, rows
from support.harness.killed import killed
from support.oracles import bddf as oracle
from support.samples.bddf.builder import T0


def recording(path: Path, flushed: int) -> bytes:
    """Return an unfinished recording of *flushed* messages per channel, flushed after every fourth."""
    w = logreel.create(path, flush_every=None)
    say, speed = w.add_channel("say", LINE, NUMBERED), w.add_channel("speed", POINT)
    for i in range(flushed):
        w.write(say, T0 + i, {"text": f"line {i}", "n": i})
        w.write(speed, T0 + i, struct.pack("<2f", i, -i))
        if i % 4 == 3:
            w.flush()
    w.leave()
    return Path(f"{path}.active").read_bytes()


def test_truncated_or_zeroed_recording_keeps_flushed_messages(tmp_path: Path) -> None:
    whole = recording(tmp_path / "a.bddf", 6)
    everything = oracle.walk(whole).rows
    assert len(everything) == 12
    for cut in range(4, len(whole)):
        due = [(row.ns, row.payload) for row in everything if row.end <= cut]
        assert _messages(whole[:cut]) == due
        # Zeros at the end of a payload cannot be distinguished from content.
        assert _messages(whole[:cut] + bytes(100))[: len(due)] == due


def _messages(data: bytes) -> list[tuple[int, bytes]]:
    return [(m.time, bytes(m.data)) for m in logreel.open(data).messages(order="file")]


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 1.0])
def test_truncated_recording_is_recovered(tmp_path: Path, share: float) -> None:
    whole = recording(tmp_path / "a.bddf", 40)
    cut = whole[: int(len(whole) * share)]
    (tmp_path / "a.bddf.active").write_bytes(cut)
    done = logreel.recover(tmp_path / "a.bddf.active")
    due = [row for row in oracle.walk(whole).rows if row.end <= len(cut)]
    assert done.messages == len(due)
    assert [(row.series, row.ns, row.payload, row.numbers) for row in due] == rows(tmp_path / "a.bddf")
    assert done.lost_bytes == (len(cut) - oracle.walk(cut).stop)


@pytest.mark.parametrize("acknowledged", [1, 30])
def test_killed_recorder_keeps_flushed_messages(tmp_path: Path, acknowledged: int) -> None:
    channels = """
        say = w.add_channel("say", logreel.Schema("line", "text/plain"), {"additional_indexes": ["n"]})
        value = w.add_channel("value", logreel.Schema("float64", "bddf"))
    """
    write = """
        w.write(say, 10**18 + i, {"text": str(i), "n": i})
        w.write(value, 10**18 + i, struct.pack("<d", i))
    """
    left, due = killed(tmp_path / "a.bddf", "import struct", channels, write, acknowledged)
    log = logreel.open(left)
    found = log["say"]["n"].tolist()
    assert len(found) >= due
    assert found == list(range(len(found)))
    assert log["value"]["value"].tolist()[:due] == [float(i) for i in range(due)]


def test_writer_fails_after_the_disk_was_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, real, room = tmp_path / "a.bddf", os.write, [4000]

    def write(handle: int, data: memoryview) -> int:
        room[0] -= len(data)
        if room[0] < 0:
            raise OSError(28, "full")
        return real(handle, data)

    w = logreel.create(path, flush_every=None)
    channel = w.add_channel("say", LINE)
    monkeypatch.setattr(os, "write", write)
    sent = 0
    with pytest.raises(logreel.LogError, match="No space left"):  # noqa: PT012
        for sent in range(10_000):
            w.write(channel, T0 + sent, b"x" * 100)
            w.flush()
    for call in (w.flush, w.close):
        with pytest.raises(logreel.LogError, match="No space left"):
            call()
    assert not path.exists()
    assert logreel.open(f"{path}.active")["say"].times.tolist() == [T0 + i for i in range(sent)]


def test_index_that_does_not_fit_leaves_a_readable_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, real = tmp_path / "a.bddf", os.write
    w = logreel.create(path, flush_every=None)
    channel = w.add_channel("say", LINE)
    for i in range(100):
        w.write(channel, T0 + i, b"x")
    w.flush()

    def write(handle: int, data: memoryview) -> int:
        return real(handle, data[:700]) if os.fstat(handle).st_size < 3500 else _full()

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(logreel.LogError, match="No space left"):
        w.close()
    assert len(logreel.open(f"{path}.active")["say"]) == 100
    assert not path.exists()


def _full() -> int:
    raise OSError(28, "full")
