"""Convert tables of channels to frames of pandas and polars, and to datasets of xarray; each is optional."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from logreel.errors import NotFoundError, library
from logreel.log.tables import MAX_COLUMNS, column_values, flattened

if TYPE_CHECKING:
    import pyarrow as pa


def pandas_frame(table: pa.Table, flatten: bool, index: str | None, path: str) -> Any:
    """Return a table of ``Channel.to_arrow`` as a ``pandas.DataFrame``, see ``Channel.to_pandas``."""
    frame = (flattened(table, MAX_COLUMNS) if flatten else table).to_pandas()
    if index is None:
        return frame
    if index not in frame.columns:
        raise NotFoundError("column", index, frame.columns, path=path)
    return frame.set_index(index)


def dataset(table: pa.Table) -> Any:
    """Return a table of ``Channel.to_arrow`` as an ``xarray.Dataset``, see ``Channel.to_xarray``."""
    xarray = library("xarray")
    clock = table.schema.field(0)
    variables = {}
    for column, field in zip(table.columns[1:], list(table.schema)[1:], strict=True):
        values = _values(column)
        name = field.name
        axes = [f"{name}_dim_{i}" for i in range(values.ndim - 1)]
        variables[name] = (("time", *axes), values, _text(field.metadata, {"unit": "units"}))
    time = ("time", _values(table.column(0)), _text(clock.metadata, {}))
    return xarray.Dataset(variables, {"time": time}, _text(table.schema.metadata, {}))


def _values(column: pa.ChunkedArray[Any]) -> NDArray[Any]:
    """Return the values of *column*; times and durations as datetime64 and timedelta64."""
    import pyarrow as pa

    values, item_type = column_values(column), column.type
    while pa.types.is_fixed_size_list(item_type):
        item_type = item_type.value_type
    if pa.types.is_timestamp(item_type):
        return values.view("datetime64[ns]")
    return values.view("timedelta64[ns]") if pa.types.is_duration(item_type) else values


def _text(metadata: dict[bytes, bytes] | None, names: dict[str, str]) -> dict[str, str]:
    """Return Arrow metadata as attributes, renamed by *names*."""
    texts = {key.decode(): value.decode() for key, value in (metadata or {}).items()}
    return {names.get(key, key): value for key, value in texts.items()}
