"""A log of several files: ``JoinedLog`` and its channels, which read each message where it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from logreel.dataclass import replace
from logreel.errors import Finding, Problem, UsageError
from logreel.index.block_table import TIME_MAX, TIME_MIN
from logreel.index.joined import JoinedIndex
from logreel.io.arrays import I64
from logreel.io.source import FILE, Readable
from logreel.layout.layout import Layout
from logreel.log.log import Channel, Log, kept_property
from logreel.log.scan import (
    Attachment,
    Change,
    ChannelInfo,
    Parameter,
    PayloadDecoder,
    Scan,
    Segment,
    TextLine,
)
from logreel.log.times import duration_ns, utc_shift

if TYPE_CHECKING:
    from logreel.index.gather import PayloadRange
    from logreel.index.message_index import MessageIndex
    from logreel.layout.arrow import Decoded


#: Metadata of a log of files that were joined although they are of different recordings: by which facts.
JOINED = "joined_anyway"
#: What names one log: one file, or the parts of one recording as a list.
Openable = Readable | Sequence[Readable | Log]


class JoinedChannel(Channel):
    """The messages of one topic in several files; see ``Channel``.

    members  the channels in the files
    """

    def __init__(
        self, log: JoinedLog, number: int, info: ChannelInfo, members: Sequence[tuple[Channel, int]]
    ) -> None:
        super().__init__(log, number, info)
        self.members = tuple(channel for channel, _ in members)
        self.shifts = tuple(shift for _, shift in members)

    @kept_property
    def layout(self) -> Layout:
        """The Layout of the messages; raises DefinitionError if the definition cannot be used."""
        return self.members[0].layout

    @kept_property
    def decoder(self) -> PayloadDecoder | None:
        """A PayloadDecoder that uses those of the files, or None where the Layout alone describes the payloads."""
        return None if self.members[0].decoder is None else _Decoder(self)

    @kept_property
    def is_uniform(self) -> bool:
        """Whether all messages are uncompressed in their files and have the fixed size of the Layout."""
        size = self.layout.size
        return all(member.is_uniform and member.layout.size == size for member in self.members)

    def decode(self, data: memoryview, offset: int | None = None) -> dict[str, Any]:
        """Return the fields of one payload; see ``Channel.decode``."""
        if offset is None or self.decoder is None:
            return self.members[0].decode(data)
        return self._member_with(data).decode(data, offset)

    def _member_with(self, data: memoryview) -> Channel:
        """Return the channel of the file that *data* is a view of; the first one for other bytes."""
        at = np.frombuffer(data, np.uint8).ctypes.data if len(data) else 0
        for member in self.members:
            file_bytes = member.log.index.chunks[FILE]
            if file_bytes.ctypes.data <= at < file_bytes.ctypes.data + len(file_bytes):
                return member
        return self.members[0]


class _Decoder:
    """Decodes messages of a joined channel with the PayloadDecoder of the file that they are in."""

    def __init__(self, channel: JoinedChannel) -> None:
        self._channel = channel
        names = (getattr(member.decoder, "logged", ()) for member in channel.members)
        #: Side columns that nothing else in the log contains, see ``SideColumnsDecoder``.
        self.logged = tuple(dict.fromkeys(name for names_of_member in names for name in names_of_member))

    def decode_batch(self, index: MessageIndex, layout: Layout, piece: PayloadRange, rows: I64) -> Decoded:
        """See ``PayloadDecoder``; a range of messages is in one file."""
        if not len(rows):
            member, here = self._channel.members[0], rows
        else:
            (rows_in_part,) = index.members(self._channel.number, rows) or ()
            member, here = self._channel.members[rows_in_part.number], np.asarray(rows_in_part.rows)
        if member.decoder is None:
            raise TypeError("the members of a joined channel are decoded in different ways")
        return member.decoder.decode_batch(member.log.index, layout, piece, here)

    def decode_message(self, index: MessageIndex, data: memoryview, row: int | None) -> dict[str, Any]:
        """See ``PayloadDecoder``."""
        if row is None:
            return self._channel.members[0].decode(data)
        (rows_in_part,) = index.members(self._channel.number, np.array([row], np.int64)) or ()
        member = self._channel.members[rows_in_part.number]
        if member.decoder is None:
            raise TypeError("the members of a joined channel are decoded in different ways")
        return member.decoder.decode_message(member.log.index, data, int(np.asarray(rows_in_part.rows)[0]))


class JoinedLog(Log):
    """A log of several files; see ``Log``.

    shifts   ns to add to the times of each
    members  for each channel the numbers of the files that it is in, and its topic there
    """

    def __init__(
        self,
        parts: Sequence[Log],
        shifts: Sequence[int],
        scan: Scan,
        members: Sequence[Sequence[tuple[int, str]]],
        between: Callable[[], list[Problem]],
    ) -> None:
        self._parts, self.shifts, self.members = tuple(parts), tuple(shifts), members
        self._find_between = between
        first = self.parts[0]
        super().__init__(first.source, first.format, scan, first.services)
        self.name, self.size = name_of(parts), sum(log.size for log in parts)
        self.given_types = {
            topic: type_name for log in reversed(self.parts) for topic, type_name in log.given_types.items()
        }

    @property
    def parts(self) -> Sequence[Log]:
        """The logs of the files, in their order."""
        return self._parts

    @kept_property
    def channels(self) -> Mapping[str, Channel]:
        """All channels by topic: those of the first file in its order, then further ones."""
        return MappingProxyType(
            {
                info.topic: JoinedChannel(
                    self, n, info, [(self.parts[part][topic], self.shifts[part]) for part, topic in members]
                )
                for n, (info, members) in enumerate(zip(self.scan.channels, self.members, strict=True))
                if self.scan.shows(n)
            }
        )

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Problems of the files together, then those in each; ``Problem.file`` and the text name it."""
        problems = [*self.scan.problems, *self._between]
        for log in self.parts:
            problems += [in_part(problem, log.name) for problem in log.problems]
        return tuple(problems)

    @kept_property
    def _between(self) -> list[Problem]:
        """Problems between the files, which are looked for when first needed."""
        return self._find_between()

    def segment(self, number: int) -> Log:
        """Return the log itself: files that are opened as one log have one segment."""
        if number != 1 or isinstance(number, bool):
            raise UsageError(
                f"there is no segment {number!r}: this log is joined from {len(self.parts)} files",
                path=self.name,
            )
        return self

    @kept_property
    def segments(self) -> tuple[Segment, ...]:
        """One segment, which is the log."""
        return (Segment(1, 0, self.start, self.end, self.message_count),)

    @property
    def has_other_axes(self) -> bool:
        """Whether ``ros_axes`` can convert the log."""
        return any(log.has_other_axes for log in self.parts)

    def ros_axes(self) -> Log:
        """Return the same log in metres and right-handed axes, see ``Log.ros_axes``."""
        parts = [log.ros_axes() for log in self.parts]
        infos = [parts[members[0][0]].scan.channels for members in self.members]
        numbers = [parts[members[0][0]][members[0][1]].number for members in self.members]
        channels = [
            replace(part_infos[number], topic=info.topic, metadata=info.metadata)
            for part_infos, number, info in zip(infos, numbers, self.scan.channels, strict=True)
        ]
        log = JoinedLog(
            parts, self.shifts, replace(self.scan, channels=channels), self.members, self._find_between
        )
        log.options = {**self.options, "ros_axes": True}
        return log

    def _with_scan(self, scan: Scan) -> Log:
        return JoinedLog(self.parts, self.shifts, scan, self.members, lambda: self._between)

    def reread(self) -> Log:
        """Raise UsageError: recovery works on one file."""
        raise UsageError(
            "several files are recovered one by one",
            path=self.name,
            hint="recover each damaged file, or the folder into a new folder (a name that ends in /)",
        )

    @property
    def is_complete(self) -> bool:
        """True: a log of several files does not grow."""
        return True

    @property
    def index(self) -> JoinedIndex:
        """The JoinedIndex: where the messages are in the files. Raises LogError if the log is closed."""
        index = super().index
        if not isinstance(index, JoinedIndex):
            raise TypeError("the index of several files is a JoinedIndex")
        return index

    def refresh(self) -> int:
        """Raise UsageError: only a log of one file grows."""
        raise UsageError(
            "a log of several files does not grow",
            path=self.name,
            hint="open only the file that is written",
        )

    def verify(self) -> tuple[Finding, ...]:
        """Read all files and return what opening them does not check; each text names its file."""
        return tuple(
            replace(finding, text=f"{log.name}: {finding.text}", offset=None)
            for log in self.parts
            for finding in log.verify()
        )

    def close(self) -> None:
        """Close the log and its files. Messages, tables and arrays read before stay valid."""
        super().close()
        for log in self.parts:
            log.close()

    def __reduce__(self) -> tuple[Any, ...]:
        for log in self.parts:
            log.__reduce__()
        return self.services.reopen, ([log.source.address for log in self.parts], self.name, self.options)


def name_of(parts: Sequence[Log]) -> str:
    """Return a name for several files: those of the first and of the last one."""
    return parts[0].name if len(parts) == 1 else f"{parts[0].name} … {parts[-1].name} ({len(parts)} files)"


def in_part(problem: Problem, name: str) -> Problem:
    """Return a Problem of one of several files, with its name."""
    return problem if problem.file else replace(problem, text=f"{name}: {problem.text}", file=name)


def scan_of(
    parts: Sequence[Log],
    shifts: Sequence[int],
    index: JoinedIndex,
    channels: list[ChannelInfo],
    problems: list[Problem],
    reference: int = 0,
    notes: Sequence[str] = (),
) -> Scan:
    """Return the Scan of several files; what they hold besides messages is from the first one that has it.

    reference  number of the file whose clock, with its shift, is that of the log
    notes      facts by which the files are of different recordings; the metadata names them
    """
    moved = list(zip(parts, shifts, strict=True))

    def bounds() -> tuple[int | None, int | None]:
        starts = [log.start + by for log, by in moved if log.start is not None]
        ends = [log.end + by for log, by in moved if log.end is not None]
        return min(starts, default=None), max(ends, default=None)

    def utc_offset() -> int | None:
        offset = utc_shift(parts[reference])
        return None if offset is None else offset - shifts[reference]

    def metadata() -> dict[str, Any]:
        values = {name: value for log in reversed(parts) for name, value in log.metadata.items()}
        return {**values, JOINED: "; ".join(notes)} if notes else values

    def attachments() -> list[Attachment]:
        by_name: dict[str, Attachment] = {}
        for log, by in moved:
            for name, attachment in log.attachments.items():
                by_name.setdefault(
                    name,
                    attachment if attachment.time is None else replace(attachment, time=attachment.time + by),
                )
        return list(by_name.values())

    def parameters() -> list[Parameter]:
        by_name: dict[str, Parameter] = {}
        for log, by in moved:
            for name, parameter in log.parameters.items():
                before = by_name.get(name, replace(parameter, changes=()))
                changes = [
                    *before.changes,
                    *(Change(change.time + by, change.value) for change in parameter.changes),
                ]
                by_name[name] = replace(
                    before, changes=tuple(sorted(changes, key=lambda change: change.time))
                )
        return list(by_name.values())

    def text() -> list[TextLine]:
        lines = [replace(line, time=line.time + by) for log, by in moved for line in log.text]
        return sorted(lines, key=lambda line: line.time)

    return Scan(
        lambda: parts[0].version,
        "unix" if shifts[reference] and utc_offset() == 0 else parts[reference].epoch,
        None,
        None,
        channels,
        index,
        problems,
        metadata=metadata,
        attachments=attachments,
        parameters=parameters,
        text=text,
        utc_offset=utc_offset,
        utc_notes=lambda: parts[reference].utc_notes,
        bounds=bounds,
        actors=parts[0].scan.actors,
        converted_from=parts[0].converted_from if len({log.converted_from for log in parts}) == 1 else "",
    )


class Together:
    """Clock and bounds of several logs together; the clock is that of the first log with its shift.

    shifts  ns to add to the times of each log
    """

    def __init__(self, logs: Sequence[Log], shifts: Sequence[int]) -> None:
        self._moved = list(zip(logs, shifts, strict=True))
        first = logs[0]
        self.name, self.epoch = first.name, first.epoch
        offset = utc_shift(first)
        self.utc_offset = None if offset is None else offset - shifts[0]
        self.start = min((log.start + by for log, by in self._moved if log.start is not None), default=None)
        self.end = max((log.end + by for log, by in self._moved if log.end is not None), default=None)

    def holds_between(self, start: int | None, end: int | None) -> bool:
        """Return whether any message has start <= time < end (ns), also outside of ``start`` and ``end``."""
        return any(log.holds_between(*earlier((start, end), by)) for log, by in self._moved)


def earlier(span: tuple[int | None, int | None], shift: int) -> tuple[int | None, int | None]:
    """Return *span* minus *shift*, limited to int64."""
    start, end = (None if t is None else min(max(t - shift, TIME_MIN), TIME_MAX) for t in span)
    return start, end


def clock_shifts(logs: Sequence[Log], align: str | None) -> list[int]:
    """Return ns to add to the times of each log: 0 for the first, unless *align* is ``utc`` and epochs differ."""
    first = logs[0]
    if align == "utc" and any(log.epoch != first.epoch for log in logs):
        return [clock_shift(log, None, align) for log in logs]
    return [0, *(clock_shift(log, first, align) for log in logs[1:])]


def clock_shift(log: Log, first: Log | None, align: str | None) -> int:
    """Return ns to add to the times of *log* to get times of the clock of *first*, or UTC if *first* is None."""
    if align is None:
        return 0
    if align == "start" and first is not None:
        return (first.start or 0) - (log.start if log.start is not None else first.start or 0)
    if align == "utc":
        for timed in (log, first):
            if timed is not None and utc_shift(timed) is None:
                raise UsageError("does not tell how its clock relates to UTC", path=timed.name)
        return (utc_shift(log) or 0) - ((utc_shift(first) or 0) if first is not None else 0)
    return duration_ns(align)


#: Metadata of a channel with several origins: the headers of these, and the side column with the index in them.
HEADERS, CONNECTION = "headers", "connection"


def joined_metadata(metadata: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the metadata of a channel that is joined from several: that of the first, with the headers of all."""
    if len(metadata) == 1 or not any(HEADERS in values for values in metadata):
        return metadata[0]
    headers = [header for values in metadata for header in values.get(HEADERS, ())]
    return {**metadata[0], HEADERS: [h for i, h in enumerate(headers) if h not in headers[:i]]}


def header_map(metadata: Mapping[str, Any], joined: Mapping[str, Any]) -> I64 | None:
    """Return the index in the joined headers of each header of a channel; None if they stay the same."""
    own, every = list(metadata.get(HEADERS, ())), list(joined.get(HEADERS, ()))
    return None if own == every[: len(own)] else np.array([every.index(header) for header in own], np.int64)
