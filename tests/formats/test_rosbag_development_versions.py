"""Development versions of April 2010: chunks without connections, messages that name their topic."""

from __future__ import annotations

import struct
import zlib

import pytest

import logreel


def fields(**values: bytes) -> bytes:
    return b"".join(struct.pack("<I", len(n) + 1 + len(v)) + n.encode() + b"=" + v for n, v in values.items())


def record(data: bytes = b"", **values: bytes) -> bytes:
    head = fields(**values)
    return struct.pack("<I", len(head)) + head + struct.pack("<I", len(data)) + data


def bag(line: bytes, compression: str) -> bytes:
    """Return a bag with two topics, three messages, one chunk, and index and summary by topic."""
    stamp = struct.pack("<II", 1271700000, 5)
    define = record(op=b"\x01", topic=b"/a", type=b"std_msgs/Int32", md5=b"*", **{"def": b"int32 data\n"})
    define += record(op=b"\x01", topic=b"/b", type=b"std_msgs/Int32", md5sum=b"*", **{"def": b"int32 data\n"})
    messages = b"".join(
        record(struct.pack("<i", value), op=b"\x02", topic=topic, time=stamp)
        for topic, value in ((b"/a", 1), (b"/b", 2), (b"/a", 3))
    )
    inner = define + messages
    stored = zlib.compress(inner) if compression == "zlib" else inner
    chunk = record(stored, op=b"\x05", compression=compression.encode(), size=struct.pack("<I", len(inner)))
    one = struct.pack("<I", 1)
    index = record(stamp + struct.pack("<I", 0), op=b"\x04", ver=one, topic=b"/a", count=one)
    head = record(
        b" " * 64, op=b"\x03", index_pos=bytes(8), topic_count=struct.pack("<I", 2), chunk_count=one
    )
    summary = record(struct.pack("<I", 2) + b"/a" + one, op=b"\x06", ver=one, chunk_pos=bytes(8))
    return line + head + chunk + index + define + summary


@pytest.mark.parametrize("compression", ["none", "zlib"])
@pytest.mark.parametrize("line", [b"#ROSRECORD V1.3\n", b"#ROSBAG V2.0\n"])
def test_messages_find_their_topic(line: bytes, compression: str) -> None:
    log = logreel.open(bag(line, compression))
    assert {n: ch["data"].tolist() for n, ch in log.channels.items()} == {"/a": [1, 3], "/b": [2]}
    assert [p.code for p in log.problems] == ["index"]
    assert log["/a"].times.tolist() == [1271700000 * 10**9 + 5] * 2


def test_valid_prefix_of_a_cut_zlib_chunk_is_read() -> None:
    data = bag(b"#ROSRECORD V1.3\n", "zlib")
    begin = data.index(b"compression=")
    end = data.index(b"\x08\0\0\0topic=/a", begin)
    counts = []
    for cut in range(begin, end):
        log = logreel.open(data[:cut])
        values = [int(v) for ch in log.channels.values() for v in ch["data"]]
        assert set(values) <= {1, 2, 3}
        assert log.problems
        counts.append(len(values))
    assert counts == sorted(counts)
    assert counts[-1] == 3
