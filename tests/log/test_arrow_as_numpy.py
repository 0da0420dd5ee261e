"""Arrow arrays become the NumPy arrays that pyarrow makes of them, without importing pandas."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from logreel.layout.numpy_columns import column_from
from logreel.log.tables import as_numpy

KINDS = [pa.int8(), pa.uint16(), pa.int32(), pa.int64(), pa.float16(), pa.float32(), pa.float64(), pa.bool_()]


def values(kind: pa.DataType, nulls: bool) -> pa.Array:
    """Return an array that begins inside of its memory."""
    plain: list[object] = [np.float16(n % 2) if pa.types.is_float16(kind) else n % 2 for n in range(20)]
    if nulls:
        plain[3] = plain[7] = None
    return (
        pa.array(plain, pa.int8()).cast(kind)[2:19]
        if pa.types.is_boolean(kind)
        else pa.array(plain, kind)[2:19]
    )


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_numbers_and_flags_equal_those_of_pyarrow(kind: pa.DataType, nulls: bool) -> None:
    array = values(kind, nulls)
    due, found = array.to_numpy(zero_copy_only=False), as_numpy(array)
    assert found.dtype == due.dtype
    np.testing.assert_array_equal(found, due)
    assert len(as_numpy(array[:0])) == 0


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_flattened_times_equal_those_of_pyarrow(unit: str) -> None:
    array = pa.array([5, None, 7, 1 << 30], pa.int64()).cast(pa.timestamp(unit))[1:]
    found, rows = column_from(array).flat()
    due = array.to_numpy(zero_copy_only=False).astype("M8[ns]")
    assert found.dtype == due.dtype
    np.testing.assert_array_equal(found, due)
    assert rows.tolist() == [0, 1, 2]


def test_flattened_lists_tell_the_row_of_each_item() -> None:
    found, rows = column_from(pa.array([[1, 2], None, [], [3]])).flat()
    assert (found.tolist(), rows.tolist()) == ([1, 2, 3], [0, 0, 3])


def test_reading_stamps_and_items_of_lists_does_not_import_pandas() -> None:
    pytest.importorskip("pandas")
    script = """
import sys, numpy as np, pyarrow as pa
from logreel.layout.numpy_columns import column_from
from logreel.log.tables import as_numpy
from logreel.ops.query.record_batches import _flat
times = pa.Array.from_buffers(pa.timestamp("ns"), 4, [None, pa.py_buffer(np.arange(4))])
numbers = pa.Array.from_buffers(pa.int32(), 4, [None, pa.py_buffer(np.arange(4, dtype=np.int32))])
column_from(times).flat(), column_from(numbers).flat(), as_numpy(numbers.is_null())
list(_flat("a", pa.FixedSizeListArray.from_arrays(numbers, 2)))
sys.exit("pandas" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120)
