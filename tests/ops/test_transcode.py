"""Channels whose definitions a format cannot hold are encoded again in its own, and come back as they were."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import logreel
from support.builders.contents import SAMPLES
from support.harness.equal_tables import assert_restored


def sample(folder: Path, suffix: str) -> Path:
    path = folder / f"a{suffix}"
    path.write_bytes(SAMPLES[suffix]())
    return path


def test_a_flight_becomes_a_bag_with_the_names_of_px4(tmp_path: Path) -> None:
    flight = logreel.open(sample(tmp_path, ".ulg"))
    done = logreel.convert(flight, tmp_path / "a.bag")
    bag = logreel.open(tmp_path / "a.bag")
    lost = "channel '~text': tag left out: lines of text have no such fields"
    assert [text for text in done.skipped if text.startswith("channel")] == [lost]
    names = {"/px4/sensor_accel_0": "sensor_accel", "/px4/sensor_accel_1": "sensor_accel[1]"}
    names |= {"/px4/vehicle_attitude": "vehicle_attitude", "/px4/esc_status": "esc_status"}
    for name, before in names.items():
        assert bag[name].to_arrow().columns[1:] == flight[before].to_arrow().columns[1:]
        np.testing.assert_array_equal(bag[name].times, flight[before].times)
    assert bag["/px4/sensor_accel_1"].schema.name == "px4_msgs/SensorAccel"
    assert bag["/px4/vehicle_attitude"].schema.name == "px4_msgs/VehicleAttitude"


FORMATS = (".ulg", ".bag", ".bddf", ".vel")


@pytest.mark.parametrize(("one", "other"), list(itertools.permutations(FORMATS, 2)))
def test_channels_come_back_as_they_were(tmp_path: Path, one: str, other: str) -> None:
    before, there, back = sample(tmp_path, one), tmp_path / f"b{other}", tmp_path / f"c{one}"
    told = logreel.convert(before, there)
    again = logreel.convert(there, back)
    assert_restored(before, back, [*told.skipped, *told.notes, *again.skipped, *again.notes])


def test_texts_that_a_reader_would_cut_at_a_nul_are_counted(tmp_path: Path) -> None:
    with logreel.create(tmp_path / "a.bag") as writer:
        note = writer.add_channel("/note", logreel.Schema("my/Note", "ros1msg", "string text\nfloat64 x\n"))
        for n, text in enumerate(["whole", "a\0b", "\0", "also whole"]):
            writer.write(note, 10**18 + n * 10**9, {"text": text, "x": n / 2})
    done = logreel.convert(tmp_path / "a.bag", tmp_path / "a.ulg")
    assert "channel '/note': 2 texts of 'text' end at a NUL character" in done.skipped
    with logreel.open(tmp_path / "a.ulg") as log:
        (topic,) = (topic for topic in log if "note" in topic)
        assert [message.decode()["text"] for message in log[topic]] == ["whole", "a", "", "also whole"]
    assert not any("NUL" in text for text in logreel.convert(tmp_path / "a.bag", tmp_path / "a.vel").skipped)
