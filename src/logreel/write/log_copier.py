"""The interface for copying logs into a new log of one format: ``LogCopier``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from logreel.errors import LogError, UnsupportedError
from logreel.index.gather import Rows
from logreel.io.arrays import I64
from logreel.io.source import Buffer
from logreel.log.log import Log
from logreel.log.scan import ORIGINAL, Schema, channel_key
from logreel.registry.format import Format
from logreel.registry.registry import formats
from logreel.write.format_writer import FormatWriter, joined


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A part of a log to be copied.

    rows        wanted rows of each channel; see ``MessageIndex.rows_between``
    start, end  requested interval, ns; None: no bound
    in_force    True: also copy the state that was valid at *start*
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


class Masking(Protocol):
    """Changes of what a log holds besides messages, where it gives away what others should not know."""

    def value(self, name: str, value: Any) -> Any:
        """Return the new value of an entry of the metadata or of a parameter; of the same type."""
        ...

    def name(self, what: str, name: str) -> str:
        """Return the new name of an attachment or an entry; *what*: the word for it."""
        ...

    def content(self, name: str, data: bytes) -> bytes:
        """Return the new content of an attachment."""
        ...

    def time(self, time: int) -> int:
        """Return the new time of an attachment, ns since 1970; 0, which means unknown, stays."""
        ...


class LogCopier:
    """Copies logs into the file of a FormatWriter of one format; returned by ``Format.copier``.

    The methods copy nothing that is specific to the format, so a format without its own LogCopier can be written, too.

    clock  ``utc`` if the UTC offset of the source is added to all times, else ``log``
    replaced_types  types that get other definitions, so that those of the source are not copied
    replaced_metadata  names of metadata of the log that get other values, or none, so that they are not copied
    keepable      names of the metadata and attachments of a log of another format that a channel keeps for converting
                  back, by ``metadata`` and ``attachment``: that the format cannot hold them is no loss
    kept          names of those that the format did not hold
    masking  changes of metadata, parameters and attachments of a log of the same format; None: they stay
    parameters_are_messages  True: parameters of a log of another format are written as messages
    repairs  True: a damaged log is recovered, so that what other readers refuse is left out, with a note
    """

    def __init__(self, writer: FormatWriter) -> None:
        self.writer = writer
        self.clock = "log"
        self.replaced_types: frozenset[str] = frozenset()
        self.replaced_metadata: frozenset[str] = frozenset()
        self.keepable: Mapping[str, Collection[str]] = {}
        self.kept: dict[str, list[str]] = {}
        self.masking: Masking | None = None
        self.parameters_are_messages = False
        self.repairs = False

    # ---------------------------------------------------------------------------------- besides messages

    def copy_metadata(self, log: Log) -> list[str]:
        """Copy what a log of the same format holds besides messages; return sentences about what was left out.

        Called before the first channel is added; of several logs, the first has precedence.
        """
        return []

    def import_foreign(self, log: Log, returns: bool) -> list[str]:
        """Copy metadata, parameters and attachments of a log of another format, as far as they fit.

        returns  True: the log was converted from this format, so unsupported content is not reported as a loss

        Returns sentences about what was left out.
        """
        names = metadata_names(log)
        sentences = self.try_each(
            "metadata", names, lambda name: self.import_metadata(log, name, returns), returns
        )
        parameters = () if self.parameters_are_messages else log.parameters
        sentences += try_each(
            "parameter", parameters, lambda name: self._import_parameter(log, name), returns
        )
        return sentences + self.try_each(
            "attachment", log.attachments, lambda name: self._import_attachment(log, name), returns
        )

    def try_each(
        self, what: str, names: Iterable[str], give: Callable[[str], None], quiet: bool
    ) -> list[str]:
        """Call *give* with each name; return sentences about those that were left out and are not ``keepable``.

        what   ``metadata``, ``parameter`` or ``attachment``
        quiet  as for ``try_each``
        """

        def give_or_keep(name: str) -> None:
            try:
                give(name)
            except LogError:
                if name not in self.keepable.get(what, ()):
                    raise
                self.kept.setdefault(what, []).append(name)

        return try_each(what, names, give_or_keep, quiet)

    def import_metadata(self, log: Log, name: str, returns: bool) -> None:
        """Write an entry of the metadata of a log of another format; *returns* as in ``import_foreign``."""
        self.writer.metadata(name, log.metadata[name])

    def _import_parameter(self, log: Log, name: str) -> None:
        value = log.parameters[name].value
        if value is not None:
            self.writer.parameter(name, value, None)

    def _import_attachment(self, log: Log, name: str) -> None:
        attachment = log.attachments[name]
        self.writer.attachment(name, attachment.read(), attachment.media_type)

    # ------------------------------------------------------------------------------------------ messages

    def copy_records(self, excerpt: Excerpt) -> bool:
        """Copy part of a log of the same format record by record; return False, with nothing done, if impossible."""
        return False

    def copy_files(self, excerpts: Sequence[Excerpt]) -> bool:
        """Copy parts of files of one recording record by record, one after another; return False as ``copy_records``.

        All are of the same format and clock, have the same names of channels, and do not overlap in time.
        """
        return False

    def side_columns(self, log: Log, channel: int, offset: I64) -> I64 | None:
        """Return int64[n, k]: the side columns of messages of *log*, of the same format, by payload *offset*.

        They are written with the messages (``Payloads.side_columns``). None: the channel has none.
        """
        return None

    # ----------------------------------------------------------------------------------- joining channels

    def merge_key(self, topic: str, schema: Schema, metadata: Mapping[str, Any]) -> Hashable:
        """Return a key that is equal for channels of several logs which become one channel."""
        return channel_key(topic, schema, metadata)

    def merged_metadata(self, metadata: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """Return the metadata of a channel that is joined from several with equal ``merge_key``."""
        return metadata[0]

    def side_column_map(self, metadata: Mapping[str, Any], merged: Mapping[str, Any]) -> I64 | None:
        """Return the new value of each value of the last side column when a channel is joined into the *merged* one.

        None: values stay the same.
        """
        return None

    def count_key(self, topic: str, metadata: Mapping[str, Any]) -> str:
        """Return the name by which messages of a channel are counted in the source and in the new file.

        That is not the topic where topics follow from content and may differ in the new file.
        """
        return topic


def metadata_names(log: Log) -> list[str]:
    """Return the names of the metadata of *log* that a log of another format can have, too.

    The entry named after the format and ``Format.file_facts`` describe the file itself, and what channels were before
    describes messages. Of a log that was converted before, both formats can have left facts of a file.
    """
    known = formats()
    facts = {
        fact for name in (log.format, log.converted_from) if name in known for fact in known[name].file_facts
    }
    facts.add(log.format)
    return [name for name in log.metadata if name not in facts and not name.startswith(f"{ORIGINAL}/")]


def copier_for(format: Format, writer: FormatWriter) -> LogCopier:
    """Return the LogCopier that *format* offers for *writer*, else one that copies nothing format-specific."""
    copier: LogCopier = (format.copier or LogCopier)(writer)
    return copier


def try_each(what: str, names: Iterable[str], give: Callable[[str], None], quiet: bool) -> list[str]:
    """Call *give* with each name; return sentences about those that raised a LogError.

    quiet  True: do not report UnsupportedError
    """
    left, why, sentences = list[str](), "", list[str]()
    for name in names:
        try:
            give(name)
        except UnsupportedError as error:
            left.append(name)
            why = error.text
        except LogError as error:
            sentences.append(f"{what} {name!r} was left out: {error.text}")
    if left and not quiet:
        shown = ", ".join(repr(name) for name in left[:5]) + " …" * (len(left) > 5)
        sentences.append(f"{what} {shown} left out: {why}")
    return sentences


#: Takes bytes of the new file.
Write = Callable[[memoryview], object]
#: Mean length below which ranges are joined before they are written, else they are written one by one.
SHORT = 4096
#: Bytes written at once.
STEP = 4 << 20


def joined_ranges(start: I64, end: I64) -> tuple[I64, I64]:
    """Return ranges in ascending order, adjacent ones joined; int64[n] starts and ends."""
    if not len(start):
        return start, end
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    cut = np.flatnonzero(start[1:] != end[:-1])
    return start[np.concatenate([[0], cut + 1])], end[np.concatenate([cut, [len(end) - 1]])]


def write_ranges(write: Write, data: Buffer, start: I64, end: I64) -> None:
    """Pass the ranges data[start[i]:end[i]] to *write*, one after another."""
    if int((end - start).sum()) < SHORT * len(start):
        _in_steps(write, joined(data, start, end - start))
        return
    for a, b in zip(start.tolist(), end.tolist(), strict=True):
        _in_steps(write, data[a:b])


def _in_steps(write: Write, data: Buffer) -> None:
    for at in range(0, len(data), STEP):
        write(memoryview(data[at : at + STEP]))  # type: ignore[arg-type]
