"""Records of a ULog other than data messages: definitions, keyed records, logged strings, dropouts, marks."""

from __future__ import annotations

import struct
from functools import cached_property
from typing import NamedTuple

import numpy as np

from logreel.formats.ulog import records
from logreel.formats.ulog.clock import NS_PER_US
from logreel.formats.ulog.found import Found
from logreel.formats.ulog.keyed_records import KeyedRecords
from logreel.formats.ulog.records import DEFAULTS_FLAG, FILE_HEADER, FLAGS_AT, HEAD
from logreel.index.block_table import TIME_MAX
from logreel.io.arrays import I64, distinct
from logreel.io.source import Source


class LoggedString(NamedTuple):
    """A record ``L`` or ``C``.

    level  0…7 of syslog; for a byte other than a digit from 0 to 7: that byte less 48, modulo 256
    tag    0 for a record without one
    time   ns
    """

    level: int
    tag: int
    time: int
    text: bytes


class NonDataRecords:
    """All records of one log that are no data messages, by kind, with what was found while reading.

    texts     int64[n]: positions of logged strings (``L``, ``C``)
    dropouts  int64[n]: positions of dropouts (``O``)
    keyed     information, parameters and defaults (``I``, ``M``, ``P``, ``Q``)
    """

    def __init__(self, source: Source, found: Found) -> None:
        self.source, self.found = source, found
        kinds = source.data[found.notes + 2]
        self.texts: I64 = found.notes[(kinds == ord("L")) | (kinds == ord("C"))]
        self.dropouts: I64 = found.notes[kinds == ord("O")]
        self.keyed = KeyedRecords(source, found)

    # -------------------------------------------------------------------------------------------- positions

    @cached_property
    def positions(self) -> I64:
        """int64[n]: positions of all records, ascending."""
        return distinct(np.concatenate([self.found.parsed, self.found.notes]).astype(np.int64))

    def ends_of(self, positions: I64) -> I64:
        """Return the positions where the records at *positions* end."""
        data = self.source.data
        return (
            positions + HEAD + (data[positions].astype(np.int64) | data[positions + 1].astype(np.int64) << 8)
        )

    @cached_property
    def marks(self) -> I64:
        """int64[n]: positions of records without content of their own, which stand among messages: sync marks …"""
        return np.setdiff1d(self.found.notes, np.concatenate([self.texts, self.dropouts]))

    @cached_property
    def initial_parameters(self) -> I64:
        """int64[n]: positions of all defaults, and of the parameters among the definitions."""
        initial = [at for at in self.keyed.positions("P") if self.keyed.is_initial(at)]
        return np.array(initial + self.keyed.positions("Q"), np.int64)

    # ---------------------------------------------------------------------------------------------- content

    def formats(self) -> list[bytes]:
        """Return the payloads of all format records."""
        return [records.payload_at(self.source, at) for at in self.keyed.positions("F")]

    def subscriptions(self) -> list[tuple[int, int | None]]:
        """Return the position of each subscription and its channel number; None for an ignored subscription."""
        numbers = {(t.name, t.instance): i for i, t in enumerate(self.found.channels) if t.segment == 1}
        found = []
        for at in self.keyed.positions("A"):
            instance, _, name = records.parse_subscription(records.payload_at(self.source, at))
            found.append((at, numbers.get((name, instance))))
        return found

    def has_tag(self, at: int) -> bool:
        """Return whether the logged string at a position is of the kind that has a tag."""
        return int(self.source.view[at + 2]) == ord("C")

    def string_at(self, at: int) -> LoggedString:
        """Return the logged string at a position."""
        payload = records.payload_at(self.source, at)
        if self.has_tag(at):
            level, tag, stamp = struct.unpack_from("<BHQ", payload)
            text = payload[11:]
        else:
            level, stamp = struct.unpack_from("<BQ", payload)
            tag, text = 0, payload[9:]
        return LoggedString((level - 0x30) & 0xFF, tag, min(stamp * NS_PER_US, TIME_MAX), text)

    def dropout_ms(self, at: int) -> int:
        """Return the duration in ms of the dropout at a position."""
        return int.from_bytes(records.payload_at(self.source, at), "little")

    @property
    def lacks_defaults_flag(self) -> bool:
        """Whether the log has defaults of parameters that its flag bits do not announce."""
        flags = int(self.source.view[FLAGS_AT]) if self.found.begin > FILE_HEADER else 0
        return not flags & DEFAULTS_FLAG and bool(self.keyed.positions("Q"))
