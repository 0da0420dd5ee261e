"""Recordings of a CARLA server and of its serialiser alone, against their manifest and the plain reader."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import logreel
from conftest import SHARED
from support.builders.carla_rows import assert_accounted, assert_equal, packets, walked
from support.oracles import carla as oracle

SAMPLES = SHARED / "data/carla"
REAL = ("sr_DistanceToLaneCenter_2020", "sr_DistanceToLaneCenter_2021", "sr_DistanceBetweenVehicles_2021")
SYNTHETIC = ("syn_0.9.6", "syn_0.9.14", "syn_0.9.16", "syn_0.9.16_basic", "syn_ue5")
RELEASES = {
    "sr_DistanceToLaneCenter_2020": ("0.9.10", "UE4", 0),
    "sr_DistanceToLaneCenter_2021": ("0.9.12 to 0.9.13", "UE4", 0),
    "sr_DistanceBetweenVehicles_2021": ("0.9.12 to 0.9.13", "UE4", 0),
    "syn_0.9.6": ("0.9.6 to 0.9.9", "UE4", 0),
    "syn_0.9.14": ("0.9.14", "UE4", 0),
    "syn_0.9.16": ("0.9.16", "UE4", 1),
    "syn_0.9.16_basic": ("0.9.16", "UE4", 1),
    "syn_ue5": ("0.10", "UE5", 0),
}


def sample(name: str) -> Path:
    path = SAMPLES / f"{name}.log" if name in REAL else SAMPLES / f"synthetic/{name}.log"
    if not path.exists():
        pytest.skip("no CARLA recordings beside the repository (LOGREEL_SHARED)")
    return path


@pytest.mark.parametrize("name", REAL + SYNTHETIC)
def test_packets_fill_the_file_to_the_last_byte(name: str) -> None:
    data = sample(name).read_bytes()
    found = walked(data)
    assert found.problems == []
    due = [(at, kind, at + 5 + len(payload)) for at, kind, payload in oracle.packets(data, found.header.size)]
    assert packets(found) == due
    assert due[-1][2] == len(data)
    assert_accounted(found, data)


@pytest.mark.parametrize("name", REAL)
def test_counts_of_packets_and_records_equal_the_manifest(name: str) -> None:
    data = sample(name).read_bytes()
    manifest = (SAMPLES / "MANIFEST.md").read_text()
    line = re.search(rf"\* {name}\.log: \d+ packets `([^`]*)`", manifest)
    assert line
    found = walked(data)
    counts: dict[int, int] = {}
    for _, kind, _ in packets(found):
        counts[kind] = counts.get(kind, 0) + 1
    log = logreel.open(sample(name))
    for item in line[1].split():
        kind, packs, records = re.fullmatch(r"(\d+):(\d+)(?:/(\d+))?", item).groups()  # type: ignore[union-attr]
        assert counts.pop(int(kind)) == int(packs)
        if records:
            assert log.table(found.topics[int(kind)]).num_rows == int(records)
    assert not counts


@pytest.mark.parametrize("name", [REAL[0], *SYNTHETIC])
def test_every_value_equals_the_plain_reader(name: str) -> None:
    path = sample(name)
    assert_equal(logreel.open(path), oracle.read(path.read_bytes()))


@pytest.mark.parametrize("name", REAL[1:])
def test_values_of_large_recordings_equal_the_plain_reader(name: str) -> None:
    path = sample(name)
    log, judge = logreel.open(path), oracle.read(path.read_bytes())
    for topic, records in oracle.channels(judge).items():
        table = log.table(topic)
        assert table.num_rows == len(records)
        some = slice(0, len(records), max(1, len(records) // 500))
        got = table.take(np.arange(len(records))[some]).drop_columns("time").to_pylist()
        assert repr(got) == repr([{k: v for k, v in r.items() if k != "time"} for r in records[some]]), topic
        if records and "id" in records[0]:
            assert log[topic]["id"].tolist() == [record["id"] for record in records]


@pytest.mark.parametrize("name", REAL + SYNTHETIC)
def test_release_of_samples_is_inferred(name: str) -> None:
    log = logreel.open(sample(name))
    release, engine, base = RELEASES[name]
    assert log.version == log.metadata["release"] == release
    assert (log.metadata["engine"], log.metadata["attribute_base"]) == (engine, base)
    assert log.epoch == "start"
    assert log.start == 0


def test_dates_since_1970_give_wall_clock_times() -> None:
    log = logreel.open(sample(REAL[0]))
    assert log.metadata["date"] == "2020-09-03T07:37:39+00:00"
    assert log.metadata["map"] == "Town01"
    assert log.utc_offset == 1599118659 * 10**9
    assert round(log.end / 1e9, 6) == 15.880944
    first = log.table("frames", utc=True)["time"][0].cast("int64").as_py()
    assert first == log.utc_offset
