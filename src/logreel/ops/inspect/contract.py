"""Requirements on a log in a TOML file: topics, types, rates, gaps, values, and faults of the robot."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np

from logreel.dataclass import dataclass
from logreel.errors import SEVERITIES, Finding, LogError, TopicError, UsageError
from logreel.log.log import Channel, Log
from logreel.log.times import SECOND, duration_ns, duration_text
from logreel.log.topic_match import match_topics
from logreel.ops.inspect.stats import channel_stats, field_stats
from logreel.ops.inspect.time_checks import offset_of

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
        rules = _read(what, LOG, "")
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


def _read(table: Mapping[str, Any], known: Mapping[str, Callable[[str, Any], Any]], where: str) -> Rules:
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
    return _read(_table(key, value), HEALTH, key)


def _values(key: str, value: Any) -> dict[str, Rules]:
    return {path: _read(_table(path, rules), VALUE, path) for path, rules in _table(key, value).items()}


def _topics(key: str, value: Any) -> dict[str, Rules]:
    return {name: _read(_table(name, rules), TOPIC, name) for name, rules in _table(key, value).items()}


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
