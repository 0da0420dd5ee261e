"""Types of Koblenz logs that users add with ``definitions add``."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import logreel
from logreel.errors import DefinitionError
from logreel.formats.koblenz import definitions, type_id
from logreel.formats.koblenz.definitions import KNOWN, message_type, text_of
from support.harness.cli_runner import Run
from support.samples.koblenz.builder import Builder

THERMO = "float32 celsius  # temperature [degC]\nuint8 sensor\nbool ok\nstring place\nuint32[] raw\n"
FIELDS = {"celsius": 21.5, "sensor": 3, "ok": 1, "place": "lab", "raw": [7, 8]}
PAYLOAD = struct.pack("<fBII3sIII", 21.5, 3, 1, 3, b"lab", 2, 7, 8)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder; the user's data folder in it is empty."""
    monkeypatch.setenv("LOGREEL_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(definitions, "_registered", {known.id: known for known in definitions.KNOWN})
    monkeypatch.chdir(tmp_path)
    return tmp_path


def log(version: int = 100, payload: bytes = PAYLOAD, name: str = "ThermoM") -> bytes:
    """Return a log with three messages of a type that the format's description does not have."""
    builder = Builder()
    for n in range(3):
        builder.add(name, 10.0 * n, payload, version)
    return builder.bytes()


def test_an_unknown_type_is_read_by_what_was_added() -> None:
    assert list(logreel.open(log()).channels) == [f"0x{type_id('ThermoM'):08X}"]
    Path("ThermoM.koblenz").write_text(THERMO)
    done = logreel.definitions.add("ThermoM.koblenz")
    assert [(one.language, one.name, one.version) for one in done.added] == [("koblenz", "ThermoM", "100")]
    again = logreel.open(log())
    assert list(again.channels) == ["ThermoM"]
    assert [m.decode() for m in again.messages()] == [FIELDS] * 3
    assert {f.name: f.unit for f in again["ThermoM"].layout.record.visible()}["celsius"] == "degC"
    assert again.problems == ()


def test_each_version_of_a_type_is_read_by_its_own_fields() -> None:
    Path("ThermoM.koblenz").write_text("float32 celsius\n")
    Path("ThermoM@103.koblenz").write_text("float64 kelvin\nuint8 sensor\n")
    assert len(logreel.definitions.add(".").added) == 2
    data = Builder()
    data.add("ThermoM", 0.0, struct.pack("<f", 20.0), 100)
    data.add("ThermoM", 1.0, struct.pack("<dB", 300.0, 4), 103)
    data.add("ThermoM", 2.0, struct.pack("<fH", 21.0, 5), 102)
    found = {m.channel.topic: m.decode() for m in logreel.open(data.bytes()).messages()}
    assert found == {
        "ThermoM": {"celsius": 20.0},
        "ThermoM@103": {"kelvin": 300.0, "sensor": 4},
        # A version without description has the fields of the one before it, and more bytes.
        "ThermoM@102": {"celsius": 21.0, "rest": b"\x05\x00"},
    }
    assert [one.version for one in logreel.definitions.find("ThermoM")] == ["100", "103"]


def test_logs_with_added_types_are_written(folder: Path) -> None:
    Path("ThermoM.koblenz").write_text(THERMO)
    logreel.definitions.add("ThermoM.koblenz")
    with logreel.create("new.vel") as w:
        w.write(w.add_channel("ThermoM", logreel.Schema("ThermoM", "koblenz")), 10**6, FIELDS)
    assert next(logreel.open("new.vel").messages()).decode() == FIELDS


def test_the_described_types_are_listed_with_their_fields(run: Run) -> None:
    names = [one.name for one in logreel.definitions.list("*M") if one.language == "koblenz"]
    assert names == sorted(kind.name for kind in KNOWN)
    assert "float32 speed  # [km/h]" in logreel.definitions.find("GPSDataM")[0].text
    assert "OBDDataM  (koblenz, 100)" in run("definitions", "find", "OBDDataM").out


@pytest.mark.parametrize(
    "kind", [kind for kind in KNOWN if kind.name != "VelodyneRawDataM"], ids=lambda k: k.name
)
def test_the_text_of_a_flat_type_describes_the_same_fields(kind) -> None:
    again = message_type(kind.name, kind.version, text_of(kind.layout))
    assert [(f.name, f.node, f.unit) for f in again.layout.root.fields] == [
        (f.name, f.node, f.unit) for f in kind.layout.root.fields
    ]


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("ThermoM", "float32 x y\n", "expected a type and a name"),
        ("ThermoM", "time t\n", "t is of type time"),
        ("ThermoM", "Other x\n", "x is of type Other"),
        ("ThermoM", "", "expected fields"),
        ("ThermoM", "int32 A=1\n", "expected fields"),
        ("ThermoM@99999", "int32 x\n", "cannot be a message type"),
        ("no class", "int32 x\n", "is not named after a class"),
        ("OBDDataL\x7f", "int32 x\n", "is not named after a class"),
    ],
)
def test_unusable_files_are_reported(name: str, text: str, why: str) -> None:
    Path(f"{name}.koblenz").write_text(text)
    done = logreel.definitions.add(f"{name}.koblenz")
    assert done.added == ()
    assert why in done.problems[0]


def test_a_type_with_the_id_of_another_is_refused() -> None:
    # Ids are sums of letters times their places: one letter more, two less, one more gives the same sum.
    first, twin = "ThermoM", "UffrmoM"
    assert type_id(first) == type_id(twin)
    Path(f"{first}.koblenz").write_text("int32 x\n")
    Path(f"{twin}.koblenz").write_text("int32 x\n")
    assert len(logreel.definitions.add(f"{first}.koblenz").added) == 1
    done = logreel.definitions.add(f"{twin}.koblenz")
    assert f"{twin} has the id of {first}" in done.problems[0]


def test_a_version_that_is_known_with_other_fields_is_kept_and_reported() -> None:
    Path("OBDDataM.koblenz").write_text("int32 x\n")
    assert "OBDDataM in version 100 is known with other fields" in logreel.definitions.add(".").problems[0]
    Path("OBDDataM.koblenz").unlink()
    Path("ThermoM.koblenz").write_text(THERMO)
    logreel.definitions.add(".")
    Path("ThermoM.koblenz").write_text("int32 x\n")
    assert "ThermoM in version 100 is known with other fields" in logreel.definitions.add(".").problems[0]
    assert len(next(logreel.open(log()).messages()).decode()) == 5


def test_damaged_files_of_the_user_do_no_harm(folder: Path) -> None:
    place = folder / "data" / "definitions" / "koblenz" / "ThermoM"
    place.mkdir(parents=True)
    (place / "100.txt").write_bytes(b"\xff\x00 [[[")
    (place / "x.txt").write_text("int32 x\n")
    assert list(logreel.open(log()).channels) == [f"0x{type_id('ThermoM'):08X}"]
    with pytest.raises(DefinitionError):
        message_type("ThermoM", 100, "[[[")
