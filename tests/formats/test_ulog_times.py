"""Clocks of ULog: short timestamps, absurd ones, the end of a log, and UTC."""

from __future__ import annotations

import struct
from random import Random

import pytest

import logreel
from support.oracles import ulog as ulog_oracle
from support.samples.ulog import builder
from support.samples.ulog.builder import Builder

S = 1_000_000
TICK = "tick:uint64_t timestamp;uint32_t n;"
#: Type, code, and microseconds per unit.
SHORT = [("uint8_t", "<B", 1000), ("uint16_t", "<H", 1), ("uint32_t", "<I", 1)]


def tick(time_us: int, n: int = 0) -> bytes:
    return struct.pack("<QI", time_us, n)


def started(start_us: int = S) -> Builder:
    return Builder(start_us=start_us).flags().format(TICK).subscribe("tick", 0)


def times_us(data: bytes, topic: str) -> list[int]:
    return (logreel.open(data)[topic].times // 1000).tolist()


@pytest.mark.parametrize(("kind", "code", "unit"), SHORT)
@pytest.mark.parametrize("seed", range(6))
def test_short_timestamps_equal_oracle(kind: str, code: str, unit: int, seed: int) -> None:
    """With and without dropouts, texts and a full timestamp between the messages."""
    rng = Random(seed)
    period = unit << 8 * struct.calcsize(code)
    out = started(S + seed).format(f"n:uint16_t x;{kind} timestamp;").subscribe("n", 1)
    now = S + seed
    for _ in range(300):
        now += rng.randrange(unit, period // 3)
        out.data(1, struct.pack("<H", 7) + struct.pack(code, now // unit % 256 ** struct.calcsize(code)))
        if seed % 3 and rng.random() < 0.1:
            out.data(0, tick(now))
        if seed % 2 and rng.random() < 0.1:
            out.text(6, now, "a line")
        if rng.random() < 0.05:
            ms = rng.randrange(1, 1000)
            out.dropout(ms)
            now += 1000 * ms
    judge = ulog_oracle.read(out.bytes()).segments[0].records["n"]
    assert times_us(out.bytes(), "n") == [row.time for row in judge]


def test_damaged_string_stamp_does_not_shift_short_timestamps() -> None:
    out = started().format("n:uint8_t timestamp;").subscribe("n", 1)
    for i in range(50):
        out.data(0, tick(S + 10_000 * i)).data(1, bytes([(1000 + 10 * i) % 256]))
        if i == 20:
            out.text(6, 2**63 - 1, "damaged")
    assert times_us(out.bytes(), "n") == [S + 10_000 * i for i in range(50)]


def test_times_are_limited_to_int64() -> None:
    for start in (2**64 - 1, 2**63, (2**63 - 1) // 1000):
        out = Builder(start_us=start).flags().format("n:uint8_t timestamp;").subscribe("n", 0)
        for i in range(10):
            out.data(0, bytes([250 * i % 256])).dropout(65_535).text(6, 2**64 - 1, "late")
        log = logreel.open(out.bytes())
        assert log["n"].times.max() <= 2**63 - 1
        assert log["~text"].times.max() <= 2**63 - 1
        assert log["n"].to_arrow().num_rows == 10


def test_single_absurd_stamp_is_not_log_end() -> None:
    out = started().format("m:uint64_t timestamp;").subscribe("m", 1)
    for i in range(100):
        out.data(0, tick(2 * S + i * 1000))
    for absurd in (1194 * S, 2**63 - 1, 2**64 - 1):
        log = logreel.open(out.bytes() + absurd_row(absurd))
        assert (log.start, log.end) == (S * 1000, (2 * S + 99_000) * 1000)
        assert len(log["m"]) == 1


def absurd_row(time_us: int) -> bytes:
    return Builder().data(1, struct.pack("<Q", time_us)).bytes()[16:]


def test_zero_stamps_do_not_count_for_bounds() -> None:
    out = started().format("z:uint64_t timestamp;").subscribe("z", 1)
    for i in range(10):
        out.data(1, bytes(8)).data(0, tick(2 * S + i))
    log = logreel.open(out.bytes())
    assert (log.start, log.end) == (S * 1000, (2 * S + 9) * 1000)
    assert not log["z"].times.any()


@pytest.mark.parametrize("seconds", [59, 61])
def test_last_text_near_other_stamps_is_log_end(seconds: int) -> None:
    out = started()
    for i in range(10):
        out.data(0, tick(2 * S + i))
    for text_us in (2 * S + 9 + seconds * S, 2**63 - 1):
        log = logreel.open(out.bytes() + Builder().text(6, text_us, "landed").bytes()[16:])
        supported = seconds < 60 and text_us < 2**63 - 1
        assert log.end == (text_us if supported else 2 * S + 9) * 1000


def test_bounds_of_log_without_messages() -> None:
    empty = logreel.open(Builder(start_us=5 * S).flags().bytes())
    assert (empty.start, empty.end, len(empty.index)) == (5 * S * 1000, 5 * S * 1000, 0)
    assert logreel.open(Builder().flags().bytes()).start is None
    begins_at_0 = started(0)
    for i in range(5):
        begins_at_0.data(0, tick(i * S))
    found = logreel.open(begins_at_0.bytes())
    assert (found.start, found.end) == (0, 4 * S * 1000)
    zeros = logreel.open(started(0).data(0, tick(0)).bytes())
    assert (zeros.start, zeros.end) == (None, None)


def test_topic_without_timestamp_gets_latest_time() -> None:
    out = started().format("plain:uint32_t n;").subscribe("plain", 1).data(1, b"\1\0\0\0")
    for i in range(5):
        out.data(0, tick(2 * S + i)).data(1, b"\2\0\0\0")
    assert times_us(out.bytes(), "plain") == [S, *(2 * S + i for i in range(5))]


# ------------------------------------------------------------------ UTC


def test_utc_from_wall_clock_header() -> None:
    now = 1_700_000_000 * S
    log = logreel.open(started(now).data(0, tick(now + 5)).bytes())
    assert (log.epoch, log.utc_offset, log.end) == ("unix", 0, (now + 5) * 1000)


def test_utc_from_information() -> None:
    out = Builder(start_us=S).flags().info("uint64_t boot_time_utc_us", 1_700_000_000 * S).format(TICK)
    log = logreel.open(out.subscribe("tick", 0).data(0, tick(2 * S)).bytes())
    assert (log.epoch, log.utc_offset) == ("boot", 1_700_000_000 * S * 1000)
    table = log["tick"].to_arrow(utc=True)
    assert table.column("time")[0].value == (1_700_000_000 + 2) * 10**9


@pytest.mark.parametrize("name", ["sensor_gps", "vehicle_gps_position"])
def test_utc_from_first_gps_message_with_time(name: str) -> None:
    out = Builder(start_us=S).flags().format(f"{name}:uint64_t timestamp;uint64_t time_utc_usec;")
    out.subscribe(name, 0).data(0, struct.pack("<QQ", 2 * S, 0))
    assert logreel.open(out.bytes()).utc_offset is None
    out.data(0, struct.pack("<QQ", 3 * S, 1_700_000_000 * S))
    assert logreel.open(out.bytes()).utc_offset == (1_700_000_000 - 3) * 10**9


def test_missing_utc_raises_clear_error() -> None:
    log = logreel.open(started().data(0, tick(2 * S)).bytes())
    assert log.utc_offset is None
    with pytest.raises(logreel.UsageError, match="UTC"):
        log["tick"].to_arrow(utc=True)


def test_damaged_boot_time_is_ignored() -> None:
    for value in (2**64 - 1, 2**63, 0):
        out = Builder(start_us=S).flags().info("uint64_t boot_time_utc_us", value).format(TICK)
        log = logreel.open(out.subscribe("tick", 0).data(0, tick(2 * S)).bytes())
        assert log.utc_offset is None


def test_absurd_stamp_does_not_wrap_in_utc() -> None:
    out = Builder(start_us=S).flags().info("uint64_t boot_time_utc_us", 1_700_000_000 * S).format(TICK)
    log = logreel.open(out.subscribe("tick", 0).data(0, tick(2 * S)).data(0, tick(2**64 - 1)).bytes())
    assert [t.value for t in log["tick"].to_arrow(utc=True)["time"]] == [1_700_000_002 * 10**9, 2**63 - 1]


def test_bundled_flight_has_utc() -> None:
    log = logreel.open(builder.flight(2))
    assert log.utc_offset is not None
    assert 10**18 < log.utc_offset < 2 * 10**18
