"""Payloads of messages that are encoded by a Layout first, and then serialized one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.io.arrays import I64
from logreel.layout.layout import Layout
from logreel.write.payloads import Payloads


def serialize_rows(
    layout: Layout, payload: Callable[[dict[str, Any]], bytes], data: NDArray[np.uint8], first: I64, size: I64
) -> Payloads:
    """Return a payload for each message of *size* bytes at *first* in *data*, which is encoded by *layout*.

    payload  returns the payload of a message, from a dict of its fields
    """
    decode, view = layout.decoder(), memoryview(data.data)
    ends = (first + size).tolist()
    encoded = [payload(decode(view[at:end])) for at, end in zip(first.tolist(), ends, strict=True)]
    sizes = np.array([len(one) for one in encoded], np.int64)
    return Payloads(np.frombuffer(b"".join(encoded), np.uint8), np.cumsum(sizes) - sizes, sizes)
