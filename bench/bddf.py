"""BDDF: a million small blocks and twenty thousand blobs, against a copy, a plain walk of the chain, and hashlib."""

from __future__ import annotations

import hashlib
import struct
import subprocess
import tempfile
from pathlib import Path

from harness import Job, compare, run
from logreel.formats.bddf.sample import T0, Builder, data_block

#: CPU seconds of the vendor's stream reader for a million blocks of 8 bytes on such a machine (2 cores, quiet).
VENDOR_CPU = 6.5
IMPORTS = """
import logreel, logreel.model.log, logreel.model.tables, logreel.formats.bddf.content, logreel.formats.bddf.verify
import pyarrow, logreel.model.arrow, logreel.model.assemble, hashlib, ctypes
from logreel.formats.bddf.scan import Scanner
from logreel.model.source import Source
"""
COPY = Job("np.array(np.memmap(path)), a fresh copy", "kept = np.array(np.memmap(path, mode='r'))")
SCAN = Job("index by scan", "kept = Scanner(Source.open(path)).run()", IMPORTS, bound="<= 2 x the plain walk")
HASH = Job(
    "hashlib.sha1 over the file", "hashlib.sha1(np.memmap(path, mode='r')[:-24]).digest()", IMPORTS, rounds=3
)
VERIFY = Job(
    "verify", "logreel.formats.bddf.verify.verify(Source.open(path))", IMPORTS, rounds=3, bound="= hashlib"
)
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
    """A file of one series: plain values of 8 bytes, or blobs."""
    out = Builder()
    series = (
        out.pods({"varname": "v"}, "float64") if size == 8 else out.messages("blob", "image/jpeg", "image")
    )
    payload = bytes(range(256)) * (size // 256 + 1)
    sha = hashlib.sha1()
    with path.open("wb") as file:

        def write(data: bytes) -> None:
            sha.update(data)
            file.write(data)

        write(out.killed())
        for i in range(blocks):
            value = struct.pack("<d", i) if size == 8 else payload[:size]
            write(data_block(series, T0 + i * 1_000_003, value))
        # Closed without an index, so that opening means scanning.
        write(struct.pack("<QQ", 2 << 56 | 24, 0))
        file.write(sha.digest() + b"FDDB")


def plain_walk(folder: Path) -> Job:
    """The chain and nothing else, in C with prefetch: what any reader must do."""
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
        table = Job("open and values to Arrow", "kept = logreel.open(path).table('v', ['value'])", IMPORTS)
        warm = f"{IMPORTS}\nlog = logreel.open(path); ch = log['v']; ch.times"
        only = Job("values to Arrow, log open", "kept = ch.to_arrow(['value'])", warm, bound="<= 3")
        both = Job("… with sample numbers", "kept = ch.to_arrow()", warm)
        jobs = [walk, SCAN, table, only, both, HASH, VERIFY]
        ratios = compare("1 M blocks of 8 bytes", str(small), COPY, jobs)
        cpu = min(run(SCAN, str(small))[1] for _ in range(3))
        print(f"  scan is {ratios[SCAN.name] / ratios[walk.name]:.2f} x the plain walk (bound 2)")
        print(
            f"  scan took {cpu * 1e3:.0f} ms of CPU: {VENDOR_CPU / cpu:.0f} x the vendor's reader (bound 100)"
        )
        print(f"  verify is {ratios[VERIFY.name] / ratios[HASH.name]:.2f} x hashlib")
        small.unlink()
        make(large, 20_000, 50_000)
        ratios = compare("20 000 blobs of 50 kB", str(large), COPY, [walk, SCAN, HASH, VERIFY], rounds=3)
        print(f"  scan is {ratios[SCAN.name] / ratios[walk.name]:.2f} x the plain walk (bound 2)")
        print(f"  verify is {ratios[VERIFY.name] / ratios[HASH.name]:.2f} x hashlib")


if __name__ == "__main__":
    main()
