"""Tests for log formats: inherit ``FormatSuite`` in your tests.

``suite`` has the tests, which need samples and no knowledge of the format; ``judge`` says what reading may do with
damaged files, ``mutations`` damages them, and ``operations`` is a state machine of operations on logs, for which
hypothesis must be installed. For authors of formats, and for the tests of logreel itself; no other code imports it.
"""

from __future__ import annotations

from logreel.testing.suite import FormatSuite

__all__ = ["FormatSuite"]
