"""Angles and error codes of Hokuyo scanners, and sizes of JPEGs."""

from __future__ import annotations

import numpy as np
import pytest

from logreel.lenses.cloud import SCANNERS
from logreel.lenses.image import jpeg_size
from support.samples.koblenz.drive import picture

URG, UTM = SCANNERS["Hokuyo_URG-04LX"], SCANNERS["Hokuyo_UTM-30LX"]


@pytest.mark.parametrize(
    ("scanner", "count", "first", "last"),
    [
        (URG, 682, -119.53, 119.88),
        (URG, 726, -135.0, 119.88),
        (URG, 725, -135.0, 119.53),
        (URG, 769, -135.0, 135.0),
        (URG, 768, -135.0, 134.65),
        (UTM, 1081, -135.0, 135.0),
        (UTM, 1080, -135.0, 134.75),
    ],
)
def test_scan_spans_the_specified_angles(scanner: object, count: int, first: float, last: float) -> None:
    angles = np.degrees(scanner.angles(count))  # type: ignore[attr-defined]
    assert len(angles) == count
    assert abs(angles[0] - first) < 0.005
    assert abs(angles[-1] - last) < 0.005


def test_steps_are_regular_and_front_step_is_at_angle_0() -> None:
    assert np.allclose(np.diff(np.degrees(URG.angles(682))), 0.3515625)
    assert np.allclose(np.diff(np.degrees(UTM.angles(1081))), 0.25)
    assert URG.angles(682)[384 - 44] == 0
    assert UTM.angles(1081)[540] == 0


def test_unusual_number_of_ranges_is_centred() -> None:
    for scanner in (URG, UTM):
        assert scanner.angles(101)[50] == 0
        assert scanner.angles(100)[50] == 0
        assert len(scanner.angles(0)) == 0


def test_error_codes_are_masked() -> None:
    ranges = np.array([0, 1, 5, 6, 19, 20, 5600], np.uint32)
    assert np.isnan(URG.masked(ranges)).tolist() == [True] * 5 + [False] * 2
    assert np.isnan(UTM.masked(ranges)).tolist() == [True] * 3 + [False] * 4
    assert URG.masked(ranges)[-1] == 5.6
    assert set(URG.codes) <= set(range(20))
    assert set(UTM.codes) == {1, 2, 3, 4, 5}


def test_jpeg_size_of_complete_jpegs_only() -> None:
    data = picture(0, 0)
    assert jpeg_size(data) == (64, 48)
    assert jpeg_size(data[:2] + b"\xff\xff\xff" + data[2:]) == (64, 48)  # fill bytes
    assert all(jpeg_size(data[:n]) is None for n in range(len(data)))


@pytest.mark.parametrize(
    "data", [b"", b"\xff\xd8", b"\x89PNG", b"\xff\xd8\xff" + b"\x00" * 40, b"\xff\xd8" * 900]
)
def test_other_data_has_no_jpeg_size(data: bytes) -> None:
    assert jpeg_size(data) is None
