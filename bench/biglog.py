"""Write a large ULog by repeating the data of a small one with shifted times."""

from __future__ import annotations

import struct
import tempfile
from pathlib import Path

import numpy as np

import bench_path  # noqa: F401 - before what it makes importable
from support.samples.ulog.builder import flight

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "ulog" / "quadrotor_local.ulg"


def make(megabytes: int = 300) -> Path:
    """Return a cached log of about *megabytes* in the temporary folder, from a real flight if there is one."""
    base = SHARED.read_bytes() if SHARED.exists() else flight(60)
    out = Path(tempfile.gettempdir()) / f"logreel-bench-{megabytes}-{len(base)}.ulg"
    if not out.exists():
        part = out.with_suffix(".part")
        part.write_bytes(repeat(base, megabytes * 1_000_000))
        part.rename(out)
    return out


def repeat(base: bytes, size: int) -> bytes:
    """Return *base* with its data section repeated up to *size*; subscriptions come first, so every copy is valid."""
    head, loop, subscriptions = bytearray(), bytearray(), bytearray()
    stamp_at: list[int] = []
    pos, data = 16, False
    while pos < len(base):
        n, kind = struct.unpack_from("<HB", base, pos)
        record = base[pos : pos + 3 + n]
        data = data or chr(kind) in "AL"
        if chr(kind) == "A":
            subscriptions += record
        elif not data:
            head += record
        elif chr(kind) in "DLSO":
            # The bundled and the real logs both begin their messages with the 64-bit timestamp.
            stamp_at += [len(loop) + (5 if chr(kind) == "D" else 4)] if chr(kind) in "DL" else []
            loop += record
        pos += 3 + n
    template = np.frombuffer(bytes(loop), np.uint8)
    where = np.array(stamp_at)[:, None] + np.arange(8)
    times = template[where].copy().view("<u8").ravel()
    where, times = where[times > 0], times[times > 0]
    step = np.uint64(int(times.max() - times.min()) + 1000)
    copies = max(1, size // len(loop))
    out = [base[:16], bytes(head), bytes(subscriptions)]
    for k in range(copies):
        part = template.copy()
        part[where] = (times + np.uint64(k) * step).astype("<u8").view(np.uint8).reshape(-1, 8)
        out.append(part.tobytes())
    return b"".join(out)
