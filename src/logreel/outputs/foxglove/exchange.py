"""Translation for exchange: channels in well-known schemas, and protobuf where other tools cannot read a schema."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DefinitionError
from logreel.index.block_table import TIME_MAX, TIME_MIN
from logreel.io.arrays import I64, distinct
from logreel.layout.nodes import Field, Rest, Struct
from logreel.lenses import (
    ActorPose,
    Image,
    LaserScan,
    Lens,
    PackedCloud,
    PacketCloud,
    PlainCloud,
    Pose,
    Position,
    RangeScan,
    Text,
    Transform,
    lenses,
)
from logreel.lenses.vehicle import vehicle_poses
from logreel.log.columns import ColumnReader, RowOptions
from logreel.log.scan import MADE_OF, ORIGINAL, Schema
from logreel.ops.rewrite import engine
from logreel.ops.rewrite.parts import Part
from logreel.ops.rewrite.streams import (
    MessageBatch,
    by_time,
    in_order,
    in_time_order,
    merged_batches,
    odd_booleans,
    replaced_texts,
)
from logreel.outputs.foxglove import messages
from logreel.outputs.foxglove.messages import PACKAGE, Fill, Rows, wellknown
from logreel.registry.registry import formats
from logreel.schemas.languages import language_named, portable
from logreel.schemas.protobuf.encoder import descriptor_from_layout, encode, type_name, values
from logreel.schemas.protobuf.fixed_encoder import FixedEncoder, FixedEncoders, fixed_encoder
from logreel.schemas.protobuf.types import ProtoMessage, descriptor_set
from logreel.write.format_writer import Payloads
from logreel.write.log_copier import Original

if TYPE_CHECKING:
    from logreel.log.log import Channel, Log


#: Encoding of schemas and messages.
ENCODING = "protobuf"


@dataclass(frozen=True, slots=True)
class Encoded:
    """Translated messages; the payload at time[i] is data[start[i]:start[i + 1]].

    time   int64[n]      ns
    data   uint8[b]
    start  int64[n + 1]
    """

    time: I64
    data: NDArray[np.uint8]
    start: I64

    def __len__(self) -> int:
        return len(self.time)


@dataclass(frozen=True, slots=True)
class Encoder:
    """Translates the messages of *source* to a channel with another schema.

    topic     topic of the new channel
    message   message type of the new channel
    fill      function that returns times and columns
    metadata  metadata of the new channel
    straight  writer of the same messages directly from payloads of fixed size; None: only through columns
    """

    source: Channel
    topic: str
    message: ProtoMessage
    fill: Fill
    metadata: Mapping[str, Any]
    straight: FixedEncoder | None = None

    @property
    def schema(self) -> Schema:
        """The schema of the new channel, with a FileDescriptorSet as definition."""
        return Schema.of(self.message.name, ENCODING, descriptor_set(self.message))

    def encode(self, start: int | None = None, end: int | None = None) -> Encoded:
        """Return the translated messages with start <= time < end (ns), in the order of the source."""
        time, values = self.fill(self.source, start, end)
        data, place = encode(self.message, values, len(time))
        return Encoded(np.ascontiguousarray(time, np.int64), data, place)


#: Approximate payload bytes that are translated through columns at once.
WINDOW = 16 << 20
#: Number of samples per window from which its end is computed.
_SAMPLES = 16
#: Assumed compression ratio of logs whose payload sizes are not known.
_PACKED = 4
#: ROS types that Foxglove displays itself, by full name. Source: the supported messages of its Map panel in its
#: documentation, and for the 3D, Image and Log panels from the source of Foxglove Studio, now that of Lichtblick. Those
#: also show velodyne_msgs/VelodyneScan, but not with the calibration of a scanner.
NATIVE = {
    *("sensor_msgs/CompressedImage", "sensor_msgs/Image", "sensor_msgs/LaserScan"),
    *("sensor_msgs/NavSatFix", "sensor_msgs/PointCloud2", "nav_msgs/Path"),
    *("geometry_msgs/PoseArray", "geometry_msgs/PoseStamped", "geometry_msgs/PoseWithCovarianceStamped"),
    *("geometry_msgs/TransformStamped", "tf/tfMessage", "tf2_msgs/TFMessage"),
    *("rosgraph_msgs/Log", "rcl_interfaces/Log"),
}
#: Keys of metadata about the message encoding.
_OF_MESSAGES = {"message_encoding"}
_ROS = {"ros1msg", "ros2msg", "ros2idl"}
_WHOLE = RowOptions(explode=False, gaps=False)
#: Layout of messages without a definition.
_BYTES = Struct((Field("data", Rest()),))


def encoders_for(ch: Channel, shift: int = 0) -> Iterator[Encoder]:
    """Yield an Encoder to a well-known schema for each lens of *ch*; none if *ch* has such a schema already.

    The new topic is the topic of *ch* and the schema name: ``/gps/LocationFix``.

    shift  ns to add to times of the log in message fields
    """
    name = ch.schema.name.replace("::", "/").replace(".", "/")
    if name.startswith(f"{PACKAGE}/") or ch.schema.name.startswith(f"{PACKAGE}_msgs/"):
        return
    if ch.schema.encoding in _ROS and name.replace("/msg/", "/") in NATIVE:
        return
    for lens in lenses(ch):
        message = message_for_lens(lens, shift)
        if message is not None:
            schema, fill = message
            yield _encoder(ch, schema, fill)
    for pose in vehicle_poses(ch.log):
        if pose.place[0].topic == ch.topic:
            yield _encoder(ch, "PoseInFrame", messages.pose(pose, shift))
        if pose.base[0].topic == ch.topic:
            yield _encoder(ch, "FrameTransform", messages.transform(pose, shift))


def _encoder(ch: Channel, schema: str, fill: Fill) -> Encoder:
    return Encoder(ch, f"{ch.topic}/{schema}", wellknown(schema), fill, {MADE_OF: ch.topic})


def message_for_lens(lens: Lens, shift: int = 0) -> tuple[str, Fill] | None:
    """Return the well-known schema for *lens* and the function that fills its columns; None if there is none."""
    match lens:
        case Position():
            return "LocationFix", messages.location(lens, shift)
        case Pose(repeated=repeated):
            return "PosesInFrame" if repeated else "PoseInFrame", messages.pose(lens, shift)
        case Transform(repeated=repeated):
            return "FrameTransforms" if repeated else "FrameTransform", messages.transform(lens, shift)
        case Text():
            return "Log", messages.log_lines(lens, shift)
        case ActorPose():
            return "SceneUpdate", messages.scene(lens, shift)
        case Image(encoding=str()):
            return "RawImage", messages.raw_images(lens, shift)
        case Image():
            return "CompressedImage", messages.images(lens, shift)
        case PackedCloud() | PlainCloud():
            return "PointCloud", messages.clouds(lens, shift)
        case PacketCloud():
            return "PointCloud", messages.Revolutions(lens, shift)
        case LaserScan() | RangeScan():
            return "LaserScan", messages.scans(lens, shift)
    return None


def is_common(ch: Channel) -> bool:
    """Return whether tools that do not know the format of the log can read *ch* by its schema.

    In a log for exchange, messages of unknown encoding or without definition also count as common: they cannot be
    translated, and unchanged they can be converted back.
    """
    if not ch.schema.encoding or language_named(ch.schema.encoding) is not None:
        return True
    fmt = formats().get(ch.log.format)
    return (
        fmt is not None and fmt.exchange and (ch.schema.encoding not in formats() or ch.layout.root == _BYTES)
    )


def transcoded(ch: Channel, restamped: bool = False, skipped: list[str] | None = None) -> Encoder:
    """Return an Encoder of *ch* to protobuf, with the same topic and the fields of its Layout.

    restamped  whether messages have other times than those in their fields, as in ``Original``
    skipped    list for a sentence about text that is not UTF-8, which protobuf does not have

    Raises DefinitionError if the definition cannot be used.
    """
    message = descriptor_from_layout(ch.layout, type_name(ch.schema.encoding, ch.schema.name or ch.topic))

    said = list[str]()

    def fill(ch: Channel, start: int | None, end: int | None) -> Rows:
        rows = ColumnReader(ch, None, _WHOLE).read(ch.log.index.rows_between(ch.number, start, end))
        columns = [column.settled() for column in rows.columns]
        if skipped is not None and not said and any(column.has_replaced_text() for column in columns):
            said.append(ch.topic)
            skipped.extend(replaced_texts(ch))
        return rows.time, values(ch.layout, message, columns)

    metadata = {name: value for name, value in ch.metadata.items() if name not in _OF_MESSAGES}
    metadata[engine.TRANSCODED] = ch.schema.encoding
    if not isinstance(ch.metadata.get(ORIGINAL), str):
        metadata[ORIGINAL] = Original(ch.log.format, ch.topic, ch.schema, ch.metadata, restamped).text()
    return Encoder(
        ch, ch.topic, message, fill, metadata, fixed_encoder(ch.layout, message) if ch.is_uniform else None
    )


def interleave(
    log: Log, channels: Iterable[Channel], shift: int = 0, restamped: Collection[int] = ()
) -> Interleaving:
    """Return the Interleaving that translates *channels* of *log* for other tools.

    shift      ns to add to times of the log
    restamped  numbers of channels with other times than those in the fields of their messages
    """
    instead, added, skipped = dict[int, Encoder](), list[Encoder](), list[str]()
    present = {(ch.metadata.get(MADE_OF), ch.schema.name) for ch in log.channels.values()}
    for ch in channels:
        if not {MADE_OF, engine.TRANSCODED} & ch.metadata.keys():
            added += [
                encoder
                for encoder in encoders_for(ch, shift)
                if (ch.topic, encoder.message.name) not in present
            ]
        if not is_common(ch):
            try:
                instead[ch.number] = transcoded(ch, ch.number in restamped, skipped)
            except DefinitionError as error:
                skipped.append(
                    f"messages of channel {ch.topic!r} stay in an encoding of the format: {error.text}"
                )
    return Interleaving(instead, added, skipped)


@dataclass(slots=True)
class Interleaving:
    """Replaced and additional channels of a log.

    instead  Encoders that replace channels, by channel number
    added    Encoders of additional channels
    skipped  sentences about what could not be translated
    """

    instead: Mapping[int, Encoder]
    added: list[Encoder]
    skipped: list[str]

    def batches(self, part: Part) -> Iterator[MessageBatch]:
        """Yield all messages by time; at equal times, messages translated through columns are last."""
        straight = {
            n: encoder.straight for n, encoder in self.instead.items() if encoder.straight and n in part.rows
        }
        encoders = [
            (n, encoder) for n, encoder in self.instead.items() if n in part.rows and n not in straight
        ]
        encoders += list(enumerate(self.added, len(part.log.index.rules)))
        encoders = [(n, encoder) for n, encoder in encoders if len(encoder.source)]
        passing = [n for n in part.rows if n not in self.instead or n in straight]
        written = _StraightWriter(straight)
        for start, end in itertools.pairwise(
            _window_edges(part, [encoder.source for _, encoder in encoders])
        ):
            made = _merged([self._encoded(n, encoder, start, end, part.shift) for n, encoder in encoders])
            rows = {n: part.log.index.rows_between(n, start, end) for n in passing}
            done = 0
            for batch in in_time_order([replace(part, rows=rows, start=start, end=end)]):
                due = int(made.time.searchsorted(batch.time[-1]))
                yield _merged([written.replace_in(batch), made.rows(slice(done, due))])
                done = due
            if done < len(made.time):
                yield made.rows(slice(done, None))

    def _encoded(
        self, channel: int, encoder: Encoder, start: int, end: int | None, shift: int
    ) -> MessageBatch:
        """Return the messages of *encoder* in an interval, sorted by time, with *shift* added."""
        try:
            encoded = encoder.encode(start, end)
        except DefinitionError as error:
            text = f"channel {encoder.topic!r} was left out: {error.text}"
            if text not in self.skipped:
                self.skipped.append(text)
            return _NOTHING
        payloads = Payloads(encoded.data, encoded.start[:-1], np.diff(encoded.start))
        made = _batch(np.full(len(encoded), channel, np.int32), encoded.time + shift, payloads)
        return made.rows(encoded.time.argsort(kind="stable"))


class _StraightWriter:
    """Replaces the messages of some channels by messages that are written directly from their payloads."""

    def __init__(self, channels: Mapping[int, FixedEncoder]) -> None:
        self._straights = FixedEncoders(list(channels.values()))
        self._kinds = np.full(max(channels, default=-1) + 2, -1, np.int32)
        self._kinds[list(channels)] = np.arange(len(channels))

    def replace_in(self, batch: MessageBatch) -> MessageBatch:
        """Return *batch* with these messages replaced."""
        encoder = self._kinds[np.minimum(batch.channels, len(self._kinds) - 1)].take(batch.queue)
        goes = encoder >= 0
        if goes.all():
            return self._encoded(batch, encoder)
        if not goes.any():
            return batch
        stay, go = np.flatnonzero(~goes), np.flatnonzero(goes)
        made = self._encoded(batch.rows(go), encoder[go])
        return in_order([batch.rows(stay), made], np.argsort(np.concatenate([stay, go])))

    def _encoded(self, batch: MessageBatch, encoder: NDArray[np.int32]) -> MessageBatch:
        payloads = batch.payloads
        data, start = self._straights.encode(encoder, payloads.buffers, payloads.which, payloads.start)
        return replace(batch, payloads=Payloads(data, start[:-1], np.diff(start)), more={})


def _window_edges(part: Part, sources: Sequence[Channel]) -> list[Any]:
    """Return times (ns) that split *part* into windows of about WINDOW bytes of *sources*; the last is its end."""
    index, samples, weights = part.log.index, [np.zeros(0, np.int64)], [np.zeros(0)]
    times_by_channel = [index.times(n)[rows] for n, rows in part.rows.items()]
    first = min((int(times.min()) for times in times_by_channel if len(times)), default=None)
    if first is None:
        return []
    every = max(1, sum(len(ch) for ch in part.channels))
    for ch in sources:
        size = ch.bytes / max(1, len(ch)) if index.sizes_are_cheap else _PACKED * part.log.size / every
        step = max(1, int(WINDOW / _SAMPLES / max(1.0, size)))
        sampled = index.times(ch.number)[index.rows_between(ch.number, first, part.end)][::step]
        samples.append(sampled)
        weights.append(np.full(len(sampled), size * step))
    time, weight = np.concatenate(samples), np.concatenate(weights)
    order = np.argsort(time, kind="stable")
    number = np.cumsum(weight[order]) // WINDOW
    cuts = time[order][1:][np.diff(number) > 0]
    return [*distinct(np.append(cuts, first)).tolist(), part.end]


def _batch(
    channel: NDArray[np.int32], time: I64, payloads: Payloads, more: Mapping[str, I64] = MappingProxyType({})
) -> MessageBatch:
    channels = np.arange(int(channel.max(initial=-1)) + 1, dtype=np.int32)
    return MessageBatch(channel, np.zeros_like(channels), channels, time, payloads, np.zeros_like(time), more)


_NONE = np.zeros(0, np.int64)
_NOTHING = _batch(np.zeros(0, np.int32), _NONE, Payloads(np.zeros(0, np.uint8), _NONE, _NONE))


def _merged(batches: Sequence[MessageBatch]) -> MessageBatch:
    """Return the messages of several batches, each sorted by time, as one batch by time; ties in order of *batches*."""
    filled = [batch for batch in batches if len(batch.time)]
    if len(filled) < 2:
        return filled[0] if filled else _NOTHING
    return merged_batches(filled)


@dataclass
class Exchange(engine.Transform):
    """Translation of logs for other tools.

    converts      whether a part is translated; others keep their messages
    field_shift   ns to add to times in the fields of messages of a part
    depth         batches are large, and built by several threads
    """

    converts: Callable[[Part], bool] = lambda part: True
    field_shift: Callable[[Part], int] = lambda part: part.shift
    _plans: dict[int, Interleaving] = field(default_factory=dict)
    #: Channels whose definitions changed to the form that other tools can parse.
    _modernized: list[str] = field(default_factory=list)

    def _plan(self, part: Part) -> Interleaving | None:
        """Return the translation of a part; None if its messages stay."""
        if not self.converts(part):
            return None
        if id(part.log) not in self._plans:
            shift = self.field_shift(part)
            self._plans[id(part.log)] = interleave(part.log, part.channels, shift, part.restamped)
        plan = self._plans[id(part.log)]
        return plan if plan.instead or plan.added or plan.skipped else None

    def changes(self, part: Part) -> bool:
        """Return whether messages are translated or added."""
        return self._plan(part) is not None

    def channels(
        self, new: engine.NewLog, channels: Sequence[engine.NewChannel]
    ) -> Sequence[engine.NewChannel]:
        """Return the channels with other schemas, and those that are added."""
        self._plans.clear()
        self._modernized.clear()
        translated = list[engine.NewChannel]()
        for p, part in enumerate(new.parts):
            plan = self._plan(part)
            for ch in channels:
                if ch.part == p:
                    translated.append(self._translated(ch, plan) if self.converts(part) else ch)
            if plan is not None:
                for number, made in enumerate(plan.added, len(part.log.index.rules)):
                    translated.append(
                        engine.NewChannel(p, number, None, made.topic, made.schema, made.metadata)
                    )
                new.skipped += plan.skipped
                new.format_writer.mixes_encodings = new.by_time = True
                self.depth = 1
        return translated

    def _translated(self, channel: engine.NewChannel, plan: Interleaving | None) -> engine.NewChannel:
        made = None if plan is None or channel.source is None else plan.instead.get(channel.source.number)
        if made is not None:
            channel.schema, channel.metadata, channel.is_other = made.schema, made.metadata, True
        elif isinstance(channel.schema, Schema) and channel.source is not None:
            schema = portable(channel.schema)
            if channel.schema.raw and schema.raw != channel.schema.raw:
                self._modernized.append(channel.source.topic)
            channel.schema = schema
        return channel

    def batches(self, new: engine.NewLog, batches: Iterable[MessageBatch]) -> Iterable[MessageBatch]:
        """Yield the messages, translated ones among them; of several parts by time."""
        plans = [self._plan(part) for part in new.parts]
        if len(plans) == 1:
            return batches if plans[0] is None else plans[0].batches(new.parts[0])
        return by_time(
            [
                in_time_order([part]) if plan is None else plan.batches(part)
                for plan, part in zip(plans, new.parts, strict=True)
            ]
        )

    def why_unwritten(self, channel: engine.NewChannel) -> str:
        """Return that messages cannot be decoded, for channels that are translated."""
        return "they cannot be decoded" if channel.is_other else ""

    def finish(self, new: engine.NewLog) -> None:
        """Say what could not be translated, and what changed."""
        for part in new.parts:
            plan = self._plan(part)
            if plan is not None:
                # Sentences added while messages were translated.
                new.skipped += [text for text in plan.skipped if text not in new.skipped]
                for ch in part.channels:
                    if ch.number in plan.instead:
                        new.notes += odd_booleans(ch)
        if self._modernized:
            shown = ", ".join(map(repr, self._modernized[:5])) + " …" * (len(self._modernized) > 5)
            new.notes.append(f"definitions of {shown} are written as tools of today read them")


#: Source messages and bytes that are translated at once.
MESSAGES, BYTES = 256, 1 << 20


class TranslatedMessages:
    """The messages of an Encoder, of which one window is kept in memory.

    shift  ns that the replay adds to the times of the log
    """

    def __init__(self, encoder: Encoder, shift: int) -> None:
        self.encoder, self._shift = encoder, shift
        ch = encoder.source
        messages = max(1, min(MESSAGES, BYTES * len(ch) // max(1, ch.bytes)))
        span = (ch.end or 0) - (ch.start or 0)
        #: Length of a window in ns.
        self._length = max(1, span * messages // max(1, len(ch)))
        self._start = self._end = 0
        self._times: list[int] = []
        self._found: Encoded | None = None
        #: Reason why the messages cannot be translated; empty if they can.
        self.failed = ""
        #: Time of the last call of ``new_at``, and the messages of that time that were returned.
        self._at, self._returned = 0, 0

    def new_at(self, time: int) -> list[bytes]:
        """Return the payloads of the messages at *time* that earlier calls for this time did not return.

        For logs that grow: nothing is kept in memory, as further messages of the same time may come.
        """
        if time != self._at:
            self._at, self._returned = time, 0
        payloads = [] if self.failed else self._of_moment(time - self._shift)
        new = payloads[self._returned :]
        self._returned = len(payloads)
        return new

    def _of_moment(self, time: int) -> list[bytes]:
        try:
            encoded = self.encoder.encode(time, time + 1)
        except DefinitionError as error:
            self.failed = error.text
            return []
        return [
            encoded.data[encoded.start[row] : encoded.start[row + 1]].tobytes()
            for row in range(len(encoded.time))
        ]

    def between(self, start: int, end: int) -> Iterator[tuple[int, bytes]]:
        """Yield time and payload of messages with start <= time < end (ns of the replay), by time."""
        start, end = start - self._shift, end - self._shift
        source = self.encoder.source
        start, end = max(start, source.start or 0), min(end, (source.end or 0) + 1)
        while start < end and not self.failed:
            if not self._start <= start < self._end:
                self._load(start)
            yield from self._within(start, min(end, self._end))
            start = self._end

    def _load(self, start: int) -> None:
        # Windows are on a grid, so that they are the same forwards and backwards.
        number = start // self._length
        self._start, self._end = number * self._length, (number + 1) * self._length
        try:
            self._found = self.encoder.encode(max(self._start, TIME_MIN), min(self._end, TIME_MAX))
        except DefinitionError as error:
            self.failed = error.text
            return
        order = self._found.time.argsort(kind="stable")
        self._order, self._times = order.tolist(), self._found.time[order].tolist()

    def _within(self, start: int, end: int) -> Iterator[tuple[int, bytes]]:
        encoded = self._found
        if encoded is None:
            return
        for i in range(bisect_left(self._times, start), bisect_left(self._times, end)):
            row = self._order[i]
            data = encoded.data[encoded.start[row] : encoded.start[row + 1]].tobytes()
            yield self._times[i] + self._shift, data
