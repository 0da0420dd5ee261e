"""Bags of every version and variant, built by the package's builder: name to bytes."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from functools import partial

from support.samples.rosbag import old as old
from support.samples.rosbag.builder import START, Builder, few, lz4_frame, string, version_2_0
from support.samples.rosbag.old import Message, Topic

CHATTER, COUNT = Topic("/chatter", "std_msgs/String"), Topic("count", "std_msgs/Int32")
SCAN = Topic("/a b//scan", "sensor_msgs/LaserScan")
#: One topic with two checksums.
CHANGED = Topic("/chatter", "std_msgs/String", md5="0123456789abcdef" * 2, text="string data\nstring more\n")


def many(
    n: int = 240, start: int = START, topics: tuple[Topic, ...] = (CHATTER, COUNT, SCAN), seed: int = 1
) -> list[Message]:
    """Return *n* messages in mixed order, some with earlier times; compressible, but different."""
    rng, found = random.Random(seed), []
    for k in range(n):
        topic = rng.choice(topics)
        size = rng.choice((0, 1, 4, 40, 400, 900))
        payload = rng.randbytes(size // 4) + bytes(size - size // 4)
        found.append((topic, start + k * 10**7 + rng.choice((0, 0, -3 * 10**7)), payload))
    return found


def _starred(messages: list[Message], kind: bool = True) -> list[Message]:
    """Return the messages with ``*`` as checksum (and type): not known by the recorder."""
    return [
        (Topic(t.name, "*" if kind else t.type, md5="*", text=""), time, data) for t, time, data in messages
    ]


def _v2(**options: object) -> bytes:
    return version_2_0(many(), Builder(chunk_bytes=9000, **options))  # type: ignore[arg-type]


def _lz4(**options: object) -> bytes:
    return _v2(compression="lz4", pack=partial(lz4_frame, **options))  # type: ignore[arg-type]


def _mixed() -> bytes:
    """Return a bag whose chunks have different compressions."""
    out = Builder(chunk_bytes=4000)
    numbers = {topic: out.connection(topic) for topic in (CHATTER, COUNT, SCAN)}
    for k, (topic, time, data) in enumerate(many()):
        if k % 40 == 0:
            out.compression = ("lz4", "none", "bz2", "none")[k // 40 % 4]
            out.chunk()
        out.message(numbers[topic], time, data)
    return out.bytes()


def _connections() -> bytes:
    """Return a bag with several publishers of one topic, two checksums of one topic, gaps in connection numbers."""
    out = Builder(chunk_bytes=2000)
    one = out.connection(Topic("/chatter", "std_msgs/String", more=(("callerid", b"/a"), ("latching", b"1"))))
    two = out.connection(Topic("/chatter", "std_msgs/String", more=(("callerid", b"/b"),)), 70_000)
    out.connection(COUNT, 5)
    other = out.connection(CHANGED, 9)
    for k in range(60):
        out.message((one, two, other)[k % 3], START + k, string("x" * k))
    return out.bytes()


def _only_in_the_tail() -> bytes:
    """Return a bag with connection records only in the summary."""
    out = Builder()
    conn = out.connection(CHATTER)
    for k in range(5):
        out.message(conn, START + k, string(str(k)), connect=False)
    return out.bytes()


def _without_inner_topic() -> bytes:
    """Return a bag as written by the C++ API: the data of connection records does not repeat the topic."""
    out = Builder()
    conn = out.connection(CHATTER)
    out.message(conn, START, string("a"))
    plain = out.bytes()
    field = struct.pack("<I", 14) + b"topic=/chatter"
    assert plain.count(field) == 4
    # Only the inner fields get an unknown name of the same length.
    inner = field + struct.pack("<I", 20) + b"type="
    return plain.replace(inner, inner.replace(b"topic=", b"topix="))


def _shuffled() -> bytes:
    """Return a bag whose chunks are not in the order of time."""
    out = Builder()
    conn = out.connection(CHATTER)
    for k in (2, 3, 1):
        out.chunk()
        out.message(conn, START + k * 10**9, string(str(k)))
    return out.bytes()


def _from_zero() -> bytes:
    return version_2_0([(CHATTER, 0, string("zero")), (CHATTER, 1, string("one"))])


SYNTHETIC: dict[str, Callable[[], bytes]] = {
    "0 type md5": lambda: old.version_0(many(topics=(CHATTER,), start=0)),
    "0 md5 type": lambda: old.version_0(many(topics=(CHATTER,), start=0), "md5 type"),
    "0 star": lambda: old.version_0(_starred(many(topics=(CHATTER,), start=0))),
    "0 bare": lambda: old.version_0(_starred(many(topics=(CHATTER,), start=0)), "bare"),
    "0 negative": lambda: old.version_0(many(40, -(10**10), (CHATTER,))),
    "1.0 type md5": lambda: old.version_1_0(many(start=4_490_867_000)),
    "1.0 md5 type": lambda: old.version_1_0(many(start=0), order="md5 type"),
    "1.0 star": lambda: old.version_1_0(_starred(many(start=0))),
    "1.0 late": lambda: old.version_1_0(many(start=0), late=(COUNT, SCAN)),
    "1.0 all late": lambda: old.version_1_0(many(start=0), late=(CHATTER, COUNT, SCAN)),
    "1.0 multilog": lambda: old.version_1_0(many(start=0), line=b"##MULTILOG##\n"),
    "1.1 rosrecord": lambda: old.version_1_1(many()),
    "1.1 roslog relative": lambda: old.version_1_1(many(start=0), b"#ROSLOG V1.1\n"),
    "1.1 star": lambda: old.version_1_1(_starred(many(), kind=False)),
    "1.1 all star": lambda: old.version_1_1(_starred(many())),
    "1.2 per topic": lambda: old.version_1_2(many(), indexed=False),
    "1.2 per type": lambda: old.version_1_2(
        many(topics=(CHATTER, Topic("/b", "std_msgs/String"))), False, "type"
    ),
    "1.2 indexed": lambda: old.version_1_2(many()),
    "1.2 unfinished": lambda: old.version_1_2(many(), finished=False),
    "1.2 latched": lambda: old.version_1_2(
        many(topics=(COUNT, Topic("/m", "std_msgs/String", more=(("callerid", b"/n"), ("latching", b"1")))))
    ),
    "1.2 no definition": lambda: old.version_1_2(many(topics=(Topic("/b", "std_msgs/String", text=""),))),
    "2.0 none": _v2,
    "2.0 bz2": lambda: _v2(compression="bz2"),
    "2.0 lz4": lambda: _v2(compression="lz4"),
    "2.0 lz4 linked": lambda: _lz4(linked=True),
    "2.0 lz4 content size": lambda: _lz4(content_size=True),
    "2.0 lz4 no checksum": lambda: _lz4(checksum=False),
    "2.0 lz4 block checksums": lambda: _lz4(block_checksums=True),
    "2.0 lz4 everything": lambda: _lz4(linked=True, content_size=True, block_checksums=True, block_size=4),
    "2.0 lz4 64 KiB": lambda: _lz4(block_size=4),
    "2.0 lz4 4 MiB": lambda: _lz4(block_size=7),
    "2.0 mixed": _mixed,
    "2.0 header of 4096": lambda: _v2(padded=4088),
    "2.0 header not padded": lambda: _v2(padded=0),
    "2.0 entries of 20": lambda: _v2(entry_bytes=20),
    "2.0 entries of 24": lambda: _v2(entry_bytes=24),
    "2.0 unsorted index": lambda: _v2(sort=False),
    "2.0 connections": _connections,
    "2.0 tail only": _only_in_the_tail,
    "2.0 no inner topic": _without_inner_topic,
    "2.0 shuffled": _shuffled,
    "2.0 from zero": _from_zero,
    "2.0 empty": lambda: Builder().bytes(),
    "2.0 extra fields": lambda: _v2(extra=(("encryptor", b"rosbag/NoEncryptor"), ("color", b"blue=green"))),
    "2.0 star": lambda: version_2_0(_starred(many()), Builder()),
}
#: Sound messages, but something about the file that deserves a word.
ODD: dict[str, Callable[[], bytes]] = {
    "2.0 zeros before index": lambda: _v2(before_index=bytes(49)),
    "2.0 junk before index": lambda: _v2(before_index=bytes(range(1, 255)) * 3),
    "2.0 unfinished": lambda: unfinished(),
    "2.0 unfinished bz2": lambda: unfinished("bz2"),
    "2.0 unfinished lz4": lambda: unfinished("lz4"),
    "2.0 index_pos 0": lambda: _v2(stated={"index_pos": 0, "conn_count": 0, "chunk_count": 0}),
    "2.0 index beyond": lambda: _v2(compression="lz4", stated={"index_pos": 1 << 62}),
}


def unfinished(compression: str = "none") -> bytes:
    """Return a bag as left by a killed recorder: the last chunk is incomplete, and there is no summary."""
    out = Builder(compression, chunk_bytes=9000, finished=False)
    numbers = {topic: out.connection(topic) for topic in (CHATTER, COUNT, SCAN)}
    for topic, time, data in many():
        out.message(numbers[topic], time, data)
    out.chunks[-1].finished = False
    return out.bytes()


def encrypted() -> bytes:
    """Return an encrypted bag: only lengths, index and times can be read without the key."""
    fields = (
        ("encryptor", b"rosbag/AesCbcEncryptor"),
        ("gpg_user", b"somebody"),
        ("encrypted_key", b"-----BEGIN PGP MESSAGE-----=="),
    )
    return version_2_0(
        few(),
        Builder(extra=fields, pack=lambda data: bytes(16) + bytes(b ^ 0x5A for b in data) + b"\x10" * 16),
    )
