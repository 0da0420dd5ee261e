"""What a format offers to be written: a ``FormatWriter``."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.errors import DefinitionError, UnsupportedError
from logreel.io.append_file import Appender
from logreel.io.arrays import I64
from logreel.layout.layout import Layout
from logreel.log.schema import Schema
from logreel.write.payloads import Payloads

if TYPE_CHECKING:
    from logreel.index.ranges import Rows
    from logreel.log.log import Log
from collections.abc import Iterable
from typing import TYPE_CHECKING

from logreel.errors import LogError

if TYPE_CHECKING:
    from logreel.log.log import Log

Payload = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A part of a log.

    rows        of each channel that is wanted; see ``MessageIndex.rows_between``
    start, end  the interval that was asked for
    in_force    what was in force at *start* is wanted, too
    """

    log: Log
    rows: Mapping[int, Rows]
    start: int | None
    end: int | None
    in_force: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether all messages of the log are wanted."""
        wanted = {n: r.stop - r.start if isinstance(r, slice) else len(r) for n, r in self.rows.items()}
        return all(wanted.get(ch.number) == len(ch) for ch in self.log.channels.values())


@dataclass(frozen=True)
class SourceClock:
    """What a log that is written anew has to tell of its clock, whatever part of its sources it holds.

    utc_offset  ns to add to a time to get UTC since 1970; None where the sources do not tell
    epoch       what time 0 means: ``unix``, ``boot`` or ``start``
    is_whole    one log is written with all of its messages, so that whatever tells UTC among them is there
    first       gives ns of the first moment of what is written, None where there is none; asked at most once
    """

    utc_offset: int | None
    epoch: str
    is_whole: bool
    first: Callable[[], int | None]

    @cached_property
    def start(self) -> int | None:
        """ns of the first moment of what is written, or None; what is only carried along does not count."""
        return self.first()


@dataclass(frozen=True, slots=True)
class Wrapping:
    """How a channel's Layout goes beyond the payload.

    optional  fields that a table may leave out; they are zero then
    open      gives payloads out of messages as the Layout has them: data, and int64[n + 1] where each begins
    beside    names of the numbers that lie beside a payload of many records, as columns of ``Payloads.side_columns``; a
              message given by fields has them beside its records
    """

    optional: Collection[str]
    open: Callable[[NDArray[np.uint8], I64], Payloads]
    side_columns: Sequence[str] = ()


class FormatWriter:
    """How one format is written; a format's ``create(appender, options)`` gives one.

    It appends to *out* and commits whole records. What a format has no place for raises UnsupportedError.

    notes  sentences about what is not as it was given
    added  messages by ``kept_as`` that the FormatWriter added by itself, or (below 0) left out since they are there
    already
    tolerant  True: the next channel is that of a log of the same format. What that says of it and a new log should not
              say is kept and noted, so that damage to a definition costs no messages
    mixed  True: there will be messages of other encodings than in the log that is adopted or inherited
    clock  ``log``, or ``utc`` where whoever writes adds the UTC offset of the log that is adopted to all times
    source_clock  what the new log has to tell of the clock of its sources; None where nobody says
    """

    #: What the format calls itself, for errors.
    title = "this format"
    #: ``Schema.encoding`` of the definitions that people may give as text; empty: they cannot.
    encoding = ""
    #: Whether all messages of a channel have one size, so that no text and no array can grow.
    fixed_size = False
    #: Times in ns and bytes of a payload that every channel takes without an error: messages inside of these are
    #: collected and given many at a time, others one by one. With -1 none is collected.
    earliest, latest, largest = -(1 << 63), (1 << 63) - 1, -1
    #: What lies beside payloads in ``messages``, column by column: of what logs tell beside them (see ``Track.more``).
    keeps: tuple[str, ...] = ()
    #: Whether nothing that was appended is ever changed, so that it can be sent on at once.
    forward = False

    def __init__(self, out: Appender) -> None:
        self.out = out
        self.notes: list[str] = []
        self.added = Counter[str]()
        self.mixed = self.tolerant = False
        self.clock = "log"
        self.source_clock: SourceClock | None = None

    def channel(self, number: int, topic: str, schema: Schema, metadata: Mapping[str, Any]) -> None:
        """Take in a channel; numbers ascend from 0. Raises DefinitionError for a schema that cannot be written."""
        raise NotImplementedError

    def layout(self, number: int) -> Layout:
        """What a mapping or a table of a channel is encoded by; raises DefinitionError where there is none."""
        raise NotImplementedError

    def schema_for(self, topic: str, layout: Layout) -> Schema:
        """A Schema in the language of the format for messages that hold what *layout* does.

        Messages are then encoded by ``layout(number)``, whose bytes may be others than those of *layout*, but whose
        fields have the same names and hold the same values. Raises DefinitionError for what the format cannot hold.
        """
        raise DefinitionError(f"{self.title} has no definitions of its own for messages of channel {topic!r}")

    def takes(self, schema: Schema) -> bool:
        """Whether a channel of a log with this schema can be recorded with it."""
        return bool(self.encoding) and schema.encoding == self.encoding

    def schema_from(self, topic: str, text: str, file: str) -> Schema:
        """The Schema that somebody gave for *topic* as *text*, which stood in *file*."""
        if not self.encoding:
            raise UnsupportedError(f"{self.title} takes no definitions as text")
        return Schema(PurePath(file).stem, self.encoding, text)

    def wrapping(self, number: int) -> Wrapping | None:
        """How the Layout of a channel goes beyond the payload; None: it is a walk of the payload and nothing else."""
        return None

    def stamp(self, number: int) -> tuple[str, int] | None:
        """The field of a channel that holds the time of the message, and its ns per unit, if there is one."""
        return None

    def derived(self, number: int) -> Collection[str]:
        """Fields that reading tells of a message, and that are no part of its payload; given, they are left out."""
        return ()

    def message(self, channel: int, time: int, data: Payload) -> None:
        """Append one message at *time* ns."""
        zero, raw = np.zeros(1, np.int64), np.frombuffer(data, np.uint8)
        self.messages(np.array([channel], np.int32), zero + time, Payloads(raw, zero, zero + len(raw)))

    def messages(self, channel: NDArray[np.int32], time: I64, payloads: Payloads) -> None:
        """Append many, with the numbers that lie beside them where the format keeps such."""
        raise NotImplementedError

    def metadata(self, name: str, value: Any) -> None:
        """Add to what the log tells about itself."""
        raise UnsupportedError(f"{self.title} has no place for metadata")

    def parameter(self, name: str, value: float | int | str, time: int | None) -> None:
        """Set a parameter, at *time* ns or at the start."""
        raise UnsupportedError(f"{self.title} has no place for parameters")

    def text(self, time: int, level: int, text: str) -> None:
        """Append a line of text; *level* is a syslog number."""
        raise UnsupportedError(f"{self.title} has no place for text")

    def attachment(self, name: str, data: bytes, media_type: str) -> None:
        """Add a named piece of content."""
        raise UnsupportedError(f"{self.title} has no place for attachments")

    def free_name(self, topic: str, taken: Collection[str]) -> str:
        """What *topic* is called in this format, and beside channels of the names *taken*."""
        names = itertools.chain([topic], (f"{topic}[{n}]" for n in itertools.count(1)))
        return next(name for name in names if name not in taken)

    def kept_as(self, topic: str, metadata: Mapping[str, Any]) -> str:
        """What messages of a channel are known by when they are read again; not the topic where content makes that."""
        return topic

    def joined(self, metadata: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """What a channel tells that is made of several of one topic and definition, from what each of them tells."""
        return metadata[0]

    def renumbered(self, metadata: Mapping[str, Any], joined: Mapping[str, Any]) -> I64 | None:
        """What each number of the last thing that it ``keeps`` beside messages of a channel becomes in the joined one.

        None: it stays what it is.
        """
        return None

    def identity(self, topic: str, schema: Schema, metadata: Mapping[str, Any]) -> Hashable:
        """What channels of several logs must have in common to become one."""
        return topic, schema, metadata.get("md5sum")

    def side_columns(self, log: Log, channel: int, offset: I64) -> I64 | None:
        """int64[n, k]: numbers that *log*, of the same format, keeps beside the payloads at *offset*, or None.

        They come back with ``messages`` when the messages are written.
        """
        return None

    def copy_metadata(self, log: Log) -> list[str]:
        """Take over what a log of the same format holds besides messages; tells what had to be left out.

        Comes before the first channel; of several logs the first one has precedence.
        """
        return []

    def import_foreign(self, log: Log, returns: bool) -> list[str]:
        """The same of a log of another format: metadata, parameters and attachments, as far as they fit.

        returns  True: the log was once converted from this format, so what this has no place for at all is no loss
        """

        return import_foreign(self, log, returns)

    def copy(self, excerpt: Excerpt) -> bool:
        """Copy a part of a log of the same format as it lies there; False, with nothing done, where that cannot be."""
        return False

    def settle(self) -> None:
        """Commit everything given so far, so that it can be read back if nothing follows."""

    def finish(self) -> None:
        """Write what completes the file."""


def import_foreign(format_writer: FormatWriter, log: Log, quiet: bool) -> list[str]:
    """Give *format_writer* the metadata, parameters and attachments of *log*; tells what it has no place for.

    quiet  True: what the format has no place for at all is no loss, since the log was converted from that format
    """
    told = import_foreign_metadata(format_writer, log, quiet)
    told += each("parameter", log.parameters, lambda name: _parameter(format_writer, log, name), quiet)
    return told + each(
        "attachment", log.attachments, lambda name: _attachment(format_writer, log, name), quiet
    )


def import_foreign_metadata(format_writer: FormatWriter, log: Log, quiet: bool) -> list[str]:
    """Give *format_writer* the metadata of *log*, but for what its format tells of the file under its own name."""
    names = [name for name in log.metadata if name != log.format]
    return each("metadata", names, lambda name: format_writer.metadata(name, log.metadata[name]), quiet)


def each(what: str, names: Iterable[str], give: Callable[[str], None], quiet: bool) -> list[str]:
    """Call *give* with each name; tells of those that were refused."""
    left, why, told = list[str](), "", list[str]()
    for name in names:
        try:
            give(name)
        except UnsupportedError as error:
            left.append(name)
            why = error.text
        except LogError as error:
            told.append(f"{what} {name!r} was left out: {error.text}")
    if left and not quiet:
        shown = ", ".join(repr(name) for name in left[:5]) + " …" * (len(left) > 5)
        told.append(f"{what} {shown} left out: {why}")
    return told


def _parameter(format_writer: FormatWriter, log: Log, name: str) -> None:
    one = log.parameters[name]
    if one.value is not None:
        format_writer.parameter(name, one.value, None)


def _attachment(format_writer: FormatWriter, log: Log, name: str) -> None:
    one = log.attachments[name]
    format_writer.attachment(name, one.read(), one.media_type)
