"""What happened in a flight, from the topics of PX4 of all generations.

``flight`` and ``vehicle`` yield the sections of the summary, in words. ``Format.meaning`` names the function below; the
detectors of ``ulog.health`` and the charts take phases and limits from here.
"""

from __future__ import annotations

from collections.abc import Iterator

from logreel.formats.ulog.meaning.flight import Phases, flight, safety
from logreel.formats.ulog.meaning.vehicle import estimator, power, satellites, vehicle, vibration
from logreel.lenses.facts import Section, Topics
from logreel.log.log import Log


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
