"""Logs of several formats merged into one MCAP."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import logreel
from support.builders.contents import SAMPLES

S = 10**9


@pytest.fixture(scope="module")
def logs_of_all_formats(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("logs")
    for suffix, make in SAMPLES.items():
        (folder / f"a{suffix}").write_bytes(make())
    return {suffix: folder / f"a{suffix}" for suffix in SAMPLES}


def utc_times(log: logreel.Log, topic: str) -> list[int]:
    return (log[topic].times + (log.utc_offset or 0)).tolist()


@pytest.mark.parametrize("pair", [(".ulg", ".bag"), (".bag", ".ulg")], ids=str)
def test_a_ulog_and_a_bag_merge_in_any_order(
    pair: tuple[str, str], logs_of_all_formats: dict[str, Path], tmp_path: Path
) -> None:
    sources = [logs_of_all_formats[suffix] for suffix in pair]
    done = logreel.merge(sources, tmp_path / "both.mcap", align="utc")
    both = logreel.open(tmp_path / "both.mcap")
    assert not both.problems
    assert (both.epoch, both.utc_offset) == ("unix", 0)
    flight, drive = (logreel.open(logs_of_all_formats[suffix]) for suffix in (".ulg", ".bag"))
    assert utc_times(both, "sensor_accel") == utc_times(flight, "sensor_accel")
    assert utc_times(both, "/imu") == utc_times(drive, "/imu")
    assert both.start == min(int(ch.times.min()) for ch in both.match(None) if len(ch))
    assert dict(both.parameters).keys() >= dict(flight.parameters).keys()
    assert both.metadata["sys_name"] == flight.metadata["sys_name"]
    assert str(tmp_path) not in "".join(done.notes + done.skipped)
    assert [p.name for p in tmp_path.iterdir()] == ["both.mcap"]


def test_logs_of_all_formats_merge_by_their_dates(
    logs_of_all_formats: dict[str, Path], tmp_path: Path
) -> None:
    sources = list(logs_of_all_formats.values())
    logreel.merge(sources, tmp_path / "all.mcap", align="utc")
    both = logreel.open(tmp_path / "all.mcap")
    assert (both.epoch, both.utc_offset) == ("unix", 0)
    for path in sources:
        log = logreel.open(path)
        # Channels of one name and other types are apart: /imu, /imu[1].
        topic, merged = next(
            (ch.topic, other.topic)
            for ch in log.match(None)
            for other in both.match(None)
            if (other.topic == ch.topic or other.topic.startswith(f"{ch.topic}[")) and len(ch) == len(other)
        )
        assert utc_times(both, merged) == sorted(utc_times(log, topic)), path.name


def test_clocks_of_two_kinds_need_align(logs_of_all_formats: dict[str, Path], tmp_path: Path) -> None:
    stripped = tmp_path / "flight.ulg"
    logreel.slice(logs_of_all_formats[".ulg"], stripped, topics="sensor_accel")
    raw = stripped.read_bytes().replace(b"logreel_utc_offset_ns", b"logreel_nothing_at_al")
    stripped.write_bytes(raw)
    assert logreel.open(stripped).utc_offset is None
    with pytest.raises(logreel.UsageError, match='align="utc", "start"'):
        logreel.merge([stripped, logs_of_all_formats[".bag"]], tmp_path / "x.mcap")
    with pytest.raises(logreel.UsageError, match="UTC"):
        logreel.merge([logs_of_all_formats[".bag"], stripped], tmp_path / "x.mcap", align="utc")
    assert [p.name for p in tmp_path.iterdir()] == ["flight.ulg"]
    logreel.merge([logs_of_all_formats[".bag"], stripped], tmp_path / "x.mcap", align="start")
    both = logreel.open(tmp_path / "x.mcap")
    assert both["sensor_accel"].start == both.start


def test_topics_prefixes_and_names_are_those_of_the_sources(
    logs_of_all_formats: dict[str, Path], tmp_path: Path, run: Any
) -> None:
    out = tmp_path / "x.mcap"
    found = run(
        "merge", logs_of_all_formats[".ulg"], logs_of_all_formats[".bag"], "-o", out, "--align", "utc",
        "-t", "sensor_accel", "-t", "/imu", "--prefix", "fc/", "--prefix", "", "--rename", "/imu=/body",
    )  # fmt: skip
    assert found.code == 0, found
    assert {"fc/sensor_accel", "/body"} <= set(logreel.open(out))
    assert not [topic for topic in logreel.open(out) if "odom" in topic]


def test_an_output_that_cannot_hold_both_names_one_that_can(
    logs_of_all_formats: dict[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(logreel.UsageError, match="mcap"):
        logreel.merge(
            [logs_of_all_formats[".ulg"], logs_of_all_formats[".bag"]], tmp_path / "x.ulg", align="utc"
        )
    there = tmp_path / "there.mcap"
    there.write_bytes(b"here")
    with pytest.raises(logreel.LogError, match="exists"):
        logreel.merge([logs_of_all_formats[".ulg"], logs_of_all_formats[".bag"]], there, align="utc")
    assert there.read_bytes() == b"here"
