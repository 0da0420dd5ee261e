"""Build small files that need much time or memory; the argument of each function scales the size."""

from __future__ import annotations

import lzma
import random
import struct
import tempfile
from collections.abc import Callable

from logreel.formats.ulog.records import SYNC
from support.samples.ulog.builder import Builder

TICK = "tick:uint64_t timestamp;uint32_t n;"


def _started() -> Builder:
    return Builder(start_us=1000).flags().format(TICK).subscribe("tick", 0)


def _tick(n: int) -> bytes:
    return struct.pack("<QI", 1000 + n, n)


def _many(record: bytes, kilobytes: int) -> bytes:
    return _started().bytes() + record * ((kilobytes << 10) // len(record))


def nested_arrays(n: int) -> bytes:
    """Return a log with formats whose size would be 4 GB."""
    out = Builder().flags().format("a:uint64_t timestamp;b[65535] x;").format("b:c[65535] y;")
    return out.format("c:uint8_t z;").subscribe("a", 0).data(0, bytes(n)).bytes()


def arrays_of_arrays(n: int) -> bytes:
    out = Builder().flags().format("a:uint64_t timestamp;b[2000] x;").format("b:uint8_t[2000] y;")
    return out.subscribe("a", 0).data(0, bytes(n)).bytes()


def circle(n: int) -> bytes:
    """Return a log with *n* formats that contain each other in a circle."""
    out = Builder().flags()
    for i in range(n):
        out.format(f"f{i}:uint64_t timestamp;f{(i + 1) % n} x;")
    return out.subscribe("f0", 0).data(0, bytes(8)).bytes()


def deep(n: int) -> bytes:
    """Return a log with *n* formats, each nested in the one before."""
    out = Builder().flags()
    for i in range(n):
        out.format(f"f{i}:uint64_t timestamp;" + (f"f{i + 1} x;" if i < n - 1 else ""))
    for i in range(n):
        out.subscribe(f"f{i}", i)
    return out.data(n - 1, bytes(8)).bytes()


def doubling(n: int) -> bytes:
    """Return a log with *n* formats that contain the next one twice: 2**n leaves."""
    out = Builder().flags()
    for i in range(n):
        out.format(f"f{i}:uint64_t timestamp;f{i + 1} x;f{i + 1} y;")
    return out.format(f"f{n}:uint8_t z;").subscribe("f0", 0).subscribe(f"f{n - 3}", 1).bytes()


def empty_doubling(n: int) -> bytes:
    """Return the same as ``doubling`` with leaves of 0 bytes, so that the size does not show the number."""
    out = Builder().flags()
    for i in range(n):
        out.format(f"f{i}:f{i + 1}[9] x;f{i + 1}[9] y;")
    out.format(f"f{n}:uint8_t[0] z;").format("top:uint64_t timestamp;f0 x;")
    return out.subscribe("top", 0).data(0, bytes(8)).bytes()


def many_fields(n: int) -> bytes:
    """Return a log with a format of *n* thousand fields and many subscriptions."""
    fields = "".join(f"uint8_t {i:x};" for i in range(n * 1000))
    out = Builder().flags().format("wide:uint64_t timestamp;" + fields)
    for i in range(10):
        out.subscribe("wide", i, multi_id=i)
    return out.data(0, bytes(8 + n * 1000)).bytes()


def subscriptions(n: int) -> bytes:
    """Return a log with *n* ids of one topic; instances repeat, since there are only 256."""
    out = _started()
    for i in range(n):
        out.subscribe("tick", i, multi_id=i % 256)
    for i in range(n):
        out.data(i, _tick(i))
    return out.bytes()


def subscribed_topics(n: int) -> bytes:
    """Return a log with *n* topics, each with a format and one message."""
    out = Builder().flags()
    for i in range(n):
        out.format(f"t{i}:uint64_t timestamp;")
    for i in range(n):
        out.subscribe(f"t{i}", i)
    for i in range(n):
        out.data(i, struct.pack("<Q", 1000 + i))
    return out.bytes()


def strange_clocks(n: int) -> bytes:
    """Return a log with *n* topics without a timestamp, and as many with one of 8 bits."""
    out = Builder().flags().format("none:uint8_t x;").format("short:uint8_t timestamp;")
    for i in range(2 * n):
        out.subscribe(("none", "short")[i % 2], i, multi_id=i % 256)
    for i in range(2 * n):
        out.format(f"f{i}:" + ("uint8_t timestamp;" if i % 2 else "uint8_t x;")).subscribe(
            f"f{i}", 60_000 - i
        )
        out.data(60_000 - i, b"x")
    return out.bytes()


def changing_ids(n: int) -> bytes:
    """Return a log with two topics to which one id is assigned alternately."""
    out = _started().format("tock:uint64_t timestamp;uint32_t n;")
    for i in range(n):
        out.data(0, _tick(i)).subscribe("tock" if i % 2 == 0 else "tick", 0)
    return out.data(0, _tick(n)).bytes()


def xz_events(n: int) -> bytes:
    """Return a log with event definitions that decompress to *n* MiB of JSON."""
    data = b'{"version": 1, "components": {' + b" " * (n << 20) + b"}}"
    # As small as with a higher preset.
    packed = lzma.compress(data, preset=1)
    out = (
        Builder()
        .flags()
        .format("event:uint64_t timestamp;uint32_t id;uint8_t[25] arguments;uint8_t log_levels;")
    )
    for at in range(0, len(packed), 60_000):
        out.info_multiple("metadata_events", packed[at : at + 60_000], continued=at > 0)
    return out.subscribe("event", 0).data(0, bytes(38)).text(6, 9, "text\t").bytes()


def huge_text(n: int) -> bytes:
    """Return a log with a key that states *n* characters, and texts as long as a record allows."""
    out = Builder().flags().raw("I", bytes([len(f"char[{n}] sys")]) + f"char[{n}] sys".encode() + b"x")
    out.format(f"t:uint64_t timestamp;char[{n}] text;").format("u:uint64_t timestamp;char[60000] text;")
    out.subscribe("t", 0).subscribe("u", 1)
    for i in range(20):
        out.data(1, struct.pack("<Q", i) + b"y" * 60_000).text(6, i, "z" * 65_000)
    return out.bytes()


def resyncs(n: int) -> bytes:
    """Return a log with *n* times some valid records and a byte of damage."""
    good = b"".join(Builder().data(0, _tick(i)).bytes()[16:] for i in range(6))
    return _started().bytes() + (good + b"\xff") * n


def near_chains(n: int) -> bytes:
    """Return a log with *n* times five valid records and damage: the search follows each chain, and rejects it."""
    good = b"".join(Builder().data(0, _tick(i)).bytes()[16:] for i in range(5))
    return _started().bytes() + (good + b"\xff") * n


def lying_sizes(n: int) -> bytes:
    """Return a log with *n* headers whose sizes include later records, so that each one must be rejected."""
    good = b"".join(Builder().data(0, _tick(i)).bytes()[16:] for i in range(6))
    return _started().bytes() + (good + b"\xff\xff\x49\x05int8_t x") * n


def tolerated_chains(n: int) -> bytes:
    """Return a log with *n* kB of records that may be skipped, but are no evidence."""
    return _many(b"\x00\x00z" * 5 + b"\x00\x00\xff", n)


def undeclared_ids(n: int) -> bytes:
    """Return a log with *n* messages of different undeclared ids in descending order."""
    out = _started()
    for i in range(n):
        out.data(65_535 - i % 65_535, _tick(i)).data(0, _tick(i))
    return out.bytes()


def only_sync(n: int) -> bytes:
    return _many(b"\x08\x00S" + SYNC, n)


def only_unknown(n: int) -> bytes:
    """Return a log with *n* KiB of empty records of unknown kinds."""
    return _many(b"".join(b"\x00\x00" + bytes([c]) for c in b"abcdefghijklmnop"), n)


def dropouts(n: int) -> bytes:
    return _many(b"\x02\x00O\x05\x00", n)


def short_clock(n: int) -> bytes:
    """Return a log with *n* thousand messages with an 8-bit timestamp, and dropouts between them."""
    out = Builder(start_us=0).flags().format("n:uint8_t timestamp;").subscribe("n", 0)
    return out.bytes() + (b"\x03\x00D\x00\x00\x07" + b"\x02\x00O\xff\xff") * (n * 1000)


def glued_headers(n: int) -> bytes:
    """Return *n* concatenated small logs, each with file header and definitions."""
    one = Builder().flags().format(TICK).info("sys_name", "x").subscribe("tick", 0).data(0, _tick(1)).bytes()
    return one * n


def random_bytes(n: int) -> bytes:
    return _started().bytes() + random.Random(n).randbytes(n << 20)


def keys(n: int) -> bytes:
    """Return a log with *n* thousand values of one parameter."""
    out = _started()
    for i in range(n * 1000):
        out.parameter("SAME", i)
    return out.data(0, _tick(0)).bytes()


def sparse_zeros(n: int) -> str:
    """Return the path of a log followed by *n* MiB of zeros that take no space on disk."""
    with tempfile.NamedTemporaryFile(suffix=".ulg", delete=False) as out:
        sound = _started()
        for i in range(100):
            sound.data(0, _tick(i))
        out.write(sound.bytes())
        out.truncate(n << 20)
    return out.name


BOMBS: dict[str, Callable[[int], bytes | str]] = {
    name: f
    for name, f in list(globals().items())
    if callable(f) and getattr(f, "__module__", "") == __name__ and name[0] != "_"
}
