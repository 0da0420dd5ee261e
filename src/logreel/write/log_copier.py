"""The interface for copying logs into a new log of one format: ``LogCopier``.

What a channel was before a conversion to another format, an ``Original``, is kept in its metadata, so that it can be
converted back. That of one channel also says what the log was: formats need no place of their own for that.
"""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from logreel.errors import LogError, UnsupportedError
from logreel.index.gather import Rows
from logreel.io.arrays import I64
from logreel.io.source import Buffer
from logreel.log.log import Channel, Log
from logreel.log.scan import MADE_OF, ORIGINAL, Attachment, Schema
from logreel.registry.format import Format, channel_key
from logreel.registry.registry import formats
from logreel.write.format_writer import FormatWriter, joined

#: Key of bytes in JSON.
_BYTES = "$base64"
#: Bytes of attachments that a channel keeps: all readers of the new log read them with its definition.
MOST_ATTACHED = 1 << 20
#: Largest difference in ns between a time and what formats with coarser times store.
_COARSEST = 10**6


@dataclass(frozen=True, slots=True)
class OriginalLog:
    """A log of the format called *format*, besides its channels.

    start       ns at which it began; None if it was empty
    first       earliest time of its messages in ns, and *messages* their number: a log that was cut or moved has others
    utc_offset  ns from its clock, of *epoch*, to UTC; None if unknown
    metadata    with facts of the file, without what channels were before another conversion
    attachments  media type and bytes by name, of those that are small
    """

    format: str
    epoch: str
    utc_offset: int | None
    start: int | None
    first: int | None
    messages: int
    metadata: Mapping[str, Any]
    attachments: Mapping[str, tuple[str, bytes]]

    @classmethod
    def of(cls, log: Log) -> OriginalLog:
        """Return what *log* is."""
        metadata = {
            name: value for name, value in log.metadata.items() if not name.startswith(f"{ORIGINAL}/")
        }
        first, messages = _extent(log)
        small = {name: log.attachments[name] for name in small_attachments(log)}
        attachments = {name: (attachment.media_type, attachment.read()) for name, attachment in small.items()}
        return cls(log.format, log.epoch, log.utc_offset, log.start, first, messages, metadata, attachments)

    def is_all_of(self, log: Log) -> bool:
        """Return whether *log*, which was converted from it, still has all messages at their times."""
        first, messages = _extent(log)
        if messages != self.messages or first is None or self.first is None:
            return False
        return abs(first - self.first) <= _COARSEST

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "format": self.format,
            "epoch": self.epoch,
            "utc_offset": self.utc_offset,
            "span": [self.start, self.first, self.messages],
            "metadata": self.metadata,
            **({"attachments": self.attachments} if self.attachments else {}),
        }

    @classmethod
    def read(cls, values: Any) -> OriginalLog | None:
        """Return the log that plain data describe; None for anything else."""
        if not isinstance(values, dict):
            return None
        span, metadata = values.get("span"), values.get("metadata")
        stored = values.get("attachments")
        attachments = {
            name: (content[0], content[1])
            for name, content in (stored.items() if isinstance(stored, dict) else ())
            if isinstance(content, list) and [type(part) for part in content] == [str, bytes]
        }
        if not isinstance(span, list) or len(span) != 3 or not isinstance(metadata, dict):
            return None
        numbers = [values.get("utc_offset"), *span]
        known = [n is None or (type(n) is int and abs(n) < 1 << 63) for n in numbers]
        words = values.get("format"), values.get("epoch")
        if not all(known) or span[2] is None or not all(isinstance(word, str) for word in words):
            return None
        return cls(str(words[0]), str(words[1]), numbers[0], span[0], span[1], span[2], metadata, attachments)

    def attached(self) -> list[Attachment]:
        """Return the attachments as those of a log."""
        return [
            Attachment(name, media_type, len(data), lambda data=data: data)  # type: ignore[misc]
            for name, (media_type, data) in self.attachments.items()
        ]


def small_attachments(log: Log) -> list[str]:
    """Return the names of the first attachments of *log* that are together small enough to be kept with a channel."""
    sizes = itertools.accumulate(attachment.size for attachment in log.attachments.values())
    return [name for name, total in zip(log.attachments, sizes, strict=True) if total <= MOST_ATTACHED]


def _extent(log: Log) -> tuple[int | None, int]:
    """Return the earliest time of all messages in ns, None if there is none, and the number of messages."""
    first = [int(ch.times.min()) for ch in log.channels.values() if len(ch) and MADE_OF not in ch.metadata]
    count = sum(len(ch) for ch in log.channels.values() if MADE_OF not in ch.metadata)
    return min(first, default=None), count


@dataclass(frozen=True, slots=True)
class Original:
    """A channel of a log of the format called *format*.

    restamped  whether messages got other times than those in their fields (``Scan.logged_times``)
    log        what its log was; None in all channels but one
    """

    format: str
    topic: str
    schema: Schema
    metadata: Mapping[str, Any]
    restamped: bool = False
    log: OriginalLog | None = None

    def text(self) -> str:
        """Return JSON text of it; metadata that JSON cannot hold are left out."""
        raw = self.schema.raw
        definition = (
            {"data": base64.b64encode(raw).decode()} if self.schema.data else {"definition": self.schema.text}
        )
        return json.dumps(
            {
                "format": self.format,
                "topic": self.topic,
                "type": self.schema.name,
                "encoding": self.schema.encoding,
                **definition,
                "metadata": {name: value for name, value in self.metadata.items() if _is_plain(value)},
                **({"restamped": True} if self.restamped else {}),
                **({"log": self.log.as_dict()} if self.log is not None else {}),
            },
            separators=(",", ":"),
            default=_other_values,
        )

    @classmethod
    def read(cls, text: Any) -> Original | None:
        """Return the channel that the JSON *text* describes; None for anything else."""
        return _read(text)


def original_of(ch: Channel) -> Original | None:
    """Return what *ch* was, by its metadata, or else by that of its log; None if it was not converted."""
    return Original.read(ch.metadata.get(ORIGINAL, ch.log.metadata.get(f"{ORIGINAL}/{ch.topic}")))


def _read(text: Any) -> Original | None:
    try:
        content = json.loads(text, object_hook=_bytes_again) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(content, dict):
        return None
    words = [content.get(name) for name in ("format", "topic", "type", "encoding")]
    metadata, definition = content.get("metadata"), content.get("definition", "")
    if not all(isinstance(word, str) for word in (*words, definition)) or not isinstance(metadata, dict):
        return None
    data = b""
    if isinstance(content.get("data"), str):
        try:
            data = base64.b64decode(content["data"], validate=True)
        except ValueError:
            return None
    fmt, topic, name, encoding = (str(word) for word in words)
    return Original(
        fmt,
        topic,
        Schema(name, encoding, definition, data),
        metadata,
        content.get("restamped") is True,
        OriginalLog.read(content.get("log")),
    )


def original_log_of(log: Log, format: str) -> OriginalLog | None:
    """Return what *log* was in the format called *format*; None if it was not converted from that."""
    for ch in log.channels.values():
        was = original_of(ch)
        if was is not None and was.log is not None and was.log.format == format:
            return was.log
    return None


def _other_values(value: Any) -> Any:
    """Return plain data for a value that JSON has no place for."""
    if isinstance(value, bytes):
        return {_BYTES: base64.b64encode(value).decode()}
    if isinstance(value, Mapping):
        return dict(value)
    return value.item() if hasattr(value, "item") else list(value)


def _bytes_again(values: dict[str, Any]) -> Any:
    return base64.b64decode(str(values[_BYTES])) if values.keys() == {_BYTES} else values


def _is_plain(value: Any) -> bool:
    try:
        return bool(json.loads(json.dumps(value)) == value)
    except (TypeError, ValueError, RecursionError):
        return False


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
        write(data[at : at + STEP].data)
