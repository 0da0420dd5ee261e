"""Plots of fields over time: in a terminal, as pictures, and as pages that work offline."""

from __future__ import annotations

from logreel.outputs.plot.plot import Plot, plot

__all__ = ["Plot", "plot"]
