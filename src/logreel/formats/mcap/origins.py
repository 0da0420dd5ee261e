"""What several MCAPs were converted from, told by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from logreel.formats.mcap.channels import from_json, to_json
from logreel.write.format_writer import SourceClock


class Origins:
    """Collects the records of logreel's own from one log after another; what an earlier one says has precedence."""

    def __init__(self) -> None:
        self._logs = 0
        self._told: list[dict[str, str]] = []
        self._metadata: dict[str, Any] = {}
        self._parameters: dict[str, Any] = {}

    def take(self, name: str, told: Mapping[str, str] | None) -> list[str]:
        """Take in what the log called *name* tells, None for nothing; tells what has another value than before."""
        self._logs += 1
        if told is None:
            return []
        self._told.append(dict(told))
        parameters = from_json(told.get("parameters", "")).get("parameters", [])
        by_name = {str(one.get("name")): one for one in parameters if isinstance(one, Mapping)}
        return [
            *_kept("metadata", self._metadata, from_json(told.get("metadata", "")), name),
            *_kept("parameter", self._parameters, by_name, name),
        ]

    def record(self, clock: SourceClock | None) -> dict[str, str] | None:
        """One record for all of them; None where there is nothing to tell."""
        if not self._told:
            return None
        first = self._told[0]
        if len(self._told) == self._logs and all(one == first for one in self._told):
            return first
        found = dict(first)
        if len({one.get("format") for one in self._told}) > 1 or len(self._told) < self._logs:
            # It can be converted back to none of them.
            found = {k: v for k, v in found.items() if k not in ("format", "version")}
        if clock is not None:
            found = {k: v for k, v in found.items() if k not in ("utc_offset", "span")}
            found |= {"epoch": clock.epoch, "clock": "log"}
            found |= {} if clock.utc_offset is None else {"utc_offset": str(clock.utc_offset)}
        found["metadata"] = to_json(self._metadata)
        if self._parameters:
            found["parameters"] = to_json({"parameters": list(self._parameters.values())})
        return found


def _kept(what: str, known: dict[str, Any], more: Mapping[str, Any], name: str) -> Iterator[str]:
    """Add *more* to *known*; a sentence about each that is there with another value."""
    for key, value in more.items():
        if known.setdefault(key, value) != value:
            yield f"{what} {key!r} has another value in {name}: the first one is kept"
