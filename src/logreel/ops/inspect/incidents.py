"""What went wrong in a recording and when, worst first: one list of all that summary, health, checks and text tell.

Reports and viewers show it. Each incident says what happened, in which intervals, how bad it is, where that comes from,
and which curves show it; what several sources say of one moment is one incident.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from logreel.dataclass import dataclass, replace
from logreel.errors import LogError, Severity
from logreel.lenses.facts import ERROR, LINE, WARNING, Chart, Detection, Fact, Section, Series
from logreel.log.log import Log
from logreel.log.scan import Brief
from logreel.meaning.charts import charts
from logreel.ops.health.health import Health, health
from logreel.ops.inspect.check import quick_check
from logreel.ops.inspect.summary import Summary, summary
from logreel.registry.registry import sentence_of

Span = tuple[int, int]

#: Moments this close together (ns) are one.
MOMENT = 3 * 10**8
#: Syslog levels of what is no warning.
NOTICE = 5
#: Problems that get times, and incidents of one kind that are listed.
TIMED, LISTED = 200, 500
#: Series that show one incident.
CURVES = 8
#: Channels with the most messages, which show where messages are missing.
BUSY = 3
#: Detectors that look at the times of messages, which the time between them shows.
OF_TIMES = {"gaps", "rate-drop", "silent-sensor", "message-loss", "clock"}
#: Sections of a summary, and beginnings of keys in them, that these detectors tell with their intervals.
TOLD = {
    ("estimator", ""): "estimator",
    ("vibration", "accelerometer"): "vibration",
    ("transforms", ""): "transforms",
    ("sensors", ""): "gaps",
    ("track", ""): "position-jumps",
    ("safety", "failsafe"): "failsafe",
}
#: Sections whose facts are incidents in words of their own.
SPOKEN = {"text", "checks", "events"}
#: Codes of quick checks that detectors and the summary tell better.
DOUBLED = {"gap", "dropout"}
_SEVERITY: dict[str, int] = {"error": ERROR, "warn": WARNING, "note": NOTICE}
#: How sentences of detectors say when, which stands beside them.
_WHEN = re.compile(r",?(?: from| at) [+-]\d+\.\d s(?: on)?(?:,? for [^,()]+)?$")
_WORD = re.compile(r"[a-z]{3,}")
_TERM = re.compile(r"\w+")
#: Words of texts, and the word of charts that means the same.
SAME = {
    "accel": "acceleration",
    "accelerometer": "acceleration",
    "accelerometers": "acceleration",
    "gyro": "gyroscope",
    "height": "altitude",
    "takeoff": "altitude",
    "landing": "altitude",
    "heading": "yaw",
    "compass": "magnetic",
    "magnetometer": "magnetic",
    "gnss": "gps",
    "motor": "motors",
}
#: Words that name no quantity.
_EMPTY = """the and not set fail failure failed preflight detected valid health checks arming error warning failsafe
estimate estimated signal connection control ground station stable unstable available high low loss lost timeout
sensor sensors"""
EMPTY = frozenset(_EMPTY.split())
#: Letters by which words are compared: *accelerometer* and *accelerometers* are one.
LETTERS = 6


@dataclass(frozen=True, slots=True, repr=False)
class Incident(Brief):
    """Something that happened.

    text      one sentence for people, without its times
    severity  ``error``, ``warn`` or ``note``; None for an event that is no fault
    level     syslog level by which it is sorted
    origin    ``health``, ``checks``, ``text``, ``summary``, ``problems``, ``check`` or ``events``
    source    detector and bound, topic or sender it comes from, for people
    spans     intervals in ns of the log's clock, first the one of *text*; empty if it has no time
    series    curves that show it
    more      what other sources say of the same moment
    """

    text: str
    severity: Severity | None
    level: int
    origin: str
    source: str = ""
    spans: tuple[Span, ...] = ()
    series: tuple[Series, ...] = ()
    more: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the incident as JSON data, times in ns of the log's clock."""
        return {
            "text": self.text,
            "severity": self.severity,
            "level": self.level,
            "origin": self.origin,
            "source": self.source,
            "spans_ns": [list(span) for span in self.spans],
            "series": [
                {
                    "topic": s.topic,
                    "field": s.field,
                    "function": s.function,
                    "label": s.label,
                    "unit": s.unit,
                    "where": s.where,
                }
                for s in self.series
            ],
            "more": list(self.more),
        }


@dataclass(frozen=True, slots=True, repr=False)
class Incidents(Brief):
    """All incidents of a log.

    faults   worst first, then by time
    events   what happened that is no fault, by time
    summary  what the recording is
    health   what the detectors say; also what they looked at, and what they could not
    """

    faults: tuple[Incident, ...]
    events: tuple[Incident, ...]
    summary: Summary
    health: Health

    def __iter__(self) -> Iterator[Incident]:
        yield from self.faults
        yield from self.events


def incidents(log: Log, *, max_messages: int | None = None) -> Incidents:
    """Return what went wrong in an open log, worst first, and what else happened.

    max_messages  bounds time and memory, as for ``summary``; detectors do not see the larger channels either. None: all
                  channels are read
    """
    about = summary(log, max_messages=max_messages)
    selected = log
    if max_messages is not None and "left_out" in about:
        left_out = {fact.key for fact in about["left_out"]}
        selected = log.derive(shown={ch.number for name, ch in log.channels.items() if name not in left_out})
    detected = health(selected)
    curves = _Curves(log)
    spoken = [*_checks(about, curves), *_texts(log, about, curves)]
    faults = [
        *_problems(log, curves),
        *_joined(spoken, _facts(about, detected, curves)),
        *_detections(detected.detections, curves),
        *_quick_checks(selected, curves),
    ]
    faults.sort(
        key=lambda incident: (
            incident.level,
            not incident.spans,
            incident.spans[0][0] if incident.spans else 0,
        )
    )
    events = sorted(_events(about, curves), key=lambda incident: incident.spans[0][0])
    return Incidents(tuple(faults[:LISTED]), tuple(events[:LISTED]), about, detected)


def _severity(level: int | None) -> Severity:
    return "note" if level is None or level > WARNING else "warn" if level == WARNING else "error"


# ------------------------------------------------------------------------------------------------------- curves


class _Curves:
    """Finds the curves of an incident: of fields that it names, of a topic, or of a chart with the same words."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._charts = [chart for chart in charts(log) if chart.kind == LINE]
        self._known = {(s.topic, s.field): s for chart in self._charts for s in chart.series if not s.where}
        self._words = [_chart_words(chart) for chart in self._charts]

    def of_fields(self, topics: Iterable[str], fields: Iterable[str]) -> tuple[Series, ...]:
        """Return the curves of *fields* of those *topics* that have them."""
        return tuple(
            self._known.get((topic, field)) or Series(topic, field)
            for topic in topics
            for field in fields
            if self._has(topic, field)
        )[:CURVES]

    def of_times(self, topics: Iterable[str]) -> tuple[Series, ...]:
        """Return the time between messages of *topics*."""
        present = [topic for topic in topics if topic in self._log.channels and len(self._log[topic]) > 1]
        return tuple(Series(topic, "", "interval", f"{topic} interval", "ms") for topic in present[:CURVES])

    def of_topics(self, topics: Iterable[str]) -> tuple[Series, ...]:
        """Return the curves of the first chart of *topics*, else the time between their messages."""
        wanted = list(topics)
        for chart in self._charts:
            series = tuple(s for s in chart.series if s.topic in wanted)
            if series:
                return series[:CURVES]
        return self.of_times(wanted)

    def of_text(self, text: str) -> tuple[Series, ...]:
        """Return the curves of the chart whose title and labels share most words with *text*, if any does."""
        words = _words(text)
        scores = [
            3 * len(words & title) + len(words & group) + 2 * len(words & labels)
            for title, group, labels in self._words
        ]
        best = max(scores, default=0)
        return self._charts[scores.index(best)].series[:CURVES] if best > 1 else ()

    def of_note(self, note: str) -> tuple[Series, ...]:
        """Return the curve of the field that a note begins with, such as ``battery_status.warning``."""
        topic, _, rest = note.partition(".")
        field = re.match(r"[\w.\[\]]*", rest)
        return self.of_fields([topic], [field[0]]) if field and field[0] else ()

    def _has(self, topic: str, field: str) -> bool:
        from logreel.log.topic_fields import check_fields

        ch = self._log.channels.get(topic)
        if ch is None or not len(ch):
            return False
        with suppress(LogError):
            check_fields(ch, [field])
            return True
        return False


def _words(text: str) -> set[str]:
    words = set(_WORD.findall(text.lower().replace("_", " "))) - EMPTY
    return {SAME.get(word, word)[:LETTERS] for word in words}


def _terms(text: str) -> list[str]:
    """Return all words and numbers of a text in order: *A hits B* and *B hits A* have the same."""
    return sorted(_TERM.findall(text.casefold()))


def _chart_words(chart: Chart) -> tuple[set[str], set[str], set[str]]:
    return _words(chart.title), _words(chart.group), _words(" ".join(s.label for s in chart.series))


# ------------------------------------------------------------------------------------------------------ sources


def _problems(log: Log, curves: _Curves) -> Iterator[Incident]:
    """Yield what could not be read, with the times of the messages around it if they are known."""
    every = log.problems[:LISTED]
    largest = sorted((ch for ch in log.channels.values() if not ch.reserved), key=len)[: -BUSY - 1 : -1]
    # Where messages are missing, the time between those that are there is long.
    series = curves.of_times(ch.topic for ch in largest) if every else ()
    places: dict[int, Span] = {}
    # A log of several files has no places of its own.
    timed = [n for n, p in enumerate(every) if p.size or p.lost][:TIMED]
    if timed and len(log.parts) == 1 and log.parts[0] is log:
        from logreel.ops.rewrite.recover import losses

        for n, loss in zip(timed, losses(log, [every[n] for n in timed]), strict=True):
            around = [time for time in (loss.start_ns, loss.end_ns) if time is not None]
            if around:
                places[n] = (min(around), max(around))
    for n, problem in enumerate(every):
        level = ERROR if problem.lost else WARNING
        where = f"{problem.code}, byte {problem.offset}" if problem.offset or problem.size else problem.code
        spans = (places[n],) if n in places else ()
        yield Incident(
            problem.text, _severity(level), level, "problems", where, spans, series if spans else ()
        )


def _detections(detections: Sequence[Detection], curves: _Curves) -> Iterator[Incident]:
    """Yield what the detectors found; one that tells the same of the same fields several times is one detection."""
    groups: dict[tuple[Any, ...], list[Detection]] = {}
    for detection in detections:
        alone = detection.text if not detection.fields else ""
        groups.setdefault(
            (detection.detector, detection.severity, detection.topics, detection.fields, alone), []
        ).append(detection)
    for alike in groups.values():
        first = max(alike, key=lambda detection: detection.end - detection.start)
        others = [detection for detection in alike if detection is not first]
        if first.fields:
            series = curves.of_fields(first.topics, first.fields)
        elif first.detector in OF_TIMES:
            series = curves.of_times(first.topics)
        else:
            series = curves.of_topics(first.topics)
        bound = f": {first.threshold}" if first.threshold else ""
        spans = ((first.start, first.end), *sorted((detection.start, detection.end) for detection in others))
        yield Incident(
            _WHEN.sub("", first.text),
            first.severity,
            _SEVERITY[first.severity],
            "health",
            f"{first.detector}{bound}"
            + (f" ({first.source})" if first.source not in ("", "logreel") else ""),
            spans,
            series,
        )


def _spoken(facts: Iterable[Fact]) -> Iterator[tuple[Fact, dict[str, Any]]]:
    """Yield facts that are sentences of the log, with their values."""
    for fact in facts:
        if isinstance(fact.value, dict) and "first_ns" in fact.value and "text" in fact.value:
            yield fact, fact.value


def is_spoken(section: Section, fact: Fact) -> bool:
    """Return whether an incident tells a fact of a summary in its own words, with its times."""
    return section.key in SPOKEN and isinstance(fact.value, dict) and "first_ns" in fact.value


def _section(about: Summary, key: str) -> tuple[Fact, ...]:
    return about[key].facts if key in about else ()


def _checks(about: Summary, curves: _Curves) -> Iterator[Incident]:
    """Yield the checks that failed; those that failed before the vehicle was armed are notes."""
    for fact, value in _spoken(_section(about, "checks")):
        level = NOTICE if fact.level is None else fact.level
        began = ", began while armed" if value.get("began_while_armed") else ""
        count = value["count"]
        source = f"failing check in {count} report{'s' * (count != 1)}{began}"
        span = (value["first_ns"], value["last_ns"])
        yield Incident(
            value["text"],
            _severity(fact.level),
            level,
            "checks",
            source,
            (span,),
            curves.of_text(value["text"]),
        )


def _texts(log: Log, about: Summary, curves: _Curves) -> Iterator[Incident]:
    """Yield the errors and warnings among the lines of text."""
    for fact, value in _spoken(_section(about, "text")):
        level = NOTICE if fact.level is None else fact.level
        count = value["count"]
        source = ", ".join(
            part for part in (value["source"] or "text", f"{count} times" if count > 1 else "") if part
        )
        span = (value["first_ns"], value["last_ns"])
        series = curves.of_text(value["text"])
        text = sentence_of(log, value["text"])
        yield Incident(text, _severity(level), level, "text", source, (span,), series)


def _facts(about: Summary, result: Health, curves: _Curves) -> Iterator[Incident]:
    """Yield the facts of the summary that deserve attention and that no detector tells."""
    detected = {detection.detector for detection in result.worse("warn")}
    for section, fact in about.findings:
        told = any(
            name == section.key and fact.key.startswith(start) and detector in detected
            for (name, start), detector in TOLD.items()
        )
        if told or is_spoken(section, fact) or (section.key, fact.key) == ("recording", "problems"):
            continue
        level = fact.level or ERROR
        yield Incident(
            f"{fact.label}: {fact.text}",
            _severity(level),
            level,
            "summary",
            section.title + (f", {fact.note}" if fact.note else ""),
            tuple((time, time) for time in fact.times),
            curves.of_note(fact.note) or curves.of_text(f"{section.title} {fact.label}"),
        )


def _joined(spoken: Sequence[Incident], facts: Iterable[Incident]) -> list[Incident]:
    """Return sentences and facts; what several say of one moment and thing is told by the most severe of them."""
    kept: list[Incident] = []
    for incident in sorted(spoken, key=lambda incident: incident.level):
        begin, words = incident.spans[0][0], _words(incident.text)
        same = next(
            (
                n
                for n, other in enumerate(kept)
                if abs(other.spans[0][0] - begin) <= MOMENT
                and (
                    words & _words(other.text)
                    if other.origin != incident.origin
                    else _terms(other.text) == _terms(incident.text)
                )
            ),
            None,
        )
        if same is None:
            kept.append(incident)
        elif incident.text.casefold() not in map(str.casefold, (kept[same].text, *kept[same].more)):
            kept[same] = replace(kept[same], more=(*kept[same].more, incident.text))
    for fact in facts:
        near = [
            next(
                (
                    n
                    for n, incident in enumerate(kept)
                    if incident.spans and abs(incident.spans[0][0] - time) <= MOMENT
                ),
                None,
            )
            for time, _ in fact.spans
        ]
        told = [n for n in near if n is not None and kept[n].level <= fact.level]
        if not fact.spans or len(told) < len(near):
            kept.append(fact)
        elif len(told) == 1:
            kept[told[0]] = replace(kept[told[0]], more=(*kept[told[0]].more, _WHEN.sub("", fact.text)))
    return kept


def _quick_checks(log: Log, curves: _Curves) -> Iterator[Incident]:
    """Yield what the times and positions of messages show, without what the reader and the detectors tell."""
    problems = {problem.text for problem in log.problems}
    for finding in quick_check(log).findings:
        if finding.code in DOUBLED or finding.text in problems:
            continue
        topics = [finding.topic] if finding.topic else []
        level = _SEVERITY[finding.severity]
        spans = ((finding.time_ns, finding.time_ns),) if finding.time_ns is not None else ()
        text = f"{finding.topic}: {finding.text}" if finding.topic else finding.text
        yield Incident(
            text, finding.severity, level, "check", f"check: {finding.code}", spans, curves.of_times(topics)
        )


def _events(about: Summary, curves: _Curves) -> Iterator[Incident]:
    """Yield take-offs, changes of mode and other events that are no faults."""
    told = [pair for pair in _spoken(_section(about, "events")) if pair[0].level is None]
    # Events say why a vehicle is armed or takes off, its state only when.
    phases = () if told else ("armed", "air")
    for band in about.bands:
        if band.kind in ("mode", *phases) and band.start != about.start_ns:
            text = f"Mode {band.label}" if band.kind == "mode" else f"{band.label} begins"
            yield Incident(text, None, NOTICE, "events", band.source, ((band.start, band.start),))
        if band.kind in phases and band.end != about.end_ns:
            yield Incident(f"{band.label} ends", None, NOTICE, "events", band.source, ((band.end, band.end),))
    for _, value in told:
        moments = dict.fromkeys((value["first_ns"], value.get("last_ns", value["first_ns"])))
        source, spans = value.get("source") or "event", tuple((moment, moment) for moment in moments)
        yield Incident(value["text"], None, NOTICE, "events", source, spans, curves.of_text(value["text"]))


def looked_at(result: Incidents) -> str:
    """Return a sentence about what was looked at, for a log without a fault."""
    names = ", ".join(s.title.lower() for s in result.summary if s.key not in ("recording", "left_out"))
    about = f" The summary is about {names}." if names else ""
    count = len(result.health.clean)
    if not count:
        return (
            "The reader, the checks of times and the text of the log tell no fault;"
            f" no detector had the data that it needs.{about}"
        )
    detectors = f"{count} detector{'s' * (count != 1)}"
    return (
        f"No fault was found by {detectors}, the checks of times, the reader and the text of the log.{about}"
    )
