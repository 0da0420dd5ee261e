"""Sink that discards all messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logreel.ops.replay import Sink

if TYPE_CHECKING:
    from logreel.ops.replay import Run


class Null(Sink):
    """Discards all messages, to see only the status line, or to measure the maximum rate."""

    batches = True
    follows = True
    sends = False

    def batch(self, run: Run) -> None:
        """Do nothing."""
