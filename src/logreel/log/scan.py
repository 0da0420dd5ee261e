"""The result of scanning a log: everything from which a Log is built; how results are shown as text and tables."""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from logreel.dataclass import NamedTuple, dataclass, field, fields, lazy_pattern, replace
from logreel.errors import Finding, Problem
from logreel.index.message_index import MessageIndex
from logreel.io.arrays import I64
from logreel.io.source import Source
from logreel.layout.layout import Layout
from logreel.layout.nodes import FixedArray, Node, Struct
from logreel.layout.nodes import Sequence as Records

if TYPE_CHECKING:
    import pyarrow as pa

    from logreel.index.gather import PayloadRange
    from logreel.index.part import PartIndex
    from logreel.layout.arrow import Decoded


#: Values with a longer repr are counted or cut.
LONG = 100


class Brief:
    """Mixin for dataclasses with ``repr=False``: long values are counted or cut in the repr."""

    __slots__ = ()

    def __repr__(self) -> str:
        members = fields(self)  # type: ignore[arg-type]
        shown = (f"{member.name}={_short(getattr(self, member.name))}" for member in members if member.repr)
        return f"{type(self).__name__}({', '.join(shown)})"


def _short(value: Any) -> str:
    if isinstance(value, (tuple, list, Mapping, set, frozenset)) and len(value) > 3:
        return f"<{len(value)} items>"
    text = repr(value)
    if len(text) <= LONG:
        return text
    if isinstance(value, (tuple, list, Mapping, set, frozenset)):
        return f"<{len(value)} item{'s' * (len(value) != 1)}>"
    return f"{text[:LONG]}…"


#: Rows that a table shows; further rows are counted.
ROWS = 50


class Block(NamedTuple):
    """One table of a result: its title, the names of its columns (none: no head), and rows of text."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


class Tabular(Brief):
    """Mixin for results that are tables for people: ``str()``, and HTML in notebooks; the repr stays short."""

    __slots__ = ()

    def _blocks(self) -> Iterable[Block]:
        raise NotImplementedError

    def __str__(self) -> str:
        lines: list[str] = []
        for block in self._blocks():
            lines += [*([""] if lines else []), one_line(block.title)]
            rows = [[one_line(cell) for cell in row] for row in (block.head, *block.rows) if row]
            widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
            for row in rows:
                cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
                lines.append(f"  {'  '.join(cells)}".rstrip())
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return "".join(table(block.title, block.head, block.rows) for block in self._blocks())


def table(head: str, names: Iterable[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of *rows* with column *names* as HTML, below the line *head*."""
    from html import escape

    cells = ["".join(f"<td>{escape(one_line(cell))}</td>" for cell in row) for row in rows[:ROWS]]
    more = f"<p>and {len(rows) - ROWS} more</p>" if len(rows) > ROWS else ""
    top = "".join(f"<th>{escape(name)}</th>" for name in names)
    top = f"<tr>{top}</tr>" if top else ""
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    above = f"<p>{escape(one_line(head))}</p>" if head else ""
    return f"<div>{above}<table>{top}{body}</table>{more}</div>"


def one_line(text: str) -> str:
    """Return text of a log on one line, without characters that control a terminal."""
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in " ".join(text.split()))


@dataclass(frozen=True, slots=True, repr=False)
class Schema(Brief):
    """A message type, as the log defines it.

    name      name of the type, such as ``vehicle_attitude`` or ``sensor_msgs/Imu``
    encoding  definition language, such as ``ulog``, ``ros1msg``
    text      the definition verbatim; empty if the log contains none
    data      a binary definition, such as compiled descriptors; else empty
    """

    name: str
    encoding: str
    text: str = ""
    data: bytes = b""

    @classmethod
    def of(cls, name: str, encoding: str, raw: bytes) -> Schema:
        """Return the Schema with the definition *raw*: text if it is UTF-8, else data."""
        try:
            return cls(name, encoding, raw.decode("utf-8"))
        except UnicodeDecodeError:
            return cls(name, encoding, "", raw)

    @property
    def raw(self) -> bytes:
        """The definition as bytes."""
        return self.data or self.text.encode("utf-8", "surrogateescape")


#: Keys that every channel has.
TOPIC, TYPE, ENCODING, UNITS = "topic", "type", "encoding", "units"
#: Key of channels of logs: the names of their lenses.
LENS = "lens"
#: Latched in the quality of service of ROS 2, which recorders store as text.
_TRANSIENT = lazy_pattern(r"durability:\s*(1\b|transient_local)")
#: Other names of keys.
ALIASES = {"unit": UNITS, "lenses": LENS}


class Facts(Mapping[str, tuple[str, ...]]):
    """Texts by key, for conditions such as ``type=sensor_msgs/Imu``; a key may have several values.

    The keys are ``topic``, ``type`` (name of the schema), ``encoding``, ``units`` (of all fields), and those of the
    metadata. A nested entry has its path (``spec.bosdyn:grpc:service``), its own name (``bosdyn:grpc:service``) and the
    part of this after the last colon (``service``). Items of lists are values of the list's key.

    units   returns the units of the fields; called when they are first needed
    lenses  returns the names of the lenses of *channel*, values of ``lens``; None: there is no such key
    """

    def __init__(
        self,
        topic: str,
        schema: Schema | None = None,
        metadata: Mapping[str, Any] | None = None,
        units: Callable[[], Iterable[str]] = tuple,
        lenses: Callable[[Any], Iterable[str]] | None = None,
        channel: Any = None,
    ) -> None:
        self._topic, self._schema, self._metadata, self._units = topic, schema, metadata or {}, units
        self._lenses, self._channel = lenses, channel

    @cached_property
    def _texts(self) -> Mapping[str, dict[str, None]]:
        texts: dict[str, dict[str, None]] = {key: {} for key in (TOPIC, TYPE, ENCODING, UNITS)}
        texts[TOPIC][self._topic] = None
        if self._schema is not None:
            texts[TYPE][self._schema.name] = texts[ENCODING][self._schema.encoding] = None
        for path, value in _entries(self._metadata, ()):
            text = _text(value)
            for key in (".".join(path), path[-1], path[-1].rpartition(":")[2]):
                if key:
                    texts.setdefault(ALIASES.get(key, key), {})[text] = None
        if self._lenses is not None:
            texts.setdefault(LENS, {})
        return texts

    @cached_property
    def _with_lenses(self) -> tuple[str, ...]:
        lenses = () if self._lenses is None else self._lenses(self._channel)
        return tuple({**self._texts[LENS], **dict.fromkeys(lenses)})

    @cached_property
    def _with_units(self) -> tuple[str, ...]:
        return tuple({**self._texts[UNITS], **dict.fromkeys(self._units())})

    def __getitem__(self, key: str) -> tuple[str, ...]:
        key = ALIASES.get(key, key)
        if key == UNITS:
            return self._with_units
        return self._with_lenses if key == LENS else tuple(self._texts[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


def units_of(layout: Layout) -> list[str]:
    """Return the units of all fields of *layout*, without repeats, in the order of the fields."""
    units: dict[str, None] = {}
    # Trees may share parts: each node is visited once.
    seen: set[int] = set()
    nodes: list[Node] = [layout.root]
    while nodes:
        node = nodes.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Struct):
            units |= {field.unit: None for field in node.fields if field.unit}
            nodes += [field.node for field in reversed(node.fields)]
        elif isinstance(node, (FixedArray, Records)):
            nodes.append(node.item)
    return list(units)


def is_marked_latched(ch: Any) -> bool:
    """Return whether the log marks *ch* as latched."""
    profiles = ch.metadata.get("offered_qos_profiles")
    return bool(ch.metadata.get("latching")) or (
        isinstance(profiles, str) and _TRANSIENT.search(profiles) is not None
    )


def _entries(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield path and value of everything in nested mappings and lists, except None."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _entries(item, (*path, str(key)))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _entries(item, path)
    elif value is not None and path:
        yield path, value


def _text(value: Any) -> str:
    """Return the text of a value; of bool as in JSON."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).decode("utf-8", "backslashreplace")
    return str(value)


class PayloadDecoder(Protocol):
    """Decodes the payloads of one channel instead of the Layout kernel; the Layout then describes only the result."""

    def decode_batch(self, index: MessageIndex, layout: Layout, piece: PayloadRange, rows: I64) -> Decoded:
        """Decode messages into columns, one per visible member of *layout*; flat where messages hold many records.

        layout  the Layout of the channel, or a part of it
        rows    int64[n]: row numbers in the channel of the messages of *piece*
        """
        ...

    def decode_message(self, index: MessageIndex, data: memoryview, row: int | None) -> dict[str, Any]:
        """Decode one message as ``msg.decode()`` returns it.

        row  row number of the message in the channel, or None if unknown

        Raises DamagedError if the bytes do not fit.
        """
        ...


class WholeChannelDecoder(PayloadDecoder, Protocol):
    """A PayloadDecoder with a faster way to decode all messages of a channel."""

    def decode_all(
        self, index: MessageIndex, channel: int, layout: Layout, explode: bool
    ) -> tuple[Decoded, I64] | None:
        """Decode all messages as ``decode_batch`` does, and also return their times, int64[n] ns.

        explode  True: messages without records may be left out

        None if the faster way cannot be used for this channel.
        """
        ...


def until_next(times: I64) -> I64:
    """Return int64[n]: ns from each message to the next one; the last has the length of the one before, or 0."""
    gap = np.diff(times)
    return np.append(gap, gap[-1:] if len(gap) else np.zeros(len(times), np.int64))


def spread(times: I64, gap: I64, records: I64) -> I64:
    """Return a time for every record, spread evenly from its message to the next message of the channel.

    times    int64[k]  time of the messages that hold the records, ns
    gap      int64[k]  ns from each of these messages to the next one of the channel, see ``until_next``
    records  int64[k]  number of records in each of these messages

    Where time does not advance, the records of a message share its time.
    """
    step = np.where(gap > 0, gap, 0) / np.maximum(records, 1)
    first = np.cumsum(records) - records
    number = np.arange(int(records.sum()), dtype=np.int64) - np.repeat(first, records)
    out: I64 = np.repeat(times, records) + (np.repeat(step, records) * number).astype(np.int64)
    return out


def payloads(piece: PayloadRange) -> Iterator[bytes]:
    """Yield the payload of each message of a range."""
    view = piece.data.data
    for at, size in zip(piece.offset.tolist(), piece.size.tolist(), strict=True):
        yield bytes(view[at : at + size])


def decoded(layout: Layout, rows: list[dict[str, Any]], bad: list[tuple[int, str]], n: int) -> Decoded:
    """Return Python values of messages as columns of the visible members of *layout*.

    rows  one dict per message that could be decoded
    bad   (row, reason) of each of the others
    n     number of all messages
    """
    from logreel.layout.arrow import Decoded
    from logreel.layout.numpy_columns import PlainValues

    arrays = [PlainValues(f.node, [row[f.name] for row in rows]) for f in layout.record.visible()]
    kept = np.setdiff1d(np.arange(n), [i for i, _ in bad]) if bad else None
    return Decoded(arrays, kept, bad, np.zeros(0, np.int64), None)


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
        return next(
            (self.defaults[source] for source in ("system", "setup") if source in self.defaults), None
        )


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


@dataclass(frozen=True, slots=True)
class ScanPart:
    """Some messages of a log, of which a format is asked for the Scan that it would have of a file with only these.

    index       of these messages; channels have the numbers of the log
    shown       numbers of the selected channels
    start, end  requested interval, ns; None: no bound
    begins      returns the first time of the part, ns, or None; None: it is the whole log
    """

    index: PartIndex
    shown: Collection[int]
    start: int | None = None
    end: int | None = None
    begins: Callable[[], int | None] | None = None

    def span(self) -> tuple[int | None, int | None]:
        """Return the least and the greatest time of the messages, ns; None without messages."""
        every = [times for number in self.shown if len(times := self.index.times(number))]
        first = min((int(times.min()) for times in every), default=None)
        return first, max((int(times.max()) for times in every), default=None)

    def changes(self, scan: Scan) -> dict[str, Any]:
        """Return the members of the Scan of the part of a log with *scan*, for ``Log.derive``."""
        part = self._scan(scan)
        return {member.name: getattr(part, member.name) for member in fields(Scan)}

    def _scan(self, scan: Scan) -> Scan:
        part = replace(scan, index=self.index, shown=self.shown) if scan.part is None else scan.part(self)
        part = replace(part, problems=list(scan.problems), saved=None, reread=None, checksums=None)
        part = replace(part, verify=tuple, segments=list, segment=None)
        if scan.part is not None:
            return part
        text, logged = scan.text, scan.logged_times
        return replace(
            part,
            bounds=scan.bounds if self.begins is None else self.span,
            text=None if text is None else lambda: list(filter(self._holds, text())),
            logged_times=lambda: {
                number: times[self.index.rows_in_whole(number)] for number, times in logged().items()
            },
        )

    def _holds(self, line: TextLine) -> bool:
        return (self.start is None or line.time >= self.start) and (self.end is None or line.time < self.end)


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
    text_of     returns the text of a Log with other messages, which follows from messages that are no lines of text
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
    part        returns the Scan of some of the messages; None: text, parameters and the like of a part are those of
                the log, and decoders use the index that they are called with
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
    text_of: Callable[[Any], list[TextLine]] | None = None
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
    part: Callable[[ScanPart], Scan] | None = None
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


class IncompleteError(Exception):
    """The record at the end is not complete yet; only raised inside of readers.

    most  bytes from its begin after which its stated size is not believed any more
    """

    def __init__(self, most: int) -> None:
        self.most = most


class IncrementalReader:
    """What readers of one file from its front have in common; they keep their state at the last complete record.

    pos  offset after the last record that was read
    """

    pos = 0
    #: Whether nothing follows the bytes that there are; ``finish`` sets it and reads the rest.
    _is_final = False

    def feed(self, source: Source) -> bool:
        """Read the complete records that *source*, which begins with the bytes so far, has after ``pos``.

        Returns False, with ``pos`` before them, if bytes follow that only later ones can explain.
        """
        self._extend(source)
        try:
            self._read()
        except IncompleteError as error:
            return source.size - self.pos < error.most
        except UndecidedError:
            return False
        return True

    def _extend(self, source: Source) -> None:
        """Take *source* for the file."""
        raise NotImplementedError

    def _read(self) -> None:
        """Read from ``pos`` on; unless this is final, raise IncompleteError or UndecidedError where it cannot go on."""
        raise NotImplementedError


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


class Noted:
    """Adds Problems to lists that other code extends, too; each is there once. Threads may add at the same time."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._known: set[Problem] = set()
        self._list: list[Problem] | None = None
        self._length = 0
        self._last: Problem | None = None

    def add(self, problems: list[Problem], problem: Problem) -> None:
        """Append *problem* unless it is in the list already."""
        with self._lock:
            if problems is not self._list or not self._is_continued(problems):
                self._known, self._list, self._length = set(), problems, 0
            # Only the new ones: with tens of thousands of problems, looking at all for each takes minutes.
            self._known.update(problems[self._length :])
            if problem not in self._known:
                self._known.add(problem)
                problems.append(problem)
            self._length, self._last = len(problems), problems[-1]

    def _is_continued(self, problems: list[Problem]) -> bool:
        """Return whether the list, as far as it is known, has not been changed."""
        return self._length <= len(problems) and problems[self._length - 1] is self._last


@dataclass(frozen=True, slots=True)
class Actor:
    """One actor of a log.

    id           number of the actor in the log
    type         kind of actor, such as ``vehicle``
    description  model name in the simulator, such as ``vehicle.audi.tt``
    attributes   text by name
    start, end   ns at which it appears and is removed; *end* None: it exists until the end of the log
    parent       id of the actor that it is attached to, or None
    """

    id: int
    type: str
    description: str
    attributes: Mapping[str, str]
    start: int
    end: int | None
    parent: int | None
    _trajectory: Callable[[], pa.Table] = field(repr=False, compare=False)

    def trajectory(self) -> pa.Table:
        """Return a ``pyarrow.Table`` with one row per recorded position.

        Columns: time, frame, location, rotation, velocity, angular_velocity, acceleration. The metadata of each field
        contain its ``unit``, and under ``source`` whether it was recorded or computed.
        """
        return self._trajectory()
