"""What happened in a flight, from the topics of PX4 of all generations.

``flight`` and ``vehicle`` yield the sections of the summary, in words. A Format names the functions below; the
detectors of ``ulog.health`` and the charts take phases and limits from here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from logreel.formats.ulog.meaning.flight import Phases, flight, safety
from logreel.formats.ulog.meaning.vehicle import estimator, power, satellites, vehicle, vibration
from logreel.lenses.facts import Section, Topics
from logreel.log.log import Log

#: The module that PX4 writes before its texts, and what it writes before checks.
_SENDER = re.compile(r"^\[\w+\] (?:Preflight Fail: )?")


def sentence(text: str) -> str:
    """Return a line of text without the module that sends it."""
    return _SENDER.sub("", text)


def meaning(log: Log) -> Iterator[Section]:
    """Yield the sections of the summary of a ULog; empty ones where the log says nothing."""
    topics = Topics(log)
    yield vehicle(topics)
    phases = Phases.of(log)
    yield flight(topics, phases)
    yield power(topics)
    yield satellites(topics)
    yield estimator(topics)
    yield vibration(topics, phases)
    yield safety(topics, phases)
