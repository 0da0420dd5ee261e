"""Reading a compressed bag needs the memory of a few chunks, independent of the size of the bag."""

from __future__ import annotations

import functools
from collections.abc import Callable

import pytest

import logreel
from support.harness.limits import limited
from support.samples.rosbag.builder import CHATTER, PACK, START, Builder, string

#: The cache of chunks takes 64 MiB, a batch some more; the bag holds 215 MiB.
GROWTH = 160 << 20
CHUNKS = 300


@functools.cache
def _large(compression: str) -> bytes:
    """Return a bag with CHUNKS chunks of 75 messages of 10 kB."""
    pack = functools.cache(PACK[compression])
    out = Builder(compression, pack, chunk_bytes=1 << 30)
    conn = out.connection(CHATTER)
    for k in range(CHUNKS):
        out.chunk()
        for j in range(75):
            out.message(conn, START + 100 * k + j, string(chr(97 + j % 26) * 10_000), connect=j == 0)
    return out.bytes()


def _status(name: str) -> int:
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) << 10 for line in f if line.startswith(name))


def _messages(log: logreel.Log) -> int:
    return sum(len(m.data) for m in log.messages())


def _file_order(log: logreel.Log) -> int:
    return sum(len(m.data) for m in log.messages(order="file"))


def _batches(log: logreel.Log) -> int:
    return sum(batch.nbytes for batch in log["/chatter"].batches(rows=500))


@pytest.mark.parametrize("read", [_messages, _file_order, _batches])
def test_memory_depends_on_chunk_size_not_on_file_size(read: Callable[[logreel.Log], int]) -> None:
    data = _large("lz4")

    def job() -> None:
        with open("/proc/self/clear_refs", "w") as f:
            f.write("5")
        before = _status("VmHWM")
        assert read(logreel.open(data)) >= CHUNKS * 75 * 10_000
        assert _status("VmHWM") - before < GROWTH

    limited(job)
