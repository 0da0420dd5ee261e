"""From a Walk to a Scan: channels, index, information, parameters, text, attachments."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import cached_property, partial
from typing import Any

import numpy as np

from logreel.errors import DefinitionError, Finding
from logreel.formats.ulog import clock, events, records
from logreel.formats.ulog.keys import KeyedRecords
from logreel.formats.ulog.reader import Topic, Walk
from logreel.formats.ulog.records import DATA_HEAD, DEFAULTS_FLAG, FILE_HEADER, FLAGS_AT, HEAD
from logreel.formats.ulog.saved import save
from logreel.index.block_table import TIME_MAX
from logreel.index.message_index import MessageIndex
from logreel.index.rules import ChannelRules, FieldAt, SyntheticMessages
from logreel.io.arrays import I64
from logreel.io.chunks import Buffer, Chunks
from logreel.io.source import Source
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, Rest, Scalar, String, Struct
from logreel.log.scan import ChannelInfo, Scan, TextLine
from logreel.log.schema import Schema

NS_PER_US = 1000
#: Levels of syslog.
LEVELS = 8

_RAW = Layout(Struct((Field("data", Rest()),)), "raw")
_TEXT = Struct((Field("level", Scalar("uint8")), Field("tag", Scalar("uint16")), Field("text", String(2))))
_PARAMETER = Struct(
    (
        Field("name", String(1)),
        Field("kind", String(1)),
        Field("type", String(1)),
        Field("value", Scalar("float64")),
    )
)
_DROPOUT = Struct((Field("duration", Scalar("uint16"), "ms"),))
#: What the records of made channels look like.
RESERVED = {"~text": _TEXT, "~parameter": _PARAMETER, "~dropout": _DROPOUT}


def reserved(topic: str) -> Layout | None:
    """The Layout of a made channel, also of one of a later segment (``~text@2``); None for other topics."""
    root = RESERVED.get(topic.split("@")[0])
    return None if root is None else Layout(root, topic)


class ScanBuilder:
    """Everything of one ULog besides the messages of its topics."""

    def __init__(self, source: Source, walk: Walk) -> None:
        self.source, self.walk = source, walk
        self._view = source.view
        kinds = source.data[walk.notes + 2]
        self._texts = walk.notes[(kinds == ord("L")) | (kinds == ord("C"))]
        self._dropouts = walk.notes[kinds == ord("O")]
        self.keyed = KeyedRecords(source, walk)
        self._counts = np.diff(walk.blocks.start, axis=1).sum(axis=0)
        # Topics of later segments become channels only if they have messages.
        self._live = [bool(n) or t.segment == 1 for t, n in zip(walk.topics, self._counts, strict=True)]
        self._channels = [t for t, live in zip(walk.topics, self._live, strict=True) if live]
        self._clocks: dict[int, clock.ShortClocks] = {}

    # -------------------------------------------------------------------------------------------- channels

    def scan(self) -> Scan:
        """The Scan of the log."""
        walk = self.walk
        synthetic = self._made_channels()
        infos = [self._info(t) for t in self._channels] + [
            ChannelInfo(name, Schema(name.split("@")[0][1:], "ulog"), partial(Layout, root, name))
            for name, root, _ in synthetic
        ]
        keep = [i for i, live in enumerate(self._live) if live]
        blocks = walk.blocks
        if len(keep) < len(walk.topics) or synthetic:
            blocks = blocks.reshaped(keep, len(synthetic))
        sizes = zip(self._channels, self._sizes(), strict=True)
        rules = [ChannelRules(self._rule(i, t), size) for i, (t, size) in enumerate(sizes)]
        rules += [ChannelRules(FieldAt(0, 8), 0, synthetic=len(offsets)) for _, _, offsets in synthetic]
        index = MessageIndex(Chunks(self.source), blocks, rules, lambda: self._make(synthetic))
        self._index = index
        main = self._main_segment()
        ours = [i for i, t in enumerate(self._channels) if t.segment == main]
        # The first bounds are only those of topics with full timestamps: the others' times depend on them.
        self._start, self._end = clock.bounds(
            index, [i for i in ours if i in self._timed], walk.segment_us[main - 1]
        )
        if not self._timed:
            self._start, self._end = clock.bounds(
                index, ours, walk.segment_us[main - 1], self._text_bounds(main)
            )
        wall = walk.segment_us[main - 1] >= clock.UNIX_US
        return Scan(
            version=str(walk.version),
            epoch="unix" if wall else "boot",
            start=self._start,
            end=self._end,
            channels=infos,
            index=index,
            problems=walk.problems,
            metadata=self.keyed.metadata,
            attachments=self.keyed.attachments,
            parameters=lambda: self.keyed.parameters(self.moments),
            text=self._text,
            utc_offset=lambda: 0 if wall else self._utc_offset(),
            saved=save(walk),
            verify=self.verify,
            format_state=self,
        )

    def _sizes(self) -> list[int | FieldAt]:
        """The payload size of each channel's messages: one number where all are of the same.

        A message may end in padding or leave it out. If all left it out, the file is as long as that makes it, and
        only then, which saves reading five million lengths.
        """
        least = [0 if t.raw else t.definitions.extent(t.name).least for t in self.walk.topics]
        others = np.concatenate([self.walk.notes, np.array(self.walk.parsed, np.int64)])
        data = self.source.data
        lengths = data[others].astype(np.int64) | data[others + 1].astype(np.int64) << 8
        messages = self._counts * (np.array(least, np.int64) + DATA_HEAD)
        used = self.walk.begin + int((lengths + HEAD).sum()) + int(messages.sum())
        if not self.walk.problems and used == self.source.size:
            return [n for n, keep in zip(least, self._live, strict=True) if keep]
        return [FieldAt(-DATA_HEAD, 2, 1, -2)] * len(self._channels)

    def _text_bounds(self, segment: int) -> list[int]:
        """Times of the first and the last text of a segment, where that has no message with a time of its own."""
        ours = [at for at in self._texts.tolist() if self.walk.segment_of(at) == segment]
        return [time for at in ours[:1] + ours[-1:] if (time := self._text_at(at)[2])]

    def _main_segment(self) -> int:
        """The first segment with messages; normally there is only one."""
        return next((t.segment for t, n in zip(self.walk.topics, self._counts, strict=True) if n), 1)

    def _info(self, topic: Topic) -> ChannelInfo:
        if topic.raw:
            return ChannelInfo(topic.channel_name, Schema(topic.name, "ulog"), lambda: _RAW)
        defs = topic.definitions
        schema = Schema(topic.name, "ulog", defs.text(topic.name))
        return ChannelInfo(
            topic.channel_name, schema, lambda: defs.layout(topic.name), {"multi_id": topic.instance}
        )

    def _rule(self, number: int, topic: Topic) -> Any:
        if topic.stamp is not None and topic.stamp.width == 8:
            return clock.word_of(topic.stamp)
        if topic.stamp is None:
            return lambda index: self._neighbours.before(index.offsets(number))
        return self._short_clocks(topic.segment).of(number)

    @cached_property
    def _timed(self) -> list[int]:
        """Channels with full timestamps."""
        return [i for i, t in enumerate(self._channels) if t.stamp is not None and t.stamp.width == 8]

    @cached_property
    def _neighbours(self) -> clock.Neighbours:
        return clock.Neighbours(self._index, self._timed, self._start, self._end)

    def _short_clocks(self, segment: int) -> clock.ShortClocks:
        if segment not in self._clocks:
            short = {
                i: t.stamp
                for i, t in enumerate(self._channels)
                if t.stamp is not None and t.stamp.width < 8 and t.segment == segment
            }
            start = self.walk.segment_us[segment - 1] * NS_PER_US
            self._clocks[segment] = clock.ShortClocks(
                short, start, lambda: self._neighbours, partial(self._marks, segment)
            )
        return self._clocks[segment]

    def _marks(self, segment: int) -> list[tuple[int, int, bool]]:
        """What texts and dropouts tell short clocks: file position, ns, and whether the clock moves on by them."""
        # One damaged stamp of a text would carry all later times away.
        latest = (self._end or 0) + clock.SUPPORT_NS if self._timed else TIME_MAX
        texts = [(at, self._text_at(at)[2], False) for at in self._texts.tolist()]
        dropouts = [
            (at, int.from_bytes(records.payload_at(self.source, at), "little") * 10**6, True)
            for at in self._dropouts.tolist()
        ]
        ours = [mark for mark in texts if mark[1] <= latest] + dropouts
        return [mark for mark in ours if self.walk.segment_of(mark[0]) == segment]

    # ---------------------------------------------------------------------------------------- made channels

    def _made_channels(self) -> list[tuple[str, Struct, I64]]:
        """Name, root of the Layout and file positions of the records, for each made channel that has any."""
        found = []
        parameters = np.array(self.keyed.positions("P", "Q"), np.int64)
        lie = (self._texts, parameters, self._dropouts)
        for (name, root), positions in zip(RESERVED.items(), lie, strict=True):
            segment = np.searchsorted(self.walk.segments, positions, side="right")
            for n in np.unique(segment).tolist():
                found.append((name + (f"@{n}" if n > 1 else ""), root, positions[segment == n]))
        return found

    def _make(self, made: list[tuple[str, Struct, I64]]) -> tuple[Buffer, dict[int, SyntheticMessages]]:
        """The SYNTHETIC chunk: our own records of what ULog keeps in records of other kinds."""
        data, found = bytearray(), {}
        by_offset = {e.offset: e for e in self.keyed.entries}
        for number, (name, _, offsets) in enumerate(made, len(self._channels)):
            where, times = np.empty(len(offsets) + 1, np.int64), np.empty(len(offsets), np.int64)
            for i, at in enumerate(offsets.tolist()):
                where[i] = len(data)
                if name.startswith("~text"):
                    level, tag, times[i], text = self._text_at(at)
                    data += struct.pack("<BHH", level, tag, len(text)) + text
                elif name.startswith("~parameter"):
                    data += self.keyed.parameter_bytes(by_offset[at])
                else:
                    data += self.source.read(at + HEAD, 2)
            where[-1] = len(data)
            if not name.startswith("~text"):
                times = self.moments(offsets)
            found[number] = SyntheticMessages(where[:-1], np.diff(where), times, offsets)
        return np.frombuffer(data, np.uint8), found

    def moments(self, offsets: list[int] | I64) -> I64:
        """Times of records that carry none: definitions have the start of the log, others the latest data time."""
        at = np.asarray(offsets, np.int64)
        return np.where(at < self.keyed.data_phase, np.int64(self._start or 0), self._neighbours.before(at))

    def _text_at(self, at: int) -> tuple[int, int, int, bytes]:
        """Level, tag (0: none), time in ns and text of a logged string.

        The level is 0…7, or where the log has another byte than a digit from 0 to 7 that byte less 48, modulo 256.
        """
        payload = records.payload_at(self.source, at)
        if self._view[at + 2] == ord("C"):
            level, tag, stamp = struct.unpack_from("<BHQ", payload)
            text = payload[11:]
        else:
            level, stamp = struct.unpack_from("<BQ", payload)
            tag, text = 0, payload[9:]
        return (level - 0x30) & 0xFF, tag, min(stamp * NS_PER_US, TIME_MAX), text

    # --------------------------------------------------------------------------------------------- judgement

    @property
    def lacks_defaults_flag(self) -> bool:
        """Whether there are defaults of parameters that the flags of the file do not announce."""
        flags = int(self._view[FLAGS_AT]) if self.walk.begin > FILE_HEADER else 0
        return not flags & DEFAULTS_FLAG and bool(self.keyed.positions("Q"))

    def verify(self) -> Iterator[Finding]:
        """``flags`` where other readers would not look for the defaults of parameters that are there."""
        if self.lacks_defaults_flag:
            at = self.keyed.positions("Q")
            text = (
                f"{len(at)} defaults of parameters (Q) that the flag bits do not announce: readers that follow the "
                "specification say there are none; recover sets compatible bit 0"
            )
            yield Finding("flags", "warn", at[0], 0, text, count=len(at))

    # ------------------------------------------------------------------------------------------ for copying

    def records(self) -> I64:
        """Positions of all records that are no messages, ascending."""
        return np.union1d(self.walk.parsed, self.walk.notes).astype(np.int64)

    def ends_of(self, positions: I64) -> I64:
        """Where the records at *positions* end."""
        data = self.source.data
        return (
            positions + HEAD + (data[positions].astype(np.int64) | data[positions + 1].astype(np.int64) << 8)
        )

    def formats(self) -> list[bytes]:
        """The payloads of all format records."""
        return [records.payload_at(self.source, at) for at in self.keyed.positions("F")]

    def subscriptions(self) -> list[tuple[int, int | None]]:
        """Position of each subscription and the number of its channel, None for one that was ignored."""
        numbers = {(t.name, t.instance): i for i, t in enumerate(self._channels) if t.segment == 1}
        found = []
        for at in self.keyed.positions("A"):
            instance, _, name = records.parse_subscription(records.payload_at(self.source, at))
            found.append((at, numbers.get((name, instance))))
        return found

    def marks(self) -> I64:
        """Positions of the records without content of their own that stand among the messages."""
        return np.setdiff1d(self.walk.notes, np.concatenate([self._texts, self._dropouts]))

    def made_positions(self) -> dict[int, I64]:
        """Positions of the records that each made channel was made of, in its order."""
        return {i: at for i, (_, _, at) in enumerate(self._made_channels(), len(self._channels))}

    def definitions(self) -> I64:
        """Positions of defaults and of the parameters among the definitions."""
        initial = [at for at in self.keyed.positions("P") if self.keyed.is_initial(at)]
        return np.array(initial + self.keyed.positions("Q"), np.int64)

    # ---------------------------------------------------------------------------------------- text and UTC

    def _text(self) -> list[TextLine]:
        strings, tags = [], {}
        for at in self._texts.tolist():
            level, tag, time, text = self._text_at(at)
            strings.append(
                events.Line(time, level if level < LEVELS else None, text.decode("utf-8", "replace"))
            )
            if self._view[at + 2] == ord("C"):
                tags[len(strings) - 1] = tag
        rows = [
            row for i, t in enumerate(self._channels) if t.name == "event" for row in self._event_rows(i, t)
        ]
        merged = events.lines(strings, rows, self._event_definitions()) if rows else strings
        source = {id(strings[i]): f"tag {tag}" for i, tag in tags.items()}
        lines = [TextLine(line.time, line.level, line.text, source.get(id(line), "")) for line in merged]
        return sorted(lines, key=lambda line: line.time)

    def _event_definitions(self) -> events.Definitions | None:
        for parts in self.keyed.multiples.get("metadata_events", []):
            try:
                return events.load(b"".join(p.key.data for p in parts))
            except DefinitionError:
                continue
        return None

    def _event_rows(self, number: int, topic: Topic) -> list[events.Row]:
        layout = topic.definitions.layout(topic.name) if not topic.raw else _RAW
        if topic.raw or not {"id", "arguments", "log_levels"} <= {f.name for f in layout.record.visible()}:
            return []
        decode = layout.decoder()
        rows = []
        sizes, times = self._index.sizes(number).tolist(), self._index.times(number).tolist()
        for at, size, time in zip(self._index.offsets(number).tolist(), sizes, times, strict=True):
            row = decode(memoryview(self.source.read(at, size)))
            rows.append(events.Row(time, row["id"], bytes(row["arguments"]), row["log_levels"]))
        return rows

    def _utc_offset(self) -> int | None:
        told = {e.key.name: e.value for e in reversed(self.keyed.entries) if e.kind == "I"}
        offset = told.get(clock.UTC_OFFSET)
        if isinstance(offset, int) and abs(offset) < clock.LATEST_US * NS_PER_US:
            return offset
        boot = told.get("boot_time_utc_us")
        if isinstance(boot, int) and 0 < boot < clock.LATEST_US:
            return boot * NS_PER_US
        for number, topic in enumerate(self._channels):
            if topic.name in ("vehicle_gps_position", "sensor_gps") and not topic.raw and topic.segment == 1:
                offset = self._gps_offset(number, topic)
                if offset is not None:
                    return offset
        return None

    def _gps_offset(self, number: int, topic: Topic) -> int | None:
        """UTC of boot by the first GPS message that knows the time."""
        leaf = next(
            (x for x in topic.definitions.layout(topic.name).leaves if x.path == ("time_utc_usec",)), None
        )
        if leaf is None or leaf.width != 8 or not self._counts_of(number):
            return None
        utc = FieldAt(leaf.runs[0], 8, NS_PER_US).values(self._index, number)
        known = np.flatnonzero((utc > 0) & (utc < clock.LATEST_US * NS_PER_US))
        return int(utc[known[0]] - self._index.times(number)[known[0]]) if len(known) else None

    def _counts_of(self, number: int) -> int:
        return int(self._index.counts[number])
