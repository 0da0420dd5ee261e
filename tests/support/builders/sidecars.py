"""Sidecars with other content than logreel writes."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from logreel.registry import index_cache


def forge(place: Path, change: Callable[[dict[str, Any], dict[str, np.ndarray]], None]) -> None:
    """Write the sidecar again after *change* of its head and arrays, with a matching checksum."""
    whole = place.read_bytes()
    length = int.from_bytes(whole[8:16], "little")
    head = json.loads(whole[16 : 16 + length])
    base = index_cache._aligned(16 + length)
    arrays = {}
    for name, (kind, shape, offset) in head["arrays"].items():
        count = int(np.prod(shape))
        arrays[name] = np.frombuffer(whole, kind, count, base + offset if count else 0).reshape(shape).copy()
    table = dict(head["arrays"])
    change(head, arrays)
    if head.get("arrays") == table:
        head["arrays"], offset = {}, 0
        for name, a in arrays.items():
            head["arrays"][name] = (a.dtype.str, a.shape, offset)
            offset += index_cache._aligned(a.nbytes)
    text = json.dumps(head).encode()
    out = index_cache.MAGIC + len(text).to_bytes(8, "little") + text
    out += bytes(-len(out) % 64)
    for a in arrays.values():
        out += a.tobytes() + bytes(-a.nbytes % 64)
    place.write_bytes(out + zlib.crc32(out).to_bytes(4, "little"))
