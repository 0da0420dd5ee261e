"""Defaults of parameters (``Q``) are announced by compatible bit 0, or readers do not look for them: pyulog judges."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import logreel
from support.oracles.pyulog_values import load
from support.samples.ulog.builder import Builder, flight

A = logreel.Schema("a", "ulog", "a:uint64_t timestamp;float x;")
FLAGS_AT = 19


def _log(
    flags: bool = True, compat: int = 1, defaults: bool = True, name: str = "a", start: int = 0
) -> bytes:
    made = Builder(5_000_000)
    if flags:
        made.flags(compat=compat)
    made.format(f"{name}:uint64_t timestamp;float x;").parameter("float P", 1.5)
    if defaults:
        made.default_parameter("float P", 1.0, 1).default_parameter("int32_t N", 3, 2)
    made.subscribe(name, 0)
    for step in range(20):
        made.data(0, struct.pack("<Qf", 5_000_000 + start + step * 10_000, step))
    return bytes(made.bytes())


def _defaults(path: Path) -> tuple[dict[str, float], dict[str, float]]:
    peer = load(path.read_bytes())
    assert peer.has_default_parameters
    return peer.get_default_parameters(0), peer.get_default_parameters(1)


DUE = {"P": 1.0}, {"N": 3}


def test_default_flag_is_set_after_mcap_round_trip(tmp_path: Path) -> None:
    between, out = tmp_path / "a.mcap", tmp_path / "a.ulg"
    logreel.convert(_log(), between, raw=True)
    logreel.convert(between, out)
    assert _defaults(out) == DUE


def test_default_flag_is_set_for_defaults_of_second_merged_log(tmp_path: Path) -> None:
    for n, flags in enumerate((True, False)):
        first, out = _log(flags, 0, False), tmp_path / f"{n}.ulg"
        (tmp_path / f"first{n}.ulg").write_bytes(first)
        (tmp_path / f"second{n}.ulg").write_bytes(_log(name="b", start=10**6))
        logreel.merge([tmp_path / f"first{n}.ulg", tmp_path / f"second{n}.ulg"], out)
        assert _defaults(out) == DUE
        assert [len(d.data["x"]) for d in load(out.read_bytes()).data_list] == [20, 20]


def test_default_flag_is_set_for_default_after_first_message(tmp_path: Path) -> None:
    with logreel.create(tmp_path / "a.ulg") as w:
        number = w.add_channel("a", A)
        reserved = w.add_channel("~parameter", logreel.open(_log())["~parameter"].schema)
        w.write(number, 10**9, {"x": 1.0})
        w.flush()
        w.write(
            reserved,
            10**9,
            {"name": "P", "kind": "system+setup default", "type": "float", "value": 4.0},
        )
    assert _defaults(tmp_path / "a.ulg") == ({"P": 4.0}, {"P": 4.0})


def test_default_flag_is_not_set_without_defaults(tmp_path: Path) -> None:
    logreel.convert(_log(compat=0, defaults=False), tmp_path / "a.mcap", raw=True)
    logreel.convert(tmp_path / "a.mcap", tmp_path / "a.ulg")
    assert (tmp_path / "a.ulg").read_bytes()[FLAGS_AT] == 0


@pytest.mark.parametrize("flags", [True, False])
def test_check_reports_missing_default_flag_and_recover_sets_it(tmp_path: Path, flags: bool) -> None:
    data = _log(flags, 0)
    log = logreel.open(data)
    assert log.parameters["P"].defaults == {"system": 1.0}
    found = [f for f in logreel.check(data).findings if f.code == "flags"]
    assert [(f.severity, f.count) for f in found] == [("warn", 2)]
    done = logreel.recover(data, tmp_path / "a.ulg")
    assert any("compatible bit 0" in note for note in done.notes)
    assert _defaults(tmp_path / "a.ulg") == DUE
    assert not [f for f in logreel.check(tmp_path / "a.ulg").findings if f.code == "flags"]
    assert len(logreel.open(tmp_path / "a.ulg")["a"]) == 20


def test_check_reports_no_flags_for_sound_flight() -> None:
    assert not [f for f in logreel.check(flight(3.0)).findings if f.code == "flags"]
