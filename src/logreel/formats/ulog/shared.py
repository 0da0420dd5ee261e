"""Several ULogs as the files of one log."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from logreel.formats.ulog.synthetic import synthetic_channels
from logreel.log.limited_log import with_scan
from logreel.log.log import Log


def share(logs: Sequence[Log], shifts: Sequence[int]) -> list[Log]:
    """Return the logs, of which only the first has the initial values and defaults of parameters as messages."""
    first, *others = logs
    return [first, *map(_without_initial_parameters, others)]


def _without_initial_parameters(log: Log) -> Log:
    state = log.format_state
    rows = {
        log[channel.topic].number: np.flatnonzero(~np.isin(channel.offsets, state.initial_parameters))
        for channel in synthetic_channels(state)
        if channel.kind == "~parameter" and channel.topic in log
    }
    return with_scan(log, index=log.index.with_synthetic_rows(rows))
