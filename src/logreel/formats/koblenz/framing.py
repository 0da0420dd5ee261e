"""Framing of Koblenz messages: tables of the compiled walker, and evidence that a message begins at a position."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass
from logreel.errors import Problem
from logreel.formats.koblenz.definitions import VERSIONS, Kind, registered_types
from logreel.formats.koblenz.own_types import read_types
from logreel.formats.koblenz.records import (
    END_MARK,
    HEAD,
    MAX_SIZE,
    VALID_MARK,
    Head,
    SizeReading,
    are_plausible,
    content_end,
    is_end,
    read_head,
    read_heads,
)
from logreel.index.block_table import Blocks
from logreel.index.channel_index import FieldAt
from logreel.io.arrays import I64, distinct
from logreel.io.source import Source
from logreel.kernels import framed

#: Largest number of unknown types and versions; a file with more is damaged.
MAX_UNKNOWN = 256
#: Number of headers that must follow a message of a new unknown type, if only its own bytes are evidence for it. A
#: header has 38 bits that must be right, so two of them are no coincidence.
HEADERS_AFTER_UNKNOWN = 2
#: The same with other evidence: the message before ends there, the time index names the position, or the type is known
#: or occurred before.
HEADERS_AFTER_KNOWN = 1
#: Bytes searched for messages at once, at first and at most: most damage is short.
FIRST_STEP, MAX_STEP = 1 << 12, 1 << 20

_WORD = (1 << 64) - 1


class Framing:
    """Tables of the compiled walker, and evidence for messages, for one size reading and one valid mark.

    named  positions that the time index names
    raw    types and versions whose messages do not begin with the known fields; see ``Kind``
    kinds  by channel number of the walker
    spec, tags, keys  see kernels/framed.py
    """

    def __init__(
        self,
        source: Source,
        size_reading: SizeReading,
        mark: int = VALID_MARK,
        named: Collection[int] = (),
        raw: Collection[tuple[int, int]] = (),
    ) -> None:
        self.source, self.size_reading, self.mark = source, size_reading, mark
        self._named, self._raw = named, raw
        self.types = registered_types() | read_types(source)
        self.kinds: list[Kind] = []
        self.numbers: dict[tuple[int, int], int] = {}
        self.tags = np.zeros(256, framed.TAG)
        self.tags[mark] = framed.DATA, size_reading.base, MAX_SIZE, 0, 255
        self._unknown = 0
        for message_kind in self.types.values():
            for version in range(message_kind.version, message_kind.version + VERSIONS):
                self._add(Kind(message_kind.id, version, message_kind))
        self._believed = frozenset(self.numbers)
        self._build_tables()

    # ---------------------------------------------------------------------------------------------- tables

    def _add(self, message_kind: Kind) -> None:
        self.numbers[message_kind.type, message_kind.version] = len(self.kinds)
        self.kinds.append(message_kind)

    def _build_tables(self) -> None:
        """Build the table of keys: a digest without collisions maps the 8 bytes of type and version to rows."""
        words = tuple(t | v << 32 for t, v in self.numbers)
        multiplier, bits = _digest(words)
        self.spec: NDArray[np.void] = np.array(
            [(HEAD, 0, 0xFFFFFFFF, self.size_reading.add, 4, 5, -1, HEAD, _signed(multiplier), 64 - bits)],
            framed.SPEC,
        )
        self.keys = np.zeros(1 << bits, framed.KEY)
        self.keys["channel"] = framed.UNDECLARED
        for number, (message_kind, word) in enumerate(zip(self.kinds, words, strict=True)):
            row = (word * multiplier & _WORD) >> 64 - bits
            self.keys[row] = number, *self._sizes(message_kind), word

    def _sizes(self, message_kind: Kind) -> tuple[int, int]:
        """Return the least and the greatest size field of messages of *message_kind*."""
        base, measure = self.size_reading.base, message_kind.layout.measure
        if (message_kind.type, message_kind.version) not in self._believed:
            return base, MAX_SIZE
        exact = measure.size is not None and not message_kind.longer
        return base + measure.least, base + measure.least if exact else MAX_SIZE

    def declare(self, head: Head) -> bool:
        """Accept messages of an unknown type or version; return False if there are too many of these."""
        if self._unknown >= MAX_UNKNOWN:
            return False
        self._unknown += 1
        raw = (head.type, head.version) in self._raw
        self._add(Kind(head.type, head.version, self.types.get(head.type), raw=raw))
        self._build_tables()
        return True

    def allow_longer(self, message_kind: Kind) -> None:
        """Accept messages of *message_kind* that are longer than their Layout."""
        message_kind.longer = True
        self._build_tables()

    # -------------------------------------------------------------------------------------------- evidence

    def kind_of(self, head: Head) -> Kind | None:
        """Return the declared kind of a message, or None."""
        number = self.numbers.get((head.type, head.version))
        return None if number is None else self.kinds[number]

    def content_end(self, head: Head) -> int:
        """Return where the content of a message ends by its own counts; -1 if that is after the message."""
        message_kind = self.kind_of(head)
        stop = head.end(self.size_reading)
        if message_kind is None:
            return stop
        root = message_kind.layout_at(self.source, head.payload, stop).root
        return content_end(root, self.source, head.payload, stop)

    def is_exact(self, head: Head) -> bool:
        """Return whether a message is whole, of a described kind, and ends where its content does."""
        message_kind, stop = self.kind_of(head), head.end(self.size_reading)
        described = message_kind is not None and message_kind.is_described
        return described and stop <= self.source.size and self.content_end(head) == stop

    def is_believed(self, head: Head) -> bool:
        """Return whether type and version are known or a near later version: evidence by themselves."""
        return (head.type, head.version) in self._believed

    def is_sound(self, head: Head) -> bool:
        """Return whether a message is whole, has a valid header and a known type, and ends where its content does."""
        if not self.is_believed(head) or not head.is_plausible(self.size_reading) or head.mark != self.mark:
            return False
        stop = head.end(self.size_reading)
        return stop <= self.source.size and self.content_end(head) == stop

    def agrees(self, head: Head) -> bool:
        """Return whether a message ends where its content does, or later with no other message inside it."""
        return self.content_end(head) == head.end(self.size_reading) or self.is_longer(head)

    def is_longer(self, head: Head) -> bool:
        """Return whether a message ends later than its content, where no other message begins."""
        content, after = self.content_end(head), head.end(self.size_reading)
        if not head.is_plausible(self.size_reading) or not 0 <= content < after:
            return False
        return self.leads_on(after, HEADERS_AFTER_KNOWN) and not self.leads_on(content, HEADERS_AFTER_KNOWN)

    def leads_on(self, pos: int, need: int) -> bool:
        """Return whether the end of the log, a message, or a message that the end of the file cuts begins at *pos*.

        need  number of headers that must follow each other for unknown types; fewer before the end, or before zeros
        """
        if is_end(self.source, pos):
            return True
        head = read_head(self.source, pos)
        if head is None:
            return pos < self.source.size
        if not head.is_plausible(self.size_reading):
            return False
        stop = head.end(self.size_reading)
        if self.is_believed(head):
            return self.content_end(head) >= 0 if stop <= self.source.size else head.mark == self.mark
        if head.mark != self.mark:
            return False
        return need <= 1 or stop > self.source.size or self.leads_on(stop, need - 1) or self.is_blank(stop)

    def search(self, pos: int, last: int) -> int:
        """Return the first position from *pos* to *last* of a sound message that another one follows, or -1."""
        return search([self], pos, last)[0]

    def first_message_of(self, places: I64) -> int:
        """Return the first of *places* where a message is accepted, or -1.

        places  positions with the mark and the zero bytes of a header
        """
        source = self.source
        heads = read_heads(source, places)
        good = are_plausible(heads, self.size_reading)
        places, after = places[good], places[good] + heads["size"][good] + self.size_reading.add
        within = after <= source.size - HEAD
        leads = after <= source.size
        ends = read_heads(source, after[within])
        # The end mark and zeros are accepted too, and are no headers.
        leads[within] = are_plausible(ends, self.size_reading) | np.isin(ends["size"], (0, END_MARK))
        for at in places[leads].tolist():
            head = read_head(source, at)
            if head is not None and self._is_accepted_alone(head):
                return int(at)
        return -1

    def _is_accepted_alone(self, head: Head) -> bool:
        """Return whether a message is accepted where no message before it ends."""
        after = head.end(self.size_reading)
        if self.is_believed(head):
            return self.is_sound(head) and (
                self.leads_on(after, HEADERS_AFTER_UNKNOWN) or self.is_blank(after)
            )
        has_evidence = (head.type, head.version) in self.numbers or head.pos in self._named
        return self.leads_on(after, HEADERS_AFTER_KNOWN if has_evidence else HEADERS_AFTER_UNKNOWN)

    def is_blank(self, pos: int) -> bool:
        """Return whether zeros are where a message should begin."""
        return not self.source.data[pos : pos + HEAD].any()


def search(framings: Sequence[Framing], pos: int, last: int) -> tuple[int, int]:
    """Return the first position from *pos* to *last* of a message in one of several framings, and which; or -1, -1.

    framings  with different size readings, of one source and one mark
    """
    source, mark = framings[0].source, framings[0].mark
    last, step = min(last, source.size - HEAD), FIRST_STEP
    while pos <= last:
        count, step = min(step, last - pos + 1), min(2 * step, MAX_STEP)
        part = source.data[pos : pos + count + HEAD - 1]
        is_possible = part[4 : 4 + count] == mark
        # Types have 24 bits and versions 16: the upper bytes are zero.
        for byte in (8, 11, 12):
            is_possible &= part[byte : byte + count] == 0
        places = pos + np.flatnonzero(is_possible)
        hits = [(framing.first_message_of(places), i) for i, framing in enumerate(framings) if len(places)]
        hits = [hit for hit in hits if hit[0] >= 0]
        if hits:
            return min(hits)
        pos += count
    return -1, -1


@lru_cache(64)
def _digest(words: tuple[int, ...]) -> tuple[int, int]:
    """Return a multiplier whose products with *words* differ in their highest bits, and the number of these bits."""
    rng, bits = random.Random(0), max(6, (len(words) ** 2 // 2).bit_length())
    known = np.array(words, np.uint64)
    while True:
        multiplier = rng.getrandbits(64) | 1
        if len(distinct(known * np.uint64(multiplier) >> np.uint64(64 - bits))) == len(words):
            return multiplier, bits


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


@dataclass(frozen=True, slots=True)
class Found:
    """Everything that reading found in one file.

    framing  the tables by which messages were accepted, with the size reading and the valid mark
    kinds    by column of *blocks*
    end      position of the end mark, or None
    """

    framing: Framing
    kinds: list[Kind]
    blocks: Blocks
    end: int | None
    problems: list[Problem]

    @property
    def size_field(self) -> FieldAt:
        """The field of a message header that gives the size of its payload in bytes."""
        return FieldAt(-HEAD, 4, 1, -self.framing.size_reading.base)

    def sizes(self, offsets: I64) -> I64:
        """Return int64[n]: sizes of payloads in bytes, as their headers state them."""
        return self.size_field.read(self.framing.source.data, offsets)
