"""Pages of an SQLite 3 database, read where they lie: b-trees, records and overflow chains.

The database is not given to the SQLite library, so nothing that a file says is executed (views, triggers, expressions),
and what lies around damage can be read. Facts are from "Database File Format" of SQLite (sqlite.org/fileformat2.html);
the numbers in the names of its sections are given where they are used.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from logreel.dataclass import dataclass
from logreel.errors import Problem
from logreel.io.arrays import I64
from logreel.io.source import Buffer
from logreel.kernels import sqlite as kernel

MAGIC = b"SQLite format 3\0"
#: Bytes of the header of the database, which page 1 begins with (1.3).
HEADER = 100
#: Kinds of b-tree pages (1.6).
INNER, LEAF, INDEX_INNER, INDEX_LEAF = 5, 13, 2, 10
#: Page size of rosbag2, taken where the header states none that is possible.
USUAL_PAGE = 4096
#: Greatest page size: what is read from pages stays inside of so many bytes behind a place.
MAX_PAGE = 1 << 16
#: Most problems that are kept of one database; more are one.
MAX_PROBLEMS = 1000
#: Bytes that a cell takes in a leaf page at least, with its place in the list of cells.
_LEAST_CELL = 6
#: Bytes that a varint has at most.
_VARINT = 9


@dataclass(slots=True)
class PageRecords:
    """Records of leaf pages of a table, in the order of the pages.

    rowid  int64[n]
    begin  int64[n], offset of the payload of each
    size   int64[n], bytes of the payload
    local  int64[n], bytes of it that are in the leaf page; an overflow page number follows where that is not all
    end    int64[n], offset of the end of the page
    """

    rowid: I64
    begin: I64
    size: I64
    local: I64
    end: I64

    def at(self, rows: NDArray[np.generic]) -> PageRecords:
        """Return the records at *rows*, numbers or a mask."""
        return PageRecords(
            *(getattr(self, name)[rows] for name in ("rowid", "begin", "size", "local", "end"))
        )

    def __len__(self) -> int:
        return len(self.rowid)


class Pages:
    """The pages of a database.

    data      uint8[b], all pages
    problems  what was found to be damaged
    size      bytes of a page, *usable* without what extensions reserve at its end
    count     number of complete pages
    used      uint8[count + 1]: how often each page was taken, by number; page 0 does not exist
    """

    def __init__(self, data: Buffer, problems: list[Problem]) -> None:
        self.data, self.problems = data, problems
        self._view = data.data
        head = data[:HEADER].tobytes().ljust(HEADER, b"\0")
        stated = int.from_bytes(head[16:18], "big")
        self.size = MAX_PAGE if stated == 1 else stated
        if self.size < 512 or self.size & (self.size - 1):
            text = f"the database states pages of {stated} bytes; {USUAL_PAGE} are taken"
            self.note("header", 16, 2, False, text)
            self.size = USUAL_PAGE
        reserved = head[20] if self.size - head[20] >= 480 else 0
        self.usable = self.size - reserved
        self.count = len(data) // self.size
        self.used = np.zeros(self.count + 1, np.uint8)
        (self.first_free, self.free_count) = struct.unpack_from(">II", head, 32)
        self.encoding = {2: "utf-16-le", 3: "utf-16-be"}.get(int.from_bytes(head[56:60], "big"), "utf-8")
        changes, at_size, valid_for = head[24:28], int.from_bytes(head[28:32], "big"), head[92:96]
        #: Number of pages that the database states, where the statement is valid (1.3.7).
        self.stated_count = at_size if changes == valid_for and at_size else self.count
        rest = len(data) % self.size
        missing = (self.stated_count - self.count) * self.size - rest
        if missing > 0:
            text = f"{missing} bytes are missing: the file ends after {self.count} of the {self.stated_count} pages"
            self.note("truncated", self.count * self.size, max(rest, 1), True, f"{text} that it states")
        elif rest:
            text = f"the file ends inside of a page: {rest} of {self.size} bytes"
            self.note("truncated", self.count * self.size, rest, True, text)

    def note(self, code: str, offset: int, size: int, lost: bool, text: str) -> None:
        """Add a Problem, up to a bound; what lies behind the end is at the last byte."""
        offset = max(0, min(int(offset), len(self.data) - 1))
        problem = Problem(code, offset, min(int(size), len(self.data) - offset), lost, text)
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(problem)
        elif len(self.problems) == MAX_PROBLEMS:
            more = "there are more problems than are listed"
            self.problems.append(Problem("page", 0, max(1, int(size)), True, more))

    def start(self, page: int) -> int:
        """Return the offset of a page."""
        return (page - 1) * self.size

    def number(self, at: int, size: int) -> int:
        """Return the unsigned number of *size* bytes at an offset inside of the pages."""
        return int.from_bytes(self._view[at : at + size], "big")

    def head(self, page: int) -> int:
        """Return the offset of the b-tree header of a page."""
        return self.start(page) + (HEADER if page == 1 else 0)

    # ------------------------------------------------------------------------------------------------ b-trees

    def leaves(self, root: int, what: str) -> list[int]:
        """Return the leaf pages of the table whose b-tree begins at page *root*, in the order of rowids.

        Pages that are none of a table, or were met before, are Problems. In a database that logreel has not finished,
        tables have no first page.
        """
        leaves, waiting = list[int](), [root] if root or self.stated_count > 1 else []
        while waiting:
            page = waiting.pop()
            page_type = self.number(self.head(page), 1) if 0 < page <= self.count else 0
            if page_type not in (INNER, LEAF) or self.used[page]:
                self._note_page(page, page_type, what)
                continue
            self.used[page] = 1
            if page_type == LEAF:
                leaves.append(page)
            elif (below := self._leaves_below(page)) is not None:
                leaves += below
            else:
                waiting += reversed(self._children(page, what))
        return leaves

    def _leaves_below(self, page: int) -> list[int] | None:
        """Take and return the leaves that an inner page points to; None if it is not sound or points to others."""
        out = np.empty(self.size // 2, np.int64)
        count = kernel.leaves_below(self.data, page, self.size, self.usable, self.used, out)
        return None if count < 0 else out[:count].tolist()

    def _note_page(self, page: int, page_type: int, what: str) -> None:
        if self.count < page <= self.stated_count:
            # The problem ``truncated`` has counted it.
            return
        if not 0 < page <= self.count:
            text, size = f"page {page} of {what} is not in the file, with all that is below it", 1
            self.note("page", len(self.data), size, True, text)
        elif page_type in (INNER, LEAF, INDEX_INNER, INDEX_LEAF) and self.used[page]:
            text = f"page {page} belongs to {what} and to something else"
            self.note("page", self.start(page), self.size, True, text)
        else:
            text = f"page {page} of {what} is damaged: its kind is {page_type}"
            self.note("page", self.start(page), self.size, True, text)

    def _varint_size(self, at: int) -> int:
        return next((n + 1 for n in range(_VARINT - 1) if self.number(at + n, 1) < 0x80), _VARINT)

    def _children(self, page: int, what: str, is_table: bool = True) -> list[int]:
        """Return the pages that an inner page points to."""
        start, head = self.start(page), self.head(page)
        count, body = self.number(head + 3, 2), head + 12
        room = (start + self.usable - body) // 2
        if count > room:
            text = f"page {page} of {what} states {count} entries, which it has no room for"
            self.note("page", start, self.size, True, text)
            count = 0
        children, bad = list[int](), 0
        content = self.number(head + 5, 2) or MAX_PAGE
        for pointer in struct.unpack_from(f">{count}H", self._view, body):
            if body + 2 * count - start <= pointer <= self.usable - 5:
                at = start + pointer
                children.append(self.number(at, 4))
                content += 4 + self._varint_size(at + 4)
            else:
                bad += 1
        if bad:
            self.note("page", start, self.size, True, f"{bad} entries of page {page} of {what} are damaged")
        elif is_table and content != self.usable and content + self._free(head, start) != self.usable:
            text = f"page {page} of {what} has bytes that belong to no entry, or to two"
            self.note("page", start, self.size, True, text)
        children.append(self.number(head + 8, 4))
        return children

    def mark_others(self, roots: list[int], tables: bool) -> None:
        """Take the pages of the b-trees of indices, or of other tables, without a word about damage in them."""
        page_types = (INNER, LEAF) if tables else (INDEX_INNER, INDEX_LEAF)
        waiting = list(roots)
        silent = len(self.problems)
        while waiting:
            page = waiting.pop()
            if not 0 < page <= self.count or self.used[page]:
                continue
            page_type = self.number(self.head(page), 1)
            if page_type in page_types:
                self.used[page] = 1
                if page_type == page_types[0]:
                    waiting += self._children(page, "an index", is_table=False)
        del self.problems[silent:]

    def mark_free(self) -> None:
        """Take the pages that the database has freed (1.5)."""
        trunk = self.first_free
        while 0 < trunk <= self.count and not self.used[trunk]:
            self.used[trunk] = 1
            at = self.start(trunk)
            count = min(self.number(at + 4, 4), self.usable // 4 - 2)
            pages = self.data[at + 8 : at + 8 + 4 * count].view(">u4").astype(np.int64)
            self.used[pages[(pages > 0) & (pages <= self.count)]] = 1
            trunk = self.number(at, 4)

    def unused_leaves(self) -> list[int]:
        """Return pages that look like leaves of a table, and that nothing has taken."""
        pages = np.flatnonzero(self.used[1:] == 0) + 1
        heads = (pages - 1) * self.size + np.where(pages == 1, HEADER, 0)
        looks: list[int] = pages[self.data[heads] == LEAF].tolist()
        return looks

    # ------------------------------------------------------------------------------------------------ records

    def cells(self, leaves: list[int], what: str, quiet: bool = False) -> PageRecords:
        """Return the records in leaf pages; damaged ones are left out, and a Problem of each page.

        quiet  True: the pages may be none of a table, so nothing is noted
        """
        page = np.array(leaves, np.int64)
        if (sound := self._sound_cells(page)) is not None:
            return sound
        start = (page - 1) * self.size
        head = start + np.where(page == 1, HEADER, 0)
        count = self.numbers(head + 3, 2)
        room = (start + self.usable - head - 8) // 2
        wrong = np.where(count > room, 1, 0)
        count = np.where(count > room, 0, count)
        which = np.repeat(np.arange(len(page)), count)
        number = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
        pointer = self.numbers((head + 8)[which] + 2 * number, 2)
        least, most = (head + 8 + 2 * count - start)[which], self.usable - 4
        good = (pointer >= least) & (pointer <= most)
        at = start[which] + np.where(good, pointer, 0)
        size, step = self.varints(at)
        rowid, more = self.varints(at + step)
        begin = at + step + more
        local, end = local_sizes(size, self.usable), (start + self.usable)[which]
        good &= (size >= 0) & (begin + local + np.where(local < size, 4, 0) <= end)
        wrong += np.bincount(which[~good], minlength=len(page))
        sizes = np.maximum(4, begin - at + local + np.where(local < size, 4, 0))
        taken = np.bincount(which[good], weights=sizes[good], minlength=len(page)).astype(np.int64)
        if not quiet:
            for n in np.flatnonzero(wrong).tolist():
                text = f"{wrong[n]} records of page {page[n]} of {what} are damaged"
                self.note("record", start[n], self.size, True, text)
            content = self._content(head)
            for n in np.flatnonzero((content + taken != self.usable) & (wrong == 0)).tolist():
                rest = self.usable - int(content[n] + taken[n])
                rest -= self._free(int(head[n]), int(start[n]))
                if rest:
                    text = f"page {page[n]} of {what} has {rest} bytes that belong to no record, or to two"
                    self.note("record", start[n], abs(rest), True, text)
        return PageRecords(rowid, begin, size, local, end).at(good)

    def _sound_cells(self, leaves: I64) -> PageRecords | None:
        """Return the records in leaf pages; None if not all of these are as SQLite writes them."""
        out = self.room(leaves, 4)
        count = kernel.cells(self.data, leaves, self.size, self.usable, out)
        if count != out.shape[1]:
            return None
        rowid, begin, size, local = out
        # Not even an empty payload begins its page.
        return PageRecords(rowid, begin, size, local, (begin - 1) // self.size * self.size + self.usable)

    def room(self, leaves: I64, numbers: int) -> I64:
        """Return int64[numbers, n] for the cells that leaf pages state; n is 0 if that is more than they hold."""
        head = (leaves - 1) * self.size + np.where(leaves == 1, HEADER, 0)
        stated = int((self.data[head + 3].astype(np.int64) << 8 | self.data[head + 4]).sum())
        return np.empty(
            (numbers, stated if stated <= len(leaves) * self.size // _LEAST_CELL else 0), np.int64
        )

    def _content(self, head: I64) -> I64:
        """Return int64[n]: where the cells of pages begin, by the headers of these."""
        content: I64 = self.numbers(head + 5, 2)
        return np.where(content == 0, MAX_PAGE, content)

    def _free(self, head: int, start: int) -> int:
        """Return the bytes among the cells of a page that its header says to be free."""
        free, at, steps = self.number(head + 7, 1), self.number(head + 1, 2), 0
        while 0 < at <= self.usable - 4 and steps < self.usable // 4:
            free, at, steps = free + self.number(start + at + 2, 2), self.number(start + at, 2), steps + 1
        return free

    def numbers(self, at: I64, size: int) -> I64:
        """Return the unsigned big-endian numbers of *size* bytes at offsets; beyond the end there are zeros."""
        out = np.zeros(len(at), np.uint64)
        for byte in range(size):
            out = out << np.uint64(8) | self._byte(at + byte)
        return out.view(np.int64)

    def _byte(self, at: I64) -> NDArray[np.uint64]:
        if not len(self.data) or not len(at):
            return np.zeros(len(at), np.uint64)
        if int(at.min()) >= 0 and int(at.max()) < len(self.data):
            return self.data[at].astype(np.uint64)
        inside = (at >= 0) & (at < len(self.data))
        return np.where(inside, self.data[np.where(inside, at, 0)], 0).astype(np.uint64)

    def varints(self, at: I64) -> tuple[I64, I64]:
        """Return int64[n], int64[n]: the varints at offsets, and how many bytes each has (1.6)."""
        value, size = np.zeros(len(at), np.uint64), np.full(len(at), _VARINT, np.int64)
        active = np.arange(len(at))
        for number in range(_VARINT):
            byte = self._byte(at[active] + number)
            if number == _VARINT - 1:
                value[active] = value[active] << np.uint64(8) | byte
                break
            value[active] = value[active] << np.uint64(7) | (byte & np.uint64(0x7F))
            last = byte < 0x80
            size[active[last]] = number + 1
            active = active[~last]
            if not len(active):
                break
        return value.view(np.int64), size

    def fields(self, cells: PageRecords, columns: int) -> tuple[I64, I64, NDArray[np.bool_]]:
        """Return where the fields of records are: types int64[n, k], offsets int64[n, k + 1], good bool[n].

        Offsets are those in the payload.

        A record is good if its header states just *columns* fields, which just fill its payload (2.1), and the header
        is in the page.
        """
        n = len(cells)
        head, step = self.varints(cells.begin)
        types, offset = np.zeros((n, columns), np.int64), np.zeros((n, columns + 1), np.int64)
        at, good = cells.begin + step, head <= cells.local
        offset[:, 0] = head
        for column in range(columns):
            types[:, column], more = self.varints(at)
            at = at + more
            offset[:, column + 1] = offset[:, column] + sizes_of(types[:, column])
            good &= (types[:, column] >= 0) & (offset[:, column + 1] >= offset[:, column])
        good &= (at == cells.begin + head) & (offset[:, columns] == cells.size)
        return types, offset, good

    def integers(self, at: I64, types: I64) -> I64:
        """Return int64[n]: the integers of these types at offsets; 0 for other types."""
        out = np.zeros(len(at), np.int64)
        for page_type, size in _INTEGERS.items():
            rows = np.flatnonzero(types == page_type)
            if len(rows):
                numbers = self.numbers(at[rows], size)
                shift = 64 - 8 * size
                out[rows] = numbers << shift >> shift
        out[types == 9] = 1
        return out

    def index_rows(self, root: int) -> tuple[I64, I64, bool]:
        """Return the entries of an index of one column of whole numbers: its values, rowids, and whether all are sound.

        Entries are in inner pages, too, behind the page number of a child (1.6).
        """
        waiting, seen, at, sound = [root], set[int](), list[I64](), True
        while waiting:
            page = waiting.pop()
            page_type = self.number(self.head(page), 1) if 0 < page <= self.count else 0
            if page_type not in (INDEX_INNER, INDEX_LEAF) or page in seen:
                sound = False
                continue
            seen.add(page)
            start, body = self.start(page), self.head(page) + (12 if page_type == INDEX_INNER else 8)
            count = self.number(self.head(page) + 3, 2)
            if count > (start + self.usable - body) // 2:
                sound = False
                continue
            if page_type == INDEX_INNER:
                waiting += self._children(page, "an index", is_table=False)
            pointers = self.data[body : body + 2 * count].view(">u2").astype(np.int64)
            at.append(start + pointers + (4 if page_type == INDEX_INNER else 0))
        places = np.concatenate([np.zeros(0, np.int64), *at])
        size, step = self.varints(places)
        begin = places + step
        entries = PageRecords(np.zeros(len(begin), np.int64), begin, size, size, begin + size)
        types, offset, good = self.fields(entries, 2)
        good &= ((types > 0) & (types < 10) & (types != 7)).all(axis=1)
        value, rowid = (self.integers(begin + offset[:, n], types[:, n])[good] for n in (0, 1))
        return value, rowid, sound and bool(good.all())

    # ------------------------------------------------------------------------------------------------ overflow

    def next_page(self, page: int) -> int:
        """Return the page that an overflow page says to follow it; 0: none."""
        return self.number(self.start(page), 4)

    def chain(self, first: int, size: int) -> Iterator[tuple[int, int]]:
        """Yield offset and bytes of each part of an overflow chain of *size* bytes; ends early where it is broken."""
        page, room = first, self.usable - 4
        while size > 0 and 0 < page <= self.count:
            part_size = min(size, room)
            yield self.start(page) + 4, part_size
            size -= part_size
            page = self.next_page(page)

    def payload(self, begin: int, size: int, local: int, most: int) -> bytes | None:
        """Return a payload with what is in overflow pages; None if it is longer than *most* or its chain is broken."""
        if not 0 <= size <= most:
            return None
        out = bytearray(self._view[begin : begin + local])
        if local < size:
            for at, part_size in self.chain(self.number(begin + local, 4), size - local):
                self.used[at // self.size + 1] = 1
                out += self._view[at : at + part_size]
        return bytes(out) if len(out) == size else None


def local_sizes(size: I64, usable: int) -> I64:
    """Return int64[n]: the bytes of payloads of *size* bytes that are in a leaf page of *usable* bytes itself (1.6)."""
    most, least = usable - 35, (usable - 12) * 32 // 255 - 23
    fit = least + (size - least) % (usable - 4)
    local: I64 = np.where(size <= most, size, np.where(fit <= most, fit, least))
    return local


#: Bytes of the integers of each type of a field (2.1).
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
_SIZES = np.array([0, 1, 2, 3, 4, 6, 8, 8, 0, 0, -1, -1], np.int64)


def sizes_of(types: I64) -> I64:
    """Return int64[n]: the bytes of fields of these types; -1 or less for types that do not exist."""
    small = _SIZES[np.clip(types, 0, 11)]
    sizes: I64 = np.where(types < 12, small, (types - 12) // 2)
    return sizes


def values_of(payload: bytes, encoding: str) -> list[object] | None:
    """Return the fields of one record: None, int, float, str or bytes; None if it is damaged."""

    def varint(at: int) -> tuple[int, int]:
        value = 0
        for number in range(_VARINT):
            byte = payload[at + number]
            if number == _VARINT - 1:
                return value << 8 | byte, at + _VARINT
            value = value << 7 | byte & 0x7F
            if byte < 0x80:
                return value, at + number + 1
        raise IndexError

    values = list[object]()
    try:
        end, at = varint(0)
        place = end
        while at < end:
            page_type, at = varint(at)
            if page_type in (10, 11):
                return None
            size = int(_SIZES[page_type]) if page_type < 12 else (page_type - 12) // 2
            field = payload[place : place + size]
            if len(field) < size:
                return None
            place += size
            if page_type == 0:
                values.append(None)
            elif page_type == 7:
                values.append(struct.unpack(">d", field)[0])
            elif page_type < 12:
                values.append(page_type - 8 if page_type > 7 else int.from_bytes(field, "big", signed=True))
            else:
                values.append(field.decode(encoding, "replace") if page_type % 2 else field)
    except IndexError:
        return None
    return values
