"""Merging of the ``logreel`` metadata records of several MCAPs, each of which describes a converted log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from logreel.formats.mcap.channels import from_json, to_json
from logreel.write.format_writer import SourceClock


class Origins:
    """Collects the ``logreel`` metadata records of logs; values of earlier logs take precedence."""

    def __init__(self) -> None:
        self._logs = 0
        self._records: list[dict[str, str]] = []
        self._metadata: dict[str, Any] = {}
        self._parameters: dict[str, Any] = {}

    def add(self, name: str, record: Mapping[str, str] | None) -> list[str]:
        """Add the record (or None) of the log called *name*; return a sentence for each conflicting value."""
        self._logs += 1
        if record is None:
            return []
        self._records.append(dict(record))
        parameters = from_json(record.get("parameters", "")).get("parameters", [])
        by_name = {str(one.get("name")): one for one in parameters if isinstance(one, Mapping)}
        return [
            *_merge("metadata", self._metadata, from_json(record.get("metadata", "")), name),
            *_merge("parameter", self._parameters, by_name, name),
        ]

    def record(self, clock: SourceClock | None) -> dict[str, str] | None:
        """Return one record for all logs; None if no log has a record."""
        if not self._records:
            return None
        first = self._records[0]
        if len(self._records) == self._logs and all(one == first for one in self._records):
            return first
        found = dict(first)
        if len({one.get("format") for one in self._records}) > 1 or len(self._records) < self._logs:
            # The merged log cannot be converted back to one format.
            found = {k: v for k, v in found.items() if k not in ("format", "version")}
        if clock is not None:
            found = {k: v for k, v in found.items() if k not in ("utc_offset", "span")}
            found |= {"epoch": clock.epoch, "clock": "log"}
            found |= {} if clock.utc_offset is None else {"utc_offset": str(clock.utc_offset)}
        found["metadata"] = to_json(self._metadata)
        if self._parameters:
            found["parameters"] = to_json({"parameters": list(self._parameters.values())})
        return found


def _merge(what: str, known: dict[str, Any], more: Mapping[str, Any], name: str) -> Iterator[str]:
    """Add *more* to *known*; yield a sentence for each entry that *known* has with another value."""
    for key, value in more.items():
        if known.setdefault(key, value) != value:
            yield f"{what} {key!r} has another value in {name}: the first one is kept"
