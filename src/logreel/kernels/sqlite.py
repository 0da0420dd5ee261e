"""Kernels of the pages of an SQLite database: leaves below an inner page, and rows of the table of messages of a bag.

They read sound pages only. At the first thing that is not as SQLite writes it they return -1, and whoever called reads
the pages again, to say what is damaged and to keep the rest: formats/rosbag2/pages.py and reader.py, which also are the
plain readers beside which tests compare them. "Database File Format" of SQLite describes the pages.
"""

import cython

if not cython.compiled:
    raise ImportError("logreel.kernels is not compiled: run `pip install -e .` (needs gcc)")

from cython.cimports.logreel.kernels.loads import bytes_of

u8p = cython.typedef(cython.pointer[cython.const[cython.uchar]])
i64p = cython.typedef(cython.pointer[cython.const[cython.longlong]])
mi64p = cython.typedef(cython.pointer[cython.longlong])

#: Bytes of the header of the database, which page 1 begins with.
_HEADER = cython.declare(cython.longlong, 100)
#: Kinds of pages of tables.
_INNER = cython.declare(cython.longlong, 5)
_LEAF = cython.declare(cython.longlong, 13)
#: Most columns of the table of messages.
COLUMNS = 16
_COLUMNS = cython.declare(cython.longlong, 16)

#: Where the next varint begins, and where its page ends.
Place = cython.struct(next=u8p, stop=u8p)
placep = cython.typedef(cython.pointer[Place])
#: A cell of a leaf: number of its row, bytes of the payload, those of them that are in the page, and where it begins.
Cell = cython.struct(rowid=cython.longlong, size=cython.longlong, local=cython.longlong, payload=u8p)
cellp = cython.typedef(cython.pointer[Cell])
#: What ``message_rows`` is told of the table; *room*: rows that there is room for; *marked*: those that begin with *magic*.
Table = cython.struct(
    page=cython.longlong,
    usable=cython.longlong,
    columns=cython.longlong,
    topic=cython.longlong,
    time=cython.longlong,
    data=cython.longlong,
    largest=cython.longlong,
    room=cython.longlong,
    magic=cython.longlong,
    marked=cython.longlong,
)
tablep = cython.typedef(cython.pointer[Table])


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _big(p: u8p, width: cython.longlong) -> cython.longlong:
    """Return a number of *width* bytes, the first of which has the sign if there are eight."""
    k: cython.longlong
    v: cython.ulonglong = 0
    for k in range(width):
        v = (v << 8) | p[k]
    return cython.cast(cython.longlong, v)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _varint(at: placep) -> cython.longlong:
    """Read a varint; negative where it is not before the end, or has no meaning as a size or number of a row."""
    _k: cython.longlong
    byte: cython.ulonglong
    v: cython.ulonglong = 0
    for _k in range(8):
        if at.next >= at.stop:
            return -1
        byte = at.next[0]
        at.next += 1
        v = (v << 7) | (byte & 0x7F)
        if byte < 0x80:
            return cython.cast(cython.longlong, v)
    return -1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _width(code: cython.longlong) -> cython.longlong:
    """Return the bytes of a field by its type; -1 for types that do not exist."""
    if code >= 12:
        return (code - 12) // 2
    if code <= 4:
        return code
    if code == 5:
        return 6
    if code <= 7:
        return 8
    return 0 if code <= 9 else -1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _is_whole(code: cython.longlong) -> cython.bint:
    """Return whether fields of a type are whole numbers."""
    return 0 < code < 7 or code == 8 or code == 9


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _integer(p: u8p, code: cython.longlong) -> cython.longlong:
    """Return the value of a field of types 1 to 6, 8 and 9."""
    if code > 7:
        return code - 8
    n: cython.longlong = 64 - 8 * _width(code)
    return cython.cast(cython.longlong, cython.cast(cython.ulonglong, _big(p, _width(code))) << n) >> n


def leaves_below(
    source: cython.const[cython.uchar][::1],
    page: cython.longlong,
    page_bytes: cython.longlong,
    usable: cython.longlong,
    used: cython.uchar[::1],
    out: cython.longlong[::1],
) -> cython.longlong:
    """Write the pages below an inner page to *out*, and take them in *used*; return how many they are.

    source      uint8[b], all pages
    page        number of the inner page, from 1
    page_bytes  bytes of a page, *usable* without those at its end that are reserved
    used        uint8[count + 1], how often each page was taken, by number
    out         int64[n], with room for one page for each two bytes of a page

    Returns -1 if a page is damaged, was taken before, or is not a leaf; *used* is then as before.
    """
    pages: cython.longlong = used.shape[0] - 1
    room: cython.longlong = out.shape[0]
    count: cython.longlong
    content: cython.longlong
    pointer: cython.longlong
    child: cython.longlong
    i: cython.longlong
    n: cython.longlong = 0
    base: u8p = bytes_of(source)
    start: u8p
    head: u8p
    at: Place
    if not 0 < page <= pages or not 512 <= page_bytes <= 65536 or not 480 <= usable <= page_bytes:
        raise IndexError("there is no such page")
    if pages * page_bytes > source.shape[0]:
        raise ValueError("there are fewer bytes than pages")
    start = base + (page - 1) * page_bytes
    head = start + (_HEADER if page == 1 else 0)
    at.stop = start + usable
    count = _big(head + 3, 2)
    content = _big(head + 5, 2)
    if content == 0:
        content = 65536
    if head[0] != _INNER or count > (at.stop - head - 12) // 2 or count >= room:
        return -1
    for i in range(count + 1):
        if i < count:
            pointer = _big(head + 12 + 2 * i, 2)
            if pointer < head + 12 + 2 * count - start or pointer > usable - 5:
                break
            at.next = start + pointer + 4
            child = _big(start + pointer, 4)
            if _varint(cython.address(at)) < 0:
                break
            content += at.next - start - pointer
        else:
            if content != usable:
                break
            child = _big(head + 8, 4)
        if not 0 < child <= pages or used[child]:
            break
        if base[(child - 1) * page_bytes + (_HEADER if child == 1 else 0)] != _LEAF:
            break
        used[child] = 1
        out[n] = child
        n += 1
    if n <= count:
        for i in range(n):
            used[out[i]] = 0
        return -1
    return n


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _cell(usable: cython.longlong, next: u8p, stop: u8p, to: cellp) -> cython.longlong:
    """Read what comes before a payload; return the bytes of the cell, or -1."""
    at: Place
    spare: cython.longlong
    at.next, at.stop = next, stop
    to.size = _varint(cython.address(at))
    if to.size < 0:
        return -1
    to.rowid = _varint(cython.address(at))
    if to.rowid < 0:
        return -1
    to.payload = at.next
    to.local = to.size
    if to.size > usable - 35:
        spare = (usable - 12) * 32 // 255 - 23
        to.local = spare + (to.size - spare) % (usable - 4)
        if to.local > usable - 35:
            to.local = spare
    # The number of a further page follows.
    spare = 4 if to.local < to.size else 0
    if to.local + spare > stop - to.payload:
        return -1
    # A cell has four bytes at least.
    spare += to.payload - next + to.local
    return spare if spare > 4 else 4


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _row(t: tablep, base: u8p, cell: cellp, to: mi64p) -> cython.bint:
    """Read the row of messages that a cell has; return whether it is sound.

    base  first byte of the database
    to    the numbers of a row that ``message_rows`` tells of, *t.room* apart
    """
    types: cython.longlong[16]
    # Where each field begins in its payload.
    offset: cython.longlong[17]
    payload: u8p = cell.payload
    size: cython.longlong = cell.size
    local: cython.longlong = cell.local
    width: cython.longlong
    column: cython.longlong
    at: Place
    at.next = payload
    at.stop = payload + local
    offset[0] = _varint(cython.address(at))
    if not 0 <= offset[0] <= local:
        return False
    at.stop = payload + offset[0]
    for column in range(t.columns):
        types[column] = _varint(cython.address(at))
        width = -1 if types[column] < 0 else _width(types[column])
        if width < 0 or width > size - offset[column]:
            return False
        offset[column + 1] = offset[column] + width
    if at.next != at.stop or offset[t.columns] != size:
        return False
    if not (_is_whole(types[t.topic]) and offset[t.topic + 1] <= local):
        return False
    if not (_is_whole(types[t.time]) and offset[t.time + 1] <= local):
        return False
    # A message begins in the page, and is the end of its row.
    width = offset[t.data]
    if types[t.data] < 12 or width > local or offset[t.data + 1] != size or size - width > t.largest:
        return False
    to[0] = cell.rowid
    to[t.room] = _integer(payload + offset[t.topic], types[t.topic])
    to[2 * t.room] = _integer(payload + offset[t.time], types[t.time])
    to[3 * t.room] = payload + width - base
    to[4 * t.room] = size - width
    to[5 * t.room] = local - width
    to[6 * t.room] = _big(payload + local, 4) if local < size else 0
    if local - width >= 4 and _big(payload + width, 4) == t.magic:
        t.marked += 1
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _rows(t: tablep, base: u8p, leaf: i64p, last: i64p, out: mi64p) -> cython.longlong:
    """Read the cells of leaf pages, and the rows of messages in them if there are columns; return how many, or -1."""
    rows: cython.longlong = 0
    before: cython.longlong = -1
    count: cython.longlong
    content: cython.longlong
    pointer: cython.longlong
    size: cython.longlong
    i: cython.longlong
    start: u8p
    head: u8p
    cell: Cell
    while leaf < last:
        start = base + (leaf[0] - 1) * t.page
        head = start + (_HEADER if leaf[0] == 1 else 0)
        leaf += 1
        count = _big(head + 3, 2)
        content = _big(head + 5, 2)
        if content == 0:
            content = 65536
        if count > (start + t.usable - head - 8) // 2 or count > t.room - rows:
            return -1
        for i in range(count):
            pointer = _big(head + 8 + 2 * i, 2)
            if pointer < head + 8 + 2 * count - start or pointer > t.usable - 4:
                return -1
            size = _cell(t.usable, start + pointer, start + t.usable, cython.address(cell))
            if size < 0:
                return -1
            content += size
            if t.columns == 0:
                out[rows] = cell.rowid
                out[rows + t.room] = cell.payload - base
                out[rows + 2 * t.room] = cell.size
                out[rows + 3 * t.room] = cell.local
            elif cell.rowid <= before or not _row(t, base, cython.address(cell), out + rows):
                return -1
            before = cell.rowid
            rows += 1
        if content != t.usable:
            return -1
    return rows


@cython.cfunc
@cython.exceptval(-2)
def _read(
    source: cython.const[cython.uchar][::1],
    leaves: cython.const[cython.longlong][::1],
    page_bytes: cython.longlong,
    usable: cython.longlong,
    t: tablep,
    out: cython.longlong[:, ::1],
) -> cython.longlong:
    """Check the arguments, and read the rows."""
    rows: cython.longlong = 0
    i: cython.Py_ssize_t
    base: u8p = bytes_of(source)
    leaf: i64p
    if not 512 <= page_bytes <= 65536 or not 480 <= usable <= page_bytes:
        raise ValueError("pages have 512 to 65536 bytes, and 480 of them at least are used")
    for i in range(leaves.shape[0]):
        if not 0 < leaves[i] <= source.shape[0] // page_bytes:
            raise IndexError("a page is not in the database")
    if leaves.shape[0]:
        if out.shape[1] == 0:
            return -1
        t.page, t.usable, t.room = page_bytes, usable, out.shape[1]
        leaf = cython.address(leaves[0])
        with cython.nogil:
            rows = _rows(t, base, leaf, leaf + leaves.shape[0], cython.address(out[0, 0]))
    return rows


def cells(
    source: cython.const[cython.uchar][::1],
    leaves: cython.const[cython.longlong][::1],
    page_bytes: cython.longlong,
    usable: cython.longlong,
    out: cython.longlong[:, ::1],
) -> cython.longlong:
    """Read the records of leaf pages of a table; return how many they are.

    source, leaves, page_bytes, usable  as for ``message_rows``
    out  int64[4, n]: rowid, offset of the payload, its bytes, those of them that are in the page

    Returns -1 if a page is damaged, or *out* is too short.
    """
    t: Table
    if out.shape[0] != 4:
        raise ValueError("a record has four numbers")
    t.columns = 0
    return _read(source, leaves, page_bytes, usable, cython.address(t), out)


def message_rows(
    source: cython.const[cython.uchar][::1],
    leaves: cython.const[cython.longlong][::1],
    page_bytes: cython.longlong,
    usable: cython.longlong,
    columns: cython.longlong,
    topic: cython.longlong,
    time: cython.longlong,
    data: cython.longlong,
    largest: cython.longlong,
    magic: cython.longlong,
    out: cython.longlong[:, ::1],
):
    """Read the rows of the table of messages; return how many they are, and how many messages begin with *magic*.

    source      uint8[b], all pages
    leaves      int64[l], numbers of its leaf pages from 1 on, in the order of rowids
    page_bytes  bytes of a page, *usable* without those at its end that are reserved
    columns     how many columns the table has; *topic*, *time* and *data*: which of them these are
    largest     bytes of a message
    magic       four bytes as a big-endian number
    out         int64[7, n]: rowid, topic, time, offset of the message, its bytes, those of them that are in the page,
                and the page that the others begin in, or 0

    The first number is -1 if a page or row is damaged, rowids do not ascend, or *out* is too short.
    """
    count: cython.longlong
    t: Table
    if not (0 < columns <= _COLUMNS and 0 <= topic < columns and 0 <= time < columns and 0 <= data < columns):
        raise ValueError("there are no such columns")
    if out.shape[0] != 7:
        raise ValueError("a row has seven numbers")
    t.columns, t.topic, t.time, t.data = columns, topic, time, data
    t.largest, t.magic, t.marked = largest, magic, 0
    count = _read(source, leaves, page_bytes, usable, cython.address(t), out)
    return count, t.marked
