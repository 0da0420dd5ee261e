"""Answers of the viewer as Arrow IPC streams."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from starlette.responses import Response

from logreel.layout.arrow_arrays import text_metadata

MEDIA = "application/vnd.apache.arrow.stream"


def arrow_stream(columns: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> bytes:
    """Return columns of equal length as the bytes of an Arrow IPC stream, with *metadata* of its schema."""
    import pyarrow as pa

    fields = [(name, pa.from_numpy_dtype(values.dtype)) for name, values in columns.items()]
    schema = pa.schema(fields, metadata=text_metadata(dict(metadata)))
    arrays = [pa.array(np.ascontiguousarray(values)) for values in columns.values()]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as out:
        out.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))
    data: bytes = sink.getvalue().to_pybytes()
    return data


def arrow_response(columns: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> Response:
    """Return one stream as an answer."""
    return Response(arrow_stream(columns, metadata), media_type=MEDIA)


def several(streams: Iterable[bytes]) -> Response:
    """Return several streams as one answer: each after its length as u32, little-endian."""
    body = b"".join(part for data in streams for part in (struct.pack("<I", len(data)), data))
    return Response(body, media_type="application/octet-stream")
