"""Records of unknown kinds or with undefined content: a sound chain around them is the evidence."""

from __future__ import annotations

import struct
from pathlib import Path
from random import Random

import pytest

import logreel
from logreel.formats.ulog.reader import Reader
from logreel.log.log import Log
from logreel.registry import index_cache
from support.samples.ulog.builder import Builder

S = 1_000_000
OTHER_MAGIC = b"\x00\x11\x22\x33\x44\x55\x66\x77"


def _started() -> Builder:
    return Builder(start_us=S).flags().format("a:uint64_t timestamp;uint32_t n;").subscribe("a", 0)


def _data(out: Builder, n: int) -> Builder:
    return out.data(0, struct.pack("<QI", 10 * S + n, n))


def _with(piece: bytes, every: int = 1, count: int = 40) -> bytes:
    """Return a log of *count* messages with *piece* after each one, or after each one of *every*."""
    out = _started()
    for n in range(count):
        _data(out, n)
        if n % every == 0:
            out.junk(piece)
    return bytes(out.bytes())


def _record(kind: int, payload: bytes) -> bytes:
    return struct.pack("<HB", len(payload), kind) + payload


def _numbers(log: Log) -> list[int]:
    found: list[int] = log["a"]["n"].tolist()
    return found


def _loss_codes(log: Log) -> list[str]:
    return [p.code for p in log.problems if p.lost]


@pytest.mark.parametrize("every", [1, 3, 39])
@pytest.mark.parametrize("size", [0, 1, 2, 8, 300])
@pytest.mark.parametrize("kind", [0x00, 0x01, 0x20, 0x30, 0x7F, 0x80, 0xFF, ord("Z")])
def test_record_of_any_kind_is_skipped_in_sound_chain(kind: int, size: int, every: int) -> None:
    if kind == size == 0:
        return  # that is zero fill
    log = logreel.open(_with(_record(kind, Random(size).randbytes(size)), every))
    assert _numbers(log) == list(range(40))
    assert _loss_codes(log) == []
    assert [p.code for p in log.problems] == ["unknown"]


def test_consecutive_unknown_kinds_are_skipped() -> None:
    pieces = b"".join(_record(kind, bytes([kind]) * 5) for kind in (0x01, 0x80, 0xFE, 0x21, 0x02))
    log = logreel.open(_with(pieces, 4))
    assert _numbers(log) == list(range(40))
    assert _loss_codes(log) == []


def test_damage_between_unknown_records_loses_nothing_else() -> None:
    data = bytearray(_with(_record(0x80, b"unknown"), 2, 200))
    data[2000:2100] = Random(3).randbytes(100)
    log = logreel.open(bytes(data))
    got = _numbers(log)
    assert len(got) >= 200 - 9
    assert _loss_codes(log)


@pytest.mark.parametrize("magic", [OTHER_MAGIC, b"\xff" * 8, bytes(8)])
@pytest.mark.parametrize("every", [1, 5])
def test_sync_with_other_magic_loses_nothing(magic: bytes, every: int) -> None:
    log = logreel.open(_with(_record(ord("S"), magic), every))
    assert _numbers(log) == list(range(40))
    assert not log.problems


@pytest.mark.parametrize("size", [0, 4, 16])
def test_sync_with_other_size_loses_nothing(size: int) -> None:
    log = logreel.open(_with(_record(ord("S"), b"\x2f" * size), 3))
    assert _numbers(log) == list(range(40))
    assert [p.code for p in log.problems if p.lost] == []


def test_message_with_damaged_kind_is_reported_lost() -> None:
    for bit in range(8):
        data = bytearray(_with(b""))
        at = bytes(data).index(struct.pack("<HBHQ", 14, ord("D"), 0, 10 * S + 20)) + 2
        data[at] ^= 1 << bit
        log = logreel.open(bytes(data))
        assert _numbers(log) == [n for n in range(40) if n != 20], bit
        assert sum(p.size for p in log.problems if p.lost) == 17, bit


def test_random_bytes_are_no_unknown_records() -> None:
    data = _with(b"", count=2000)
    first = data.index(struct.pack("<Q", 10 * S)) - 5
    for seed in range(40):
        bad, rng = bytearray(data), Random(seed)
        at = rng.randrange(1024, len(bad) - 1024) // 512 * 512
        bad[at : at + 512] = rng.randbytes(512)
        log = logreel.open(bytes(bad))
        whole = {n for n in range(2000) if not at - 17 < first + 17 * n < at + 512}
        assert whole <= set(_numbers(log)), seed
        assert sum(p.size for p in log.problems if p.lost) >= 480, seed


def test_unknown_record_does_not_end_definitions() -> None:
    for piece in (_record(0x80, b"new"), _record(ord("S"), OTHER_MAGIC), _record(ord("Z"), b"new")):
        out = Builder(start_us=S).flags().format("a:uint64_t timestamp;uint32_t n;").junk(piece)
        out.parameter("float P", 1.5).subscribe("a", 0)
        for n in range(20):
            _data(out, n)
        one = logreel.open(out.bytes()).parameters["P"]
        assert (one.value, one.changes) == (1.5, ())


@pytest.mark.parametrize("level", [0x00, 0x06, 0x38, 0x41, 0xFF])
@pytest.mark.parametrize("tagged", [False, True])
def test_string_with_invalid_level_is_kept_and_reported(level: int, tagged: bool, tmp_path: Path) -> None:
    tag = struct.pack("<H", 7) if tagged else b""
    line = _record(ord("C" if tagged else "L"), bytes([level]) + tag + struct.pack("<Q", 10 * S) + b"hello")
    data = _with(line, 10)
    log = logreel.open(data)
    assert _numbers(log) == list(range(40))
    assert [(t.level, t.text, t.source) for t in log.text] == [(None, "hello", "tag 7" if tagged else "")] * 4
    assert [(p.code, p.lost) for p in log.problems] == [("level", False)]
    assert f"0x{level:02x}" in log.problems[0].text
    logreel.slice(data, tmp_path / "a.ulg")
    assert (tmp_path / "a.ulg").read_bytes() == data
    logreel.sort(data, tmp_path / "b.ulg")
    logreel.convert(data, tmp_path / "c.mcap", raw=True)
    logreel.convert(tmp_path / "c.mcap", tmp_path / "c.ulg")
    for name in ("b.ulg", "c.ulg"):
        assert (tmp_path / name).read_bytes().count(line) == 4, name


def test_records_kept_by_size_are_restored_from_sidecar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces = _record(0x80, b"new") + _record(ord("L"), b"\x06" + struct.pack("<Q", 10 * S) + b"hello")
    path = tmp_path / "a.ulg"
    path.write_bytes(_with(pieces + _record(ord("S"), b"four"), 4))
    first = logreel.open(path)
    saved = [(p.code, p.text) for p in first.problems], _numbers(first), [t.text for t in first.text]
    index_cache.write(str(path))
    monkeypatch.setattr(Reader, "finish", None)
    again = logreel.open(path)
    assert (
        [(p.code, p.text) for p in again.problems],
        _numbers(again),
        [t.text for t in again.text],
    ) == saved


def test_sort_reports_unknown_records_left_out(tmp_path: Path) -> None:
    done = logreel.sort(_with(_record(0x80, b"new"), 10), tmp_path / "a.ulg")
    assert done.skipped == ("4 records of unknown kinds (0x80) were left out of <bytes>",)
