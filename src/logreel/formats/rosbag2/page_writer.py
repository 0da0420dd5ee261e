"""Write an SQLite 3 database by appending pages: messages and small tables, then the b-trees over them.

Pages are never changed, so a file that ends at any page has all rows before it. Until the end its header counts only
the first page, in which tables have no pages; ``reader.py`` finds the rows of the others. The end appends inner pages
and the index of times, and overwrites the first page. Section numbers are those of "Database File Format".
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass, field
from logreel.formats.rosbag2.pages import HEADER, INDEX_INNER, INDEX_LEAF, INNER, LEAF, MAGIC, local_sizes
from logreel.io.append_file import Appender
from logreel.io.arrays import I64, GrowingArray
from logreel.io.source import Buffer
from logreel.write.format_writer import Payloads

#: Bytes of a page, as those of rosbag2 have.
PAGE = 4096
#: Page with the bytes that SQLite locks; nothing is stored in it (1.4).
LOCK_PAGE = (1 << 30) // PAGE + 1
#: Bytes of messages that are put into pages at once.
_BATCH = 4 << 20
#: Bytes of the header of a page without and with pages below it.
_LEAF_HEAD, _INNER_HEAD = 8, 12
#: Children of an inner page of a table, whose entries have at most 4 + 9 + 2 bytes.
_CHILDREN = (PAGE - _INNER_HEAD) // 15
#: An entry of the index of times: size, header of the record with its types, time, number of the row.
_ENTRY = struct.Struct(">BBBBqi")
_ENTRIES = (PAGE - _LEAF_HEAD) // (_ENTRY.size + 2)
_INDEX_CHILDREN = (PAGE - _INNER_HEAD) // (_ENTRY.size + 6)
#: Bytes of the header of the record of a message before the type of its data, with its own size; and of the fields
#: before the data: the topic in 2 bytes and the time in 8.
_RECORD_HEAD, _FIELDS = 4, 10
#: Most topics and most messages that the sizes of their numbers allow.
MOST_TOPICS, MOST_MESSAGES = (1 << 15) - 1, (1 << 31) - 1
#: Largest message: SQLite has rows of at most 10⁹ bytes.
LARGEST = 10**9 - 64

Value = str | int | None


def varint(value: int) -> bytes:
    """Return a number below 2⁵⁶ as SQLite writes it (1.6)."""
    out = [value & 0x7F]
    while value := value >> 7:
        out.append(value & 0x7F | 0x80)
    return bytes(reversed(out))


def record(values: Sequence[Value]) -> bytes:
    """Return a row of a small table (2.1)."""
    types, body = bytearray(), bytearray()
    for value in values:
        if value is None:
            types += varint(0)
        elif isinstance(value, int):
            types += varint(6)
            body += value.to_bytes(8, "big", signed=True)
        else:
            text = value.encode("utf-8", "surrogateescape")
            types += varint(13 + 2 * len(text))
            body += text
    head = len(types) + 1
    # The size of the header is in itself.
    return varint(head + (head > 127)) + bytes(types + body)


@dataclass(slots=True)
class _Tree:
    """A table: the pages of its rows, and the last row number in each."""

    pages: GrowingArray = field(default_factory=lambda: GrowingArray(np.int64))
    last: GrowingArray = field(default_factory=lambda: GrowingArray(np.int64))
    rows: int = 0

    def add(self, page: int, last: int) -> None:
        """Add a page of rows."""
        self.pages.append(page)
        self.last.append(last)


class DatabasePages:
    """The pages of a new database.

    tables  statement that makes each table, by name; one is ``messages``
    index   name and statement of the index of its times
    count   number of messages so far
    """

    def __init__(self, out: Appender, tables: dict[str, str], index: tuple[str, str]) -> None:
        self._out, self._tables, self._index = out, tables, index
        self._trees = {name: _Tree() for name in tables}
        self._messages = self._trees["messages"]
        self.count, self._times = 0, list[I64]()
        self._begin_leaf()
        self._out.put(self._first_page({}, 1))

    def _begin_leaf(self) -> None:
        """Begin another page of messages."""
        self._leaf: Buffer = np.zeros(PAGE, np.uint8)
        self._cells = self._used = 0

    def _next(self) -> int:
        """Return the number of the page that is appended next; the one that SQLite locks is skipped."""
        page = self._out.tell() // PAGE + 1
        if page == LOCK_PAGE:
            self._out.put(bytes(PAGE))
            page += 1
        return page

    # ----------------------------------------------------------------------------------------------- small tables

    def rows(self, table: str, rows: Sequence[Sequence[Value]], number: int | None = None) -> None:
        """Append rows of a table besides messages; the first column of each is its number and left out.

        number  of the first row; None: the next one
        """
        tree, cells, used = self._trees[table], list[bytes](), 0
        tree.rows = tree.rows if number is None else number - 1
        for row in rows:
            tree.rows += 1
            cell = self._cell(tree.rows, record([None, *row]))
            if used + len(cell) + 2 > PAGE - _LEAF_HEAD:
                self._put_leaf(tree, cells, tree.rows - 1)
                cells, used = [], 0
            cells.append(cell)
            used += len(cell) + 2
        if cells:
            self._put_leaf(tree, cells, tree.rows)

    def _put_leaf(self, tree: _Tree, cells: Sequence[bytes], last: int) -> None:
        tree.add(self._next(), last)
        self._out.put(_page(LEAF, cells))

    def _cell(self, number: int, content: bytes) -> bytes:
        """Return the entry of a row in its page; what has no room there is written to further pages."""
        local = int(local_sizes(np.array([len(content)]), PAGE)[0])
        cell = varint(len(content)) + varint(number) + content[:local]
        if local == len(content):
            return cell
        first, room = self._next(), PAGE - 4
        rest = [content[at : at + room] for at in range(local, len(content), room)]
        for n, part in enumerate(rest):
            page = self._next()
            following = 0 if n == len(rest) - 1 else page + 1 + (page + 1 == LOCK_PAGE)
            self._out.put(following.to_bytes(4, "big") + part.ljust(room, b"\0"))
        return cell + first.to_bytes(4, "big")

    # --------------------------------------------------------------------------------------------------- messages

    def messages(self, topic: I64, time: I64, payloads: Payloads) -> None:
        """Append messages: int64[n] numbers of their topics, int64[n] ns, n payloads."""
        before = np.cumsum(payloads.size)
        lo = 0
        while lo < len(topic):
            limit = _BATCH + (int(before[lo - 1]) if lo else 0)
            hi = max(lo + 1, int(before.searchsorted(limit, side="right")))
            self._add(topic[lo:hi], time[lo:hi], payloads.rows(slice(lo, hi)))
            lo = hi

    def _add(self, topic: I64, time: I64, payloads: Payloads) -> None:
        n, size = len(topic), payloads.size
        number = self.count + 1 + np.arange(n)
        blob = 2 * size + 12
        head = _RECORD_HEAD + _varint_sizes(blob)
        length = head + _FIELDS + size
        length_size, number_size = _varint_sizes(length), _varint_sizes(number)
        local = local_sizes(length, PAGE)
        rest = length - local
        cell = length_size + number_size + local + np.where(rest > 0, 4, 0)
        more = -(-rest // (PAGE - 4))
        leaf = self._leaves(cell)
        closed = int(leaf[-1])
        # The pages: for each leaf the further pages of its messages, then the leaf. The last leaf stays open.
        follow = np.cumsum(more) - more + leaf
        ends = np.searchsorted(leaf, np.arange(closed + 1), side="right")
        leaf_page = np.append(0, np.cumsum(more))[ends] + np.arange(closed + 1)
        total = int(leaf_page[-1])
        out = np.zeros((total + 1) * PAGE, np.uint8)
        out[leaf_page[0] * PAGE :][:PAGE] = self._leaf
        at = self._place(out, leaf_page, leaf, ends, cell)
        for values, sizes in ((length, length_size), (number, number_size)):
            _put_varints(out, at, values, sizes)
            at = at + sizes
        out[at] = head
        # Types: no value for the number, which is that of the row, 2 bytes and 8 bytes.
        out[at + 2], out[at + 3] = 2, 6
        _put_varints(out, at + _RECORD_HEAD, blob, head - _RECORD_HEAD)
        at = at + head
        _put_numbers(out, at, topic, 2)
        _put_numbers(out, at + 2, time, 8)
        first = self._next()
        self._put_payloads(out, at + _FIELDS, local - head - _FIELDS, more, follow, payloads, first)
        last = np.where(ends > 0, number[ends - 1], self.count)
        numbers = _physical(first + leaf_page[:-1], first)
        for page, row in zip(numbers.tolist(), last[:-1].tolist(), strict=True):
            self._messages.add(page, row)
        self._leaf = out[total * PAGE :].copy()
        self.count += n
        self._times.append(time.astype(np.int64))
        if len(self._times) > 4096:
            # Messages may come one by one.
            self._times = [np.concatenate(self._times)]
        self._put_pages(out[: total * PAGE], first)

    def _leaves(self, cell: I64) -> I64:
        """Return int64[n]: the leaf of each message, 0 is the open one."""
        total, counts, room, lo = np.cumsum(cell + 2), list[int](), PAGE - _LEAF_HEAD - self._used, 0
        while lo < len(cell):
            hi = int(total.searchsorted(room + (total[lo - 1] if lo else 0), side="right"))
            counts.append(hi - lo)
            lo, room = hi, PAGE - _LEAF_HEAD
        return np.repeat(np.arange(len(counts)), counts)

    def _place(self, out: Buffer, leaf_page: I64, leaf: I64, ends: I64, cell: I64) -> I64:
        """Write the headers of leaves and the places of their entries; return int64[n]: where the entries are.

        Entries lie from the end of a page towards its front.
        """
        begin = np.append(0, ends[:-1])
        before = np.append(0, np.cumsum(cell))
        old, used = np.zeros_like(begin), np.zeros_like(begin)
        old[0], used[0] = self._cells, self._used - 2 * self._cells
        used += before[ends] - before[begin]
        place = PAGE - (used[leaf] - (before[ends][leaf] - before[1:]))
        pointer = _LEAF_HEAD + 2 * (old[leaf] + np.arange(len(leaf)) - begin[leaf])
        count = old + ends - begin
        start = leaf_page * PAGE
        out[start] = LEAF
        _put_numbers(out, start + 3, count, 2)
        _put_numbers(out, start + 5, PAGE - used, 2)
        _put_numbers(out, start[leaf] + pointer, place, 2)
        self._cells, self._used = int(count[-1]), int(used[-1] + 2 * count[-1])
        at: I64 = start[leaf] + place
        return at

    def _put_payloads(
        self, out: Buffer, at: I64, local: I64, more: I64, follow: I64, payloads: Payloads, first: int
    ) -> None:
        """Write the payloads: *local* bytes of each at *at*, the rest in *more* pages from page *follow* of *out* on.

        first  number of the first page of *out* in the file
        """
        room = PAGE - 4
        row = np.repeat(np.arange(len(at)), more + 1)
        part = np.arange(len(row)) - np.repeat(np.cumsum(more + 1) - more - 1, more + 1)
        page = follow[row] + part - 1
        done = np.where(part == 0, 0, local[row] + (part - 1) * room)
        size = np.where(part == 0, np.minimum(local, payloads.size)[row], payloads.size[row] - done)
        parts = payloads.rows(row)
        size = np.minimum(size, np.where(part == 0, PAGE, room))
        parts = Payloads(parts.data, parts.start + done, size, None, parts.others, parts.which)
        parts.put_at(out, np.where(part == 0, at[row], page * PAGE + 4))
        far = np.flatnonzero(part)
        following = np.where(part[far] < more[row[far]], _physical(first + page[far] + 1, first), 0)
        _put_numbers(out, page[far] * PAGE, following, 4)
        split = np.flatnonzero(more)
        _put_numbers(out, (at + local)[split], _physical(first + follow[split], first), 4)

    def _put_pages(self, pages: Buffer, first: int) -> None:
        """Append pages, of which *first* is the number of the first one."""
        cut = (LOCK_PAGE - first) * PAGE
        if 0 < cut < len(pages):
            self._out.put(pages[:cut].data)
            self._out.put(bytes(PAGE))
            pages = pages[cut:]
        if len(pages):
            self._out.put(pages.data)

    def close_leaf(self) -> None:
        """Append the open page of messages, so that all messages are in the file."""
        if self._cells:
            page = self._next()
            self._messages.add(page, self.count)
            self._out.put(self._leaf.data)
            self._begin_leaf()

    # ---------------------------------------------------------------------------------------------------- the end

    def finish(self) -> None:
        """Append inner pages and the index, then overwrite the first page."""
        self.close_leaf()
        roots = dict[str, int]()
        for name, tree in self._trees.items():
            pages, last = tree.pages.rows.tolist(), tree.last.rows.tolist()
            roots[name] = self._root(INNER, pages, last[:-1], _CHILDREN, varint) or self._put(_page(LEAF, []))
        roots[self._index[0]] = self._index_root()
        self._out.patch(0, self._first_page(roots, self._out.tell() // PAGE))

    def _put(self, page: bytes) -> int:
        """Append a page, and return its number."""
        number = self._next()
        self._out.put(page)
        return number

    def _root(
        self, page_type: int, pages: list[int], keys: list[int], most: int, entry: Callable[[int], bytes]
    ) -> int:
        """Append inner pages over *pages*, which are parted by *keys*; return the uppermost one, 0: there is none."""
        while len(pages) > 1:
            groups = -(-len(pages) // most)
            bounds = [len(pages) * n // groups for n in range(groups + 1)]
            upper, parting = list[int](), list[int]()
            for lo, hi in pairwise(bounds):
                upper.append(
                    self._put(_inner_page(page_type, pages[lo:hi], [entry(key) for key in keys[lo : hi - 1]]))
                )
                parting += keys[hi - 1 : hi]
            pages, keys = upper, parting
        return pages[0] if pages else 0

    def _index_root(self) -> int:
        """Append the pages of the index of times, and return the uppermost one."""
        times = np.concatenate([np.zeros(0, np.int64), *self._times])
        order = np.argsort(times, kind="stable")
        n = len(times)

        def entries(rows: NDArray[np.int64]) -> Buffer:
            out = np.zeros((len(rows), _ENTRY.size), np.uint8)
            # A record of 15 bytes: a header of 3 bytes, 8 bytes, and 4 bytes.
            out[:, :4] = (15, 3, 6, 4)
            out[:, 4:12] = times[rows].astype(">i8").view(np.uint8).reshape(-1, 8)
            out[:, 12:] = (rows + 1).astype(">i4").view(np.uint8).reshape(-1, 4)
            return out

        if n <= _ENTRIES:
            return self._put(_page(INDEX_LEAF, [entry.tobytes() for entry in entries(order)]))
        # Between two leaves is an entry that is in neither.
        leaves = -(-(n + 1) // (_ENTRIES + 1))
        bounds = (n + 1) * np.arange(leaves + 1) // leaves
        parting, pages = order[bounds[1:-1] - 1].tolist(), list[int]()
        for first in range(0, leaves, 256):
            few = bounds[first : first + 257]
            pages += self._index_leaves(entries(order[few[0] : few[-1]]), few - few[0])
        return self._root(
            INDEX_INNER, pages, parting, _INDEX_CHILDREN, lambda row: entries(np.array([row])).tobytes()
        )

    def _index_leaves(self, entries: Buffer, bounds: I64) -> list[int]:
        """Append leaves of the index; of the entries between two bounds the last one is left out."""
        count = np.diff(bounds) - 1
        leaf = np.repeat(np.arange(len(count)), count)
        number = np.arange(len(leaf)) - np.repeat(np.cumsum(count) - count, count)
        out = np.zeros(len(count) * PAGE, np.uint8)
        start = np.arange(len(count)) * PAGE
        out[start] = INDEX_LEAF
        _put_numbers(out, start + 3, count, 2)
        _put_numbers(out, start + 5, PAGE - _ENTRY.size * count, 2)
        place = PAGE - _ENTRY.size * (number + 1)
        _put_numbers(out, start[leaf] + _LEAF_HEAD + 2 * number, place, 2)
        out[(start[leaf] + place)[:, None] + np.arange(_ENTRY.size)] = entries[: bounds[-1]][
            bounds[:-1][leaf] + number
        ]
        first = self._next()
        self._put_pages(out, first)
        pages: list[int] = _physical(first + np.arange(len(count)), first).tolist()
        return pages

    def _first_page(self, roots: dict[str, int], count: int) -> bytes:
        """Return the first page: header, then a row for each table and the index.

        roots  first pages of these, by name
        count  pages of the database
        """
        rows = [("table", name, name, roots.get(name, 0), sql) for name, sql in self._tables.items()]
        name, sql = self._index
        rows.append(("index", name, "messages", roots.get(name, 0), sql))
        cells = [
            varint(len(content)) + varint(number) + content
            for number, row in enumerate(rows, 1)
            for content in (record(row),)
        ]
        head = MAGIC + struct.pack(">HBBBBBB", PAGE, 1, 1, 0, 64, 32, 32)
        # Changes, pages, free pages, cookie of the schema and its format; text in UTF-8, and the version of SQLite.
        head += struct.pack(">8I", 1, count, 0, 0, len(rows), 4, 0, 0)
        head += struct.pack(">4I20x2I", 1, 0, 0, 0, 1, 3_040_000)
        return head + _page(LEAF, cells, HEADER)


def _page(page_type: int, cells: Sequence[bytes], used: int = 0, right: int | None = None) -> bytes:
    """Return a page with these entries; *used*: bytes before it, *right*: the last page below it."""
    body, places, at = bytearray(), list[int](), PAGE
    for cell in cells:
        at -= len(cell)
        places.append(at)
    for cell in reversed(cells):
        body += cell
    head = struct.pack(">BHHHB", page_type, 0, len(cells), at, 0)
    head += b"" if right is None else right.to_bytes(4, "big")
    head += struct.pack(f">{len(places)}H", *places)
    return head.ljust(PAGE - used - len(body), b"\0") + body


def _inner_page(page_type: int, pages: Sequence[int], entries: Sequence[bytes]) -> bytes:
    cells = [page.to_bytes(4, "big") + entry for page, entry in zip(pages, entries, strict=False)]
    return _page(page_type, cells, right=pages[-1])


def _physical(numbers: I64, first: int) -> I64:
    """Return the numbers of pages counted from *first* on, without the one that SQLite locks."""
    return numbers + ((numbers >= LOCK_PAGE) & (first < LOCK_PAGE))


def _varint_sizes(values: I64) -> I64:
    sizes = np.ones(len(values), np.int64)
    for bits in range(7, 56, 7):
        sizes += values >= 1 << bits
    return sizes


def _put_varints(out: Buffer, at: I64, values: I64, sizes: I64) -> None:
    for n in range(int(sizes.max(initial=0))):
        rows = np.flatnonzero(sizes > n)
        behind = sizes[rows] - 1 - n
        out[at[rows] + n] = values[rows] >> 7 * behind & 0x7F | np.where(behind > 0, 0x80, 0)


def _put_numbers(out: Buffer, at: I64, values: I64, size: int) -> None:
    for n in range(size):
        out[at + n] = values >> 8 * (size - 1 - n) & 0xFF
