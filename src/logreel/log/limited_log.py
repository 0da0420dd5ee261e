"""Logs limited to some of their messages."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace

from logreel.index.ranges import Rows
from logreel.log.log import Log
from logreel.log.read_ahead import ReadAhead


def with_rows(log: Log, rows: Mapping[int, Rows]) -> Log:
    """Return the same open log, whose intervals contain only *rows* of each channel (by number)."""
    found = copy(log)
    # The channels and gathered columns of *log* belong to its own index.
    vars(found).pop("channels", None)
    found._scan = replace(log._scan, index=log.index.restricted_to(rows))
    found._rescan = found._growth = None
    found._read_ahead = ReadAhead(lambda: list(found.channels.values()))
    return found
