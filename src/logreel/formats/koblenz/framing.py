"""Framing of Koblenz messages: tables of the compiled walker, and evidence that a message begins at a position.

The description is ambiguous about what sizes count, the valid mark, and where messages begin, and headers may be
damaged: ``detect_variant`` tries the variants, and evidence decides.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass, replace
from logreel.errors import Problem, UnsupportedError
from logreel.formats.koblenz.definitions import VERSIONS, Kind, MessageType, read_types, registered_types
from logreel.formats.koblenz.records import (
    END_MARK,
    FILE_HEADER,
    HEAD,
    MAGIC,
    MARKS,
    MAX_SIZE,
    SIZE_READINGS,
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


class Framing:
    """Tables of the compiled walker, and evidence for messages, for one size reading and one valid mark.

    types  known types by id
    named  positions that the time index names
    raw    types and versions whose messages do not begin with the known fields; see ``Kind``
    kinds  by channel number of the walker
    spec, tags, keys  see kernels/framed.py
    """

    def __init__(
        self,
        source: Source,
        size_reading: SizeReading,
        types: Mapping[int, MessageType],
        mark: int = VALID_MARK,
        named: Collection[int] = (),
        raw: Collection[tuple[int, int]] = (),
    ) -> None:
        self.source, self.size_reading, self.mark = source, size_reading, mark
        self.types, self._named, self._raw = types, named, raw
        self._known = _known_kinds(tuple(types.values()))
        self.kinds: list[Kind] = list(self._known.kinds)
        self.numbers = dict(self._known.numbers)
        self.tags = np.zeros(256, framed.TAG)
        self.tags[mark] = framed.DATA, size_reading.base, MAX_SIZE, 0, 255
        self._unknown = 0
        self._tables: tuple[NDArray[np.void], NDArray[np.void]] | None = None

    # ---------------------------------------------------------------------------------------------- tables

    @property
    def spec(self) -> NDArray[np.void]:
        """The table of offsets."""
        return self._built()[0]

    @property
    def keys(self) -> NDArray[np.void]:
        """The table of declared types and versions."""
        return self._built()[1]

    def _built(self) -> tuple[NDArray[np.void], NDArray[np.void]]:
        """Return *spec* and *keys*, built at first use.

        A digest without collisions maps the 8 bytes of type and version to rows of *keys*.
        """
        if self._tables is None:
            words = tuple(t | v << 32 for t, v in self.numbers)
            multiplier, bits = _digest(words)
            digest = _signed(multiplier), 64 - bits
            spec = np.array(
                [(HEAD, 0, 0xFFFFFFFF, self.size_reading.add, 4, 5, -1, HEAD, *digest)], framed.SPEC
            )
            keys = np.zeros(1 << bits, framed.KEY)
            keys["channel"] = framed.UNDECLARED
            known = np.array(words, np.uint64)
            rows = known * np.uint64(multiplier) >> np.uint64(64 - bits)
            least, most = self._sizes()
            columns = (np.arange(len(words)), least, most, known)
            for name, column in zip(("channel", "least", "most", "whole"), columns, strict=True):
                keys[name][rows] = column
            self._tables = spec, keys
        return self._tables

    def _sizes(self) -> tuple[I64, I64]:
        """Return int64[k] twice: the least and the greatest size field of messages of each kind."""
        least = np.full(len(self.kinds), self.size_reading.base, np.int64)
        most = np.full(len(self.kinds), MAX_SIZE, np.int64)
        known = self._known.least
        least[: len(known)] += known
        is_longer = np.array([message_kind.longer for message_kind in self.kinds[: len(known)]], bool)
        is_exact = np.flatnonzero(self._known.is_exact & ~is_longer)
        most[is_exact] = least[is_exact]
        return least, most

    def declare(self, head: Head) -> bool:
        """Accept messages of an unknown type or version; return False if there are too many of these."""
        if self._unknown >= MAX_UNKNOWN:
            return False
        self._unknown += 1
        raw = (head.type, head.version) in self._raw
        self.numbers[head.type, head.version] = len(self.kinds)
        self.kinds.append(Kind(head.type, head.version, self.types.get(head.type), raw=raw))
        self._tables = None
        return True

    def allow_longer(self, message_kind: Kind) -> None:
        """Accept messages of *message_kind* that are longer than their Layout."""
        number = self.numbers[message_kind.type, message_kind.version]
        # Framings of the same types share their kinds.
        self.kinds[number] = replace(message_kind, longer=True)
        self._tables = None

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
        layout = message_kind.layout_at(self.source, head.payload, stop)
        if layout.size is not None:
            return head.payload + layout.size if layout.size <= stop - head.payload else -1
        return content_end(layout.root, self.source, head.payload, stop)

    def is_exact(self, head: Head) -> bool:
        """Return whether a message is whole, of a described kind, and ends where its content does."""
        message_kind, stop = self.kind_of(head), head.end(self.size_reading)
        described = message_kind is not None and message_kind.is_described
        return described and stop <= self.source.size and self.content_end(head) == stop

    def is_believed(self, head: Head) -> bool:
        """Return whether type and version are known or a near later version: evidence by themselves."""
        return (head.type, head.version) in self._known.numbers

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


@dataclass(frozen=True, slots=True)
class _KnownKinds:
    """What all Framings of the same types begin with.

    numbers   of *kinds*, by type and version
    least     int64[k]  least size of the payload, bytes
    is_exact  bool[k]   whether it is the only size
    """

    kinds: tuple[Kind, ...]
    numbers: dict[tuple[int, int], int]
    least: I64
    is_exact: NDArray[np.bool_]


# Few, because logs may describe a thousand types.
@lru_cache(2)
def _known_kinds(types: tuple[MessageType, ...]) -> _KnownKinds:
    """Return the versions of *types* that are known, and the next later ones."""
    kinds = tuple(
        Kind(known.id, version, known)
        for known in types
        for version in range(known.version, known.version + VERSIONS)
    )
    measures = [message_kind.layout.measure for message_kind in kinds]
    return _KnownKinds(
        kinds,
        {(message_kind.type, message_kind.version): n for n, message_kind in enumerate(kinds)},
        np.array([measure.least for measure in measures], np.int64),
        np.array([measure.size is not None for measure in measures], bool),
    )


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


#: Number of consecutive messages that decide what sizes count.
ENOUGH = 3
#: Number of messages whose marks are counted if the first message has an unusual mark.
COUNTED = 1024
#: Number of index entries that are tried as the first message.
TRIED = 64
#: Number of bytes searched for a first message.
SEARCHED = 64 << 20
MAJOR, MINOR = 1, 1


@dataclass(frozen=True, slots=True)
class Variant:
    """How to read a file.

    types    known types by id: all registered ones, and those that the file describes
    mark     mark of valid messages
    first    position of the first message
    entries  int64[n]: the time index of the file, unchecked
    named    positions in the file that the time index names
    """

    version: str
    size_reading: SizeReading
    types: Mapping[int, MessageType]
    mark: int
    first: int
    entries: I64
    named: frozenset[int]
    problems: list[Problem]


def detect_variant(source: Source) -> Variant:
    """Return how to read *source*. Raises UnsupportedError for a version from the future."""
    head = source.head
    if len(head) < FILE_HEADER:
        text = f"the file ends inside its header: {source.size} of {FILE_HEADER} bytes"
        raise UnsupportedError(text, path=source.name)
    major, minor, count = (int.from_bytes(head[a:b], "little") for a, b in ((4, 6), (6, 8), (8, 12)))
    version = f"{major}.{minor}"
    if major > MAJOR:
        raise UnsupportedError(f"a Koblenz log of version {version}", path=source.name, offset=4)
    problems = []
    if head[:4] != MAGIC:
        text = f"the file begins with {head[:4].hex(' ')}, not with {MAGIC.hex(' ')}"
        problems.append(Problem("header", 0, 4, False, text))
    if minor > MINOR:
        text = f"version {version} is newer than {MAJOR}.{MINOR}"
        problems.append(Problem("version", 4, 4, False, text))
    room = (source.size - FILE_HEADER) // 8
    if count > room:
        text = f"an index of {count} entries where there is room for {room}"
        problems.append(Problem("index", 8, 4, False, text))
        count = 0
    begin = FILE_HEADER + 8 * count
    entries = np.frombuffer(source.data, "<i8", count, FILE_HEADER).astype(np.int64)
    named = distinct(entries[(entries >= FILE_HEADER) & (entries < source.size)]).tolist()
    framing, first = _detect_framing(source, begin, named)
    problems += _problems_before(source, begin, first)
    if framing.mark != VALID_MARK:
        text = f"messages are marked as valid by 0x{framing.mark:02X} where 0x{VALID_MARK:02X} is usual"
        problems.append(Problem("mark", first + 4, 1, False, text))
    return Variant(
        version, framing.size_reading, framing.types, framing.mark, first, entries, frozenset(named), problems
    )


def _detect_framing(source: Source, begin: int, named: list[int]) -> tuple[Framing, int]:
    """Return the framing (size reading and mark) in which messages follow each other, and the first message.

    named  positions that the time index names, ascending
    """
    places, types = frozenset(named), registered_types() | read_types(source)
    tables: list[list[Framing]] = []
    for mark in MARKS:
        framings = [Framing(source, size_reading, types, mark, places) for size_reading in SIZE_READINGS]
        tables.append(framings)
        for first in (begin, *named[:TRIED]):
            best = max(framings, key=lambda framing: _evidence(framing, first))
            if _evidence(best, first) and (best.mark == VALID_MARK or _prevails(best, first)):
                # Messages before the first one that the index names may be sound, too.
                sound = best.search(begin, first - 1)
                return best, sound if sound >= 0 else first
    end = min(source.size, begin + SEARCHED)
    for framings in tables:
        first, which = search(framings, begin, end)
        if first >= 0:
            return framings[which], first
    return tables[0][0], begin


def _evidence(framing: Framing, pos: int) -> int:
    """Count the positions from *pos* on where a message must begin or end, and does.

    0 if one of the messages is invalid, or the first one is not whole. A chain of ``ENOUGH`` messages, or of all
    messages up to the end, counts most.
    """
    source = framing.source
    for count in range(ENOUGH):
        if is_end(source, pos):
            return 2 * count + (source.size - pos == 0 or source.size - pos >= 4) if count else 0
        head = read_head(source, pos)
        if head is None:
            # A header that the end of the file cuts may still have the mark.
            mark = source.read(pos + 4, 1)
            return 2 * count + (mark[0] == framing.mark) if mark and count else 2 * count
        if head.mark != framing.mark or not head.is_plausible(framing.size_reading):
            return 0
        after = head.end(framing.size_reading)
        if after > source.size:
            return 2 * count + 1 if count else 0
        if framing.is_believed(head) and framing.content_end(head) != after:
            return 0
        pos = after
    return 2 * ENOUGH


def _prevails(framing: Framing, pos: int) -> bool:
    """Return whether no mark is more frequent than that of *framing* among the messages from *pos* on."""
    seen = Counter[int]()
    for _ in range(COUNTED):
        head = read_head(framing.source, pos)
        if head is None or not head.is_plausible(framing.size_reading):
            break
        seen[head.mark] += 1
        pos = head.end(framing.size_reading)
    return seen[framing.mark] == max(seen.values(), default=0)


def _problems_before(source: Source, begin: int, first: int) -> list[Problem]:
    """Return a problem for the bytes between the index and the first message, if there are any."""
    size = abs(first - begin)
    if first == begin:
        return []
    if first < begin:
        return [Problem("index", 8, 4, False, f"messages begin {size} bytes before the index ends")]
    if not source.data[begin:first].any():
        return [Problem("index", begin, size, False, f"{size} bytes of room for an index that are not used")]
    return [Problem("garbage", begin, size, True, f"{size} bytes before the first message")]


#: Entries of an index, about 18 hours: one absurd stamp must not make an index larger than the log.
MAX_ENTRIES = 1 << 16
#: An entry may point to a message this much before its second, in ms.
SLACK_MS = 1.0
NS_PER_S = 10**9


def seconds_between(first: int, last: int) -> int:
    """Return the number of index entries of a log from *first*, the time of its first message, to *last* (ns)."""
    return min(max(0, last - first) // NS_PER_S + 1, MAX_ENTRIES)


def is_complete(entries: I64, seconds: int) -> bool:
    """Return whether an index has an entry for each of *seconds*; whether the last one has an entry is left open."""
    return len(entries) >= max(seconds - 1, min(seconds, 1))


def wrong_entries(source: Source, variant: Variant) -> list[Problem]:
    """Return a problem ``index`` if entries do not point to a message of their second."""
    entries, wrong = variant.entries[:MAX_ENTRIES].tolist(), []
    first = read_head(source, variant.first)
    for second, entry in enumerate(entries):
        head = read_head(source, entry) if entry >= 0 else None
        good = head is not None and head.mark == variant.mark and head.is_plausible(variant.size_reading)
        if not good or (head and first and head.ms < first.ms + 1000 * second - SLACK_MS):
            wrong.append(second)
    if not wrong:
        return []
    text = f"{len(wrong)} of {len(entries)} index entries do not point to the message of their second"
    return [Problem("index", 12 + 8 * wrong[0], 8, False, text)]


class TimeIndexBuilder:
    """Collects for each second, counted from the first message, the first message at or after it."""

    def __init__(self) -> None:
        self._first: int | None = None
        self._latest = 0
        self._offsets: list[I64] = []
        self._count = 0

    def add(self, time: I64, offset: I64) -> None:
        """Add the next messages of the file: their times in ns and the positions where they begin."""
        if not len(time):
            return
        if self._first is None:
            self._first = self._latest = int(time[0])
        latest = np.maximum(np.maximum.accumulate(time), self._latest)
        self._latest = int(latest[-1])
        count = seconds_between(self._first, self._latest)
        due = self._first + NS_PER_S * np.arange(self._count, count, dtype=np.int64)
        self._offsets.append(offset[latest.searchsorted(due)])
        self._count = count

    @property
    def offsets(self) -> I64:
        """int64[n]: for each second the position of the first message to read."""
        return np.concatenate([np.zeros(0, np.int64), *self._offsets])
