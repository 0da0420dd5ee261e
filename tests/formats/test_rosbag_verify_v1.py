"""Findings about index and file header of bags of version 1.2 that do not fit the messages."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import logreel
from conftest import SHARED
from support.samples.rosbag.builder import few
from support.samples.rosbag.old import Topic, header, record, version_1_2

SOUND = version_1_2(few())


def _texts(data: bytes) -> list[str]:
    return [f.text for f in logreel.check(data).findings if f.code in ("index", "truncated")]


def _index_at(data: bytes = SOUND) -> int:
    at = data.index(b"index_pos=") + 10
    return int(struct.unpack_from("<Q", data, at)[0])


def test_a_sound_index_is_no_finding() -> None:
    assert not _texts(SOUND)
    assert not _texts(version_1_2(few(), indexed=False))
    assert not _texts(version_1_2(few(), finished=False))


def test_a_wrong_index_pos_is_a_finding() -> None:
    at = SOUND.index(b"index_pos=") + 10
    for wrong in (_index_at() - 1, 17, len(SOUND) + 5):
        data = SOUND[:at] + struct.pack("<Q", wrong) + SOUND[at + 8 :]
        assert any(f"states the index at {wrong}" in text for text in _texts(data))


def test_a_wrong_count_is_a_finding() -> None:
    at = SOUND.index(b"count=", _index_at()) + 6
    data = SOUND[:at] + struct.pack("<I", 77) + SOUND[at + 4 :]
    assert any("states 77 entries" in text for text in _texts(data))


def test_a_wrong_pos_or_time_is_a_finding() -> None:
    first = SOUND.index(b"op=\x04", _index_at() - 20)
    size_at = SOUND.index(b"ver=", first)
    entries = next(
        at for at in range(size_at, len(SOUND)) if struct.unpack_from("<I", SOUND, at)[0] % 16 == 0
        and 0 < struct.unpack_from("<I", SOUND, at)[0] < 200
    ) + 4  # fmt: skip
    second = entries + 16
    data = SOUND[: second + 8] + struct.pack("<Q", 4242) + SOUND[second + 16 :]
    assert any("lead to no message; the first to 4242" in text for text in _texts(data))
    data = SOUND[:second] + struct.pack("<I", 1) + SOUND[second + 4 :]
    assert any("other times" in text for text in _texts(data))


def test_a_bag_cut_at_the_end_of_a_record_is_truncated() -> None:
    log = logreel.open(SOUND)
    last = max(log.messages(order="file"), key=lambda m: m.offset or 0)
    assert last.offset is not None
    for end, lost in ((_index_at(), False), (last.offset - 200, True)):
        cut = SOUND[:end]
        found = logreel.open(cut)
        assert ("truncated", lost) in {(p.code, p.lost) for p in found.problems}
        assert _texts(cut)


def test_further_fields_of_definitions_are_in_metadata() -> None:
    topic = Topic("/chatter", "std_msgs/String", more=(("latching", b"1"), ("callerid", b"/talker")))
    plain = Topic("/chatter", "std_msgs/String")
    message = version_1_2([(plain, 10**18, b"\0\0\0\0")], indexed=False)
    names = [("topic", b"/chatter"), ("md5", topic.sum), ("type", b"std_msgs/String")]
    more = [("op", b"\x01"), ("def", b"string data"), ("origin", b"lab 3"), *topic.more]
    data = message[:16] + record([*names, *more]) + message[16:]
    metadata = logreel.open(data)["/chatter"].metadata
    assert metadata["headers"] == [{"origin": "lab 3", "latching": "1", "callerid": "/talker"}]
    assert (metadata["latching"], metadata["callerids"]) == (True, ["/talker"])
    assert header(more)


@pytest.mark.parametrize("path", sorted((SHARED / "data" / "rosbag").glob("v12*.bag")), ids=lambda p: p.stem)
def test_the_index_of_real_bags_is_sound(path: Path) -> None:
    assert not [text for text in _texts(path.read_bytes()) if "index" in text] or "trunc" in path.stem
