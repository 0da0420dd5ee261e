"""Times without a unit, which logreel refuses; NumPy 2.5 warns of each that is made."""

from __future__ import annotations

import warnings
from typing import TypeVar

import numpy as np

T = TypeVar("T", np.datetime64, np.timedelta64)


def without_unit(kind: type[T], value: int | str) -> T:
    """Return a ``datetime64`` or ``timedelta64`` that does not say what it counts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return kind(value)


#: What is no time, and no duration.
NO_TIME, NO_DURATION = without_unit(np.datetime64, "NaT"), without_unit(np.timedelta64, "NaT")
