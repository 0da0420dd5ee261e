"""Trouble of the estimator: rejected measurements and faults."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from logreel.formats.ulog.meaning.estimator import FAULT, FLAGS, RATIOS, STATUS
from logreel.lenses.facts import Detection, Detector, NotAssessed, Topics, runs, since_start
from logreel.log.log import Log
from logreel.log.times import SECOND, duration_text


def detect(log: Log) -> Iterator[Detection | NotAssessed]:
    """Yield a detection for each kind of measurement that is rejected, and each fault."""
    topics = Topics(log)
    ratios = [name for name in RATIOS if topics.has(STATUS, name)]
    faults = [name for name in topics.fields(FLAGS) if name.startswith(FAULT)] if topics.has(FLAGS) else []
    if not ratios and not faults:
        yield NotAssessed("the log has no status of the estimator")
    for name in ratios:
        found = topics.columns(log[STATUS], name)
        values = np.asarray(found.values[name], np.float64)
        for start, end in runs(found.time, values > 1, 2 * SECOND):
            worst = float(values[(found.time >= start) & (found.time <= end)].max())
            yield Detection(
                f"{RATIOS[name]} is rejected from {since_start(start, log)}, for {duration_text(end - start)}",
                "warn",
                start,
                end,
                (STATUS,),
                {name: worst},
                f"{name} of 1",
                "PX4 estimator_status: measurements above 1 are rejected",
            )
    if faults:
        found = topics.columns(log[FLAGS], *faults)
        for name in faults:
            for start, end in runs(found.time, found.values[name] != 0, 5 * SECOND):
                yield Detection(
                    f"fault {name.removeprefix(FAULT).replace('_', ' ')} from {since_start(start, log)},"
                    f" for {duration_text(end - start)}",
                    "error",
                    start,
                    end,
                    (FLAGS,),
                    {name: True},
                    "flag is set",
                    "PX4 estimator_status_flags",
                )


ESTIMATOR = Detector("estimator", "measurements that the estimator rejects, and its faults", detect)
