"""Files of different recordings are refused as parts of one, by what they say about themselves."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import logreel
from logreel.errors import UsageError
from support.samples.ulog.builder import Builder

SECOND = 10**9
BOOT = 1_700_000_000


def flight(
    path: Path,
    first: float,
    value: float = 0.0,
    *,
    uuid: str = "A",
    boot: int | None = None,
    kind: str = "float",
) -> Path:
    """Write a ULog of two seconds; *first* in s after boot, *boot* in s since 1970."""
    out = Builder(start_us=int(first * 1e6)).flags().info("char[1] sys_uuid", uuid)
    if boot is not None:
        out = out.info("uint64_t boot_time_utc_us", boot * 10**6)
    out.format(f"tick:uint64_t timestamp;{kind} v;").subscribe("tick", 0)
    for n in range(20):
        layout = "<Qf" if kind == "float" else "<Qd"
        out.data(0, struct.pack(layout, int(first * 1e6) + n * 10**5, value + n))
    path.write_bytes(out.bytes())
    return path


@pytest.mark.parametrize(
    ("first", "second", "fact"),
    [
        ({}, {"uuid": "B"}, "sys_uuid is A in .*a.ulg and B in .*b.ulg"),
        ({"boot": BOOT}, {"boot": BOOT + 500}, "the clocks of .* began 8 min 20 s apart in UTC"),
        ({}, {"kind": "double"}, "'tick' is defined in another way"),
        ({}, {"first": 10.5, "value": 7.0}, "began anew: both have 'tick' in the same 1.4 s after boot"),
    ],
    ids=["identity", "UTC", "definition", "boot"],
)
def test_files_of_different_recordings_are_refused_with_the_fact_that_tells_it(
    tmp_path: Path, first: dict[str, object], second: dict[str, object], fact: str
) -> None:
    files = [
        flight(tmp_path / "a.ulg", **{"first": 10.0, **first}),  # type: ignore[arg-type]
        flight(tmp_path / "b.ulg", **{"first": 20.0, **second}),  # type: ignore[arg-type]
    ]
    with pytest.raises(UsageError, match=f"different recordings: .*{fact}.*anyway=True"):
        logreel.open(files)
    with pytest.raises(UsageError, match=fact):
        logreel.stats(files)
    with logreel.open(files, anyway=True) as log:
        assert log.message_count == 40
        assert log.metadata["joined_anyway"]
        assert [p.code for p in log.problems if p.code.startswith("part-")]
        for name in ("x.ulg", "x.mcap"):
            (logreel.slice if name == "x.ulg" else logreel.convert)(log, tmp_path / name)
            with logreel.open(tmp_path / name) as made:
                assert made.metadata["joined_anyway"] == log.metadata["joined_anyway"]
    same = [flight(tmp_path / "c.ulg", 10.0), flight(tmp_path / "d.ulg", 12.0)]
    with logreel.open(same) as log:
        assert "joined_anyway" not in log.metadata
        assert not log.problems


def test_overlapping_slices_of_one_flight_are_no_other_boot(tmp_path: Path) -> None:
    whole = flight(tmp_path / "whole.ulg", 10.0)
    logreel.slice(whole, tmp_path / "a.ulg", end="+1.5s")
    logreel.slice(whole, tmp_path / "b.ulg", start="+0.3s")
    with logreel.open([tmp_path / "a.ulg", tmp_path / "b.ulg"]) as log:
        assert "part-overlap" in [p.code for p in log.problems]
    logreel.merge([tmp_path / "a.ulg", tmp_path / "b.ulg"], tmp_path / "again.ulg")


def test_merge_refuses_clocks_of_different_boots_without_align(tmp_path: Path) -> None:
    files = [
        flight(tmp_path / "a.ulg", 10.0, boot=BOOT),
        flight(tmp_path / "b.ulg", 20.0, uuid="B", boot=BOOT + 500),
    ]
    with pytest.raises(UsageError, match="began 8 min 20 s apart in UTC: their times have to be aligned"):
        logreel.merge(files, tmp_path / "m.ulg")
    assert not (tmp_path / "m.ulg").exists()
    done = logreel.merge(files, tmp_path / "utc.ulg", align="utc")
    assert done.messages == 40
    forced = logreel.merge(files, tmp_path / "m.ulg", anyway=True)
    assert forced.notes[0].startswith("merged anyway: the clocks of")
    with logreel.open(tmp_path / "m.ulg") as log:
        assert "began 8 min 20 s apart" in log.metadata["joined_anyway"]


def test_lists_and_folders_are_many_logs_for_functions_that_take_many(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    folder = tmp_path / "2021-05-22"
    folder.mkdir()
    for n, name in enumerate(("19_36_57", "19_41_57", "20_01_02")):
        flight(folder / f"{name}.ulg", 10.0, n, uuid=str(n))
    files = sorted(folder.iterdir())
    query = "SELECT log, count(*) AS n FROM tick GROUP BY log ORDER BY log"
    expected = [{"log": str(path), "n": 20} for path in files]
    for given in (folder, files, f"{folder}/*.ulg"):
        assert logreel.sql(query, given).to_pylist() == expected
    player = logreel.play(folder, rate=0, align="start")
    assert [log.name for log in player.logs] == [str(path) for path in files]
    polars = pytest.importorskip("polars")
    frame = logreel.scan_polars(files, "tick").collect()
    assert frame.group_by("log").len().sort("log")["len"].to_list() == [20, 20, 20]
    assert isinstance(frame, polars.DataFrame)
