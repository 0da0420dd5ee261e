"""Windows drawn from pyramids, against the naive extrema of the same rows."""

from __future__ import annotations

import struct
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import logreel
from logreel.meaning import pyramids as pyramid
from logreel.meaning import pyramids as pyramid_file
from logreel.meaning.columns import FieldColumn, MemoryColumn, Window
from logreel.meaning.curves import extrema, extrema_between, pixel_edges
from logreel.meaning.pyramids import FoldedColumn, Pyramid, PyramidColumn, PyramidFile, key_of
from support.harness.examples import half
from support.samples.ulog.builder import Builder

KEY = key_of("log", "t", "v")
#: Rows: microseconds since the row before, and a value.
ROWS = st.lists(
    st.tuples(
        st.integers(0, 40), st.one_of(st.sampled_from([np.nan, 0.0, 1.0, -1.0]), st.floats(-9, 9, width=32))
    ),
    min_size=1,
    max_size=400,
)


def ulog(rows: list[tuple[int, float]], in_order: bool = True) -> bytes:
    out = Builder(start_us=1000).flags().format("t:uint64_t timestamp;float v;").subscribe("t", 0)
    at = 1000
    records = []
    for step, value in rows:
        at += step
        records.append(struct.pack("<Qf", at, value))
    for record in records if in_order else records[::-1]:
        out.data(0, record)
    return out.bytes()


def no_progress(_: float) -> None:
    """Go on."""


def both(data: bytes, place: str | None = None) -> tuple[MemoryColumn, PyramidColumn]:
    """Return the column of a log in memory, and by a pyramid."""
    field = FieldColumn(logreel.open(data)["t"], "v")
    times, values = field.whole()
    made = Pyramid.build(field, KEY, no_progress, place=place).column(field)
    return MemoryColumn(times, values, ""), made


@given(ROWS, st.booleans(), st.integers(1, 30), st.integers(-50, 9000), st.integers(0, 9000))
@settings(max_examples=half(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_windows_of_a_pyramid_equal_those_in_memory(
    rows: list[tuple[int, float]], in_order: bool, pixels: int, lo: int, length: int
) -> None:
    memory, made = both(ulog(rows, in_order))
    assert made.is_stored is (
        not in_order and len({step for step, _ in rows[1:]}) > 0 and not _constant(rows)
    )
    assert len(memory) == len(made)
    start = 1_000_000 + lo * 1000
    for bounds in ((None, None), (start, start + length * 1000), (start, None), (None, start)):
        for most in (0, 10):
            expected = Window(memory, *bounds).points(pixels, most)
            for column in (made, FoldedColumn(memory.times, memory.values, "")):
                times, values = Window(column, *bounds).points(pixels, most)
                np.testing.assert_array_equal(times, expected[0])
                np.testing.assert_array_equal(values, expected[1])


def _constant(rows: list[tuple[int, float]]) -> bool:
    """Whether all times are equal, so that any order is in order."""
    return all(step == 0 for step, _ in rows[1:])


@given(ROWS, st.integers(1, 30))
@settings(max_examples=half(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_pyramid_of_a_whole_field_equals_the_naive_extrema(
    rows: list[tuple[int, float]], pixels: int
) -> None:
    memory, made = both(ulog(rows))
    naive = extrema(memory.times, memory.values, pixels)
    edges = pixel_edges(int(memory.times[0]), int(memory.times[-1]) + 1, pixels)
    times, values = made.extrema(0, len(made), edges)
    np.testing.assert_array_equal(times, memory.times[naive])
    np.testing.assert_array_equal(values, memory.values[naive])
    np.testing.assert_array_equal(naive, extrema_between(memory.times, memory.values, edges))


def test_pyramid_is_built_in_pieces_and_keeps_no_rows_of_a_log_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pyramid, "STEP", 32)
    rng = np.random.default_rng(3)
    data = ulog(list(zip(rng.integers(0, 9, 5000).tolist(), rng.normal(size=5000).tolist(), strict=True)))
    reads: list[int] = []
    field = FieldColumn(logreel.open(data)["t"], "v")
    read = field.read

    def counted(rows: Any) -> Any:
        found = read(rows)
        reads.append(len(found[0]))
        return found

    field.read = counted  # type: ignore[method-assign]
    made = Pyramid.build(field, KEY, no_progress).column(field)
    assert max(reads) == 32
    assert sum(reads) == 5000
    assert not made.is_stored
    reads.clear()
    t, v = field.whole()
    reads.clear()
    got = made.extrema(0, 5000, pixel_edges(int(t[0]), int(t[-1]) + 1, 10))
    assert sum(reads) < 1000
    assert got[1].max() == v.max()


def test_pyramid_is_kept_in_a_file_that_only_its_key_opens(tmp_path: Path) -> None:
    place = str(tmp_path / "x.logreel-pyramid")
    memory, _ = both(ulog([(5, float(i % 97)) for i in range(3000)]), place)
    field = FieldColumn(logreel.open(ulog([(5, float(i % 97)) for i in range(3000)]))["t"], "v")
    found = Pyramid.load(field, KEY, place)
    assert found is not None
    one, other = (Window(c, None, None).points(7, 0) for c in (memory, found.column(field)))
    np.testing.assert_array_equal(one[1], other[1])
    assert Pyramid.load(field, key_of("another log", "t", "v"), place) is None
    shorter = FieldColumn(logreel.open(ulog([(5, 1.0)] * 2999))["t"], "v")
    assert Pyramid.load(shorter, KEY, place) is None
    assert [path.name for path in tmp_path.iterdir()] == ["x.logreel-pyramid"]


@pytest.mark.parametrize("at", [0, 8, 20, 60, -1])
def test_damaged_files_of_pyramids_are_not_used(tmp_path: Path, at: int) -> None:
    place = tmp_path / "x.logreel-pyramid"
    both(ulog([(5, float(i)) for i in range(600)]), str(place))
    data = place.read_bytes()
    if at == -1:
        place.write_bytes(data[:-1])
    else:
        place.write_bytes(data[:at] + b"\xff" + data[at + 1 :])
    assert PyramidFile.load(str(place), KEY) is None


def test_a_build_that_is_ended_leaves_no_file(tmp_path: Path) -> None:
    def stop(_: float) -> None:
        raise KeyboardInterrupt

    field = FieldColumn(logreel.open(ulog([(5, 1.0)] * 100))["t"], "v")
    with pytest.raises(KeyboardInterrupt):
        Pyramid.build(field, KEY, stop, place=str(tmp_path / "x.logreel-pyramid"))
    assert not list(tmp_path.iterdir())


def test_pyramids_without_a_cache_folder_have_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGREEL_CACHE", "off")
    assert pyramid_file.place_of(KEY) is None


@given(st.integers(1, 5000), st.integers(0, 99))
@settings(deadline=None, max_examples=50)
def test_the_pyramid_of_a_column_in_memory_equals_naive_extrema(count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    times = np.sort(rng.integers(0, 10**9, count))
    # Few different values, so that several rows are the least; and some without a value.
    values = np.where(rng.random(count) < 0.1, np.nan, rng.integers(-5, 5, count).astype(float))
    edges = pixel_edges(int(times[0]), int(times[-1]) + 1, 37)
    edges[-1] = times[-1] + 1
    got = FoldedColumn(times, values, "m").extrema(0, count, edges)
    rows = set()
    for low, high in pairwise(edges.tolist()):
        inside = np.flatnonzero((low <= times) & (times < high)).tolist()
        numbers = [row for row in inside if not np.isnan(values[row])]
        rows |= {*inside[:1], *inside[-1:]}
        if numbers:
            rows |= {min(numbers, key=lambda row: values[row]), max(numbers, key=lambda row: values[row])}
    np.testing.assert_array_equal(got[0], times[sorted(rows)])
    np.testing.assert_array_equal(got[1], values[sorted(rows)])
