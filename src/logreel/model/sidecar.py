"""An index kept beside the log or in the user's cache, so that a second open does not read the log again."""

from __future__ import annotations

from logreel.model.registry import Format
from logreel.model.scan import Scan
from logreel.model.source import Source


def load(source: Source, fmt: Format) -> Scan | None:
    """The scan that a valid sidecar of *source* restores, or None."""
    return None


def keep(source: Source, fmt: Format, scan: Scan) -> Scan:
    """*scan*, after writing it to the cache where that pays."""
    return scan
