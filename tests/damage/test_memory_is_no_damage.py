"""A lack of memory while chunks are decompressed is an error: recorded as damage, it would lose sound messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lz4.block
import lz4.frame
import numpy as np
import pytest
from small_samples import SMALL

import logreel
from logreel.io import zstd
from logreel.io.lz4_frames import unpack_lz4
from support.samples.rosbag.builder import lz4_frame
from support.samples.ulog.builder import flight

#: What zstd says when it cannot allocate.
ZSTD = "zstd decompress error: Allocation error : not enough memory"


class Broken:
    """A decompressor that fails at every call with an error."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def fail(self, *_: Any, **__: Any) -> Any:
        raise self._error

    decompress = readinto = fail


def break_zstd(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Let zstd fail with *error*, whichever library it is."""
    broken = Broken(error)
    monkeypatch.setattr(zstd, "unpack", broken.fail)
    monkeypatch.setattr(zstd, "reader", lambda data: broken)


def payloads(data: bytes) -> list[bytes]:
    return [bytes(one.data) for one in logreel.open(data).messages()]


def packed(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8)


def test_memory_for_a_block_of_a_damaged_lz4_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    cut = packed(lz4_frame(b"some words " * 50)[:-12])
    assert unpack_lz4(cut, 1000)[1] == "its LZ4 frame is cut"
    monkeypatch.setattr(lz4.block, "decompress", Broken(MemoryError()).fail)
    with pytest.raises(MemoryError):
        unpack_lz4(cut, 1000)


def test_memory_that_lz4_itself_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    error = RuntimeError("LZ4F_decompress failed with code: ERROR_allocation_failed")
    monkeypatch.setattr(lz4.frame, "LZ4FrameDecompressor", lambda: Broken(error))
    with pytest.raises(MemoryError, match="allocation_failed"):
        unpack_lz4(packed(lz4_frame(b"words")), 1000)


@pytest.mark.parametrize("error", [MemoryError("none left"), zstd.ZstdError(ZSTD)], ids=["python", "zstd"])
def test_memory_for_a_zstd_chunk(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    data = SMALL["mcap zstd"].make()
    break_zstd(monkeypatch, error)
    with pytest.raises(MemoryError):
        payloads(data)


def test_other_errors_of_zstd_stay_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    data = SMALL["mcap zstd"].make()
    with monkeypatch.context() as changed:
        break_zstd(changed, zstd.ZstdError("corrupted block"))
        log = logreel.open(data)
        list(log.messages())
        assert any("corrupted block" in str(one) for one in log.problems)
    assert not logreel.open(data).problems


def test_memory_that_duckdb_lacks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    log = logreel.open(flight(1))
    broken = Broken(duckdb.OutOfMemoryException("Out of Memory Error: Allocation failure"))
    monkeypatch.setattr(duckdb, "connect", broken.fail)
    monkeypatch.setattr("logreel.ops.query.sql._idle", [])
    for job in (
        lambda: logreel.sql("SELECT 1", log),
        lambda: logreel.slice(log, tmp_path / "out.ulg", where="battery_status.voltage_v > 1"),
    ):
        with pytest.raises(MemoryError, match="Allocation failure"):
            job()
