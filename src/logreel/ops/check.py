"""Whether a log is sound: what its reader found, and what reading all of it tells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from logreel.errors import Finding, LogError, Severity
from logreel.model.log import Log
from logreel.ops.plain import opened

if TYPE_CHECKING:
    from logreel.model.source import Readable


@dataclass(frozen=True, slots=True)
class Checked:
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


def check(what: Readable | Log) -> Checked:
    """What is wrong with a log: an open Log, or anything that ``logreel.open`` takes.

    Reads the whole file. Raises what ``logreel.open`` raises.
    """
    with opened(what) as log:
        found = dict.fromkeys(finding for battery in BATTERIES for finding in battery(log))
        placed = sorted(found, key=lambda f: (f.offset is None, f.offset or 0))
        return Checked(log.name, log.format, tuple(placed))


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


#: Each looks at a log as a whole; a new one is a function and a line here.
BATTERIES: tuple[Callable[[Log], Iterable[Finding]], ...] = (_problems, Log.verify, _definitions)
