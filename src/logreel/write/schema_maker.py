"""The interface for schemas of one format: ``SchemaMaker``."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass
from logreel.errors import DefinitionError, UnsupportedError
from logreel.io.arrays import I64
from logreel.layout.layout import Layout
from logreel.log.scan import Schema
from logreel.write.payloads import Payloads

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class PayloadSplitter:
    """Payloads from encoded rows, for a channel whose Layout describes more than its payloads.

    optional      fields that a table may leave out; they are zero then
    split         Payloads from messages encoded by the Layout: data, and int64[n + 1] where each begins
    side_columns  names of the numbers that ``split`` returns per message but the Layout repeats per record; a message
                  given as a dict has them at its top level
    """

    optional: Collection[str]
    split: Callable[[NDArray[np.uint8], I64], Payloads]
    side_columns: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Abilities:
    """What the definitions of a format can express; messages of other formats are fitted to it.

    name           pattern of valid names of fields
    times          whether there are types for times and durations, in ns
    nested_arrays  whether the items of arrays can be arrays
    fixed_size     whether all messages of a channel have one size
    largest        largest message in bytes
    time_name      field with the time of the message, which the format adds; empty: none
    """

    name: re.Pattern[str] = re.compile(r".+", re.DOTALL)
    times: bool = True
    nested_arrays: bool = True
    fixed_size: bool = False
    largest: int = (1 << 31) - 1
    time_name: str = ""


@dataclass(frozen=True, slots=True)
class TextColumns:
    """Lines of text: time int64[n] ns, level int64[n] of the format, text and source as arrays of strings."""

    time: I64
    level: I64
    text: pa.Array[Any]
    source: pa.Array[Any]


@dataclass(frozen=True, slots=True)
class TextChannel:
    """The channel in which a format holds lines of text.

    levels      level of the format for each syslog level from 0 to 7
    unknown     level of the format for a line without level
    columns     function that returns the fields of messages, by name
    has_source  whether lines name their source; else it is in brackets before the text
    """

    topic: str
    schema: Schema
    levels: tuple[int, ...]
    unknown: int
    columns: Callable[[TextColumns], dict[str, Any]]
    has_source: bool = True

    def level_of(self, level: I64) -> tuple[I64, I64]:
        """Return levels of the format for syslog levels int64[n], -1 for unknown ones, and how these are read again."""
        table = np.array([*self.levels, self.unknown], np.int64)
        known = np.where((level >= 0) & (level < len(self.levels)), level, len(self.levels))
        stored = table[known]
        # The least severe of the levels that share a number, as the lens of text reads them.
        again = {number: n for n, number in enumerate(self.levels)}
        read = np.array([again.get(int(one), -1) for one in table], np.int64)
        for n in NORMAL:
            read[[i for i, one in enumerate(table.tolist()) if one == self.levels[n]]] = n
        return stored, read[known]


#: Syslog levels that readers give for levels with several: debug, information, warning, error.
NORMAL = (7, 6, 4, 3)


class SchemaMaker:
    """Schemas of new channels, and how their messages are encoded from dicts and tables.

    title  name of the format, for error texts
    """

    #: ``Schema.encoding`` of definitions that users may give as text; empty: they cannot.
    encoding = ""
    #: Whether all messages of a channel have one size, so that strings and arrays cannot vary.
    fixed_size = False
    #: What ``schema_from_layout`` can express; None: messages of other formats are not fitted to it.
    abilities: Abilities | None = None

    #: Nanoseconds per unit of the field with the time of the message, in definitions that ``schema_from_layout`` makes.
    time_unit = 1
    #: Whether channels have metadata; else those of transcoded channels become metadata of the log.
    keeps_metadata = True

    def __init__(self, title: str) -> None:
        self.title = title

    def schema_from_layout(self, topic: str, layout: Layout, name: str = "") -> Schema:
        """Return a Schema in the language of the format for messages with the fields of *layout*.

        name  name of the type, in formats that do not name types by topics; empty: after the topic

        Messages are then encoded by ``self.layout(number)``: same field names and values, but maybe other bytes than
        those of *layout*. Raises DefinitionError for what the format cannot hold.
        """
        raise DefinitionError(f"{self.title} has no definitions of its own for messages of channel {topic!r}")

    def schema_to_encode(self, topic: str, layout: Layout, name: str = "") -> Schema:
        """Return a Schema as ``schema_from_layout`` does, for many messages that are encoded from columns."""
        return (
            self.schema_from_layout(topic, layout, name) if name else self.schema_from_layout(topic, layout)
        )

    def schema_from_text(self, topic: str, text: str, file: str) -> Schema:
        """Return the Schema that *text*, read from *file*, defines for *topic*."""
        if not self.encoding:
            raise UnsupportedError(f"{self.title} takes no definitions as text")
        return Schema(PurePath(file).stem, self.encoding, text)

    def accepts_schema(self, schema: Schema) -> bool:
        """Return whether a channel can be written with *schema*, taken from a log of any format."""
        return bool(self.encoding) and schema.encoding == self.encoding

    def layout(self, number: int) -> Layout:
        """Return the Layout that encodes dicts and tables of a channel; raises DefinitionError if it has none."""
        raise DefinitionError(f"{self.title} writes messages as bytes only")

    def splitter(self, number: int) -> PayloadSplitter | None:
        """Return how to get payloads from encoded rows of a channel; None if these are the payloads."""
        return None

    def encode(self, number: int, table: pa.Table, records: I64 | None = None) -> Payloads:
        """Return the payloads of messages of a channel: one column per field of ``self.layout(number)``.

        records  int64[n]: number of rows of each message, where messages hold many records

        Raises UsageError for a column that is missing or has values that do not fit.
        """
        from logreel.layout.encode import encode_table

        splitter = self.splitter(number)
        data, start = encode_table(self.layout(number), table, records)
        return Payloads(data, start[:-1], np.diff(start)) if splitter is None else splitter.split(data, start)

    def text_channel(self) -> TextChannel | None:
        """Return the channel for lines of text, or None if they are messages as all others."""
        return None

    def topic_for(self, topic: str) -> str:
        """Return the topic that a channel of a log of another format gets; the FormatWriter may still change it."""
        return topic

    def time_field(self, number: int) -> tuple[str, int] | None:
        """Return the field of a channel that holds the time of the message, and its ns per unit; None if none does."""
        return None

    def time_dependent_fields(self, number: int) -> Collection[str]:
        """Return further fields of a channel that the FormatWriter sets by the times of the messages."""
        return ()

    def computed_fields(self, number: int) -> Collection[str]:
        """Return the fields that readers compute and payloads do not hold; they are ignored in given messages."""
        return ()
