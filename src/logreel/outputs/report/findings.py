"""What a reader should know first: losses, gaps, failsafes and errors, each as a sentence with its time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from logreel.log.times import duration_text
from logreel.ops.inspect.check import quick_check
from logreel.ops.inspect.text import level_name

if TYPE_CHECKING:
    from logreel.lenses.charts import Band
    from logreel.log.log import Log
    from logreel.log.scan import TextLine
    from logreel.ops.inspect.summary import Summary

BAD, WARN, NOTE, GOOD = "bad", "warn", "note", "good"
#: Syslog levels of errors, and of warnings.
ERROR, WARNING = 3, 4
#: Keys of sections and facts of a summary that are told otherwise: with their times, or in the head.
ELSEWHERE = {"recording", "text", "failsafe", "dropouts"}
#: Most lines of text, and most findings of one kind, that are told one by one.
FEW = 6


@dataclass(frozen=True, slots=True)
class Told:
    """One finding: ``bad``, ``warn``, ``note`` or ``good``; time in ns of the log's clock, or None."""

    severity: str
    text: str
    time: int | None = None


def findings(log: Log, about: Summary, bands: Sequence[Band], lines: Sequence[TextLine]) -> list[Told]:
    """Return the findings, worst first; if nothing is wrong, one that says what was looked at.

    about         what happened in the log
    bands, lines  those of the part that is shown
    """
    found = [*_damage(log), *_failsafes(bands), *_facts(about), *_text(lines), *_checks(log)]
    order = (BAD, WARN, NOTE)
    if not any(one.severity in (BAD, WARN) for one in found):
        other = "other " if any(_is_failed_check(line) for line in lines) else ""
        looked = (
            "no damage, no jumps of the clock, no gaps in regular channels, no failsafe, "
            f"no {other}error in the text"
        )
        found.append(Told(GOOD, f"Nothing conspicuous: {looked}."))
    return sorted(found, key=lambda one: (*order, GOOD).index(one.severity))


def _damage(log: Log) -> Iterator[Told]:
    lost = [problem for problem in log.problems if problem.lost]
    if lost:
        size = sum(problem.size for problem in lost)
        where = "one place" if len(lost) == 1 else f"{len(lost)} places"
        yield Told(BAD, f"{size} bytes in {where} of the file could not be read; see Problems.")


def _facts(about: Summary) -> Iterator[Told]:
    """Yield the facts that deserve attention, except what other findings say with their times."""
    for section, fact in about.findings:
        if section.key not in ELSEWHERE and fact.key not in ELSEWHERE:
            severity = BAD if fact.level is not None and fact.level <= ERROR else WARN
            yield Told(severity, f"{section.title}, {fact.label}: {fact.text}")


def _failsafes(bands: Sequence[Band]) -> Iterator[Told]:
    some = [band for band in bands if band.kind == "failsafe"]
    for band in some[:FEW]:
        yield Told(BAD, f"{band.label} for {duration_text(band.end - band.start)}.", band.start)
    if len(some) > FEW:
        yield Told(BAD, f"{len(some) - FEW} more times in failsafe.", some[FEW].start)


def _is_failed_check(line: TextLine) -> bool:
    """Return whether a line is a check that failed with an error, as most do before a take-off."""
    return line.kind == "check" and line.level is not None and line.level <= ERROR


def _text(every: Sequence[TextLine]) -> Iterator[Told]:
    # Most checks fail before each take-off; the summary has those that begin to fail afterwards.
    checks = list(dict.fromkeys(line.text.strip() for line in every if _is_failed_check(line)))
    if checks:
        more = f" and {len(checks) - FEW} more" if len(checks) > FEW else ""
        failed = "A check failed" if len(checks) == 1 else f"{len(checks)} checks failed"
        began = next(line.time for line in every if _is_failed_check(line))
        yield Told(NOTE, f"{failed} with an error: {'; '.join(checks[:FEW])}{more}.", began)
    lines = [line for line in every if line.kind != "check"]
    errors = [line for line in lines if line.level is not None and line.level <= ERROR]
    for line in errors[:FEW]:
        yield Told(BAD, f"{level_name(line.level).capitalize()}: {line.text}", line.time)
    if len(errors) > FEW:
        yield Told(BAD, f"{len(errors) - FEW} more errors in the text.", errors[FEW].time)
    warnings = [line for line in lines if line.level == WARNING]
    counts = Counter(line.text for line in warnings)
    first = {line.text: line.time for line in reversed(warnings)}
    for text, count in counts.most_common(FEW):
        yield Told(WARN, f"Warning: {text}" + (f" ({count} times)" if count > 1 else ""), first[text])
    rest = sum(count for _, count in counts.most_common()[FEW:])
    if rest:
        yield Told(WARN, f"{rest} more warnings in the text.")


def _checks(log: Log) -> Iterator[Told]:
    """Yield what times and positions of messages show, except lost bytes, which are told already."""
    lost = {(problem.code, problem.offset) for problem in log.problems if problem.lost}
    for finding in quick_check(log).findings:
        if (finding.code, finding.offset) in lost:
            continue
        severity = NOTE if finding.severity == "note" else WARN
        topic = f"{finding.topic}: " if finding.topic else ""
        yield Told(severity, f"{topic}{finding.text}", finding.time_ns)
