"""The result of scanning a log: everything from which a Log is built."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from logreel.errors import Finding, Problem
from logreel.index.message_index import MessageIndex
from logreel.io.arrays import I64
from logreel.io.source import Source
from logreel.layout.layout import Layout
from logreel.log.brief import Brief
from logreel.log.payload_decoder import PayloadDecoder
from logreel.log.schema import Schema

if TYPE_CHECKING:
    from logreel.log.actor import Actor


#: Key in the metadata of a channel that a conversion added: the topic from which its messages were converted.
MADE_OF = "made_of"
#: Key in the metadata of a channel whose messages were converted from another format: JSON text of what it was there.
ORIGINAL = "logreel_original"
#: Key in the metadata of a channel with texts that are Latin-1, not UTF-8: names of these fields.
LATIN_1 = "latin_1_fields"


@dataclass(frozen=True, slots=True)
class ChannelInfo:
    """One channel as the format declares it; its number is its position in ``Scan.channels``.

    layout   returns the Layout; raises DefinitionError if the definition cannot be used
    decoder  returns the PayloadDecoder, or None where the Layout alone describes the payloads
    """

    topic: str
    schema: Schema
    layout: Callable[[], Layout]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    decoder: Callable[[], PayloadDecoder | None] = lambda: None


@dataclass(frozen=True, slots=True)
class Segment:
    """One of several logs in a file, such as the rest of an older flight on a memory card that was used again.

    number      from 1, in file order
    offset      file position at which the log begins
    start, end  ns of its begin and its end, by its own clock; None if empty
    messages    number of messages of all channels except reserved ones
    """

    number: int
    offset: int
    start: int | None
    end: int | None
    messages: int


@dataclass(frozen=True, slots=True)
class Attachment:
    """Named content other than messages.

    name        unique name
    media_type  MIME type
    size        bytes
    read        returns the bytes
    time        time in the log in ns, or None if unknown
    created     time of creation in ns since 1970, or None if unknown
    """

    name: str
    media_type: str
    size: int
    read: Callable[[], bytes]
    time: int | None = None
    created: int | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A parameter set to *value* at *time* (ns)."""

    time: int
    value: float | int | str


@dataclass(frozen=True, slots=True, repr=False)
class Parameter(Brief):
    """A parameter of the robot.

    value     value at the start of the log; None if the log contains only later changes
    changes   later values, in the order logged; some repeat the value before, see *real_changes*
    defaults  default values by kind, such as ``system`` or ``setup``; absent kinds equal *value*
    """

    name: str
    type: str
    value: float | int | str | None
    changes: tuple[Change, ...] = ()
    defaults: Mapping[str, float | int | str] = field(default_factory=dict)

    @property
    def real_changes(self) -> tuple[Change, ...]:
        """Changes whose value differs from the value before; without a value at the start, the first one is one."""
        before = (self.value, *(change.value for change in self.changes))
        return tuple(
            change
            for last, change in zip(before, self.changes, strict=False)
            if not is_same_value(last, change.value)
        )

    @property
    def final(self) -> float | int | str | None:
        """The last value that was logged."""
        return self.changes[-1].value if self.changes else self.value

    @property
    def default(self) -> float | int | str | None:
        """The default of the system, or else of the set-up; None if the log does not contain one."""
        return next((self.defaults[kind] for kind in ("system", "setup") if kind in self.defaults), None)


def is_same_value(a: object, b: object) -> bool:
    """Return whether two values of a parameter are equal; NaN equals NaN."""
    return a == b or (a != a and b != b)


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line of text for people.

    time    ns
    level   syslog level 0 (emergency) … 7 (debug), or None
    source  name of the sender, or empty
    kind    ``comment`` of an operator, ``event`` that is also there as data, ``check`` for an event that is part of
            a report of the robot's state, else ``text``
    repeated  whether it is a check that the report before had, too
    """

    time: int
    level: int | None
    text: str
    source: str = ""
    kind: str = "text"
    repeated: bool = False


def _no_verb(name: str) -> Any:
    raise TypeError(f"a log that open() did not make has no {name}()")


@dataclass(frozen=True, slots=True)
class Services:
    """Functions of higher floors that methods of a Log call; who opens a log gives them.

    text_lines  returns the lines of text of an open Log that its lenses find, where the format has none
    lens_names  returns the names of the lenses that fit a Channel; None: lenses are not asked
    verb        returns the public function ``play``, ``view`` or ``plot``
    reopen      opens a log in another process, from its address, name and options; can be pickled
    """

    text_lines: Callable[[Any], Iterable[TextLine]] = lambda log: ()
    lens_names: Callable[[Any], Iterable[str]] | None = None
    verb: Callable[[str], Any] = _no_verb
    reopen: Callable[..., Any] = _no_verb


#: For logs that no function for users made.
NO_SERVICES = Services()


@dataclass(slots=True)
class Scan:
    """The result of reading the structure of a log; functions in it are called when their result is first needed.

    version     version of the format
    epoch       meaning of time 0: ``unix``, ``boot`` or ``start``
    start, end  ns at which the log begins and ends, ignoring single absurd time stamps; None if empty
    channels    all channels
    index       where the messages are
    problems    damage found
    metadata, attachments, parameters, text  functions that return these
    utc_offset  returns the ns from the clock of the log to UTC since 1970, or None if unknown
    utc_notes   returns sentences about sources of UTC in the log that differ from the one that was taken
    actors      returns the actors of the open Log, by id; None if the format has no actors
    ros_axes    returns the channels in metres and right-handed axes; None if the format has no other axes
    segments    returns the logs in the file; empty if there is only one, as usual
    segment     returns the Scan of one segment, by its number
    saved       arrays and plain data from which the format can restore this Scan without reading the log
    bounds      returns (start, end), in place of the two fields
    verify      reads the whole file and returns what opening does not check, such as wrong checksums
    checksums   compares the checksums of messages in some blocks of the block table, int64[k], which reading does not
                compare, and records a Problem for each wrong one; called before messages are copied
    reread      returns a Scan of all complete records, ignoring the index of the file; None: this is one
    logged_times  returns int64[n] ns by channel number, for channels with times outside of the log: when these messages
                were logged, e.g. in place of 0 from a program that sets no time; other formats get these
    format_state    data of the format for its FormatWriter and LogCopier
    converted_from  name of the format that the log was converted from without loss; else empty
    encryption  how the file is encrypted, as text; empty if it is not
    shown       numbers of the channels that a derived log shows, while *channels* and *index* are still those of all;
                None: all channels
    """

    version: str | Callable[[], str]
    epoch: str
    start: int | None
    end: int | None
    channels: list[ChannelInfo]
    index: MessageIndex
    problems: list[Problem]
    metadata: Callable[[], Mapping[str, Any]] = dict
    attachments: Callable[[], list[Attachment]] = list
    parameters: Callable[[], list[Parameter]] = list
    text: Callable[[], list[TextLine]] | None = None
    utc_offset: Callable[[], int | None] = lambda: None
    utc_notes: Callable[[], Iterable[str]] = tuple
    actors: Callable[[Any], Mapping[int, Actor]] | None = None
    ros_axes: Callable[[], list[ChannelInfo]] | None = None
    segments: Callable[[], list[Segment]] = list
    segment: Callable[[int], Scan] | None = None
    saved: Saved | None = None
    bounds: Callable[[], tuple[int | None, int | None]] | None = None
    verify: Callable[[], Iterable[Finding]] = tuple
    checksums: Callable[[I64], None] | None = None
    reread: Callable[[], Scan] | None = None
    logged_times: Callable[[], Mapping[int, I64]] = dict
    format_state: Any = None
    converted_from: str = ""
    encryption: str = ""
    shown: Collection[int] | None = None

    def shows(self, number: int) -> bool:
        """Return whether the log shows the channel with this number."""
        return self.shown is None or number in self.shown


@dataclass(frozen=True, slots=True)
class Saved:
    """A Scan in the form of an index cache file: plain JSON data, and arrays by name."""

    plain: dict[str, Any]
    arrays: Mapping[str, Any]


#: Bytes behind damage with which it can be judged as in a complete file: many of the longest records.
ENOUGH = 1 << 20


class UndecidedError(Exception):
    """What the bytes at the end mean depends on bytes that are not there yet; only raised inside of readers."""


class Growing(Protocol):
    """The reader of one growing file; it keeps its state at the last complete record."""

    def extend(self, source: Source) -> Scan | None:
        """Return a Scan of *source*, which has the bytes of the source before and usually more.

        Reads only the new bytes; the first call reads the whole file. Bytes at the end that are no complete record yet
        stay unread until they are one; the Scan reports them as a Problem, as opening the file does. Every message of
        the Scan is complete. Earlier Scans stay valid.

        Returns None if what the new bytes mean can only be decided by the rest of the file, as for damage near its
        end: the caller then scans the file from its start, and calls ``extend`` again when there is more. The state
        stays as it was.

        Raises LogError if the bytes so far cannot be scanned at all, for example inside of the file header.
        """
