"""Checks of times in integer nanoseconds, as the index takes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from logreel.errors import UsageError

ONLY_NS = (
    "the index takes int ns of the log's clock; Log.messages and Channel.to_arrow take times of all kinds"
)


def whole_ns(value: Any, accepted: str = ONLY_NS) -> int:
    """Return *value*, a Python or NumPy int, as ns.

    Raises UsageError for other types, with *accepted* in its text, and for numbers of more than 64 bits.
    """
    if isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64)):
        return checked_ns(int(value), repr(value))
    raise refused_time(value, accepted)


def refused_time(value: object, accepted: str) -> UsageError:
    what = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    said = repr(value)
    shown = said if len(said) <= 60 else f"{said[:60]}…"
    return UsageError(f"{shown} ({what}) is not accepted as a time: {accepted}")


def checked_ns(ns: int, text: str) -> int:
    if not -(1 << 63) <= ns < 1 << 63:
        raise UsageError(f"the time {text!r} is beyond what 64 bits of nanoseconds can hold")
    return ns
