"""Whether a log is sound: what its reader found, and what reading all of it tells."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from logreel.errors import Finding, LogError, Severity
from logreel.log.brief import Brief
from logreel.log.log import Log
from logreel.ops.inspect.checks.clock import backwards
from logreel.ops.inspect.checks.duplicates import duplicates
from logreel.ops.inspect.checks.gaps import gaps
from logreel.ops.inspect.checks.jumps import jumps
from logreel.ops.inspect.checks.payloads import payloads
from logreel.ops.inspect.contract import Contract, read_contract
from logreel.ops.json_values import opened

if TYPE_CHECKING:
    from logreel.io.source import Definitions, Readable

#: So many findings of one kind and channel are told one by one; more become one.
ALIKE = 10


@dataclass(frozen=True, slots=True, repr=False)
class Checked(Brief):
    """One log and what was found in it, in file order; findings without a place come last."""

    path: str
    format: str
    findings: tuple[Finding, ...]

    def worse(self, severity: Severity) -> list[Finding]:
        """The findings that are as bad as *severity* or worse."""
        return [finding for finding in self.findings if finding.at_least(severity)]

    def as_dict(self) -> dict[str, Any]:
        """The plain data of ``check --json``."""
        findings = [finding.as_dict() for finding in self.findings]
        return {"path": self.path, "format": self.format, "findings": findings}


def check(
    what: Readable | Log,
    *,
    contract: str | os.PathLike[str] | Mapping[str, Any] | Contract | None = None,
    definitions: Definitions = (),
) -> Checked:
    """What is wrong with a log: an open Log, or anything that ``logreel.open`` takes.

    contract     what the log must hold besides: a TOML file, or the same as a mapping
    definitions  as for ``logreel.open``

    Reads the whole file. Raises what ``logreel.open`` raises, and UsageError for a contract that cannot be read.
    """
    batteries = BATTERIES if contract is None else (*BATTERIES, read_contract(contract).findings)
    with opened(what, definitions) as log:
        found = dict.fromkeys(finding for battery in batteries for finding in battery(log))
        placed = sorted(_collapsed(found), key=lambda f: (f.offset is None, f.offset or 0))
        return Checked(log.name, log.format, tuple(placed))


def _collapsed(found: Iterable[Finding]) -> Iterator[Finding]:
    """The same with one finding in the place of very many that are alike."""
    groups: dict[tuple[Any, ...], list[Finding]] = {}
    for one in found:
        groups.setdefault((one.code, one.severity, one.topic), []).append(one)
    for some in groups.values():
        yield from some if len(some) <= ALIKE else [_as_one(some)]


def _as_one(some: list[Finding]) -> Finding:
    first = min(some, key=lambda f: (f.offset is None, f.offset or 0))
    worst = max(some, key=lambda f: f.size)
    text = f"{first.text}; and {len(some) - 1} more like it"
    if worst.size:
        text += f", the largest at byte {worst.offset}: {worst.size} bytes"
    size, count = sum(f.size for f in some), sum(f.count for f in some)
    return replace(first, text=text, size=size, count=count)


def _problems(log: Log) -> Iterator[Finding]:
    """What the reader met; of an index that is read part by part, all parts."""
    _ = log.index.table.counts
    yield from map(Finding.of, log.problems)


def _definitions(log: Log) -> Iterator[Finding]:
    """Definitions that cannot be used, or are not those that the log says they are."""
    for ch in log.channels.values():
        try:
            _ = ch.layout
        except LogError as error:
            yield Finding("definition", "warn", None, 0, error.text, ch.topic)
    yield from map(Finding.of, log.problems)


def _dropouts(log: Log) -> Iterator[Finding]:
    """What the logger itself reports as lost."""
    for ch in log.channels.values():
        if ch.topic.split("@")[0] == "~dropout" and len(ch):
            n = len(ch)
            text = f"the logger reports {n} dropout{'s' * (n > 1)}: it could not keep up"
            yield Finding("dropout", "note", None, 0, text, ch.topic, ch.start, n)


#: Each looks at a log as a whole; a new one is a function and a line here.
BATTERIES: tuple[Callable[[Log], Iterable[Finding]], ...] = (
    _problems,
    backwards,
    jumps,
    gaps,
    duplicates,
    payloads,
    _dropouts,
    Log.verify,
    _definitions,
)
