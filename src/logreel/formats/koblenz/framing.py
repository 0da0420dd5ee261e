"""Which bytes are messages: the walker's tables, and the evidence that a place is one where a message begins."""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from logreel.formats.koblenz.records import (
    END_MARK,
    HEAD,
    MAX_SIZE,
    VALID_MARK,
    Head,
    Reading,
    are_plausible,
    extent,
    is_end,
    read_head,
    read_heads,
)
from logreel.formats.koblenz.types import (
    RAW,
    UNCOMPRESSED,
    USUAL_VERSION,
    VERSIONS,
    MessageType,
    registered_types,
)
from logreel.kernels import frames
from logreel.model.index import I64
from logreel.model.layout import Layout
from logreel.model.source import Source

#: Types and versions that are not known; a file with more is damaged.
MAX_UNKNOWN = 256
#: Headers that must follow a message of a type that is not known, and was not met in the file, where nothing but
#: its own bytes tells that one begins there. A header has 38 bits that must be right, so chance makes no two.
ALONE = 2
#: The same where something else tells it: the message before ends there, the index names the place, or the type is
#: known or was met.
FOUND = 1
#: Bytes looked through at once for messages of types that are not known.
PIECE = 1 << 20

_UNDECLARED = -1
_WORD = (1 << 64) - 1


@dataclass(slots=True)
class Kind:
    """Messages of one type and version.

    known   the type, or None
    longer  some of its messages may be longer than their Layout
    raw     messages of a version that nothing describes do not begin with the fields that are known
    """

    type: int
    version: int
    known: MessageType | None
    longer: bool = False
    raw: bool = False

    @property
    def layout(self) -> Layout:
        """The Layout of its messages."""
        if self.known is None or self.raw or self.version < self.known.version:
            return RAW
        return self.known.layout if self.is_described else self.known.newer

    @property
    def is_described(self) -> bool:
        """True if the description is of this very version."""
        return self.known is not None and self.version == self.known.version

    @property
    def name(self) -> str:
        """The name of the type, or its number; versions that are not described are marked by ``@``."""
        name = self.known.name if self.known else f"0x{self.type:08X}"
        usual = self.known.version if self.known else USUAL_VERSION
        return name if self.version == usual else f"{name}@{self.version}"

    def layout_at(self, source: Source, payload: int, stop: int) -> Layout:
        """The Layout of one message."""
        # A picture says of itself, in its second number, whether it is of the described kind.
        if self.is_described and self.known and "compressed" in self.known.instance:
            return self.layout if any(source.read(payload + 4, min(4, stop - payload))) else UNCOMPRESSED
        return self.layout


class Framing:
    """The tables that the compiled walker judges by, for one reading of the sizes and one mark of valid messages.

    named  places that the file's index names
    raw    types and versions whose messages do not begin with the fields that are known; see ``Kind``
    kinds  by channel number of the walker
    spec, tags, keys  see kernels/frames.py
    """

    def __init__(
        self,
        source: Source,
        reading: Reading,
        mark: int = VALID_MARK,
        named: Collection[int] = (),
        raw: Collection[tuple[int, int]] = (),
    ) -> None:
        self.source, self.reading, self.mark, self._named, self._raw = source, reading, mark, named, raw
        self.types = registered_types()
        self.kinds: list[Kind] = []
        self.numbers: dict[tuple[int, int], int] = {}
        self.tags = np.zeros((256, 5), np.int64)
        self.tags[mark] = 1, reading.base, MAX_SIZE, 0, 255
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
            [HEAD, 0, 0xFFFFFFFF, self.reading.add, 4, 5, -1, HEAD, _signed(multiplier), 64 - bits], np.int64
        )
        self.keys = np.full((1 << bits, 4), _UNDECLARED, np.int64)
        for number, (kind, word) in enumerate(zip(self.kinds, words, strict=True)):
            row = (word * multiplier & _WORD) >> 64 - bits
            self.keys[row] = number, *self._sizes(kind), word

    def _sizes(self, kind: Kind) -> tuple[int, int]:
        """Least and greatest size field of messages of *kind*."""
        base, measure = self.reading.base, kind.layout.measure
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
        stop = head.end(self.reading)
        if kind is None:
            return stop
        root = kind.layout_at(self.source, head.payload, stop).root
        return extent(root, self.source, head.payload, stop)

    def is_exact(self, head: Head) -> bool:
        """True if a whole message of a described type ends where its content does."""
        kind, stop = self.kind_of(head), head.end(self.reading)
        described = kind is not None and kind.is_described
        return described and stop <= self.source.size and self.content_end(head) == stop

    def is_believed(self, head: Head) -> bool:
        """True for a type that is known, in a version that is or may come: evidence whatever was read before."""
        return (head.type, head.version) in self._believed

    def is_sound(self, head: Head) -> bool:
        """True for a whole message with a valid header and of a known type, whose size agrees with its content."""
        if not self.is_believed(head) or not head.is_plausible(self.reading) or head.mark != self.mark:
            return False
        stop = head.end(self.reading)
        return stop <= self.source.size and self.content_end(head) == stop

    def agrees(self, head: Head) -> bool:
        """True for a message that ends where its content does, or later without another one in it."""
        return self.content_end(head) == head.end(self.reading) or self.is_longer(head)

    def is_longer(self, head: Head) -> bool:
        """True for a message that ends later than its content, with proof that no other one begins in it there."""
        content, after = self.content_end(head), head.end(self.reading)
        if not head.is_plausible(self.reading) or not 0 <= content < after:
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
        if not head.is_plausible(self.reading):
            return False
        stop = head.end(self.reading)
        if self.is_believed(head):
            return self.content_end(head) >= 0 if stop <= self.source.size else head.mark == self.mark
        if head.mark != self.mark:
            return False
        return need <= 1 or stop > self.source.size or self.leads_on(stop, need - 1) or self.is_blank(stop)

    def search(self, pos: int, last: int) -> int:
        """The first place from *pos* to *last* where a sound message begins that leads on to another one, or -1."""
        last = min(last, self.source.size - HEAD)
        while pos <= last:
            stop = min(pos + PIECE - 1, last)
            known = self._search_declared(pos, stop)
            other = self._search_other(pos, known - 1 if known >= 0 else stop)
            if other >= 0 or known >= 0:
                return other if other >= 0 else known
            pos = stop + 1
        return -1

    def _search_declared(self, pos: int, last: int) -> int:
        """The same for messages of types that are known or were met."""
        data, size = self.source.data, self.source.size
        while pos <= last:
            pos = frames.resync(data, pos, size, 1, self.spec, self.tags, self.keys, last)
            head = read_head(self.source, pos)
            if head is None:
                return -1
            after = head.end(self.reading)
            if self.is_believed(head):
                good = self.is_sound(head) and (self.leads_on(after, ALONE) or self.is_blank(after))
            else:
                good = head.is_plausible(self.reading) and self.leads_on(after, FOUND)
            if good:
                return pos
            pos += 1
        return -1

    def _search_other(self, pos: int, last: int) -> int:
        """The same for messages of other types: where headers follow each other, or the index names one."""
        source, count = self.source, last - pos + 1
        if count <= 0:
            return -1
        part = source.data[pos : last + HEAD]
        # The bytes of a header that are most often what they are nowhere else: the mark, and the upper ones of numbers.
        good = part[4 : 4 + count] == self.mark
        for byte in (8, 11, 12):
            good &= part[byte : byte + count] == 0
        place = pos + np.flatnonzero(good)
        heads = read_heads(source, place)
        good = are_plausible(heads, self.mark, self.reading)
        place, after = place[good], place[good] + heads["size"][good] + self.reading.add
        within = after <= source.size - HEAD
        leads = after <= source.size
        ends = read_heads(source, after[within])
        leads[within] = are_plausible(ends, self.mark, self.reading) | (ends["size"] == END_MARK)
        for at in place[leads].tolist():
            head = read_head(source, at)
            if head is None or self.is_believed(head):
                continue
            if self.leads_on(head.end(self.reading), FOUND if at in self._named else ALONE):
                return int(at)
        return -1

    def is_blank(self, pos: int) -> bool:
        """True if zeros are where a message should begin."""
        return not self.source.data[pos : pos + HEAD].any()


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
