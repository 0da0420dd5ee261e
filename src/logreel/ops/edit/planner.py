"""Plans of edits, made from a recipe and a log."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from logreel.errors import LogError, NotFoundError, TopicError, UsageError
from logreel.io.arrays import I64
from logreel.lenses.base import Stamp
from logreel.log.log import Log
from logreel.log.topic_match import GROUPS, REGEX, regex_groups, topic_and_fields
from logreel.ops.edit.field_edits import FieldEdit, Numbers, in_type
from logreel.ops.edit.meanings import frame_paths, stamps
from logreel.ops.edit.plan import ChannelEdits, EditPlan, fields_layout, scaled, time_is_inside
from logreel.ops.edit.recipe import Recipe

_GROUP = re.compile(r"\{(\d*)\}")
_WILD = re.compile(r"\*\*?|\?|\[!?[^\]]+\]")


def new_topics(topics: Iterable[str], rename: Mapping[str, str]) -> dict[str, str]:
    """Return the new topics of those that *rename* changes.

    rename  new by old: a topic, a shell pattern (``/robot1/*``), or ``re:`` and a regular expression of RE2; in the
            new name ``{}`` is what the next wildcard or group matched, ``{1}`` the first one, ``{0}`` the whole topic.
            An existing topic is no pattern, and has precedence; else the first pattern that matches applies

    Raises TopicError for an entry that matches nothing, UsageError for invalid patterns and for topics that would
    become equal.
    """
    names = list(topics)
    renamed: dict[str, str] = {}
    for old, new in rename.items():
        if old in names:
            renamed[old] = _filled(new, [], 0, old)
    for old, new in rename.items():
        if old in names:
            continue
        (fit, total), matched = _compiled(old), False
        for name in names:
            groups = None if name.startswith("~") else fit(name)
            if groups is not None:
                matched = True
                if name not in renamed:
                    renamed[name] = _filled(new, groups, total, name)
        if not matched:
            raise TopicError("channel to be renamed", old, names, none="the log has no channels")
    _check(names, renamed)
    return {old: new for old, new in renamed.items() if old != new}


def _check(names: list[str], renamed: Mapping[str, str]) -> None:
    taken: dict[str, str] = {}
    for name in names:
        new = renamed.get(name, name)
        if new.startswith("~") and not name.startswith("~"):
            raise UsageError(f"{name!r} cannot become {new!r}: names with ~ are reserved")
        if name.startswith("~") and new != name:
            raise UsageError(f"the reserved channel {name!r} cannot be renamed")
        if new in taken:
            text = f"{name!r} and {taken[new]!r} would both be called {new!r}"
            raise UsageError(text, hint="merge joins channels of several logs")
        taken[new] = name


def _compiled(old: str) -> tuple[Callable[[str], list[str] | None], int]:
    """Return a function that returns the texts of the groups or wildcards of *old* in a topic, and their number.

    Patterns may come from a recipe of others, so they are matched in linear time.
    """
    if old.startswith(REGEX):
        pattern = old.removeprefix(REGEX)
        # RE2 says what is wrong; Python only counts the groups.
        regex_groups(pattern, 0)
        try:
            total = re.compile(pattern).groups
        except (re.error, RecursionError, OverflowError) as error:
            raise UsageError(f"{old}: not a regular expression: {error}") from None
        return regex_groups(pattern, total), total
    out, pos, count = "(?s)", 0, 0
    for wild in _WILD.finditer(old):
        word = wild[0]
        inside = (
            ".*" if word[0] == "*" else "." if word == "?" else word.replace("[!", "[^").replace("\\", r"\\")
        )
        out += re.escape(old[pos : wild.start()]) + f"({inside})"
        pos, count = wild.end(), count + 1
    try:
        return regex_groups(out + re.escape(old[pos:]), count), count
    except UsageError as error:
        raise UsageError(f"{old}: not a pattern: {error.text.rpartition(': ')[2]}") from None


def _filled(new: str, groups: list[str], total: int, topic: str) -> str:
    """Return *new* with the texts of *groups*, the first of *total*; an exact name has none."""
    count = iter(range(1, 1 + total))

    def group(match: re.Match[str]) -> str:
        number = int(match[1]) if match[1] else next(count, -1)
        if number == 0:
            return topic
        if not 0 < number <= total:
            raise UsageError(f"{new!r}: {match[0]} has no wildcard or group in the old name")
        if number > len(groups):
            raise UsageError(f"{new!r}: only the first {GROUPS} wildcards or groups can be named")
        return groups[number - 1]

    return _GROUP.sub(group, new)


#: Stamps farther from the log's times than this, ns, are of another clock.
OTHER_CLOCK = 86_400 * 10**9
#: Times that are larger, in ns, are no times.
MOST = 2.0**62


def make_plan(log: Log, recipe: Recipe) -> EditPlan:
    """Return what *recipe* changes in *log*; raises UsageError or NotFoundError for what it cannot change."""
    dropped = {ch.number for ch in log.match(recipe.drop_topic)} if recipe.drop_topic else set[int]()
    kept = [name for name, ch in log.channels.items() if ch.number not in dropped]
    if not kept and log.channels:
        raise UsageError("no channel is left", path=log.name)
    names = new_topics(kept, recipe.rename)
    plans = {
        ch.number: ChannelEdits(ch, names.get(ch.topic, ch.topic), drop="dropped" * (ch.number in dropped))
        for ch in log.channels.values()
    }
    plan = EditPlan(log, recipe, plans)
    not_dropped = [channel_edits for channel_edits in plans.values() if not channel_edits.drop]
    for want in recipe.zero:
        _add_zero(log, want, plans)
    if recipe.redact:
        from logreel.ops.edit.redact import add_redactions

        add_redactions(plan)
    if recipe.frame:
        _add_frames(plan, not_dropped)
    if recipe.restamp or (recipe.clock != "log" and (recipe.shift or recipe.scale != 1)):
        _add_stamps(plan, not_dropped)
    for channel_edits in not_dropped:
        if channel_edits.edits and not channel_edits.drop:
            channel_edits.editor()
    return plan


def _add_zero(log: Log, want: str, plans: dict[int, ChannelEdits]) -> None:
    split = topic_and_fields(log.channels, want)
    if split is None or not split[1]:
        text = f"{want!r}: expected topic.field or topic:field,field"
        raise UsageError(text, path=log.name)
    topics, fields = split
    errors: list[LogError] = []
    done = False
    for topic in topics:
        ch = log[topic]
        layout = fields_layout(ch)
        if layout is None or plans[ch.number].drop:
            continue
        edit = FieldEdit("zero", tuple(fields), clears=True)
        try:
            targets = edit.targets(layout)
        except NotFoundError as error:
            errors.append(error)
            continue
        if any(target_field.steps == ("timestamp",) for target_field in targets) and time_is_inside(ch):
            raise UsageError(f"{want!r} is the time of the messages", path=log.name)
        plans[ch.number].edits += [FieldEdit("zero", (path,), clears=True) for path in fields]
        done = True
    if not done:
        raise (
            errors[0] if errors else UsageError(f"{want!r}: its messages have no known fields", path=log.name)
        )


def _add_frames(plan: EditPlan, kept: list[ChannelEdits]) -> None:
    names = {old.encode(): new.encode() for old, new in plan.recipe.frame.items()}

    def change(old: bytes, message: Callable[[], Any]) -> bytes:
        return names.get(old, old)

    any_frame = False
    for channel_edits in kept:
        layout = fields_layout(channel_edits.channel)
        paths = frame_paths(layout) if layout is not None and not channel_edits.channel.reserved else []
        channel_edits.edits += [FieldEdit("frame", (path,), content=change) for path in paths]
        any_frame |= bool(paths)
    if not any_frame:
        raise UsageError("no channel has a field with the name of a frame", path=plan.log.name)


def _add_stamps(plan: EditPlan, kept: list[ChannelEdits]) -> None:
    recipe, any_stamp = plan.recipe, False
    for channel_edits in kept:
        ch = channel_edits.channel
        layout = fields_layout(ch)
        if layout is None or ch.reserved:
            continue
        inside = time_is_inside(ch)
        stamps_of_data = stamps(layout, inside)
        if recipe.restamp == "log=header":
            channel_edits.stamp = stamps_of_data[0] if stamps_of_data else None
        elif recipe.restamp:
            # Fields of other events, such as the last signal of a receiver, are no stamps of the message.
            own = stamps(layout, False)
            channel_edits.edits += [_stamp_edit(stamp, _to_log_time) for stamp in own]
        else:
            channel_edits.edits += [_stamp_edit(stamp, _moved(plan)) for stamp in stamps_of_data]
        any_stamp |= bool(stamps_of_data) or inside
    if not any_stamp and (recipe.restamp or recipe.clock == "header"):
        raise UsageError("no channel has a stamp in its messages", path=plan.log.name)


def _to_log_time(ns: I64, time: I64) -> I64:
    return time


def _moved(plan: EditPlan) -> Callable[[I64, I64], I64]:
    """Return the function from stamps to those with shift and scale; 0, which means unknown, stays."""
    recipe, origin = plan.recipe, list[int]()
    start, end = plan.log.start or 0, plan.log.end or 0

    def move(ns: I64, time: I64) -> I64:
        known = ns != 0
        if not origin and known.any():
            first = int(ns[np.argmax(known)])
            origin.append(start if start - OTHER_CLOCK < first < end + OTHER_CLOCK else first)
        moved = scaled(ns, origin[0], recipe.scale) if origin and recipe.scale != 1 else ns
        return np.where(known, moved + recipe.shift, 0)

    return move


def _stamp_edit(stamp: Stamp, change: Callable[[I64, I64], I64]) -> FieldEdit:
    """Return the edit of a stamp: one number, or seconds and the rest."""
    units = [unit for _, unit in stamp.parts]

    def numbers(values: list[Numbers], time: I64) -> list[Numbers]:
        # The largest numbers mean that a time is unknown.
        limits = [value.astype(np.float64) * unit for value, unit in zip(values, units, strict=True)]
        sane = np.all([np.abs(limit) < MOST for limit in limits], axis=0)
        parts = [
            np.where(sane, value, 0).astype(np.int64) * unit
            for value, unit in zip(values, units, strict=True)
        ]
        ns = parts[0] if len(parts) == 1 else parts[0] + parts[1]
        new = change(ns, time)
        same = (new == ns) | ~sane
        made: list[Numbers] = []
        for value, unit in zip(values, units, strict=True):
            number = new // unit if unit != 1 or len(units) == 1 else new % 10**9
            # Not a mixture of types, which NumPy would make float64.
            made.append(np.where(same, value, in_type(number, value.dtype)))
        return made

    return FieldEdit("stamp", tuple(stamp.paths), numbers=numbers)
