"""Tests for log formats: inherit ``FormatSuite`` in your tests."""

from __future__ import annotations

from logreel.testing.suite import FormatSuite

__all__ = ["FormatSuite"]
