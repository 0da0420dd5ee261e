"""The content of a recording, as reading its packets found it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from logreel.errors import Problem
from logreel.formats.carla.records import Header
from logreel.index.block_table import Blocks
from logreel.io.arrays import I64


@dataclass(slots=True)
class Found:
    """The content of a recording.

    wide     True if vectors are float64, as on the UE5 line
    topics   topic of each kind that has packets; the kind is the channel in *blocks*
    ends     int64[e]: offsets of the FrameEnds
    sizes    uint32[n]: true bytes of each packet, in the order of *blocks*
    is_growing  True: a file that is still written
    resized  true bytes of the packets that state a wrong size, by the offset of their payload
    """

    header: Header
    wide: bool
    topics: dict[int, str]
    blocks: Blocks
    ends: I64
    sizes: NDArray[np.uint32]
    resized: dict[int, int]
    problems: list[Problem] = field(default_factory=list)
    is_growing: bool = False
