"""Fields become the same NumPy arrays without pyarrow and pandas as those that Arrow makes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import logreel
from logreel.errors import LogError, MissingDependencyError
from logreel.layout.arrow_from_buffers import arrow_of
from logreel.layout.numpy_columns import column_from
from logreel.log.columns import PLAIN, ColumnReader
from logreel.log.tables import TableReader, column_values
from support.formats import builtin_formats, sample_log
from support.harness.without import block

SMALL = 1_500_000


def assert_same(got: Any, due: Any) -> None:
    """Compare type, mask and value of arrays, and of what is in arrays of objects."""
    assert type(got) is type(due)
    if isinstance(due, dict):
        assert got.keys() == due.keys()
        for name, value in due.items():
            assert_same(got[name], value)
    elif not isinstance(due, np.ndarray):
        assert got == due or got != got
    else:
        assert (got.dtype, got.shape) == (due.dtype, due.shape)
        if isinstance(due, np.ma.MaskedArray):
            np.testing.assert_array_equal(np.ma.getmaskarray(got), np.ma.getmaskarray(due))
            got, due = got.filled(0), due.filled(0)
        if due.dtype == object:
            for value, wanted in zip(got.flat, due.flat, strict=True):
                assert_same(value, wanted)
        elif got.tobytes() != due.tobytes():
            # Of equal bytes nothing else has to be asked.
            np.testing.assert_array_equal(got, due)


def compare(log: logreel.Log) -> int:
    compared = 0
    for ch in log.channels.values():
        try:
            paths = ch.layout.paths()
            table = TableReader(ch, paths).read(slice(0, len(ch)))
        except LogError:
            continue
        rows = ColumnReader(ch, paths, PLAIN).read(slice(0, len(ch)))
        assert_same(rows.time, np.asarray(column_values(table.column(0))))
        for column, due in zip(rows.columns, table.columns[1:], strict=True):
            assert_same(column.numpy(), column_values(due))
            assert_same(column_from(due).numpy(), column.numpy())
            compared += 1
        whole = ColumnReader(ch, None, PLAIN).read(slice(0, len(ch)))
        wanted = TableReader(ch).read(slice(0, len(ch)))
        for f, column, due in zip(ch.layout.record.visible(), whole.columns, wanted.columns[1:], strict=True):
            array = arrow_of(f.node, column)
            assert array.type == due.type
            assert array.equals(due.combine_chunks()) or "nan" in str(array.to_pylist())
    return compared


@pytest.mark.parametrize("name", builtin_formats())
def test_columns_equal_those_of_arrow(name: str) -> None:
    assert compare(logreel.open(sample_log(name))) > 10


def test_columns_of_real_logs_equal_those_of_arrow(shared: Path) -> None:
    paths = [
        path for path in sorted(shared.glob("data/*/*")) if path.is_file() and path.stat().st_size < 400_000
    ]
    compared = 0
    for path in paths:
        try:
            log = logreel.open(path)
        except LogError:
            continue
        compared += compare(log)
    assert compared > 500


def test_to_numpy_imports_neither_pyarrow_nor_pandas(tmp_path: Path) -> None:
    path = tmp_path / "x.ulg"
    path.write_bytes(sample_log("ulog"))
    script = f"""
import sys, logreel
for ch in logreel.open({str(path)!r}).channels.values():
    arrays = ch.to_numpy()
    assert len(ch[ch.fields[0]]) == len(arrays["time"])
wrong = {{"pyarrow", "pandas", "logreel.layout.projection", "logreel.layout.arrow_from_buffers"}} & set(sys.modules)
sys.exit(str(wrong) if wrong else 0)
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=300)


def test_tables_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    ch = next(ch for ch in logreel.open(sample_log("ulog")).channels.values() if len(ch))
    for name in ("pyarrow", "pandas", "polars", "xarray"):
        monkeypatch.setitem(sys.modules, name, None)
    calls = [ch.to_arrow, lambda: list(ch.batches()), ch.to_pandas, ch.to_polars, ch.to_xarray]
    for call in calls:
        with pytest.raises(MissingDependencyError, match=r"this needs \w+: pip install 'logreel\[\w+\]'"):
            call()


def test_block_hides_a_library() -> None:
    before = list(sys.meta_path)
    try:
        block("no_such_library")
        with pytest.raises(ModuleNotFoundError):
            __import__("no_such_library.inner")
    finally:
        sys.meta_path[:] = before
