"""What a new ULog takes over from others: definitions and records with keys, byte by byte."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np

from logreel.errors import DefinitionError
from logreel.formats.ulog import records
from logreel.formats.ulog.clock import NS_PER_US, UNIX_US, UTC_OFFSET
from logreel.formats.ulog.definitions import Definitions, FieldText, parse_format
from logreel.formats.ulog.keyed_records import Entry
from logreel.formats.ulog.non_data_records import NonDataRecords
from logreel.formats.ulog.records import DEFAULTS_FLAG, FILE_HEADER, FLAGS, FLAGS_AT, HEAD, BadRecord
from logreel.formats.ulog.write_records import key, packed, record
from logreel.log.log import Log
from logreel.log.schema import Schema
from logreel.write.format_writer import SourceClock


class MetadataCopier:
    """Collects from one log after another; what an earlier one says has precedence.

    header        file header and flags of the first log, without those that tell of appended parts
    has_defaults  whether there are defaults of parameters among the records collected so far
    """

    def __init__(self, definitions: Definitions) -> None:
        self.header, self.has_defaults = b"", False
        self._definitions = definitions
        self._known: dict[tuple[str, str, int], bytes] = {}
        self._multiples: dict[str, list[bytes]] = {}
        self._out = bytearray()

    def drain(self) -> bytes:
        """The records collected since the last time."""
        out, self._out = bytes(self._out), bytearray()
        return out

    def take(self, log: Log) -> list[str]:
        """Take over everything of *log* that is not there yet; tells what differs and was left out."""
        state: NonDataRecords = log.format_state
        if not self.header:
            self.header = _header(state)
        for payload in state.formats():
            text = parse_format(payload)
            if text.name not in self._definitions:
                self._definitions.add(text)
                self._out += record("F", payload)
        told = [sentence for entry in state.keyed.entries for sentence in self._entry(state, entry)]
        return [*told, *self._multiple(state), *_unknown(state)]

    def _entry(self, state: NonDataRecords, entry: Entry) -> Iterator[str]:
        """Take over information, a parameter or a default, unless there is one of its name."""
        if entry.key.name == UTC_OFFSET:
            return
        if entry.kind == "M" or (entry.kind == "P" and not state.keyed.is_initial(entry.offset)):
            return
        payload = records.payload_at(state.source, entry.offset)
        known = self._known.setdefault((entry.kind, entry.key.name, entry.key.head), payload)
        if known is payload:
            self.has_defaults |= entry.kind == "Q"
            self._out += record(entry.kind, payload)
        elif known != payload:
            what = {"I": "information", "P": "parameter", "Q": "default"}[entry.kind]
            yield f"{what} {entry.key.name!r} has another value in {state.source.name}: the first one is kept"

    def _multiple(self, state: NonDataRecords) -> list[str]:
        """Take over information in parts, as a whole by name."""
        told = []
        for name, entries in state.keyed.multiples.items():
            payloads = [records.payload_at(state.source, e.offset) for parts in entries for e in parts]
            if name not in self._multiples:
                self._multiples[name] = payloads
                self._out += b"".join(record("M", payload) for payload in payloads)
            elif self._multiples[name] != payloads:
                told.append(f"information {name!r} differs in {state.source.name}: the first one is kept")
        return told


def begun_at(header: bytes, start: int | None) -> bytes:
    """*header* with another start, ns; as it is where that would be by another kind of clock."""
    if start is None or start < 0:
        return header
    before, after = int.from_bytes(header[8:16], "little"), start // NS_PER_US
    if (before >= UNIX_US) != (after >= UNIX_US):
        return header
    return header[:8] + struct.pack("<Q", after) + header[FILE_HEADER:]


def utc_record(header: bytes, clock: SourceClock | None) -> bytes:
    """The information record of the UTC offset; empty where it is unknown or *header* has wall-clock time."""
    offset = None if clock is None else clock.utc_offset
    if offset is None or int.from_bytes(header[8:16], "little") >= UNIX_US:
        return b""
    return record("I", key(f"int64_t {UTC_OFFSET}", UTC_OFFSET), packed(UTC_OFFSET, "q", offset))


def _unknown(state: NonDataRecords) -> Iterator[str]:
    """Tell of records that only a copy of the file as it lies can keep."""
    kinds = state.source.data[state.found.notes + 2]
    count = {kind: n for kind, n in enumerate(np.bincount(kinds).tolist()) if n and records.is_unknown(kind)}
    if count:
        names, total = ", ".join(records.name_of(kind) for kind in count), sum(count.values())
        yield f"{total} record{'s' * (total > 1)} of unknown kinds ({names}) were left out of {state.source.name}"


def _header(state: NonDataRecords) -> bytes:
    """File header and flags; nothing is appended to the new file."""
    head, found = state.source.read(0, FILE_HEADER), state.found
    if found.begin == FILE_HEADER:
        return head
    payload = bytearray(state.source.read(FILE_HEADER + HEAD, found.begin - FILE_HEADER - HEAD))
    payload[8] &= ~1
    payload[16:FLAGS] = struct.pack("<3Q", 0, 0, 0)
    return head + record("B", bytes(payload))


def with_defaults_flag(head: bytes) -> bytes:
    """File header and flags, which are added where there are none, with the bit that announces default parameters."""
    if len(head) <= FLAGS_AT:
        head += record("B", bytes(FLAGS))
    return head[:FLAGS_AT] + bytes((head[FLAGS_AT] | DEFAULTS_FLAG,)) + head[FLAGS_AT + 1 :]


def renamed(schema: Schema, name: str, known: Definitions) -> list[str]:
    """Format texts that define *name* as *schema* does; nested types that mean something else get other names.

    Raises DefinitionError where the text of *schema* has something else.
    """
    try:
        lines = [parse_format(line.encode()) for line in schema.text.splitlines()]
    except BadRecord as error:
        raise DefinitionError(str(error)) from None
    names = {}
    for text in lines[1:]:
        new, n = text.name, 2
        while known.differs(new, text):
            new, n = f"{text.name}-{n}", n + 1
        names[text.name] = new
    if lines:
        names[lines[0].name] = name
    if all(old == new for old, new in names.items()):
        return schema.text.splitlines()
    return [
        f"{names[text.name]}:" + "".join(_field(f, names.get(f.type, f.type)) for f in text.fields)
        for text in lines
    ]


def _field(field: FieldText, kind: str) -> str:
    times = "" if field.times is None else f"[{field.times}]"
    return f"{kind}{times} {field.name};"
