"""Limits: the page lists all of them with their values, and each one that can be raised is met and raised."""

from __future__ import annotations

import dataclasses
import lzma
import re
import shutil
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import logreel
from harness import SANITIZED
from logreel.errors import UnsupportedError, UsageError
from logreel.io.source import ChunkCache
from logreel.limits import VARIABLE, Limits, default_limits, fixed_limits

if TYPE_CHECKING:
    from logreel.formats.mcap.records import Chunk
    from logreel.io.source import Buffer, Source

PAGE = Path(__file__).parents[2] / "docs" / "limits.md"
MIB = 1 << 20


def number(value: float | str) -> str:
    """Return a number as the page spells it."""
    if isinstance(value, str):
        return re.sub("([kMG])B$", r" \1B", value)
    assert value == int(value)
    value = int(value)
    for shift, unit in ((30, "Gi"), (20, "Mi"), (10, "Ki")):
        if value >= 1 << shift and value % (1 << shift) == 0:
            return f"{value >> shift} {unit}"
    return f"{value:_}".replace("_", " ")


def rows_due() -> list[str]:
    rows = [
        f"| `{one.name}` | {number(one.default)} | {one.metadata['reason']} | {one.metadata['beyond']} |"
        for one in dataclasses.fields(Limits)
    ]
    rows += [f"| {one.name} | {number(one.value)} | {one.reason} | {one.beyond} |" for one in fixed_limits()]
    return rows


def test_the_page_lists_every_limit_with_its_value_and_nothing_else() -> None:
    page = PAGE.read_text()
    tables = page[page.index("## Limits that can be raised") : page.index("## Time and memory")]
    found = [line for line in tables.splitlines() if line.startswith("| ") and not line.startswith("| limit")]
    assert found == rows_due()


# ------------------------------------------------------------------------------------------------ where they come from


def test_the_environment_changes_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, " chunk_bytes=2G, chunk_ratio = 1000,cache_bytes=5MiB,spool_bytes=7")
    want = Limits(chunk_bytes=2 << 30, chunk_ratio=1000, cache_bytes=5 * MIB, spool_bytes=7)
    assert default_limits() == want
    monkeypatch.delenv(VARIABLE)
    assert default_limits() == Limits()


@pytest.mark.parametrize(
    "text", ["chunk_bytes", "chunk=1", "chunk_bytes=-1", "chunk_bytes=0", "chunk_bytes=x", "chunk_bytes=1.5"]
)
def test_a_wrong_variable_is_an_error_that_names_it(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(UsageError, match=r"LOGREEL_LIMITS.*chunk_bytes|limit chunk_bytes"):
        default_limits()


@pytest.mark.parametrize("value", [0, -1, True, 1.5, "1"])
def test_a_limit_is_a_positive_integer(value: object) -> None:
    with pytest.raises(UsageError, match="limit chunk_ratio"):
        Limits(chunk_ratio=value)  # type: ignore[arg-type]


# -------------------------------------------------------------------------------------------------------- each one met


def record(kind: int, content: bytes) -> bytes:
    return bytes([kind]) + struct.pack("<Q", len(content)) + content


def text(value: bytes) -> bytes:
    return struct.pack("<I", len(value)) + value


def mcap(compression: bytes, packed: bytes, stated: int) -> bytes:
    """Return an MCAP with one chunk."""
    magic = b"\x89MCAP0\r\n"
    chunk = (
        struct.pack("<QQQI", 0, 10, stated, 0) + text(compression) + struct.pack("<Q", len(packed)) + packed
    )
    return magic + record(1, text(b"") * 2) + record(6, chunk) + record(2, bytes(20)) + magic


@cache
def zstd(size: int) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor().compress(bytes(size))


@cache
def lz4(size: int) -> bytes:
    import lz4.frame

    packed: bytes = lz4.frame.compress(bytes(size))
    return packed


def bag(compression: bytes, packed: bytes, stated: int) -> bytes:
    """Return a bag with one chunk and no index."""

    def head(**fields: bytes) -> bytes:
        parts = [name.encode() + b"=" + value for name, value in fields.items()]
        return text(b"".join(map(text, parts)))

    first = head(op=b"\x03", index_pos=bytes(8), conn_count=bytes(4), chunk_count=bytes(4)) + text(
        b" " * 4027
    )
    chunk = head(op=b"\x05", compression=compression, size=struct.pack("<I", stated)) + text(packed)
    return b"#ROSBAG V2.0\n" + first + chunk


@cache
def bz2(size: int) -> bytes:
    import bz2

    return bz2.compress(bytes(size))


BOMBS: dict[str, Callable[[int], bytes]] = {
    "mcap, zstd": lambda n: mcap(b"zstd", zstd(n), n),
    "mcap, lz4": lambda n: mcap(b"lz4", lz4(n), n),
    "bag, bz2": lambda n: bag(b"bz2", bz2(n), n),
    "bag, lz4": lambda n: bag(b"lz4", lz4(n), n),
}


def chunk_problems(data: bytes, limits: Limits | None) -> list[str]:
    log = logreel.open(data, limits=limits)
    return [one.text for one in log.problems if one.code == "chunk"]


@pytest.mark.parametrize("kind", BOMBS)
def test_a_chunk_beyond_its_ratio_is_read_as_far_as_the_limit(kind: str) -> None:
    data = BOMBS[kind](MIB)
    strict = Limits(small_chunk_bytes=1000, chunk_ratio=2)
    (found,) = chunk_problems(data, strict)
    assert "the limit chunk_ratio" in found
    assert "logreel.Limits" in found
    assert VARIABLE in found
    # Not raised by an index that another opening wrote, and raised either way.
    assert chunk_problems(data, None) == []
    assert chunk_problems(data, dataclasses.replace(strict, small_chunk_bytes=MIB)) == []
    assert chunk_problems(data, dataclasses.replace(strict, chunk_ratio=1 << 20)) == []


@pytest.mark.parametrize("kind", BOMBS)
def test_a_chunk_beyond_the_greatest_size_is_read_as_far_as_the_limit(kind: str) -> None:
    (found,) = chunk_problems(BOMBS[kind](MIB), Limits(chunk_bytes=MIB - 1))
    assert "the limit chunk_bytes" in found
    assert str(MIB - 1) in found
    assert chunk_problems(BOMBS[kind](MIB), Limits(chunk_bytes=MIB)) == []


@pytest.mark.parametrize("kind", BOMBS)
def test_the_environment_bounds_chunks(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "chunk_bytes=1000")
    assert "the limit chunk_bytes" in chunk_problems(BOMBS[kind](MIB), None)[0]


def test_a_stated_size_alone_takes_no_memory() -> None:
    for stated in (1 << 62, (1 << 63) - 1, (1 << 64) - 1):
        found = chunk_problems(mcap(b"zstd", zstd(1000), stated), None)
        assert len(found) == 1
        assert str(stated) in found[0] or "cut" in found[0]


def test_unpacked_chunks_are_kept_up_to_the_limit_of_the_cache() -> None:
    unpacked: list[int] = []

    def unpack(n: int) -> np.ndarray:
        unpacked.append(n)
        return np.zeros(100, np.uint8)

    cache = ChunkCache(unpack, [100] * 9, False, Limits(cache_bytes=300))
    for n in (0, 1, 2, 0, 1, 2):
        cache(n)
    assert unpacked == [0, 1, 2]
    cache(3)
    cache(0)
    assert unpacked == [0, 1, 2, 3, 0]


@pytest.mark.parametrize(("spool", "again"), [(900, []), (899, [0])])
def test_slow_chunks_are_spooled_up_to_the_limit(spool: int, again: list[int]) -> None:
    unpacked: list[int] = []

    def unpack(n: int) -> np.ndarray:
        unpacked.append(n)
        return np.full(100, n, np.uint8)

    cache = ChunkCache(unpack, [100] * 9, True, Limits(cache_bytes=300, spool_bytes=spool))
    for n in range(9):
        assert (cache(n) == n).all()
    assert (cache(0) == 0).all()
    assert unpacked[9:] == again


class Counted:
    """A cache of nine chunks of 100 bytes, of which three are kept, and the numbers of those that were unpacked."""

    def __init__(self, slow: bool = False, secret: bool = False, spool: int = 900) -> None:
        self.unpacked = Counter[int]()
        self.cache = ChunkCache(
            self._unpack, [100] * 9, slow, Limits(cache_bytes=300, spool_bytes=spool), secret
        )

    def _unpack(self, n: int) -> np.ndarray:
        self.unpacked[n] += 1
        return np.full(100, n, np.uint8)

    def read(self, times: int) -> set[int]:
        """Read all chunks *times* times; return how often chunks were unpacked until now."""
        for _ in range(times):
            for n in range(9):
                assert (self.cache(n) == n).all()
        return set(self.unpacked.values())


def test_chunks_that_are_needed_again_are_unpacked_twice_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Counted().read(5) == {2}
    assert Counted(slow=True).read(5) == {1}
    # Decrypted bytes are not written, and no more bytes than the limit allows.
    assert Counted(slow=True, secret=True).read(5) == {5}
    assert Counted(spool=899).read(5) == {5}
    # Neither is a folder filled that has no room.
    left = shutil.disk_usage(tempfile.gettempdir())._replace(free=1799)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: left)
    assert Counted().read(5) == {5}
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: left._replace(free=1800))
    assert Counted().read(5) == {2}


def test_a_log_read_once_writes_no_temporary_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        raise AssertionError("a temporary file is made")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    assert Counted().read(1) == {1}
    with pytest.raises(AssertionError, match="temporary file"):
        Counted().read(2)


def test_a_full_disk_loses_no_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    from logreel.io import platform

    write, written = platform.write_at, list[int]()

    def fill(handle: int, data: Buffer, at: int) -> None:
        if len(written) == 4:
            raise OSError(28, "No space left on device")
        written.append(at)
        write(handle, data, at)

    monkeypatch.setattr("logreel.io.source.write_at", fill)
    counted = Counted()
    counted.read(5)
    assert [counted.unpacked[n] for n in range(9)] == [2] * 4 + [5] * 5


@pytest.mark.parametrize("job", [logreel.health, logreel.summary, logreel.report])
@pytest.mark.parametrize("packing", ["mcap", "bag"])
def test_chunks_are_unpacked_twice_at_most(
    job: Callable[[logreel.Log], object], packing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from logreel.formats.mcap import chunks as of_mcap
    from logreel.formats.rosbag import chunks as of_bags
    from support.samples.rosbag.builder import drive
    from support.samples.ulog.builder import flight

    path = tmp_path / f"log.{packing}"
    if packing == "mcap":
        logreel.convert(flight(20), path, raw=True, compression="zstd", chunk_bytes=32 << 10)
    else:
        path.write_bytes(drive(6, "lz4", 32 << 10))
    module = of_mcap if packing == "mcap" else of_bags
    unpack, unpacked = module.unpack, Counter[int]()

    def counted(source: Source, chunk: Chunk) -> object:
        unpacked[chunk.pos] += 1
        return unpack(source, chunk)

    monkeypatch.setattr(module, "unpack", counted)
    with logreel.open(path, limits=Limits(cache_bytes=128 << 10)) as log:
        # Opening a bag compares the first and last chunks with its index.
        unpacked.clear()
        job(log)
    assert len(unpacked) > 10
    assert max(unpacked.values()) <= 2


def test_event_definitions_beyond_their_limit_are_not_used() -> None:
    from logreel.errors import DefinitionError
    from logreel.formats.ulog.events import load

    packed = lzma.compress(b'{"version": 1, "components": {}}')
    load(packed)
    with pytest.raises(DefinitionError, match=r"the limit event_json_bytes \(raise it"):
        load(packed, 10)


def test_an_index_beyond_its_limit_is_refused_with_its_name() -> None:
    from support.samples.mcap import builder

    data = next(value() for name, value in vars(builder).items() if name == "tiny")
    logreel.open(data)
    with pytest.raises(UnsupportedError, match=r"the limit index_entries \(raise it"):
        logreel.open(data, limits=Limits(index_entries=1))


def test_a_log_that_is_opened_again_has_the_same_limits(tmp_path: Path) -> None:
    import pickle

    path = tmp_path / "a.mcap"
    path.write_bytes(BOMBS["mcap, zstd"](MIB))
    limits = Limits(chunk_bytes=1000)
    log = pickle.loads(pickle.dumps(logreel.open(path, limits=limits)))  # noqa: S301 - made here
    assert "the limit chunk_bytes" in next(one.text for one in log.problems if one.code == "chunk")
    several = logreel.open([path, path], limits=limits)
    assert "the limit chunk_bytes" in next(one.text for one in several.problems if one.code == "chunk")


PEAK = """
import resource, sys
import logreel, lz4.frame, zstandard
from support.samples.mcap.builder import tiny
for data in (tiny(), open(sys.argv[1], "rb").read()):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    log = logreel.open(data)
    assert log.problems or len(data) < 4000
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


@pytest.mark.skipif(SANITIZED, reason="memory of sanitized code says nothing")
@pytest.mark.parametrize(
    ("kind", "stated"),
    [
        ("mcap, zstd", 128 * MIB),
        ("mcap, zstd", 1 << 62),
        ("bag, bz2", 128 * MIB),
        ("bag, bz2", (1 << 32) - 1),
    ],
)
def test_a_few_kilobytes_of_a_chunk_take_bounded_memory(kind: str, stated: int, tmp_path: Path) -> None:
    """128 MiB of zeros are 4 kB packed, and took 130 to 270 MiB; now they take what a small chunk may."""
    build, pack = (mcap, zstd) if kind.startswith("mcap") else (bag, bz2)
    path = tmp_path / "bomb"
    path.write_bytes(build(kind.split()[1].encode(), pack(128 * MIB), stated))
    assert path.stat().st_size < 10_000
    # From the folder of the tests, where it finds ``support``.
    done = subprocess.run(
        [sys.executable, "-c", PEAK, path],
        cwd=Path(__file__).parents[1], capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    assert int(done.stdout) < 70


UNPACK = """
import sys
import lz4.frame, numpy, zlib
from logreel.formats.rosbag.chunks import _zlib
from logreel.io.lz4_frames import unpack_lz4

def peak():
    status = open("/proc/self/status").read()
    return int(status[status.index("VmHWM:") + 6 :].split()[0]) >> 10

kind, limit = sys.argv[1], int(sys.argv[2])
packed = bytearray(lz4.frame.compress(bytes(limit), block_linked=kind == "linked"))
if kind == "cut":
    del packed[-200:]
elif kind == "damaged":
    packed[-3000] ^= 255
elif kind == "several frames":
    packed = bytearray(lz4.frame.compress(bytes(4 << 20))) * (limit >> 22)
elif kind == "zlib":
    packed = bytearray(zlib.compress(bytes(limit)))
unpack = _zlib if kind == "zlib" else unpack_lz4
unpack(numpy.frombuffer(bytes(packed), numpy.uint8), 1000)
before = peak()
data, wrong, _ = unpack(numpy.frombuffer(bytes(packed), numpy.uint8), limit)
assert len(data) > limit * 0.9, len(data)
assert bool(wrong) == (kind in ("cut", "damaged")), wrong
print(peak() - before)
"""


@pytest.mark.skipif(SANITIZED, reason="memory of sanitized code says nothing")
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
@pytest.mark.parametrize("kind", ["whole", "linked", "cut", "damaged", "several frames", "zlib"])
def test_unpacking_takes_the_memory_of_the_limit_and_little_more(kind: str) -> None:
    """There were up to four copies of the bytes: of a chunk that is cut, 1.2 GiB instead of 300 MiB."""
    limit = 48 * MIB
    done = subprocess.run(
        [sys.executable, "-c", UNPACK, kind, str(limit)], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < 48 + 32
