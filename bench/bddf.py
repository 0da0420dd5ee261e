"""BDDF: a million small blocks and twenty thousand blobs, compared with a copy, a plain walk in C, and hashlib."""

from __future__ import annotations

import hashlib
import statistics
import struct
import subprocess
import tempfile
from pathlib import Path

import bench_path  # noqa: F401 - before what it makes importable
from harness import Job, compare, run

#: CPU seconds of the vendor's stream reader for a million blocks of 8 bytes on such a machine (2 cores, quiet).
VENDOR_CPU = 6.5
#: Time of the first block, ns.
START = 1_700_000_000 * 10**9
IMPORTS = """
import logreel, logreel.log.log, logreel.log.tables, logreel.formats.bddf.scan_builder, logreel.formats.bddf.verify
import pyarrow, logreel.layout.arrow, logreel.layout.arrow, logreel.index.gather, hashlib, ctypes
from logreel.formats.bddf.reader import Reader
from logreel.formats.bddf.verify import verify
from logreel.io.source import Source
from support.formats import sample_log
logreel.open(sample_log("bddf")).tables()
"""
COPY = Job("np.array(np.memmap(path)), a fresh copy", "kept = np.array(np.memmap(path, mode='r'))")
SCAN = Job("index by scan", "kept = Reader(Source.open(path)).finish()", IMPORTS, bound="<= 2")
OPEN = f"{IMPORTS}\nlog = logreel.open(path); ch = log['v']"
KNOWN = Job(
    "values to Arrow, times read before", "kept = ch.to_arrow(['value'])", OPEN + "; ch.times", bound="<= 3"
)
ONLY = Job("values and their times to Arrow", "kept = ch.to_arrow(['value'])", OPEN)
TABLE = Job(
    "open, values and their times to Arrow", "kept = logreel.open(path).table('v', ['value'])", IMPORTS
)
BLOBS = Job("blobs to Arrow, log open", "kept = ch.to_arrow()", OPEN)
HASH = Job("hashlib.sha1 over the file", "hashlib.sha1(np.memmap(path, mode='r')[:-24]).digest()", IMPORTS)
VERIFY = Job("verify", "verify(Source.open(path))", IMPORTS, bound="= 1")
WALK_C = """
#include <stdint.h>
#include <string.h>
int64_t walk(const unsigned char *b, int64_t end) {
    int64_t pos = 4, n = 0; uint64_t w;
    while (end - pos >= 12) {
        __builtin_prefetch(b + pos + 1024);
        memcpy(&w, b + pos, 8);
        int64_t size = w & 0xFFFFFFFFFFFFFF;
        if (w >> 56 == 2 || size > end - pos - 12) break;
        n += w >> 56 == 0;
        pos += size + (w >> 56 == 0 ? 12 : 8);
    }
    return n;
}
"""


def make(path: Path, blocks: int, size: int) -> None:
    """Write a file of one series without an index: blocks of doubles, or of blobs of *size* bytes."""
    kind = _part(42, b"\x08\x0a") if size == 8 else _part(34, _part(10, b"image/jpeg"))
    name = _part(18, _part(10, b"bosdyn:channel") + _part(18, _part(10, b"bosdyn:channel") + _part(18, b"v")))
    file_descriptor = _part(10, _part(10, b"\x08\x01") + b"\x18\x02\x20\x14")
    sha, payload = hashlib.sha1(), bytes(range(256)) * (size // 256 + 1)
    with path.open("wb") as file:

        def write(data: bytes) -> None:
            sha.update(data)
            file.write(data)

        write(b"BDDF")
        for content in (file_descriptor, _part(18, name + kind)):
            write(struct.pack("<Q", 1 << 56 | len(content)) + content)
        for i in range(blocks):
            seconds, nanos = divmod(START + i * 1_000_003, 10**9)
            head = _part(18, b"\x08" + _varint(seconds) + b"\x10" + _varint(nanos))
            value = struct.pack("<d", i) if size == 8 else payload[:size]
            write(struct.pack("<QI", len(head) + len(value), len(head)) + head + value)
        write(struct.pack("<QQ", 2 << 56 | 24, 0))
        file.write(sha.digest() + b"FDDB")


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _part(tag: int, content: bytes) -> bytes:
    return bytes([tag]) + _varint(len(content)) + content


def plain_walk(folder: Path) -> Job:
    """Return the job of following the blocks only, in C with prefetch: the least work of any reader."""
    (folder / "walk.c").write_text(WALK_C)
    library = folder / "walk.so"
    command = ["cc", "-O3", "-shared", "-fPIC", "-o", str(library), str(folder / "walk.c")]
    subprocess.run(command, check=True)
    setup = f"{IMPORTS}\nwalk = ctypes.CDLL({str(library)!r}).walk; walk.restype = ctypes.c_int64"
    job = "data = Source.open(path).data; walk(ctypes.c_void_p(data.ctypes.data), ctypes.c_int64(data.size))"
    return Job("plain walk of the chain, in C", job, setup)


def main() -> None:
    """Print the tables."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        walk = plain_walk(folder)
        small, large = folder / "small.bddf", folder / "large.bddf"
        make(small, 1_000_000, 8)
        compare("1 M blocks of 8 bytes: index", str(small), walk, [SCAN], unit="walk", cpu=True)
        cpu = statistics.median(run(SCAN, str(small))[1] for _ in range(3))
        print(
            f"  index by scan: {cpu * 1e3:.0f} ms of CPU, {VENDOR_CPU / cpu:.0f} x the vendor's (bound 100)"
        )
        columns = [KNOWN, ONLY, TABLE]
        compare("1 M blocks of 8 bytes: columns", str(small), COPY, columns, rounds=5, cpu=True)
        compare(
            "1 M blocks of 8 bytes: checksum", str(small), HASH, [VERIFY], rounds=3, unit="sha1", cpu=True
        )
        small.unlink()
        make(large, 20_000, 50_000)
        compare("20 000 blobs of 50 kB: index", str(large), walk, [SCAN], rounds=3, unit="walk", cpu=True)
        compare("20 000 blobs of 50 kB: columns", str(large), COPY, [BLOBS], rounds=3, cpu=True)
        compare(
            "20 000 blobs of 50 kB: checksum", str(large), HASH, [VERIFY], rounds=3, unit="sha1", cpu=True
        )


if __name__ == "__main__":
    main()
