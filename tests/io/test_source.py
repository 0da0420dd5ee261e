"""Sources of all kinds return the same bytes."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from logreel.errors import LogError, UnsupportedError
from logreel.io import source
from logreel.io.source import Source
from support.samples.ulog.builder import tiny

DATA = tiny()


class Trickle(io.RawIOBase):
    """A stream that returns one to three bytes at a time, as pipes and sockets may."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        piece = self._data[self._at : self._at + 1 + self._at % 3]
        self._at += len(piece)
        return piece


def piped(path: Path, data: bytes) -> threading.Thread:
    """Start a thread that writes *data* into a new named pipe when it is opened for reading."""
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_bytes(data))
    writer.start()
    return writer


WAYS: dict[str, Callable[[Path], Any]] = {
    "str": str,
    "Path": lambda path: path,
    "bytes": Path.read_bytes,
    "bytearray": lambda path: bytearray(path.read_bytes()),
    "memoryview": lambda path: memoryview(path.read_bytes()),
    "strided view": lambda path: memoryview(b"".join(bytes([b, 0]) for b in path.read_bytes()))[::2],
    "words": lambda path: memoryview(path.read_bytes() + bytes(-path.stat().st_size % 8)).cast("Q"),
    "BytesIO": lambda path: io.BytesIO(path.read_bytes()),
    "file": lambda path: path.open("rb"),
    "raw file": lambda path: path.open("rb", buffering=0),
    "trickle": lambda path: Trickle(path.read_bytes()),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_kind_of_source_has_the_same_bytes(way: str, tmp_path: Path) -> None:
    path = tmp_path / "log.ulg"
    path.write_bytes(DATA)
    what = WAYS[way](path)
    found = Source.open(what)
    assert found.data.tobytes()[: len(DATA)] == DATA
    assert found.data.dtype == np.uint8
    assert not found.data.flags.writeable
    assert bytes(found.view) == found.data.tobytes()
    assert found.head == found.data[:4096].tobytes()
    assert logreel.open(found).message_count == logreel.open(DATA).message_count
    if hasattr(what, "close"):
        what.close()


def test_later_change_of_a_bytearray_does_not_change_the_log() -> None:
    mine = bytearray(DATA)
    found = Source.open(mine)
    mine[:] = bytes(len(mine))
    mine.clear()
    assert found.data.tobytes() == DATA


def test_pipes_and_standard_input_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fifo = tmp_path / "fifo"
    writer = piped(fifo, DATA)
    found = Source.open(fifo)
    writer.join()
    assert (found.data.tobytes(), found.path, found.name) == (DATA, None, str(fifo))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(DATA)))
    assert Source.open("-").data.tobytes() == DATA


def test_virtual_files_of_size_0_are_read() -> None:
    """Files in /proc have size 0 but content."""
    stat = Path("/proc/self/stat")
    if not stat.exists():
        pytest.skip("no /proc")
    assert Source.open(stat).size > 0
    assert Source.open("/dev/null").size == 0
    with pytest.raises(LogError):
        logreel.open("/proc/self/cmdline")


@pytest.mark.parametrize("more", [-1, 0, 1, 5000])
def test_long_stream_goes_to_a_temporary_file(more: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "SPOOL_BYTES", 1000)
    data = np.random.default_rng(1).bytes(1000 + more)
    assert Source.open(io.BytesIO(data)).data.tobytes() == data
    assert Source.open(Trickle(data)).data.tobytes() == data
    log = logreel.open(Trickle(DATA))
    assert log.message_count == logreel.open(DATA).message_count


def test_unreadable_sources_raise(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="a folder with no log"):
        logreel.open(tmp_path)
    with pytest.raises(FileNotFoundError):
        logreel.open(tmp_path / "missing.ulg")
    with pytest.raises(UnsupportedError, match="cannot be read from ftp:"):
        logreel.open("ftp://host/log.ulg")
    text = tmp_path / "text"
    text.write_text("ULog")
    with text.open() as stream, pytest.raises(TypeError, match="binary"):
        logreel.open(stream)  # type: ignore[arg-type]
    for odd in (None, 3, object()):
        with pytest.raises(TypeError, match="expected a path"):
            logreel.open(odd)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="null"):
        logreel.open("a\0b")


@pytest.mark.parametrize("data", [b"", b"x", b"ULog", bytes(5000)])
def test_other_bytes_raise_log_error(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.ulg"
    path.write_bytes(data)
    for what in (data, path):
        with pytest.raises(LogError):
            logreel.open(what)


def test_identity_follows_size_time_head_and_tail(tmp_path: Path) -> None:
    path = tmp_path / "x"
    seen = set()
    for data in (DATA, DATA + b"\0", b"\0" + DATA[1:], DATA[:-1] + b"\7"):
        path.write_bytes(data)
        for stamp in (10**18, 10**18 + 1):
            os.utime(path, ns=(stamp, stamp))
            assert Source.open(path).identity == Source.open(path).identity
            seen.add(Source.open(path).identity)
    assert len(seen) == 8
    removed = Source.open(path)
    path.unlink()
    with pytest.raises(LogError, match="went away"):
        _ = removed.identity
