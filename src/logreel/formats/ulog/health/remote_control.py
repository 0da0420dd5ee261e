"""Loss of the remote control while flying."""

from __future__ import annotations

from collections.abc import Iterator

from logreel.formats.ulog.meaning.phases import Phases
from logreel.lenses.facts import Detection, Detector, NotAssessed, Topics, inside, runs, since_start
from logreel.log.log import Log
from logreel.log.times import SECOND, duration_text

#: Topics and flags that say that the signal is lost, newest first.
FLAGS = (
    ("failsafe_flags", "manual_control_signal_lost"),
    ("vehicle_status", "rc_signal_lost"),
    ("input_rc", "rc_lost"),
)


def detect(log: Log) -> Iterator[Detection | NotAssessed]:
    """Yield a detection for each interval without a signal after the first one, while armed."""
    topics, phases = Topics(log), Phases.of(log)
    found = next(((topic, flag) for topic, flag in FLAGS if topics.has(topic, flag)), None)
    if found is None:
        yield NotAssessed("the log does not say whether there is a remote control")
        return
    topic, flag = found
    states = topics.columns(log[topic], flag)
    lost = states.values[flag] != 0
    if lost.all():
        yield NotAssessed(f"there is no remote control: {topic}.{flag} throughout")
        return
    for start, end in runs(states.time, lost & inside(states.time, phases.armed), SECOND):
        yield Detection(
            f"the remote control is lost at {since_start(start, log)}, for {duration_text(end - start)}",
            "warn",
            start,
            end,
            (topic,),
            {flag: True},
            "flag is set while armed",
            f"PX4 {topic}",
        )


REMOTE = Detector("rc-loss", "the signal of the remote control while armed", detect)
