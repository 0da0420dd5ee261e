"""Values of a log as JSON data, without loss, and as text that spreadsheets do not run."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

#: Types of most values, which are JSON data themselves.
_PLAIN = frozenset({int, str, bool, type(None)})


def to_json_values(value: Any) -> Any:
    """Return *value* as JSON data: bytes as base64, NaN and infinities as strings, integers unchanged."""
    # Matching classes is slow, and nearly all values are of these types.
    value_type = type(value)
    if value_type in _PLAIN:
        return value
    if value_type is float:
        return value if math.isfinite(value) else _unfinite(value)
    if value_type is dict:
        return {
            key if type(key) is str else str(key): item if type(item) in _PLAIN else to_json_values(item)
            for key, item in value.items()
        }
    if value_type is list:
        return [item if type(item) in _PLAIN else to_json_values(item) for item in value]
    return _other(value)


def _other(value: Any) -> Any:
    """Return a value of any other type, or of a subclass of a common one."""
    match value:
        case int() | str():
            return value
        case float():
            return value if math.isfinite(value) else _unfinite(value)
        case bytes() | bytearray() | memoryview():
            return base64.b64encode(value).decode("ascii")
        case Mapping():
            return {str(key): to_json_values(item) for key, item in value.items()}
        case np.generic() | np.ndarray():
            return to_json_values(value.tolist())
        case list() | tuple() | set() | frozenset():
            return [to_json_values(item) for item in value]
        case _:
            return str(value)


def _unfinite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def float_text(value: float) -> str:
    """Return the shortest text for a number; float32 values are written as such, without digits of float64."""
    if abs(value) < 3e38 and float(short := np.float32(value)) == value:
        return str(short)
    return repr(value)


#: Beginnings of text that spreadsheets take for a formula or a mark, and numbers, which are none. Also for RE2.
FORMULA = "^[=+\\-@'\t\r\n\uff1d\uff0b\uff0d\uff20]"
NUMBER = r"^[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?$"


def safe_text(text: str) -> str:
    """Return *text*, with ``'`` in front if it begins as a formula does.

    Formulas begin with ``=``, ``+``, ``-``, ``@``, also in full width, tab and line breaks; and ``'``, so that removing
    one from the front of each text restores all. Numbers as text stay as they are.
    """
    return f"'{text}" if re.match(FORMULA, text) and not re.match(NUMBER, text) else text
