"""What must be known first of a log: the answer of ``summary --brief``."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from logreel.cli import draw

if TYPE_CHECKING:
    from logreel.log.log import Channel, Log

#: Topics that a brief summary names, and facts that it takes from a section.
TOPICS, PER_SECTION = 20, 4
#: Facts that deserve attention before all others, and questions that it proposes.
SEVERE, QUESTIONS = 4, 3
#: Longest text of a fact, and longest topic in a command line.
LENGTH = 100


class Orientation:
    """What must be known first of a log: what it is, when, of which vehicle, what happened, damage, topics, next steps.

    selection  the part of the log that is described: keyword arguments of ``summary``
    """

    def __init__(self, selection: Mapping[str, Any], log: Log) -> None:
        from logreel.ops.inspect.info import facts
        from logreel.ops.inspect.summary import summary as look

        self._summary = look(log, **selection)
        #: Label and text of what recorded it; start, duration and format have members of their own.
        self._vehicle = [fact for fact in facts(log) if fact[0] not in ("Start", "Duration", "Format")]
        self._log = log
        self._topics = self._ranked()
        #: Number of topics that are not named.
        self.left = {"topics": len(self._topics) - TOPICS}
        self._data = self._read()

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON data of ``summary --brief --json``."""
        return self._data

    def _read(self) -> dict[str, Any]:
        from logreel.log.times import duration_text

        log, summary = self._log, self._summary
        lost = [problem for problem in log.problems if problem.lost]
        filled = sum(bool(len(ch)) and not ch.reserved for ch in log.channels.values())
        length = None if summary.end_ns is None else summary.end_ns - (summary.start_ns or 0)
        return {
            "path": log.name,
            "what": {
                "format": f"{log.format} {log.version}".strip(),
                "size": log.size,
                "messages": log.message_count,
                "channels": filled,
            },
            "when": {
                "utc": summary.utc,
                "duration": "" if length is None else duration_text(length),
                "clock": log.epoch,
                "start_ns": summary.start_ns,
                "end_ns": summary.end_ns,
            },
            "vehicle": dict(self._vehicle),
            "damage": {
                "problems": len(log.problems),
                "lost_bytes": sum(problem.size for problem in lost),
                **({"first": (lost or log.problems)[0].text} if log.problems else {}),
            },
            "happened": self._happened(),
            "topics": {ch.topic: self._topic_text(ch) for ch in self._topics[:TOPICS]},
            "ask": self._questions(),
        }

    def _ranked(self) -> list[Channel]:
        """Return the channels with messages: first those of the format's charts, then those with a known meaning."""
        from logreel.errors import LogError
        from logreel.lenses import lenses
        from logreel.registry.registry import charts_of

        log = self._log
        filled = {ch.topic: ch for ch in log.channels.values() if len(ch) and not ch.reserved}
        named: list[str] = []
        with contextlib.suppress(LogError):
            named += [series.topic for chart in charts_of(log) for series in chart.series]
        named += [topic for topic, ch in filled.items() if lenses(ch)]
        named += sorted(filled, key=lambda topic: -len(filled[topic]))
        return [filled[topic] for topic in dict.fromkeys(named) if topic in filled]

    def _happened(self) -> list[str]:
        """Return facts as sentences: those that deserve attention first, marked as in the full summary."""
        summary = self._summary
        severe = [
            f"{draw.mark(fact.level)} {section.title}: {fact.label} {fact.text}"
            for section, fact in summary.findings
        ]
        told = severe[:SEVERE]
        vehicle = {text for _, text in self._vehicle}
        for section in summary:
            # Other members say this, and what there is.
            is_told = section.key in ("recording", "sensors", "topics") or vehicle & {f.text for f in section}
            plain = [fact for fact in section if fact.level is None]
            if not is_told:
                told += [f"{section.title}: {fact.label} {fact.text}" for fact in plain[:PER_SECTION]]
        return [fact if len(fact) <= LENGTH else f"{fact[:LENGTH]}…" for fact in told + severe[SEVERE:]]

    def _topic_text(self, ch: Channel) -> str:
        rate = draw.rate_text(ch.rate) if len(ch) > 2 else ""
        count = rate or f"{len(ch)} message{'s' * (len(ch) != 1)}"
        name = ch.schema.name
        return count if name in ("", ch.topic.partition("[")[0], ch.topic) else f"{name}, {count}"

    def _questions(self) -> list[str]:
        """Return command lines for what may be asked next."""
        log = self._log
        first = [ch.topic for ch in self._topics[:1] if ch.topic.isprintable() and len(ch.topic) < LENGTH]
        severe = any(line.level is not None and line.level <= 4 for line in log.text)
        questions = [
            ("check", [], bool(log.problems)),
            ("health", [], True),
            ("text", ["--level", "warning"], severe),
            ("params", ["--changed"], any(p.real_changes for p in log.parameters.values())),
            ("cat", ["-t", *first], bool(first)),
            ("info", [], True),
        ]
        apt = [question for question in questions if question[2]][:QUESTIONS]
        return [draw.command_line(verb, [verb, log.name, *words], ["--brief"]) for verb, words, _ in apt]
