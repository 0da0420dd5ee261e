"""DataFlash logs: read as pymavlink reads them, and as the suite for formats asks."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
from dataflash_logs import KINDS, Builder, flight

import logreel
from logreel.plugin import Field, FixedArray, Layout, Scalar, Struct
from logreel.testing import FormatSuite
from logreel_ardupilot import DATAFLASH
from test_docs import run_page

PACKAGE = Path(__file__).parents[1]
REAL = PACKAGE.parents[2] / "shared/data/ardupilot/dataflash_head.bin"
SECOND = 10**9


class TestDataFlash(FormatSuite):
    format = DATAFLASH
    samples = (flight, lambda: flight(3, units=False))
    cuts, mutations, sequences = 80, 40, 3


def test_values_are_those_of_pymavlink(tmp_path: Path) -> None:
    reader = pytest.importorskip("pymavlink.DFReader", reason="pymavlink is not installed")
    path = tmp_path / "flight.bin"
    path.write_bytes(flight())
    log, oracle = logreel.open(path), reader.DFReader_binary(str(path))
    due: dict[str, list[dict[str, object]]] = {}
    while (message := oracle.recv_msg()) is not None:
        due.setdefault(message.get_type(), []).append(message.to_dict())
    oracle.filehandle.close()
    for name in ("FMT", "FMTU", "UNIT", "MULT"):
        del due[name]
    assert set(due) == set(log.channels)
    for name, messages in due.items():
        letters, columns = KINDS[name][1], KINDS[name][2].split(",")
        read = [message.decode() for message in log.messages([name])]
        assert len(read) == len(messages)
        for ours, theirs in zip(read, messages, strict=True):
            for letter, column in zip(letters, columns, strict=True):
                # Of bytes that are no text, pymavlink gives a list or bytes, by its version.
                if letter == "Z" and name == "FILE":
                    continue
                # What pymavlink scales is stored as whole numbers.
                scale = {"c": 100, "C": 100, "e": 100, "E": 100, "L": 10**7}.get(letter)
                value, other = ours[column], theirs[column]
                if letter == "a":
                    assert list(value) == list(other)
                else:
                    assert value == (other if scale is None else round(other * scale)), (name, column)


def test_what_a_log_says_besides_its_messages() -> None:
    log = logreel.open(flight())
    assert (log.format, log.version, log.epoch, log.problems) == ("dataflash", "with units", "boot", ())
    assert (log.start, log.end) == (SECOND, 2 * SECOND + 250_000_000)
    # 18 leap seconds; the first GPS message is at 1.1 s of the clock, with the same ms.
    assert log.utc_offset == pytest.approx((315964800 + 2288 * 604800 + 252818 - 18) * SECOND, abs=10**6)
    units = {field.name: field.unit for field in log["GPS"].layout.record.fields}
    assert (units["TimeUS"], units["Lat"], units["Alt"], units["GMS"]) == ("us", "1e-07 deg", "cm", "ms")
    assert log.metadata["vehicle"] == "ArduCopter"
    check = log.parameters["ARMING_CHECK"]
    assert (check.value, [c.value for c in check.changes], check.default) == (1.0, [0.0], 0.0)
    assert [line.text for line in log.text] == [
        "ArduCopter V4.5.1 (abcdef01)",
        "ARMED",
        "FAILSAFE_RADIO error 1",
        "FAILSAFE_RADIO resolved",
    ]
    assert [(band.label, band.start) for band in DATAFLASH.bands(log)] == [
        ("STABILIZE", 1_000_020_000),
        ("RTL", 1_700_000_000),
        ("Armed", 1_000_030_000),
        ("FAILSAFE_RADIO", 1_720_000_000),
    ]
    # Messages without a time have that of the record before.
    before = [SECOND, SECOND, 1_450_000_000]
    assert log["FILE"].times[:2].tolist() == before[:2]
    assert log["FILE"].times[2] == 1_400_007_000


def test_positions_are_recognised(tmp_path: Path) -> None:
    path, out = tmp_path / "a.bin", tmp_path / "a.kml"
    path.write_bytes(flight())
    logreel.convert(path, out)
    assert "8.545594 47.397742 488.12" in out.read_text()


def test_a_definition_that_changes_begins_another_channel() -> None:
    log = Builder()
    log.add("EV", 1_000, 10)
    data = bytes(log.out)
    other = data.replace(b"QB" + bytes(14), b"QBH" + bytes(13)).replace(b"TimeUS,Id\0\0", b"TimeUS,Id,X")
    assert other != data
    # The second definition has a size of its own.
    at = other.rindex(b"EV\0\0") - 2
    other = other[: at + 1] + bytes([14]) + other[at + 2 :]
    message = other.rindex(b"\xa3\x95\x8f")
    both = logreel.open(data + other[: message + 12] + b"\x07\x00")
    assert both.problems == ()
    assert {topic: len(ch) for topic, ch in both.channels.items()} == {"EV": 1, "EV#2": 1}
    assert both["EV#2"]["X"].tolist() == [7]


def test_messages_without_a_time_have_that_of_the_record_before() -> None:
    log = Builder()
    log.add("FILE", b"first", 0, 1, b"a")
    for n in range(3):
        log.add("EV", 1_000 * (n + 1), 10)
        log.add("FILE", b"later", n, 1, b"b")
        log.add("FILE", b"later", n, 2, b"c")
    data = bytes(log.out)
    due = [1_000_000, *(1_000_000 * (n + 1) for n in range(3) for _ in range(2))]
    assert logreel.open(data)["FILE"].times.tolist() == due
    # The number of EV is defined again, with the time at another place.
    other = Builder()
    other.defined |= {"FMT", "FMTU", "FILE"}
    kind = KINDS["EV"][0]
    other.add("FMT", kind, 12, b"NEW", b"BQ", b"Id,TimeUS")
    other.out += b"\xa3\x95" + bytes([kind, 7]) + (9_000).to_bytes(8, "little")
    other.add("FILE", b"new", 0, 1, b"d")
    assert logreel.open(data + bytes(other.out))["FILE"].times.tolist() == [*due, 9_000_000]


def damaged(data: bytes, at: int, new: bytes, size: int | None = None) -> logreel.Log:
    return logreel.open(data[:at] + new + data[at + (len(new) if size is None else size) :])


def test_damage_is_told_and_costs_only_what_it_concerns() -> None:
    data = flight()
    whole = {topic: len(ch) for topic, ch in logreel.open(data).channels.items()}
    at = data.index(b"\xa3\x95\x8c", 2000)
    for new, size in ((b"\0\0\0", None), (b"\xff", None), (b"garbage", 0)):
        log = damaged(data, at, new, size)
        lost = {
            topic: n - len(log.channels[topic]) for topic, n in whole.items() if n != len(log.channels[topic])
        }
        assert [p.lost for p in log.problems] == [True]
        assert sum(lost.values()) <= 1
    # Bytes that are missing: the message before is damaged, too.
    log = damaged(data, at + 10, b"", 5)
    assert [(p.code, p.lost) for p in log.problems] == [("garbage", True)]
    assert len(log.channels["ATT"]) == whole["ATT"] - 1


def test_a_damaged_definition_shows_bytes() -> None:
    data = flight()
    at = data.index(b"QB" + bytes(14) + b"TimeUS,Id\0")
    log = damaged(data, at, b"Q?")
    assert [(p.code, p.lost) for p in log.problems] == [("definition", False)]
    assert log["EV"].fields == ["data"]
    assert len(log["EV"]) == 1


def test_messages_of_an_undefined_kind_are_told() -> None:
    data = flight()
    at = data.index(b"\xa3\x95\x80\x8c")
    log = damaged(data, at, b"\xa3\x95\x07")
    assert log.problems
    assert all(p.lost for p in log.problems)
    assert "ATT" not in log.channels


def test_utc_and_times_of_untimed_messages_survive_a_slice(tmp_path: Path) -> None:
    path, out = tmp_path / "a.bin", tmp_path / "b.bin"
    path.write_bytes(flight())
    log = logreel.open(path)
    logreel.slice(path, out, topics=["FILE", "ATT"], end=1_500_000_000)
    part = logreel.open(out)
    assert part.problems == ()
    assert part["FILE"].times.tolist() == log["FILE"].times[:3].tolist()
    assert part.utc_offset == log.utc_offset
    units = [field.unit for field in part["ATT"].layout.record.fields]
    assert units == [field.unit for field in log["ATT"].layout.record.fields]


def test_logs_that_are_written_are_read_by_pymavlink(tmp_path: Path) -> None:
    reader = pytest.importorskip("pymavlink.DFReader", reason="pymavlink is not installed")
    path, out = tmp_path / "a.bin", tmp_path / "b.bin"
    path.write_bytes(flight())
    logreel.slice(path, out, topics=["ATT", "GPS"])
    oracle, count = reader.DFReader_binary(str(out)), 0
    while (message := oracle.recv_match(type=["ATT"])) is not None:
        assert message.DesYaw == 90.0
        count += 1
    oracle.filehandle.close()
    assert count == len(logreel.open(path)["ATT"]) == 24


def values_by_pymavlink(path: Path) -> dict[str, list[list[object]]]:
    """Return the stored values of all messages of channels, by name."""
    reader = pytest.importorskip("pymavlink.DFReader", reason="pymavlink is not installed")
    oracle, read = reader.DFReader_binary(str(path)), dict[str, list[list[object]]]()
    while (message := oracle.recv_msg()) is not None:
        if message.get_type() not in ("FMT", "FMTU", "UNIT", "MULT", "LREL"):
            # NaN equals nothing.
            values = [repr(value) for value in message._elements]
            read.setdefault(message.get_type(), []).append(values)
    oracle.filehandle.close()
    return read


def test_slices_and_merges_of_a_real_log_are_read_by_pymavlink(tmp_path: Path) -> None:
    if not REAL.exists():
        pytest.skip(f"no {REAL.name}: real logs are not part of the project")
    due = values_by_pymavlink(REAL)
    copy, first, second, merged = (tmp_path / f"{name}.bin" for name in ("copy", "first", "second", "merged"))
    logreel.slice(REAL, copy)
    assert values_by_pymavlink(copy) == due
    log = logreel.open(REAL)
    middle = log.start + 9 * SECOND if log.start else 0
    logreel.slice(REAL, first, end=middle)
    logreel.slice(REAL, second, start=middle)
    logreel.merge([first, second], merged)
    both = values_by_pymavlink(merged)
    assert {name: sorted(map(str, rows)) for name, rows in both.items()} == {
        name: sorted(map(str, rows)) for name, rows in due.items()
    }


@pytest.mark.parametrize("suffix", ["bin", "log"])
def test_programs_write_messages_of_their_own(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{suffix}"
    fields = (
        Field("Temp", Scalar("float32"), "degC"),
        Field("Id", FixedArray(Scalar("char"), 4)),
        Field("N", Scalar("uint16")),
    )
    with logreel.create(path, format="dataflash" if suffix == "bin" else "dataflash-text") as out:
        number = out.add_channel("SENS", Layout(Struct(fields)))
        for n in range(3):
            out.write(number, SECOND * (n + 1), {"Temp": n / 2, "Id": b"abc", "N": n})
    log = logreel.open(path)
    assert log["SENS"].times.tolist() == [SECOND, 2 * SECOND, 3 * SECOND]
    assert log["SENS"]["Temp"].tolist() == [0.0, 0.5, 1.0]
    assert [field.unit for field in log["SENS"].layout.record.fields] == ["us", "degC", "", ""]
    reader = pytest.importorskip("pymavlink.DFReader", reason="pymavlink is not installed")
    oracle = (reader.DFReader_binary if suffix == "bin" else reader.DFReader_text)(str(path))
    message = oracle.recv_match(type=["SENS"])
    assert (message.TimeUS, message.Temp, message.Id, message.N) == (10**6, 0.0, "abc", 0)
    assert message.fmt.get_unit("Temp") == "degC"
    oracle.filehandle.close()


@pytest.mark.parametrize(
    ("topic", "node", "text"),
    [
        ("sensor", Scalar("uint8"), "one to four"),
        ("FMT", Scalar("uint8"), "one to four"),
        ("SENS", Scalar("bool"), "no such type"),
        ("SENS", FixedArray(Scalar("float32"), 4), "no such type"),
    ],
)
def test_what_no_message_can_hold_is_refused(
    topic: str, node: Scalar | FixedArray, text: str, tmp_path: Path
) -> None:
    with (
        logreel.create(tmp_path / "a.bin") as out,
        pytest.raises(logreel.errors.DefinitionError, match=text),
    ):
        out.add_channel(topic, Layout(Struct((Field("x", node),))))
    many = Layout(Struct(tuple(Field(f"x{n}", Scalar("uint8")) for n in range(16))))
    with (
        logreel.create(tmp_path / "b.bin") as out,
        pytest.raises(logreel.errors.DefinitionError, match="at most 16"),
    ):
        out.add_channel("SENS", many)


def test_logs_of_other_vehicles_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.mcap"
    with logreel.create(path) as out:
        out.write(out.add_channel("SENS", Layout(Struct((Field("x", Scalar("uint8")),)))), 1, {"x": 1})
    with pytest.raises(logreel.errors.LogError, match="can hold none"):
        logreel.convert(path, tmp_path / "a.bin")
    assert not (tmp_path / "a.bin").exists()


def test_edits_change_fields(tmp_path: Path) -> None:
    path, out = tmp_path / "a.bin", tmp_path / "b.bin"
    path.write_bytes(flight())
    logreel.edit(path, out, zero="MODE.Rsn")
    assert logreel.open(out)["MODE"]["Rsn"].tolist() == [0, 0]
    np.testing.assert_array_equal(logreel.open(out)["ATT"]["Roll"], logreel.open(path)["ATT"]["Roll"])


def test_only_public_modules_of_logreel_are_imported() -> None:
    imported = set[str]()
    for path in (PACKAGE / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(node.module or "")
    assert {name for name in imported if name.partition(".")[0] == "logreel"} == {"logreel.plugin"}


def test_the_examples_of_the_readme_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page("README.md", (PACKAGE / "README.md").read_text(encoding="utf-8"))
