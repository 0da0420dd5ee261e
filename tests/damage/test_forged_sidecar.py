"""Sidecars that say something else than their log: not used, or at least not believed by what judges a log."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import logreel
from logreel.registry import index_cache
from logreel.registry.open import read_itself
from logreel.registry.registry import INDEX_SUFFIX
from support.builders.sidecars import forge
from support.harness.cli_runner import Run
from support.samples.ulog import builder


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGREEL_CACHE", "off")


@pytest.fixture
def indexed(tmp_path: Path) -> Path:
    path = tmp_path / "log.ulg"
    path.write_bytes(builder.flight(4))
    index_cache.write(str(path))
    return path


def is_used(path: Path) -> bool:
    return logreel.open(path).source.is_restored


def overwrite(path: Path, at: int, data: bytes) -> None:
    """Change bytes of a file as a failing disk does: size and times stay."""
    before = path.stat()
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_sidecar_is_rejected_when_any_byte_of_a_small_log_changed(
    indexed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert indexed.stat().st_size < index_cache.SAMPLES * index_cache.SAMPLE_BYTES
    assert is_used(indexed)
    whole, random = indexed.read_bytes(), Random(1)
    for at in random.sample(range(1 << 16, len(whole) - (1 << 16)), 12):
        overwrite(indexed, at, bytes([whole[at] ^ 1]))
        assert not is_used(indexed), at
        overwrite(indexed, at, whole[at : at + 1])
        assert is_used(indexed)


def test_a_sidecar_of_a_large_log_is_rejected_when_a_page_in_the_middle_is_lost(
    indexed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The file is as large for 16 samples as gigabytes are for all.
    monkeypatch.setattr(index_cache, "SAMPLES", 16)
    index_cache.write(str(indexed))
    assert is_used(indexed)
    size = indexed.stat().st_size
    every = (size - index_cache.SAMPLE_BYTES) // 15
    overwrite(indexed, size // 2, bytes(every))
    assert not is_used(indexed)


def leave_out_last(head: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Leave out the last messages of the last channel that has some in the last block."""
    start = arrays["start"]
    start[-1, -1] -= 2
    arrays["entry"] = arrays["entry"][:-2]


@pytest.fixture
def hiding(indexed: Path) -> Path:
    """Return a log with a sidecar that leaves out messages, as a forger makes it who can write as the user."""
    forge(sidecar_of(indexed), leave_out_last)
    return indexed


def test_check_recover_and_diff_read_the_log_itself(hiding: Path, run: Run) -> None:
    original = hiding.with_name("original.ulg")
    original.write_bytes(hiding.read_bytes())
    log, whole = logreel.open(hiding), logreel.open(original)
    assert log.source.is_restored, "this is what remains possible"
    assert log.message_count == whole.message_count - 2
    for what in (log, hiding):
        assert logreel.check(what).findings == logreel.check(whole).findings
        assert logreel.diff(what, original).same
        done = logreel.recover(what, hiding.with_name("out.ulg"), force=True)
        assert sum(one.messages for one in done.channels) == whole.message_count
    assert run("diff", hiding, original).code == 0
    assert run("check", hiding).out.replace("log.ulg", "") == run("check", original).out.replace(
        "original.ulg", ""
    )


def test_check_of_a_segment_and_of_several_files_reads_the_logs(hiding: Path) -> None:
    second = hiding.with_name("second.ulg")
    second.write_bytes(builder.tiny())
    for log in (logreel.open(hiding, segment=1), logreel.open([hiding, second])):
        assert any(one.source.is_restored for one in log.parts)
        itself = read_itself(log)
        assert itself.message_count == log.message_count + 2
        assert list(itself) == list(log)


def sidecar_of(path: Path) -> Path:
    return path.with_name(path.name + INDEX_SUFFIX)


def test_a_sidecar_of_a_wrong_size_costs_no_checksum(indexed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    side, summed = sidecar_of(indexed), []
    whole = side.read_bytes()

    def counted(data: bytes, value: int = 0, real: Callable[..., int] = zlib.crc32) -> int:
        summed.append(len(data))
        return real(data, value)

    monkeypatch.setattr(zlib, "crc32", counted)
    assert is_used(indexed)
    assert sum(summed) == len(whole) - 4
    summed.clear()
    # Sparse files of any size cost nothing to make.
    os.truncate(side, 1 << 40)
    assert not is_used(indexed)
    # One whose head states as many bytes.
    length = int.from_bytes(whole[8:16], "little")
    head = json.loads(whole[16 : 16 + length])
    head["arrays"]["more"] = ["<i8", [1 << 36], head["arrays"]["entry"][2] + (1 << 20)]
    text = json.dumps(head).encode()
    side.write_bytes(index_cache.MAGIC + len(text).to_bytes(8, "little") + text)
    os.truncate(side, (1 << 39) + (1 << 20))
    assert not is_used(indexed)
    side.write_bytes(whole + b"\0")
    assert not is_used(indexed)
    assert not summed


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners here")
def test_a_sidecar_that_others_can_write_is_not_used(indexed: Path, run: Run) -> None:
    side = sidecar_of(indexed)
    for change, back in (
        (lambda: side.chmod(0o666), lambda: side.chmod(0o644)),
        (lambda: indexed.parent.chmod(0o777), lambda: indexed.parent.chmod(0o755)),
    ):
        change()
        assert not is_used(indexed)
        back()
        assert is_used(indexed)
    indexed.parent.chmod(0o777)
    done = run("index", indexed)
    assert done.code == 1
    assert "others can write to the folder of the index" in done.err
    indexed.parent.chmod(0o755)
    target = side.with_name("elsewhere")
    side.rename(target)
    os.mkfifo(side)
    assert not is_used(indexed)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_a_sidecar_of_another_user_is_used_only_if_the_log_is_theirs_too(indexed: Path) -> None:
    side = sidecar_of(indexed)
    os.chown(side, 12345, 12345)
    assert not is_used(indexed)
    os.chown(indexed, 12345, 12345)
    assert is_used(indexed)


def test_the_cache_folder_is_made_for_the_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "cache"
    monkeypatch.setenv("LOGREEL_CACHE", str(folder))
    monkeypatch.setattr("logreel.registry.registry.WORTH_BYTES", 1)
    path = tmp_path / "log.ulg"
    path.write_bytes(builder.tiny())
    assert not is_used(path)
    assert is_used(path)
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    assert not is_used(path)
