"""What a recipe changes in each channel of a log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.dataclass import dataclass, field
from logreel.errors import DefinitionError, UsageError
from logreel.index.channel_index import FieldAt
from logreel.io.arrays import I64
from logreel.layout.layout import Layout
from logreel.lenses.base import Stamp
from logreel.log.log import Channel, Log
from logreel.log.side_columns import payload_layout
from logreel.ops.edit.field_edits import Editor, FieldEdit, LayoutEditor, WholeEditor
from logreel.ops.edit.places import has_grid
from logreel.ops.edit.recipe import Recipe

if TYPE_CHECKING:
    from logreel.ops.edit.log_masking import LogMasking

#: Stamps farther from the log's times than this, ns, are of another clock.
OTHER_CLOCK = 86_400 * 10**9
#: Times before are counted from something else than 1970, ns.
AGES = 10**17


@dataclass(slots=True)
class ChannelEdits:
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
class EditPlan:
    """What changes in a log.

    channels  plans by channel number
    notes     sentences about what is not changed, without loss
    problems  sentences about what should have been changed and is not
    metadata  metadata of the log to set, by name; *channel_metadata*: those of channels, by topic
    remove_metadata  names of metadata to remove, since they contain what is redacted
    masking  what hides identities, times and places in names, texts and values; None: nothing does
    """

    log: Log
    recipe: Recipe
    channels: dict[int, ChannelEdits]
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    channel_metadata: dict[str, dict[str, Any]] = field(default_factory=dict)
    remove_metadata: list[str] = field(default_factory=list)
    masking: LogMasking | None = None

    @property
    def moves_times(self) -> bool:
        """Whether log times change other than by a shift."""
        recipe = self.recipe
        return recipe.restamp == "log=header" or (recipe.scale != 1 and recipe.clock != "header")

    @property
    def secret_shift(self) -> int:
        """Nanoseconds by which redacted log times move; 0 for logs on a clock that says no date."""
        if self.masking is None or self.log.epoch != "unix":
            return 0
        return (
            self.masking.offset
            if any(ch.end is not None and ch.end > AGES for ch in self.log.channels.values())
            else 0
        )

    @property
    def shift(self) -> int:
        """Nanoseconds to add to log times."""
        return self.secret_shift + (0 if self.recipe.clock == "header" else self.recipe.shift)

    def new_times(self, time: I64) -> I64:
        """Return log times, which include ``shift``, with the scale of the recipe."""
        if self.recipe.scale == 1 or self.recipe.clock == "header":
            return time
        start = (self.log.start or 0) + self.shift
        return scaled(time, start, self.recipe.scale)


def scaled(time: I64, start: int, factor: float) -> I64:
    """Return times with their distance from *start* multiplied by *factor*, rounded to ns."""
    return np.asarray(start + np.rint((time - start) * factor).astype(np.int64))


def editor_of(ch: Channel, edits: list[FieldEdit]) -> Editor:
    """Return the Editor of a channel; raises UsageError if its messages cannot be changed."""
    if not ch.reserved and ch.log.index.rules[ch.number].is_synthetic:
        text = f"fields of {ch.topic!r} cannot be changed: it is made of other channels"
        raise UsageError(text, path=ch.log.name, hint="change these")
    if any(edit.whole for edit in edits):
        fields = [edit for edit in edits if not edit.whole]
        return WholeEditor(edits, editor_of(ch, fields) if fields else None, ch.decode)
    layout = payload_layout(ch)
    if layout is not None and (all(edit.numbers is not None for edit in edits) or not has_grid(layout.root)):
        return LayoutEditor(layout, edits)
    from logreel.ops.edit.trees import tree_editor

    editor = tree_editor(ch, layout, edits)
    if editor is None:
        text = f"fields of {ch.topic!r} cannot be changed: its messages are {ch.schema.encoding or 'bytes'}"
        raise UsageError(text, path=ch.log.name, hint="drop the topic instead")
    return editor


def fields_layout(ch: Channel) -> Layout | None:
    """Return the Layout by which fields of *ch* are named; None if it has none."""
    try:
        return payload_layout(ch) or ch.layout
    except DefinitionError:
        return None


def time_is_inside(ch: Channel) -> bool:
    """Return whether the log time of messages is a field of their payloads."""
    rule = ch.log.index.rules[ch.number].time
    return isinstance(rule, FieldAt) and rule.offset >= 0


def dropped(plan: EditPlan) -> Iterator[ChannelEdits]:
    """Yield the plans of channels that are left out."""
    return (channel_edits for channel_edits in plan.channels.values() if channel_edits.drop)
