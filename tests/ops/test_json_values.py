"""Values as JSON data: compared with a plain description of the rules, for values of any nesting."""

from __future__ import annotations

import base64
import json
import math
from collections import OrderedDict
from collections.abc import Mapping
from enum import IntEnum
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from logreel.ops.json_values import to_json_values


class Level(IntEnum):
    LOW = 1


class Name(str):
    """A text of a class of its own."""


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.sampled_from([Level.LOW, Name("a"), np.float32("nan"), np.float64(0.5), np.int8(-1), np.bool_(True)])
    | st.lists(st.floats(width=32), max_size=3).map(lambda values: np.array(values, np.float32))
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=2) | st.integers(0, 3), inner, max_size=4)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3).map(OrderedDict)
    ),
    max_leaves=12,
)


def plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, int | str):
        return value
    if isinstance(value, float):
        return (
            value if math.isfinite(value) else {"nan": "NaN", "inf": "Infinity"}.get(str(value), "-Infinity")
        )
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    return [plain(item) for item in value]


@given(VALUES)
def test_values_become_json_data_without_loss(value: Any) -> None:
    found = to_json_values(value)
    assert found == plain(value)
    assert json.dumps(found, allow_nan=False) == json.dumps(plain(value), allow_nan=False)


def test_values_of_other_classes_become_text() -> None:
    assert to_json_values({"a": 1j, 2: {3}}) == {"a": "1j", "2": [3]}
