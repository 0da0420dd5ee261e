"""What a recipe changes in each channel of a log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from logreel.errors import DefinitionError, LogError, NotFoundError, UsageError
from logreel.index.rules import FieldAt
from logreel.io.arrays import I64
from logreel.layout.layout import Layout
from logreel.lenses.base import Stamp
from logreel.log.log import Channel, Log
from logreel.log.side_columns import payload_layout
from logreel.log.topic_match import topic_and_fields
from logreel.ops.edit.field_edits import Editor, FieldEdit, LayoutEditor, Numbers
from logreel.ops.edit.meanings import frame_paths, stamps
from logreel.ops.edit.names import new_topics
from logreel.ops.edit.places import has_grid
from logreel.ops.edit.recipe import Recipe

#: Stamps farther from the log's times than this, ns, are of another clock.
OTHER_CLOCK = 86_400 * 10**9


@dataclass(slots=True)
class ChannelPlan:
    """What changes in one channel.

    topic  the new topic
    edits  changes of fields
    stamp  the field that gives messages their new log time; None: they keep it
    drop   why the channel is left out; empty: it is kept
    drop_kind  kind of the change that leaves it out
    """

    channel: Channel
    topic: str
    edits: list[FieldEdit] = field(default_factory=list)
    stamp: Stamp | None = None
    drop: str = ""
    drop_kind: str = "drop-topic"

    def editor(self) -> Editor | None:
        """Return a new Editor; None if no field changes. Raises UsageError for messages that cannot be changed."""
        if not self.edits:
            return None
        return editor_of(self.channel, self.edits)


@dataclass(slots=True)
class Plan:
    """What changes in a log.

    channels  plans by channel number
    notes     sentences about what is not changed, without loss
    problems  sentences about what should have been changed and is not
    metadata  metadata of the log to set, by name; *channel_metadata*: those of channels, by topic
    """

    log: Log
    recipe: Recipe
    channels: dict[int, ChannelPlan]
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    channel_metadata: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def moves_times(self) -> bool:
        """Whether log times change other than by a shift."""
        recipe = self.recipe
        return recipe.restamp == "log=header" or (recipe.scale != 1 and recipe.clock != "header")

    @property
    def shift(self) -> int:
        """Nanoseconds to add to log times."""
        return 0 if self.recipe.clock == "header" else self.recipe.shift

    def new_times(self, time: I64) -> I64:
        """Return log times, which include ``shift``, with the scale of the recipe."""
        if self.recipe.scale == 1 or self.recipe.clock == "header":
            return time
        start = (self.log.start or 0) + self.shift
        return scaled(time, start, self.recipe.scale)


def scaled(time: I64, start: int, factor: float) -> I64:
    """Return times with their distance from *start* multiplied by *factor*, rounded to ns."""
    return start + np.rint((time - start) * factor).astype(np.int64)


def editor_of(ch: Channel, edits: list[FieldEdit]) -> Editor:
    """Return the Editor of a channel; raises UsageError if its messages cannot be changed."""
    layout = payload_layout(ch)
    if layout is not None and (all(edit.numbers is not None for edit in edits) or not has_grid(layout.root)):
        return LayoutEditor(layout, edits)
    from logreel.ops.edit.trees import tree_editor

    found = tree_editor(ch, layout, edits)
    if found is None:
        text = f"fields of {ch.topic!r} cannot be changed: its messages are {ch.schema.encoding or 'bytes'}"
        raise UsageError(text, path=ch.log.name, hint="drop the topic instead")
    return found


def fields_layout(ch: Channel) -> Layout | None:
    """Return the Layout by which fields of *ch* are named; None if it has none."""
    try:
        return payload_layout(ch) or ch.layout
    except DefinitionError:
        return None


def make_plan(log: Log, recipe: Recipe) -> Plan:
    """Return what *recipe* changes in *log*; raises UsageError or NotFoundError for what it cannot change."""
    dropped = {ch.number for ch in log.match(recipe.drop_topic)} if recipe.drop_topic else set[int]()
    kept = [name for name, ch in log.channels.items() if ch.number not in dropped]
    if not kept and log.channels:
        raise UsageError("no channel is left", path=log.name)
    names = new_topics(kept, recipe.rename)
    plans = {
        ch.number: ChannelPlan(ch, names.get(ch.topic, ch.topic), drop="dropped" * (ch.number in dropped))
        for ch in log.channels.values()
    }
    plan = Plan(log, recipe, plans)
    there = [one for one in plans.values() if not one.drop]
    for want in recipe.zero:
        _add_zero(log, want, plans)
    if recipe.redact:
        from logreel.ops.edit.redact import add_redactions

        add_redactions(plan)
    if recipe.frame:
        _add_frames(plan, there)
    if recipe.restamp or (recipe.clock != "log" and (recipe.shift or recipe.scale != 1)):
        _add_stamps(plan, there)
    for one in there:
        if one.edits and not one.drop:
            one.editor()
    return plan


def _add_zero(log: Log, want: str, plans: dict[int, ChannelPlan]) -> None:
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
            found = edit.targets(layout)
        except NotFoundError as error:
            errors.append(error)
            continue
        if any(one.steps == ("timestamp",) for one in found) and time_is_inside(ch):
            raise UsageError(f"{want!r} is the time of the messages", path=log.name)
        plans[ch.number].edits += [FieldEdit("zero", (path,), clears=True) for path in fields]
        done = True
    if not done:
        raise (
            errors[0] if errors else UsageError(f"{want!r}: its messages have no known fields", path=log.name)
        )


def time_is_inside(ch: Channel) -> bool:
    """Return whether the log time of messages is a field of their payloads."""
    rule = ch.log.index.rules[ch.number].time
    return isinstance(rule, FieldAt) and rule.offset >= 0


def _add_frames(plan: Plan, there: list[ChannelPlan]) -> None:
    names = {old.encode(): new.encode() for old, new in plan.recipe.frame.items()}

    def change(old: bytes, message: Callable[[], Any]) -> bytes:
        return names.get(old, old)

    some = False
    for one in there:
        layout = fields_layout(one.channel)
        paths = frame_paths(layout) if layout is not None and not one.channel.reserved else []
        one.edits += [FieldEdit("frame", (path,), content=change) for path in paths]
        some |= bool(paths)
    if not some:
        raise UsageError("no channel has a field with the name of a frame", path=plan.log.name)


def _add_stamps(plan: Plan, there: list[ChannelPlan]) -> None:
    recipe, some = plan.recipe, False
    for one in there:
        ch = one.channel
        layout = fields_layout(ch)
        if layout is None or ch.reserved:
            continue
        inside = time_is_inside(ch)
        found = stamps(layout, inside)
        if recipe.restamp == "log=header":
            one.stamp = found[0] if found else None
        elif recipe.restamp:
            # Fields of other events, such as the last signal of a receiver, are no stamps of the message.
            own = stamps(layout, False)
            one.edits += [_stamp_edit(stamp, _to_log_time) for stamp in own]
        else:
            one.edits += [_stamp_edit(stamp, _moved(plan)) for stamp in found]
        some |= bool(found) or inside
    if not some and (recipe.restamp or recipe.clock == "header"):
        raise UsageError("no channel has a stamp in its messages", path=plan.log.name)


def _to_log_time(ns: I64, time: I64) -> I64:
    return time


def _moved(plan: Plan) -> Callable[[I64, I64], I64]:
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
        with np.errstate(over="ignore"):
            parts = [value.astype(np.int64) * unit for value, unit in zip(values, units, strict=True)]
        ns = parts[0] if len(parts) == 1 else parts[0] + parts[1]
        new = change(ns, time)
        same = new == ns
        made: list[Numbers] = []
        for value, unit in zip(values, units, strict=True):
            whole = new // unit if unit != 1 or len(units) == 1 else new % 10**9
            made.append(np.where(same, value, whole))
        return made

    return FieldEdit("stamp", tuple(stamp.paths), numbers=numbers)


def dropped(plan: Plan) -> Iterator[ChannelPlan]:
    """Yield the plans of channels that are left out."""
    return (one for one in plan.channels.values() if one.drop)
