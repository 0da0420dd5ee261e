"""What a converted log says of itself, where the times of it are moved from the clock of its source to UTC."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from logreel.formats.mcap.channels import dumped, loaded


def on_utc(told: Mapping[str, str], offset: int) -> dict[str, str]:
    """The metadata record ``logreel`` of a log on the clock of its source, whose times get *offset* ns more."""
    new = {**told, "clock": "utc", "utc_offset": str(offset)}
    # The key "clock" of older files holds what "span" does in newer ones.
    span = loaded(told.get("clock", "")) or loaded(told.get("span", ""))
    if "messages" in span:
        moved = {name: _moved(span.get(name), offset) for name in ("start", "end")}
        new["span"] = dumped({**moved, "messages": span["messages"]})
    if "parameters" in told:
        many = loaded(told["parameters"]).get("parameters", [])
        new["parameters"] = dumped({"parameters": [_parameter(one, offset) for one in many]})
    return new


def source_clock(told: Mapping[str, str]) -> dict[str, str]:
    """``epoch`` and ``utc_offset`` (ns, as text) of the log that was converted; empty where its times were kept."""
    names = ("epoch", "utc_offset") if told.get("clock") == "utc" else ()
    return {name: told[name] for name in names if name in told}


def _parameter(one: Any, offset: int) -> Any:
    try:
        return {**one, "changes": [[_moved(time, offset), value] for time, value in one["changes"]]}
    except (KeyError, TypeError, ValueError):
        return one


def _moved(time: Any, offset: int) -> Any:
    return time + offset if isinstance(time, int) else time
