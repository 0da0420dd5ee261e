"""Sidecars of logs: they restore exactly the scanned log, or are not used."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import logreel
from damage.mutations import mutate
from logreel.errors import LogError
from logreel.formats.ulog import reader
from logreel.log.log import Log
from logreel.registry import index_cache
from logreel.registry.registry import INDEX_SUFFIX
from support.builders.sidecars import forge
from support.harness.examples import half
from support.samples.ulog import builder
from support.samples.ulog.builder import Builder


def to_bytes(table: pa.Table) -> bytes:
    """Return a table and its schema as bytes, to compare them including NaN."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table)
    return bytes(sink.getvalue())


def content_of(log: Log) -> dict[str, Any]:
    """Return the content of a log in a form that can be compared."""
    return {
        "bounds": (log.version, log.epoch, log.start, log.end, log.utc_offset, log.size),
        "channels": [(ch.topic, ch.schema, dict(ch.metadata), len(ch)) for ch in log.channels.values()],
        "times": {ch.topic: ch.times.tolist() for ch in log.channels.values()},
        "tables": {ch.topic: to_bytes(ch.to_arrow()) for ch in log.channels.values()},
        "index": [getattr(log.index, k).tolist() for k in ("time", "channel", "offset", "size")],
        "problems": log.problems,
        "metadata": dict(log.metadata),
        "parameters": dict(log.parameters),
        "text": log.text,
        "attachments": {name: a.read() for name, a in log.attachments.items()},
    }


def odd_log() -> bytes:
    """Return a log with damage, segments, appended parts, and topics without definition or with short times."""
    out = Builder(start_us=1000).flags().info("sys_name", "PX4").parameter("P", 1).default_parameter("P", 2)
    out.format("a:uint64_t timestamp;uint8_t x;").format("b:uint8_t timestamp;").subscribe("a", 0)
    out.subscribe("b", 1).subscribe("nothing", 2).data(2, b"raw").data(9, b"undeclared").text(
        6, 2000, "hello"
    )
    for i in range(20):
        out.data(0, struct.pack("<QB", 10**7 + i, i)).data(1, bytes([i]))
    out.junk(b"\0" * 30).raw("x", b"future").dropout(7).parameter("P", 3).append_part()
    for i in range(20):
        out.data(0, struct.pack("<QB", 10**6 + i, i)).sync()
    return out.junk(builder.tiny()).bytes()


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGREEL_CACHE", "off")


@pytest.fixture(params=[builder.tiny, lambda: builder.flight(2), odd_log], ids=["tiny", "flight", "odd_log"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "log.ulg"
    path.write_bytes(request.param())
    return path


class Scanned(Exception):
    """Raised when a log is scanned."""


@pytest.fixture
def forbid_scan(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return a function after whose call scanning a log raises Scanned."""

    return lambda: monkeypatch.setattr(reader.Reader, "finish", _raise_scanned)


def _raise_scanned(*_: object) -> None:
    raise Scanned


def test_log_with_sidecar_equals_the_scanned_log(log: Path, forbid_scan: Callable[[], None]) -> None:
    due = content_of(logreel.open(log))
    place = index_cache.write(str(log))
    assert place == log.with_name("log.ulg" + INDEX_SUFFIX)
    forbid_scan()
    assert content_of(logreel.open(log)) == due
    with pytest.raises(Scanned):
        logreel.open(log.read_bytes())


def test_cache_is_filled_and_used(log: Path, monkeypatch: pytest.MonkeyPatch, forbid_scan: Any) -> None:
    folder = log.parent / "deep" / "cache"
    monkeypatch.setenv("LOGREEL_CACHE", str(folder))
    logreel.open(log)
    assert not folder.exists()  # too small to be worth it
    monkeypatch.setattr("logreel.registry.registry.WORTH_BYTES", 1)
    due = content_of(logreel.open(log))
    assert len(list(folder.iterdir())) == 1
    forbid_scan()
    assert content_of(logreel.open(log)) == due


def test_large_index_is_mapped_from_the_cache_at_the_first_opening(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    due = content_of(logreel.open(log))
    monkeypatch.setenv("LOGREEL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("logreel.registry.registry.WORTH_BYTES", 1)
    monkeypatch.setattr(index_cache, "MAPPED_BYTES", 1)
    loaded: list[object] = []
    load = index_cache.load
    monkeypatch.setattr(index_cache, "load", lambda *given: loaded.append(found := load(*given)) or found)
    assert content_of(logreel.open(log)) == due
    assert loaded[0] is None
    assert loaded[1] is not None


def test_changed_log_is_scanned_again(log: Path, forbid_scan: Callable[[], None]) -> None:
    index_cache.write(str(log))
    whole, stat = log.read_bytes(), log.stat()
    forbid_scan()
    logreel.open(log)
    changed = bytearray(whole)
    changed[-1] ^= 1
    for content, stamp in ((whole, 1), (bytes(changed), 0), (whole + b"\0", 0), (whole[:-1], 0)):
        log.write_bytes(content)
        os.utime(log, ns=(stat.st_atime_ns, stat.st_mtime_ns + stamp))
        with pytest.raises(Scanned):
            logreel.open(log)
    log.write_bytes(whole)
    os.utime(log, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    logreel.open(log)


def test_sidecar_of_another_log_or_version_is_not_used(
    log: Path, monkeypatch: pytest.MonkeyPatch, forbid_scan: Callable[[], None]
) -> None:
    other = log.with_name("other.ulg")
    other.write_bytes(builder.flight(1))
    index_cache.write(str(other)).rename(log.with_name("log.ulg" + INDEX_SUFFIX))
    with monkeypatch.context() as patch:
        patch.setattr(index_cache, "__version__", "0")
        index_cache.write(str(other))
    forbid_scan()
    for path in (log, other):
        with pytest.raises(Scanned):
            logreel.open(path)


def restored(path: Path) -> Log | None:
    """Return a log that is opened with its sidecar; None if the sidecar is not used, so that the log is scanned."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader.Reader, "finish", _raise_scanned)
        try:
            return logreel.open(path)
        except Scanned:
            return None


@pytest.mark.parametrize("lane", range(2))
def test_damaged_sidecar_is_not_used(lane: int, tmp_path: Path) -> None:
    path = tmp_path / "log.ulg"
    path.write_bytes(odd_log())
    due = content_of(logreel.open(path))
    place = index_cache.write(str(path))
    whole = place.read_bytes()
    for seed in range(lane, half(100), 2):
        place.write_bytes(mutate(whole, seed))
        # A log that is scanned is read as it was before, if nothing of the sidecar is used.
        if seed % 10 > 1 and restored(path) is None:
            continue
        assert content_of(logreel.open(path)) == due, seed
    for cut in range(lane, len(whole), 97):
        place.write_bytes(whole[:cut])
        assert logreel.open(path).index.counts.sum() == sum(n for *_, n in due["channels"])


# ------------------------------------------------------------------ forged sidecars with a valid checksum


def read_all(path: Path, is_scanned: bool = True) -> None:
    """Read the whole log; any result is fine, but only LogErrors may be raised.

    is_scanned  False: a log whose sidecar is not used, and which has the content of any such log, is not read
    """
    with suppress(LogError):
        log = logreel.open(path) if is_scanned else restored(path)
        if log is not None:
            content_of(log)


WRONG = (None, -1, 0, 2**62, 2**70, "x", [], {}, [[]], [None], [-1], [2**70], 1.5, True)


@pytest.mark.parametrize("lane", range(2))
def test_forged_heads_raise_only_log_errors(lane: int, tmp_path: Path) -> None:
    path = tmp_path / "log.ulg"
    path.write_bytes(odd_log())
    place = index_cache.write(str(path))
    whole = place.read_bytes()
    head = json.loads(whole[16 : 16 + int.from_bytes(whole[8:16], "little")])
    spots = [("plain", key) for key in head["plain"]] + [("arrays", key) for key in head["arrays"]]
    for group, key in [*spots, ("plain", None), ("arrays", None)][lane::2]:
        for wrong in WRONG:

            def change(
                head: dict[str, Any], _: object, group: str = group, key: Any = key, wrong: Any = wrong
            ):
                if key is None:
                    head[group] = wrong
                else:
                    head[group] = {**head[group], key: wrong}

            place.write_bytes(whole)
            forge(place, change)
            read_all(path, is_scanned=wrong is None)


@pytest.mark.parametrize("entry", [["<i8", [2**40], 0], ["<i8", [-1], 0], ["<i8", [2**33, 2**33], 0], ["<i8", [1], -8],
    ["<i8", [1], 2**40], ["O", [1], 0], ["<f8", [4], 0], ["<i4,<i4", [1], 0], ["S9", [1], 0], ["<i8", [0, 2**62], 0],
    ["i9", [1], 0], [[], [1], 0], ["<i8", 1, 0], ["<i8", [1.5], 0]])  # fmt: skip
@pytest.mark.parametrize("name", ["base", "start", "entry", "notes"])
def test_forged_shapes_are_not_used(tmp_path: Path, name: str, entry: list[Any], forbid_scan: Any) -> None:
    path = tmp_path / "log.ulg"
    path.write_bytes(builder.tiny())
    place = index_cache.write(str(path))
    forge(place, lambda head, _: head.update(arrays={**head["arrays"], name: entry}))
    forbid_scan()
    with pytest.raises(Scanned):
        logreel.open(path)


@pytest.mark.parametrize("lane", range(4))
def test_forged_offsets_raise_only_log_errors(lane: int, tmp_path: Path) -> None:
    """For any offsets in a sidecar, nothing outside of the log is read, and only LogErrors are raised."""
    path = tmp_path / "log.ulg"
    path.write_bytes(odd_log())
    place = index_cache.write(str(path))
    whole, size = place.read_bytes(), path.stat().st_size
    for seed in range(lane, half(200), 4):
        rng = Random(seed)

        def change(head: dict[str, Any], arrays: dict[str, np.ndarray], rng: Random = rng) -> None:
            for _ in range(rng.choice((1, 2, 5))):
                a = arrays[rng.choice(sorted(arrays))].reshape(-1)
                edge = (0, 1, 16, size - 5, size - 3, size - 1, size, 2**31, 2**32 - 1, 2**62)
                value = rng.choice((*edge, rng.randrange(size)))
                a[rng.randrange(len(a))] = value & 0xFFFFFFFF if a.dtype == np.uint32 else value
            if rng.random() < 0.3:
                topic = rng.choice(head["plain"]["topics"])
                topic[rng.randrange(4)] = rng.choice(("a", "b", "nothing", 0, 1, 2, 3, True, False))

        place.write_bytes(whole)
        forge(place, change)
        read_all(path, is_scanned=seed % 20 < 4)


# ------------------------------------------------------------------ folders


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only to root")
def test_cache_folder_without_write_permission_is_ignored(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = log.parent / "cache"
    folder.mkdir(mode=0o500)
    monkeypatch.setenv("LOGREEL_CACHE", str(folder))
    monkeypatch.setattr("logreel.registry.registry.WORTH_BYTES", 1)
    assert len(logreel.open(log).channels)


def test_unusable_cache_folders_are_ignored(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("logreel.registry.registry.WORTH_BYTES", 1)
    blocked = log.parent / "file"
    blocked.touch()
    for chosen in ("off", "", "0", str(blocked), str(blocked / "below"), "/dev/null/x"):
        monkeypatch.setenv("LOGREEL_CACHE", chosen)
        assert len(logreel.open(log).channels), chosen
    with pytest.raises((LogError, OSError)):
        index_cache.write(str(log), beside=False)


def test_pipe_or_folder_named_like_a_sidecar_is_ignored(log: Path) -> None:
    os.mkfifo(log.with_name("log.ulg" + INDEX_SUFFIX))
    assert len(logreel.open(log).channels)
    folder = log.with_name("other.ulg")
    folder.write_bytes(log.read_bytes())
    folder.with_name("other.ulg" + INDEX_SUFFIX).mkdir()
    assert len(logreel.open(folder).channels)


def test_cache_stays_below_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGREEL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("logreel.registry.registry.WORTH_BYTES", 1)
    monkeypatch.setattr(index_cache, "CACHE_BYTES", 20_000)
    for number in range(8):
        path = tmp_path / f"{number}.ulg"
        path.write_bytes(builder.tiny())
        logreel.open(path)
    kept = list((tmp_path / "cache").iterdir())
    assert 0 < sum(p.stat().st_size for p in kept) <= 20_000
    assert all(p.name.endswith(INDEX_SUFFIX) for p in kept)
