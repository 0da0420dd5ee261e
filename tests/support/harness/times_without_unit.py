"""Times without a unit, which logreel refuses; NumPy 2.5 warns of each that is made."""

from __future__ import annotations

import warnings

import numpy as np


def without_unit(value: int | str) -> np.timedelta64:
    """Return a ``timedelta64`` that does not say what it counts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return np.timedelta64(value)


def no_time() -> np.datetime64:
    """Return the ``datetime64`` that is no time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return np.datetime64("NaT")
