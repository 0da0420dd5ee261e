"""Contracts: what a user requires of a log, in a TOML file: read, and judged.

Topics, types, rates, gaps, order, delays, values (also by mode), texts, parameters, and faults of the robot. ``learn``
writes such files from good logs.
"""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from typing import Any

import numpy as np

from logreel.dataclass import dataclass, replace
from logreel.errors import SEVERITIES, Finding, LogError, TopicError, UsageError
from logreel.log.log import Channel, Log
from logreel.log.scan import is_same_value
from logreel.log.times import SECOND, duration_ns, duration_text
from logreel.log.topic_match import match_topics
from logreel.ops.inspect.stats import channel_stats
from logreel.ops.inspect.text import LEVELS, level_name, level_number
from logreel.ops.inspect.time_checks import offset_of, topics_text
from logreel.ops.inspect.windows import (
    BLOCK,
    WINDOW,
    FieldWindows,
    States,
    counts_within,
    delays,
    difference,
    drift_begin,
    field_windows,
    in_order,
    jitter_blocks,
    silences,
    still_runs,
    text_patterns,
    values_between,
)
from logreel.ops.toml_lines import key_text

Rules = dict[str, Any]
Mask = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True)
class Contract:
    """Rules for the whole log, and for channels by topic or pattern; the keys are those of the TOML file."""

    rules: Rules
    topics: Mapping[str, Rules]

    def findings(self, log: Log) -> Iterator[Finding]:
        """Yield a finding ``contract-…`` for each rule that *log* breaks."""
        return (finding for finding in self.judged(log) if finding.code != SKIPPED)

    def judged(self, log: Log) -> Iterator[Finding]:
        """Yield the same, and one with the code SKIPPED for what of the contract is not about this log."""
        is_learned = "learned" in self.rules
        yield from _whole(log, self.rules)
        if "health" in self.rules:
            yield from _health(log, self.rules["health"], is_learned)
        if "text" in self.rules:
            yield from _text(log, self.rules["text"])
        yield from _parameters(log, self.rules.get("parameters", {}))
        judged: set[str] = set()
        beside = _Beside(log, self.rules.get("learned", {}).get("modes", ()))
        for pattern, rules in self.topics.items():
            place = f"topics.{key_text(pattern)}"
            try:
                names = match_topics(log.channels, pattern)
            except TopicError as error:
                if rules.get("required", True):
                    yield _broken("topic", f"{error.text}: it is required", rule=f"{place}.required")
                    yield _not_assessed("the log does not have the topic", None, place, SKIPPED)
                else:
                    text = f"{pattern}: the log does not have this topic, which is not required"
                    yield _not_assessed(text, None, place, NOT_ASSESSED if is_learned else SKIPPED)
                continue
            judged.update(names)
            for name in names:
                yield from _at(place, _channel(log[name], rules, beside))
        yield from beside.unknown()
        if is_learned:
            others = [ch.topic for ch in log.match(None) if len(ch) and ch.topic not in judged]
            if others:
                yield _not_assessed(f"topics that the contract does not name: {topics_text(others)}")


#: Codes of findings about what could not be assessed, and about what is not told, since it is not about this log.
NOT_ASSESSED, SKIPPED = "contract-not-assessed", "contract-skipped"


def _at(place: str, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings whose rules lie in the table *place*."""
    for finding in findings:
        yield replace(finding, rule=f"{place}.{finding.rule}" if finding.rule else place)


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
    rule: str = "",
) -> Finding:
    place = offset_of(ch, row) if ch is not None and row is not None else None
    return Finding(f"contract-{what}", "error", place, 0, text, ch.topic if ch else None, time, n, rule)


def _not_assessed(text: str, topic: str | None = None, rule: str = "", code: str = NOT_ASSESSED) -> Finding:
    return Finding(code, "note", None, 0, text, topic, rule=rule)


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


def _whole_numbers(key: str, value: Any) -> list[int]:
    if not isinstance(value, list) or not all(isinstance(n, int) for n in value):
        raise UsageError(f"{key} of the contract is a list of whole numbers, not {value!r}")
    return [int(n) for n in value]


def _changes(key: str, value: Any) -> set[tuple[int, int]]:
    """Return pairs of values, each written as ``0 -> 3``."""
    pairs = set()
    for text in _texts(key, value):
        before, _, after = text.partition("->")
        try:
            pairs.add((int(before), int(after)))
        except ValueError:
            raise UsageError(f"{key} of the contract has pairs such as '0 -> 3', not {text!r}") from None
    return pairs


def _modes(key: str, value: Any) -> dict[str, Rules]:
    return {name: _rules(_table(name, rules), MODE, name) for name, rules in _table(key, value).items()}


def _distances(key: str, value: Any) -> dict[str, float]:
    return {name: _number(name, most) for name, most in _table(key, value).items()}


def _level(key: str, value: Any) -> int:
    try:
        return level_number(str(value))
    except UsageError as error:
        raise UsageError(f"{key} of the contract: {error.text}") from None


def _lines(key: str, value: Any) -> Rules:
    return _rules(_table(key, value), TEXT, key)


def _known_lines(key: str, value: Any) -> dict[str, bool]:
    return {pattern: _flag(pattern, is_known) for pattern, is_known in _table(key, value).items()}


def _settings(key: str, value: Any) -> dict[str, Any]:
    """Return what is required of each parameter: a value, a list of values, or the keys ``min`` and ``max``."""
    return {
        name: _rules(rule, RANGE, name) if isinstance(rule, Mapping) else rule
        for name, rule in _table(key, value).items()
    }


def _origin(key: str, value: Any) -> Rules:
    return _rules(_table(key, value), ORIGIN, key)


Keys = dict[str, Callable[[str, Any], Any]]
RANGE: Keys = {"min": _number, "max": _number}
MODE: Keys = RANGE | {
    "min_mean": _number,
    "max_mean": _number,
    "max_std": _number,
    "max_step": _number,
}
VALUE: Keys = MODE | {
    "nan": _flag,
    "max_still": _length,
    "one_of": _whole_numbers,
    "changes": _changes,
    "modes": _modes,
    "near": _distances,
}
TEXT: Keys = {"level": _level, "known": _known_lines}
ORIGIN: Keys = {"runs": _number, "modes": _texts}
HEALTH: Keys = {
    "require": _detectors,
    "forbid": _detectors,
    "limits": _limits,
    "fail_on": _severity,
}
LOG: Keys = {
    "format": _texts,
    "max_size": _number,
    "min_messages": _number,
    "min_duration": _length,
    "max_duration": _length,
    "forbidden": _texts,
    "learned": _origin,
    "health": _faults,
    "text": _lines,
    "parameters": _settings,
    "topics": _topics,
}
TOPIC: Keys = {
    "required": _flag,
    "type": _texts,
    "encoding": _texts,
    "min_messages": _number,
    "min_rate": _number,
    "max_rate": _number,
    "window": _length,
    "max_jitter": _length,
    "max_gap": _length,
    "ordered": _flag,
    "min_delay": _length,
    "max_delay": _length,
    "fields": _texts,
    "values": _values,
}

# ------------------------------------------------------------------------------------------------------ judging


def _whole(log: Log, rules: Rules) -> Iterator[Finding]:
    if log.format not in rules.get("format", [log.format]):
        yield _broken("format", f"the log is {log.format}, not {' or '.join(rules['format'])}", rule="format")
    if log.size > rules.get("max_size", log.size):
        text = f"the log has {log.size} bytes, at most {rules['max_size']} are allowed"
        yield _broken("size", text, rule="max_size")
    if log.message_count < rules.get("min_messages", 0):
        yield _broken(
            "messages",
            f"{log.message_count} messages, at least {rules['min_messages']} are required",
            rule="min_messages",
        )
    length = 0 if log.start is None or log.end is None else log.end - log.start
    if length < rules.get("min_duration", 0):
        least = duration_text(rules["min_duration"])
        text = f"the log lasts {duration_text(length)}, at least {least} are required"
        yield _broken("duration", text, rule="min_duration")
    if length > rules.get("max_duration", length):
        most = duration_text(rules["max_duration"])
        text = f"the log lasts {duration_text(length)}, at most {most} are allowed"
        yield _broken("duration", text, rule="max_duration")
    for pattern in rules.get("forbidden", ()):
        try:
            names = match_topics(log.channels, pattern)
        except TopicError:
            continue
        for ch in (log[name] for name in names):
            if len(ch):
                text = f"{len(ch)} messages of a forbidden topic"
                yield _broken("forbidden", text, ch, 0, ch.start, len(ch), "forbidden")


def _health(log: Log, rules: Rules, is_learned: bool) -> Iterator[Finding]:
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

    def line(name: str) -> str:
        key = "forbid" if name in forbidden else "require"
        is_limit = name not in forbidden and name in rules.get("limits", {})
        return f"health.limits.{key_text(name)}" if is_limit else f"health.{key}"

    for name, reason in (*result.not_assessed, *result.failed):
        if name in required:
            yield _broken("health", f"{name} is required, but not assessed: {reason}", rule="health.require")
        else:
            code = NOT_ASSESSED if is_learned else SKIPPED
            yield _not_assessed(f"the detector {name}: {reason}", None, line(name), code)
    for detection in result.detections:
        bound = bounds[detection.detector]
        if SEVERITIES.index(detection.severity) <= SEVERITIES.index(bound):
            worst = "no finding is allowed" if bound == SEVERITIES[-1] else f"no {bound} is allowed"
            topic = detection.topics[0] if len(detection.topics) == 1 else None
            text = f"{detection.detector}: {detection.text} ({detection.severity}; {worst})"
            # What holds for all of the log has no onset.
            edge = ((log.end or 0) - (log.start or 0)) // 50
            is_all = detection.start - (log.start or 0) < edge and (log.end or 0) - detection.end < edge
            onset = None if is_all else detection.start
            place = line(detection.detector)
            yield Finding("contract-health", "error", None, 0, text, topic, onset, rule=place)


def _text(log: Log, rules: Rules) -> Iterator[Finding]:
    """Yield a finding for each pattern of text at or above the level that is not known, or known as forbidden."""
    known, level = rules.get("known", {}), rules.get("level", WARNING)
    first: dict[str, tuple[int | None, int]] = {}
    count: dict[str, int] = {}
    for pattern, of_line, time in text_patterns(log, level):
        if not known.get(pattern, False):
            first.setdefault(pattern, (of_line, time))
            count[pattern] = count.get(pattern, 0) + 1
    for pattern, (of_line, time) in first.items():
        why = (
            "a forbidden line"
            if pattern in known
            else f"a line of level {level_name(of_line)} that is not known"
        )
        times = f", {count[pattern]} times" if count[pattern] > 1 else ""
        yield _broken("text", f"{why}{times}: {pattern}", None, None, time, count[pattern], "text")


#: Least level of text that is compared with what is known, unless the contract states another: that of warnings.
WARNING = LEVELS.index("warning")


def _parameters(log: Log, rules: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield a finding for each parameter that is missing, or has a value that is not allowed at the start or later."""
    for name, rule in rules.items():
        parameter, place = log.parameters.get(name), f"parameters.{key_text(name)}"
        if parameter is None:
            text = f"{name} is missing, {_wanted(rule)} is required"
            yield _broken("parameter", text, None, None, log.start, 1, place)
            continue
        values = [(log.start, parameter.value)] if parameter.value is not None else []
        values += [(change.time, change.value) for change in parameter.changes]
        for time, value in values:
            if not _fits(value, rule):
                text = f"{name} is {value!r}, {_wanted(rule)} is required"
                yield _broken("parameter", text, None, None, time, 1, place)
                break


def _wanted(rule: Any) -> str:
    if isinstance(rule, dict):
        return " and ".join(f"{'at least' if key == 'min' else 'at most'} {n:g}" for key, n in rule.items())
    return " or ".join(map(repr, rule)) if isinstance(rule, list) else repr(rule)


def _fits(value: Any, rule: Any) -> bool:
    if isinstance(rule, dict):
        numbers = isinstance(value, int | float) and not math.isnan(value)
        return numbers and rule.get("min", value) <= value <= rule.get("max", value)
    if isinstance(rule, list):
        return any(_fits(value, wanted) for wanted in rule)
    if isinstance(value, float) and isinstance(rule, int | float):
        # Parameters are float32 in many logs, and written with fewer digits in a contract.
        return math.isclose(value, rule, rel_tol=1e-6, abs_tol=1e-12) or is_same_value(value, rule)
    return is_same_value(value, rule)


class _Beside:
    """What fields are judged beside: the modes of the log, and other fields; both are read when a rule first asks."""

    def __init__(self, log: Log, known: Iterable[str]) -> None:
        self._log = log
        self._states: States | None = None
        self._known = set(known)
        self._fields: dict[str, FieldWindows | None] = {}

    def masks(self, field: FieldWindows, rules: Mapping[str, Rules]) -> Iterator[tuple[str, Rules, Mask]]:
        """Yield name and rules of each mode with which windows belong to it."""
        states = self._states = self._states or States(self._log)
        self._known.update(rules)
        code = states.of(field.number)
        for number, name in enumerate(states.names):
            if name in rules:
                yield name, rules[name], code == number

    def lacks(self, modes: Iterable[str]) -> list[str]:
        """Return those of these modes that do not occur in the log."""
        return [] if self._states is None else [mode for mode in modes if mode not in self._states.names]

    def field(self, name: str) -> FieldWindows | None:
        """Return the field that ``topic.path`` names in windows; None if the log does not have it."""
        if name not in self._fields:
            self._fields[name] = None
            for topic in self._log.channels:
                path = name[len(topic) + 1 :] if name.startswith(f"{topic}.") else ""
                if path and len(self._log[topic]):
                    with suppress(LogError):
                        measured = field_windows(self._log[topic], [path])
                        self._fields[name] = next((f for f in measured if f.path == path), None)
        return self._fields[name]

    def unknown(self) -> Iterator[Finding]:
        """Yield a finding for the modes that occur, and that no rule for a mode names."""
        if self._states is not None:
            names = [name for name in self._states.names if name not in self._known]
            if names:
                yield _not_assessed(f"values in modes that the contract does not name: {'; '.join(names)}")


def _channel(ch: Channel, rules: Rules, beside: _Beside) -> Iterator[Finding]:
    for what, actual in (("type", ch.schema.name), ("encoding", ch.schema.encoding)):
        if actual not in rules.get(what, [actual]):
            text = f"its {what} is {actual!r}, not {' or '.join(map(repr, rules[what]))}"
            yield _broken(what, text, ch, rule=what)
    least = rules.get("min_messages", 1 if rules.get("required", True) else 0)
    if len(ch) < least:
        place = "min_messages" if "min_messages" in rules else "required"
        yield _broken("messages", f"{len(ch)} messages, at least {least} are required", ch, rule=place)
    if "window" in rules:
        yield from _rate_in_windows(ch, rules)
    elif "min_rate" in rules or "max_rate" in rules:
        yield from _rate(ch, rules)
    if "max_gap" in rules:
        yield from _silences(ch, rules["max_gap"])
    if "max_jitter" in rules:
        yield from _jitter(ch, rules["max_jitter"])
    if rules.get("ordered", False):
        yield from _order(ch)
    if "min_delay" in rules or "max_delay" in rules:
        yield from _delays(ch, rules)
    yield from _fields(ch, rules, beside)


def _rate(ch: Channel, rules: Rules) -> Iterator[Finding]:
    rate = channel_stats(ch).rate
    if rate is None or rate < rules.get("min_rate", 0):
        measured = "no rate can be determined" if rate is None else f"{rate:.4g} Hz"
        text = f"{measured}, at least {rules.get('min_rate', 0)} Hz are required"
        yield _broken("rate", text, ch, rule="min_rate" if "min_rate" in rules else "max_rate")
    elif rate > rules.get("max_rate", rate):
        text = f"{rate:.4g} Hz, at most {rules['max_rate']} Hz are allowed"
        yield _broken("rate", text, ch, rule="max_rate")


def _rate_in_windows(ch: Channel, rules: Rules) -> Iterator[Finding]:
    """Yield a finding for the first window, of those that begin at a message, with too few or too many messages."""
    window, times = rules["window"], in_order(ch.times)
    counts = counts_within(times, window)
    seconds, length = window / SECOND, duration_text(window)
    if not len(counts):
        for key in ("min_rate", "max_rate"):
            if key in rules:
                yield _not_assessed(f"its rate: it has no messages over {length}", ch.topic, key)
        return
    least, most = rules.get("min_rate", 0), rules.get("max_rate", math.inf)
    slow, fast = np.flatnonzero(counts < least * seconds), np.flatnonzero(counts > most * seconds)
    for rows, bound, limit in ((slow, least, "at least"), (fast, most, "at most")):
        if len(rows):
            first = int(rows[0])
            worst = int(counts[rows].min() if rows is slow else counts[rows].max())
            # What is wrong may begin within the window: there the sum of what steps are too long, or too short, turns.
            inside = np.diff(times[first : first + int(counts[first]) + 1]) - SECOND / bound
            total = np.cumsum(inside if rows is slow else -inside)
            time = int(times[first + int(np.argmin(np.append(0.0, total[:-1])))])
            rest = f"{limit} {bound} Hz are {'required' if rows is slow else 'allowed'}"
            place = "min_rate" if rows is slow else "max_rate"
            text = f"{worst / seconds:.4g} Hz within {length}, {rest}"
            yield _broken("rate", text, ch, None, time, 1, place)


def _silences(ch: Channel, most: int) -> Iterator[Finding]:
    """Yield a finding for gaps longer than *most* ns, also before the first message and after the last one."""
    starts, steps = silences(ch)
    long = np.flatnonzero(steps > most)
    if len(long):
        start, n = int(starts[long[0]]), len(long)
        text = f"silent for {duration_text(int(steps[long].max()))}"
        text += "" if n < 2 else " and once more" if n == 2 else f" and {n - 1} times more"
        text += f", at most {duration_text(most)} are allowed"
        behind = np.flatnonzero(ch.times > start)
        yield _broken("gap", text, ch, int(behind[0]) if len(behind) else None, start, n, "max_gap")


def _jitter(ch: Channel, most: int) -> Iterator[Finding]:
    times = in_order(ch.times)
    blocks = jitter_blocks(times)
    if not len(blocks):
        yield _not_assessed(f"fewer than {BLOCK} steps between messages", ch.topic, "max_jitter", SKIPPED)
    wide = np.flatnonzero(blocks > most)
    if len(wide):
        text = (
            f"a jitter of {duration_text(int(blocks[wide].max()))}, at most {duration_text(most)} is allowed"
        )
        yield _broken("jitter", text, ch, None, int(times[wide[0] * BLOCK]), len(wide), "max_jitter")


def _order(ch: Channel) -> Iterator[Finding]:
    back = np.flatnonzero(ch.times[1:] < ch.times[:-1])
    if len(back):
        row, n = int(back[0]) + 1, len(back)
        text = f"{n} message{'s have' * (n > 1) or ' has'} an earlier time than the message before"
        yield _broken("order", text, ch, row, int(ch.times[row - 1]), n, "ordered")


def _delays(ch: Channel, rules: Rules) -> Iterator[Finding]:
    """Yield a finding for the first block of messages that were logged too early or too late after their stamp."""
    measured = delays(ch)
    if measured is None:
        for key in ("min_delay", "max_delay"):
            if key in rules:
                yield _not_assessed("its delay: its messages have no stamps", ch.topic, key)
        return
    least, most = rules.get("min_delay", -math.inf), rules.get("max_delay", math.inf)
    for rows, worst in (
        (np.flatnonzero(measured.delay < least), np.min),
        (np.flatnonzero(measured.delay > most), np.max),
    ):
        if len(rows):
            delay = duration_text(int(worst(measured.delay[rows])))
            bound = (
                f"at least {duration_text(least)}" if worst is np.min else f"at most {duration_text(most)}"
            )
            text = f"logged {delay} after its stamp, {bound} are allowed"
            place = "min_delay" if worst is np.min else "max_delay"
            yield _broken("delay", text, ch, None, int(measured.begin[rows[0]]), len(rows), place)


# ------------------------------------------------------------------------------------------------------ values

#: Rules that compare the windows of a field with a number: key, array of the windows, whether the number is the least
#: one that is allowed, and the words for it.
BOUNDS = (
    ("min", "low", True, "goes down to"),
    ("max", "high", False, "goes up to"),
    ("min_mean", "mean", True, "has a mean over a second of"),
    ("max_mean", "mean", False, "has a mean over a second of"),
    ("max_std", "spread", False, "varies within a second by up to"),
    ("max_step", "step", False, "changes from one message to the next by up to"),
)


def _fields(ch: Channel, rules: Rules, beside: _Beside) -> Iterator[Finding]:
    values, present = rules.get("values", {}), []
    missing = _missing_fields(ch, [*rules.get("fields", ()), *values])
    for path in dict.fromkeys([*rules.get("fields", ()), *values]):
        if path in missing:
            place = "fields" if path in rules.get("fields", ()) else f"values.{key_text(path)}"
            yield _broken("field", f"{missing[path]}: it is required", ch, rule=place)
        elif path in values:
            present.append(path)
    if present and not len(ch):
        yield _not_assessed("no messages", ch.topic, "values", SKIPPED)
    if not present or not len(ch):
        return
    wanted = list(dict.fromkeys(path.removesuffix("[]") for path in present))
    try:
        measured = field_windows(ch, wanted)
    except LogError as error:
        yield _not_assessed(f"its values: {error.text}", ch.topic, "values")
        return
    for path in present:
        place = f"values.{key_text(path)}"
        for field in measured:
            if field.path == path or field.path.startswith((f"{path}.", f"{path}[")):
                yield from _at(place, _value(ch, field, values[path], beside))


def _missing_fields(ch: Channel, paths: Sequence[str]) -> dict[str, str]:
    """Return why the channel does not have some of these fields, by path."""
    missing: dict[str, str] = {}
    # To look for all at once takes as long as for one.
    with suppress(LogError):
        ch.layout.project([path.removesuffix("[]") for path in paths])
        return missing
    for path in paths:
        try:
            ch.layout.project([path.removesuffix("[]")])
        except LogError as error:
            missing[path] = error.text
    return missing


def _value(ch: Channel, field: FieldWindows, rules: Rules, beside: _Beside) -> Iterator[Finding]:
    every = np.ones(len(field.number), bool)
    broken = set()
    for key, name, first, text in _beyond(field, rules, every):
        broken.add(key)
        time = _onset(ch, field, first, name, rules[key])
        yield _broken("value", f"{field.path} {text}", ch, None, time, 1, key)
    for mode, in_mode, mask in beside.masks(field, rules["modes"]) if "modes" in rules else ():
        for key, name, first, text in _beyond(field, in_mode, mask):
            if key in broken:
                text = "the bound for all modes is broken"
                yield _not_assessed(text, ch.topic, f"modes.{key_text(mode)}.{key}", SKIPPED)
            else:
                time = _onset(ch, field, first, name, in_mode[key])
                place = f"modes.{key_text(mode)}.{key}"
                yield _broken("value", f"{field.path} {text} (mode {mode})", ch, None, time, 1, place)
    for mode in beside.lacks(rules.get("modes", ())):
        yield _not_assessed("the mode does not occur", ch.topic, f"modes.{key_text(mode)}", SKIPPED)
    nan = int(field.nan.sum())
    if nan and not rules.get("nan", True):
        first = int(np.argmax(field.nan > 0))
        text = f"{field.path} is NaN {nan} times, which is not allowed"
        yield _broken("value", text, ch, None, _window_start(ch, field, first), nan, "nan")
    if "max_still" in rules:
        yield from _still(ch, field, rules["max_still"])
    for name, most in rules.get("near", {}).items():
        yield from _near(ch, field, beside.field(name), name, most)
    if "one_of" in rules or "changes" in rules:
        yield from _levels(ch, field, rules)


def _beyond(field: FieldWindows, rules: Rules, mask: Mask) -> Iterator[tuple[str, str, int, str]]:
    """Yield key and array of each bound that windows in *mask* break, the first such window, and the words for it."""
    for key, name, is_least, words in BOUNDS:
        if key not in rules:
            continue
        values, bound = getattr(field, name), rules[key]
        with np.errstate(invalid="ignore"):
            outside = mask & (values < bound if is_least else values > bound)
        if outside.any():
            worst = float(values[outside].min() if is_least else values[outside].max())
            rest = f"at least {bound} is required" if is_least else f"at most {bound} is allowed"
            yield key, name, int(np.argmax(outside)), f"{words} {worst:.6g}, {rest}"


def _window_start(ch: Channel, field: FieldWindows, window: int) -> int:
    return (ch.log.start or 0) + int(field.number[window]) * WINDOW


def _onset(ch: Channel, field: FieldWindows, window: int, name: str, bound: float) -> int:
    """Return when a bound is first broken: the message, or the begin of the window of a mean or a deviation.

    Where a drift breaks it, that is when the drift began.
    """
    start = _window_start(ch, field, window)
    drift = drift_begin(field.number, field.mean, window) if name in ("low", "high", "mean") else None
    if drift is not None:
        return (ch.log.start or 0) + round(drift * SECOND)
    if name not in ("low", "high", "step"):
        return start
    times, values = values_between(ch, field.path, start - WINDOW, start + WINDOW)
    if name == "step":
        values = np.abs(np.diff(values, prepend=values[:1]))
    with np.errstate(invalid="ignore"):
        outside = (times >= start) & (values < bound if name == "low" else values > bound)
    return int(times[np.argmax(outside)]) if outside.any() else start


def _still(ch: Channel, field: FieldWindows, most: int) -> Iterator[Finding]:
    """Yield a finding for the first time for which a value stays the same for longer than *most* ns."""
    runs = [(first, last) for first, last in still_runs(field) if (last - first + 1) * WINDOW > most]
    if runs:
        first = runs[0][0]
        start = _window_start(ch, field, first)
        times, values = values_between(ch, field.path, start - 2 * WINDOW, start)
        changed = np.flatnonzero(np.diff(values) != 0)
        time = int(times[changed[-1] + 1]) if len(changed) else start
        longest = max(last - first + 1 for first, last in runs)
        text = f"{field.path} stays the same for {longest} s, at most {duration_text(most)} are allowed"
        yield _broken("value", text, ch, None, time, len(runs), "max_still")


def _near(
    ch: Channel, field: FieldWindows, other: FieldWindows | None, name: str, most: float
) -> Iterator[Finding]:
    """Yield a finding if the means over a second of two fields differ by more than *most*."""
    if other is None:
        text = f"{field.path} beside {name}, which the log does not have"
        yield _not_assessed(text, ch.topic, f"near.{key_text(name)}")
        return
    windows, apart = difference(field, other)
    far = np.flatnonzero(apart > most)
    if len(far):
        text = f"{field.path} differs over a second from {name} by up to {apart[far].max():.6g}"
        text += f", at most {most} is allowed"
        time = (ch.log.start or 0) + int(windows[far[0]]) * WINDOW
        yield _broken("value", text, ch, None, time, len(far), f"near.{key_text(name)}")


def _levels(ch: Channel, field: FieldWindows, rules: Rules) -> Iterator[Finding]:
    """Yield a finding for values that are not among the allowed ones, and for changes that are not."""
    if field.levels is None:
        text = f"{field.path} has too many values to compare them with those that are allowed"
        for key in ("one_of", "changes"):
            if key in rules:
                yield _broken("value", text, ch, None, ch.start, 1, key)
        return
    allowed = rules.get("one_of", list(field.levels))
    other = [level for level in field.levels if level not in allowed]
    if other:
        time = next((time for time, _, after in field.changes or () if after in other), ch.start)
        text = f"{field.path} is {', '.join(map(str, other))}, allowed is {' or '.join(map(str, allowed))}"
        yield _broken("value", text, ch, None, time, sum(field.levels[level] for level in other), "one_of")
    if "changes" not in rules:
        return
    if field.changes is None:
        text = f"{field.path} changes too often to compare its changes with those that are allowed"
        yield _broken("value", text, ch, None, ch.start, 1, "changes")
        return
    odd = [
        change
        for change in field.changes
        if change[1:] not in rules["changes"] and not {*change[1:]} & {*other}
    ]
    if odd:
        pairs = ", ".join(dict.fromkeys(f"{before} to {after}" for _, before, after in odd))
        text = f"{field.path} changes from {pairs}, which is not among the changes that are allowed"
        yield _broken("value", text, ch, None, odd[0][0], len(odd), "changes")
