"""Writing of a log with the messages of some channels in other versions of their types."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from logreel.errors import LogError, UsageError
from logreel.io.output_stream import Destination
from logreel.layout.encode_message import encoder
from logreel.layout.layout import Layout
from logreel.layout.nodes import Bytes, Field, FixedArray, Node, String, Struct
from logreel.layout.nodes import Sequence as Many
from logreel.log.log import Channel, Log
from logreel.log.scan import Schema
from logreel.log.source_files import decrypted_notes
from logreel.ops.migrate.paths import MissingRule, Path
from logreel.ops.migrate.plan import ChannelPlan, Files, Planner
from logreel.ops.migrate.types import (
    NAMED,
    REAL_NUMBERS,
    TIMES,
    BoundRule,
    ColumnUpdate,
    FieldType,
    NotColumnsError,
    TypeVersion,
    Update,
    current_name,
    listed,
)
from logreel.ops.rewrite.engine import NewChannel, NewLog, Transform, rewrite
from logreel.ops.rewrite.parts import Part, whole_log
from logreel.ops.rewrite.streams import MessageBatch
from logreel.ops.rewrite.target import Rewritten, Target, TargetOptions
from logreel.ops.selection import check_keywords, keywords
from logreel.registry.open import as_log_to_copy, as_open_log
from logreel.write.format_writer import Payloads

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.joined_log import Openable


#: Fewer messages than these are migrated one by one.
FEW = 16
#: Number of reasons that are named of messages that cannot be migrated.
REASONS = 3


@dataclass(frozen=True, slots=True)
class TypeChange:
    """The migration of one channel.

    rules  where the rules stand that were applied, in this order; empty for an update without rules
    """

    topic: str
    old_type: str
    old_version: str
    new_type: str
    new_version: str
    messages: int
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Migrated(Rewritten):
    """Result of a migration; *changes* lists the channels whose type changed, in file order."""

    changes: tuple[TypeChange, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON data of ``migrate --json``."""
        changes = [asdict(change) | {"rules": list(change.rules)} for change in self.changes]
        return {**Rewritten.as_dict(self), "changes": changes}


@keywords(TargetOptions, Target)
def migrate(
    src: Openable | Log,
    dst: Destination,
    *,
    rules: Files = (),
    to: Files = (),
    known: bool = True,
    partial: bool = False,
    definitions: Definitions = (),
    **options: Unpack[TargetOptions],
) -> Migrated:
    """Write a log with its messages in the wanted versions of their types; all other messages stay as they are.

    dst      a path, or a binary file object, which is written in order
    rules    files or folders with rules: ``.bmr`` of ROS, or ``.toml``
    to       files or folders with wanted definitions (``.msg``); their types have to be reached
    known    also update types to the definitions that logreel knows, where this needs no rules or there are rules
    partial  True: leave the messages of channels for which a rule is missing as they are, and report them in
             ``skipped``; False: raise MissingRuleError for them
    definitions, options  as for ``slice``, without a selection

    A message to which a rule cannot be applied, or whose values do not fit the new type, is left out and reported in
    ``skipped``. Raises MissingRuleError, UsageError for rules that contradict each other, UnsupportedError for rules
    that cannot be read, and the errors of ``slice``.
    """
    check_keywords(migrate, options)
    target = Target.of(dst, options)
    with as_log_to_copy(src, definitions) as log:
        part, migration, skipped = plan_migration(log, Planner(rules, to, known), partial)
        done = rewrite([part], target, transforms=[migration], skipped=skipped)
        return Migrated(
            done.path, done.size, done.channels, done.notes, done.skipped, tuple(migration.changed)
        )


def plan_migration(log: Log, planner: Planner, partial: bool) -> tuple[Part, Migration, list[str]]:
    """Return *log* with new names, the migration of its messages, and what is left as it is; as for ``migrate``."""
    plans = planner.plans(log)
    missing = [plan for plan in plans if plan.state == "missing"]
    if missing and not partial:
        raise MissingRuleError(missing, log.name)
    names = {plan.channel.number: topic for plan in plans if (topic := _new_topic(plan)) is not None}
    part = replace(whole_log(log), names=names, notes=tuple(_notes(planner, plans)))
    skipped = [f"{plan.channel.topic!r} stays as it is: {plan.text}" for plan in missing]
    return part, Migration(planner), skipped


def _new_topic(plan: ChannelPlan) -> str | None:
    """Return the new topic of a channel: that of a rule, or where topics begin with the type, after its new name."""
    if plan.state != "migrates" or plan.path is None:
        return None
    topics = [
        step.how.topic for step in plan.path.steps if isinstance(step.how, BoundRule) and step.how.topic
    ]
    topic, old, new = plan.channel.topic, plan.path.old.name, plan.path.new.name
    if topics:
        return topics[-1] if topics[-1] != topic else None
    if plan.path.new.encoding == NAMED or old == new or not topic.startswith(old):
        return None
    return new + topic.removeprefix(old)


def _notes(planner: Planner, plans: Sequence[ChannelPlan]) -> Iterator[str]:
    """Yield sentences about types that differ from those known, and about rules that do not run or have no messages."""
    for plan in plans:
        if plan.state == "differs":
            yield f"{plan.channel.topic!r} stays as it is: {plan.text}"
        if plan.path is not None and plan.path.keeps_bytes and plan.rules:
            same = f"{plan.path.old.label} and {plan.path.new.label} have the same definition"
            yield f"the values of {plan.channel.topic!r} stay as they are, {listed(plan.rules)} is not run: {same}"
    unused = planner.unused(plans)
    if unused:
        yield f"rules that no channel needs: {listed(unused)}"


class MissingRuleError(LogError):
    """Types that cannot be migrated since rules are missing.

    plans  plans of the channels concerned
    """

    def __init__(self, plans: list[ChannelPlan], path: str | None = None) -> None:
        first = plans[0]
        more = f", and {len(plans) - 1} more channels" if len(plans) > 1 else ""
        super().__init__(
            f"{first.channel.topic!r} cannot be migrated: {first.text}{more}",
            path=path,
            hint="logreel.ops.migrate.write_template() begins rules for them; partial=True leaves these messages as "
            "they are",
        )
        self.plans = plans


@dataclass
class Migration(Transform):
    """Messages of channels in other versions of their types.

    changed     the channels whose type changed, once all is written
    converters  migration of messages, by part and channel number
    """

    planner: Planner
    changed: list[TypeChange] = field(default_factory=list)
    converters: dict[tuple[int, int], _Converter] = field(default_factory=dict)
    _channels: list[NewChannel] = field(default_factory=list)

    def _path(self, channel: Channel | None) -> Path | None:
        """Return the way to the new type of a channel; None if its type stays."""
        if channel is None or channel.reserved:
            return None
        plan = self.planner.plan(channel)
        return plan.path if plan.state == "migrates" else None

    def changes(self, part: Part) -> bool:
        """Return whether the type of any channel changes."""
        return any(self._path(ch) is not None for ch in part.channels)

    def channels(self, new: NewLog, channels: Sequence[NewChannel]) -> Sequence[NewChannel]:
        """Return the channels with their new types."""
        self._channels = [ch for ch in channels if self._path(ch.source) is not None]
        for ch in self._channels:
            path = self._path(ch.source)
            if path is not None:
                to, ch.metadata, ch.is_other = path.new, self._metadata(path, ch.metadata), True
                ch.schema = Schema(to.name, NAMED, to.text) if to.encoding == NAMED else to.layout
        self.change_content(new)
        return channels

    def change_content(self, new: NewLog) -> None:
        """Have the definitions of the old types left out of *new*."""
        paths = (self._path(ch.source) for ch in self._channels)
        new.copier.replaced_types = frozenset(path.old.name for path in paths if path is not None)

    def _metadata(self, path: Path, metadata: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the metadata of a channel with its new type."""
        if path.new.encoding == NAMED:
            return {**metadata, "md5sum": path.new.key}
        if path.new.name != path.old.name:
            # The rest of the metadata describes the old type.
            return {}
        return {**metadata, "version": int(path.new.version)} if path.new.version.isdigit() else metadata

    def _update_columns(self, path: Path) -> ColumnUpdate | None:
        """Return the update of columns of a path; None if messages have to be migrated one by one."""
        try:
            return self.planner.paths.update_columns(path)
        except NotColumnsError:
            return None

    def batches(self, new: NewLog, batches: Iterable[MessageBatch]) -> Iterable[MessageBatch]:
        """Yield the messages, without those that cannot be migrated."""
        self.converters = {}
        for ch in self._channels:
            path = self._path(ch.source)
            if path is None or path.keeps_bytes:
                continue
            before, after = path.old.layout, path.new.layout
            first = path.steps[0].how
            if isinstance(first, BoundRule) and first.layout is not None:
                before = first.layout
            if path.new.encoding != NAMED:
                after = new.format_writer.schemas.layout(new.number_of(ch))
            update = self.planner.paths.update(path)
            self.converters[ch.part, ch.number] = _Converter(
                before, after, update, self._update_columns(path)
            )
        return map(self._migrated, batches)

    def _migrated(self, batch: MessageBatch) -> MessageBatch:
        """Return *batch* with migrated messages, without those that cannot be migrated."""
        keep = np.ones(len(batch.time), bool)
        for place, pair in enumerate(zip(batch.origins.tolist(), batch.channels.tolist(), strict=True)):
            if pair in self.converters:
                rows = np.flatnonzero(batch.queue == place)
                if len(rows):
                    batch = self.converters[pair].replace_in(batch, rows, keep)
        return batch if keep.all() else batch.rows(np.flatnonzero(keep))

    def finish(self, new: NewLog) -> None:
        """Note what changed."""
        # A log for a stream is written twice.
        self.changed = []
        for ch in self._channels:
            path, part = self._path(ch.source), new.parts[ch.part]
            if path is None or ch.source is None or ch.number not in part.rows:
                continue
            converter = self.converters.get((ch.part, ch.number))
            count = part.count(ch.number) - (converter.failed if converter is not None else 0)
            old, to = path.old, path.new
            versions = old.name, old.version or old.key, to.name, to.version or to.key
            rules = tuple(step.rule for step in path.steps if step.rule)
            change = TypeChange(ch.source.topic, *versions, count, rules)
            # Channels of several files with one topic and the same types are one change.
            same = next((n for n, other in enumerate(self.changed) if _alike(other, change)), None)
            if same is None:
                self.changed.append(change)
            else:
                self.changed[same] = replace(change, messages=self.changed[same].messages + count)

    def why_unwritten(self, channel: NewChannel) -> str:
        """Return why messages of *channel* cannot be migrated."""
        converter = self.converters.get((channel.part, channel.number))
        return converter.why if converter is not None and converter.reasons else ""


def _alike(change: TypeChange, other: TypeChange) -> bool:
    """Return whether two changes differ only in the number of messages."""
    return replace(change, messages=0) == replace(other, messages=0)


@dataclass(slots=True)
class _Converter:
    """Migration of the messages of one channel: by columns where possible, else one by one.

    columns  the update of columns; None: messages are migrated one by one
    reasons  numbers of messages that could not be migrated, by reason
    """

    old: Layout
    new: Layout
    update: Update
    columns: ColumnUpdate | None = None
    reasons: Counter[str] = field(default_factory=Counter)
    convert: Callable[[memoryview], bytes] = field(init=False)

    def __post_init__(self) -> None:
        decode, encode, update = (
            with_raw_text(self.old).decoder(),
            encoder(with_raw_text(self.new)),
            self.update,
        )
        self.convert = lambda data: encode(update(decode(data)))

    @property
    def failed(self) -> int:
        """Number of messages that could not be migrated."""
        return self.reasons.total()

    @property
    def why(self) -> str:
        """Reasons for people, the most frequent first."""
        reasons = [
            text if count == self.failed else f"{text} ({count})"
            for text, count in self.reasons.most_common(REASONS)
        ]
        return "; ".join(reasons) + " …" * (len(self.reasons) > REASONS)

    def replace_in(self, batch: MessageBatch, rows: np.ndarray, keep: np.ndarray) -> MessageBatch:
        """Return *batch* with new payloads at *rows*; False in *keep* for messages that cannot be migrated."""
        payloads = batch.payloads
        old_payloads = payloads.rows(rows).in_one()
        made = self._by_columns(old_payloads)
        data, size = self._one_by_one(old_payloads, rows, keep) if made is None else made
        which = np.zeros(len(batch.time), np.int32) if payloads.which is None else payloads.which.copy()
        starts, sizes = payloads.start.copy(), payloads.size.copy()
        others = [*payloads.others, data]
        which[rows], starts[rows], sizes[rows] = len(others), np.cumsum(size) - size, size
        return replace(
            batch, payloads=replace(payloads, others=others, which=which, start=starts, size=sizes)
        )

    def _by_columns(self, payloads: Payloads) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the new payloads, one after another, and their sizes; None if they have to be made one by one."""
        if self.columns is None or len(payloads.start) < FEW:
            return None
        from logreel.layout.arrow import decode_variable
        from logreel.layout.encode import encode_columns
        from logreel.layout.numpy_columns import NumpyFields

        before, after, count = with_raw_text(self.old), with_raw_text(self.new), len(payloads.start)
        fields = NumpyFields(before)
        try:
            got = decode_variable(fields, payloads.data, payloads.start, payloads.start + payloads.size)
            if got.bad:
                return None
            columns = self.columns(dict(zip(fields.names, got.arrays, strict=True)), count)
            data, start = encode_columns(after, columns, count)
        except (NotColumnsError, UsageError):
            return None
        return data, np.diff(start)

    def _one_by_one(
        self, old_payloads: Payloads, rows: np.ndarray, keep: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the new payloads, one after another, and their sizes; 0 for those that cannot be migrated."""
        view, out, size = (
            memoryview(np.ascontiguousarray(old_payloads.data).data),
            bytearray(),
            np.zeros(len(rows), np.int64),
        )
        edges = zip(
            old_payloads.start.tolist(), (old_payloads.start + old_payloads.size).tolist(), strict=True
        )
        for n, (start, end) in enumerate(edges):
            try:
                made = self.convert(view[start:end])
            except LogError as error:
                self.reasons[error.text] += 1
                keep[rows[n]] = False
                continue
            out += made
            size[n] = len(made)
        return np.frombuffer(bytes(out), np.uint8), size


def with_raw_text(layout: Layout) -> Layout:
    """Return *layout* with texts as bytes, so that those that are no UTF-8 are kept."""
    done: dict[int, Node] = {}

    def raw(node: Node) -> Node:
        if id(node) not in done:
            done[id(node)] = made(node)
        return done[id(node)]

    def made(node: Node) -> Node:
        match node:
            case String(width=width, grid=None, tail=0):
                return Bytes(width)
            case Struct(fields=fields):
                return Struct(tuple(Field(f.name, raw(f.node), f.unit) for f in fields))
            case Many(item=item, width=width, grid=grid):
                return Many(raw(item), width, grid)
            case FixedArray(item=item, count=count):
                return FixedArray(raw(item), count)
            case _:
                return node

    root = raw(layout.root)
    return Layout(root, layout.name) if isinstance(root, Struct | Many) else layout


def write_template(
    src: Openable | Log,
    path: str | os.PathLike[str],
    *,
    rules: Files = (),
    to: Files = (),
    known: bool = True,
    force: bool = False,
) -> int:
    """Write a file with the beginning of each rule that is missing to migrate a log; return the number of rules.

    path   ``.bmr`` or ``.toml``; nothing is written if no rule is missing
    force  replace *path*

    The other arguments are those of ``migrate``. Types that differ from those that logreel knows count as missing, too.
    """
    suffix = FilePath(path).suffix
    if suffix not in (".bmr", ".toml"):
        raise UsageError("a rule file is *.bmr or *.toml", path=os.fspath(path))
    with as_open_log(src) as log:
        decrypted_notes(log)
        plans = Planner(rules, to, known).plans(log)
    gaps: dict[tuple[object, object], MissingRule] = {}
    for plan in plans:
        if plan.path is not None and plan.state in ("missing", "differs"):
            gaps |= {(gap.old.identity, gap.new.identity): gap for gap in plan.path.gaps}
    if gaps:
        make = bmr_template if suffix == ".bmr" else toml_template
        text = "\n\n".join(make(gap) for gap in gaps.values())
        try:
            with open(path, "w" if force else "x", encoding="utf-8", errors="replace") as file:
                file.write(text)
        except FileExistsError:
            raise LogError(
                "exists",
                path=os.fspath(path),
                hint="pass force=True to replace it",
            ) from None
    return len(gaps)


def bmr_template(gap: MissingRule) -> str:
    """Return the class of a rule in the syntax of ROS, with all assignments that are known."""
    old, new = gap.old, gap.new
    pairs: dict[tuple[str, str], None] = {}
    lines = [f"# {reason}" for reason in gap.reasons]
    for name, field_type in new.fields.items():
        before = old.fields.get(name)
        if before is None or before.spelled.partition("[")[1:] != field_type.spelled.partition("[")[1:]:
            lines.append(
                f"new_msg.{name} = {_value(field_type)}  # {'was ' + before.spelled if before else 'new'}"
            )
        elif before.nested is not None and field_type.nested is not None:
            if (
                current_name(before.base) == current_name(field_type.base)
                or before.nested.key == field_type.nested.key
            ):
                pairs[_short(before, old), _short(field_type, new)] = None
                array = f', "{field_type.base}"' if field_type.array else ""
                lines.append(
                    f"self.migrate{'_array' * field_type.array}(old_msg.{name}, new_msg.{name}{array})"
                )
            else:
                lines.append(f"new_msg.{name} = {_value(field_type)}  # was {before.spelled}")
        elif before.base != field_type.base:
            lines.append(f"new_msg.{name} = {_value(field_type)}  # was {before.spelled}: old_msg.{name}")
        else:
            lines.append(f"new_msg.{name} = old_msg.{name}")
    lines += [
        f"# old_msg.{name} has no place in the new message" for name in old.fields if name not in new.fields
    ]
    body = "".join(f"        {line}\n" for line in [*lines, "pass"])
    shown = "".join(f'        ("{before}", "{after}"),\n' for before, after in pairs)
    label = f"update_{old.name.replace('/', '_')}_{old.key}"
    return (
        f"class {label}(MessageUpdateRule):\n"
        f'    old_type = "{old.name}"\n    old_full_text = """\n{_quoted(old)}\n"""\n\n'
        f'    new_type = "{new.name}"\n    new_full_text = """\n{_quoted(new)}\n"""\n\n'
        f"    order = 0\n    migrated_types = [\n{shown}    ]\n\n    valid = False\n\n"
        f"    def update(self, old_msg, new_msg):\n{body}"
    )


def _quoted(version: TypeVersion) -> str:
    return version.text.strip("\n").replace("\\", "\\\\").replace('"""', "'''")


def _short(field_type: FieldType, owner: TypeVersion) -> str:
    """Return the name of a type as rules write it: without the package of the message, or that of Header."""
    package, _, name = field_type.base.rpartition("/")
    return name if package in (owner.name.rpartition("/")[0], "std_msgs", "roslib") else field_type.base


def _value(field_type: FieldType) -> str:
    """Return an expression for a new field."""
    if field_type.array:
        if field_type.count is None:
            return "b''" if field_type.is_bytes else "[]"
        item = _value(FieldType(field_type.base, field_type.nested))
        return (
            f"bytes({field_type.count} * [0])"
            if field_type.is_bytes
            else f"[{item} for n in range({field_type.count})]"
        )
    if field_type.nested is not None:
        return f"self.get_new_class('{field_type.base}')()"
    if field_type.base in TIMES:
        return "rospy.Time(0, 0)" if field_type.base == "time" else "rospy.Duration(0, 0)"
    return "''" if field_type.base == "string" else "0.0" if field_type.base in REAL_NUMBERS else "0"


def toml_template(gap: MissingRule) -> str:
    """Return a rule in TOML, with the fields that need a source or a value."""
    old, new = gap.old, gap.new
    lines = [f"# {reason}" for reason in gap.reasons]
    lines += ["[[rule]]", f'type = "{old.name}"']
    if old.encoding == NAMED:
        lines.append(f'md5 = "{old.key}"')
    if old.name != new.name:
        lines.append(f'to = "{new.name}"')
    lines += [f"definition = '''\n{new.text.strip(chr(10))}\n'''" if new.text else ""]
    lines.append("valid = false  # complete the fields below, then remove this line")
    gone = [name for name in old.fields if name not in new.fields]
    if gone:
        lines.append(f"remove = {_strings(gone)}")
    lines.append("[rule.fields]")
    lines += list(_toml_fields(gap))
    return "\n".join(line for line in lines if line) + "\n"


def _toml_fields(gap: MissingRule) -> Iterator[str]:
    for name, field_type in gap.new.fields.items():
        before = gap.old.fields.get(name)
        if before is None:
            yield f'{name} = {{ value = {_toml_value(field_type)} }}  # new: {field_type.spelled}; or {{ from = "…" }}'
        elif before.spelled != field_type.spelled and before.nested is None:
            yield f'{name} = {{ from = "{name}" }}  # was {before.spelled}, is {field_type.spelled}'


def _toml_value(field_type: FieldType) -> str:
    if field_type.array:
        return "[]"
    if field_type.nested is not None:
        return "{}"
    return '""' if field_type.base == "string" else "0.0" if field_type.base in REAL_NUMBERS else "0"


def _strings(values: Iterable[str]) -> str:
    return "[" + ", ".join(f'"{value}"' for value in values) + "]"
