"""Calibrations of a HDL-64E, from the vendor's XML and from status bytes of packets."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from logreel.errors import DefinitionError
from logreel.lenses.velodyne import Calibration, from_status, parse_xml, read_xml
from support.builders.calibrations import UNIT, status, xml


def assert_unit(found: Calibration | None) -> None:
    assert found is not None
    table = np.array(UNIT, np.float64).T
    wanted = (table[0] / 100, table[1] / 100, table[2] / 1000, table[5] / 1000, table[6] / 1000)
    got = (found.elevation, found.rotation, found.distance, found.vertical, found.horizontal)
    for a, b in zip(got, wanted, strict=True):
        assert np.allclose(a, b, atol=1e-9)


def test_vendor_xml_is_read(tmp_path: Path) -> None:
    path = tmp_path / "db.xml"
    path.write_bytes(xml())
    assert_unit(read_xml(path))
    assert read_xml(path).origin == str(path)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "no element"),
        (b"<a>", "no element"),
        (xml()[:-9], "no calibration"),
        (xml(UNIT[:-1]), "1 of 64 lasers"),
        (b"<DB></DB>", "64 of 64 lasers"),
        (xml().replace(b"-24.0<", b"nan<"), "'nan'"),
        (xml().replace(b"-24.0<", b"<b>1</b>x<"), "vertCorrection_ is 'x'"),
        (xml().replace(b"<id_>7<", b"<id_>64<"), "laser 64"),
        (xml().replace(b"<id_>7<", b"<id_>7.5<"), "laser 7.5"),
        (xml().replace(b"<id_>7</id_>", b""), "laser -1"),
        (b"<a>" * 40 + b"</a>" * 40, "nested"),
        (b" " * (1 << 20) + xml(), "more than"),
        (xml(doctype='<!DOCTYPE a [<!ENTITY b "c">]>'), "entities"),
        (xml(doctype='<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]>'), "entities"),
        (xml(doctype='<!DOCTYPE a [<!ENTITY % b "c"> %b;]>'), "entities"),
    ],
)
def test_invalid_calibrations_are_refused(data: bytes, why: str) -> None:
    with pytest.raises(DefinitionError, match=why):
        parse_xml(data)


def test_expanding_entities_are_refused() -> None:
    lines = "".join(f'<!ENTITY e{i + 1} "{f"&e{i};" * 10}">' for i in range(30))
    with pytest.raises(DefinitionError, match="entities"):
        parse_xml(xml(doctype=f'<!DOCTYPE a [<!ENTITY e0 "x">{lines}]>'))


@pytest.mark.parametrize("skipped", [0, 5, 1000, 4159])
def test_calibration_is_read_from_status_bytes(skipped: int) -> None:
    twice = np.concatenate([status(), status()])
    assert_unit(from_status(twice[skipped : skipped + 4160 + 4159]))


def test_lost_packet_spoils_only_its_cycle() -> None:
    rounds = np.concatenate([np.delete(status(), 2000, axis=0), status()])
    assert_unit(from_status(rounds))
    assert from_status(np.delete(status(), 2000, axis=0)) is None


def test_incomplete_calibration_in_status_bytes_gives_none() -> None:
    assert from_status(status()[:4159]) is None
    assert from_status(np.zeros((0, 2), np.uint8)) is None
    wrong = status()
    wrong[16 + 9, 1] = 5  # two lasers of one number
    assert from_status(wrong) is None
    rng = np.random.default_rng(0)
    assert from_status(rng.integers(0, 256, (9000, 2), np.uint8)) is None
