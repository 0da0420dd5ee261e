"""Layouts of the page, saved as JSON files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from logreel.errors import UsageError

#: Size of a file that may be a layout.
BYTES = 1 << 20


def read_layout(path: str | None) -> dict[str, Any] | None:
    """Return the layout in a file; None for None.

    Raises UsageError for a file that is no layout, OSError if it cannot be read.
    """
    if path is None:
        return None
    file = Path(path)
    text = file.read_bytes() if file.stat().st_size <= BYTES else b""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise UsageError("is no layout that the viewer saved", path=path)
    return found
