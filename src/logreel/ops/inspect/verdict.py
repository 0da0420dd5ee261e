"""Verdicts on runs: for each line of a contract, whether a log keeps it, breaks it, or could not be assessed.

``logreel.ci`` writes them for programs that read test results; ``check`` only says what is wrong.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from logreel.dataclass import dataclass, field
from logreel.errors import Finding, LogError, Severity
from logreel.log.scan import Brief
from logreel.log.times import SECOND
from logreel.ops.inspect.check import check
from logreel.ops.inspect.contract import NOT_ASSESSED, SKIPPED, Contract, Rules
from logreel.ops.toml_lines import key_text, line_of, path_of
from logreel.registry.open import as_open_log, read_itself

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.joined_log import Openable
    from logreel.log.log import Log

#: What becomes of a line of a contract.
KEPT, BROKEN, NO_ANSWER = "kept", "broken", "not assessed"
#: Keys that require nothing by themselves.
_NO_LINES = ("required", "window")


@dataclass(frozen=True, slots=True)
class LineVerdict:
    """One line of a contract and one run.

    rule      keys of the line with dots, as in TOML
    outcome   ``kept``, ``broken`` or ``not assessed``
    findings  what breaks it, first onset first
    reason    why it was not assessed; else empty
    """

    rule: str
    outcome: str
    findings: tuple[Finding, ...] = ()
    reason: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the line as plain data."""
        values = {"rule": self.rule, "outcome": self.outcome}
        if self.findings:
            return {**values, "findings": [finding.as_dict() for finding in self.findings]}
        return {**values, "reason": self.reason} if self.reason else values


@dataclass(frozen=True, slots=True, repr=False)
class RunVerdict(Brief):
    """One run and a contract.

    path      the log, as the caller named it
    files     the files that are opened as this log: several of a split recording
    start_ns, end_ns  first and last time of its messages, ns of its clock; None without messages
    lines     verdict on each line of the contract
    findings  what ``check`` finds besides the contract
    not_assessed  notes about what the contract does not name, such as other topics and modes
    error     why the log could not be judged; empty if it could
    """

    path: str
    format: str = ""
    start_ns: int | None = None
    end_ns: int | None = None
    lines: tuple[LineVerdict, ...] = ()
    findings: tuple[Finding, ...] = ()
    not_assessed: tuple[str, ...] = ()
    error: str = ""
    files: tuple[str, ...] = ()
    #: The log's own findings of these severities count as failures.
    fail_on: Severity = field(default="warn")

    @property
    def broken(self) -> list[Finding]:
        """What breaks the contract, first onset first; what has no time comes last."""
        every = [finding for line in self.lines for finding in line.findings]
        return sorted(every, key=_onset)

    @property
    def defects(self) -> list[Finding]:
        """Findings besides the contract that are as severe as ``fail_on`` or worse."""
        return [finding for finding in self.findings if finding.at_least(self.fail_on)]

    @property
    def failed(self) -> bool:
        """Whether the log could not be opened, breaks the contract or has defects."""
        return bool(self.error or self.broken or self.defects)

    def seconds(self, time_ns: int | None) -> float | None:
        """Return a time in seconds since the start of the run."""
        return None if time_ns is None else (time_ns - (self.start_ns or 0)) / SECOND

    def as_dict(self) -> dict[str, Any]:
        """Return the verdict as plain data."""
        counts = {
            name: sum(line.outcome == name for line in self.lines) for name in (KEPT, BROKEN, NO_ANSWER)
        }
        values: dict[str, Any] = {
            "path": self.path,
            "files": [*self.files],
            "format": self.format,
            "failed": self.failed,
            "start_ns": self.start_ns,
            "end_ns": self.end_ns,
            "lines": {"kept": counts[KEPT], "broken": counts[BROKEN], "not_assessed": counts[NO_ANSWER]},
            "broken": [finding.as_dict() for finding in self.broken],
            "findings": [finding.as_dict() for finding in self.findings],
            "not_assessed": [
                *({"rule": x.rule, "reason": x.reason} for x in self.lines if x.outcome == NO_ANSWER),
                *({"rule": "", "reason": text} for text in self.not_assessed),
            ],
        }
        return values | ({"error": self.error} if self.error else {})


def _onset(finding: Finding) -> tuple[bool, bool, int]:
    # Times behind a clock that was set back are no order.
    return finding.code != "contract-order", finding.time_ns is None, finding.time_ns or 0


def judge(
    what: Openable | Log, contract: Contract, fail_on: Severity = "warn", definitions: Definitions = ()
) -> RunVerdict:
    """Return the verdict on a run: an open Log, or anything that ``logreel.open`` takes, which may raise."""
    with as_open_log(what, definitions) as opened:
        log = read_itself(opened)
        findings = check(opened).findings
        lines, others = line_verdicts(contract, contract.judged(log))
        return RunVerdict(
            opened.name, opened.format, log.start, log.end, lines, findings, others,
            files=tuple(part.name for part in opened.parts), fail_on=fail_on,
        )  # fmt: skip


def unreadable(path: str, error: LogError | OSError, fail_on: Severity = "warn") -> RunVerdict:
    """Return the verdict on a run that cannot be opened."""
    text = error.text if isinstance(error, LogError) else str(error)
    return RunVerdict(path, error=text, files=(path,), fail_on=fail_on)


def line_verdicts(
    contract: Contract, findings: Iterable[Finding]
) -> tuple[tuple[LineVerdict, ...], tuple[str, ...]]:
    """Return the verdict on each line of a contract, and notes that belong to no line."""
    broken: dict[str, list[Finding]] = {}
    silent: dict[str, str] = {}
    others: list[str] = []
    for finding in findings:
        if finding.code not in (NOT_ASSESSED, SKIPPED):
            broken.setdefault(finding.rule, []).append(finding)
        elif finding.rule:
            silent.setdefault(finding.rule, finding.text)
        else:
            others.append(finding.text)
    lines = lines_of(contract)
    verdicts = []
    # What is broken is told, also where it is a table whose lines cannot be assessed.
    for rule in [*lines, *(rule for rule in broken if rule not in set(lines))]:
        if rule in broken:
            verdicts.append(LineVerdict(rule, BROKEN, tuple(sorted(broken[rule], key=_onset))))
        elif (
            reason := _reason(rule, silent) or _reason(rule, {r: f[0].text for r, f in broken.items()})
        ) is not None:
            verdicts.append(LineVerdict(rule, NO_ANSWER, reason=reason))
        else:
            verdicts.append(LineVerdict(rule, KEPT))
    return tuple(verdicts), tuple(others)


def lines_of(contract: Contract) -> list[str]:
    """Return the lines that require something, as ``Finding.rule`` names them, in the order of the file."""
    rules = contract.rules
    own = [key for key in rules if key not in ("learned", "health", "text", "parameters")]
    health = rules.get("health", {})
    own += [f"health.{key}" for key in ("require", "forbid") if health.get(key)]
    own += [f"health.limits.{key_text(name)}" for name in health.get("limits", ())]
    own += ["text"] if "text" in rules else []
    own += [f"parameters.{key_text(name)}" for name in rules.get("parameters", {})]
    for pattern, inner in contract.topics.items():
        place = f"topics.{key_text(pattern)}"
        own += [f"{place}.required"] if inner.get("required", True) else []
        own += [f"{place}.{line}" for line in _inner_lines(inner)]
    return own


def _inner_lines(rules: Rules) -> Iterator[str]:
    """Yield the lines of the rules for a topic, a field or a mode that require something."""
    for key, value in rules.items():
        if key in ("values", "modes", "near"):
            for name, inner in value.items():
                place = f"{key}.{key_text(name)}"
                yield from (f"{place}.{line}" for line in _inner_lines(inner)) if key != "near" else (place,)
        elif key not in _NO_LINES and (key, value) not in (("nan", True), ("ordered", False)):
            yield key


def _reason(rule: str, reasons: Mapping[str, str]) -> str | None:
    """Return the reason for a line, or for a table that it is in."""
    return next((reasons[place] for place in _tables_of(rule) if place in reasons), None)


def _tables_of(rule: str) -> Iterable[str]:
    """Yield a line and its tables, inner ones first: ``a."b.c".d``, ``a."b.c"``, ``a``."""
    yield rule
    is_quoted = False
    for i in range(len(rule) - 1, -1, -1):
        if rule[i] == '"' and (i == 0 or rule[i - 1] != "\\"):
            is_quoted = not is_quoted
        elif rule[i] == "." and not is_quoted:
            yield rule[:i]


def rule_lines(path: str | os.PathLike[str] | None, rules: Sequence[str]) -> dict[str, int]:
    """Return the line number of each rule in the file of a contract; empty for a contract that is no file."""
    if path is None:
        return {}
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    return {rule: line_of(text, keys_of(rule)) for rule in rules}


def keys_of(rule: str) -> tuple[str, ...]:
    """Return the keys of a line."""
    try:
        return path_of(f"{rule} = 0")
    except tomllib.TOMLDecodeError:
        return ()
