"""A repr of a line or two for what may hold thousands of things."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

#: Characters of a value, above which it is only counted or cut.
LONG = 100


class Brief:
    """For dataclasses with ``repr=False``: values that would be long are counted or cut."""

    __slots__ = ()

    def __repr__(self) -> str:
        told = (f"{one.name}={_short(getattr(self, one.name))}" for one in fields(self) if one.repr)  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(told)})"


def _short(value: Any) -> str:
    if isinstance(value, (tuple, list, Mapping, set, frozenset)) and len(value) > 3:
        return f"<{len(value)} items>"
    text = repr(value)
    if len(text) <= LONG:
        return text
    if isinstance(value, (tuple, list, Mapping, set, frozenset)):
        return f"<{len(value)} item{'s' * (len(value) != 1)}>"
    return f"{text[:LONG]}…"
