"""Logs of one format written in another: messages whose definitions the other format cannot hold are encoded again.

Columns are decoded, fitted to what the other format can express, and encoded, some megabytes at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.errors import DefinitionError, IncompleteOutputError, LogError, UsageError
from logreel.io.arrays import I64
from logreel.io.two_pass import DryRun
from logreel.layout.layout import Layout
from logreel.layout.nodes import FixedArray, Scalar, Struct
from logreel.layout.nodes import Sequence as Counted
from logreel.lenses.text import line_fields
from logreel.log.columns import ColumnReader
from logreel.log.log import Channel, Log
from logreel.log.scan import MADE_OF, ORIGINAL
from logreel.ops.rewrite.engine import NewChannel, NewLog, Transform
from logreel.ops.rewrite.fit import Columns, Fitted, Sizes, fit, measured
from logreel.ops.rewrite.parts import Part
from logreel.ops.rewrite.streams import WHOLE, MessageBatch, odd_booleans, replaced_texts
from logreel.ops.rewrite.transcoded import TextTranscoded, Transcoded, record_members, side_columns
from logreel.registry.registry import format_named
from logreel.schemas.languages import constants
from logreel.write.format_writer import Abilities, Payloads, SchemaMaker, chained
from logreel.write.log_copier import (
    Original,
    OriginalLog,
    metadata_names,
    original_log_of,
    original_of,
    small_attachments,
)
from logreel.write.writer import Writer, add_channel

if TYPE_CHECKING:
    from logreel.ops.rewrite.proof import Ledger

#: Languages of definitions between which values are compared.
ROS = {"ros1msg", "ros2msg", "ros2idl"}
#: Most channels that a note names.
MOST_NAMES = 50
#: Topic of the messages of parameters.
PARAMETERS = "~parameter"
#: Rows and approximate bytes that are decoded at once to find the greatest lengths.
_ROWS, _BYTES = 1 << 16, 8 << 20


def _not_made(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return metadata without those that a conversion made of others, which do not return."""
    return {
        name: value
        for name, value in metadata.items()
        if not (isinstance(value, Mapping) and MADE_OF in value)
    }


@dataclass
class Transcode(Transform):
    """Messages of a log of another format, encoded again where the new format cannot hold their definitions.

    transcoded  transcoded channels by number in the source
    text_topic  topic of the text channel, once there is one
    constants   constants of definitions that new ones do not have, by channel
    renamed     new names of channels by name
    serialized  channels that are converted back to messages which have several encodings
    was, is_all  what the log was in the format of the target, and whether all of that is written again
    was_here    whether it was converted from the format of the target
    keeper      channel that keeps what the log was; empty if none does
    verifies    whether values of messages of ROS are read back from the new log and compared
    ledger      what became of them, by channel
    """

    transcoded: dict[int, Transcoded | TextTranscoded] = field(default_factory=dict)
    text_topic: str = ""
    constants: dict[str, list[str]] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    serialized: list[str] = field(default_factory=list)
    was: OriginalLog | None = None
    is_all: bool = False
    was_here: bool = False
    keeper: str = ""
    verifies: bool = True
    ledger: list[Ledger] = field(default_factory=list)
    _known_names: Mapping[str, tuple[str, str]] | None = None

    def changes(self, part: Part) -> bool:
        """Return False: whole records are only copied inside of one format, which holds its own messages."""
        return False

    def channels(self, new: NewLog, channels: Sequence[NewChannel]) -> Sequence[NewChannel]:
        """Find how the messages of each channel are written: as they are, converted back, as text, or encoded again."""
        Transcode.__init__(self, verifies=self.verifies)
        self._new, part, copier = new, new.parts[0], new.copier
        schemas, log = new.format_writer.schemas, part.log
        # Parameters are also messages of a channel, which is converted as all others.
        copier.parameters_are_messages = schemas.abilities is not None and any(
            ch.topic.partition("@")[0] == PARAMETERS and len(ch) and not schemas.accepts_schema(ch.schema)
            for ch in part.channels
        )
        self.was = original_log_of(log, new.fmt.name)
        self.was_here = self.was is not None or log.converted_from == new.fmt.name
        self.is_all = self.was is not None and self.was.is_all_of(log) and self._is_whole
        self._refuse_foreign()
        if self.was is None and any(self._is_encoded(ch) for ch in part.channels):
            copier.keepable = {"metadata": metadata_names(log), "attachment": small_attachments(log)}
        clock = new.format_writer.source_clock
        if self.was is not None and self.is_all and clock is not None:
            start = self.was.start
            new.format_writer.source_clock = replace(
                clock, utc_offset=self.was.utc_offset, epoch=self.was.epoch, first=lambda: start
            )
        for channel in channels:
            channel.add = self._add
        return channels

    def _refuse_foreign(self) -> None:
        """Raise IncompleteOutputError, with one reason, if the format has only messages of its own and the log none."""
        new, part = self._new, self._new.parts[0]
        schemas, create = new.format_writer.schemas, new.fmt.create
        own = [
            ch
            for ch in part.channels
            if schemas.accepts_schema(ch.schema) or ((was := original_of(ch)) and was.format == new.fmt.name)
        ]
        if not new.is_foreign or schemas.abilities is not None or own or not part.total or not create:
            return
        ch = part.channels[0]
        try:
            create(DryRun("")).channel(0, ch.topic, ch.schema, {})
        except LogError as error:
            due = f"{new.format_writer.title} can hold none of the {part.total} messages{new.alternative()}: "
            raise IncompleteOutputError(due, [error.text], path=new.target.path) from None

    @property
    def _is_whole(self) -> bool:
        """Whether all messages are written, but those made of others."""
        part = self._new.parts[0]
        return all(
            ch.number in part.rows and part.count(ch.number) == len(ch)
            for ch in part.log.channels.values()
            if MADE_OF not in ch.metadata
        )

    def _is_encoded(self, channel: Channel) -> bool:
        """Return whether a channel will have a new definition, so that it keeps its old one in its metadata."""
        schemas = self._new.format_writer.schemas
        if not self._new.is_foreign or schemas.abilities is None or MADE_OF in channel.metadata:
            return False
        return not schemas.accepts_schema(channel.schema) and not channel.topic.startswith("~")

    def content(self, new: NewLog, log: Log) -> Log:
        """Return *log* with the metadata and attachments that it had in the format of the target, if it was there."""
        if self.was is None:
            own = _not_made(log.metadata) if self.was_here else log.metadata
            return log if len(own) == len(log.metadata) else log.derive(metadata=lambda: own)
        was, facts, new.returns = self.was, new.fmt.file_facts, True
        metadata = {name: value for name, value in _not_made(was.metadata).items() if name not in facts}
        return log.derive(metadata=lambda: metadata, attachments=was.attached)

    def finish(self, new: NewLog) -> None:
        """Say what changed, and what was left out."""
        notes, skipped = new.notes, new.skipped
        for text in self.transcoded.values():
            skipped += text.losses()
            if isinstance(text, TextTranscoded):
                notes += text.notes()
        without_seq = [
            channel.channel.topic
            for channel in self.transcoded.values()
            if isinstance(channel, Transcoded) and channel.loses_seq
        ]
        if without_seq:
            shown = ", ".join(map(repr, without_seq[:MOST_NAMES])) + " …" * (len(without_seq) > MOST_NAMES)
            notes.append(f"'seq' in headers is left out, since ROS 2 has no such field: {shown}")
        for channel in self.transcoded.values():
            if isinstance(channel, Transcoded) and channel.has_replaced_text:
                skipped += replaced_texts(channel.channel)
            if isinstance(channel, Transcoded) and not channel.restores and channel.copied_bytes is None:
                notes += odd_booleans(channel.channel)
        filled = {
            channel.channel.topic: channel.filled for channel in self.transcoded.values() if channel.filled
        }
        notes += [f"{n} missing values of {topic!r} became zero or empty" for topic, n in filled.items()]
        title, rounded = new.format_writer.title, sum(channel.rounded for channel in self.transcoded.values())
        if rounded:
            notes.append(f"the times of {rounded} messages were rounded: {title} has coarser ones")
        if self.constants:
            topic, names = next(iter(self.constants.items()))
            shown = ", ".join(names[:3]) + " …" * (len(names) > 3)
            notes.append(
                f"definitions of {len(self.constants)} new channels have no constants ({shown} of {topic!r}); "
                "metadata keep the old definitions"
            )
        places = {"metadata": "metadata", "attachment": "attachments"}
        for what, names in new.copier.kept.items():
            shown = ", ".join(map(repr, names[:5])) + " …" * (len(names) > 5)
            if self.keeper:
                notes.append(
                    f"{what} {shown}: only kept for converting back, by channel {self.keeper!r}; "
                    f"{title} has no place for {places[what]}"
                )
            else:
                skipped.append(f"{what} {shown} left out: {title} has no place for it")
        if self.serialized:
            shown = ", ".join(map(repr, self.serialized[:5])) + " …" * (len(self.serialized) > 5)
            notes.append(
                f"messages of {shown} are encoded again: they have the same values, but may have other bytes"
            )
        # Last, since there may be many.
        notes += [f"channel {old!r} is {new_name!r} in the new log" for old, new_name in self.renamed.items()]

    def why_unwritten(self, channel: NewChannel) -> str:
        """Return that messages cannot be decoded, for channels that are encoded again."""
        return "they cannot be decoded" if channel.number in self.transcoded else ""

    def _add(self, writer: Writer, channel: NewChannel) -> tuple[int, str]:
        """Add a channel, and note another name that it gets."""
        number, name = self._added(writer, channel)
        if name != channel.topic and channel.source is not None:
            if channel.number in self.transcoded:
                self.renamed[channel.source.topic] = name
            else:
                self._new.notes.append(f"{channel.topic!r} of {channel.source.log.name} became {name!r}")
        return number, name

    def _added(self, writer: Writer, channel: NewChannel) -> tuple[int, str]:
        new, source = self._new, channel.source
        schemas = new.format_writer.schemas
        if source is None:
            return new.add_as_it_is(writer, channel)
        if new.is_foreign and MADE_OF in source.metadata and self.was_here:
            raise DefinitionError("the log is converted back")
        if not new.is_foreign or MADE_OF in source.metadata:
            return new.add_as_it_is(writer, channel)
        was = original_of(source)
        returns = was is not None and was.format == new.fmt.name
        if schemas.accepts_schema(source.schema) and not returns:
            try:
                number, name = new.add_as_it_is(writer, channel)
            except (DefinitionError, UsageError):
                if schemas.abilities is None:
                    raise
            else:
                new.declared[name] = channel.metadata
                return number, name
        transcoded = self._converted(writer, channel.topic, source, was if returns else None)
        transcoded = transcoded or self._restored(writer, source)
        if transcoded is None and schemas.abilities is None:
            return new.add_as_it_is(writer, channel)
        if transcoded is None and returns and was is not None:
            new.notes.append(
                f"channel {source.topic!r} cannot be converted back to what {was.topic!r} was: it has a new definition"
            )
        if transcoded is None and (text := self._as_text(writer, source)) is not None:
            self.transcoded[source.number] = text
            return text.number, self.text_topic
        transcoded = transcoded or self._fitted(writer, channel.topic, source)
        self.transcoded[source.number] = transcoded[2]
        return transcoded[:2]

    # ------------------------------------------------------------------------------------------ definitions

    def _as_text(self, writer: Writer, channel: Channel) -> TextTranscoded | None:
        """Add *channel* as the text channel of the format; None if it holds no lines, or there is a text channel."""
        schemas = self._new.format_writer.schemas
        target = schemas.text_channel()
        fields = None if target is None or self.text_topic else line_fields(channel)
        if target is None or fields is None:
            return None
        try:
            number, name = add_channel(writer, target.topic, target.schema, {}, self._new.names)
        except LogError:
            return None
        self._new.declared[name], self.text_topic = {}, name
        return TextTranscoded(channel, fields, target, schemas, number)

    def _fitted(self, writer: Writer, topic: str, channel: Channel) -> tuple[int, str, Transcoded]:
        """Add *channel* with a definition that the format makes of its Layout."""
        schemas = self._new.format_writer.schemas
        abilities = schemas.abilities or Abilities()
        sizes = Sizes()
        if abilities.fixed_size and channel.layout.size is None:
            sizes = measured(channel.layout, self._columns(channel))
        kept = abilities.time_name if self._has_its_time(channel, schemas) else ""
        fitted = fit(channel.layout, abilities, sizes.lengths, kept=kept)
        name = self._names.get(channel.topic, ("", ""))
        topic = name[0] or schemas.topic_for(topic)
        schema = schemas.schema_to_encode(topic, fitted.layout, name[1])
        metadata = self._original_metadata(channel, fitted)
        number, label = add_channel(writer, topic, schema, metadata, self._new.names)
        if not schemas.keeps_metadata and metadata:
            self._keep_in_log(channel, label, metadata)
        self._new.declared[label] = metadata
        if metadata and (names := constants(channel.schema)):
            self.constants[channel.topic] = names
        self._new.notes += [f"channel {channel.topic!r}: {note}" for note in fitted.notes]
        self._new.skipped += [
            f"channel {channel.topic!r}: {text}: left out" for text in fitted.dropped.values()
        ]
        for path, count in sizes.cut.items():
            if count and path[0] not in fitted.dropped:
                where = ".".join(name for name in path if name)
                self._new.skipped.append(
                    f"channel {channel.topic!r}: {count} texts of {where!r} end at a NUL character"
                )
        return number, label, Transcoded(channel, fitted, False, schemas, number, schemas.time_field(number))

    def _has_its_time(self, channel: Channel, schemas: SchemaMaker) -> bool:
        """Return whether the field that the format adds is in all messages already, as whole number of its unit."""
        name, unit = schemas.abilities.time_name if schemas.abilities else "", schemas.time_unit
        node = next((f.node for f in channel.layout.record.visible() if f.name == name), None)
        if (
            not name
            or not len(channel)
            or node != Scalar("uint64")
            or not isinstance(channel.layout.root, Struct)
        ):
            return False
        return bool(np.array_equal(channel[name], (channel.times + self._new.parts[0].shift) // unit))

    def _original_metadata(self, channel: Channel, fitted: Fitted) -> Mapping[str, Any]:
        """Return the metadata that a new channel keeps of *channel*; none if something of its messages is left out."""
        if fitted.dropped:
            return {}
        restamped, original_log = channel.number in self._new.parts[0].restamped, None
        log = channel.log
        if self._new.copier.keepable and not self.keeper:
            self.keeper = channel.topic
            original_log = OriginalLog.of(log)
        original = Original(
            log.format, channel.topic, channel.schema, channel.metadata, restamped, original_log
        )
        return {ORIGINAL: original.text()}

    def _keep_in_log(self, channel: Channel, label: str, metadata: Mapping[str, Any]) -> None:
        """Write the metadata of a new channel as that of the log; what it was without its log, if that is too long."""
        for key, value in metadata.items():
            try:
                self._new.format_writer.metadata(f"{key}/{label}", value)
            except LogError as error:
                was = Original.read(value) if self.keeper == channel.topic else None
                if was is not None and was.log is not None:
                    self.keeper, self._new.copier.keepable = "", {}
                    self._keep_in_log(channel, label, {key: replace(was, log=None).text()})
                    continue
                self._new.notes.append(
                    f"channel {channel.topic!r} cannot be converted back exactly: {error.text}"
                )

    def _converted(
        self, writer: Writer, topic: str, channel: Channel, was: Original | None
    ) -> tuple[int, str, Transcoded] | None:
        """Add *channel* by the rules between ROS 1 and ROS 2; None if there are none for it.

        was  what it was in the format of the target; None: it was not there
        """
        schemas, new = self._new.format_writer.schemas, self._new
        try:
            if was is not None:
                from logreel.schemas.ros1to2 import back

                rules = back(channel.schema, was.schema, str(was.metadata.get("md5sum", "*")))
                metadata, topic = dict(was.metadata), was.topic
            else:
                rules, metadata = schemas.counterpart(channel)
                topic = schemas.topic_for(topic)
            if rules is None or rules.source_layout.root != channel.layout.root:
                return None
            fitted = Fitted(channel.layout, rules.target_layout, rules.columns, rules.columns, [], {})
            original = {} if was is not None else self._original_metadata(channel, fitted)
            metadata = {**original, **metadata}
            number, label = add_channel(writer, topic, rules.target, metadata, new.names)
        except (DefinitionError, UsageError):
            return None
        if original and not schemas.keeps_metadata:
            self._keep_in_log(channel, label, original)
        new.declared[label] = metadata
        return number, label, Transcoded(channel, fitted, False, schemas, number, None, conversion=rules)

    def verify(self, new: NewLog, log: Log) -> None:
        """Compare the values of messages of ROS with those of the source; raises LogError if any is another one."""
        compared = {
            number: channel for number, channel in self.transcoded.items() if self._is_compared(channel)
        }
        if not self.verifies or not compared:
            return
        from logreel.ops.rewrite.proof import compare, same_leaves

        for name, members in new.names.items():
            for member in members:
                channel = compared.get(member.number)
                if not isinstance(channel, Transcoded) or member.source is None:
                    continue
                self.ledger.append(entry := self._entry(new, name, member, channel))
                if name not in log and not len(entry.rows):
                    continue
                entry.new_type = log[name].schema.name
                if (rules := channel.conversion) is not None:
                    compare(entry, channel.channel, log[name], [*rules.leaves()], rules.forward)
                else:
                    pairs = [*same_leaves(channel.fitted.layout.record)]
                    compare(entry, channel.channel, log[name], pairs, made=channel.fitted.forward)
                if entry.unequal:
                    text = f"{entry.unequal} of {entry.values} values of {name!r} read differently from the new log"
                    raise LogError(f"{text}: {entry.first}", path=new.target.path)

    def _is_compared(self, channel: Transcoded | TextTranscoded) -> bool:
        """Return whether a channel is one between ROS 1 and ROS 2: by rules, or with a definition of its fields."""
        if not isinstance(channel, Transcoded) or channel.conversion is not None:
            return isinstance(channel, Transcoded)
        languages = {channel.channel.schema.encoding, self._new.format_writer.schemas.encoding}
        return not channel.restores and len(languages) == 2 and languages <= ROS

    def _entry(self, new: NewLog, name: str, member: NewChannel, channel: Transcoded) -> Ledger:
        from logreel.ops.rewrite.proof import Ledger

        part, topic = new.parts[member.part], channel.channel.topic
        rows = np.concatenate([np.zeros(0, np.int64), *channel.written])
        due = part.count(member.number)
        return Ledger(topic, channel.channel.schema.name, name, "", due, rows=rows)

    def _restored(self, writer: Writer, channel: Channel) -> tuple[int, str, Transcoded] | None:
        """Add *channel* as it was before a conversion; None if it was not converted, or its Layout is another one."""
        was, schemas = original_of(channel), self._new.format_writer.schemas
        if was is None or not schemas.accepts_schema(was.schema):
            return None
        fmt = format_named(channel.log.format)
        if fmt is None or fmt.create is None:
            return None
        before = fmt.create(DryRun("")).schemas
        abilities = before.abilities
        if abilities is None or self._new.fmt.create is None:
            return None
        trial = Writer(DryRun(""), self._new.fmt.create(DryRun(""), **self._new.options), None, False)
        try:
            target = self._target_layout(trial, was)
            model, ignored = _without(channel.layout, abilities.time_name)
            target, computed = _with_computed(target, trial.format_writer.schemas.computed_fields(0), model)
            fitted = fit(target, abilities, model=model, kept=abilities.time_name if ignored is None else "")
            number, label = add_channel(writer, was.topic, was.schema, was.metadata, self._new.names)
        except LogError:
            return None
        self._new.declared[label] = was.metadata
        if was.schema.encoding == "protobuf" or "json" in was.schema.encoding:
            self.serialized.append(label)
        restored = Transcoded(channel, fitted, True, schemas, number, None, ignored, computed)
        if was.restamped:
            restored.stamp, restored.keeps_stamps = schemas.time_field(number), True
        return number, label, restored

    def _target_layout(self, trial: Writer, was: Original) -> Layout:
        schemas = trial.format_writer.schemas
        return schemas.layout(trial.add_channel(was.topic, was.schema, was.metadata))

    @property
    def _names(self) -> Mapping[str, tuple[str, str]]:
        """Topics and types by which tools of the definition language know channels, by topic."""
        if self._known_names is None:
            log = self._new.parts[0].log
            source = format_named(log.format)
            hook = (
                source.names_in.get(self._new.format_writer.schemas.encoding) if source is not None else None
            )
            self._known_names = {} if hook is None else hook(log)
        return self._known_names

    # --------------------------------------------------------------------------------------------- messages

    def _columns(self, channel: Channel) -> Iterator[Columns]:
        """Yield the columns of all selected messages of *channel*, some megabytes at a time."""
        rows = self._new.parts[0].rows[channel.number]
        for batch in ColumnReader(channel, None, WHOLE).batches(rows, _ROWS, _BYTES):
            yield [column.settled() for column in batch.columns]

    def batches(self, new: NewLog, batches: Iterable[MessageBatch]) -> Iterator[MessageBatch]:
        """Yield the messages, encoded again where that is due."""
        for number, channel in self.transcoded.items():
            channel.rows = _in_order(new.parts[0], number, new.by_time)
        return map(self._replaced, batches)

    def _replaced(self, batch: MessageBatch) -> MessageBatch:
        """Return *batch* with the messages of transcoded channels encoded again."""
        kinds = [number in self.transcoded for number in batch.channels.tolist()]
        if not any(kinds):
            return batch
        payloads, places, time = list[Payloads](), list[I64](), batch.time.copy()
        queues = np.flatnonzero(np.bincount(batch.queue, minlength=len(kinds)))
        batch = self._cut(batch, kinds, time)
        if not any(kinds[queue] for queue in queues.tolist()):
            return replace(batch, time=time, payloads=replace(batch.payloads, side_columns=None))
        stay = np.flatnonzero(~np.array(kinds)[batch.queue])
        if len(stay):
            payloads.append(replace(batch.payloads.rows(stay), side_columns=None))
            places.append(stay)
        # A channel of several files has a queue for each; its messages are encoded in the order of writing.
        queues_of: dict[int, list[int]] = {}
        for queue in queues.tolist():
            if kinds[queue]:
                queues_of.setdefault(int(batch.channels[queue]), []).append(queue)
        for number, members in queues_of.items():
            is_member = batch.queue == members[0] if len(members) == 1 else np.isin(batch.queue, members)
            rows = np.flatnonzero(is_member)
            channel, due = self.transcoded[number], batch.time[rows]
            time[rows] = self._new.format_writer.stored_times(due)
            made, kept, times = channel.encode(len(rows), time[rows])
            channel.rounded += int(np.count_nonzero(time[rows[kept]] != due[kept]))
            time[rows[kept]] = times
            payloads.append(made)
            places.append(rows[kept])
        place = np.concatenate(places)
        order = np.argsort(place)
        rows = place[order]
        return replace(
            batch,
            queue=batch.queue[rows],
            time=time[rows],
            payloads=replace(chained(payloads), side_columns=side_columns(payloads)).rows(order),
            offset=batch.offset[rows],
            more={name: values[rows] for name, values in batch.more.items()},
        )

    def _cut(self, batch: MessageBatch, kinds: list[bool], time: I64) -> MessageBatch:
        """Return *batch* with messages that are copied cut to their new size, and no longer marked in *kinds*.

        Their times in *time* become those that the format stores.
        """
        sizes = np.full(len(kinds), -1, np.int64)
        for queue, number in enumerate(batch.channels.tolist()):
            channel = self.transcoded.get(number)
            if kinds[queue] and isinstance(channel, Transcoded) and channel.copied_bytes is not None:
                sizes[queue], kinds[queue] = channel.copied_bytes, False
        if (sizes < 0).all():
            return batch
        size = sizes.take(batch.queue)
        of_queues = np.flatnonzero(size >= 0)
        due = time[of_queues]
        time[of_queues] = self._new.format_writer.stored_times(due)
        changed = np.bincount(batch.queue[of_queues[time[of_queues] != due]], minlength=len(kinds))
        for queue in np.flatnonzero(changed).tolist():
            self.transcoded[int(batch.channels[queue])].rounded += int(changed[queue])
        size = np.where(size < 0, batch.payloads.size, size)
        return replace(batch, payloads=replace(batch.payloads, size=size))


def _without(layout: Layout, name: str) -> tuple[Layout, int | None]:
    """Return *layout* without its first field if that is called *name*, and 0; else *layout* and None."""
    fields = list(layout.record.visible())
    if not name or not isinstance(layout.root, Struct) or not fields or fields[0].name != name:
        return layout, None
    return Layout(Struct(tuple(fields[1:])), layout.name), 0


def _with_computed(target: Layout, names: Collection[str], model: Layout) -> tuple[Layout, list[str]]:
    """Return *target* with those fields called *names* that *model*, which was made of it, has; and their names.

    Readers compute these fields, so that they were converted like those of the messages.
    """
    members = list(model.record.visible())
    if isinstance(target.root, Counted) and isinstance(model.root, Struct) and members:
        node = members[0].node
        members = record_members(node.item if isinstance(node, FixedArray) else node)
    known = {f.name for f in target.record.visible()}
    more = [f for f in members if f.name in names and f.name not in known]
    if not more:
        return target, []
    first = [f for f, other in zip(more, members, strict=False) if f is other]
    record = Struct((*first, *target.record.fields, *more[len(first) :]))
    root = Counted(record, target.root.width) if isinstance(target.root, Counted) else record
    return Layout(root, target.name), [f.name for f in more]


def _in_order(part: Part, number: int, by_time: bool) -> I64:
    """Return int64[n]: the selected rows of a channel in the order in which its messages are written."""
    times = part.log.index.times(number)
    rows = np.arange(len(times), dtype=np.int64)[part.rows[number]]
    return rows[np.argsort(times[rows], kind="stable")] if by_time else rows
