"""Recording: messages of live sources, or lines of JSON, written as a log while they happen.

``record`` does it; ``Recording`` has its options. Each source of ``sources`` runs in a thread of its own and passes
messages to a bounded queue (``source``); a ``session`` writes them to the log, which ``parts`` divides into files;
``ring`` keeps only windows around triggers. ``lines`` reads lines of JSON and infers the types of their channels. Used
by the command line and by programs; authors of sources import ``Feed`` and ``LiveSource`` from ``logreel.plugin``.
"""

from __future__ import annotations

from logreel.ops.record.record import Recording, record
from logreel.ops.record.ring import RecordedWindow, Ring
from logreel.ops.record.session import Progress, Recorded, TopicLoss
from logreel.ops.record.source import Feed, LiveChannel, LiveSource
from logreel.ops.record.sources import live_source

__all__ = [
    "Feed",
    "LiveChannel",
    "LiveSource",
    "Progress",
    "Recorded",
    "RecordedWindow",
    "Recording",
    "Ring",
    "TopicLoss",
    "live_source",
    "record",
]
