"""The interface for writing messages of one format: ``FormatWriter``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass
from logreel.errors import UnsupportedError, UsageError
from logreel.io.append_file import Appender
from logreel.io.arrays import I64
from logreel.log.log import Log
from logreel.log.scan import Schema, free_name
from logreel.write.payloads import Payload, Payloads
from logreel.write.schema_maker import SchemaMaker


class SomeRefusedError(UsageError):
    """Some messages of a call of ``FormatWriter.messages`` cannot be written; all others were.

    rows   int64[k]: their positions in the call
    total  number of messages in the call
    """

    def __init__(self, text: str, rows: I64, total: int) -> None:
        super().__init__(text)
        self.rows, self.total = rows, total


@dataclass(frozen=True)
class SourceClock:
    """The clock of the logs that a new log is written from.

    utc_offset  ns to add to a time to get UTC since 1970; None if the sources do not say
    epoch       meaning of time 0: ``unix``, ``boot`` or ``start``
    is_whole    the new log holds all messages of a single source, so also those that say the UTC time
    first       returns the first time written, ns; None if nothing is; called at most once
    """

    utc_offset: int | None
    epoch: str
    is_whole: bool
    first: Callable[[], int | None]

    @cached_property
    def start(self) -> int | None:
        """First time written, ns, or None; messages copied as context are ignored."""
        return self.first()


class FormatWriter:
    """Writer of one format: appends whole records to *out* and commits them; returned by ``Format.create``.

    A minimal writer implements ``channel`` and ``messages``. What the format cannot hold raises UnsupportedError.

    schemas         schemas and encoding of its channels
    notes           sentences about content that was written differently than given
    extra_messages  messages that the writer added by itself, or (below 0) left out since they are already there; by
                    ``LogCopier.count_key``
    source_clock    clock of the source logs; None if there are none
    old_channels    schemas by topic of the channels of the log that is continued, in the order of their numbers;
                    empty in a new log
    mixes_encodings  True: messages will come in other encodings than those of the source logs
    """

    #: Name of the format in error texts.
    title = "this format"
    #: What 0 means in times that are written: ``unix``, or ``start`` for clocks that begin with the log.
    epoch = "unix"
    #: Limits that every channel accepts: times in ns, bytes of a payload. Messages within these are collected and
    #: written in batches, others one by one; with ``largest`` -1 all are written one by one.
    earliest, latest, largest = -(1 << 63), (1 << 63) - 1, -1
    #: Names of the columns of ``Payloads.side_columns``, as in ``ChannelRules.side_columns`` of readers.
    side_column_names: tuple[str, ...] = ()
    #: Whether all channels must be added before the first message.
    defines_first = False
    #: Whether appended bytes are never changed later, so that they can be sent on at once.
    appends_only = False
    #: Whether channels of one topic and definition that differ in ``headers`` of their metadata, which those of each
    #: publisher do, are one channel for readers.
    joins_publishers = False

    def __init__(self, out: Appender, schemas: SchemaMaker | None = None) -> None:
        self.out = out
        self.schemas = schemas or SchemaMaker(self.title)
        self.notes: list[str] = []
        self.extra_messages = Counter[str]()
        self.source_clock: SourceClock | None = None
        self.mixes_encodings = False
        self.old_channels: dict[str, Schema] = {}

    def free_name(self, topic: str, taken: Collection[str]) -> str:
        """Return the name of *topic* in this format, changed where necessary to differ from the names *taken*."""
        return free_name(topic, taken)

    def continue_channels(self, log: Log) -> None:
        """Add the channels of *log*, the log that is continued, with their numbers in it; reserved ones are left out.

        For ``Format.append``. Channels of the file that is written need no second declaration: formats whose
        ``channel`` writes one override this.
        """
        for number, ch in enumerate(log.match(None)):
            self.copied_channel(number, ch.topic, ch.schema, ch.metadata)
            self.old_channels[ch.topic] = ch.schema

    def continues(self, name: str, schema: Schema, metadata: Mapping[str, Any]) -> bool:
        """Return whether messages of a channel can be written to that called *name* of the log that is continued."""
        return self.is_same_schema(self.old_channels[name], schema)

    def is_same_schema(self, old: Schema, new: Schema) -> bool:
        """Return whether messages of *new* can be written to a channel of the continued log, which has *old*.

        A *new* without a definition stands for that of the log.
        """
        if (new.name, new.encoding) != (old.name, old.encoding):
            return False
        return not new.raw or new.raw.split() == old.raw.split()

    def channel(self, number: int, topic: str, schema: Schema, metadata: Mapping[str, Any]) -> None:
        """Add a channel; numbers ascend from 0. Raises DefinitionError for a schema that cannot be written."""
        raise NotImplementedError

    def copied_channel(self, number: int, topic: str, schema: Schema, metadata: Mapping[str, Any]) -> None:
        """Add a channel of a log of the same format; formats may keep an invalid definition that can be written.

        It is noted in ``notes``. So damage to a definition costs no messages.
        """
        self.channel(number, topic, schema, metadata)

    def stored_times(self, time: I64) -> I64:
        """Return int64[n]: *time* in ns as reading the log gives it, where the format stores coarser times."""
        return time

    def message(self, channel: int, time: int, data: Payload) -> None:
        """Append one message at *time* ns."""
        zero, raw = np.zeros(1, np.int64), np.frombuffer(data, np.uint8)
        self.messages(np.array([channel], np.int32), zero + time, Payloads(raw, zero, zero + len(raw)))

    def messages(self, channel: NDArray[np.int32], time: I64, payloads: Payloads) -> None:
        """Append messages: channel int32[n], time int64[n] ns, n payloads, with side columns if the format has any.

        Raises SomeRefusedError if all messages but some were written, and any other UsageError if none was.
        """
        raise NotImplementedError

    def metadata(self, name: str, value: Any) -> None:
        """Write metadata of the log."""
        raise UnsupportedError(f"{self.title} has no place for metadata")

    def parameter(self, name: str, value: float | int | str, time: int | None) -> None:
        """Write a parameter set at *time* ns, or at the start for None."""
        raise UnsupportedError(f"{self.title} has no place for parameters")

    def text(self, time: int, level: int, text: str) -> None:
        """Append a line of text; *level* is a syslog number."""
        raise UnsupportedError(f"{self.title} has no place for text")

    def attachment(self, name: str, data: bytes, media_type: str) -> None:
        """Write an attachment."""
        raise UnsupportedError(f"{self.title} has no place for attachments")

    def commit(self) -> None:
        """Commit everything given so far, so that it can be read even if the file ends here."""

    def finish(self) -> None:
        """Write what completes the file."""
