"""A recording that keeps only windows around triggers: the last messages wait in a ring of bounded size."""

from __future__ import annotations

import contextlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any

from logreel.errors import DamagedError, DefinitionError, LogError, UnsupportedError, UsageError
from logreel.io.append_file import ACTIVE
from logreel.io.atomic_file import sync_folder
from logreel.io.part_files import part_name
from logreel.layout.layout import Layout
from logreel.log.scan import Schema
from logreel.log.times import Length, utc_text
from logreel.ops.query.message_condition import TIME_NS, BoundCondition, MessageCondition
from logreel.ops.query.windows import Onset, OnsetWindow
from logreel.ops.record.parts import Split, SplitWriter
from logreel.ops.record.source import OVERHEAD, bytes_of
from logreel.ops.rewrite.parts import PARAMETERS, is_latched_by_name
from logreel.ops.selection import Around
from logreel.registry.format import Format
from logreel.write.format_writer import Payload
from logreel.write.writer import Writer

#: Default size of a ring in bytes.
RING_BYTES = 64 << 20
#: Most messages that are kept because they hold until they are replaced, and messages in a row that are older than the
#: ring before the clock counts as set back.
MOST_IN_FORCE, SET_BACK_AFTER = 10_000, 100
#: Most bytes of messages that are copied to be written together.
BATCH_BYTES = 1 << 20
#: Seconds without a message after which a window ends whatever its length, at least.
SILENT = 5.0
#: Number that stands for lines of text, which are no messages of a channel.
_TEXT = -1
Data = Payload | Mapping[str, Any] | tuple[str, int]


@dataclass(frozen=True, slots=True)
class Ring:
    """How windows around triggers are recorded; everything else is not written.

    triggers       conditions, which also ``Around`` takes: see ``logreel.ops.query.message_condition``
    before, after  length of a window before and after the moment at which a condition begins to hold: ``"60s"``, a
                   timedelta or ns
    debounce       as for ``Around``
    size           most bytes of the messages that wait in memory; if they span less than *before*, windows begin later
    max_windows    number of newest windows that are kept; older ones are removed. None: all
    """

    triggers: str | Iterable[str]
    before: Length = "60s"
    after: Length = "30s"
    debounce: Length = 0
    size: int = RING_BYTES
    max_windows: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.triggers, str):
            object.__setattr__(self, "triggers", tuple(self.triggers))
        for name, value in (("size", self.size), ("max_windows", self.max_windows)):
            if value is not None and value <= 0:
                raise UsageError(f"{name} of a ring: {value} is not positive")
        for text in self.around.texts:
            MessageCondition.parse(text)

    @property
    def around(self) -> Around:
        """The windows as those of a log."""
        return Around(self.triggers, self.before, self.after, self.debounce)


@dataclass(frozen=True, slots=True)
class RecordedWindow:
    """A window that was recorded: its file, the number of messages, and where it is in time."""

    path: str
    messages: int
    window: OnsetWindow

    def as_dict(self) -> dict[str, Any]:
        """Return its JSON data."""
        return {"path": self.path, "messages": self.messages, **self.window.as_dict()}


class Trigger:
    """A condition on messages as they come; returns the moments at which it begins to hold."""

    def __init__(self, text: str, debounce: int) -> None:
        self.condition, self._debounce = MessageCondition.parse(text), debounce
        #: By number of the channel; publishers of one topic are one channel to readers.
        self._bound: dict[int, BoundCondition] = {}
        self._state: Any = None if self.condition.is_change else False
        #: Time at which the condition ceased to hold, or the value changed.
        self._since: int | None = None

    def bind(self, number: int, topic: str, layout: Callable[[], Layout]) -> None:
        """Apply the condition to a new channel if it is about its topic; raises errors as ``MessageCondition.bind``."""
        if self.condition.is_about(topic) and (bound := self.condition.bind(topic, layout())) is not None:
            self._bound[number] = bound

    @property
    def is_bound(self) -> bool:
        """Whether there is a channel that the condition is about."""
        return bool(self._bound)

    def onset(self, channel: int, time: int, data: Data) -> Onset | None:
        """Return the onset if the condition begins to hold with this message."""
        bound = self._bound.get(channel)
        if bound is None or isinstance(data, tuple):
            return None
        values: Mapping[tuple[str, ...], Any] = {}
        state = None if self.condition.is_change else False
        with contextlib.suppress(DamagedError):
            values = bound.values(time, data if isinstance(data, Mapping) else bytes(data))
            state = bound.test(values)
        before, since = self._state, self._since
        if self.condition.is_change:
            if state is None or state == before:
                return None
            self._state = state
            if before is None:
                return None
            self._since = time
        else:
            self._state = state
            if not state or before:
                if before and not state:
                    self._since = time
                return None
        # Late messages may be earlier.
        if since is not None and 0 <= time - since < self._debounce:
            return None
        named = {".".join(name): value for name, value in values.items() if bound.paths[name] != TIME_NS}
        return Onset(time, self.condition.text, named)


class _Entry:
    """A message in the ring; *is_written*: the present window has it."""

    __slots__ = ("channel", "data", "is_written", "size", "time")

    def __init__(self, channel: int, time: int, data: Data, size: int) -> None:
        self.channel, self.time, self.data, self.size, self.is_written = channel, time, data, size, False


@dataclass(slots=True)
class _Open:
    """The window that is being written.

    window    start <= time < end; onsets are added, and the end moves with them
    channels  number of channels that its file has: some formats take no others after the first message
    waiting   messages that are passed on together
    counts    of messages by number of the channel; *messages*: those in the file, *left_out*: the others
    """

    window: OnsetWindow
    writer: SplitWriter
    channels: int
    waiting: list[tuple[int, int, Data]] = field(default_factory=list)
    counts: Counter[int] = field(default_factory=Counter)
    messages: int = 0
    left_out: int = 0


class RingWriter(SplitWriter):
    """Writes windows around triggers, each into a file of its own, as a SplitWriter writes parts. For one thread.

    ring     its size, triggers and lengths
    scratch  function that creates a Writer whose output nobody sees: for names and schemas of channels
    say      called with a sentence when a window begins, after it is on the disk, and when it is complete

    A window stays open until no later trigger can overlap it, so that windows are those of ``Around`` in a log of all
    messages. What is in force at its start (the last message of latched channels, transforms of static frames,
    parameters) comes first, with the time of its first message.
    """

    def __init__(
        self,
        path: str,
        fmt: Format,
        make: Callable[[str], Writer],
        ring: Ring,
        force: bool,
        scratch: Callable[[], Writer],
        say: Callable[[str], None],
    ) -> None:
        super().__init__(path, fmt, lambda part: scratch(), Split(), force)
        self._ring, self._make_file, self._force, self._say = ring, make, force, say
        self._before, self._after, debounce = ring.around.lengths
        self._triggers = [Trigger(text, debounce) for text in ring.around.texts]
        self._entries, self._bytes = deque[_Entry](), 0
        self._newest: int | None = None
        #: Messages in a row that are older than the ring, and time up to which some were dropped since it was full.
        self._late, self._dropped_to = 0, -(1 << 63)
        self._latching = set[int]()
        #: What is in force at the begin of the ring, by channel and name of a frame or parameter.
        self._in_force: dict[tuple[int, str], tuple[int, Data]] = {}
        self._open: _Open | None = None
        self._count_of_windows = 0
        self._heard = monotonic()
        self.windows: list[RecordedWindow] = []
        self._counts: list[Counter[int]] = []
        self.write = self._take_one  # type: ignore[method-assign]

    # ---------------------------------------------------------------------------------------------- as a writer

    @property
    def size(self) -> int:
        """Bytes of all windows so far, about."""
        return self._done_bytes + (0 if self._open is None else self._open.writer.size)

    def add_channel(
        self,
        topic: str,
        schema: Schema | Layout,
        metadata: Mapping[str, Any] | None = None,
        *,
        copied: bool = False,
    ) -> int:
        """Add a channel to this and all later windows; as ``Writer.add_channel``."""
        number = super().add_channel(topic, schema, metadata, copied=copied)
        told, name = dict(metadata or {}), str((metadata or {}).get("topic", topic))
        if is_latched_by_name(_Named(topic, told)):  # type: ignore[arg-type] # it has what is asked for
            self._latching.add(number)
        for trigger in self._triggers:
            try:
                trigger.bind(number, name, lambda: self.format_writer.schemas.layout(number))
            except LogError as error:
                self._note(f"the trigger {trigger.condition.text!r} does not apply to {topic!r}: {error}")
        if (window := self._open) is not None and number == window.channels:
            self._pass_on(window)
            try:
                window.writer.add_channel(topic, schema, metadata, copied=copied)
                window.channels += 1
            except (UsageError, DefinitionError, UnsupportedError):
                self._note(
                    f"{topic!r} came while window {window.window.number} was written, which has no place for it"
                )
        return number

    def latch(self, channel: int) -> None:
        """Write the last message of *channel* at the start of each window."""
        self._latching.add(channel)

    def _take_one(self, channel: int, time: int, data: Payload | Mapping[str, Any]) -> None:
        self._take(channel, time, data, bytes_of(data))
        self._pass_on(self._open)

    def write_batch(
        self, batch: Sequence[tuple[int, int, bytes]], refuse: Callable[[int, UsageError], None]
    ) -> None:
        """Take messages: number of the channel, time in ns, payload. What a file refuses is counted in *notes*."""
        for channel, time, payload in batch:
            self._take(channel, time, payload, len(payload))
        self._pass_on(self._open)

    def text(self, time: int, text: str, level: int) -> None:
        """Append a line of text; as ``Writer.text``."""
        self._take(_TEXT, time, (text, level), len(text))
        self._pass_on(self._open)

    def flush(self, sync: bool | None = None) -> None:
        """Write everything so far of the present window to its file; end it if no message has come for long."""
        window = self._open
        if window is None:
            return
        if monotonic() - self._heard >= max(self._after / 1e9, SILENT):
            self._complete_window(window)
        else:
            self._pass_on(window)
            window.writer.flush(sync)

    def close(self) -> None:
        """Complete the present window."""
        try:
            if self._open is not None:
                self._complete_window(self._open)
        except BaseException:
            if self._open is not None:
                self._open.writer.leave()
            raise
        finally:
            self._writer.discard()
        unbound = [trigger.condition.text for trigger in self._triggers if not trigger.is_bound]
        self.notes += [f"the trigger {text!r} is about no topic that came" for text in unbound]

    def leave(self) -> None:
        """Close the incomplete window, which keeps its temporary name."""
        self._writer.discard()
        if self._open is not None:
            self._open.writer.leave()

    def discard(self) -> None:
        """Remove the file that is being written."""
        self._writer.discard()
        if self._open is not None:
            self._open.writer.discard()

    @property
    def written(self) -> Counter[int]:
        """Numbers of messages in the windows that were kept, by number of the channel."""
        return sum(self._counts, Counter[int]())

    # -------------------------------------------------------------------------------------------------- the ring

    def _take(self, channel: int, time: int, data: Data, size: int) -> None:
        """Take a message into the ring, and into the window that it is in."""
        self._heard = monotonic()
        if not self._is_recent(channel, time, data):
            return
        entry = _Entry(channel, time, data, size + OVERHEAD)
        self._entries.append(entry)
        self._bytes += entry.size
        window = self._open
        if window is not None and window.window.start <= time < window.window.end:
            self._add(window, entry)
        for trigger in self._triggers:
            if (onset := trigger.onset(channel, time, data)) is not None:
                self._fire(onset)
        newest = self._newest or 0
        window = self._open
        # A later trigger, whose window begins before the end, extends it.
        if window is not None and newest - self._before > window.window.end:
            self._complete_window(window)
        entries, limit, most = self._entries, newest - self._before, self._ring.size
        while entries and (entries[0].time < limit or self._bytes > most):
            self._drop(entries.popleft(), limit)

    def _is_recent(self, channel: int, time: int, data: Data) -> bool:
        """Return whether a message is not older than the ring; note how far time is."""
        if self._newest is None or time >= self._newest - self._before:
            self._newest, self._late = max(time, self._newest or time), 0
            return True
        self._late += 1
        if self._late < SET_BACK_AFTER:
            # What comes late may still be in force.
            self._keep_in_force(_Entry(channel, time, data, 0))
            return False
        self._note(f"the clock was set back by {(self._newest - time) / 1e9:.3f} s: the ring begins anew")
        if self._open is not None:
            self._complete_window(self._open)
        while self._entries:
            self._drop(self._entries.popleft(), self._newest)
        self._newest, self._late, self._dropped_to = time, 0, -(1 << 63)
        return True

    def _drop(self, entry: _Entry, limit: int) -> None:
        """Forget the oldest message, unless it holds until it is replaced."""
        self._bytes -= entry.size
        if entry.time >= limit:
            self._dropped_to = max(self._dropped_to, entry.time)
            window = self._open
            if window is not None and not entry.is_written and entry.time >= window.window.end:
                # A later trigger could not write it any more.
                self._complete_window(window)
        self._keep_in_force(entry)

    def _keep_in_force(self, entry: _Entry) -> None:
        """Keep a message that holds until it is replaced: of a latched channel, a static transform, a parameter."""
        if entry.channel < 0:
            return
        name = self.names[entry.channel]
        if name == PARAMETERS and isinstance(entry.data, Mapping):
            keys = [str(entry.data.get("name"))]
        elif entry.channel in self._latching:
            keys = self._frames(entry) or [""]
        else:
            return
        for key in keys:
            self._in_force.pop((entry.channel, key), None)
            self._in_force[entry.channel, key] = entry.time, entry.data
        while len(self._in_force) > MOST_IN_FORCE:
            del self._in_force[next(iter(self._in_force))]

    def _frames(self, entry: _Entry) -> list[str]:
        """Return the child frames of a message of transforms; none of another message."""
        data = entry.data
        with contextlib.suppress(DamagedError, DefinitionError):
            if not isinstance(data, Mapping):
                layout = self.format_writer.schemas.layout(entry.channel)
                if "transforms" not in {path.partition(".")[0] for path in layout.paths()}:
                    return []
                data = layout.decoder()(memoryview(bytes(data)))  # type: ignore[arg-type] # no line of text
            transforms = data.get("transforms")
            if isinstance(transforms, list):
                return [str(t.get("child_frame_id")) for t in transforms if isinstance(t, Mapping)]
        return []

    # ----------------------------------------------------------------------------------------------- windows

    def _fire(self, onset: Onset) -> None:
        """Begin a window, or extend the present one."""
        start, end = onset.time - self._before, onset.time + self._after + 1
        present = self._open
        if present is not None and start <= present.window.end:
            window = present.window
            window.start, window.end = min(window.start, start), max(window.end, end)
            window.onsets.append(onset)
            self._add_ring(present)
            return
        if present is not None:
            self._complete_window(present)
        self._count_of_windows += 1
        window = OnsetWindow(self._count_of_windows, start, end, [onset])
        moment = utc_text(onset.time, 3).replace("-", "").replace(":", "").replace("T", "-").replace(" ", "")
        path = part_name(self._path, f"{window.number:03}_{moment}", self.format.suffixes)
        writer = SplitWriter(path, self.format, self._make_file, Split(), self._force)
        self._open = present = _Open(window, writer, len(self._channels))
        for call in self._starters:
            writer.at_start(call)
        for name, added in self._channels.items():
            writer.add_channel(name, added.schema, added.metadata, copied=added.copied)
        first = min((entry.time for entry in self._entries if entry.time >= start), default=onset.time)
        in_force = sorted(self._in_force.items(), key=lambda kept: kept[1][0])
        # One message has many transforms.
        for channel, data in {id(data): (key[0], data) for key, (_, data) in in_force}.values():
            present.waiting.append((channel, first, data))
        self._add_ring(present)
        self._pass_on(present)
        writer.flush(sync=True)
        sync_folder(Path(path).absolute().parent)
        self.path = path
        have = f"{present.messages} messages from {max(0, onset.time - first) / 1e9:.3f} s before it"
        full = f", since the ring was full ({self._ring.size} bytes)" if self._dropped_to >= start else ""
        values = ", ".join(f"{name} = {value}" for name, value in onset.values.items())
        self._say(
            f"window {window.number}: {onset.condition} at {utc_text(onset.time, 3)} ({values:.200}); "
            f"{path}{ACTIVE} has {have}{full}"
        )

    def _add_ring(self, window: _Open) -> None:
        """Add the messages in the ring that are in the window."""
        start, end = window.window.start, window.window.end
        for entry in self._entries:
            if not entry.is_written and start <= entry.time < end:
                self._add(window, entry)

    def _add(self, window: _Open, entry: _Entry) -> None:
        entry.is_written = True
        if entry.channel >= window.channels:
            window.left_out += 1
            return
        window.waiting.append((entry.channel, entry.time, entry.data))

    def _pass_on(self, window: _Open | None) -> None:
        """Write what waits for the file of the window."""
        if window is None or not window.waiting:
            return
        waiting, window.waiting = window.waiting, []
        batch, size = list[tuple[int, int, bytes]](), 0
        refused: list[str] = []

        def write_batch() -> None:
            if batch:
                window.writer.write_batch(batch, lambda place, error: refused.append(error.text))
                batch.clear()

        for channel, time, data in waiting:
            if isinstance(data, bytes):
                batch.append((channel, time, data))
                size += len(data)
                # They are copied.
                if size > BATCH_BYTES:
                    write_batch()
                    size = 0
                continue
            write_batch()
            try:
                if isinstance(data, tuple):
                    window.writer.text(time, *data)
                else:
                    window.writer.write(channel, time, data)
            except (UsageError, UnsupportedError) as error:
                refused.append(error.text)
        write_batch()
        counts = Counter(channel for channel, _, _ in waiting if channel >= 0)
        window.counts += counts
        window.messages += counts.total() - len(refused)
        window.left_out += len(refused)
        if refused and window.left_out == len(refused):
            self._note(f"window {window.window.number} has not all messages: {refused[0]}")

    def _complete_window(self, window: _Open) -> None:
        """Complete the file of a window, and remove the oldest file if there are too many."""
        self._pass_on(window)
        window.writer.close()
        self._open = None
        for entry in self._entries:
            entry.is_written = False
        self._done_bytes += window.writer.size
        self.notes += window.writer.notes
        if window.left_out:
            self.notes.append(f"{window.left_out} messages have no place in window {window.window.number}")
        (path,) = window.writer.files
        self.windows.append(RecordedWindow(path, window.messages, window.window))
        self.completed += window.writer.completed
        self._counts.append(window.counts)
        self._say(f"window {window.window.number} is complete: {path} has {window.messages} messages")
        most = self._ring.max_windows
        while most is not None and len(self.windows) > most:
            old = self.windows.pop(0)
            self._counts.pop(0)
            self._remove_oldest()
            self._say(f"window {old.window.number} is removed: {most} are kept")
        self.path = self._path

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)
            self._say(text)


@dataclass(frozen=True, slots=True)
class _Named:
    """A channel as its metadata tell it."""

    topic: str
    metadata: Mapping[str, Any]
