"""Records with a key: information, attachments, parameters with their changes and defaults."""

from __future__ import annotations

import codecs
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from logreel.formats.ulog import records
from logreel.formats.ulog.clock import UTC_OFFSET
from logreel.formats.ulog.definitions import Definitions, parse_format
from logreel.formats.ulog.found import Found
from logreel.formats.ulog.information import OWN, RecordDetails, is_binary, type_of, value_of
from logreel.formats.ulog.records import KeyValue
from logreel.io.arrays import I64, distinct
from logreel.io.source import Source
from logreel.log.scan import Attachment, Change, Parameter

XZ_MAGIC = b"\xfd7zXZ\x00"
#: Information that metadata begins with.
FIRST = (
    "sys_name",
    "ver_hw",
    "ver_sw_release",
    "ver_vendor_sw_release",
    "ver_sw_branch",
    "ver_sw",
    "time_ref_utc",
)
#: The kinds of default that a ``Q`` record states, by bit.
DEFAULT_KINDS = ("system", "setup")


@dataclass(frozen=True, slots=True)
class Entry:
    """A record with a key: position, kind, key with value, and suffix of its segment."""

    offset: int
    kind: str
    key: KeyValue
    suffix: str

    @property
    def name(self) -> str:
        """Name of the key, with the suffix of its segment."""
        return self.key.name + self.suffix

    @property
    def value(self) -> Any:
        """The value as text, number, list or bytes; see ``KeyValue.value``."""
        return self.key.value()

    @property
    def default_kinds(self) -> list[str]:
        """The defaults that a ``Q`` record states: ``system``, ``setup`` or both."""
        return [kind for bit, kind in enumerate(DEFAULT_KINDS) if self.key.head >> bit & 1]


class KeyedRecords:
    """The ``I``, ``M``, ``P`` and ``Q`` records of one log, parsed lazily."""

    def __init__(self, source: Source, found: Found) -> None:
        self._source, self._found = source, found
        self._parsed = np.array(found.parsed, np.int64)
        self._kinds = source.data[self._parsed + 2]

    def positions(self, *letters: str) -> list[int]:
        """Return the positions of records of these kinds, which must be among ``records.PARSED``."""
        found: list[int] = self._parsed[np.isin(self._kinds, [ord(letter) for letter in letters])].tolist()
        return found

    @cached_property
    def _phases(self) -> list[int]:
        """Position where the definitions of each segment end; of a segment without definitions: where it begins."""
        notes = self._found.notes
        texts = notes[np.isin(self._source.data[notes + 2], (ord("L"), ord("C")))]
        data = distinct(np.concatenate([np.array(self.positions("A"), np.int64), texts]))
        own = zip(self._found.segments, self._found.own_definitions, strict=True)
        ends = [*data.tolist(), self._source.size]
        return [int(ends[int(np.searchsorted(data, at))]) if fresh else at for at, fresh in own]

    @property
    def data_phase(self) -> int:
        """File position where the first definitions end."""
        return self._phases[0]

    def is_initial(self, offset: int) -> bool:
        """Return whether a record is among the definitions.

        A parameter there is an initial value, a later one a change.
        """
        return offset < self._phases[self._found.segment_of(offset) - 1]

    @cached_property
    def entries(self) -> list[Entry]:
        """All records with a key, in file order."""
        found = []
        for at in self.positions("I", "M", "P", "Q"):
            kind = chr(self._source.view[at + 2])
            key = records.parse_key(records.payload_at(self._source, at), kind in "MQ")
            found.append(Entry(at, kind, key, self._found.suffix(at)))
        return found

    @cached_property
    def multiples(self) -> dict[str, list[list[Entry]]]:
        """``M`` records by key: a list of entries, each a list of parts.

        A part that continues an entry begins one if there is none.
        """
        found: dict[str, list[list[Entry]]] = {}
        for e in self.entries:
            if e.kind == "M":
                entries = found.setdefault(e.name, [])
                if e.key.head == 0 or not entries:
                    entries.append([])
                entries[-1].append(e)
        return found

    @cached_property
    def _definitions(self) -> list[Definitions]:
        """The formats of each segment, including those without a subscription."""
        found = [Definitions()]
        for fresh in self._found.own_definitions[1:]:
            found.append(Definitions() if fresh else found[-1])
        for at in self.positions("F"):
            text = parse_format(records.payload_at(self._source, at))
            found[self._found.segment_of(at) - 1].add(text)
        return found

    def _value(self, entry: Entry) -> Any:
        return value_of(entry.key, self._definitions[self._found.segment_of(entry.offset) - 1])

    def _texts(self, parts: list[Entry]) -> list[str]:
        """Decode the parts of one text; a character that was cut in two belongs to the later part."""
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        return [decode(e.key.data, e is parts[-1]) for e in parts]

    def metadata(self) -> dict[str, Any]:
        """Return information by name.

        Multiple information is a list of entries, each a list of parts; binary entries are attachments instead.
        """
        details, found = RecordDetails(), dict[str, Any]()
        single = {e.name: e for e in self.entries if e.kind == "I" and e.key.name != UTC_OFFSET}
        for name, e in single.items():
            found[name] = self._value(e)
            self._add_details(details, "I", name, [e], [found[name]])
        for name, entries in self.multiples.items():
            if is_binary(entries[0][0].key):
                details.parts[name] = [[len(e.key.data) for e in parts] for parts in entries]
                continue
            is_text = all(type_of(e.key) == "char[]" for parts in entries for e in parts)
            found[name] = [self._texts(p) if is_text else [self._value(e) for e in p] for p in entries]
            every = [value for parts in found[name] for value in parts]
            self._add_details(details, "M", name, [e for parts in entries for e in parts], every)
        first = {name: found[name] for name in FIRST if name in found}
        own = details.metadata()
        return first | found | ({OWN: own} if own and OWN not in found else {})

    def _add_details(
        self, details: RecordDetails, letter: str, name: str, entries: list[Entry], values: list[Any]
    ) -> None:
        payloads = [records.payload_at(self._source, e.offset) for e in entries]
        keys = [e.key for e in entries]
        definitions = self._definitions[self._found.segment_of(entries[0].offset) - 1]
        details.add(letter, name, list(zip(keys, payloads, strict=True)), values, definitions)

    def attachments(self) -> list[Attachment]:
        """Return every entry of multiple information as an attachment."""
        return [
            _attachment(name if len(entries) == 1 else f"{name}-{i}", parts)
            for name, entries in self.multiples.items()
            for i, parts in enumerate(entries)
        ]

    def parameters(self, times_of: Callable[[list[int]], I64]) -> list[Parameter]:
        """Return all parameters; *times_of* gives int64[n] ns for file positions."""
        initial: dict[str, Any] = {}
        changes: dict[str, list[Entry]] = {}
        defaults: dict[str, dict[str, Any]] = {}
        types: dict[str, str] = {}
        for e in self.entries:
            if e.kind in "PQ":
                types.setdefault(e.name, e.key.type)
            if e.kind == "Q":
                defaults.setdefault(e.name, {}).update(dict.fromkeys(e.default_kinds, e.value))
            elif e.kind == "P" and self.is_initial(e.offset):
                initial[e.name] = e.value
            elif e.kind == "P":
                changes.setdefault(e.name, []).append(e)
        moved = [e.offset for entries in changes.values() for e in entries]
        when = dict(zip(moved, times_of(moved).tolist(), strict=True))
        return [
            Parameter(
                name,
                kind,
                initial.get(name),
                tuple(Change(when[e.offset], e.value) for e in changes.get(name, ())),
                defaults.get(name, {}),
            )
            for name, kind in types.items()
        ]

    def parameter_bytes(self, entry: Entry) -> bytes:
        """Encode a ``P`` or ``Q`` record as a message of the channel ``~parameter``."""
        kind = "initial" if self.is_initial(entry.offset) else "change"
        if entry.kind == "Q":
            kind = "+".join(entry.default_kinds) + " default"
        texts = (t.encode() for t in (entry.key.name, kind, entry.key.type))
        return b"".join(bytes([len(t)]) + t for t in texts) + struct.pack("<d", float(entry.value))


def _attachment(name: str, parts: list[Entry]) -> Attachment:
    content = b"".join(p.key.data for p in parts)
    kind, suffix = ("application/octet-stream", "bin")
    if parts[0].key.type == "char":
        kind, suffix = "text/plain", "txt"
    elif content.startswith(XZ_MAGIC):
        kind, suffix = "application/x-xz", "xz"
    return Attachment(f"{name}.{suffix}", kind, len(content), lambda: content)
