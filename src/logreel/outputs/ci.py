"""Verdicts for programs that show test results: JUnit XML, SARIF, a summary in Markdown, and a page."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

from logreel._version import __version__
from logreel.errors import Finding, LogError, Severity, UsageError
from logreel.io.atomic_file import keep_sources
from logreel.log.scan import Brief
from logreel.log.source_files import decrypted_notes
from logreel.ops.inspect.contract import Contract, read_contract
from logreel.ops.inspect.verdict import (
    BROKEN,
    KEPT,
    NO_ANSWER,
    LineVerdict,
    RunVerdict,
    judge,
    rule_lines,
    unreadable,
)
from logreel.outputs.files import new_file
from logreel.outputs.page.html import printable
from logreel.outputs.page.verdict_page import finding_text, onset_text, outcome, verdict_page, worst_first
from logreel.registry.open import expand, open_log

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.joined_log import Openable
    from logreel.log.log import Log

JUNIT, SARIF, SUMMARY, PAGE = NAMES = "junit.xml", "results.sarif", "summary.md", "report.html"
#: Most lines of the summary, and of the three parts of it: runs, onsets of a run, and what was not assessed.
LINES, RUNS, ONSETS, SILENT = 60, 12, 6, 8
#: Longest text of a line of the summary.
LONGEST = 160
#: Most results of a SARIF file: servers take no more than 25 000 of a run.
RESULTS = 5000
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS = {"error": "error", "warn": "warning", "note": "note"}


@dataclass(frozen=True, repr=False)
class CiResult(Brief):
    """Verdicts on runs; ``logreel.ci`` returns it.

    runs      verdicts, in the order of the runs
    contract  the rules
    source    path of the contract; None if it is no file
    baseline  the good run that the page shows beside those that fail, or None
    opening   how runs are opened again for the page: keyword arguments of ``logreel.open``
    """

    runs: tuple[RunVerdict, ...]
    contract: Contract = field(repr=False)
    source: str | None = None
    baseline: Openable | Log | None = None
    opening: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def failed(self) -> bool:
        """Whether any run fails."""
        return any(run.failed for run in self.runs)

    @property
    def junit(self) -> str:
        """JUnit XML: a suite for each run, a case for each line of the contract."""
        return _junit(self.runs)

    @property
    def sarif(self) -> str:
        """SARIF 2.1.0: a result for each finding, a rule for each line of the contract that is broken."""
        return (
            json.dumps(_sarif(self.runs, self.source), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        )

    @property
    def markdown(self) -> str:
        """A summary of at most 60 lines: worst run first, first onset first."""
        return _markdown(self.runs)

    @property
    def page(self) -> str:
        """An offline page: the failing runs beside the baseline."""
        return verdict_page(self.runs, self.contract, self.baseline, self.opening)

    def save(self, folder: str | os.PathLike[str], *, force: bool = False) -> list[str]:
        """Write the four files into a folder, which is made if needed; return their paths.

        force  replace existing ones
        """
        os.makedirs(folder, exist_ok=True)
        paths = [os.path.join(folder, name) for name in NAMES]
        for path in paths:
            keep_sources(path, [name for run in self.runs for name in run.files or (run.path,)])
            if os.path.lexists(path) and not force:
                raise UsageError("there is a file already", path=path, hint="pass force=True")
        for path, text in zip(paths, (self.junit, self.sarif, self.markdown, self.page), strict=True):
            with new_file(path, force) as file:
                file.write(text.encode("utf-8", "replace"))
        return paths


def ci(
    runs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    contract: str | os.PathLike[str] | Mapping[str, Any] | Contract,
    *,
    baseline: Openable | Log | None = None,
    fail_on: Severity = "warn",
    decrypt: bool = False,
    definitions: Definitions = (),
) -> CiResult:
    """Judge runs by a contract, for programs that show test results: JUnit XML, SARIF, Markdown and a page.

    runs         paths of logs, folders and patterns
    contract     a TOML file, its content as a mapping, or a Contract
    baseline     a good run, which the page shows beside those that fail
    fail_on      lowest severity of findings besides the contract that fail a run
    decrypt, definitions  as for ``logreel.open``

    A run that cannot be opened is an error among the results. Raises UsageError for a contract that cannot be read, and
    if there is no run.
    """
    names = [runs] if isinstance(runs, str | os.PathLike) else list(runs)
    required = read_contract(contract)
    verdicts = []
    opening: dict[str, Any] = {"decrypt": decrypt, "definitions": definitions}
    for path in expand([os.fspath(name) for name in names]):
        try:
            with open_log(path, **opening) as log:
                decrypted_notes(log)
                verdicts.append(judge(log, required, fail_on))
        except UsageError:
            raise
        except (LogError, OSError) as error:
            verdicts.append(unreadable(path, error, fail_on))
    if not verdicts:
        raise UsageError("there is no run to judge")
    source = os.fspath(contract) if isinstance(contract, str | os.PathLike) else None
    return CiResult(tuple(verdicts), required, source, baseline, opening)


def _shown(text: object, longest: int = 2000) -> str:
    """Return text of a log on one line, as XML and Markdown can hold it."""
    line = printable(" ".join(str(text).split())).encode("utf-8", "replace").decode()
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def _said(run: RunVerdict, finding: Finding) -> str:
    at = onset_text(run, finding)
    return f"{finding_text(finding)}{f' (from {at})' if at else ''}"


# ------------------------------------------------------------------------------------------------------ JUnit XML


def _junit(runs: Sequence[RunVerdict]) -> str:
    suites = [_suite(run) for run in runs]
    totals = [sum(counts[i] for _, counts in suites) for i in range(4)]
    head = f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="logreel" {_counted(totals)}>\n'
    return "".join([head, *(text for text, _ in suites), "</testsuites>\n"])


def _counted(counts: Sequence[int]) -> str:
    names = ("tests", "failures", "errors", "skipped")
    return " ".join(f'{name}="{count}"' for name, count in zip(names, counts, strict=True))


def _suite(run: RunVerdict) -> tuple[str, tuple[int, int, int, int]]:
    """Return the suite of a run, and its counts of cases, failures, errors and skipped cases."""
    name = quoteattr(_shown(run.path))
    if run.error:
        case = _case(run, "opens", f'<error message={quoteattr(_shown(run.error))} type="unreadable"/>')
        counts = (1, 0, 1, 0)
        return f'<testsuite name={name} {_counted(counts)} time="0">\n{case}</testsuite>\n', counts
    failure = ""
    if run.defects:
        texts = [f"{finding.severity}: {finding.code}: {_said(run, finding)}" for finding in run.defects]
        failure = _failure(texts, "defect")
    cases = [_case(run, "the log is sound", failure), *(_line_case(run, line) for line in run.lines)]
    broken, silent = (sum(line.outcome == word for line in run.lines) for word in (BROKEN, NO_ANSWER))
    counts = (len(cases), broken + bool(failure), 0, silent)
    return f'<testsuite name={name} {_counted(counts)} time="0">\n{"".join(cases)}</testsuite>\n', counts


def _line_case(run: RunVerdict, line: LineVerdict) -> str:
    if line.outcome == KEPT:
        return _case(run, line.rule)
    if line.outcome == NO_ANSWER:
        return _case(run, line.rule, f"<skipped message={quoteattr(_shown(line.reason))}/>")
    return _case(run, line.rule, _failure([_said(run, finding) for finding in line.findings], "contract"))


def _failure(texts: Sequence[str], what: str) -> str:
    shown = [_shown(text) for text in texts]
    more = escape("\n".join(shown))
    return f'<failure message={quoteattr(shown[0])} type="{what}">{more}</failure>'


def _case(run: RunVerdict, name: str, inner: str = "") -> str:
    attributes = f'classname={quoteattr(_shown(run.path))} name={quoteattr(_shown(name))} time="0"'
    return f"<testcase {attributes}>{inner}</testcase>\n" if inner else f"<testcase {attributes}/>\n"


# ------------------------------------------------------------------------------------------------------ SARIF


def _sarif(runs: Sequence[RunVerdict], source: str | None) -> dict[str, Any]:
    told = [(run, finding) for run in worst_first(runs) for finding in (*run.broken, *run.findings)]
    shown = told[:RESULTS]
    ids = list(dict.fromkeys(finding.rule or finding.code for _, finding in shown))
    places = rule_lines(source, [finding.rule for _, finding in shown if finding.rule])
    errors = [run for run in runs if run.error]
    notes = [
        {"level": "error", "message": {"text": _shown(run.error)}, "locations": [_file(run)]}
        for run in errors
    ]
    for run in runs:
        silent = sum(line.outcome == NO_ANSWER for line in run.lines)
        if silent:
            text = f"{silent} of {len(run.lines)} lines of the contract could not be assessed"
            notes.append({"level": "note", "message": {"text": text}, "locations": [_file(run)]})
    if len(told) > len(shown):
        text = f"{len(told) - len(shown)} more findings are left out"
        notes.append({"level": "warning", "message": {"text": text}})
    results = [_result(run, finding, ids, source, places) for run, finding in shown]
    driver = {
        "name": "logreel",
        "version": __version__,
        "rules": [{"id": name, "shortDescription": {"text": _rule_text(name)}} for name in ids],
    }
    invocation = {"executionSuccessful": not errors, "toolExecutionNotifications": notes}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "invocations": [invocation],
                "results": results,
                "columnKind": "utf16CodeUnits",
            }
        ],
    }


def _rule_text(name: str) -> str:
    return f"The contract's line {name}" if "." in name or name == "text" else f"logreel check: {name}"


def _uri(path: str) -> str:
    """Return a path as a reference of a URI; addresses stay as they are."""
    return path if "://" in path else quote(path.replace(os.sep, "/"))


def _file(of: RunVerdict | str, **region: int) -> dict[str, Any]:
    """Return the location of a file; of a recording in several files, that of the first one."""
    path = of if isinstance(of, str) else (of.files or (of.path,))[0]
    place: dict[str, Any] = {"artifactLocation": {"uri": _uri(path)}}
    return {"physicalLocation": place | ({"region": region} if region else {})}


def _result(
    run: RunVerdict, finding: Finding, ids: Sequence[str], source: str | None, places: Mapping[str, int]
) -> dict[str, Any]:
    name = finding.rule or finding.code
    region = (
        {} if finding.offset is None else {"byteOffset": finding.offset, "byteLength": max(finding.size, 0)}
    )
    location = _file(run, **region)
    if finding.topic:
        location["logicalLocations"] = [{"name": finding.topic, "kind": "topic"}]
    identity = hashlib.sha256(f"{os.path.basename(run.path)}\0{name}\0{finding.topic}".encode()).hexdigest()[
        :32
    ]
    properties: dict[str, Any] = {
        "run": run.path,
        "topic": finding.topic,
        "time_ns": finding.time_ns,
        "count": finding.count,
    }
    properties["time_s"] = run.seconds(finding.time_ns)
    result = {
        "ruleId": name,
        "ruleIndex": ids.index(name),
        "level": LEVELS[finding.severity],
        "message": {"text": _shown(_said(run, finding))},
        "locations": [location],
        "partialFingerprints": {"logreel/v1": identity},
        "properties": {key: value for key, value in properties.items() if value is not None},
    }
    if source is not None and finding.rule in places:
        related = {
            "id": 1,
            **_file(source, startLine=places[finding.rule]),
            "message": {"text": "the contract"},
        }
        result["relatedLocations"] = [related]
    return result


# ------------------------------------------------------------------------------------------------------ Markdown


def _markdown(runs: Sequence[RunVerdict]) -> str:
    ordered = worst_first(runs)
    failed = [run for run in ordered if run.failed]
    plural = "s" * (len(runs) != 1)
    head = (
        f"## ❌ {len(failed)} of {len(runs)} run{plural} failed"
        if failed
        else f"## ✅ {len(runs)} run{plural} passed"
    )
    lines = [head, "", "| run | result | first onset | what |", "|---|---|---|---|"]
    for run in ordered[:RUNS]:
        first = next(iter((*run.broken, *run.defects)), None)
        cells = [run.path, outcome(run)]
        cells += ["", ""] if first is None else [onset_text(run, first), finding_text(first)]
        lines.append(f"| {' | '.join(map(_cell, cells))} |")
    if len(ordered) > RUNS:
        lines.append(f"| … | and {len(ordered) - RUNS} more runs | | |")
    # What is not assessed always has its place, below what is broken.
    tail = list(_silent_lines(ordered))
    room = LINES - len(lines) - len(tail) - 1
    for run in failed:
        part = list(_run_lines(run))
        if len(part) > room:
            break
        lines += part
        room -= len(part)
    return "\n".join([*lines, *tail][:LINES]) + "\n"


def _run_lines(run: RunVerdict) -> Iterator[str]:
    """Yield lines about a run that fails: first onset first."""
    if run.error:
        return
    yield from ("", f"**{_cell(run.path)}**, first onset first:", "")
    told = [*run.broken, *run.defects]
    for finding in told[:ONSETS]:
        at = onset_text(run, finding)
        rule = (
            f" `{_shown(finding.rule, LONGEST).replace('`', ' ')}`" if finding.rule else f" `{finding.code}`"
        )
        yield f"1. {f'{at}: ' if at else ''}{_cell(finding_text(finding))}{rule}"
    if len(told) > ONSETS:
        yield f"1. and {len(told) - ONSETS} more"


def _silent_lines(runs: Sequence[RunVerdict]) -> Iterator[str]:
    """Yield lines about what could not be assessed: each reason with its first line of the contract."""
    reasons: dict[str, list[str]] = {}
    for run in runs:
        for line in run.lines:
            if line.outcome == NO_ANSWER:
                reasons.setdefault(line.reason, []).append(line.rule)
        for text in run.not_assessed:
            reasons.setdefault(text, []).append("")
    if not reasons:
        return
    yield from ("", f"Not assessed ({sum(map(len, reasons.values()))}):", "")
    for reason, rules in sorted(reasons.items(), key=lambda pair: -len(pair[1]))[:SILENT]:
        first = f"{_code(rules[0])}: " if rules[0] else ""
        yield f"- {first}{_cell(reason)}{f' ({len(rules)} ×)' if len(rules) > 1 else ''}"
    if len(reasons) > SILENT:
        yield f"- and {len(reasons) - SILENT} more reasons"


def _code(text: str) -> str:
    return f"`{_shown(text, LONGEST).replace('`', ' ')}`"


#: Signs that Markdown or HTML would take for their own.
_SIGNS = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_[]|#"} | {"<": "&lt;", ">": "&gt;", "&": "&amp;"})


def _cell(text: str) -> str:
    """Return text of a log as Markdown that shows it and nothing else."""
    return _shown(text, LONGEST).translate(_SIGNS)
