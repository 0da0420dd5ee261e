"""Writing of a log with changed names, frames, times, fields and metadata."""

from __future__ import annotations

import mimetypes
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from logreel.errors import LogError, UnsupportedError, UsageError
from logreel.index.channel_index import FieldAt
from logreel.index.gather import Rows
from logreel.io.arrays import I64
from logreel.io.output_stream import Destination
from logreel.io.source import Buffer
from logreel.io.two_pass import DryRun
from logreel.lenses.base import Stamp
from logreel.log.joined_log import JoinedLog
from logreel.log.log import Channel, Log
from logreel.log.scan import Attachment, Schema
from logreel.log.side_columns import payload_layout
from logreel.ops.edit.field_edits import Editor, FieldEdit, digests, read_numbers
from logreel.ops.edit.places import Finder, target
from logreel.ops.edit.recipe import (
    ChannelEdits,
    EditPlan,
    Recipe,
    RecipeOptions,
    dropped,
    editor_of,
    make_plan,
    read_recipe,
)
from logreel.ops.rewrite.engine import NewChannel, NewLog, Transform, rewrite
from logreel.ops.rewrite.parts import Part, whole_log
from logreel.ops.rewrite.streams import MessageBatch, in_file_order
from logreel.ops.rewrite.target import Rewritten, Target, TargetOptions, format_of
from logreel.ops.selection import check_keywords, keywords
from logreel.registry.format import Format
from logreel.registry.open import as_log_to_copy
from logreel.write.format_writer import FormatWriter, Payloads

if TYPE_CHECKING:
    from logreel.io.source import Definitions
    from logreel.log.joined_log import Openable
    from logreel.ops.edit.residue import Residue


class StampReader:
    """Reads the first stamp of each message of a channel."""

    def __init__(self, ch: Channel, stamp: Stamp) -> None:
        self._channel, self._stamp = ch, stamp
        layout = payload_layout(ch)
        self._targets = [] if layout is None else [target(layout, path, scalars=True) for path in stamp.paths]
        self._finder = None if layout is None else Finder(layout, self._targets)

    def read(self, payloads: Payloads) -> I64:
        """Return int64[n] ns; 0 for messages without a stamp."""
        data, size = payloads.joined(), payloads.size
        start = np.cumsum(size) - size
        if self._finder is None:
            view = memoryview(data.data)
            ends = (start + size).tolist()
            return np.array(
                [self._decoded(view[a:b]) for a, b in zip(start.tolist(), ends, strict=True)], np.int64
            )
        stamps = np.zeros(len(size), np.int64)
        places, _ = self._finder.find(data, start, size)
        if not len(places[0].row):
            return stamps
        values = {
            path: read_numbers(data, target_field.node, where)
            for path, target_field, where in zip(self._stamp.paths, self._targets, places, strict=True)
        }
        ns = self._stamp.of(values)
        rows, first = np.unique(places[0].row, return_index=True)
        stamps[rows] = ns[first]
        return stamps

    def _decoded(self, data: memoryview) -> int:
        try:
            message: Any = self._channel.decode(data)
        except LogError:
            return 0
        total = 0
        for path, unit in self._stamp.parts:
            value: Any = message
            for name in path.split("."):
                if isinstance(value, list):
                    value = value[0] if value else None
                value = value.get(name) if isinstance(value, dict) else None
            if not isinstance(value, int):
                return 0
            total += value * unit
        return total if -(1 << 63) <= total < 1 << 63 else 0


#: Return uint64[n, 2]: digests of the messages data[start:start + size].
Digest = Callable[[Buffer, I64, I64], NDArray[np.uint64]]


def verify(
    part: Part,
    log: Log,
    names: Mapping[str, Channel],
    editors: Mapping[int, Editor],
    expected: Mapping[int, NDArray[np.uint64]],
    moved: bool,
    by_time: Mapping[int, Collection[str]],
) -> list[str]:
    """Return sentences about differences between *log*, the new one, and what it should be.

    names     channels of the source by their names in the new log
    editors   editors by channel number of the source
    expected  digests of the changed messages, by channel number of the source
    moved     True: log times change
    by_time   fields that the writer sets by the times of messages, by channel number of the source
    """
    pairs = {
        source.number: log[name]
        for name, source in names.items()
        if name in log and part.log.index.rules[source.number].synthetic is None
    }
    sources = {source.number: source for source in names.values()}
    before: dict[int, list[Digest]] = {}
    after: dict[int, list[Digest]] = {}
    for number, new in pairs.items():
        editor = editors.get(number)
        if editor is None and moved and by_time.get(number):
            edit = FieldEdit("time", tuple(by_time[number]), clears=True)
            editor = editor_of(sources[number], [edit])
        old = part.log.index.rules[number].time if moved else None
        now = log.index.rules[new.number].time if moved else None
        before[number] = [_digest(editor, old)]
        after[new.number] = [_digest(editor, now)] + ([whole_digest(now)] if number in expected else [])
    old_digests = _digests(part.log, {number: part.rows[number] for number in pairs}, before)
    new_digests = _digests(log, {ch.number: slice(0, len(ch)) for ch in pairs.values()}, after)
    wrong: list[str] = []
    for number, new in pairs.items():
        before_digests, its = old_digests[number][0], new_digests[new.number]
        # Counts were compared before; messages that cannot be changed are left out.
        if len(before_digests) == len(its[0]) and not np.array_equal(before_digests, its[0]):
            wrong.append(f"messages of {new.topic!r} differ where nothing was to be changed")
        if number in expected and not np.array_equal(expected[number], its[1]):
            wrong.append(f"messages of {new.topic!r} are not those that were written")
    texts = {source.number: log[name] for name, source in names.items() if name in log}
    return wrong + _remaining(log, texts, editors)


def check_metadata(
    log: Log,
    title: str,
    path: str,
    removed: Iterable[str],
    by_channel: Mapping[str, Mapping[str, Any]],
) -> None:
    """Raise UsageError if *log*, the new one, lacks metadata that were set, or has some that were removed."""
    for key in removed:
        if key in log.metadata:
            raise UsageError(f"{title} cannot be without metadata {key!r}", path=path)
    for topic, entries in by_channel.items():
        metadata = log[topic].metadata if topic in log else {}
        headers = metadata.get("headers", ())
        for key in entries:
            if key not in metadata and not any(key in header for header in headers):
                raise UsageError(f"channels of {title} have no place for {key!r}", path=path)


def whole_digest(time: object) -> Digest:
    """Return the digest of whole messages; *time*: rule of log times that change, which do not count, or None."""
    return _digest(None, time)


def _digest(editor: Editor | None, time: object) -> Digest:
    """Return the digest of messages without the fields that change; *time*: as for ``whole_digest``."""
    if isinstance(time, FieldAt) and time.offset >= 0:
        place, width = time.offset, time.width

        def without_time(data: Buffer, start: I64, size: I64) -> NDArray[np.uint64]:
            data = data.copy()
            rows = start[size >= place + width]
            data[(rows + place)[:, None] + np.arange(width)] = 0
            return digests(data, size) if editor is None else editor.untouched(data, start, size)

        return without_time
    return (lambda data, start, size: digests(data, size)) if editor is None else editor.untouched


def _digests(
    log: Log, rows: Mapping[int, Rows], how: Mapping[int, list[Digest]]
) -> dict[int, list[NDArray[np.uint64]]]:
    """Return the digests of the messages of each channel in file order, in one pass over the log."""
    none = np.empty((0, 2), np.uint64)
    collected = {number: [[none] for _ in how[number]] for number in rows}
    for number, data, start, size in _messages(log, rows):
        for digest, parts in zip(how[number], collected[number], strict=True):
            parts.append(digest(data, start, size))
    return {number: [np.concatenate(parts) for parts in each] for number, each in collected.items()}


def _remaining(log: Log, pairs: Mapping[int, Channel], editors: Mapping[int, Editor]) -> list[str]:
    """Return a sentence for each channel of the new log that still has what an edit was to change."""
    changed = {new.number: editors[number] for number, new in pairs.items() if number in editors}
    topics = {ch.number: ch.topic for ch in pairs.values()}
    wrong: dict[str, None] = {}
    rows = {number: slice(0, log.index.count(number)) for number in changed}
    for number, data, start, size in _messages(log, rows):
        kinds = changed[number].remaining(data, start, size)
        wrong |= dict.fromkeys(f"{topics[number]!r} still has what was to be changed: {k}" for k in kinds)
    return list(wrong)


def _messages(log: Log, rows: Mapping[int, Rows]) -> Iterator[tuple[int, Buffer, I64, I64]]:
    """Yield messages of channels in one pass over the log: the channel, payloads joined, their starts and sizes."""
    for batch in in_file_order(Part(log, rows)) if rows else ():
        for place, number in enumerate(batch.channels.tolist()):
            rows_of_channel = np.flatnonzero(batch.queue == place)
            if len(rows_of_channel):
                payloads = batch.payloads.rows(rows_of_channel)
                yield number, payloads.joined(), np.cumsum(payloads.size) - payloads.size, payloads.size


#: Kinds of redaction after which the written log is searched.
REMOVALS = {"position", "place", "identity", "time"}
#: Largest file that is attached.
MAX_ATTACHED = 1 << 30


@dataclass(frozen=True, slots=True)
class Changed:
    """One change that was made.

    kind      name of the option: ``rename``, ``frame``, ``zero``, ``redact position`` …
    topic     the channel, as it was called; empty: the log
    what      fields, new name, or a sentence; never a redacted value
    messages  number of messages that changed
    """

    kind: str
    topic: str
    what: str
    messages: int


@dataclass(frozen=True, slots=True, repr=False)
class Edited(Rewritten):
    """Result of an edit.

    changes   what was changed, in the order of channels
    written   False: only tried (``dry_run``)
    may_identify  what is left in a redacted log that may say who, where or when; see the guide
    """

    changes: tuple[Changed, ...]
    written: bool = True
    may_identify: tuple[Residue, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON data of ``edit --json``."""
        changes = [asdict(entry) for entry in self.changes]
        left = [asdict(entry) for entry in self.may_identify]
        return {
            **Rewritten.as_dict(self),
            "changes": changes,
            "written": self.written,
            "may_identify": left,
        }


class EditOptions(RecipeOptions, TargetOptions, total=False):
    """Changes, and how to write the log, as keyword arguments."""


@keywords(EditOptions, Recipe, Target)
def edit(
    src: Openable | Log,
    dst: Destination | None,
    recipe: Recipe | str | os.PathLike[str] | None = None,
    *,
    dry_run: bool = False,
    definitions: Definitions = (),
    **options: Unpack[EditOptions],
) -> Edited:
    """Write a log with changes; everything else stays as it is, byte for byte.

    dst         a path, or a binary file object, which is written in order; None with *dry_run*
    recipe      a Recipe, or the path of one in TOML; the arguments below add to it
    rename      new topics by old ones; old ones may be patterns: ``{"/robot1/*": "/robot/{}"}``
    frame       new names of frames by old ones, in all fields for these
    drop_topic  names or patterns of channels to leave out
    zero        fields that become zero or empty: ``"/gps/fix.latitude"``
    shift       length of time that is added to times: ns, ``"2s"``, a timedelta
    scale       factor by which times after the start are stretched
    clock       times that *shift* and *scale* change: ``"both"`` (the default), ``"log"``, or ``"header"`` for stamps
    restamp     ``"header=log"``: stamps become log times; ``"log=header"``: log times become stamps
    set, unset  metadata to set, by name, and to remove; ``"TOPIC:NAME"`` is metadata of a channel
    attach      files to attach: paths, or dicts with ``path``, ``name`` and ``type``
    redact      what is removed: ``"place"``, ``"identity"``, ``"time"``, ``"position"``, ``"images"``, ``"text"`` or
                ``"all"``; ways as ``"position=remove"``, see the guide
    origin      latitude, longitude in degrees, altitude in metres that redacted positions move to
    dry_run     write nothing; the result says what would change
    definitions, and how to write, as for ``slice``

    The new log is read back and compared with the old one before it gets its name. Raises UsageError for changes that
    format or messages do not allow, TopicError and NotFoundError for unknown names, and the errors of ``slice``.
    """
    check_keywords(edit, options)
    if isinstance(recipe, str | os.PathLike):
        recipe = read_recipe(recipe)
    from_options = Recipe.of(
        **{name: value for name, value in options.items() if name in RecipeOptions.__annotations__}
    )
    wanted = from_options if recipe is None else recipe.with_more(from_options)
    if dst is None and not dry_run:
        raise UsageError("no output is given")
    with as_log_to_copy(src, definitions) as log:
        part, edits = plan_edits(log, wanted)
        path = f"edited{format_of(log).suffixes[0]}" if dst is None else dst
        target = Target.of(path, options)
        # A stream gets the log after it was verified as a file.
        target = replace(target, thorough=target.stream is not None)
        out = DryRun(target.path) if dry_run else None
        done = rewrite([part], target, transforms=[edits], out=out, skipped=list(edits.plan.problems))
        return Edited(
            *(done.path, done.size, done.channels, done.notes, done.skipped),
            changes=tuple(edits.changed_in(part)),
            written=not dry_run,
            may_identify=tuple(edits.may_identify),
        )


def plan_edits(log: Log, recipe: Recipe) -> tuple[Part, Edits]:
    """Return what of *log* is written, with its new names and shift, and the changes; raises as ``edit`` does."""
    if isinstance(log, JoinedLog):
        raise UsageError("several files cannot be edited as one log", path=log.name, hint="merge them first")
    plan = make_plan(log, recipe, _add_redactions)
    attached = tuple(_read(file) for file in recipe.attach)
    _check_content(format_of(log), log, plan, attached)
    names = {
        number: edits.topic for number, edits in plan.channels.items() if edits.topic != edits.channel.topic
    }
    left_out = {edits.channel.number for edits in dropped(plan)}
    all_messages = whole_log(log)
    rows = {number: rows for number, rows in all_messages.rows.items() if number not in left_out}
    part = replace(all_messages, rows=rows, names=names, shift=plan.shift, notes=tuple(plan.notes))
    return part, Edits(plan, attached)


def _add_redactions(plan: EditPlan) -> None:
    # Edits without redactions need none of its rules.
    from logreel.ops.edit.redact import add_redactions

    add_redactions(plan)


@dataclass(frozen=True, slots=True)
class _File:
    """An attachment that was read."""

    name: str
    media_type: str
    data: bytes

    def as_attachment(self) -> Attachment:
        """Return the attachment of a log."""
        return Attachment(self.name, self.media_type, len(self.data), lambda: self.data)


def _read(attached: Any) -> _File:
    size = Path(attached.path).stat().st_size
    if size > MAX_ATTACHED:
        raise UsageError(
            f"{size} bytes are too many for an attachment; at most {MAX_ATTACHED}", path=attached.path
        )
    name = attached.name or os.path.basename(attached.path)
    media_type = attached.media_type or mimetypes.guess_type(name)[0] or "application/octet-stream"
    return _File(name, media_type, Path(attached.path).read_bytes())


def _check_content(fmt: Format, log: Log, plan: EditPlan, attached: Sequence[_File]) -> None:
    """Raise UsageError for metadata and attachments that the format cannot hold, before anything is written."""
    recipe = plan.recipe
    own, by_channel = metadata_of(log, recipe.set)
    plan.metadata, plan.channel_metadata = own, by_channel
    format_writer = fmt.create(DryRun("")) if fmt.create is not None else None
    if format_writer is None:
        raise UnsupportedError(f"{fmt.title} cannot be written", path=log.name)
    try:
        for name, value in list(own.items()):
            _try_metadata(log, format_writer, own, name, value)
        for file in attached:
            format_writer.attachment(file.name, b"", file.media_type)
    except UnsupportedError as error:
        raise UsageError(error.text, path=log.name) from None
    if by_channel and not format_writer.schemas.keeps_metadata:
        raise UsageError(f"{fmt.title} has no metadata of channels to set", path=log.name)
    for name in recipe.unset:
        if name not in log.metadata:
            raise UsageError(f"there is no metadata {name!r} to remove", path=log.name)
        if name in fmt.file_facts or name == fmt.name:
            raise UsageError(f"{name!r} describes the file itself and cannot be removed", path=log.name)


def _try_metadata(log: Log, writer: FormatWriter, own: dict[str, Any], name: str, value: Any) -> None:
    """Try to write metadata; where they have to be maps, ``NAME.KEY`` in *own* becomes an entry of the map NAME."""
    try:
        writer.metadata(name, value)
    except UsageError as error:
        group, _, key = name.partition(".")
        present = next((m for m in (own.get(group), log.metadata.get(group)) if isinstance(m, Mapping)), {})
        made = {**present, key or "KEY": value}
        try:
            writer.metadata(group, made)
        except UsageError:
            raise error from None
        if not key:
            raise UsageError(error.text, hint="name an entry of the map: NAME.KEY") from None
        del own[name]
        own[group] = made


def metadata_of(log: Log, entries: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return the metadata of the log, and those of channels by topic, from ``NAME`` and ``TOPIC:NAME``."""
    own: dict[str, Any] = {}
    by_channel: dict[str, dict[str, Any]] = {}
    for key, value in entries.items():
        topic, _, name = key.rpartition(":")
        if name and topic in log.channels:
            by_channel.setdefault(topic, {})[name] = value
        else:
            own[key] = value
    return own, by_channel


def with_entries(metadata: Mapping[str, Any], entries: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the metadata of a channel with other entries; where each publisher has a header, all headers get them."""
    headers = metadata.get("headers")
    if not entries or not isinstance(headers, Sequence):
        return {**metadata, **entries}
    return {
        **metadata,
        "headers": [{**header, **{k: str(v) for k, v in entries.items()}} for header in headers],
    }


def _described(edit: FieldEdit) -> str:
    """Return the fields of an edit, and how they were recognised."""
    return ", ".join(edit.paths) + (f" ({edit.why})" if edit.why else "")


@dataclass
class Edits(Transform):
    """The changes of a recipe.

    may_identify  what may still identify; filled when the written log is verified
    editors, stamp_readers  by channel number
    restamped, unstamped, undecodable  numbers of messages by channel: with another log time, without a stamp, and those
                  that cannot be decoded
    by_time       fields that the writer sets by the times of messages, by channel number
    expected      digests of the changed messages by channel number, without log times if these change
    """

    plan: EditPlan
    attached: Sequence[_File]
    may_identify: list[Residue] = field(default_factory=list)
    editors: dict[int, Editor] = field(default_factory=dict)
    stamp_readers: dict[int, StampReader] = field(default_factory=dict)
    restamped: Counter[int] = field(default_factory=Counter)
    unstamped: Counter[int] = field(default_factory=Counter)
    undecodable: Counter[int] = field(default_factory=Counter)
    by_time: dict[int, Collection[str]] = field(default_factory=dict)
    expected: dict[int, list[NDArray[np.uint64]]] = field(default_factory=dict)
    _channels: Sequence[NewChannel] = ()
    _is_read_back: bool = True
    _written: Part | None = None

    def changes(self, part: Part) -> bool:
        """Return whether more changes than that channels are left out or renamed."""
        recipe = self.plan.recipe
        return bool(
            any(channel.edits and not channel.drop for channel in self._plans)
            or self.plan.moves_times
            or recipe.set
            or recipe.unset
            or self.plan.remove_metadata
            or self.attached
            or self.plan.masking is not None
        )

    @property
    def _plans(self) -> Iterable[ChannelEdits]:
        return self.plan.channels.values()

    def channels(self, new: NewLog, channels: Sequence[NewChannel]) -> Sequence[NewChannel]:
        """Return the channels with their new metadata."""
        Edits.__init__(self, self.plan, self.attached)
        self.moves_times = self.plan.moves_times
        for number, plan in self.plan.channels.items():
            editor = plan.editor() if not plan.drop else None
            if editor is not None:
                self.editors[number] = editor
            if plan.stamp is not None and not plan.drop:
                self.stamp_readers[number] = StampReader(plan.channel, plan.stamp)
        self.change_content(new)
        for channel in channels:
            self._mask(channel)
        self._channels, self._is_read_back = channels, new.out.readable
        return channels

    def change_content(self, new: NewLog) -> None:
        """Have what the log holds besides messages written to *new* with its changes."""
        own, masking = self.plan.metadata, self.plan.masking
        new.copier.masking = masking
        new.copier.replaced_metadata = frozenset((*own, *self.plan.recipe.unset, *self.plan.remove_metadata))
        clock = new.format_writer.source_clock
        if masking is not None and masking.offset and clock is not None and clock.utc_offset is not None:
            # A shifted log would else say how to get the times back.
            offset = clock.utc_offset + masking.offset
            new.format_writer.source_clock = replace(clock, utc_offset=offset)
        new.metadata.update(own)
        new.attachments += [file.as_attachment() for file in self.attached]

    def _mask(self, channel: NewChannel) -> None:
        masking, source = self.plan.masking, channel.source
        if source is None:
            return
        if masking is not None:
            channel.metadata = masking.channel_metadata(source.topic, channel.metadata)
            if isinstance(channel.schema, Schema):
                channel.schema = masking.schema(source.topic, channel.schema)
        entries = self.plan.channel_metadata.get(source.topic, {})
        channel.metadata = with_entries(channel.metadata, entries)

    def batches(self, new: NewLog, batches: Iterable[MessageBatch]) -> Iterable[MessageBatch]:
        """Yield the messages with changed fields and times; raises UsageError for fields that follow from times."""
        schemas = new.format_writer.schemas
        for channel in self._channels:
            if (number := new.number_of(channel)) >= 0:
                self.by_time[channel.number] = schemas.time_dependent_fields(number)
        for number, fields in self.by_time.items():
            plan = self.plan.channels[number]
            if fields and any(path in fields for edit in plan.edits for path in edit.paths):
                text = f"{', '.join(fields)} of {plan.channel.topic!r} follow from the times of messages"
                raise UsageError(text, path=self.plan.log.name)
        return map(self._edited, batches)

    def _edited(self, batch: MessageBatch) -> MessageBatch:
        secret = self.plan.secret_shift
        if secret and len(batch.time) and int(batch.time.min()) < 0:
            # Times that say no date, such as 0, stay.
            batch = replace(batch, time=np.where(batch.time < 0, batch.time - secret, batch.time))
        batch = self._restamped(batch) if self.plan.moves_times else batch
        masking, columns = self.plan.masking, batch.payloads.side_columns
        if masking is not None and columns is not None:
            # Times move with those of the log.
            moved = masking.moved_times(columns)
            batch = replace(batch, payloads=replace(batch.payloads, side_columns=moved))
        keep = np.ones(len(batch.time), bool)
        for place, number in enumerate(batch.channels.tolist()):
            editor = self.editors.get(number)
            rows = np.flatnonzero(batch.queue == place) if editor is not None else np.zeros(0, np.int64)
            if editor is None or not len(rows):
                continue
            payloads_of_channel = batch.payloads.rows(rows)
            data, size = payloads_of_channel.joined(), payloads_of_channel.size
            made = editor.apply(data, np.cumsum(size) - size, size, batch.time[rows])
            if self._is_read_back:
                good = np.setdiff1d(np.arange(len(rows)), made.bad)
                starts = np.cumsum(made.size) - made.size
                digest = whole_digest(self._time_rule(number))
                payloads_of_channel = Payloads(made.data, starts[good], made.size[good])
                data, size = payloads_of_channel.joined(), payloads_of_channel.size
                self.expected.setdefault(number, []).append(digest(data, np.cumsum(size) - size, size))
            if len(made.bad):
                keep[rows[made.bad]] = False
                self.undecodable[number] += len(made.bad)
            payloads = batch.payloads
            which = np.zeros(len(batch.time), np.int32) if payloads.which is None else payloads.which.copy()
            starts, sizes, others = payloads.start.copy(), payloads.size.copy(), [*payloads.others, made.data]
            which[rows], starts[rows], sizes[rows] = len(others), np.cumsum(made.size) - made.size, made.size
            payloads = replace(payloads, others=others, which=which, start=starts, size=sizes)
            batch = replace(batch, payloads=payloads)
        return batch if keep.all() else batch.rows(np.flatnonzero(keep))

    def _time_rule(self, number: int) -> object:
        """Return the rule of the log times of a channel if these change, else None."""
        moved = bool(self.plan.shift) or self.plan.moves_times
        return self.plan.log.index.rules[number].time if moved else None

    def _restamped(self, batch: MessageBatch) -> MessageBatch:
        """Return *batch* with its new log times."""
        time = self.plan.new_times(batch.time)
        more = {
            name: self.plan.new_times(values) if name == "publish_time" else values
            for name, values in batch.more.items()
        }
        for place, number in enumerate(batch.channels.tolist()):
            reader = self.stamp_readers.get(number)
            rows = np.flatnonzero(batch.queue == place) if reader is not None else np.zeros(0, np.int64)
            if reader is not None and len(rows):
                stamp = reader.read(batch.payloads.rows(rows))
                known = stamp > 0
                self.restamped[number] += int(np.count_nonzero(stamp[known] != time[rows[known]]))
                self.unstamped[number] += int(np.count_nonzero(~known))
                time = time.copy() if time is batch.time else time
                time[rows[known]] = stamp[known]
        return replace(batch, time=time, more=more)

    def finish(self, new: NewLog) -> None:
        """Note what changed; raises UsageError if no message names a frame that was to be renamed."""
        for number, count in self.unstamped.items():
            if count:
                topic = self.plan.channels[number].channel.topic
                new.notes.append(f"{count} messages of {topic!r} have no stamp and keep their times")
        self._written = new.parts[0]
        frames = self.plan.recipe.frame
        if frames and not sum(self._count("frame").values()):
            names = ", ".join(map(repr, frames))
            raise UsageError(f"no message names a frame {names}", path=self.plan.log.name)

    def why_unwritten(self, channel: NewChannel) -> str:
        """Return that messages cannot be changed, where some could not."""
        undecodable = self.undecodable[channel.number]
        return "they cannot be decoded, so that their fields cannot be changed" if undecodable else ""

    def _count(self, edit_kind: str) -> Counter[int]:
        """Return the largest number of messages that an edit of a kind changed, by channel number."""
        counts = Counter[int]()
        for number, editor in self.editors.items():
            for place, edit in enumerate(self.plan.channels[number].edits):
                if edit.kind == edit_kind:
                    counts[number] = max(counts[number], editor.changed[place])
        return counts

    def changed_in(self, part: Part) -> list[Changed]:
        """Return what was changed, in the order of channels; *part*: what was to be written of the log."""
        part = self._written or part
        changed, recipe, masking = list[Changed](), self.plan.recipe, self.plan.masking
        for number, plan in self.plan.channels.items():
            ch, topic = plan.channel, plan.channel.topic
            count = part.count(number) if not plan.drop and number in part.rows else 0
            if plan.drop:
                changed.append(Changed(plan.drop_kind, topic, plan.drop, len(ch)))
                continue
            if plan.topic != topic:
                changed.append(Changed("rename", topic, plan.topic, count))
            secret = self.plan.secret_shift
            if self.plan.shift and not ch.reserved:
                changed.append(Changed("redact time" if secret else "shift", topic, "log time", count))
            if recipe.scale != 1 and recipe.clock != "header" and not ch.reserved:
                changed.append(Changed("scale", topic, "log time", count))
            if self.restamped[number]:
                changed.append(Changed("restamp", topic, "log time", self.restamped[number]))
            editor = self.editors.get(number)
            by_kind: dict[str, list[int]] = {}
            for place, edit in enumerate(plan.edits):
                if editor is not None and editor.changed[place]:
                    by_kind.setdefault(edit.kind, []).append(place)
            for edit_kind, places in by_kind.items():
                edits = [plan.edits[p] for p in places]
                paths = ", ".join(dict.fromkeys(_described(edit) for edit in edits))
                most = max(editor.changed[p] for p in places) if editor is not None else 0
                changed.append(Changed(self._kind_of(edit_kind), topic, paths, most))
        own, by_channel = self.plan.metadata, self.plan.channel_metadata
        changed += [Changed("set", "", name, 0) for name in own]
        changed += [
            Changed("set", topic, name, 0) for topic, entries in by_channel.items() for name in entries
        ]
        changed += [Changed("unset", "", name, 0) for name in recipe.unset]
        changed += [Changed("redact position", "", name, 0) for name in self.plan.remove_metadata]
        for edit_kind, what, name in masking.changes if masking is not None else ():
            if what != "name of topic":
                changed.append(Changed(f"redact {edit_kind}", "", f"{what} {name}", 0))
        return changed + [Changed("attach", "", file.name, 0) for file in self.attached]

    def _kind_of(self, edit_kind: str) -> str:
        """Return the option that an edit of a kind belongs to."""
        recipe = self.plan.recipe
        if edit_kind == "stamp":
            return "restamp" if recipe.restamp else "shift" if recipe.scale == 1 else "scale"
        return f"redact {edit_kind}" if edit_kind in recipe.redact else edit_kind

    def verify(self, new: NewLog, log: Log) -> None:
        """Compare *log* with the source: what should not have changed is the same, and what should have is gone."""
        title, path = new.fmt.title, new.target.path
        new.notes += [
            f"{plan.channel.topic!r} is part of each log of {title}, and stays"
            for plan in dropped(self.plan)
            if plan.channel.topic in set(log.channels) - set(new.names)
        ]
        sources = {
            name: (members[0], members[0].source)
            for name, members in new.names.items()
            if len(members) == 1 and members[0].source is not None
        }
        topics = {source.topic: name for name, (_, source) in sources.items()}
        by_channel = self.plan.channel_metadata
        named = {topics[topic]: entries for topic, entries in by_channel.items() if topic in topics}
        check_metadata(log, title, path, (*self.plan.recipe.unset, *self.plan.remove_metadata), named)
        # Messages that a later transform encodes again are compared by their number only.
        names = {name: source for name, (channel, source) in sources.items() if not channel.is_other}
        moved = bool(self.plan.shift) or self.plan.moves_times
        expected = {number: np.concatenate(parts) for number, parts in self.expected.items()}
        wrong = verify(new.parts[0], log, names, self.editors, expected, moved, self.by_time)
        if wrong:
            raise LogError(f"the new file is not what it should be: {wrong[0]}", path=path)
        self.search(log, path)

    def search(self, log: Log, path: str) -> None:
        """Search a new log for what may still identify; raises LogError for what was to be removed."""
        if not REMOVALS & set(self.plan.recipe.redact):
            return
        from logreel.ops.edit.residue import Search, facts_of

        masking = self.plan.masking
        identity = masking.identity if masking is not None else None
        facts = facts_of(self.plan.log, self.plan.recipe.redact)
        search = Search.of(facts, identity.replaced if identity is not None else ())
        self.may_identify = search.run(log)
        if search.left:
            text = f"the new file still has what was to be replaced: {', '.join(list(search.left)[:5])}"
            raise LogError(text, path=path, hint="leave these out, e.g. with drop_topic")
