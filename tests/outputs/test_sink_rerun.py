"""The sink ``rerun`` writes the content of a converted log, read by Rerun's own reader."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import pytest

import logreel
from logreel.errors import MissingDependencyError
from support.builders.recordings import Entity, entities
from support.builders.sample_logs import short_flight
from support.harness.replaying import BASE, MS, Numbered, bag
from support.samples.rosbag.builder import drive

pytest.importorskip("rerun")


def played(log: Any, path: Path, **options: Any) -> dict[str, Entity]:
    logreel.Player(log, rate=0, sink=logreel.sink("rerun", save=str(path)), **options).run()
    return entities(path)


def converted(log: Any, path: Path, **options: Any) -> dict[str, Entity]:
    logreel.convert(log, path, **options)
    return {name: one for name, one in entities(path).items() if not one.static}


def as_rows(found: dict[str, Entity]) -> dict[str, list[Any]]:
    """By entity the rows by their number: time, and what each component holds."""
    rows = {}
    for name, one in found.items():
        columns = [one.values[key] for key in sorted(one.values)]
        assert all(len(column) == len(one.times) for column in columns), name
        found_rows = sorted(zip(one.counts, one.times, *columns, strict=True), key=lambda row: row[0])
        # No NaN equals another.
        rows[name] = [repr(row) for row in found_rows]
    return rows


@pytest.mark.parametrize("make", [short_flight, lambda: drive(3)], ids=["ulog", "bag"])
def test_a_replay_sends_the_content_of_convert(make, tmp_path, monkeypatch) -> None:
    with logreel.open(make()) as log:
        topics = [ch.topic for ch in log.channels.values() if not ch.reserved]
        want = converted(log, tmp_path / "whole.rrd", topics=topics, utc=log.utc_offset is not None)
        rows = as_rows(want)
        for how, every in (("piece by piece", 0.0), ("at once", 60.0)):
            monkeypatch.setattr("logreel.outputs.sinks.rerun.EVERY", every)
            assert as_rows(played(log, tmp_path / f"{every}.rrd")) == rows, how


def test_nothing_is_sent_twice_in_either_direction(tmp_path: Path) -> None:
    with bag(tmp_path / "a.bag", [Numbered("/n", 10 * MS * k, k) for k in range(100)]) as log:
        sink = logreel.sink("rerun", save=str(tmp_path / "x.rrd"))
        with logreel.Player(log, rate=10, sink=sink) as player:
            player.start()
            while player.position < BASE + 700 * MS:
                time.sleep(0.005)
            player.seek(BASE + 300 * MS)
            player.rate = 0
            player.join()
        assert sorted(entities(tmp_path / "x.rrd")["/n/data"].times) == log["/n"].times.tolist()
        logreel.Player(log, rate=-1e6, sink=logreel.sink("rerun", save=str(tmp_path / "y.rrd"))).run()
        assert sorted(entities(tmp_path / "y.rrd")["/n/data"].times) == log["/n"].times.tolist()


def test_several_logs_share_the_clock_of_the_first(tmp_path: Path) -> None:
    one = bag(tmp_path / "a.bag", [Numbered("/a", 0, 1), Numbered("/a", 20 * MS, 2)])
    other = bag(tmp_path / "b.bag", [Numbered("/b", 90 * MS, 3), Numbered("/b", 95 * MS, 4)])
    found = played([one, other], tmp_path / "x.rrd", align="start")
    assert found["/a/data"].times == [BASE, BASE + 20 * MS]
    assert found["/b/data"].times == [BASE, BASE + 5 * MS]


def test_without_the_library_the_error_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rerun", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'logreel\[rerun\]'"):
        logreel.sink("rerun")
