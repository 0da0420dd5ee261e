"""A sink for those who only want to see the time pass, or how fast it can."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logreel.ops.replay import Sink

if TYPE_CHECKING:
    from logreel.ops.replay import Run


class Null(Sink):
    """Takes everything and does nothing with it."""

    batches = True

    def batch(self, run: Run) -> None:
        """Nothing."""
