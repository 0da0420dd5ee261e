"""Recipes, from keyword arguments or a TOML file: what an edit changes; and plans: what that means for each channel."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import numpy as np

from logreel.errors import DefinitionError, LogError, NotFoundError, TopicError, UsageError
from logreel.index.channel_index import FieldAt
from logreel.io.arrays import I64
from logreel.layout.layout import Layout
from logreel.lenses.base import Stamp
from logreel.log.log import Channel, Log
from logreel.log.side_columns import payload_layout
from logreel.log.times import Length, duration_ns
from logreel.log.topic_match import GROUPS, REGEX, regex_groups, topic_and_fields
from logreel.ops.edit.field_edits import Editor, FieldEdit, LayoutEditor, Numbers, WholeEditor, in_type
from logreel.ops.edit.meanings import frame_paths, stamps
from logreel.ops.edit.places import has_grid
from logreel.ops.toml_lines import line_of

if TYPE_CHECKING:
    from logreel.ops.edit.place_mask import LogMasking

#: Largest recipe file.
MAX_BYTES = 1 << 20
#: What can be redacted, with the ways to do so; the first is the usual one.
REDACTIONS: Mapping[str, tuple[str, ...]] = {
    "position": ("move", "remove", "drop"),
    "place": ("move", "remove", "drop"),
    "identity": ("replace",),
    "time": ("shift",),
    "images": ("blank", "drop"),
    "text": ("blank", "drop"),
}
#: All that can be redacted; positions are places.
ALL = "all"
#: Which times a shift or a scale changes.
CLOCKS = ("both", "log", "header")
#: Ways to set one time to the other.
RESTAMPS = ("header=log", "log=header")
#: Latitude, longitude in degrees and altitude in metres that positions move to: 1.6 km from 0, 0, since programs take
#: positions at exactly 0, 0 as unknown.
NEUTRAL = (0.01, 0.01, 0.0)

Names = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class FileToAttach:
    """A file to be attached; *name* and *media_type*: empty for those of the path."""

    path: str
    name: str = ""
    media_type: str = ""


class RecipeOptions(TypedDict, total=False):
    """Members of a Recipe as callers give them, as keyword arguments; None: not given."""

    rename: Names | None
    frame: Names | None
    drop_topic: str | Iterable[str] | None
    zero: str | Iterable[str] | None
    shift: Any
    scale: float | None
    clock: str | None
    restamp: str | None
    set: Mapping[str, Any] | None
    unset: str | Iterable[str] | None
    attach: Any
    redact: str | Iterable[str] | Names | None
    origin: Sequence[float] | str | None


@dataclass(frozen=True, slots=True)
class Recipe:
    """What an edit changes; the fields are named as the options of ``logreel edit``.

    rename      new topics by old ones; patterns are described at ``new_topics``
    frame       new frame ids by old ones
    drop_topic  names or patterns of channels to leave out
    zero        fields to set to zero or empty: ``topic.field`` or ``topic:field,field``
    shift       ns to add to times
    scale       factor for times after the start
    clock       times that *shift* and *scale* change: ``both``, ``log`` or ``header``
    restamp     ``header=log``, ``log=header``, or empty
    set         metadata by name; ``TOPIC:NAME`` is metadata of a channel
    unset       names of metadata to remove
    attach      files to attach
    redact      way to redact (``REDACTIONS``) by what is redacted
    origin      latitude, longitude and altitude that positions move to
    """

    rename: Names = field(default_factory=dict)
    frame: Names = field(default_factory=dict)
    drop_topic: tuple[str, ...] = ()
    zero: tuple[str, ...] = ()
    shift: int = 0
    scale: float = 1.0
    clock: Literal["both", "log", "header"] = "both"
    restamp: str = ""
    set: Mapping[str, Any] = field(default_factory=dict)
    unset: tuple[str, ...] = ()
    attach: tuple[FileToAttach, ...] = ()
    redact: Names = field(default_factory=dict)
    origin: tuple[float, float, float] = NEUTRAL

    def __post_init__(self) -> None:
        if self.restamp and (self.scale != 1 or self.shift):
            raise UsageError("restamp sets one time to the other: it goes with neither shift nor scale")

    def __bool__(self) -> bool:
        return self != Recipe(clock=self.clock, origin=self.origin)

    @classmethod
    def of(cls, **options: Any) -> Recipe:
        """Return the recipe of keyword arguments as ``edit`` takes them; None means not given.

        Raises UsageError for unknown names and values that do not fit.
        """
        known = {option.name for option in fields(cls)}
        checked: dict[str, Any] = {}
        for key, value in options.items():
            if key not in known:
                raise UsageError(
                    f"{key!r} is no edit; there are: {', '.join(_spelled(k) for k in sorted(known))}"
                )
            if value is not None:
                checked[key] = _CHECKS[key](_spelled(key), value)
        return cls(**checked)

    def with_more(self, other: Recipe) -> Recipe:
        """Return the recipe with what *other* adds; of single values, that of *other* has precedence if it has any."""
        usual, merged = Recipe(), dict[str, Any]()
        for option in fields(self):
            present, more = getattr(self, option.name), getattr(other, option.name)
            if isinstance(present, Mapping):
                merged[option.name] = {**present, **more}
            elif isinstance(present, tuple) and option.name != "origin":
                merged[option.name] = (*present, *more)
            elif more != getattr(usual, option.name):
                merged[option.name] = more
        return replace(self, **merged)


def read_recipe(path: str | os.PathLike[str]) -> Recipe:
    """Return the recipe of a TOML file; paths of attachments in it are relative to its folder.

    Raises UsageError, with the line where it can be known, for a file that is no TOML, and for unknown or wrong keys.
    """
    name = os.fspath(path)
    if Path(path).stat().st_size > MAX_BYTES:
        raise UsageError(f"a recipe of more than {MAX_BYTES >> 20} MiB", path=name)
    try:
        text = Path(path).read_text(encoding="utf-8")
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"no valid TOML: {error}", path=name) from None
    options: dict[str, Any] = {}
    for key, value in table.items():
        plain = key.replace("-", "_")
        try:
            options |= {plain: value}
            Recipe.of(**{plain: value})
        except UsageError as error:
            raise UsageError(f"line {line_of(text, [key])}: {error.text}", path=name) from None
    folder = Path(path).parent
    try:
        made = Recipe.of(**options)
    except UsageError as error:
        raise UsageError(error.text, path=name) from None
    return replace(made, attach=tuple(replace(a, path=os.fspath(folder / a.path)) for a in made.attach))


def _spelled(key: str) -> str:
    return key.replace("_", "-")


def _pairs(key: str, value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping) or not all(
        isinstance(old, str) and isinstance(new, str) and old and new for old, new in value.items()
    ):
        raise UsageError(f"{key}: expected a table of old and new names, not {value!r:.60}")
    return dict(value)


def _texts(key: str, value: Any) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, Iterable) or isinstance(texts, Mapping | bytes):
        raise UsageError(f"{key}: expected a list of texts, not {value!r:.60}")
    result = tuple(texts)
    if not all(isinstance(text, str) and text for text in result):
        raise UsageError(f"{key}: expected a list of texts, not {value!r:.60}")
    return result


def _length(key: str, value: Any) -> int:
    if isinstance(value, bool | float):
        raise UsageError(f"{key}: expected a length of time such as 2s or -250ms, not {value!r}")
    length: Length = value
    return duration_ns(length)


def _factor(key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1e-6 <= value <= 1e6:
        raise UsageError(f"{key}: expected a factor between 0.000001 and 1000000, not {value!r:.40}")
    return float(value)


def _one_of(*words: str) -> Any:
    def check(key: str, value: Any) -> str:
        if value not in words:
            raise UsageError(f"{key}: expected {' or '.join(words)}, not {value!r:.40}")
        return str(value)

    return check


def _metadata(key: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) and name for name in value):
        raise UsageError(f"{key}: expected a table of names and values, not {value!r:.60}")
    return dict(value)


def _attached(key: str, value: Any) -> tuple[FileToAttach, ...]:
    files = [value] if isinstance(value, str | Mapping | FileToAttach | os.PathLike) else value
    if not isinstance(files, Iterable):
        raise UsageError(f"{key}: expected files, not {value!r:.60}")
    attached = []
    for entry in files:
        if isinstance(entry, str | os.PathLike):
            entry = FileToAttach(os.fspath(entry))
        elif isinstance(entry, Mapping):
            unknown = set(entry) - {"path", "name", "type"}
            if unknown or not isinstance(entry.get("path"), str):
                raise UsageError(
                    f"{key}: expected path, and optionally name and type, not {dict(entry)!r:.80}"
                )
            entry = FileToAttach(entry["path"], str(entry.get("name", "")), str(entry.get("type", "")))
        if not isinstance(entry, FileToAttach):
            raise UsageError(f"{key}: expected files, not {entry!r:.60}")
        attached.append(entry)
    return tuple(attached)


def _redactions(key: str, value: Any) -> dict[str, str]:
    """Return ways by what is redacted, from a table or from texts such as ``position`` and ``position=remove``."""
    if isinstance(value, Mapping):
        pairs = [(str(what), str(how)) for what, how in value.items()]
    else:
        each = [spec.strip() for text in _texts(key, value) for spec in text.split(",")]
        pairs = [(spec.partition("=")[0], spec.partition("=")[2]) for spec in each if spec]
    redactions: dict[str, str] = {}
    for what, how in pairs:
        if what == ALL and not how:
            redactions = {
                **{content: ways[0] for content, ways in REDACTIONS.items() if content != "position"},
                **redactions,
            }
            continue
        if what not in REDACTIONS:
            raise UsageError(
                f"{key}: {what!r} cannot be redacted; there are: {', '.join((*REDACTIONS, ALL))}"
            )
        ways = REDACTIONS[what]
        if how and how not in ways:
            raise UsageError(f"{key}: {what} can be redacted by {' or '.join(ways)}, not by {how!r}")
        redactions[what] = how or ways[0]
    return redactions


def _place(key: str, value: Any) -> tuple[float, float, float]:
    parts: Sequence[Any] = value.split(",") if isinstance(value, str) else value
    try:
        numbers = [float(part) for part in parts]
    except (TypeError, ValueError):
        numbers = []
    numbers += [0.0] * (len(numbers) == 2)
    if len(numbers) != 3 or not (abs(numbers[0]) <= 89 and abs(numbers[1]) <= 180 and abs(numbers[2]) < 1e5):
        raise UsageError(f"{key}: expected latitude, longitude and optionally altitude, not {value!r:.60}")
    return numbers[0], numbers[1], numbers[2]


_CHECKS: Mapping[str, Any] = {
    "rename": _pairs,
    "frame": _pairs,
    "drop_topic": _texts,
    "zero": _texts,
    "shift": _length,
    "scale": _factor,
    "clock": _one_of(*CLOCKS),
    "restamp": _one_of(*RESTAMPS),
    "set": _metadata,
    "unset": _texts,
    "attach": _attached,
    "redact": _redactions,
    "origin": _place,
}


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
    from logreel.ops.edit.field_edits import tree_editor

    editor = tree_editor(ch, layout, edits)
    if editor is None:
        from logreel.schemas.cdr import CdrDecoder

        what = ch.schema.encoding or "bytes"
        if isinstance(ch.decoder, CdrDecoder):
            what = "in an encoding of CDR that logreel reads, but does not write"
        text = f"fields of {ch.topic!r} cannot be changed: its messages are {what}"
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


#: Times that are larger, in ns, are no times.
MOST = 2.0**62


def make_plan(log: Log, recipe: Recipe, redact: Callable[[EditPlan], None]) -> EditPlan:
    """Return what *recipe* changes in *log*; raises UsageError or NotFoundError for what it cannot change.

    redact  adds the redactions of the recipe to a plan; called if there are any
    """
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
        redact(plan)
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
