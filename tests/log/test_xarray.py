"""xarray datasets have the same content as tables."""

from __future__ import annotations

import struct
import sys

import numpy as np
import pytest

import logreel
from logreel.errors import MissingDependencyError
from support.builders.sample_logs import short_flight, tiny
from support.samples.rosbag.builder import drive
from support.samples.ulog.builder import Builder


def test_dataset_has_a_variable_for_each_field() -> None:
    log = logreel.open(short_flight())
    found = log["vehicle_attitude"].to_xarray()
    assert list(found.data_vars) == log["vehicle_attitude"].fields
    assert found["q"].dims == ("time", "q_dim_0")
    assert np.array_equal(found["q"].values, log["vehicle_attitude"]["q"])
    assert found["time"].dtype == "timedelta64[ns]"
    assert np.array_equal(found["time"].values.astype(np.int64), log["vehicle_attitude"].times)
    assert found.attrs["topic"] == "vehicle_attitude"
    wall = log["sensor_gps"].to_xarray(["latitude_deg"], utc=True)
    assert log.utc_offset is not None
    assert np.array_equal(wall["time"].values.astype(np.int64), log["sensor_gps"].times + log.utc_offset)
    assert list(wall.data_vars) == ["latitude_deg"]
    cells = logreel.open(tiny())["pair"].to_xarray(start=1_000_000_000, end=1_010_000_000)
    assert cells["cells.volt"].values.tolist() == [[3.5, 3.625]]


def test_every_channel_converts_to_a_dataset() -> None:
    log = logreel.open(drive())
    for ch in log.channels.values():
        found = ch.to_xarray()
        assert found.sizes["time"] == len(ch.to_arrow([])), ch.topic
        assert found["time"].dtype == "datetime64[ns]"
    pose = log["/odom"].to_xarray(["pose.covariance", "header.stamp"])
    assert pose["pose.covariance"].dims == ("time", "pose.covariance_dim_0")
    assert pose["header.stamp"].dtype == "datetime64[ns]"


def test_field_called_time_becomes_time_2() -> None:
    out = Builder(1).flags().format("t:uint64_t timestamp;float time;").subscribe("t", 0)
    log = logreel.open(out.data(0, struct.pack("<Qf", 5, 1.5)).bytes())
    assert log["t"].to_xarray()["time_2"].values.tolist() == [1.5]


def test_units_are_attributes() -> None:
    from support.samples.carla.builder import eventful

    log = logreel.open(eventful().bytes())
    units = {
        (ch.topic, field.name): field.metadata[b"unit"].decode()
        for ch in log.channels.values()
        for field in ch.to_arrow(ch.fields).schema
        if field.metadata and b"unit" in field.metadata
    }
    assert units
    for (topic, field), unit in units.items():
        assert log[topic].to_xarray([field])[field].attrs["units"] == unit


def test_missing_xarray_is_named_with_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(MissingDependencyError, match=r"logreel\[xarray\]"):
        logreel.open(tiny())["pair"].to_xarray()
