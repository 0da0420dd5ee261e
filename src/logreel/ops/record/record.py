"""Recording of messages, from live sources or from lines of JSON, as a log."""

from __future__ import annotations

import contextlib
import inspect
import io
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import IO, Any, Self, TypedDict, cast

from logreel.errors import LogError, UsageError
from logreel.io.append_file import ACTIVE
from logreel.io.atomic_file import keep_sources, make_folders
from logreel.io.output_stream import Destination, name_and_stream
from logreel.io.source import Definitions
from logreel.log.joined_log import Openable
from logreel.log.log import Log
from logreel.log.times import duration_ns
from logreel.ops.record.lines import AHEAD, LEAST_PATIENCE, LineRecorder, Pipe, Spool, is_kept, read_lines
from logreel.ops.record.parts import Split, SplitWriter
from logreel.ops.record.ring import RecordedWindow, Ring, RingWriter
from logreel.ops.record.session import Progress, Recorded, RecordingSession
from logreel.ops.record.source import BUFFER_BYTES, PATIENCE, DrainLimit, LiveQueue, LiveSource, TopicFilter
from logreel.ops.record.sources import live_source
from logreel.ops.rewrite.target import Copied, is_folder_name
from logreel.ops.selection import Selection, SelectionOptions, keywords
from logreel.registry.open import as_open_log
from logreel.registry.registry import formats, log_suffixes
from logreel.write.writer import FLUSH_EVERY, Writer, create, format_of, open_old

#: Seconds between two calls of *progress* while lines arrive.
PROGRESS_EVERY = 0.25


class RecordingOptions(TypedDict, total=False):
    """Members of a Recording as keyword arguments; see there."""

    mode: str
    limit: int | None
    duration: Any
    split_size: int | None
    split_duration: Any
    max_splits: int | None
    repeat_latched: bool
    ring: Ring | None
    buffer_size: int
    schemas: Mapping[str, str | os.PathLike[str]] | None
    metadata: Mapping[str, Any] | None
    format: str | None
    ahead: int
    flush_every: float | None
    sync: bool
    strict: bool
    force: bool


class RecordOptions(RecordingOptions, total=False):
    """What is recorded, and how, as keyword arguments."""

    topics: str | Iterable[str] | None
    exclude: str | Iterable[str]


@dataclass(frozen=True, slots=True)
class Recording:
    """How messages are recorded; what is recorded is a Selection.

    mode     ``w``: a new log; ``a``: continue the log at the path, whose channels keep their types, or create it
    limit    most messages of each topic; the recording ends when all topics have so many, if they are known
    duration  length of the recording, by the clock on the wall: ``"60s"``, a timedelta or ns
    split_size, split_duration  begin a new file when one has so many bytes, about, or when the times of its messages
             span so much. Files are called ``drive_0.bag``, ``drive_1.bag`` … for a path ``drive.bag``
    max_splits  most files that are kept; the oldest ones are removed
    repeat_latched  write the last message of latched channels again at the start of each file
    ring     write only windows around triggers, each into a file of its own, ``drive_001_20250517-084220.571Z.bag``
    buffer_size  most bytes of messages that wait to be written; what does not fit is lost, and counted
    schemas  files with definitions in the language of the format, by topic; they have precedence over *like*
    metadata  further or replaced metadata of the new log; as for ``Writer.metadata``
    format, flush_every, sync, force  as for ``create``
    ahead    most lines that are read before unknown types are inferred; waits at most ten seconds, or two without a
             line; the type of a channel that appears later is inferred from its first message
    strict   raise LogError at the first line that cannot be written; earlier messages are in the ``.active`` file, or
             in the ``.lines`` file if their types were not known yet
    """

    mode: str = "w"
    limit: int | None = None
    duration: Any = None
    split_size: int | None = None
    split_duration: Any = None
    max_splits: int | None = None
    repeat_latched: bool = False
    ring: Ring | None = None
    buffer_size: int = BUFFER_BYTES
    schemas: Mapping[str, str | os.PathLike[str]] | None = None
    metadata: Mapping[str, Any] | None = None
    format: str | None = None
    ahead: int = AHEAD
    flush_every: float | None = FLUSH_EVERY
    sync: bool = False
    strict: bool = False
    force: bool = False

    def __post_init__(self) -> None:
        if self.ring is not None and (self.mode != "w" or self.split or self.max_splits):
            raise UsageError(
                "windows are new files, one each: leave out mode=, split_size= and split_duration="
            )
        if self.buffer_size <= 0:
            raise UsageError(f"a buffer of {self.buffer_size} bytes holds nothing")

    @classmethod
    def of(cls, recording: Self | None, options: Mapping[str, Any]) -> Self:
        """Return *recording*, or if it is None the one whose members are among *options*; UsageError for both."""
        members = {name: options[name] for name in RecordingOptions.__annotations__ if name in options}
        if recording is None:
            return cls(**members)
        if members:
            raise UsageError(f"the options say that already: leave out {', '.join(members)}")
        return recording

    @property
    def seconds(self) -> float | None:
        """Length of the recording; None: until its sources end."""
        return None if self.duration is None else duration_ns(self.duration) / 1e9

    @property
    def split(self) -> Split:
        """When a new file begins; raises UsageError for values that do not fit."""
        length = None if self.split_duration is None else duration_ns(self.split_duration)
        return Split(self.split_size, length, self.max_splits, self.repeat_latched)


@keywords(RecordOptions, Selection, Recording, others=True)
def record(
    source: Pipe | Iterable[bytes | str] | str | LiveSource | Sequence[LiveSource],
    path: Destination,
    *,
    selection: Selection | None = None,
    recording: Recording | None = None,
    like: Openable | Log | None = None,
    stop: Callable[[], bool] = lambda: False,
    progress: Callable[[Progress], None] | None = None,
    say: Callable[[str], None] = lambda text: None,
    definitions: Definitions = (),
    **options: Any,
) -> Recorded:
    """Write messages as a log while they happen: from live sources, or from lines of JSON.

    source   live sources: one or a list of them, see ``logreel.live_source``, or the spelling of one, such as
             ``udp://127.0.0.1:9000``. Or a pipe, a file or lines, one message each, in the form of
             ``cat --format ndjson``
    path     of the new log, or a binary file object, see ``create``; with a slash at the end a bag of ROS 2,
             which mode ``a`` continues by another file
    selection  topics and exclude, which can be given as keyword arguments instead
    recording  how to record; its members can be given as keyword arguments instead
    like     a log whose channels, with their schemas, become channels of the new log; its metadata, parameters and
             attachments are copied, and, unless a line is of ``~text``, its text lines of the recorded interval
    options  as for ``create``
    definitions  as for ``logreel.open``, of *like*
    stop     function called again and again; returns True to complete the log
    progress  function called a few times per second with the state of the recording
    say      function called with each notice of a source, such as a lost connection, from any thread

    Lines of a pipe that wait until their types are inferred are in the file ``path + ".lines"`` until the log has them.
    A message that does not fit the type of its channel is left out and counted, never changed. ``skipped`` also lists
    what the format cannot hold of *like* and *metadata*, and sources that failed: the others go on. Lost messages are
    counted in ``losses``, and in the log. Raises as ``create`` does, DefinitionError or UsageError for a schema that
    cannot be used, and LogError if all sources failed before the first message.
    """
    chosen = Selection.of(
        selection, {name: options[name] for name in ("topics", "exclude") if name in options}
    )
    chosen.refuse("record", *(set(SelectionOptions.__annotations__) - {"topics", "exclude"}))
    recording = Recording.of(recording, options)
    own = {name: value for name, value in options.items() if name not in RecordOptions.__annotations__}
    name, stream = name_and_stream(path)
    place = FolderPlace.of(name, recording, own) if stream is None and is_folder_name(name) else None
    target, name = name, name if place is None else place.path
    own = own if place is None else place.inside(own)
    appends = recording.mode == "a" and stream is None and place is None and os.path.lexists(name)
    if recording.mode == "a" and (recording.split_size or recording.split_duration or like is not None):
        raise UsageError(
            "a log that is continued has its own types, and is one file",
            hint="leave out like=, split_size= and split_duration=",
        )
    if place is not None:
        # Channels of a folder that is continued keep their types.
        fmt, like = place.format, place.folder if place.is_log else like
    else:
        fmt = open_old(name, recording.format)[0] if appends else format_of(name, recording.format)
    split = recording.split
    ring = recording.ring
    if ring is not None and stream is not None:
        raise UsageError("windows are several files, which do not fit into a stream")
    if split and stream is not None:
        raise UsageError("a split log is several files, which do not fit into a stream")
    topics = TopicFilter(chosen.topics, chosen.exclude, recording.limit)
    seconds = recording.seconds
    live = _live_sources(source)
    queue = LiveQueue(recording.buffer_size)
    read = [like.name if isinstance(like, Log) else like, *(recording.schemas or {}).values()]
    read += [getattr(each, "path", None) for each in live] or [getattr(source, "name", None)]
    for file in (name, name + ACTIVE):
        keep_sources(file, [other for other in read if isinstance(other, str | os.PathLike)])
    with contextlib.ExitStack() as stack:
        # The new log may read from it until it is complete.
        log = None if like is None else stack.enter_context(as_open_log(like, definitions))
        if log is not None and place is not None:
            place.check(log)
        if log is not None and fmt.name in (log.format, log.converted_from):
            own = fmt.like(log.metadata) | own

        def make(part: Destination) -> Writer:
            return create(
                part if stream is None else stream,
                mode=recording.mode if place is None else "w",
                format=fmt.name,
                force=recording.force,
                flush_every=recording.flush_every,
                sync=recording.sync,
                **own,
            )

        if place is not None:
            stack.enter_context(place.made())
        writer: SplitWriter
        if ring is None:
            writer = SplitWriter(name, fmt, make, split, recording.force, is_file=stream is None)
        else:
            nowhere = cast("IO[bytes]", _Nowhere(name))
            writer = RingWriter(name, fmt, make, ring, recording.force, lambda: make(nowhere), say)
        try:
            spool = (
                None
                if stream is not None or ring is not None or is_kept(source)
                else _spool(recording, writer.path)
            )
            lines = LineRecorder(
                writer, fmt, recording.ahead, recording.strict, topics, spool, recording.flush_every
            )
            session = RecordingSession(
                writer, lines, topics, queue, recording.flush_every, seconds, progress, say
            )
            lines.add_known(log, recording.schemas or {}, recording.metadata or {})
        except BaseException:
            writer.discard()
            raise
        try:
            with writer:
                if live:
                    stopped = session.run(live, stop)
                else:
                    ends = None if seconds is None else monotonic() + seconds
                    stopped = _record_lines(
                        source,  # type: ignore[arg-type] # no live source
                        lines,
                        writer,
                        recording.flush_every,
                        stop,
                        ends,
                        topics,
                        progress,
                    )
                if live and len(session.errors) == len(live) and not session.messages and not lines.lines:
                    writer.discard()
                    raise LogError("; ".join(session.errors), path=name)
                if log is not None:
                    lines.copy_text(log)
        except BaseException:
            if (left := lines.leave()) is not None:
                say(f"{left} holds the first lines")
            active = writer.path + ACTIVE if isinstance(writer, RingWriter) else name + ACTIVE
            if stream is None and os.path.isfile(active):
                before = f", {name} is as it was" if appends else ""
                say(f"{active} holds what was written{before}")
            raise
        lines.close()
    files = writer.files if place is None else place.describe(writer.files)
    size = sum(os.stat(file).st_size for file in files) if stream is None else stream.tell()
    done = _result(target, writer, lines, session, topics, stopped, bool(split), size)
    return replace(done, parts=tuple(files))


@dataclass(frozen=True, slots=True)
class FolderPlace:
    """A folder that is a log, and the file in it that is recorded.

    folder  path of the folder
    path    of the file; of a split log that to which numbers are added
    is_log  whether the folder is a log already, which is continued
    options  those of the folder
    """

    format: Any
    folder: str
    path: str
    is_log: bool
    options: Mapping[str, Any]

    @classmethod
    def of(cls, name: str, recording: Recording, own: Mapping[str, Any]) -> Self:
        """Return the place for *name*, which ends with a slash; *own*: options of the folder and its files.

        In a folder that is continued it is the next file. Raises UsageError for a format without folders, LogError for
        a folder that is not empty, or, with mode ``a``, that is no log of the format.
        """
        folder = name.rstrip("/" + os.sep) or name
        able = [fmt for fmt in formats().values() if fmt.create is not None and fmt.new_folder is not None]
        able = [fmt for fmt in able if recording.format in (None, fmt.name)]
        if not able or folder.lower().endswith(log_suffixes()):
            raise UsageError("is the name of a file: leave out the slash at the end", path=name)
        if recording.ring is not None:
            raise UsageError("windows are logs of their own, not files of one folder", path=name)
        fmt: Any = able[0]
        new, base, number = fmt.new_folder(), os.path.basename(os.path.abspath(folder)), 0
        entries = os.listdir(folder) if os.path.isdir(folder) else []
        if entries and recording.mode != "a":
            text = "is a folder that is not empty: not replaced"
            raise LogError(text, path=name, hint="record into another folder, or append to this one")
        if entries and (fmt.folder is None or fmt.folder(folder, entries) is None):
            raise LogError(f"is a folder, but not {fmt.title}", path=name)
        # Whatever the suffix of the files is.
        while any(file.startswith(Path(new.part(base, number)).stem + ".") for file in entries):
            number += 1
        plain = base + fmt.suffixes[0] if recording.split else new.part(base, number)
        chosen = {name: own[name] for name in new.options if name in own}
        return cls(fmt, folder, os.path.join(folder, plain), bool(entries), chosen)

    def inside(self, own: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options of the files among *own*; raises UsageError for options that a recording cannot have."""
        fixed = [name for name in (*self.options, "compression") if name in own]
        if self.is_log and fixed:
            text = f"a folder that is continued keeps its {fixed[0].partition('_')[0]}"
            raise UsageError(text, hint=f"leave out {fixed[0]}=")
        new = self.format.new_folder()
        if divides := self.options.keys() & inspect.signature(new.cuts).parameters.keys():
            text = f"{min(divides)} divides a log that is complete"
            raise UsageError(text, hint="leave it out: split_size= and split_duration= begin further files")
        files = {name: value for name, value in own.items() if name not in self.options}
        return files | dict(new.inside(**self.options))

    def check(self, log: Log) -> None:
        """Raise LogError if the folder is *log*, but another file of the format cannot lie beside its files."""
        if self.is_log and log.format != self.format.name and self.format.new_folder().holds(log) is None:
            text = f"its files are not of {self.format.title}, which is written: not continued"
            raise LogError(text, path=self.folder)

    @contextlib.contextmanager
    def made(self) -> Iterator[None]:
        """Make the folder if it is missing; after an exception it is removed if it is empty."""
        make_folders(Path(self.folder))
        try:
            yield
        except BaseException:
            with contextlib.suppress(OSError):
                os.rmdir(self.folder)
            raise

    def describe(self, files: Sequence[str]) -> Sequence[str]:
        """Write what lies beside the files of the folder, which are complete; return what these are called then."""
        described: Sequence[str] = self.format.new_folder().finish(files, {}, **self.options)
        return described


class _Nowhere(io.RawIOBase):
    """A file that keeps nothing; *name*: that of the log, for its format."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: Any) -> int:
        """Return how many bytes were given."""
        return memoryview(data).nbytes


def _spool(recording: Recording, path: str) -> Spool | None:
    """Return the file for lines of the log at *path* that wait; None if none do, or nothing is flushed."""
    if recording.ahead <= 0 or recording.flush_every is None:
        return None
    return Spool(path, recording.force, recording.flush_every if recording.sync else None)


def _live_sources(source: Any) -> list[LiveSource]:
    """Return the live sources that *source* contains; none if it is lines."""
    if isinstance(source, str):
        return [live_source(source)]
    if isinstance(source, LiveSource):
        return [source]
    if isinstance(source, list | tuple) and source and isinstance(source[0], LiveSource):
        for each in source:
            if not isinstance(each, LiveSource):
                raise UsageError(f"{each!r:.60} is no live source; make one with logreel.live_source")
        return list(source)
    return []


def _record_lines(
    source: Pipe | Iterable[bytes | str],
    lines: LineRecorder,
    writer: SplitWriter,
    every: float | None,
    stop: Callable[[], bool],
    ends: float | None,
    selection: TopicFilter,
    progress: Callable[[Progress], None] | None,
) -> bool:
    """Write all lines in this thread, and flush while none arrive; return whether *stop* ended the recording."""
    begun = flushed = shown = monotonic()
    number, stopped = 0, False
    lines.is_late = DrainLimit(stop, ends)
    patience = PATIENCE if every is None else max(LEAST_PATIENCE, min(PATIENCE, every))
    for line in read_lines(source, patience):
        stopped = stop()
        if stopped or (ends is not None and monotonic() >= ends) or selection.is_complete:
            break
        if line is not None:
            number += 1
            lines.take(f"line {number}", line)
        lines.infer_if_due(silent=line is None)
        # Some formats take no definitions after a flush, so do not flush before types are known.
        idle = line is None and lines.lines and not lines.is_waiting
        if idle and every is not None and monotonic() - flushed >= every:
            writer.flush()
            flushed = monotonic()
        if progress is not None and monotonic() - shown >= PROGRESS_EVERY:
            shown = monotonic()
            progress(Progress(shown - begun, lines.messages, writer.size, 0, 0.0, writer.path))
    lines.infer()
    return stopped


def _result(
    path: str,
    writer: SplitWriter,
    lines: LineRecorder,
    session: RecordingSession,
    selection: TopicFilter,
    stopped: bool,
    split: bool,
    size: int,
) -> Recorded:
    counts = Counter[str]()
    taken = [*((ch.number, ch.messages) for ch in lines.channels.values()), *session.channels]
    windows: tuple[RecordedWindow, ...] = ()
    if isinstance(writer, RingWriter):
        taken, windows = [*writer.written.items()], tuple(writer.windows)
    for number, messages in sorted(taken):
        counts[session.names.get(number, writer.names[number])] += messages
    channels = tuple(Copied(name, count) for name, count in counts.items() if name[:1] != "~")
    notes = [*lines.notes, *writer.notes, *session.notes, *session.said]
    notes += [f"{name!r} fitted no topic" for name in selection.unused()]
    if split:
        notes += [f"{old} was there before and is no part of this log" for old in writer.left_from_before()]
    skipped = [*lines.skipped, *session.skipped()]
    return Recorded(
        path,
        size,
        channels,
        tuple(notes),
        tuple(skipped),
        lines.lines,
        lines.broken + session.broken,
        stopped,
        writer.files,
        session.losses,
        windows,
    )
