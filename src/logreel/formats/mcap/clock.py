"""Clock of a converted log, as stored in the metadata record ``logreel``.

    epoch       meaning of time 0 of the converted log: ``unix``, ``boot`` or ``start``
    utc_offset  ns to add to a time of that log to get UTC since 1970, as a decimal number; absent if unknown
    clock       ``log``: times of the MCAP are those of that log; ``utc``: the offset was added to all of them
    span        JSON: ``start`` and ``end`` of that log, as times of the MCAP, and its number of ``messages``

Until 0.1 the key ``clock`` contained JSON with the offset and the span.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from logreel.dataclass import dataclass
from logreel.formats.mcap.definitions import from_json, to_json

#: Times of a log that ends earlier (1973 if they counted from 1970) are relative to its start, or simulated.
RELATIVE_NS = 10**8 * 10**9
EPOCHS = ("unix", "boot", "start")
_INT64 = 1 << 63


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock of an MCAP's log times.

    epoch       ``unix``, ``boot`` or ``start``; None: derived from the times
    utc_offset  ns to add to a time to get UTC since 1970; None: unknown
    span        start, end and number of messages of the converted log; valid while the file has all of them
    """

    epoch: str | None = None
    utc_offset: int | None = None
    span: tuple[int | None, int | None, int] | None = None

    @classmethod
    def read(cls, record: Mapping[str, str]) -> Clock:
        """Return the clock of the metadata record; unreadable entries are ignored."""
        former = from_json(record.get("clock", ""))
        span = _span(former or from_json(record.get("span", "")))
        if record.get("clock") == "utc":
            return cls("unix", 0, span)
        epoch = record.get("epoch")
        offset = _int64(former["utc_offset"] if "utc_offset" in former else record.get("utc_offset"))
        return cls(epoch if epoch in EPOCHS else None, offset, span)

    def epoch_until(self, end: int | None) -> str:
        """Return the epoch of a log whose last message is at *end* ns."""
        return self.epoch or ("start" if end is not None and end < RELATIVE_NS else "unix")

    def offset_in(self, epoch: str) -> int | None:
        """Return the UTC offset in ns, None if unknown; 0 for the epoch ``unix`` unless the record states another."""
        return 0 if self.utc_offset is None and epoch == "unix" else self.utc_offset


def source_facts(record: Mapping[str, str]) -> dict[str, str]:
    """Return format, version, epoch, UTC offset (as text) and clock of the converted log, if *record* has them."""
    former = from_json(record.get("clock", ""))
    names = ("format", "version", "epoch", "utc_offset", "clock")
    facts = {name: record[name] for name in names if name in record}
    if former:
        facts["clock"] = "log"
        offset = _int64(former.get("utc_offset"))
        facts |= {} if offset is None else {"utc_offset": str(offset)}
    return facts


def shifted_to_utc(record: Mapping[str, str], shift: int) -> dict[str, str]:
    """Return the record of a file on the log's clock, after *shift*, the UTC offset in ns, was added to all times."""
    span = Clock.read(record).span or (None, None, -1)
    moved = tuple(None if time is None else time + shift for time in span[:2])
    epoch = record.get("epoch", "unix")
    shifted = dict(record) | clock_record(epoch, shift, True, (*moved, span[2]))  # type: ignore[arg-type]
    parameters = from_json(record.get("parameters", ""))
    for parameter in parameters.get("parameters", []):
        if isinstance(parameter, dict) and isinstance(parameter.get("changes"), list):
            parameter["changes"] = [
                [c[0] + shift, *c[1:]] if _is_change(c) else c for c in parameter["changes"]
            ]
    return shifted | ({"parameters": to_json(parameters)} if parameters else {})


def _is_change(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], int)


def clock_record(
    epoch: str, utc_offset: int | None, utc: bool, span: tuple[int | None, int | None, int]
) -> dict[str, str]:
    """Return the entries of the metadata record.

    utc   True: *utc_offset* was added to all times
    span  start and end of the log in ns, as times of the MCAP, and its number of messages
    """
    record = {"epoch": epoch, "clock": "utc" if utc else "log"}
    record |= {} if utc_offset is None else {"utc_offset": str(utc_offset)}
    return record | span_entry(span)


def span_entry(span: tuple[int | None, int | None, int]) -> dict[str, str]:
    """Return the entry with start and end of the log in ns, as times of the MCAP, and its number of messages."""
    return {"span": to_json(dict(zip(("start", "end", "messages"), span, strict=True)))}


def _int64(value: Any) -> int | None:
    """Return an int64 from JSON or text, None for anything else."""
    try:
        number = int(value) if isinstance(value, int | str) and not isinstance(value, bool) else None
    except ValueError:
        return None
    return number if number is not None and -_INT64 <= number < _INT64 else None


def _span(entries: Mapping[str, Any]) -> tuple[int | None, int | None, int] | None:
    start, end, messages = (_int64(entries.get(name)) for name in ("start", "end", "messages"))
    return None if messages is None else (start, end, messages)
