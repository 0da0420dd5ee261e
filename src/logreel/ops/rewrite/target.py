"""Targets and results of writing a log."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, TypedDict

from logreel.dataclass import asdict, dataclass, field, fields
from logreel.errors import UnsupportedError, UsageError
from logreel.io.atomic_file import keep_sources
from logreel.io.output_stream import Destination, OutputStream, name_and_stream
from logreel.io.two_pass import DryRun
from logreel.log.log import Log
from logreel.log.scan import Brief
from logreel.log.source_files import inputs_of
from logreel.ops.rewrite.parts import Part
from logreel.ops.selection import SelectionOptions
from logreel.registry.format import Format
from logreel.registry.registry import format_named, formats, suffix_of

if TYPE_CHECKING:
    from logreel.ops.query.windows import OnsetWindow

#: Called with the number of messages written and the total.
Progress = Callable[[int, int], None]
#: Clocks of new logs.
UTC, LOG = "utc", "log"


@dataclass(frozen=True, slots=True)
class Copied:
    """One channel of a new log."""

    topic: str
    messages: int


@dataclass(frozen=True, slots=True, repr=False)
class Rewritten(Brief):
    """Result of writing a log.

    channels  channels except reserved ones
    size      bytes
    notes     sentences about changes without loss, and about rounded times
    skipped   sentences about what was left out
    """

    path: str
    size: int
    channels: tuple[Copied, ...]
    notes: tuple[str, ...]
    skipped: tuple[str, ...]

    @property
    def messages(self) -> int:
        """Number of messages of all channels except reserved ones."""
        return sum(channel.messages for channel in self.channels)

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON data that all verbs have in common."""
        return {
            "output": self.path,
            "size": self.size,
            "messages": self.messages,
            "channels": [asdict(channel) for channel in self.channels],
            "notes": list(self.notes),
            "skipped": list(self.skipped),
        }


@dataclass(frozen=True, slots=True, repr=False)
class WindowsWritten(Rewritten):
    """Result of writing windows of a log; *windows*: those that the new log has."""

    windows: tuple[OnsetWindow, ...]

    @classmethod
    def of(cls, done: Rewritten, windows: tuple[OnsetWindow, ...]) -> Rewritten:
        """Return the result with *windows*; as it is, if there are none."""
        return (
            cls(**{f.name: getattr(done, f.name) for f in fields(done)}, windows=windows) if windows else done
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON data of ``slice --around --json``."""
        return Rewritten.as_dict(self) | {"windows": [window.as_dict() for window in self.windows]}


class TargetOptions(TypedDict, total=False):
    """Members of a Target that callers choose, as keyword arguments; see there."""

    compression: str | None
    chunk_bytes: int | None
    options: Mapping[str, Any] | None
    force: bool
    strict: bool
    progress: Progress | None


class CopyOptions(SelectionOptions, TargetOptions, total=False):
    """What to write of a log, and how, as keyword arguments."""


@dataclass(frozen=True, slots=True)
class Target:
    """Path and options of a log to write.

    compression  compression of chunks; None: that of the first source
    chunk_bytes  size of chunks; None: about that of the first source
    force        replace an existing file
    thorough     also compare the times of all messages when the new file is read back
    foreign      True: the suffix selects the format; False: the format is that of the source
    strict       write nothing if something would be left out
    clock        clock of the new log: ``log``, or ``utc`` if shifts add the UTC offset
    stream       stream for the bytes instead of a file at *path*, which is only its name
    format       name of the format, for several with one suffix; None: by the suffix
    options      further options of the format of the new log, as ``logreel.create`` takes them
    repairs      leave out what other readers of the format refuse, with a note
    """

    path: str
    compression: str | None = None
    force: bool = False
    thorough: bool = False
    progress: Progress | None = None
    chunk_bytes: int | None = None
    foreign: bool = False
    strict: bool = False
    clock: str = LOG
    stream: OutputStream | None = None
    format: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    repairs: bool = False

    @classmethod
    def of(cls, dst: Destination, options: Mapping[str, Any], **more: Any) -> Self:
        """Return the Target *dst*, a path or binary file object, with the members among *options* and *more*."""
        path, stream = name_and_stream(dst)
        chosen = {
            name: options[name] for name in TargetOptions.__annotations__ if options.get(name) is not None
        }
        return cls(path, **{"stream": stream, **chosen, **more})


def checked_clock(clock: str | None) -> str | None:
    """Return *clock* if it is ``utc``, ``log`` or None; raises UsageError for other values."""
    if clock not in (None, UTC, LOG):
        raise UsageError(f"there is no clock {clock!r}: times are of the clock 'utc' or 'log'")
    return clock


def offset_for(clock: str | None, utc_offset: int | None, name: str) -> int:
    """Return ns to add to times of a log for *clock*; None: UTC if it is known.

    utc_offset  ns to add for UTC, 0 for logs with Unix time; None: unknown
    name        of the log, for the error

    Raises UsageError if *clock* is ``utc`` and UTC is not known.
    """
    if clock == UTC and utc_offset is None:
        text = "does not tell how its clock relates to UTC: take the clock 'log'"
        raise UsageError(text, path=name)
    return 0 if clock == LOG else utc_offset or 0


def format_of(log: Log) -> Format:
    """Return the format of *log*; raises UnsupportedError if it cannot be written."""
    fmt = format_named(log.format)
    if fmt is None or fmt.create is None:
        able = ", ".join(f.title for f in formats().values() if f.create is not None)
        title = log.format if fmt is None else fmt.title
        raise UnsupportedError(f"{title} cannot be written yet; what can be: {able}", path=log.name)
    return fmt


def output_of(dst: Destination, format: str | None) -> tuple[str, OutputStream | None, str | None]:
    """Return name, stream (None for a path) and format (None: by the suffix) of an output.

    format  for a stream: name of a format, or a suffix; None: not given. Raises UsageError for one with a path
    """
    if isinstance(dst, str | os.PathLike) and format is not None:
        raise UsageError("format= is for a stream: otherwise the suffix says as what it is written")
    suffix = "" if format is None else suffix_of(format)
    path, stream = name_and_stream(dst, suffix)
    return path, stream, format if format is not None and format_named(format) else None


def log_output_of(dst: Destination, format: str | None) -> tuple[str, OutputStream | None, str | None]:
    """Return the same as ``output_of``; raises UsageError for a *format* that is no log that can be written."""
    path, stream, name = output_of(dst, format)
    if format is None:
        return path, stream, name
    able = {fmt.name: fmt for fmt in formats().values() if fmt.create is not None}
    if name not in able and not path.endswith(tuple(_suffixes(able.values()))):
        raise UsageError(f"no format {format!r} that can be written; there are {', '.join(able)}")
    return path, stream, name


def _suffixes(known: Iterable[Format]) -> Iterator[str]:
    for fmt in known:
        yield from fmt.suffixes


def is_folder_name(path: str) -> bool:
    """Return whether *path* names a folder: it ends with a slash."""
    return path.endswith(("/", os.sep))


def file_of(path: str, fmt: Format, options: Mapping[str, Any] | None = None) -> str:
    """Return the name of the (first) file with the messages of a log of *fmt* that is written to *path*.

    path     a file or folder
    options  those of *fmt* with which a folder is written
    """
    name = os.path.basename(os.path.abspath(path))
    if not is_folder_name(path) or fmt.new_folder is None:
        return name
    new = fmt.new_folder()
    return new.part(name, 0, **{key: value for key, value in (options or {}).items() if key in new.options})


def appends_only(fmt: Format) -> bool:
    """Return whether the writer of *fmt* never changes bytes that it has written."""
    format_writer = fmt.create(DryRun("")) if fmt.create is not None else None
    return format_writer is not None and bool(format_writer.appends_only)


def format_to_write(path: str, log: Log, name: str | None = None) -> Format:
    """Return the format called *name*, or with the suffix of *path*, else that of *log*.

    If formats share a suffix, the format of *log*, or the one it was converted from, has precedence, then the one
    whose usual suffix it is. Raises UnsupportedError as ``format_of``.
    """
    named = format_named(name or log.format)
    if named is not None and named.create is not None and (name or path.lower().endswith(named.suffixes)):
        return named
    if is_folder_name(path):
        able = [fmt for fmt in formats().values() if fmt.create is not None and fmt.new_folder is not None]
    else:
        able = [
            fmt
            for fmt in formats().values()
            if fmt.create is not None and path.lower().endswith(fmt.suffixes)
        ]
    known = log.format, log.converted_from
    able.sort(key=lambda fmt: (fmt.name not in known, not path.lower().endswith(fmt.suffixes[:1])))
    return able[0] if able else format_of(log)


def _for_all() -> str:
    """Return a hint which format can hold logs of several formats."""
    able = [fmt for fmt in formats().values() if fmt.exchange]
    return f": write {able[0].title} (*{able[0].suffixes[0]}), which holds both" if able else ""


def check_names(parts: Sequence[Part], target: Target, fmt: Format) -> None:
    """Raise UsageError for an output that is an input, inputs of several formats, or the suffix of another format."""
    names = [name for part in parts for name in inputs_of(part.log)]
    if target.stream is None:
        keep_sources(target.path, names)
    else:
        target.stream.keep_sources(names)
    for part in parts if not (target.foreign and fmt.exchange) else ():
        if part.log.format != (parts[0].log.format if target.foreign else fmt.name):
            text = f"is a log of another format than {parts[0].log.name}{_for_all()}"
            raise UsageError(text, path=part.log.name)
    if target.path.lower().endswith(fmt.suffixes):
        return
    for other in formats().values():
        if target.path.lower().endswith(other.suffixes):
            raise UsageError(
                f"the suffix is that of {other.title}, but the log is one of {fmt.title}", path=target.path
            )
