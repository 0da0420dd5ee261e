"""The description of a log format, by which the rest of logreel uses it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from logreel.dataclass import NamedTuple, dataclass, default_values, field
from logreel.errors import Problem, UsageError

if TYPE_CHECKING:
    from types import ModuleType

    from logreel.io.arrays import I64
    from logreel.io.source import Buffer, Source
    from logreel.layout.layout import Layout
    from logreel.lenses.facts import Band, Chart, Detector, Section
    from logreel.limits import FixedLimit
    from logreel.log.log import Log, Message
    from logreel.log.scan import Growing, Saved, Scan, Schema
    from logreel.registry.commands import Command
    from logreel.registry.new_folder import NewFolder
    from logreel.schemas.catalogue import Catalogue


def channel_key(topic: str, schema: Schema, metadata: Mapping[str, Any]) -> Hashable:
    """Return a key that is equal for channels of several logs which become one channel."""
    return topic, schema, metadata.get("md5sum")


def free_name(topic: str, taken: Collection[str]) -> str:
    """Return *topic*, followed by ``[1]``, ``[2]`` … if the name is among those *taken*."""
    names = itertools.chain([topic], (f"{topic}[{n}]" for n in itertools.count(1)))
    return next(name for name in names if name not in taken)


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that is one log: its files are the parts of one recording.

    parts     paths of the files, which may be of any format
    metadata  what the folder says of the log besides
    problems  what is wrong with the folder itself, such as files that are missing
    """

    parts: Sequence[str]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    problems: Sequence[Problem] = ()


@dataclass(frozen=True, repr=False)
class Format:
    """One log format; each format package offers one as ``FORMAT``.

    name      short, lower case; also the value of ``Log.format``
    title     name for people
    suffixes  file name suffixes, the usual one first; used only to name outputs, and to choose their format
    sniff     returns whether the content is of this format; looks at ``source.head`` first, never raises
    folder    returns the Folder that a path is, given that and the names in it; None: it is no log of this format but a
              folder like others, whose files are logs of their own. None: no folder is a log
    new_folder  returns the NewFolder by which an output whose name ends with a slash is a folder; None: logs are files
    scan      reads the structure; with *saved* it restores an earlier scan of the same bytes, and returns None if
              *saved* does not fit. Raises UnsupportedError for unsupported features
    versions  versions of the format that can be read, for people
    create    returns the FormatWriter of a new file: ``create(appender, **options)``; None if such files cannot be
              written
    append    returns the FormatWriter that continues an existing log: ``append(appender, log, **options)``. It begins
              with ``appender.keep_old(size)``, and knows the channels of the log (``continue_channels``). *options* are
              those of ``create``; ``like`` of the log gives their defaults. Raises UsageError for an option that the
              log contradicts, LogError for a log that cannot be continued. None: logs are not continued
    continues_after  codes of problems with lost bytes after which a log can be continued all the same
    copier    returns the LogCopier of a FormatWriter, which copies logs into it; None: nothing format-specific is
              copied
    like      returns options for ``create`` that make a file similar to one with this metadata, e.g. its compression
    layout    returns the Layout of messages whose schema is in the language of this format, from schema and topic, in
              files of any format; None if these do not define it
    sample    returns the bytes of a realistic log, with which ``FormatSuite`` tests this format and what others make of
              it; None: the tests bring their own
    exchange  True for a format that takes any schema and that many tools read: logs converted to it also get channels
              with schemas that these tools know
    api       returns the format-specific module that is available as ``logreel.NAME``: ``api()``. None: it has none
    commands  returns the ``registry.commands.Command``s that become ``logreel NAME COMMAND``: ``commands()``
    more_commands  packages that add commands, by command, so that an error can name the package to install
    channel_key  returns a key that is equal for channels of several logs that become one channel, from topic, schema
                 and metadata; as ``LogCopier.merge_key``
    free_name    returns the name of a topic, changed where necessary to differ from names that are taken; as
                 ``FormatWriter.free_name``
    names_in  functions by encoding of schemas: returns the topics and types by which tools of that definition language
              know the channels of a Log, by topic
    share     returns the Logs of the files of one log as they are joined, from these and the ns that are added to the
              times of each: what only an earlier file defines may be used for later ones, and what later files repeat
              be left out. None: files need nothing of others
    follow    returns a Growing, which reads a file while it is written: ``follow()``; None: a growing file is scanned
              from its start whenever it has grown
    catalogue  returns the catalogue of known definitions in the language of this format: ``catalogue()``. None: it has
              none
    file_facts  names of metadata that describe the file and not what was recorded, e.g. its compression: conversions to
              another format leave them out, which is no loss
    identity  names of metadata that say which robot, machine or run a log is of: logs that differ there are never parts
              of one recording. Names such as ``robot``, ``vehicle``, ``host`` and ``serial_number`` count in any format
    splits    True: recorders of this format split a recording into files with a counter, ``drive_0.bag``,
              ``drive_1.bag`` …; such files are offered as one recording if their clocks agree
    frames    takes a Log and returns a function that describes messages of one time as lines of text
    charts    yields the Charts that a Log of this format deserves; charts of missing topics and fields are left out by
              the caller. None: charts by lenses
    meaning   yields the Sections that the summary of a Log consists of
    sentence  returns a line of text without the name of its sender and other words that stand before what it says
    detectors  returns the Detectors for faults that only logs of this format show: ``detectors()``
    states    returns the names of the numbers that fields of a Log hold, by topic, path and number
    bands     yields the Bands of a Log, such as modes
    traffic   returns the Traffic of a Log: objects, lights and weather, frame by frame. None: its logs know none
    limits    yields the FixedLimits of what a file of this format can make its reader do: ``limits()``; None: no limits
              of its own. ``logreel.limits.fixed_limits`` collects them
    storage   returns the Storage, which says what the bytes of a file are: ``storage()``. None: unknown

    Functions are best ``lazy("module:name")``, which imports the module when it is called; for those that take nothing,
    ``lazy_value("module:NAME")`` returns a constant or, without a name, the module.
    """

    name: str
    title: str
    suffixes: tuple[str, ...]
    sniff: Callable[[Source], bool]
    scan: Callable[[Source, Saved | None], Scan | None]
    versions: str = ""
    create: Callable[..., Any] | None = None
    append: Callable[..., Any] | None = None
    continues_after: tuple[str, ...] = ()
    copier: Callable[[Any], Any] | None = None
    like: Callable[[Mapping[str, Any]], dict[str, Any]] = lambda metadata: {}
    layout: Callable[[Schema, str], Layout | None] | None = None
    folder: Callable[[str, Collection[str]], Folder | None] | None = None
    new_folder: Callable[[], NewFolder] | None = None
    sample: Callable[[], bytes] | None = None
    exchange: bool = False
    api: Callable[[], ModuleType] | None = None
    commands: Callable[[], Sequence[Command]] | None = None
    more_commands: Mapping[str, str] = field(default_factory=dict)
    follow: Callable[[], Growing] | None = None
    frames: Callable[[Log], Callable[[Sequence[Message]], list[str]]] | None = None
    catalogue: Callable[[], Catalogue] | None = None
    file_facts: Collection[str] = ()
    identity: Collection[str] = ()
    splits: bool = False
    charts: Callable[[Log], Iterable[Chart]] | None = None
    bands: Callable[[Log], Iterable[Band]] | None = None
    meaning: Callable[[Log], Iterable[Section]] | None = None
    sentence: Callable[[str], str] = lambda text: text
    states: Callable[[Log], Mapping[str, Mapping[str, Mapping[int, str]]]] | None = None
    detectors: Callable[[], Sequence[Detector]] | None = None
    storage: Callable[[], Storage] | None = None
    limits: Callable[[], Iterable[FixedLimit]] | None = None
    traffic: Callable[[Log], Any] | None = None
    names_in: Mapping[str, Callable[[Log], Mapping[str, tuple[str, str]]]] = field(
        default_factory=dict, repr=False
    )
    share: Callable[[Sequence[Log], Sequence[int]], Sequence[Log]] | None = field(default=None, repr=False)
    channel_key: Callable[[str, Schema, Mapping[str, Any]], Hashable] = field(default=channel_key, repr=False)
    free_name: Callable[[str, Collection[str]], str] = field(default=free_name, repr=False)
    extra: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Whatever may be None is a function.
        for name, value in default_values(Format).items():
            if value is None and isinstance(place := getattr(self, name), str):
                raise UsageError(f"Format.{name} is a function: lazy({place!r}), not the text {place!r}")

    def __repr__(self) -> str:
        return f"<logreel.Format {self.name!r}: {self.title}>"


#: Kinds of records that several formats have; a format can name others.
FILE_HEADER, DEFINITIONS, METADATA, ATTACHMENTS = "file header", "definitions", "metadata", "attachments"
INDEX, CHUNK_HEADERS, UNASSIGNED = "index", "chunk headers", "messages of no channel"


class StoredRecord(NamedTuple):
    """A record that is no message of a channel.

    kind         what it holds, for people
    size         bytes; of a chunk whose content is stored as it is, only those before the content
    compression  of a chunk: its name, ``none`` if the content is stored as it is; else empty
    head         of a chunk: bytes before its content
    content      of a chunk: stored bytes of its content
    """

    kind: str
    size: int
    compression: str = ""
    head: int = 0
    content: int = 0


@dataclass(frozen=True, slots=True)
class Storage:
    """The records of a format.

    head     bytes of a record before the payload of its message: a number, or a function that returns int64[n] from
             uint8[b] bytes, int64[n] payload starts and int64[n] payload sizes
    records  yields the records from one position on up to another one, in order; ends where the bytes are no record.
             The content of a chunk follows the chunk unless it is compressed
    """

    head: int | Callable[[Buffer, I64, I64], I64]
    records: Callable[[Buffer, int, int], Iterator[StoredRecord]]
