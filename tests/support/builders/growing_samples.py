"""Small samples of the formats whose growing files are read on, by name: format and builder."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import logreel
from support.builders import bag_variants
from support.builders.bag_variants import CHATTER, COUNT
from support.builders.contents import patrol
from support.samples.mcap.builder import tiny as mcap_tiny
from support.samples.rosbag import old
from support.samples.rosbag.builder import Builder, few, version_2_0


@cache
def written(format: str, schema: logreel.Schema, count: int, flush: int, **options: Any) -> bytes:
    """A log of *count* messages on three topics, flushed after each *flush* messages."""
    rng = np.random.default_rng(count)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x"
        with logreel.create(path, format=format, flush_every=None, **options) as w:
            topics = list[int]()
            for n in range(count):
                if n in (0, count // 3, count // 2):
                    topics.append(w.add_channel(f"/topic{len(topics)}", schema))
                payload = rng.bytes(24 if schema is VECTOR else 8)
                w.write(topics[n % len(topics)], 17 * 10**17 + n * 10**6 - (n % 7) * 10**7, payload)
                if n % flush == flush - 1:
                    w.flush()
        return path.read_bytes()


VECTOR = logreel.Schema("geometry_msgs/Vector3", "ros1msg", "float64 x\nfloat64 y\nfloat64 z\n")
RAW = logreel.Schema("blob", "", "")

#: A builder of each kind of file.
SAMPLES: dict[str, tuple[str, Callable[[], bytes]]] = {
    "mcap": ("mcap", mcap_tiny),
    "mcap zstd": ("mcap", partial(written, "mcap", RAW, 9, 3, compression="zstd")),
    "mcap lz4": ("mcap", partial(written, "mcap", RAW, 9, 4, compression="lz4")),
    "mcap plain": ("mcap", partial(written, "mcap", RAW, 9, 2, compression="none")),
    "mcap long": ("mcap", partial(written, "mcap", RAW, 600, 20, compression="none")),
    "bddf": ("bddf", partial(written, "bddf", logreel.Schema("text/plain", "text/plain", ""), 9, 4)),
    "bddf long": ("bddf", partial(written, "bddf", logreel.Schema("text/plain", "text/plain", ""), 600, 20)),
    "bddf values": ("bddf", patrol),
    "bag 0": ("rosbag", lambda: old.version_0(few(topics=(CHATTER,)))),
    "bag 1.0": ("rosbag", lambda: old.version_1_0(few(start=4_490_867_000), late=(COUNT,))),
    "bag 1.1": ("rosbag", lambda: old.version_1_1(few())),
    "bag 1.2": ("rosbag", lambda: old.version_1_2(few(), indexed=False)),
    "bag 2.0": ("rosbag", lambda: version_2_0(few(), Builder(chunk_bytes=100, padded=0))),
    "bag 2.0 bz2": ("rosbag", partial(written, "rosbag", VECTOR, 9, 4, compression="bz2")),
    "bag 2.0 lz4": ("rosbag", partial(written, "rosbag", VECTOR, 9, 3, compression="lz4")),
    "bag long": ("rosbag", partial(written, "rosbag", VECTOR, 600, 20)),
}
#: Variants of bags that show what growing readers have to leave to a complete scan, too.
VARIANTS = {name: ("rosbag", build) for name, build in {**bag_variants.SYNTHETIC, **bag_variants.ODD}.items()}
