"""Text logs: the messages of the DataFlash log, read as pymavlink reads them, and as the suite for formats asks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dataflash_logs import Builder, flight
from text_logs import as_lines, old_flight

import logreel
from logreel.testing import FormatSuite
from logreel_ardupilot import TEXT

SHARED = Path(__file__).parents[3].parent / "shared/data/ardupilot/dataflash_head.bin"
SECOND = 10**9


def plain_old_flight() -> bytes:
    """Return the log without lines before the definitions, so that no vehicle is named."""
    return old_flight()[33:].replace(b"STABILIZE", b"0")


class TestText(FormatSuite):
    format = TEXT
    samples = (lambda: as_lines(flight()), lambda: as_lines(flight(3, units=False), "\n"), plain_old_flight)
    cuts, mutations, sequences = 40, 30, 2


def rows(log: logreel.Log) -> dict[str, list[tuple[int, bytes]]]:
    return {ch.topic: [(m.time, bytes(m.data)) for m in log.messages([ch.topic])] for ch in log.values()}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("separator", [", ", ","])
def test_the_messages_are_those_of_the_same_log_as_records(end: str, separator: str) -> None:
    log, records = logreel.open(as_lines(flight(), end, separator)), logreel.open(flight())
    assert (log.format, log.version, log.problems) == ("dataflash-text", "with units", ())
    assert rows(log) == rows(records)
    for ch in records.values():
        assert log[ch.topic].schema == ch.schema
    assert log.utc_offset == records.utc_offset
    assert log.metadata == records.metadata
    assert log.parameters == records.parameters
    assert list(log.text) == list(records.text)


def equals(log: logreel.Log, path: Path) -> int:
    """Compare all values with those of pymavlink; return their number."""
    reader = pytest.importorskip("pymavlink.DFReader", reason="pymavlink is not installed")
    oracle, due, count = reader.DFReader_text(str(path)), dict[str, list[Any]](), 0
    while (message := oracle.recv_msg()) is not None:
        due.setdefault(message.get_type(), []).append(message)
    oracle.filehandle.close()
    assert {name for name in due if name not in ("FMT", "FMTU", "UNIT", "MULT", "LREL")} == set(log.channels)
    for ch in log.values():
        letters = [line.split(" ")[0] for line in ch.schema.text.splitlines()[1:]]
        read = [message.decode() for message in log.messages([ch.topic])]
        assert len(read) == len(due[ch.topic])
        for ours, message in zip(read, due[ch.topic], strict=True):
            for letter, (name, value) in zip(letters, ours.items(), strict=True):
                if letter == "a" or "\\" in str(theirs := getattr(message, name)):
                    continue  # pymavlink gives the text as it is
                if letter in "cCeEL":
                    theirs = round(theirs * (10**7 if letter == "L" else 100))
                elif letter == "f":
                    theirs = float(np.float32(theirs))
                elif letter == "M":
                    theirs = int(theirs)
                elif letter in "nNZ" and ", " in value:
                    # pymavlink ends text at a comma.
                    value = value.partition(", ")[0]
                assert value == theirs or value != value, (ch.topic, name)
                count += 1
    return count


def test_values_are_those_of_pymavlink(tmp_path: Path) -> None:
    path = tmp_path / "flight.log"
    path.write_bytes(as_lines(flight()))
    assert equals(logreel.open(path), path) > 450


def test_values_of_a_real_log_as_text_are_those_of_pymavlink(tmp_path: Path) -> None:
    if not SHARED.exists():
        pytest.skip(f"no {SHARED.name}: real logs are not part of the project")
    path, back = tmp_path / "real.log", tmp_path / "back.bin"
    logreel.convert(SHARED, path)
    assert equals(logreel.open(path), path) > 300_000
    logreel.convert(path, back)
    assert rows(logreel.open(back)) == rows(logreel.open(path))
    # Not by bytes: lines have one NaN.
    for old, new in zip(*(logreel.open(name).messages(order="file") for name in (SHARED, back)), strict=True):
        assert (old.time, old.channel.topic, repr(old.decode())) == (
            new.time,
            new.channel.topic,
            repr(new.decode()),
        )


def test_conversions_there_and_back_keep_every_payload(tmp_path: Path) -> None:
    path, text, back = (tmp_path / name for name in ("a.bin", "a.log", "b.bin"))
    path.write_bytes(flight())
    report = logreel.convert(path, text)
    assert report.skipped == ()
    assert logreel.open(text).format == "dataflash-text"
    assert logreel.convert(text, back).skipped == ()
    assert rows(logreel.open(back)) == rows(logreel.open(path))
    assert logreel.open(back)["GPS"].schema == logreel.open(path)["GPS"].schema


def test_old_logs_name_modes_and_begin_with_other_lines() -> None:
    log = logreel.open(old_flight())
    assert [(p.code, p.offset, p.lost) for p in log.problems] == [("garbage", 0, False)]
    assert log["MODE"]["Mode"].tolist() == [0, 2]
    assert log["ATT"]["Yaw"].tolist() == [35999] * 5
    assert log["ATT"].times.tolist() == [SECOND + n * SECOND // 10 for n in range(5)]
    # Messages without a time have that of the message before.
    assert log["MODE"].times.tolist() == [SECOND, 1_400_000_000]
    assert log.parameters["SYSID_SW_MREV"].value == 120.0


def text(*lines: bytes) -> logreel.Log:
    definitions = (
        b"FMT, 128, 89, FMT, BBnNZ, Type,Length,Name,Format,Columns\nFMT, 1, 78, MSG, QZB, TimeUS,Text,N\n"
    )
    definitions += b"FMT, 2, 30, NUM, QbHcefdg, TimeUS,b,H,c,e,f,d,g\nFMT, 3, 76, END, QbZ, TimeUS,I,Text\n"
    return logreel.open(definitions + b"".join(line + b"\n" for line in lines))


def test_text_is_unescaped_and_keeps_commas_at_the_end() -> None:
    log = text(
        rb"MSG, 1, a\x2Cb\\n\n, 7", b"END, 2, -1, one, two,  three", b"END, 3, 1, ", "END, 4, 1, Ö".encode()
    )
    assert log.problems == ()
    assert [m.decode()["Text"] for m in log.messages(["MSG"])] == ["a,b\\n\n"]
    assert [m.decode()["Text"] for m in log.messages(["END"])] == ["one, two,  three", "", "Ö"]


@pytest.mark.parametrize(
    "line",
    [
        b"NUM, 5, -129, 1, 1, 1, 1, 1, 1",
        b"NUM, 5, 1, 65536, 1, 1, 1, 1, 1",
        b"NUM, 5, 1, 1.5, 1, 1, 1, 1, 1",
        b"NUM, 5, 1, 1, 0.123, 1, 1, 1, 1",
        b"NUM, 5, 1, 1, 400, 1, 1, 1, 1",
        b"NUM, 5, 1, 1, 1, 1, 1e39, 1, 1",
        b"NUM, 5, 1, 1, 1, 1, 1, 1, 70000",
        b"NUM, 5, 1, 1, 1, 1, 1_0, 1, 1",
        b"NUM, 5, 1, 1, 1, 1, 1, 1",
        b"NUM, 5, 1, 1, 1, 1, 1, 1, 1, 1",
        b"NUM, 5, x, 1, 1, 1, 1, 1, 1",
        b"NUM",
        b"XYZ, 5, 1",
        b"MSG, 5, " + b"a" * 65 + b", 1",
        b"\0\0\0\0\0",
    ],
)
def test_a_line_that_is_no_message_is_told_and_costs_itself_only(line: bytes) -> None:
    good = b"NUM, 9, -128, 65535, -327.68, 0.01, 0.1, 1e300, 0.5"
    log = text(good, line, good)
    assert [(p.code, p.size, p.lost) for p in log.problems] == [("garbage", len(line) + 1, True)]
    assert set(log.channels) == {"NUM"}
    assert [m.decode() for m in log.messages()] == [
        {
            "TimeUS": 9,
            "b": -128,
            "H": 65535,
            "c": -32768,
            "e": 1,
            "f": float(np.float32(0.1)),
            "d": 1e300,
            "g": 0x3800,
        }
    ] * 2


def test_whole_numbers_are_exact() -> None:
    large = (1 << 63) + 12345
    log = text(b"NUM, %d, 1, 1, 1, 1, nan, -inf, 1" % large)
    assert log["NUM"]["TimeUS"].tolist() == [large]
    assert np.isnan(log["NUM"]["f"][0])
    assert log["NUM"]["d"].tolist() == [-np.inf]


def test_a_line_without_an_end_is_cut() -> None:
    data = as_lines(flight())
    log = logreel.open(data[:-3])
    assert [(p.code, p.lost) for p in log.problems] == [("truncated", True)]
    assert log.message_count == logreel.open(data).message_count - 1


def test_two_definitions_of_one_name_are_two_channels(tmp_path: Path) -> None:
    log = Builder()
    log.add("EV", 1_000, 10)
    lines = as_lines(bytes(log.out), "\n")
    again = lines + b"FMT, 9, 14, EV, QBH, TimeUS,Id,X\nEV, 2000, 11, 7\n"
    again += b"FMT, 143, 12, EV, QB, TimeUS,Id\nEV, 3000, 12\n"
    path, out = tmp_path / "a.log", tmp_path / "b.log"
    path.write_bytes(again)
    logreel.slice(path, out)
    for both in (logreel.open(path), logreel.open(out)):
        assert {topic: len(ch) for topic, ch in both.channels.items()} == {"EV": 2, "EV#2": 1}
        assert both["EV"]["Id"].tolist() == [10, 12]
        assert both["EV#2"]["X"].tolist() == [7]


def test_large_logs_are_read_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    from logreel_ardupilot import text_reader

    data = as_lines(flight())
    due = rows(logreel.open(data))
    for size in (1, 100, 1000):
        monkeypatch.setattr(text_reader, "BLOCK", size)
        assert rows(logreel.open(data)) == due


def test_edits_and_other_formats_take_text_logs(tmp_path: Path) -> None:
    path, out, table = tmp_path / "a.log", tmp_path / "b.log", tmp_path / "a.kml"
    path.write_bytes(as_lines(flight()))
    logreel.edit(path, out, zero="MODE.Rsn")
    assert logreel.open(out)["MODE"]["Rsn"].tolist() == [0, 0]
    logreel.convert(path, table)
    assert "8.545594 47.397742 488.12" in table.read_text()


def test_formats_that_share_the_suffix_are_told_apart_by_content(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(b"ATT, 1, 2, 3\nno definition\n")
    with pytest.raises(logreel.errors.LogError):
        logreel.open(path)


def test_blocks_are_unpacked_again_where_memory_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from logreel_ardupilot import text_reader

    monkeypatch.setattr(text_reader, "BLOCK", 500)
    path = tmp_path / "a.log"
    path.write_bytes(as_lines(flight()))
    due = rows(logreel.open(path))
    small = logreel.open(path, limits=logreel.Limits(cache_bytes=600))
    assert rows(small) == due
    changing = logreel.open(path, limits=logreel.Limits(cache_bytes=600))
    path.write_bytes(path.read_bytes().replace(b"ATT", b"XTT"))
    with pytest.raises(logreel.errors.FileChangedError):
        changing["ATT"].to_arrow(explode=False)
