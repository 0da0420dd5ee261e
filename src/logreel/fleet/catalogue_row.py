"""The row of the catalogue: what is known of one log, and whether its times can be true."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from logreel.errors import LogError, Problem
from logreel.fleet.source_files import content_digest, is_content_key
from logreel.index.channel_index import TIMES_AT_ONCE
from logreel.io.arrays import I64
from logreel.log.scan import Brief
from logreel.log.times import utc_shift, utc_text
from logreel.ops.inspect.summary import EARLIEST_NS, Summary, summary
from logreel.ops.json_values import to_json_values

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.log.log import Log


#: Values of the column ``clock``.
PLAUSIBLE, IMPLAUSIBLE = "ok", "implausible"
HOUR = 3600 * 10**9
#: A pause that no recording has within one log, and a duration that none has, in ns.
LONGEST_PAUSE, LONGEST = 7 * 24 * HOUR, 366 * 24 * HOUR
#: Start of the year 2100 in ns of Unix time, after which no log was recorded.
LATEST_NS = 4_102_444_800 * 10**9
#: Parts into which a span is divided to find pauses.
_PARTS = 1024


@dataclass(frozen=True, slots=True)
class JudgedClock:
    """What the times of a log say of its clock.

    state     ``ok`` or ``implausible``; empty for a log without messages
    reason    why it is implausible; else empty
    duration_ns  from the first to the last message; of a log whose clock was set while it recorded, of the longer side
              by number of messages; None if that is implausible, too
    """

    state: str
    reason: str = ""
    duration_ns: int | None = None


def clock_of(log: Log, shift: int | None) -> JudgedClock:
    """Return what the times of *log* say of its clock; *shift*: ns to UTC, None if unknown.

    All times are looked at only if they lie more than a week apart.
    """
    if log.start is None or log.end is None:
        return JudgedClock("")
    first, last = log.start, log.end
    span, pause = last - first, 0
    while last - first > LONGEST_PAUSE and (side := _without_pause(log, first, last)) is not None:
        first, last, length = side
        pause = max(pause, length)
    duration = last - first if last - first <= LONGEST else None
    if pause:
        reason = (
            f"{span // HOUR} h from the first to the last message, {pause // HOUR} h of them without any: "
        )
        return JudgedClock(IMPLAUSIBLE, f"{reason}the clock was set while the log was recorded", duration)
    if duration is None:
        return JudgedClock(IMPLAUSIBLE, f"{span // HOUR} h from the first to the last message")
    if shift is not None:
        if first + shift < EARLIEST_NS:
            return JudgedClock(
                IMPLAUSIBLE, f"begins at {utc_text(first + shift)}: the clock was not set", duration
            )
        if last + shift > LATEST_NS:
            return JudgedClock(IMPLAUSIBLE, f"ends at {utc_text(last + shift)}", duration)
    return JudgedClock(PLAUSIBLE, "", duration)


def _without_pause(log: Log, first: int, last: int) -> tuple[int, int, int] | None:
    """Return first and last time of the side with more messages of a pause of more than a week, and its length.

    The later side of two equal ones. None if there is no pause of more than half of the span.
    """
    width = (last - first) // _PARTS + 1
    counts = np.zeros(_PARTS, np.int64)
    for times in _times_between(log, first, last):
        counts += np.bincount(_offsets(times, first) // np.uint64(width), minlength=_PARTS)
    filled = np.flatnonzero(counts)
    gaps = np.diff(filled)
    if not len(gaps):
        return None
    widest = int(gaps.argmax())
    edge = first + (int(filled[widest]) + 1) * width
    before, after = int(counts[: filled[widest] + 1].sum()), int(counts[filled[widest + 1] :].sum())
    bounds = [first, last, first, last]
    lows: list[int] = []
    highs: list[int] = []
    for times in _times_between(log, first, last):
        early = _offsets(times, first) < np.uint64(edge - first)
        if early.any():
            highs.append(int(times[early].max()))
        if not early.all():
            lows.append(int(times[~early].min()))
    bounds[1], bounds[2] = max(highs), min(lows)
    pause = bounds[2] - bounds[1]
    if pause <= max(LONGEST_PAUSE, (last - first) // 2):
        return None
    return (bounds[2], bounds[3], pause) if after >= before else (bounds[0], bounds[1], pause)


def _offsets(times: I64, first: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Return uint64[n]: ns from *first*, also where an int64 does not hold them."""
    return times.astype(np.uint64) - np.uint64(first % (1 << 64))


def _times_between(log: Log, first: int, last: int) -> Iterator[I64]:
    """Yield int64[k]: times of messages of all channels from *first* to *last*, both included."""
    for ch in log.channels.values():
        for low in range(0, len(ch), TIMES_AT_ONCE):
            rows = np.arange(low, min(low + TIMES_AT_ONCE, len(ch)), dtype=np.int64)
            times = log.index.times_at(ch.number, rows)
            yield times[(times >= first) & (times <= last)]


#: Values of ``status``: all was read; something was lost or could not be decoded; nothing could be read.
OK, DAMAGED, FAILED = "ok", "damaged", "failed"
#: Messages of a channel up to which its fields are read for the summary, which reads whole columns.
SUMMARY_MESSAGES = 1 << 19
#: Code of the Problem of a log without a definition.
DEFINITION = "definition"
#: Labels of facts of a summary that name the robot or vehicle, and its software.
VEHICLE, FIRMWARE = ("board number", "serial number", "vehicle"), ("firmware", "release", "software")


@dataclass(slots=True, repr=False)
class CatalogueRow(Brief):
    """What is known of one log, or of the part of it that a task reads; times in ns.

    path, paths  where the log lies, newest first; *path* is the first of *paths*
    log        its key in a dataset; empty for a task of a plan
    status     ``ok``, ``damaged`` (something was lost or cannot be decoded) or ``failed`` (nothing was read)
    error      why it failed; empty if it did not
    fingerprint  digest of the first and last 64 KiB
    digest     BLAKE2b of the whole file; empty if it was not computed
    start_ns, end_ns  of the log's clock; None if it is empty
    utc_offset_ns     ns from that clock to UTC; None if unknown
    topics     messages in the log by topic, types by topic in *types*
    rows       rows that were read, by topic
    undecodable  why topics cannot be decoded, by topic
    problems   Problems, as ``Problem.as_dict``
    lost_bytes  bytes that could not be read as data
    vehicle, firmware  as the summary names them; empty if it does not
    clock, clock_reason, sound_ns  as of ``JudgedClock``
    facts      values of the summary by section and fact; empty if it was not made
    """

    path: str
    status: str = OK
    error: str = ""
    size: int | None = None
    mtime_ns: int | None = None
    fingerprint: str = ""
    digest: str = ""
    format: str = ""
    version: str = ""
    epoch: str = ""
    start_ns: int | None = None
    end_ns: int | None = None
    utc_offset_ns: int | None = None
    messages: int = 0
    topics: dict[str, int] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    undecodable: dict[str, str] = field(default_factory=dict)
    problems: list[dict[str, Any]] = field(default_factory=list)
    lost_bytes: int = 0
    vehicle: str = ""
    firmware: str = ""
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    log: str = ""
    paths: list[str] = field(default_factory=list)
    clock: str = ""
    clock_reason: str = ""
    sound_ns: int | None = None

    @property
    def duration_ns(self) -> int | None:
        """Time from start to end, of the sound part if the clock is implausible; None if unknown."""
        if self.clock:
            return self.sound_ns
        return None if self.start_ns is None or self.end_ns is None else self.end_ns - self.start_ns

    @property
    def lacks_definitions(self) -> bool:
        """Whether some of its messages are raw bytes, or cannot be read, for want of a usable definition."""
        return bool(self.undecodable) or any(problem["code"] == DEFINITION for problem in self.problems)

    @property
    def start_utc_ns(self) -> int | None:
        """Start in UTC; None if unknown."""
        return (
            None
            if self.start_ns is None or self.utc_offset_ns is None
            else self.start_ns + self.utc_offset_ns
        )

    @property
    def end_utc_ns(self) -> int | None:
        """End in UTC; None if unknown."""
        return None if self.end_ns is None or self.utc_offset_ns is None else self.end_ns + self.utc_offset_ns

    def as_dict(self) -> dict[str, Any]:
        """Return the row as JSON data."""
        # Not ``asdict``, which copies all problems and facts.
        return {column.name: getattr(self, column.name) for column in fields(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the row of ``as_dict``; raises TypeError or KeyError for other data."""
        return cls(**{column.name: data[column.name] for column in fields(cls)})


def row_of_log(row: CatalogueRow, log: Log, facts: bool) -> None:
    """Enter into *row* what *log* says after it has been read; with *facts*, also its summary and a digest."""
    row.format, row.version, row.epoch = log.format, str(log.version), log.epoch
    row.start_ns, row.end_ns, row.messages = log.start, log.end, log.message_count
    row.utc_offset_ns = utc_shift(log)
    for topic, ch in log.channels.items():
        row.topics[topic], row.types[topic] = len(ch), ch.schema.name
    # Making the summary decodes channels, which may note problems that concern no task.
    row.problems = [to_json_values(problem.as_dict()) for problem in distinct_problems(log.problems)]
    row.lost_bytes = sum(problem["size"] for problem in row.problems if problem["lost"])
    if row.undecodable or any(problem["lost"] for problem in row.problems):
        row.status = DAMAGED
    if facts:
        row.digest = row.log if row.log and is_content_key(row.log) else content_digest(row.path)
        clock = clock_of(log, row.utc_offset_ns)
        row.clock, row.clock_reason, row.sound_ns = clock.state, clock.reason, clock.duration_ns
        with suppress(LogError):
            _enter_summary(row, summary(log, max_messages=SUMMARY_MESSAGES))


def distinct_problems(problems: Iterable[Problem]) -> list[Problem]:
    """Return *problems* without repeats, in order of their place."""
    return sorted(dict.fromkeys(problems), key=lambda p: (p.offset, p.code, p.text))


def _enter_summary(row: CatalogueRow, summary: Summary) -> None:
    for section in summary:
        values = {fact.key: to_json_values(fact.value) for fact in section}
        # The section about the file is in other columns.
        if section.key != "recording":
            row.facts[section.key] = values
        for fact in section:
            if fact.label in VEHICLE and not row.vehicle:
                row.vehicle = fact.text
            if fact.label in FIRMWARE and not row.firmware:
                row.firmware = str(fact.value)


def merged(rows: Iterable[CatalogueRow]) -> CatalogueRow:
    """Return the row of a log from those of its tasks, in their order; the first has the facts."""
    first, *others = rows
    row = replace(first, rows=dict(first.rows), undecodable=dict(first.undecodable))
    problems = {json.dumps(fault, sort_keys=True): fault for fault in first.problems}
    for other in others:
        for topic, count in other.rows.items():
            row.rows[topic] = row.rows.get(topic, 0) + count
        row.undecodable |= other.undecodable
        problems |= {json.dumps(fault, sort_keys=True): fault for fault in other.problems}
        if other.status == FAILED and row.status != FAILED:
            row.status, row.error = FAILED, other.error
        elif other.status == DAMAGED and row.status == OK:
            row.status = DAMAGED
    row.problems = sorted(problems.values(), key=lambda p: (p["offset"], p["code"], p["text"]))
    row.lost_bytes = sum(problem["size"] for problem in row.problems if problem["lost"])
    return row


def catalogue_table(rows: Iterable[CatalogueRow]) -> pa.Table:
    """Return rows as a table, with one row per log; ``problems`` is a list of structs, ``facts`` JSON text.

    What is unknown is null.
    """
    import pyarrow as pa

    text, number = pa.string(), pa.int64()
    counts = pa.map_(text, number)
    problem = pa.struct(
        [("code", text), ("offset", number), ("size", number), ("lost", pa.bool_()), ("text", text)]
    )
    columns: list[tuple[str, pa.DataType]] = [
        ("log", text), ("path", text), ("paths", pa.list_(text)), ("status", text), ("error", text),
        ("size", number), ("mtime_ns", number), ("fingerprint", text), ("digest", text), ("format", text),
        ("version", text), ("epoch", text), ("start_ns", number), ("end_ns", number), ("duration_ns", number),
        ("utc_offset_ns", number), ("start_utc", pa.timestamp("us")), ("end_utc", pa.timestamp("us")),
        ("clock", text), ("clock_reason", text), ("messages", number), ("rows", number),
        ("topics", pa.list_(text)), ("rows_by_topic", counts), ("problems", pa.list_(problem)),
        ("lost_bytes", number), ("undecodable", pa.map_(text, text)), ("vehicle", text), ("firmware", text),
        ("facts", text),
    ]  # fmt: skip
    plain = []
    for row in rows:
        data = row.as_dict()
        data |= {
            "log": row.log or row.path,
            "paths": row.paths or [row.path],
            "duration_ns": row.duration_ns,
            "start_utc": None if row.start_utc_ns is None else row.start_utc_ns // 1000,
            "end_utc": None if row.end_utc_ns is None else row.end_utc_ns // 1000,
            "rows": sum(row.rows.values()),
            "topics": [topic for topic, count in row.topics.items() if count],
            "rows_by_topic": list(row.rows.items()),
            "undecodable": list(row.undecodable.items()),
            "facts": json.dumps(row.facts),
        }
        plain.append({name: _storable(None if data[name] == "" else data[name]) for name, _ in columns})
    return pa.Table.from_pylist(plain, pa.schema(columns))


def _storable(value: Any) -> Any:
    """Return *value* with text that is no UTF-8 replaced, which names in damaged logs and of files may be."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list | tuple):
        return (
            [_storable(item) for item in value]
            if not isinstance(value, tuple)
            else tuple(map(_storable, value))
        )
    if isinstance(value, dict):
        return {name: _storable(item) for name, item in value.items()}
    return value
