"""A ULog converted to a raw MCAP and back keeps the order of its records."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import logreel
from formats.test_ulog_information import check_there_and_back
from support.samples.ulog.builder import Builder, flight

S = 1_000_000


def _unordered() -> bytes:
    made = (
        Builder(5 * S).flags().format("a:uint64_t timestamp;float x;").format("b:uint64_t timestamp;float x;")
    )
    made.parameter("float P", 1.0).subscribe("a", 0).subscribe("b", 1)
    for step in range(60):
        # One topic goes back and forth, the other one lags behind.
        made.data(0, struct.pack("<Qf", 5 * S + (step ^ 5) * 1000, step))
        if step % 3 == 0:
            made.data(1, struct.pack("<Qf", 5 * S + step * 1000 - 40_000, step))
        if step % 7 == 0:
            made.text(6, 5 * S + step * 1000 - 9_000, f"line {step}").dropout(step)
        if step % 11 == 0:
            made.parameter("float P", float(step))
    return bytes(made.bytes())


def _records(data: bytes) -> list[tuple[str, bytes]]:
    """Return all D, L, C, O and P records in file order; message ids are replaced by topics, since ids may change."""
    found, names, at = [], dict[int, bytes](), 16
    while at < len(data):
        size, kind = struct.unpack_from("<HB", data, at)
        payload, letter = data[at + 3 : at + 3 + size], chr(kind)
        if letter == "A":
            names[struct.unpack_from("<H", payload, 1)[0]] = payload[:1] + payload[3:]
        elif letter == "D":
            found.append((letter, names[struct.unpack_from("<H", payload)[0]] + payload[2:]))
        elif letter in "LCOP":
            found.append((letter, payload))
        at += 3 + size
    return found


def _there_and_back(data: bytes, folder: Path) -> bytes:
    logreel.convert(data, folder / "a.mcap", raw=True, force=True)
    logreel.convert(folder / "a.mcap", folder / "a.ulg", force=True)
    return (folder / "a.ulg").read_bytes()


@pytest.mark.parametrize("data", [_unordered(), flight(3.0)], ids=["unordered", "flight"])
def test_record_order_survives_raw_mcap(data: bytes, tmp_path: Path) -> None:
    assert _records(_there_and_back(data, tmp_path)) == _records(data)


def test_record_order_and_information_of_real_logs_survive_raw_mcap(shared: Path, tmp_path: Path) -> None:
    for path in sorted((shared / "data" / "ulog").glob("*.ulg")):
        data = path.read_bytes()
        if not logreel.open(data).problems:
            assert _records(check_there_and_back(data, tmp_path)) == _records(data), path.name


def test_record_order_of_slice_survives_raw_mcap(tmp_path: Path) -> None:
    logreel.convert(_unordered(), tmp_path / "a.mcap", raw=True, start="+10ms", topics=["a", "~text"])
    source, found = logreel.open(_unordered()), logreel.open(tmp_path / "a.mcap")
    for topic in ("a", "~text"):
        times = source[topic].times.tolist()
        assert found[topic].times.tolist() == [t for t in times if t >= 5 * S * 1000 + 10_000_000], topic
    assert set(found) == {"a", "~text"}
