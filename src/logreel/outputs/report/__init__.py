"""Reports: one page about a log, which works offline."""

from __future__ import annotations

from logreel.outputs.report.report import Report, report

__all__ = ["Report", "report"]
