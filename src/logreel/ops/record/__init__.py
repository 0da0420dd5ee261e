"""Recording: messages of live sources, or lines of JSON, written as a log."""

from __future__ import annotations

from logreel.ops.record.record import record
from logreel.ops.record.session import Loss, Progress, Recorded
from logreel.ops.record.source import Feed, LiveChannel, LiveSource
from logreel.ops.record.sources.registry import live_source

__all__ = ["Feed", "LiveChannel", "LiveSource", "Loss", "Progress", "Recorded", "live_source", "record"]
