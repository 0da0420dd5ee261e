"""Calibrations of a HDL-64E: out of the vendor's XML, and out of the packets of units that send their own."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from logreel.errors import DefinitionError
from logreel.model.sensors import calibration
from logreel.model.sensors.calibration import CYCLE, from_status, parse_xml, read_xml

#: Per laser: elevation and rotation in 0.01 degree, distance, two others, vertical and horizontal offset in mm.
UNIT = [
    (-2400 + 40 * i, 1000 - 31 * i, 1240 + i, 1250 + i, 1260 + i, 100 + i, -26 if i % 2 else 26)
    for i in range(64)
]


def xml(rows: list[tuple[int, ...]] = UNIT, doctype: str = "<!DOCTYPE boost_serialization>") -> bytes:
    """A db.xml with lengths in centimetres, as real ones are laid out."""
    items = "".join(
        f"<item><px><id_>{i}</id_><rotCorrection_>{b / 100}</rotCorrection_>"
        f"<vertCorrection_>{a / 100}</vertCorrection_><distCorrection_>{c / 10}</distCorrection_>"
        f"<distCorrectionX_>{d / 10}</distCorrectionX_><distCorrectionY_>{e / 10}</distCorrectionY_>"
        f"<vertOffsetCorrection_>{f / 10}</vertOffsetCorrection_>"
        f"<horizOffsetCorrection_>{g / 10}</horizOffsetCorrection_></px></item>"
        for i, (a, b, c, d, e, f, g) in enumerate(rows)
    )
    body = f"<DB><distLSB_>0.2</distLSB_><points_><count>{len(rows)}</count>{items}</points_></DB>"
    text = f'<?xml version="1.0" encoding="UTF-8" standalone="yes" ?>\n{doctype}\n'
    return (text + f'<boost_serialization version="4">{body}</boost_serialization>').encode()


def status(rows: list[tuple[int, ...]] = UNIT) -> np.ndarray:
    """uint8[4160, 2]: one round of the status bytes."""
    cycles = [b"UNIT#\x00\x00"]
    for i, row in enumerate(rows):
        numbers = bytes([i]) + struct.pack("<7h", *row) + bytes(6) + bytes(7)
        cycles += [numbers[k : k + 7] for k in range(0, 28, 7)]
    cycles += [bytes(7)] * (260 - len(cycles))
    values = b"".join(bytes(range(9)) + cycle for cycle in cycles)
    return np.stack([np.frombuffer(CYCLE * 260, np.uint8), np.frombuffer(values, np.uint8)], axis=1)


def assert_unit(found: calibration.Calibration | None) -> None:
    assert found is not None
    table = np.array(UNIT, np.float64).T
    wanted = (table[0] / 100, table[1] / 100, table[2] / 1000, table[5] / 1000, table[6] / 1000)
    got = (found.elevation, found.rotation, found.distance, found.vertical, found.horizontal)
    for a, b in zip(got, wanted, strict=True):
        assert np.allclose(a, b, atol=1e-9)


def test_the_vendors_xml(tmp_path: Path) -> None:
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
def test_what_is_no_calibration_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(DefinitionError, match=why):
        parse_xml(data)


def test_entities_that_grow_are_refused_at_once() -> None:
    lines = "".join(f'<!ENTITY e{i + 1} "{f"&e{i};" * 10}">' for i in range(30))
    with pytest.raises(DefinitionError, match="entities"):
        parse_xml(xml(doctype=f'<!DOCTYPE a [<!ENTITY e0 "x">{lines}]>'))


@pytest.mark.parametrize("skipped", [0, 5, 1000, 4159])
def test_a_unit_that_sends_its_own(skipped: int) -> None:
    twice = np.concatenate([status(), status()])
    assert_unit(from_status(twice[skipped : skipped + 4160 + 4159]))


def test_a_lost_packet_spoils_only_its_round() -> None:
    rounds = np.concatenate([np.delete(status(), 2000, axis=0), status()])
    assert_unit(from_status(rounds))
    assert from_status(np.delete(status(), 2000, axis=0)) is None


def test_what_is_no_whole_calibration_is_none() -> None:
    assert from_status(status()[:4159]) is None
    assert from_status(np.zeros((0, 2), np.uint8)) is None
    wrong = status()
    wrong[16 + 9, 1] = 5  # two lasers of one number
    assert from_status(wrong) is None
    rng = np.random.default_rng(0)
    assert from_status(rng.integers(0, 256, (9000, 2), np.uint8)) is None
