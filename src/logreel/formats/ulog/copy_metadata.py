"""Copy definitions and records with keys from other ULogs, byte by byte."""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator

import numpy as np

from logreel.errors import DefinitionError
from logreel.formats.ulog import records
from logreel.formats.ulog.clock import NS_PER_US, UNIX_US, UTC_OFFSET
from logreel.formats.ulog.definitions import Definitions, FieldText, parse_format
from logreel.formats.ulog.information import pack_key, pack_number, pack_record
from logreel.formats.ulog.non_data_records import Entry, NonDataRecords
from logreel.formats.ulog.records import BASIC, DEFAULTS_FLAG, FILE_HEADER, FLAGS, FLAGS_AT, HEAD, BadRecord
from logreel.layout.nodes import SCALARS
from logreel.log.log import Log
from logreel.log.schema import Schema
from logreel.write.format_writer import SourceClock
from logreel.write.log_copier import Masking


class MetadataCopier:
    """Collects records from one log after another; those of earlier logs have precedence.

    header        file header and flags of the first log, without the flag and offsets of appended parts
    has_defaults  whether the records collected so far contain defaults of parameters
    masking       changes of information and parameters; None: they stay
    """

    def __init__(self, definitions: Definitions) -> None:
        self.header, self.has_defaults = b"", False
        self.masking: Masking | None = None
        self._definitions = definitions
        self._known: dict[tuple[str, str, int], bytes] = {}
        self._multiples: dict[str, list[bytes]] = {}
        self._out = bytearray()

    def take(self) -> bytes:
        """Return the records collected since the last call."""
        out, self._out = bytes(self._out), bytearray()
        return out

    def add(self, log: Log, without: Collection[str] = (), replaced: Collection[str] = ()) -> list[str]:
        """Collect the records of *log* that are new; return messages about records that differ and were left out.

        without   names of formats to leave out, unless others contain them
        replaced  names of information to leave out
        """
        state: NonDataRecords = log.format_state
        if not self.header:
            self.header = _header(state)
        formats = [(payload, parse_format(payload)) for payload in state.formats()]
        inner = {f.type for _, text in formats if text.name not in without for f in text.fields}
        for payload, text in formats:
            if text.name in without and text.name not in inner:
                continue
            if text.name not in self._definitions:
                self._definitions.add(text)
                self._out += pack_record("F", payload)
        messages = [
            text
            for entry in state.keyed.entries
            if entry.kind != "I" or entry.key.name not in replaced
            for text in self._add_entry(state, entry)
        ]
        return [*messages, *self._add_multiples(state, replaced), *_unknown_record_messages(state)]

    def _add_entry(self, state: NonDataRecords, entry: Entry) -> Iterator[str]:
        """Collect information, a parameter or a default if its name is new; else yield a message if it differs."""
        if entry.key.name == UTC_OFFSET:
            return
        if entry.kind == "M" or (entry.kind == "P" and not state.keyed.is_initial(entry.offset)):
            return
        payload = _masked(self.masking, entry, records.payload_at(state.source, entry.offset))
        known = self._known.setdefault((entry.kind, entry.key.name, entry.key.head), payload)
        if known is payload:
            self.has_defaults |= entry.kind == "Q"
            self._out += pack_record(entry.kind, payload)
        elif known != payload:
            what = {"I": "information", "P": "parameter", "Q": "default"}[entry.kind]
            yield f"{what} {entry.key.name!r} has another value in {state.source.name}: the first one is kept"

    def _add_multiples(self, state: NonDataRecords, replaced: Collection[str]) -> list[str]:
        """Collect multiple information, all entries of one name together; return messages about those that differ."""
        messages = []
        for name, entries in state.keyed.multiples.items():
            if name in replaced:
                continue
            payloads = [
                payload
                for parts in entries
                for payload in _masked_parts(
                    self.masking, parts, [records.payload_at(state.source, e.offset) for e in parts]
                )
            ]
            if name not in self._multiples:
                self._multiples[name] = payloads
                self._out += b"".join(pack_record("M", payload) for payload in payloads)
            elif self._multiples[name] != payloads:
                messages.append(f"information {name!r} differs in {state.source.name}: the first one is kept")
        return messages


def _masked(masking: Masking | None, entry: Entry, payload: bytes) -> bytes:
    """Return the payload of a record with a key, with its value as *masking* wants it; the type stays."""
    if masking is None:
        return payload
    key, head = entry.key, payload[: int(entry.kind in "MQ")]
    if key.type == "char":
        text = bytes(masking.value(key.name, key.data))
        if text == key.data:
            return payload
        return head + pack_key(f"char[{len(text)}] {key.name}", key.name) + text
    if key.count is not None or key.type not in BASIC:
        return payload
    dtype = np.dtype(SCALARS[BASIC[key.type]][0])
    if len(key.data) != dtype.itemsize:
        return payload
    old = np.frombuffer(key.data, dtype)[0].item()
    new = masking.value(key.name, old)
    if new == old or isinstance(old, bool):
        return payload
    return payload[: len(payload) - dtype.itemsize] + np.array(new).astype(dtype).tobytes()


def _masked_parts(masking: Masking | None, parts: list[Entry], payloads: list[bytes]) -> list[bytes]:
    """Return the payloads of the parts of one entry; a text is masked as a whole, and cut where it was."""
    keys = [one.key for one in parts]
    if masking is None or any(key.type != "char" for key in keys):
        return payloads
    text = b"".join(key.data for key in keys)
    new = bytes(masking.value(keys[0].name, text))
    if new == text:
        return payloads
    made, at = list[bytes](), 0
    for number, key in enumerate(keys):
        end = at + len(key.data) if number + 1 < len(keys) else len(new)
        part = new[at:end]
        if part or not made:
            made.append(payloads[number][:1] + pack_key(f"char[{len(part)}] {key.name}", key.name) + part)
        at = end
    return made


def with_start(header: bytes, start: int | None) -> bytes:
    """Return *header* with another start in ns; unchanged if only one of the two is wall-clock time."""
    if start is None or start < 0:
        return header
    before, after = int.from_bytes(header[8:16], "little"), start // NS_PER_US
    if (before >= UNIX_US) != (after >= UNIX_US):
        return header
    return header[:8] + struct.pack("<Q", after) + header[FILE_HEADER:]


def utc_record(header: bytes, clock: SourceClock | None) -> bytes:
    """Return the information record of the UTC offset; empty if it is unknown or *header* has wall-clock time."""
    offset = None if clock is None else clock.utc_offset
    if offset is None or int.from_bytes(header[8:16], "little") >= UNIX_US:
        return b""
    return pack_record(
        "I", pack_key(f"int64_t {UTC_OFFSET}", UTC_OFFSET), pack_number(UTC_OFFSET, "q", offset)
    )


def _unknown_record_messages(state: NonDataRecords) -> Iterator[str]:
    """Yield a message if there are records of unknown kinds, which only a copy of the whole file keeps."""
    kinds = state.source.data[state.found.notes + 2]
    count = {kind: n for kind, n in enumerate(np.bincount(kinds).tolist()) if n and records.is_unknown(kind)}
    if count:
        names, total = ", ".join(records.name_of(kind) for kind in count), sum(count.values())
        yield f"{total} record{'s' * (total > 1)} of unknown kinds ({names}) were left out of {state.source.name}"


def _header(state: NonDataRecords) -> bytes:
    """Return file header and flags of a log, without the flag and offsets of appended parts."""
    head, found = state.source.read(0, FILE_HEADER), state.found
    if found.begin == FILE_HEADER:
        return head
    payload = bytearray(state.source.read(FILE_HEADER + HEAD, found.begin - FILE_HEADER - HEAD))
    payload[8] &= ~1
    payload[16:FLAGS] = struct.pack("<3Q", 0, 0, 0)
    return head + pack_record("B", bytes(payload))


def with_defaults_flag(head: bytes) -> bytes:
    """Return file header and flags with the bit for default parameters set; flags are added if missing."""
    if len(head) <= FLAGS_AT:
        head += pack_record("B", bytes(FLAGS))
    return head[:FLAGS_AT] + bytes((head[FLAGS_AT] | DEFAULTS_FLAG,)) + head[FLAGS_AT + 1 :]


def renamed(schema: Schema, name: str, known: Definitions) -> list[str]:
    """Return format texts that define *name* as *schema* does; nested types in conflict with *known* get new names.

    Raises DefinitionError if the text of *schema* is invalid.
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
