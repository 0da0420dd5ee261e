"""What happened in a flight, from the topics of PX4 of all generations."""

from __future__ import annotations

from collections.abc import Iterator

from logreel.formats.ulog.meaning.estimator import estimator
from logreel.formats.ulog.meaning.flight import flight
from logreel.formats.ulog.meaning.phases import Phases
from logreel.formats.ulog.meaning.power import power
from logreel.formats.ulog.meaning.safety import safety
from logreel.formats.ulog.meaning.satellites import satellites
from logreel.formats.ulog.meaning.vehicle import vehicle
from logreel.formats.ulog.meaning.vibration import vibration
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
