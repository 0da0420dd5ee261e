"""Information (``I``, ``M``): typed values, entries and parts as pyulog has them, and the same records after MCAP."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import logreel
from logreel.formats.ulog.clock import UTC_OFFSET
from logreel.formats.ulog.definitions import release, release_number
from support.oracles.pyulog_values import load
from support.samples.ulog.builder import Builder, flight


def _started() -> Builder:
    return Builder(5_000_000).flags().format("a:uint64_t timestamp;float x;")


def _finished(made: Builder) -> bytes:
    made.subscribe("a", 0)
    for step in range(10):
        made.data(0, struct.pack("<Qf", 5_000_000 + step, step))
    return bytes(made.bytes())


def _information(data: bytes) -> dict[tuple[str, str], list[bytes]]:
    """Return the payloads of all information records by kind and key."""
    found: dict[tuple[str, str], list[bytes]] = {}
    at = 16
    while at < len(data):
        size, kind = struct.unpack_from("<HB", data, at)
        payload = data[at + 3 : at + 3 + size]
        if chr(kind) in "IM":
            key = payload[chr(kind) == "M" :]
            name = key[1 : 1 + key[0]].decode().partition(" ")[2]
            found.setdefault((chr(kind), name), []).append(payload)
        at += 3 + size
    return found


def _rich() -> bytes:
    made = _started().format("vec:float x;float y;uint8_t[3] _padding0;").format("pair:vec[2] v;char[4] who;")
    made.info("uint32_t ver_sw_release", 0x011000FF).info("uint32_t ver_vendor_sw_release", 0x01020003)
    made.info("int32_t time_ref_utc", 7200).info("char[3] sys_name", "PX4").info("uint8_t small", b"\x05")
    made.info("float[3] gains", struct.pack("<3f", 1.5, 2.25, -0.1)).info("double half", 0.5)
    made.info("bool yes", b"\x01").info("int64_t[1] one", struct.pack("<q", -7)).info("float other", 0.1)
    made.info("vec where", struct.pack("<ff", 1, 2)).info("vec[2] both", struct.pack("<ff3xff3x", 1, 2, 3, 4))
    made.info("vec padded", struct.pack("<ff3x", 8, 9))
    made.info("pair deep", struct.pack("<ff3xff3x4s", 1, 2, 3, 4, b"me"))
    made.info("gone unknown", b"abc").info("char[2] torn", b"\xff\xfe")
    made.info_multiple("char[4] console", b"caf\xc3").info_multiple("char[5] console", b"\xa9 one", True)
    made.info_multiple("char[3] console", "two").info_multiple("char[2] parts", "ab")
    made.info_multiple("char[2] parts", "cd", True).info_multiple("char[2] parts", "ef", True)
    made.info_multiple("float[3] limits", struct.pack("<3f", 1, 2, 3))
    made.info_multiple("float[3] limits", struct.pack("<3f", 4, 5, 6), True)
    made.info_multiple("vec corners", struct.pack("<ff", 1, 2)).info_multiple("int32_t counts", 7)
    made.info_multiple("uint8_t[3] blob", b"\xfd7z").info_multiple("uint8_t[2] blob", b"XZ", True)
    made.info_multiple("uint8_t[1] blob", b"!")
    return _finished(made)


def test_values_have_types_of_their_keys() -> None:
    metadata = logreel.open(_rich()).metadata
    assert (metadata["gains"], metadata["one"], metadata["small"], metadata["yes"]) == (
        pytest.approx([1.5, 2.25, -0.1]), [-7], 5, True)  # fmt: skip
    vec = [{"x": 1.0, "y": 2.0}, {"x": 3.0, "y": 4.0}]
    assert (metadata["where"], metadata["both"]) == (vec[0], vec)
    assert metadata["padded"] == {"x": 8.0, "y": 9.0}
    assert metadata["deep"] == {"v": vec, "who": "me"}
    assert metadata["unknown"] == b"abc"


def test_multiple_information_is_list_of_lists() -> None:
    log = logreel.open(_rich())
    assert log.metadata["parts"] == [["ab", "cd", "ef"]]
    assert log.metadata["limits"] == [[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]]
    assert log.metadata["corners"] == [[{"x": 1.0, "y": 2.0}]]
    assert log.metadata["counts"] == [[7]]
    assert log.metadata["console"] == [["caf", "é one"], ["two"]]


def test_parts_of_text_are_joined_without_separator() -> None:
    log = logreel.open(_rich())
    assert log.attachments["parts.txt"].read() == b"abcdef"
    assert log.attachments["console-0.txt"].read() == "café one".encode()
    assert log.attachments["blob-0.bin"].read() == b"\xfd7zXZ"


def test_multiple_information_equals_pyulog() -> None:
    for data in (_rich(), flight(3.0)):
        log, peer = logreel.open(data), load(data)
        for name, entries in peer.msg_info_multiple_dict.items():
            if name != "blob" and name != "metadata_events":
                assert [len(e) for e in log.metadata[name]] == [len(e) for e in entries], name


def check_there_and_back(data: bytes, folder: Path) -> bytes:
    """Return a ULog after a conversion to MCAP and back; all information is that of *data*."""
    source = logreel.open(data)
    logreel.convert(data, folder / "a.mcap", raw=True, force=True)
    assert logreel.convert(folder / "a.mcap", folder / "a.ulg", force=True).skipped == ()
    back = (folder / "a.ulg").read_bytes()
    due, found, log = _information(data), _information(back), logreel.open(back)
    # The UTC offset is kept in a record that is no metadata, also without the messages that state it.
    assert (("I", UTC_OFFSET) in found) == (source.utc_offset is not None and source.epoch == "boot")
    assert log.utc_offset == source.utc_offset
    assert set(found) - {("I", UTC_OFFSET)} == set(due)
    for key, payloads in due.items():
        # Of a key that is given twice the last one counts.
        assert found[key] == (payloads if key[0] == "M" else payloads[-1:]), key
    assert log.metadata == source.metadata
    assert {n: a.read() for n, a in log.attachments.items()} == {
        n: a.read() for n, a in source.attachments.items()
    }
    return back


@pytest.mark.parametrize("data", [_rich(), flight(3.0)], ids=["rich", "flight"])
def test_information_survives_mcap_round_trip(data: bytes, tmp_path: Path) -> None:
    """That of real logs does, too: see test_ulog_record_order_in_mcap.py."""
    assert not logreel.open(data).problems
    check_there_and_back(data, tmp_path)


def test_multiple_information_can_be_written(tmp_path: Path) -> None:
    with logreel.create(tmp_path / "a.ulg") as w:
        w.add_channel("a", logreel.Schema("a", "ulog", "a:uint64_t timestamp;float x;"))
        w.metadata("parts", [["ab", "cd"], ["e"]])
        w.metadata("lines", ["x", "y"])
        w.metadata("ver_sw_release", "v1.16.0-rc")
    log, peer = logreel.open(tmp_path / "a.ulg"), load((tmp_path / "a.ulg").read_bytes())
    assert log.metadata["parts"] == peer.msg_info_multiple_dict["parts"] == [["ab", "cd"], ["e"]]
    assert log.metadata["lines"] == peer.msg_info_multiple_dict["lines"] == [["x"], ["y"]]
    assert peer.msg_info_dict["ver_sw_release"] == 0x011000C0
    assert peer.get_version_info_str() == "v1.16.0 (RC)"


def test_releases_are_shown_as_text() -> None:
    metadata = logreel.open(_rich()).metadata
    assert (metadata["ver_sw_release"], metadata["ver_vendor_sw_release"]) == ("v1.16.0", "v1.2.0-dev3")
    assert metadata["ulog"]["types"]["ver_sw_release"] == "uint32_t"
    assert list(metadata)[:3] == ["sys_name", "ver_sw_release", "ver_vendor_sw_release"]
    assert metadata["time_ref_utc"] == 7200


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0x010402FF, "v1.4.2"),
        (0x011000C0, "v1.16.0-rc"),
        (0x011000C2, "v1.16.0-rc2"),
        (0x01100080, "v1.16.0-beta"),
        (0x01100040, "v1.16.0-alpha"),
        (0x01100000, "v1.16.0-dev"),
        (0, "v0.0.0-dev"),
    ],
)
def test_release_text_and_number_are_one_to_one(number: int, text: str) -> None:
    assert (release(number), release_number(text)) == (text, number)


def test_every_release_stage_round_trips() -> None:
    assert all(release_number(release(0xFF00FF00 + n)) == 0xFF00FF00 + n for n in range(256))
    assert [release_number(text) for text in ("1.2.3", "v1.2", "v300.0.0", "v1.2.3-rc99", "v1.2.3-rc63")] == [
        None
    ] * 5
