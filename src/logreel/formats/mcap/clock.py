"""What a converted log says about its clock, in the metadata record ``logreel``.

    epoch       what time 0 of the log meant that was converted: ``unix``, ``boot`` or ``start``
    utc_offset  ns to add to a time of that log to get UTC since 1970, as a decimal number; absent where unknown
    clock       ``log``: times of the MCAP are those of that log; ``utc``: the offset was added to all of them
    span        JSON: ``start`` and ``end`` of that log, as times of the MCAP, and how many ``messages`` it has

Until 0.1 the key ``clock`` held JSON with the offset and the span.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from logreel.formats.mcap.channels import from_json, to_json

#: A log that ends before this counts from its start or is simulated: 1973 in seconds since 1970.
RELATIVE_NS = 10**8 * 10**9
EPOCHS = ("unix", "boot", "start")
_INT64 = 1 << 63


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock of an MCAP's log times.

    epoch       ``unix``, ``boot`` or ``start``; None where only the times tell
    utc_offset  ns to add to a time to get UTC since 1970, or None
    span        start and end of the log while it has so many messages, as the third number says
    """

    epoch: str | None = None
    utc_offset: int | None = None
    span: tuple[int | None, int | None, int] | None = None

    @classmethod
    def read(cls, told: Mapping[str, str]) -> Clock:
        """From the metadata record; what cannot be read is as if it were absent."""
        former = from_json(told.get("clock", ""))
        span = _span(former or from_json(told.get("span", "")))
        if told.get("clock") == "utc":
            return cls("unix", 0, span)
        epoch = told.get("epoch")
        offset = _whole(former["utc_offset"] if "utc_offset" in former else told.get("utc_offset"))
        return cls(epoch if epoch in EPOCHS else None, offset, span)

    def epoch_until(self, end: int | None) -> str:
        """The epoch of a log whose last message is at *end* ns."""
        return self.epoch or ("start" if end is not None and end < RELATIVE_NS else "unix")

    def offset_in(self, epoch: str) -> int | None:
        """The UTC offset, which is 0 for times since 1970 unless something else is said."""
        return 0 if self.utc_offset is None and epoch == "unix" else self.utc_offset


def source_facts(told: Mapping[str, str]) -> dict[str, str]:
    """What the record says of the log that was converted: format, version, epoch, UTC offset as text, and clock."""
    former = from_json(told.get("clock", ""))
    found = {
        name: told[name] for name in ("format", "version", "epoch", "utc_offset", "clock") if name in told
    }
    if former:
        found["clock"] = "log"
        offset = _whole(former.get("utc_offset"))
        found |= {} if offset is None else {"utc_offset": str(offset)}
    return found


def shifted_to_utc(told: Mapping[str, str], shift: int) -> dict[str, str]:
    """The record of a file on the log's clock, once *shift*, the UTC offset in ns, was added to all times."""
    span = Clock.read(told).span or (None, None, -1)
    moved = tuple(None if time is None else time + shift for time in span[:2])
    made = dict(told) | clock_record(told.get("epoch", "unix"), shift, True, (*moved, span[2]))  # type: ignore[arg-type]
    parameters = from_json(told.get("parameters", ""))
    for one in parameters.get("parameters", []):
        if isinstance(one, dict) and isinstance(one.get("changes"), list):
            one["changes"] = [[c[0] + shift, *c[1:]] if _is_change(c) else c for c in one["changes"]]
    return made | ({"parameters": to_json(parameters)} if parameters else {})


def _is_change(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], int)


def clock_record(
    epoch: str, utc_offset: int | None, utc: bool, span: tuple[int | None, int | None, int]
) -> dict[str, str]:
    """The entries of the metadata record.

    utc   True: *utc_offset* was added to all times
    span  start and end of the log in the times of the MCAP, and its messages
    """
    told = {"epoch": epoch, "clock": "utc" if utc else "log"}
    told |= {} if utc_offset is None else {"utc_offset": str(utc_offset)}
    return told | {"span": to_json(dict(zip(("start", "end", "messages"), span, strict=True)))}


def _whole(value: Any) -> int | None:
    """An int64 from JSON or text."""
    try:
        found = int(value) if isinstance(value, int | str) and not isinstance(value, bool) else None
    except ValueError:
        return None
    return found if found is not None and -_INT64 <= found < _INT64 else None


def _span(told: Mapping[str, Any]) -> tuple[int | None, int | None, int] | None:
    start, end, messages = _whole(told.get("start")), _whole(told.get("end")), _whole(told.get("messages"))
    return None if messages is None else (start, end, messages)
