"""Check of a log for damage, inconsistencies and types, from its reader and from reading all of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from logreel.errors import Finding, LogError, Severity
from logreel.log.joined_log import JoinedLog
from logreel.log.log import Log
from logreel.log.shown import Block, Tabular
from logreel.log.times import Time
from logreel.ops.inspect.content_checks import duplicates, payloads
from logreel.ops.inspect.contract import Contract, read_contract
from logreel.ops.inspect.time_checks import backwards, gaps, jumps
from logreel.ops.rewrite.selected_log import selected_log
from logreel.ops.selection import Selection
from logreel.registry.open_logs import as_open_log, read_itself

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.joined_log import Openable
    from logreel.ops.migrate.plan import ChannelPlan, Files


def type_check(rules: Files = (), to: Files = ()) -> Callable[[Log], Iterator[Finding]]:
    """Return a check that compares the type of each channel with the version wanted.

    rules, to  as for ``logreel.migrate``

    Codes: ``type-migrates`` the type is another version, and messages can be migrated; ``type-rule-missing`` a rule is
    missing for that; ``type-differs`` another version is known, to which no rule leads; ``type-unknown`` no definition
    to compare with. Raises the errors of ``logreel.migrate`` for rules that cannot be used.
    """
    from logreel.ops.migrate.plan import Planner

    planner = Planner(rules, to)

    def types(log: Log) -> Iterator[Finding]:
        for plan in planner.plans(log):
            finding = _finding(plan)
            if finding is not None:
                yield finding

    return types


def _finding(plan: ChannelPlan) -> Finding | None:
    topic = plan.channel.topic
    if plan.state == "migrates" and plan.path is not None:
        count = len(plan.rules)
        by = f"by {count} rule{'s' * (count > 1)}" if count else "without rules"
        text = f"{plan.path.old.label} would become {plan.path.new.label} {by}"
        return Finding("type-migrates", "warn", None, 0, text, topic)
    if plan.state == "missing":
        return Finding("type-rule-missing", "warn", None, 0, plan.text, topic)
    if plan.state == "differs":
        return Finding("type-differs", "warn", None, 0, plan.text, topic)
    if plan.state == "unknown":
        return Finding("type-unknown", "note", None, 0, plan.text, topic)
    return None


#: More findings of one code, severity and channel than this are joined into one.
ALIKE = 10

Battery = Callable[[Log], Iterable[Finding]]


@dataclass(frozen=True, slots=True, repr=False)
class Checked(Tabular):
    """Findings in one log, in file order; those without an offset come last."""

    path: str
    format: str
    findings: tuple[Finding, ...]

    def worse(self, severity: Severity) -> list[Finding]:
        """Return the findings of at least *severity*."""
        return [finding for finding in self.findings if finding.at_least(severity)]

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON data of ``check --json``."""
        findings = [finding.as_dict() for finding in self.findings]
        return {"path": self.path, "format": self.format, "findings": findings}

    def _blocks(self) -> Iterator[Block]:
        count = len(self.findings)
        told = f"{count} finding{'s' * (count != 1)}" if count else "sound"
        rows = [
            (
                finding.severity,
                finding.code,
                finding.topic or "",
                finding.text,
                "" if finding.offset is None else f"byte {finding.offset}",
            )
            for finding in self.findings
        ]
        yield Block(
            f"{self.path}: {told}", ("severity", "code", "topic", "finding", "place") if rows else (), rows
        )


def check(
    what: Openable | Log,
    *,
    topics: str | Iterable[str] | None = None,
    exclude: str | Iterable[str] = (),
    start: Time | None = None,
    end: Time | None = None,
    where: str | Iterable[str] = (),
    contract: str | os.PathLike[str] | Mapping[str, Any] | Contract | None = None,
    types: bool = False,
    rules: Files = (),
    to: Files = (),
    definitions: Definitions = (),
) -> Checked:
    """Check a log: an open Log, or anything that ``logreel.open`` takes.

    topics, exclude, start, end, where  ask about a part of the log, as for ``slice``; see ``Selection``
    contract     additional requirements: a TOML file, or its content as a mapping
    types        also compare the types of channels with known definitions
    rules, to    as for ``logreel.migrate``; imply *types*, and say what would be migrated
    definitions  as for ``logreel.open``

    Reads the whole file: of a part of a log, what its structure holds is that of all of it, and what its messages say
    is that of the part. Raises what ``logreel.open`` raises, and UsageError for a contract or rules that cannot be
    read.
    """
    batteries = BATTERIES if contract is None else (*BATTERIES, read_contract(contract).findings)
    if types or rules or to:
        batteries = (*batteries, type_check(rules, to))
    selection = Selection(topics, exclude, start, end, where)
    with as_open_log(what, definitions) as opened:
        log = read_itself(opened)
        if not selection.is_part:
            return _checked(log, batteries)
        with selected_log(log, selection) as part:
            in_part = [battery for battery in batteries if battery not in OF_STRUCTURE]
            findings = [
                replace(finding, offset=None) for battery in in_part for finding in _findings(battery, part)
            ]
        return _sorted(log, [*(f for battery in OF_STRUCTURE for f in _findings(battery, log)), *findings])


def quick_check(log: Log) -> Checked:
    """Check *log* for what the times and positions of messages show; reads no messages."""
    return _checked(log, QUICK)


def _checked(log: Log, batteries: Iterable[Battery]) -> Checked:
    return _sorted(log, (finding for battery in batteries for finding in _findings(battery, log)))


def _sorted(log: Log, findings: Iterable[Finding]) -> Checked:
    different = dict.fromkeys(findings)
    placed = sorted(_with_few_of_each_kind(different), key=lambda f: (f.offset is None, f.offset or 0))
    return Checked(log.name, log.format, tuple(placed))


def _findings(battery: Battery, log: Log) -> Iterator[Finding]:
    """Yield the findings of a battery; what concerns single files is looked for in each file of several."""
    if not (isinstance(log, JoinedLog) and battery in OF_FILES):
        yield from battery(log)
        return
    for part in log.parts:
        yield from (replace(finding, text=f"{part.name}: {finding.text}") for finding in battery(part))


def _with_few_of_each_kind(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the findings, with one finding in place of more than ALIKE of the same kind."""
    groups: dict[tuple[Any, ...], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.code, finding.severity, finding.topic), []).append(finding)
    for alike in groups.values():
        yield from alike if len(alike) <= ALIKE else [_as_one(alike)]


def _as_one(findings: list[Finding]) -> Finding:
    first = min(findings, key=lambda f: (f.offset is None, f.offset or 0))
    worst = max(findings, key=lambda f: f.size)
    text = f"{first.text}; and {len(findings) - 1} more like it"
    if worst.size:
        text += f", the largest at byte {worst.offset}: {worst.size} bytes"
    size, count = sum(f.size for f in findings), sum(f.count for f in findings)
    return replace(first, text=text, size=size, count=count)


def _problems(log: Log) -> Iterator[Finding]:
    """Yield the problems of the reader; reads all parts of an index that is read in parts."""
    _ = log.index.table.counts
    yield from map(Finding.of, log.problems)


def _definitions(log: Log) -> Iterator[Finding]:
    """Yield a finding for each definition that cannot be used, and for problems found meanwhile."""
    for ch in log.channels.values():
        try:
            _ = ch.layout
        except LogError as error:
            yield Finding("definition", "warn", None, 0, error.text, ch.topic)
    yield from map(Finding.of, log.problems)


def _utc(log: Log) -> Iterator[Finding]:
    """Yield a finding for each source of UTC in the log that differs from the one that is used."""
    for text in log.utc_notes:
        yield Finding("utc", "note", None, 0, text)


def _dropouts(log: Log) -> Iterator[Finding]:
    """Yield a finding for the dropouts that the logger reports."""
    for ch in log.channels.values():
        if ch.topic.split("@")[0] == "~dropout" and len(ch):
            n = len(ch)
            text = f"the logger reports {n} dropout{'s' * (n > 1)}: it could not keep up"
            yield Finding("dropout", "note", None, 0, text, ch.topic, ch.start, n)


#: Functions from a Log to findings; each checks the whole log.
BATTERIES: tuple[Battery, ...] = (
    _problems,
    backwards,
    jumps,
    gaps,
    duplicates,
    payloads,
    _utc,
    _dropouts,
    Log.verify,
    _definitions,
)
#: Those that read times and positions of messages, but not what is in them.
QUICK: tuple[Battery, ...] = (_problems, backwards, jumps, gaps, _dropouts, _definitions)
#: Those that judge the file and not what its messages say.
OF_STRUCTURE: tuple[Battery, ...] = (_problems, payloads, Log.verify, _definitions)
#: Those that look for defects of single files.
OF_FILES: tuple[Battery, ...] = (payloads, Log.verify, _definitions)
