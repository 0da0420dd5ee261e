"""A recording session: messages of several live sources, and of lines of JSON, in one log.

Payloads of one definition language are converted for logs of another one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from threading import Thread
from time import monotonic
from typing import Any

from logreel.errors import DamagedError, DefinitionError, LogError, UnsupportedError, UsageError
from logreel.layout.layout import Layout
from logreel.layout.nodes import Field, FixedArray, Rest, Scalar, String, Struct
from logreel.log.scan import Schema
from logreel.ops.record.lines import LineRecorder
from logreel.ops.record.parts import SplitWriter
from logreel.ops.record.ring import RecordedWindow
from logreel.ops.record.source import (
    DRAIN_WITHIN,
    OVERHEAD,
    PATIENCE,
    DeclaredChannel,
    DrainLimit,
    Entry,
    Feed,
    LiveChannel,
    LiveQueue,
    LiveSource,
    Lost,
    TopicFilter,
    bytes_of,
)
from logreel.ops.rewrite.target import Rewritten
from logreel.registry.registry import formats, layout_by_format
from logreel.schemas.languages import language_of, message_encoding
from logreel.write.writer import add_channel

#: Function from the payload of a message to its fields.
Decode = Callable[[bytes], dict[str, Any]]


def layout_of_schema(schema: Schema, topic: str, encoding: str | None = None) -> Layout:
    """Return the Layout of payloads with this schema; raises DefinitionError if its language has none.

    encoding  encoding of the messages; None: the usual one of the schema
    """
    encoding = encoding or message_encoding(schema)
    language = language_of(schema, encoding)
    layout = (None if language is None else language.layout(schema)) or layout_by_format(schema, topic)
    if layout is None:
        exchange = next((fmt for fmt in formats().values() if fmt.exchange), None)
        advice = f"; {exchange.title} (*{exchange.suffixes[0]}) holds it" if exchange is not None else ""
        raise DefinitionError(
            f"messages of encoding {encoding!r} cannot be converted while recording{advice}"
        )
    return layout


def decoder(layout: Layout) -> Decode:
    """Return a function that decodes payloads of *layout*; it raises DamagedError for invalid ones."""
    decode = layout.decoder()
    return lambda payload: decode(memoryview(payload))


def is_raw(schema: Schema | Layout) -> bool:
    """Return whether a source knows nothing about its payloads: a definition that the user gives applies to them."""
    if not isinstance(schema, Layout) or not isinstance(schema.root, Struct) or len(schema.root.fields) != 1:
        return False
    node = schema.root.fields[0].node
    return isinstance(node, Rest) or (isinstance(node, FixedArray) and node.item == Scalar("uint8"))


def checker(layout: Layout) -> Callable[[bytes], bytes]:
    """Return a function that returns a payload; it raises UsageError or DamagedError if that does not fit *layout*."""
    size, decode = layout.size, layout.decoder()

    def check(payload: bytes) -> bytes:
        if size is None:
            decode(memoryview(payload))
        elif len(payload) != size:
            raise UsageError(f"a message of {len(payload)} bytes instead of {size}")
        return payload

    return check


@dataclass(frozen=True, slots=True)
class TopicLoss:
    """Messages of a topic that were lost while recording; *source*: where they came from."""

    topic: str
    messages: int
    source: str


@dataclass(frozen=True, slots=True, repr=False)
class Recorded(Rewritten):
    """Result of a recording.

    lines    lines of JSON that were not blank
    broken   lines and frames left out; *skipped* has a sentence for each of the first ones
    stopped  True: ended by *stop* before the end of the sources
    parts    files of the log, in order: one, unless it was split
    losses   messages that were lost because they came faster than they were written, or before they came to logreel
    windows  windows around triggers that were recorded and kept, in order, if it was asked for these
    """

    lines: int
    broken: int
    stopped: bool
    parts: tuple[str, ...] = ()
    losses: tuple[TopicLoss, ...] = ()
    windows: tuple[RecordedWindow, ...] = ()

    @property
    def lost(self) -> int:
        """Number of lost messages of all topics."""
        return sum(loss.messages for loss in self.losses)

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON data of ``record --json``."""
        counts = {"lines": self.lines, "broken": self.broken, "stopped": self.stopped}
        losses = {"lost": self.lost, "losses": [asdict(loss) for loss in self.losses]}
        windows = {"windows": [window.as_dict() for window in self.windows]}
        return Rewritten.as_dict(self) | counts | {"parts": list(self.parts)} | losses | windows


@dataclass(frozen=True, slots=True)
class Progress:
    """State of a recording under way.

    seconds   since the start
    messages  messages written
    size      bytes of all files so far, about
    lost      messages lost
    filling   used part of the queue, from 0 to 1
    path      file that is being written
    """

    seconds: float
    messages: int
    size: int
    lost: int
    filling: float
    path: str


#: Seconds in which messages gather in the queue, so that they are written many at once.
GATHER = 0.01
#: Most bytes and messages that are written together.
BATCH_BYTES, BATCH_MESSAGES = 4 << 20, 1 << 14
#: Seconds for which formats that define all channels first wait for further channels.
SETTLE = 2.0
#: Most bytes of messages that wait for this.
HELD_BYTES = 64 << 20
#: Seconds between two calls of *progress*, and seconds that sources have to end.
PROGRESS_EVERY, END_WITHIN = 0.25, 5.0
#: Entries between two looks whether the recording is to end.
BETWEEN_LOOKS = 64
#: Seconds that each source has to end after an error of the recording.
LEAVE_WITHIN = 1.0
#: Channel for the losses of a recording: topic and number of lost messages, and ms from the first to the last.
DROPOUT = "~dropout"
_DROPOUT_LAYOUT = Layout(
    Struct(
        (
            Field("topic", String()),
            Field("messages", Scalar("uint64")),
            Field("duration", Scalar("uint32")),
        )
    )
)
_MOST_MS = 0xFFFF
#: Syslog level of a warning.
_WARNING = 4


@dataclass(slots=True)
class _Stream:
    """A source with its thread; *error*: why it ended, if not by itself."""

    source: LiveSource
    feed: Feed
    thread: Thread | None = None
    error: str = ""
    ended: bool = False


class RecordingSession:
    """Runs sources and writes what they deliver.

    writer     of the log
    lines      for lines of JSON, and the definitions that the user gave
    selection  topics, and messages of each
    duration   seconds after which the recording ends; None: when all sources end
    every      seconds after which messages are flushed; None: when there are many
    progress   called with the state now and then
    say        called with what sources say to the user
    """

    def __init__(
        self,
        writer: SplitWriter,
        lines: LineRecorder,
        selection: TopicFilter,
        queue: LiveQueue,
        every: float | None,
        duration: float | None,
        progress: Callable[[Progress], None] | None,
        say: Callable[[str], None],
    ) -> None:
        self.notes: list[str] = []
        self._writer, self._lines, self._selection, self._queue = writer, lines, selection, queue
        self._every, self._duration, self._progress = every, duration, progress
        self._say = say
        self._streams: list[_Stream] = []
        #: Number of the channel in the log, by topic, definition, and publisher where the log keeps these apart.
        self._numbers: dict[tuple[str, Schema | Layout, str], int] = {}
        #: Names that readers of the log give to its channels, where they join publishers: by number, and the number of
        #: the first channel by topic and definition.
        self.names: dict[int, str] = {}
        self._taken_names: set[str] = set()
        self._first: dict[tuple[str, Schema | Layout], int] = {}
        #: Functions from payloads to what is written, by number of the channel, where they differ or are checked.
        self._convert: dict[int, Callable[[bytes], Any]] = {}
        #: Messages to be written together, their channels and bytes.
        self._batch: list[tuple[int, int, bytes]] = []
        self._batch_channels: list[LiveChannel] = []
        self._batch_bytes = 0
        #: First sentence about messages of a channel that could not be written.
        self._why: dict[LiveChannel, str] = {}
        #: Entries that wait until all channels are known; None: nothing waits.
        self._held: deque[Entry] | None = deque() if writer.format_writer.defines_first else None
        self._held_since: float | None = None
        self._held_bytes = 0
        self._begun = self._flushed = self._shown = monotonic()
        self._dropout: Callable[[Lost], None] | None = None
        #: Messages that were in the queue when the time to write them was over.
        self._unwritten = 0
        self.messages = 0

    # ------------------------------------------------------------------------------------------- the session

    def run(self, sources: Sequence[LiveSource], stop: Callable[[], bool]) -> bool:
        """Record until all sources have ended, *stop* returns True, or a limit is reached; return whether stopped."""
        for source in sources:
            feed = Feed(
                source.name, self._queue, self._selection.wants, self._say, accepts=self._selection.accepts
            )
            stream = _Stream(source, feed)
            stream.thread = Thread(target=self._run_source, args=(stream,), name=source.name, daemon=True)
            self._streams.append(stream)
        for stream in self._streams:
            if stream.thread is not None:
                stream.thread.start()
        stopped = False
        self._lines.is_late = DrainLimit(
            stop, None if self._duration is None else self._begun + self._duration
        )
        try:
            while True:
                # In this order: what a source passed on before it ended is in the queue.
                over = all(stream.ended for stream in self._streams)
                entries = self._queue.take(0.0 if over else self._patience)
                self._take(entries)
                stopped = stop()
                if stopped or self._is_over() or (over and not entries):
                    break
                if entries and not over:
                    self._queue.gather(GATHER)
                self._do_regularly()
            self._queue.stop()
            self._finish()
        except BaseException:
            self._queue.stop()
            self._queue.close()
            for stream in self._streams:
                if stream.thread is not None:
                    stream.thread.join(LEAVE_WITHIN)
            raise
        self._queue.close()
        return stopped

    def _run_source(self, stream: _Stream) -> None:
        try:
            stream.source.run(stream.feed)
        except LogError as error:
            stream.error = error.text
        except OSError as error:
            stream.error = error.strerror or str(error)
        except Exception as error:
            stream.error = f"{type(error).__name__}: {error}"
        finally:
            stream.ended = True
            self._queue.wake()

    @property
    def _patience(self) -> float:
        return PATIENCE if self._every is None else max(0.01, min(PATIENCE, self._every))

    def _is_over(self) -> bool:
        """Return whether the duration or the numbers of messages are reached."""
        if self._duration is not None and monotonic() - self._begun >= self._duration:
            return True
        if self._selection.limit is None:
            return False
        feeds = [stream.feed for stream in self._streams if not stream.ended]
        complete = bool(feeds) and all(
            feed.settled and all(self._selection.has_all(ch.topic) for ch in feed.channels) for feed in feeds
        )
        return complete or self._selection.is_complete

    def _do_regularly(self) -> None:
        """Flush and show the progress if it is time to."""
        now = monotonic()
        self._lines.infer_if_due(silent=True)
        # Other formats take the definitions of the lines later.
        defines_first = self._writer.format_writer.defines_first
        holds = self._held is not None or (self._lines.is_waiting and defines_first)
        if self._every is not None and now - self._flushed >= self._every and not holds:
            self._writer.flush()
            self._flushed = now
        if self._progress is not None and now - self._shown >= PROGRESS_EVERY:
            self._shown = now
            lost = sum(ch.lost for stream in self._streams for ch in stream.feed.channels)
            self._progress(
                Progress(
                    now - self._begun,
                    self.messages + self._lines.messages,
                    self._writer.size,
                    lost,
                    self._queue.filling,
                    self._writer.path,
                )
            )

    def _finish(self) -> None:
        """Write what is left after the sources were asked to end."""
        self._release()
        end = monotonic() + END_WITHIN
        for stream in self._streams:
            while stream.thread is not None and stream.thread.is_alive() and monotonic() < end:
                # Their last messages may need room.
                self._take(self._queue.take(0.05))
            if not stream.ended:
                self.notes.append(
                    f"{stream.source.name} did not end within {END_WITHIN:g} s and was left alone"
                )
        while entries := self._queue.take(0.0):
            self._take(entries)
        self._lines.infer()
        for loss in self._queue.losses([ch for stream in self._streams for ch in stream.feed.channels]):
            self._write_loss(loss)

    # ---------------------------------------------------------------------------------------------- messages

    def _take(self, entries: deque[Entry]) -> None:
        if self._held is not None:
            self._held.extend(entries)
            if self._held and self._held_since is None:
                self._held_since = monotonic()
            settled = all(stream.ended or stream.feed.settled for stream in self._streams)
            waited = self._held_since is not None and monotonic() - self._held_since >= SETTLE
            self._held_bytes += sum(_size_of(entry) for entry in entries)
            if settled or waited or self._held_bytes > HELD_BYTES or self._queue.stopping.is_set():
                self._release()
            return
        late = False
        for n, entry in enumerate(entries):
            # Messages of thousands of channels take long.
            late = late or (n % BETWEEN_LOOKS == 0 and self._lines.is_late())
            if type(entry) is tuple:
                channel, time, payload = entry
                if late:
                    self._unwritten += 1
                elif channel is None:
                    self._write_batch()
                    self._lines.take(*payload)
                elif channel.number < 0:
                    channel.left_out += 1
                elif self._selection.takes(channel.topic):
                    self._collect(channel, time, payload)
                continue
            self._write_batch()
            if isinstance(entry, DeclaredChannel):
                self._add(entry.channel)
            elif isinstance(entry, Lost):
                self._write_loss(entry)
        self._write_batch()

    def _release(self) -> None:
        """Define the channels known so far, then write the messages that waited for this."""
        if self._held is None:
            return
        entries, self._held = self._held, None
        self._take(deque(entry for entry in entries if isinstance(entry, DeclaredChannel)))
        self._take(deque(entry for entry in entries if not isinstance(entry, DeclaredChannel)))

    def _collect(self, channel: LiveChannel, time: int, payload: Any) -> None:
        """Add a message to the batch; write it at once if it is a dict."""
        try:
            convert = self._convert.get(channel.number)
            if convert is not None and not isinstance(payload, dict):
                payload = convert(payload)
            if isinstance(payload, dict):
                self._write_batch()
                self._writer.write(channel.number, time, payload)
                self._count(channel)
                return
        except (UsageError, DamagedError, DefinitionError, UnsupportedError) as error:
            self._refuse(channel, error)
            return
        self._batch.append((channel.number, time, payload))
        self._batch_channels.append(channel)
        self._batch_bytes += len(payload)
        if self._batch_bytes > BATCH_BYTES or len(self._batch) >= BATCH_MESSAGES:
            self._write_batch()

    def _write_batch(self) -> None:
        """Write the collected messages."""
        if not self._batch:
            return
        batch, channels = self._batch, self._batch_channels
        self._batch, self._batch_channels, self._batch_bytes = [], [], 0
        for channel in channels:
            self._count(channel)

        def refuse(place: int, error: UsageError) -> None:
            self._count(channels[place], -1)
            self._refuse(channels[place], error)

        self._writer.write_batch(batch, refuse)

    def _count(self, channel: LiveChannel, messages: int = 1) -> None:
        channel.messages += messages
        self.messages += messages

    def _refuse(self, channel: LiveChannel, error: LogError) -> None:
        channel.left_out += 1
        self._why.setdefault(channel, error.text)

    def _add(self, channel: LiveChannel) -> None:
        """Add a channel to the log, or find the one of another source with the same topic and definition."""
        joins = self._writer.format_writer.joins_publishers
        key = channel.topic, channel.schema, repr(channel.metadata.get("headers")) if joins else ""
        try:
            if key not in self._numbers:
                first = self._first.get(key[:2])
                self._numbers[key] = number = self._added(channel, first)
                self._first.setdefault(key[:2], number)
            channel.number = self._numbers[key]
            if channel.latched:
                self._writer.latch(channel.number)
        except (DefinitionError, UsageError, UnsupportedError) as error:
            channel.refused = error.text

    def _added(self, channel: LiveChannel, first: int | None) -> int:
        """Add a channel and choose how its payloads are converted; return its number.

        first  number of an earlier channel that readers will join it with; None: there is none
        """
        schemas = self._writer.format_writer.schemas
        topic, schema = channel.topic, channel.schema
        if is_raw(schema) and (known_number := self._lines.number_of(topic)) is not None:
            # Payloads are what the user says they are.
            self._convert[known_number] = checker(schemas.layout(known_number))
            return known_number
        if isinstance(schema, Schema) and (self._writer.format.exchange or schemas.accepts_schema(schema)):
            # A second channel of a topic is called ``topic[1]``, but keeps its topic.
            taken = self._taken(channel.topic, schema, channel.metadata)
            metadata = {**channel.metadata, **({"topic": topic} if topic in taken else {})}
            number, name = add_channel(self._writer, topic, schema, metadata, taken)
        else:
            encoding = channel.metadata.get("message_encoding")
            layout = schema if isinstance(schema, Layout) else layout_of_schema(schema, topic, encoding)
            number, name = add_channel(self._writer, topic, layout, {}, self._writer.taken)
            same = schemas.splitter(number) is None and schemas.layout(number).root == layout.root
            if not same:
                self._convert[number] = decoder(layout)
        if first is not None:
            self.names[number] = self.names.get(first, self._writer.names[first])
            return number
        if self._writer.format_writer.joins_publishers and not self._writer.format_writer.old_channels:
            # Channels that are joined take no name.
            name = self._writer.format_writer.free_name(topic, self._taken_names)
            self.names[number] = name
            self._taken_names.add(name)
        if name != topic:
            self.notes.append(f"{topic!r} became {name!r}")
        return number

    def _taken(self, topic: str, schema: Schema, metadata: Mapping[str, Any]) -> set[str]:
        """Return the names that the channel cannot have: of new channels, and of different ones of a continued log."""
        taken, writer = set(self._writer.taken), self._writer.format_writer
        while (name := writer.free_name(topic, taken)) in writer.old_channels:
            if writer.continues(name, schema, metadata):
                break
            taken.add(name)
        return taken

    # ------------------------------------------------------------------------------------------------ losses

    def _write_loss(self, loss: Lost) -> None:
        """Write into the log that messages were lost, where its format has a place for this."""
        if self._dropout is None:
            self._dropout = self._dropout_writer()
        try:
            self._dropout(loss)
        except (UsageError, DefinitionError, UnsupportedError) as error:
            self.notes.append(f"the log does not mention the loss of {loss.channel.topic!r}: {error.text}")

    def _dropout_writer(self) -> Callable[[Lost], None]:
        """Return a function that writes a loss: to the channel of dropouts, with a line of text if it has no topic."""
        for topic in (DROPOUT, DROPOUT[1:]):
            try:
                number, _ = add_channel(self._writer, topic, _DROPOUT_LAYOUT, {}, self._writer.taken)
                fields = set(self._writer.format_writer.schemas.layout(number).paths())
            except (UsageError, DefinitionError, UnsupportedError):
                continue

            def write(loss: Lost, number: int = number, fields: set[str] = fields) -> None:
                ms = min(max((loss.last - loss.first) // 10**6, 1), _MOST_MS)
                row: Mapping[str, Any] = {
                    "topic": loss.channel.topic,
                    "messages": loss.messages,
                    "duration": ms,
                }
                if "topic" not in fields:
                    self._writer.text(loss.last, _sentence(loss), _WARNING)
                self._writer.write(number, loss.last, {name: row[name] for name in row if name in fields})

            return write
        return lambda loss: self._writer.text(loss.last, _sentence(loss), _WARNING)

    # ------------------------------------------------------------------------------------------------ result

    @property
    def channels(self) -> list[tuple[int, int]]:
        """Numbers of the channels with the messages that live sources delivered to each."""
        return [(ch.number, ch.messages) for feed in self._feeds for ch in feed.channels if ch.number >= 0]

    @property
    def _feeds(self) -> list[Feed]:
        return [stream.feed for stream in self._streams]

    @property
    def said(self) -> list[str]:
        """What sources reported that is no loss."""
        return [text for feed in self._feeds for text in feed.notes]

    @property
    def losses(self) -> tuple[TopicLoss, ...]:
        """Messages lost, by topic and source."""
        return tuple(
            TopicLoss(ch.topic, ch.lost, feed.name) for feed in self._feeds for ch in feed.channels if ch.lost
        )

    @property
    def broken(self) -> int:
        """Number of frames and messages that were left out."""
        left_out = sum(feed.broken + sum(ch.left_out for ch in feed.channels) for feed in self._feeds)
        return left_out + self._unwritten + self._lines.unwritten

    @property
    def errors(self) -> list[str]:
        """Sentences about sources that ended with an error."""
        return [f"{stream.source.name}: {stream.error}" for stream in self._streams if stream.error]

    def skipped(self) -> list[str]:
        """Return sentences about what was left out, and about sources that failed."""
        sentences = self.errors
        unwritten = self._unwritten + self._lines.unwritten
        if unwritten:
            count_text = f"{unwritten} message{'s' * (unwritten != 1)}"
            sentences.append(
                f"{count_text} could not be written within {DRAIN_WITHIN:g} s after the end, and were left out"
            )
        for feed in self._feeds:
            sentences += feed.skipped
            for ch in feed.channels:
                if ch.left_out:
                    why = ch.refused or self._why.get(ch, "")
                    sentences.append(f"{ch.left_out} messages of {ch.topic!r} were left out: {why}")
                elif ch.refused:
                    sentences.append(f"channel {ch.topic!r} was left out: {ch.refused}")
        return sentences


def _size_of(entry: Entry) -> int:
    """Return about the bytes of a message; 0 for another entry."""
    return OVERHEAD + bytes_of(entry[2]) if isinstance(entry, tuple) else 0


def _sentence(loss: Lost) -> str:
    count_text = f"{loss.messages} message{'s' * (loss.messages != 1)}"
    return f"recording lost {count_text} of {loss.channel.topic}"
