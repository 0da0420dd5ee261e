"""A short repr for dataclasses that may contain thousands of items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

#: Values with a longer repr are counted or cut.
LONG = 100


class Brief:
    """Mixin for dataclasses with ``repr=False``: long values are counted or cut in the repr."""

    __slots__ = ()

    def __repr__(self) -> str:
        shown = (f"{one.name}={_short(getattr(self, one.name))}" for one in fields(self) if one.repr)  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(shown)})"


def _short(value: Any) -> str:
    if isinstance(value, (tuple, list, Mapping, set, frozenset)) and len(value) > 3:
        return f"<{len(value)} items>"
    text = repr(value)
    if len(text) <= LONG:
        return text
    if isinstance(value, (tuple, list, Mapping, set, frozenset)):
        return f"<{len(value)} item{'s' * (len(value) != 1)}>"
    return f"{text[:LONG]}…"
