"""Append-only files: committed bytes are in the file after any failure."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import textwrap
from collections import deque
from pathlib import Path

import numpy as np
import pytest

from logreel.errors import LogError
from logreel.io import append_file as module
from logreel.io.append_file import Appender


def limit_disk(monkeypatch: pytest.MonkeyPatch, room: int) -> None:
    """Make ``os.write`` accept *room* bytes in total, and then fail as on a full disk."""
    left, real = [room], os.write

    def write(handle: int, data: memoryview) -> int:
        if not left[0]:
            raise OSError(errno.ENOSPC, "full")
        done = real(handle, data[: left[0]])
        left[0] -= done
        return done

    monkeypatch.setattr(os, "write", write)


def test_file_gets_its_name_when_complete(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    with Appender(path) as out:
        out.write(b"one")
        assert out.tell() == 3
        out.commit()
        out.flush(sync=True)
        assert not path.exists()
        assert (tmp_path / "a.bin.active").read_bytes() == b"one"
        out.write(memoryview(b"two"))
        out.commit()
        out.patch(1, b"N")
    assert path.read_bytes() == b"oNetwo"
    assert os.listdir(tmp_path) == ["a.bin"]


def test_uncommitted_bytes_are_not_in_the_file(tmp_path: Path) -> None:
    with Appender(tmp_path / "a.bin") as out:
        out.write(b"whole")
        out.commit()
        out.write(b"half")
    assert (tmp_path / "a.bin").read_bytes() == b"whole"


def test_large_pieces_are_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, large, real = tmp_path / "a.bin", bytes(range(256)) * (module.BUFFER // 256), os.write
    monkeypatch.setattr(os, "write", lambda handle, data: real(handle, data[:300_000]))
    with Appender(path) as out:
        out.put(b"small")
        out.put(memoryview(large))
        assert out.tell() == out.unfinished.stat().st_size == 5 + len(large)
        out.put(b"end")
    assert path.read_bytes() == b"small" + large + b"end"
    left = [400_000]

    def full(handle: int, data: memoryview) -> int:
        if left[0] <= 0:
            raise OSError(errno.ENOSPC, "full")
        left[0] -= 300_000
        return real(handle, data[:300_000])

    out = Appender(path, force=True)
    out.put(b"small")
    out.flush()
    monkeypatch.setattr(os, "write", full)
    for _ in range(2):
        with pytest.raises(LogError, match="No space left"):
            out.put(large)
    out.leave()
    assert (tmp_path / "a.bin.active").read_bytes() == b"small"


def test_exception_leaves_the_unfinished_file(tmp_path: Path) -> None:
    def fail() -> None:
        with Appender(tmp_path / "a.bin") as out:
            out.write(b"whole")
            out.commit()
            out.write(b"half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert os.listdir(tmp_path) == ["a.bin.active"]
    assert (tmp_path / "a.bin.active").read_bytes() == b"whole"


def test_files_are_replaced_only_with_force(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    with pytest.raises(LogError, match="exists already"):
        Appender(path)
    with Appender(path, force=True) as out:
        out.write(b"new")
        out.commit()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    path.unlink()
    (tmp_path / "a.bin.active").write_bytes(b"a crash left this")
    with pytest.raises(LogError, match="not finished"):
        Appender(path)
    with pytest.raises(LogError, match="no such folder"):
        Appender(tmp_path / "none" / "a.bin")


def test_file_created_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    out = Appender(path)
    path.write_bytes(b"somebody else's")
    with pytest.raises(LogError, match="exists already"):
        out.finish()
    assert path.read_bytes() == b"somebody else's"


@pytest.mark.parametrize("room", [0, 1, 7, 8, 9, 15, 16])
def test_full_disk_leaves_complete_records(
    tmp_path: Path, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk has room for *room* bytes."""
    monkeypatch.setattr(module, "BUFFER", 1)
    limit_disk(monkeypatch, room)
    out = Appender(tmp_path / "a.bin")
    for _ in range(room // 8):
        out.write(b"a record")
        out.commit()
    out.write(b"a record")
    with pytest.raises(LogError, match="No space left"):
        out.commit()
    with pytest.raises(LogError, match="No space left"):
        out.write(b"more")
    with pytest.raises(LogError):
        out.finish()
    out.leave()
    assert (tmp_path / "a.bin.active").read_bytes() == b"a record" * (room // 8)
    assert not (tmp_path / "a.bin").exists()


def test_file_size_limit_is_an_error(tmp_path: Path) -> None:
    """With a real limit of the system: an error, no signal, and no partial record."""
    script = """
        import resource, signal, sys
        from logreel.errors import LogError
        from logreel.io.append_file import Appender
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3 << 20, 3 << 20))
        out = Appender(sys.argv[1])
        try:
            while True:
                out.write(bytes(1000))
                out.commit()
        except LogError as error:
            out.leave()
            sys.exit(7 if "File too large" in str(error) else str(error))
    """
    path = tmp_path / "a.bin"
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script), str(path)], check=False)
    assert done.returncode == 7
    size = (tmp_path / "a.bin.active").stat().st_size
    assert size % 1000 == 0
    assert 1 << 20 <= size <= 3 << 20


def test_pieces_of_all_kinds_and_sizes(tmp_path: Path) -> None:
    pieces = [b"", bytearray(b"ab"), memoryview(np.zeros(0, np.uint8)), memoryview(np.arange(3.0))]
    pieces += [bytes([n]) * size for n, size in enumerate((1, 3 << 20, 5, 30 << 20, 7, 1 << 20, 9))]
    due = b"".join(pieces)
    with Appender(tmp_path / "a.bin") as out:
        for n, piece in enumerate(pieces):
            out.write(piece)
            assert out.tell() == len(b"".join(pieces[: n + 1]))
            if n % 2:
                out.commit()
        out.commit()
    assert (tmp_path / "a.bin").read_bytes() == due


def test_large_pieces_keep_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BUFFER", 4)
    with Appender(tmp_path / "a.bin") as out:
        out.write(b"ab")
        out.put(b"c")
        out.put(memoryview(b"defgh"))
        assert out.tell() == 8
        out.write(b"half")
    assert (tmp_path / "a.bin").read_bytes() == b"abcdefgh"


def test_given_pieces_are_written_in_order_and_memory_is_reused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BUFFER", 4)
    monkeypatch.setattr(module, "SYNCED", 50)
    due, seen = b"", set()
    with Appender(tmp_path / "a.bin", keep=False) as out:
        for n in range(200):
            room = out.lend(1 + n % 9)
            seen.add(id(room.obj))
            room[:] = bytes([n]) * len(room)
            due += bytes(room)
            out.give(room)
            assert out.tell() == len(due)
            if n % 50 == 49:
                out.put(b"between")
                out.write(b"and")
                due += b"betweenand"
        out.commit()
    assert (tmp_path / "a.bin").read_bytes() == due
    # Buffers waiting, being written, and being filled, and smaller ones before them.
    assert len(seen) < 20


@pytest.mark.parametrize("room", [0, 3, 10, 25, 39])
def test_full_disk_in_the_background_leaves_complete_records(
    tmp_path: Path, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk has room for *room* bytes, while pieces of 10 bytes wait to be written."""
    monkeypatch.setattr(module, "BUFFER", 1)
    limit_disk(monkeypatch, room)
    out = Appender(tmp_path / "a.bin")

    def give(n: int) -> None:
        piece = out.lend(10)
        piece[:] = bytes([n]) * 10
        out.give(piece)

    with pytest.raises(LogError, match="No space left"):
        deque(map(give, range(9)))
    with pytest.raises(LogError, match="No space left"):
        out.give(out.lend(10))
    with pytest.raises(LogError, match="No space left"):
        out.finish()
    out.leave()
    due = b"".join(bytes([n]) * 10 for n in range(room // 10))
    assert (tmp_path / "a.bin.active").read_bytes() == due


@pytest.mark.parametrize("piece", [b"", b"x", b"a long one"])
def test_splice_moves_the_bytes_behind(tmp_path: Path, piece: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COPIED", 3)
    with Appender(tmp_path / "a.bin") as out:
        out.put(b"0123456789")
        out.splice(2, 4, piece)
        assert out.tell() == 6 + len(piece)
        assert os.listdir(tmp_path) == ["a.bin.active"]
        out.put(b"end")
        out.patch(0, b"N")
    assert (tmp_path / "a.bin").read_bytes() == b"N1" + piece + b"6789end"
    assert os.listdir(tmp_path) == ["a.bin"]


def test_splice_on_full_disk_leaves_the_file_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = Appender(tmp_path / "a.bin")
    out.put(b"0123456789")
    out.flush()

    def full(handle: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(module.os, "write", full)  # type: ignore[attr-defined]
    with pytest.raises(LogError, match="No space left"):
        out.splice(2, 0, b"more")
    out.leave()
    assert os.listdir(tmp_path) == ["a.bin.active"]
    assert (tmp_path / "a.bin.active").read_bytes() == b"0123456789"
