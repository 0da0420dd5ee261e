"""Check of a log for damage, inconsistencies and types, from its reader and from reading all of it.

And for requirements of a user, a contract in a TOML file: topics, types, rates, gaps, values, and faults of the robot.
Checks of times and positions, which read no payloads, are in ``time_checks``.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass, field, replace
from logreel.errors import SEVERITIES, DefinitionError, Finding, LogError, Severity, TopicError, UsageError
from logreel.index.block_table import MISSING_SIZE
from logreel.index.gather import PayloadRange, batches, load, payload_ranges, places
from logreel.io.arrays import I64
from logreel.kernels import layout as kernel
from logreel.layout.program import Program
from logreel.log.joined_log import JoinedLog
from logreel.log.log import Channel, Log
from logreel.log.padding import is_padded, skipping, too_long
from logreel.log.shown import Block, Tabular
from logreel.log.times import SECOND, Time, duration_ns, duration_text
from logreel.log.topic_match import match_topics
from logreel.ops.inspect.digests import Digests, digests
from logreel.ops.inspect.stats import channel_stats, field_stats
from logreel.ops.inspect.time_checks import backwards, gaps, jumps, offset_of
from logreel.ops.query.record_batches import rows_per_batch
from logreel.ops.rewrite.selected_log import selected_log
from logreel.ops.selection import Selection
from logreel.registry.open import as_open_log, read_itself

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.joined_log import Openable
    from logreel.ops.migrate.plan import ChannelPlan, Files

Rules = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Contract:
    """Rules for the whole log, and for channels by topic or pattern; the keys are those of the TOML file."""

    rules: Rules
    topics: Mapping[str, Rules]

    def findings(self, log: Log) -> Iterator[Finding]:
        """Yield a finding ``contract-…`` for each rule that *log* breaks."""
        yield from _whole(log, self.rules)
        if "health" in self.rules:
            yield from _health(log, self.rules["health"])
        for pattern, rules in self.topics.items():
            try:
                names = match_topics(log.channels, pattern)
            except TopicError as error:
                if rules.get("required", True):
                    yield _broken("topic", f"{error.text}: it is required")
                continue
            for name in names:
                yield from _channel(log[name], rules)


def read_contract(what: str | os.PathLike[str] | Mapping[str, Any] | Contract) -> Contract:
    """Read a contract from a TOML file or a mapping; raises UsageError that names the wrong key, or OSError."""
    if isinstance(what, Contract):
        return what
    if isinstance(what, Mapping):
        rules = _rules(what, LOG, "")
        return Contract(rules, rules.pop("topics", {}))
    path = os.fspath(what)
    with open(path, "rb") as file:
        try:
            return read_contract(tomllib.load(file))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise UsageError(f"the contract is no TOML: {error}", path=path) from None
        except UsageError as error:
            raise UsageError(error.text, path=path) from None


def _broken(
    what: str,
    text: str,
    ch: Channel | None = None,
    row: int | None = None,
    time: int | None = None,
    n: int = 1,
) -> Finding:
    place = offset_of(ch, row) if ch is not None and row is not None else None
    return Finding(f"contract-{what}", "error", place, 0, text, ch.topic if ch else None, time, n)


# ------------------------------------------------------------------------------------------------------ reading


def _rules(table: Mapping[str, Any], known: Mapping[str, Callable[[str, Any], Any]], where: str) -> Rules:
    """Return the values by key, each read by the function in *known*; raises UsageError for an unknown key."""
    inside = f" of {where!r}" if where else ""
    for key in table:
        if key not in known:
            near = get_close_matches(key, known, n=1, cutoff=0.4)
            hint = f"nearest: {near[0]}" if near else f"there are: {', '.join(known)}"
            raise UsageError(f"the contract has no key {key!r}{inside}; {hint}")
    return {key: known[key](f"{key}{inside}", value) for key, value in table.items()}


def _table(key: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise UsageError(f"{key!r} of the contract is a table, not {value!r}")
    return value


def _number(key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UsageError(f"{key} of the contract is a number, not {value!r}")
    return value


def _flag(key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise UsageError(f"{key} of the contract is true or false, not {value!r}")
    return value


def _length(key: str, value: Any) -> int:
    """Return a duration in ns; numbers are seconds."""
    return duration_ns(value) if isinstance(value, str) else round(_number(key, value) * SECOND)


def _texts(key: str, value: Any) -> list[str]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise UsageError(f"{key} of the contract is a text or a list of texts, not {value!r}")
    return texts


def _severity(key: str, value: Any) -> str:
    if value not in SEVERITIES:
        raise UsageError(f"{key} of the contract is one of {', '.join(SEVERITIES)}, not {value!r}")
    return str(value)


def _detectors(key: str, value: Any) -> list[str]:
    """Return names of detectors; raises UsageError for an unknown one."""
    from logreel.ops.health.health import chosen_detectors, detector_names

    try:
        return chosen_detectors(_texts(key, value), detector_names())
    except UsageError as error:
        raise UsageError(f"{key} of the contract: {error.text}") from None


def _limits(key: str, value: Any) -> dict[str, str]:
    """Return the severity by detector; a later pattern replaces what an earlier one says."""
    return {
        name: _severity(f"{pattern} in {key}", severity)
        for pattern, severity in _table(key, value).items()
        for name in _detectors(key, pattern)
    }


def _faults(key: str, value: Any) -> Rules:
    return _rules(_table(key, value), HEALTH, key)


def _values(key: str, value: Any) -> dict[str, Rules]:
    return {path: _rules(_table(path, rules), VALUE, path) for path, rules in _table(key, value).items()}


def _topics(key: str, value: Any) -> dict[str, Rules]:
    return {name: _rules(_table(name, rules), TOPIC, name) for name, rules in _table(key, value).items()}


VALUE: dict[str, Callable[[str, Any], Any]] = {"min": _number, "max": _number, "nan": _flag}
HEALTH: dict[str, Callable[[str, Any], Any]] = {
    "require": _detectors,
    "forbid": _detectors,
    "limits": _limits,
    "fail_on": _severity,
}
LOG: dict[str, Callable[[str, Any], Any]] = {
    "format": _texts,
    "min_messages": _number,
    "min_duration": _length,
    "max_duration": _length,
    "forbidden": _texts,
    "health": _faults,
    "topics": _topics,
}
TOPIC: dict[str, Callable[[str, Any], Any]] = {
    "required": _flag,
    "type": _texts,
    "encoding": _texts,
    "min_messages": _number,
    "min_rate": _number,
    "max_rate": _number,
    "max_gap": _length,
    "fields": _texts,
    "values": _values,
}

# ------------------------------------------------------------------------------------------------------ judging


def _whole(log: Log, rules: Rules) -> Iterator[Finding]:
    if log.format not in rules.get("format", [log.format]):
        yield _broken("format", f"the log is {log.format}, not {' or '.join(rules['format'])}")
    if log.message_count < rules.get("min_messages", 0):
        yield _broken(
            "messages", f"{log.message_count} messages, at least {rules['min_messages']} are required"
        )
    length = 0 if log.start is None or log.end is None else log.end - log.start
    if length < rules.get("min_duration", 0):
        least = duration_text(rules["min_duration"])
        yield _broken("duration", f"the log lasts {duration_text(length)}, at least {least} are required")
    if length > rules.get("max_duration", length):
        most = duration_text(rules["max_duration"])
        yield _broken("duration", f"the log lasts {duration_text(length)}, at most {most} are allowed")
    for pattern in rules.get("forbidden", ()):
        try:
            names = match_topics(log.channels, pattern)
        except TopicError:
            continue
        for ch in (log[name] for name in names):
            if len(ch):
                yield _broken(
                    "forbidden", f"{len(ch)} messages of a forbidden topic", ch, 0, ch.start, len(ch)
                )


def _health(log: Log, rules: Rules) -> Iterator[Finding]:
    """Yield a finding for each fault that is not allowed, and for each required detector that could not look."""
    from logreel.ops.health.health import health

    required, forbidden = rules.get("require", ()), rules.get("forbid", ())
    fail_on: str = rules.get("fail_on", "warn")
    bounds = dict.fromkeys(required, fail_on)
    bounds |= rules.get("limits", {})
    bounds |= dict.fromkeys(forbidden, SEVERITIES[-1])
    if not bounds:
        return
    result = health(log, list(bounds))
    for name, reason in (*result.not_assessed, *result.failed):
        if name in required:
            yield _broken("health", f"{name} is required, but not assessed: {reason}")
    for detection in result.detections:
        bound = bounds[detection.detector]
        if SEVERITIES.index(detection.severity) <= SEVERITIES.index(bound):
            worst = "no finding is allowed" if bound == SEVERITIES[-1] else f"no {bound} is allowed"
            topic = detection.topics[0] if len(detection.topics) == 1 else None
            text = f"{detection.detector}: {detection.text} ({detection.severity}; {worst})"
            yield Finding("contract-health", "error", None, 0, text, topic, detection.start)


def _channel(ch: Channel, rules: Rules) -> Iterator[Finding]:
    for what, actual in (("type", ch.schema.name), ("encoding", ch.schema.encoding)):
        if actual not in rules.get(what, [actual]):
            yield _broken(what, f"its {what} is {actual!r}, not {' or '.join(map(repr, rules[what]))}", ch)
    least = rules.get("min_messages", 1 if rules.get("required", True) else 0)
    if len(ch) < least:
        yield _broken("messages", f"{len(ch)} messages, at least {least} are required", ch)
    if "min_rate" in rules or "max_rate" in rules:
        yield from _rate(ch, rules)
    if "max_gap" in rules:
        yield from _silences(ch, rules["max_gap"])
    yield from _fields(ch, rules)


def _rate(ch: Channel, rules: Rules) -> Iterator[Finding]:
    rate = channel_stats(ch).rate
    if rate is None or rate < rules.get("min_rate", 0):
        measured = "no rate can be determined" if rate is None else f"{rate:.4g} Hz"
        yield _broken("rate", f"{measured}, at least {rules.get('min_rate', 0)} Hz are required", ch)
    elif rate > rules.get("max_rate", rate):
        yield _broken("rate", f"{rate:.4g} Hz, at most {rules['max_rate']} Hz are allowed", ch)


def _silences(ch: Channel, most: int) -> Iterator[Finding]:
    """Yield a finding for gaps longer than *most* ns, also before the first message and after the last one."""
    edges = [time for time in (ch.log.start, ch.log.end) if time is not None]
    times = np.sort(np.append(ch.times, np.array(edges, np.int64)))
    steps = times[1:].view(np.uint64) - times[:-1].view(np.uint64)
    long = np.flatnonzero(steps > most)
    if len(long):
        start, n = int(times[long[0]]), len(long)
        text = f"silent for {duration_text(int(steps[long].max()))}"
        text += f" and {n - 1} times more" if n > 1 else ""
        text += f", at most {duration_text(most)} are allowed"
        behind = np.flatnonzero(ch.times > start)
        yield _broken("gap", text, ch, int(behind[0]) if len(behind) else None, start, n)


def _fields(ch: Channel, rules: Rules) -> Iterator[Finding]:
    values = rules.get("values", {})
    for path in dict.fromkeys([*rules.get("fields", ()), *values]):
        try:
            ch.layout.project([path])
        except LogError as error:
            yield _broken("field", f"{error.text}: it is required", ch)
            continue
        if path in values:
            for stats in field_stats(ch, [path]) or ():
                yield from _value(ch, stats.path, stats.min, stats.max, stats.nan, values[path])


def _value(
    ch: Channel, path: str, low: float | None, high: float | None, nan: int, rules: Rules
) -> Iterator[Finding]:
    if low is not None and low < rules.get("min", low):
        yield _broken("value", f"{path} goes down to {low:.6g}, at least {rules['min']} is required", ch)
    if high is not None and high > rules.get("max", high):
        yield _broken("value", f"{path} goes up to {high:.6g}, at most {rules['max']} is allowed", ch)
    if nan and not rules.get("nan", True):
        yield _broken("value", f"{path} is NaN {nan} times, which is not allowed", ch, n=nan)


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
