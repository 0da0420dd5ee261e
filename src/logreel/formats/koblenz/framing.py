"""Which bytes are messages: the walker's tables, and the evidence that a place is one where a message begins."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from functools import lru_cache

import numpy as np

from logreel.formats.koblenz.definitions import VERSIONS, registered_types
from logreel.formats.koblenz.kinds import Kind
from logreel.formats.koblenz.records import (
    END_MARK,
    HEAD,
    MAX_SIZE,
    VALID_MARK,
    Head,
    SizeReading,
    are_plausible,
    extent,
    is_end,
    read_head,
    read_heads,
)
from logreel.io.arrays import I64
from logreel.io.source import Source

#: Types and versions that are not known; a file with more is damaged.
MAX_UNKNOWN = 256
#: Headers that must follow a message of a type that is not known, and was not met in the file, where nothing but
#: its own bytes tells that one begins there. A header has 38 bits that must be right, so chance makes no two.
ALONE = 2
#: The same where something else tells it: the message before ends there, the index names the place, or the type is
#: known or was met.
FOUND = 1
#: Bytes looked through at once for messages, at first and at most: most damage is short.
FIRST, PIECE = 1 << 12, 1 << 20

_UNDECLARED = -1
_WORD = (1 << 64) - 1


class Framing:
    """The tables that the compiled walker judges by, for one reading of the sizes and one mark of valid messages.

    named  places that the file's index names
    raw    types and versions whose messages do not begin with the fields that are known; see ``Kind``
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
        self.types = registered_types()
        self.kinds: list[Kind] = []
        self.numbers: dict[tuple[int, int], int] = {}
        self.tags = np.zeros((256, 5), np.int64)
        self.tags[mark] = 1, size_reading.base, MAX_SIZE, 0, 255
        self._unknown = 0
        for kind in self.types.values():
            for version in range(kind.version, kind.version + VERSIONS):
                self._add(Kind(kind.id, version, kind))
        self._believed = frozenset(self.numbers)
        self._table()

    # ---------------------------------------------------------------------------------------------- tables

    def _add(self, kind: Kind) -> None:
        self.numbers[kind.type, kind.version] = len(self.kinds)
        self.kinds.append(kind)

    def _table(self) -> None:
        """Keys are eight bytes, type and version: a digest without collisions makes them rows of a small table."""
        words = tuple(t | v << 32 for t, v in self.numbers)
        multiplier, bits = _digest(words)
        self.spec: I64 = np.array(
            [HEAD, 0, 0xFFFFFFFF, self.size_reading.add, 4, 5, -1, HEAD, _signed(multiplier), 64 - bits],
            np.int64,
        )
        self.keys = np.full((1 << bits, 4), _UNDECLARED, np.int64)
        for number, (kind, word) in enumerate(zip(self.kinds, words, strict=True)):
            row = (word * multiplier & _WORD) >> 64 - bits
            self.keys[row] = number, *self._sizes(kind), word

    def _sizes(self, kind: Kind) -> tuple[int, int]:
        """Least and greatest size field of messages of *kind*."""
        base, measure = self.size_reading.base, kind.layout.measure
        if (kind.type, kind.version) not in self._believed:
            return base, MAX_SIZE
        exact = measure.size is not None and not kind.longer
        return base + measure.least, base + measure.least if exact else MAX_SIZE

    def declare(self, head: Head) -> bool:
        """Let messages of a type and version pass that nothing describes; False if there are too many such."""
        if self._unknown >= MAX_UNKNOWN:
            return False
        self._unknown += 1
        raw = (head.type, head.version) in self._raw
        self._add(Kind(head.type, head.version, self.types.get(head.type), raw=raw))
        self._table()
        return True

    def allow_longer(self, kind: Kind) -> None:
        """Let messages of *kind* pass that are longer than their Layout."""
        kind.longer = True
        self._table()

    # -------------------------------------------------------------------------------------------- evidence

    def kind_of(self, head: Head) -> Kind | None:
        """The declared kind of a message."""
        number = self.numbers.get((head.type, head.version))
        return None if number is None else self.kinds[number]

    def content_end(self, head: Head) -> int:
        """Where the content of a message ends by its own counts, -1 if that is after the message."""
        kind = self.kind_of(head)
        stop = head.end(self.size_reading)
        if kind is None:
            return stop
        root = kind.layout_at(self.source, head.payload, stop).root
        return extent(root, self.source, head.payload, stop)

    def is_exact(self, head: Head) -> bool:
        """True if a whole message of a described type ends where its content does."""
        kind, stop = self.kind_of(head), head.end(self.size_reading)
        described = kind is not None and kind.is_described
        return described and stop <= self.source.size and self.content_end(head) == stop

    def is_believed(self, head: Head) -> bool:
        """True for a type that is known, in a version that is or may come: evidence whatever was read before."""
        return (head.type, head.version) in self._believed

    def is_sound(self, head: Head) -> bool:
        """True for a whole message with a valid header and of a known type, whose size agrees with its content."""
        if not self.is_believed(head) or not head.is_plausible(self.size_reading) or head.mark != self.mark:
            return False
        stop = head.end(self.size_reading)
        return stop <= self.source.size and self.content_end(head) == stop

    def agrees(self, head: Head) -> bool:
        """True for a message that ends where its content does, or later without another one in it."""
        return self.content_end(head) == head.end(self.size_reading) or self.is_longer(head)

    def is_longer(self, head: Head) -> bool:
        """True for a message that ends later than its content, with proof that no other one begins in it there."""
        content, after = self.content_end(head), head.end(self.size_reading)
        if not head.is_plausible(self.size_reading) or not 0 <= content < after:
            return False
        return self.leads_on(after, FOUND) and not self.leads_on(content, FOUND)

    def leads_on(self, pos: int, need: int) -> bool:
        """True if what begins at *pos* is the end, or a message, or the beginning of one that the file cuts.

        need  headers that must follow each other where types are not known; fewer if the chain ends, or zeros follow
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
        """The first place from *pos* to *last* where a sound message begins that leads on to another one, or -1."""
        return search([self], pos, last)[0]

    def first_of(self, places: I64) -> int:
        """The same among places where the mark is, and the bytes that are zero in a header."""
        source = self.source
        heads = read_heads(source, places)
        good = are_plausible(heads, self.size_reading)
        places, after = places[good], places[good] + heads["size"][good] + self.size_reading.add
        within = after <= source.size - HEAD
        leads = after <= source.size
        ends = read_heads(source, after[within])
        # The end of the log, or zeros, are no header.
        leads[within] = are_plausible(ends, self.size_reading) | np.isin(ends["size"], (0, END_MARK))
        for at in places[leads].tolist():
            head = read_head(source, at)
            if head is not None and self._is_found(head):
                return int(at)
        return -1

    def _is_found(self, head: Head) -> bool:
        """True for a message that is believed where nothing leads to it."""
        after = head.end(self.size_reading)
        if self.is_believed(head):
            return self.is_sound(head) and (self.leads_on(after, ALONE) or self.is_blank(after))
        told = (head.type, head.version) in self.numbers or head.pos in self._named
        return self.leads_on(after, FOUND if told else ALONE)

    def is_blank(self, pos: int) -> bool:
        """True if zeros are where a message should begin."""
        return not self.source.data[pos : pos + HEAD].any()


def search(framings: Sequence[Framing], pos: int, last: int) -> tuple[int, int]:
    """The first place from *pos* to *last* where a message begins under one of several readings, and which; or -1, -1.

    framings  of one source and one mark
    """
    source, mark = framings[0].source, framings[0].mark
    last, step = min(last, source.size - HEAD), FIRST
    while pos <= last:
        count, step = min(step, last - pos + 1), min(2 * step, PIECE)
        part = source.data[pos : pos + count + HEAD - 1]
        places = np.flatnonzero(part[4 : 4 + count] == mark)
        # Types have three bytes and versions two: the upper ones are zero.
        for byte in (8, 11, 12):
            places = places[part[places + byte] == 0]
        found = [(framing.first_of(pos + places), i) for i, framing in enumerate(framings)]
        found = [one for one in found if one[0] >= 0]
        if found:
            return min(found)
        pos += count
    return -1, -1


@lru_cache(64)
def _digest(words: tuple[int, ...]) -> tuple[int, int]:
    """A multiplier whose products with *words* differ in their highest bits, and how many bits those are."""
    rng, bits = random.Random(0), max(6, (len(words) ** 2 // 2).bit_length())
    known = np.array(words, np.uint64)
    while True:
        multiplier = rng.getrandbits(64) | 1
        if len(np.unique(known * np.uint64(multiplier) >> np.uint64(64 - bits))) == len(words):
            return multiplier, bits


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word
