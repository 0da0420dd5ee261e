"""Recording: messages of live sources, or lines of JSON, written as a log."""

from __future__ import annotations

from logreel.ops.record.lines import Recorded, record
from logreel.ops.record.source import Feed, LiveChannel, LiveSource

__all__ = ["Feed", "LiveChannel", "LiveSource", "Recorded", "record"]
