"""Import optional libraries."""

from __future__ import annotations

import importlib
from typing import Any

from logreel.errors import MissingDependencyError


def import_optional(library: str) -> Any:
    """Return the imported *library*; raises MissingDependencyError if it is not installed."""
    try:
        return importlib.import_module(library)
    except ImportError as error:
        raise MissingDependencyError(library, library) from error
