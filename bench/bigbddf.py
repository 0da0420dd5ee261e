"""Write a large BDDF file of small blocks: text with additional indexes, plain values and blobs."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import logreel

START = 1_700_000_000 * 10**9
#: Messages made at once, and bytes of each.
STEP, SIZE = 30_000, 1000


def make(megabytes: int = 300) -> Path:
    """Return a cached file of about *megabytes* in the temporary folder: blocks of 1 kB of three series in turn."""
    out = Path(tempfile.gettempdir()) / f"logreel-bench-{megabytes}.bddf"
    if out.exists():
        return out
    payload = np.random.default_rng(1).integers(32, 127, STEP * SIZE, dtype=np.uint8)
    start, size = np.arange(STEP) * SIZE, np.full(STEP, SIZE)
    with logreel.create(out, force=True, flush_every=None) as w:
        text = {"additional_indexes": ["pid"]}
        w.add_channel("say", logreel.Schema("line", "text/plain"), text)
        w.add_channel("body/speed", logreel.Schema("float32[2]", "bddf"))
        w.add_channel("blob", logreel.Schema("", "image/jpeg"))
        channel = (np.arange(STEP) % 3).astype(np.int32)
        for n in range(megabytes * 1_000_000 // (STEP * SIZE)):
            time = START + (n * STEP + np.arange(STEP)) * 1_000_003
            w.write_many(
                channel, time, payload, start, size, (time[:, None] // 10**6) * (channel == 0)[:, None]
            )
    return out
