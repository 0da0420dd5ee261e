"""UTC of a ULog, where the boot time by the clock of the computer and GNSS messages differ."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import logreel
from logreel.errors import UsageError
from support.samples.ulog.builder import Builder

US = 10**6
#: UTC of the boot by GNSS, microseconds.
BOOT = 1_700_000_000 * US


def flight(path: Path, boot: int | None, fixes: list[int], late: int = 0, has_time: bool = True) -> Path:
    """Write a ULog with a GNSS message for each of *fixes*, five a second; every fourth has a time *late* µs wrong."""
    out = Builder(start_us=US).flags()
    if boot is not None:
        out.info("uint64_t boot_time_utc_us", boot)
    out.format("sensor_gps:uint64_t timestamp;uint64_t time_utc_usec;uint8_t fix_type;").subscribe(
        "sensor_gps", 0
    )
    for n, fix in enumerate(fixes):
        time = US + n * US // 5
        utc = BOOT + time + (late if n % 4 == 0 else 0)
        out.data(0, struct.pack("<QQB", time, utc if has_time else 0, fix))
    path.write_bytes(out.bytes())
    return path


def test_many_gnss_messages_win_over_a_boot_time_that_is_068_s_away(tmp_path: Path) -> None:
    log = logreel.open(flight(tmp_path / "x.ulg", BOOT - 680_000, [3] * 58, late=3 * US))
    assert log.utc_offset == BOOT * 1000
    text = "UTC is that of 58 GNSS messages (sensor_gps); by boot_time_utc_us, it would be 680 ms earlier"
    assert log.utc_notes == (text,)
    told = [(one.severity, one.text) for one in logreel.check(log).findings if one.code == "utc"]
    assert told == [("note", text)]
    assert logreel.info(log).as_dict()["utc_notes"] == [text]
    assert text in [fact.text for section in logreel.summary(log) for fact in section]


@pytest.mark.parametrize(
    ("boot", "fixes", "utc", "notes"),
    [
        (
            BOOT - 680_000,
            [3, 3],
            BOOT - 680_000,
            ["by 2 GNSS messages (sensor_gps), it would be 680 ms later"],
        ),
        (
            BOOT - 680_000,
            [0] * 58,
            BOOT - 680_000,
            ["by 58 GNSS messages (sensor_gps), it would be 680 ms later"],
        ),
        (BOOT + 50_000, [3] * 58, BOOT, []),
        (BOOT + 50_000, [], BOOT + 50_000, []),
        (None, [3], BOOT, []),
        (None, [0], BOOT, []),
        (None, [], None, []),
    ],
)
def test_the_more_exact_source_of_utc_wins(
    tmp_path: Path, boot: int | None, fixes: list[int], utc: int | None, notes: list[str]
) -> None:
    log = logreel.open(flight(tmp_path / "x.ulg", boot, fixes))
    assert log.utc_offset == (None if utc is None else utc * 1000)
    assert [note.partition("; ")[2] for note in log.utc_notes] == notes


def test_a_part_of_a_log_keeps_the_utc_of_the_whole(tmp_path: Path) -> None:
    path = flight(tmp_path / "x.ulg", BOOT - 680_000, [3] * 58)
    logreel.slice(path, tmp_path / "part.ulg", end="0.5")
    part = logreel.open(tmp_path / "part.ulg")
    assert (part.utc_offset, part.utc_notes) == (BOOT * 1000, ())


def test_sql_refuses_utc_of_logs_that_do_not_tell_it(tmp_path: Path) -> None:
    with_utc = flight(tmp_path / "a.ulg", BOOT, [3] * 9)
    without = flight(tmp_path / "b.ulg", None, [3] * 9, has_time=False)
    query = "SELECT time FROM sensor_gps"
    assert logreel.sql(query, with_utc, utc=True).num_rows == 9
    with pytest.raises(UsageError, match=r"b.ulg: the log does not tell how its clock relates to UTC"):
        logreel.sql(query, without, utc=True)
    with pytest.raises(UsageError, match=r"1 of 2 logs do not tell how their clocks relate to UTC: .*b.ulg"):
        logreel.sql(query, with_utc, without, utc=True)
