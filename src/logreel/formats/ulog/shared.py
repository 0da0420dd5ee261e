"""Several ULogs as the files of one log."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from logreel.formats.ulog.synthetic import synthetic_channels
from logreel.io.arrays import I64
from logreel.log.log import Log


def share(logs: Sequence[Log], shifts: Sequence[int]) -> list[Log]:
    """Return the logs, of which only the first has the initial values and defaults of parameters as messages."""
    first, *others = logs
    return [first, *map(_without_initial_parameters, others)]


def _without_initial_parameters(log: Log) -> Log:
    rows = {
        ch.number: partial(_later_changes, log, ch.topic)
        for ch in log.channels.values()
        if ch.topic.split("@")[0] == "~parameter"
    }
    return log.derive(index=log.index.with_synthetic_rows(rows))


def _later_changes(log: Log, topic: str) -> I64:
    """Return the rows of a channel ``~parameter`` that are no initial values or defaults."""
    state = log.format_state
    offsets = next(one.offsets for one in synthetic_channels(state) if one.topic == topic)
    return np.flatnonzero(~np.isin(offsets, state.initial_parameters))
