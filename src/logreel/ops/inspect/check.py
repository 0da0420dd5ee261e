"""Check of a log for damage, inconsistencies and types, from its reader and from reading all of it.

What a user requires of a log is in ``contract``. Checks of times and positions, which read no payloads, are in
``time_checks``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass, field, replace
from logreel.errors import DefinitionError, Finding, LogError, Severity
from logreel.index.block_table import MISSING_SIZE
from logreel.index.gather import PayloadRange, batches, load, payload_ranges, places
from logreel.io.arrays import I64
from logreel.kernels import layout as kernel
from logreel.layout.program import Program
from logreel.log.joined_log import JoinedLog
from logreel.log.log import Channel, Log
from logreel.log.padding import is_padded, skipping, too_long
from logreel.log.scan import Block, Tabular
from logreel.log.times import Time
from logreel.ops.inspect.digests import Digests, digests
from logreel.ops.inspect.time_checks import backwards, gaps, jumps, offset_of
from logreel.ops.query.record_batches import rows_per_batch
from logreel.ops.rewrite.selected_log import selected_log
from logreel.ops.selection import Selection
from logreel.registry.open import as_open_log, read_itself

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.joined_log import Openable
    from logreel.ops.inspect.contract import Contract
    from logreel.ops.migrate.plan import ChannelPlan, Files

#: Severity and text of findings, by code.
KINDS: dict[str, tuple[Severity, str]] = {
    "payload": ("error", "do not fit their definition, and cannot be decoded"),
    "leftover": ("warn", "are longer than their definition"),
}


@dataclass
class _Tally:
    """Messages of one channel that do not fit: count and first row, by code."""

    ch: Channel
    seen: int = 0
    count: dict[str, int] = field(default_factory=dict)
    first: dict[str, int] = field(default_factory=dict)

    def add(self, code: str, rows: I64) -> None:
        if len(rows):
            self.first.setdefault(code, int(rows[0]))
            self.count[code] = self.count.get(code, 0) + len(rows)

    def findings(self) -> Iterator[Finding]:
        for code, n in self.count.items():
            severity, text = KINDS[code]
            row = self.first[code]
            sentence = f"{n} of {len(self.ch)} messages {text}; the first is number {row}"
            place, time = offset_of(self.ch, row), int(self.ch.times[row])
            yield Finding(code, severity, place, 0, sentence, self.ch.topic, time, n)


def payloads(log: Log) -> Iterator[Finding]:
    """Yield ``payload`` for messages shorter than their definition requires, ``leftover`` for longer ones."""
    walked: dict[Channel, Program] = {}
    tallies = {ch: _Tally(ch) for ch in log.match(None) if len(ch)}
    for ch, tally in tallies.items():
        try:
            layout, reading = ch.layout, ch.decoder
        except DefinitionError:
            continue
        if reading is not None:
            _read(ch, tally)
        elif layout.size is not None and not is_padded(ch.metadata):
            sizes = log.index.sizes(ch.number)
            tally.add("payload", np.flatnonzero(sizes < layout.size))
            tally.add("leftover", np.flatnonzero(sizes > layout.size))
        else:
            walked[ch] = skipping(layout)
    for ch, payload_range in _pieces(log, walked):
        _walk(tallies[ch], walked[ch], payload_range)
    for tally in tallies.values():
        yield from tally.findings()


def _pieces(log: Log, channels: dict[Channel, Program]) -> Iterator[tuple[Channel, PayloadRange]]:
    """Yield all messages of *channels* in ranges; each compressed chunk is decompressed once."""
    synthetic = [ch for ch in channels if log.index.rules[ch.number].synthetic is not None]
    for ch in synthetic:
        yield from (
            (ch, payload_range) for payload_range in payload_ranges(log.index, ch.number, slice(0, len(ch)))
        )
    if len(synthetic) == len(channels):
        return
    for numbers in batches(log.index, range(len(log.index.table.base))):
        loaded = load(log.index, numbers)
        yield from (
            (ch, loaded.payload_range(log.index, ch.number)) for ch in channels if ch not in synthetic
        )


def _walk(tally: _Tally, program: Program, payloads: PayloadRange) -> None:
    status: NDArray[np.uint8] = np.zeros(len(payloads.offset), np.uint8)
    counts = np.zeros(len(program.columns), np.int64)
    kernel.count(payloads.data, payloads.offset, payloads.offset + payloads.size, program.ops, counts, status)
    tally.add("payload", tally.seen + np.flatnonzero(status & 1))
    left = np.flatnonzero(status == kernel.LEFTOVER)
    if len(left) and is_padded(tally.ch.metadata):
        left = too_long(program, payloads, left)
    tally.add("leftover", tally.seen + left)
    tally.seen += len(status)


def _read(ch: Channel, tally: _Tally) -> None:
    """Decode the messages of a channel with a PayloadDecoder, and count those that do not fit."""
    step = rows_per_batch(ch)
    for lo in range(0, len(ch), step):
        for payloads in payload_ranges(ch.log.index, ch.number, slice(lo, lo + step)):
            rows = np.arange(tally.seen, tally.seen + len(payloads.offset), dtype=np.int64)
            got = ch.decoder.decode_batch(ch.log.index, ch.layout, payloads, rows) if ch.decoder else None
            if got is not None:
                tally.add("payload", rows[[row for row, _ in got.bad]])
                tally.add("leftover", rows[got.leftover])
            tally.seen += len(rows)


#: Share of messages with the time of another one above which the time of a channel counts as frozen.
STILL = 0.5
#: Least number of messages for frozen time.
MESSAGES = 10


def duplicates(log: Log) -> Iterator[Finding]:
    """Yield ``frozen-time``, and ``duplicate`` for messages of a channel with equal time, size and bytes.

    Messages with different sequence numbers are no duplicates.
    """
    doubtful: dict[int, I64] = {}
    numbers: dict[int, I64] = {}
    for ch in log.match(None):
        rows = _rows_with_equal_times(ch.times)
        if len(ch) >= MESSAGES and len(rows) > STILL * len(ch):
            yield _frozen_finding(ch, rows)
        elif len(rows):
            sequence = log.index.side_column(ch.number, "sequence")
            counted = np.zeros(len(rows), np.int64) if sequence is None else sequence[rows]
            _, _, sizes = places(log.index, ch.number, rows)
            # Messages that an index names and that are not there have no bytes to compare.
            alike = _has_equal(ch.times[rows], sizes, counted) & (sizes != MISSING_SIZE)
            if alike.any():
                doubtful[ch.number], numbers[ch.number] = rows[alike], counted[alike]
    digested = digests(log, doubtful) if doubtful else {}
    for ch in log.match(None):
        if (
            ch.number in digested
            and (finding := _duplicate_finding(ch, digested[ch.number], numbers[ch.number])) is not None
        ):
            yield finding


def _rows_with_equal_times(times: I64) -> I64:
    """Return the rows of messages whose time another message has too, ascending."""
    if (times[1:] > times[:-1]).all():
        return np.zeros(0, np.int64)
    return np.flatnonzero(_has_equal(times))


def _sort_rows(columns: tuple[NDArray[Any], ...]) -> tuple[I64, NDArray[np.bool_]]:
    """Return int64[n]: the rows sorted by value; bool[n - 1]: whether each sorted row equals the previous one."""
    order = np.lexsort(columns)
    same = np.ones(max(len(order) - 1, 0), np.bool_)
    for column in columns:
        same &= column[order][1:] == column[order][:-1]
    return order, same


def _has_equal(*columns: I64) -> NDArray[np.bool_]:
    """Return bool[n]: whether another row has the same values in all columns."""
    order, same = _sort_rows(columns)
    repeated = np.zeros(len(order), np.bool_)
    repeated[order[1:]] |= same
    repeated[order[:-1]] |= same
    return repeated


def _frozen_finding(ch: Channel, rows: I64) -> Finding:
    text = f"time stands still: {len(rows)} of {len(ch)} messages have the time of another one"
    first = int(rows[0])
    return Finding(
        "frozen-time", "note", offset_of(ch, first), 0, text, ch.topic, int(ch.times[first]), len(rows)
    )


def _duplicate_finding(ch: Channel, digested: Digests, sequence: I64) -> Finding | None:
    order, same = _sort_rows((*digested.keys(), digested.time, sequence))
    again = order[1:][same]
    if not len(again):
        return None
    n, time = len(again), int(digested.time[again.min()])
    text = f"{n} message{'s are' if n > 1 else ' is'} there again with the same time and the same bytes"
    size = int(digested.size[again].sum())
    row = int(np.flatnonzero(ch.times == time)[1])
    return Finding("duplicate", "warn", offset_of(ch, row), size, text, ch.topic, time, n)


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
    """Findings in one log, in file order; those without an offset come last.

    Behind these is what breaks a contract, first onset first, and at the end what has no time.
    """

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
    batteries = BATTERIES
    if contract is not None:
        from logreel.ops.inspect.contract import read_contract

        batteries = (*BATTERIES, read_contract(contract).findings)
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
    placed = sorted(_with_few_of_each_kind(different), key=_place)
    return Checked(log.name, log.format, tuple(placed))


def _place(finding: Finding) -> tuple[int, bool, int]:
    """Return the place of a finding among others: by offset, and what breaks a contract behind these, by its onset.

    A clock that was set back comes first: times behind that are no order.
    """
    if finding.code.startswith("contract-"):
        rank = 1 if finding.code == "contract-order" else 2
        return rank, finding.time_ns is None, finding.time_ns or 0
    return 0, finding.offset is None, finding.offset or 0


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
    first = min(findings, key=_place)
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
