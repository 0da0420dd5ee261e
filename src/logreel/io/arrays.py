"""NumPy array types used everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    pass


I64 = NDArray[np.int64]


U32 = NDArray[np.uint32]
