"""Clock of an MCAP: epoch and UTC offset of the log that it was converted from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import logreel
from logreel.formats.mcap.writer import McapCopier, McapWriter
from logreel.io.append_file import Appender
from support.samples.mcap.builder import START, Builder
from support.samples.ulog.builder import flight

SECOND = 10**9


def with_record(record: dict[str, str], times: tuple[int, ...] = (5 * SECOND, 9 * SECOND)) -> logreel.Log:
    out = Builder().metadata("logreel", record).channel(1, 0, "/a", "json")
    for time in times:
        out.message(1, time, b"{}")
    return logreel.open(out.bytes())


def test_the_utc_offset_of_the_metadata_holds_to_the_nanosecond() -> None:
    log = with_record({"epoch": "boot", "utc_offset": "1700000000123456789", "clock": "log"})
    assert (log.epoch, log.utc_offset, log.start) == ("boot", 1_700_000_000_123_456_789, 5 * SECOND)
    negative = with_record({"epoch": "start", "utc_offset": "-7", "clock": "log"})
    assert (negative.epoch, negative.utc_offset) == ("start", -7)


def test_times_on_the_utc_clock_are_unix_times() -> None:
    record = {"epoch": "boot", "utc_offset": str(START), "clock": "utc"}
    log = with_record(record, (START + 1, START + 2))
    assert (log.epoch, log.utc_offset, log.start, log.end) == ("unix", 0, START + 1, START + 2)


def test_clock_of_earlier_releases_is_read() -> None:
    clock = {"utc_offset": 17, "start": 1, "end": 99 * SECOND, "messages": 2}
    log = with_record({"format": "ulog", "epoch": "boot", "clock": json.dumps(clock)})
    assert (log.epoch, log.utc_offset, log.start, log.end) == ("boot", 17, 1, 99 * SECOND)


@pytest.mark.parametrize("offset", ["", "soon", "1e9", "9" * 30, "[1]"])
def test_offset_that_is_no_number_is_ignored(offset: str) -> None:
    log = with_record({"epoch": "boot", "utc_offset": offset, "clock": "log"})
    assert (log.epoch, log.utc_offset) == ("boot", None)


@pytest.mark.parametrize("clock", ["", "7", "[]", "{", "local", '{"utc_offset": "x", "messages": [1]}'])
def test_invalid_clock_is_ignored(clock: str) -> None:
    log = with_record({"epoch": "yesterday", "clock": clock})
    assert (log.epoch, log.utc_offset, log.start) == ("start", None, 5 * SECOND)


def test_raw_mode_keeps_the_clock_of_a_ulog(tmp_path: Path) -> None:
    (tmp_path / "x.ulg").write_bytes(flight())
    source = logreel.open(tmp_path / "x.ulg")
    assert source.utc_offset is not None
    logreel.convert(source, tmp_path / "x.mcap", raw=True)
    log = logreel.open(tmp_path / "x.mcap")
    assert (log.epoch, log.utc_offset) == ("boot", source.utc_offset)
    assert (log.start, log.end) == (source.start, source.end)


def test_an_mcap_for_other_tools_begins_and_ends_with_its_source(tmp_path: Path) -> None:
    """The flight has a message before its start, which the bounds of a ULog leave out; channels are added."""
    (tmp_path / "x.ulg").write_bytes(flight())
    source = logreel.open(tmp_path / "x.ulg")
    assert source.start is not None
    assert min(int(ch.times.min()) for ch in source.values() if len(ch)) < source.start
    logreel.convert(source, tmp_path / "x.mcap")
    log = logreel.open(tmp_path / "x.mcap")
    assert log.message_count > source.message_count
    assert source.utc_offset is not None
    assert source.end is not None
    assert (log.start, log.end) == (source.start + source.utc_offset, source.end + source.utc_offset)


def test_utc_clock_shifts_imported_times(tmp_path: Path) -> None:
    (tmp_path / "x.ulg").write_bytes(flight())
    source = logreel.open(tmp_path / "x.ulg")
    offset = source.utc_offset
    assert offset is not None
    out = Appender(tmp_path / "x.mcap")
    format_writer = McapWriter(out)
    copier = McapCopier(format_writer)
    copier.clock = "utc"
    copier.import_foreign(source, False)
    format_writer.commit()
    format_writer.finish()
    out.finish()
    log = logreel.open(tmp_path / "x.mcap")
    assert (log.epoch, log.utc_offset) == ("unix", 0)
    assert log.metadata["mcap"]["converted_from"]["format"] == "ulog"
    changed = [p for p in source.parameters.values() if p.changes]
    assert changed
    for one in changed:
        there = [(c.time - offset, c.value) for c in log.parameters[one.name].changes]
        assert there == [(c.time, c.value) for c in one.changes]


def test_metadata_of_the_converted_log_has_its_clock() -> None:
    record = {"format": "ulog", "version": "1", "epoch": "boot", "utc_offset": "17", "clock": "log"}
    assert with_record(record).metadata["mcap"]["converted_from"] == record
    former = {"format": "ulog", "epoch": "boot", "clock": json.dumps({"utc_offset": 17})}
    due = {"format": "ulog", "epoch": "boot", "utc_offset": "17", "clock": "log"}
    assert with_record(former).metadata["mcap"]["converted_from"] == due


def test_copy_on_the_utc_clock_shifts_the_record(tmp_path: Path) -> None:
    (tmp_path / "x.ulg").write_bytes(flight())
    source = logreel.open(tmp_path / "x.ulg")
    logreel.convert(source, tmp_path / "raw.mcap", raw=True)
    raw = logreel.open(tmp_path / "raw.mcap")
    out = Appender(tmp_path / "x.mcap")
    format_writer = McapWriter(out)
    copier = McapCopier(format_writer)
    copier.clock = "utc"
    copier.copy_metadata(raw)
    format_writer.commit()
    format_writer.finish()
    out.finish()
    log, offset = logreel.open(tmp_path / "x.mcap"), source.utc_offset
    assert offset is not None
    assert (log.epoch, log.utc_offset) == ("unix", 0)
    record = log.metadata["mcap"]["converted_from"]
    assert (record["epoch"], record["utc_offset"], record["clock"]) == ("boot", str(offset), "utc")
    assert log.metadata["sys_name"] == source.metadata["sys_name"]
    for name, one in source.parameters.items():
        assert [(c.time - offset, c.value) for c in log.parameters[name].changes] == [
            (c.time, c.value) for c in one.changes
        ]
