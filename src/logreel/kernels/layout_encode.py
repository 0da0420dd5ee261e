"""Kernel that encodes columns to messages by a Layout program: the tables of ``kernels.layout``, read the other way.

``encode`` reads columns where ``layout.fill`` writes them: each column has a cursor over its bytes, counted ones another
over their int32 offsets. Hidden bytes are encoded as zeros, hidden arrays as empty ones.
"""

import cython

if not cython.compiled:
    raise ImportError("logreel.kernels is not compiled: run `pip install -e .` (needs gcc)")

from cython.cimports.libc.string import memcpy, memset
from cython.cimports.logreel.kernels import ops as code
from cython.cimports.logreel.kernels.cursors import (
    Columns,
    cursorp,
    hold_columns,
    next_count,
    release_columns,
    take_bytes,
)
from cython.cimports.logreel.kernels.loads import gap, largest_count, put_prefix

u8p = cython.typedef(cython.pointer[cython.const[cython.uchar]])
mu8p = cython.typedef(cython.pointer[cython.uchar])
i64p = cython.typedef(cython.pointer[cython.const[cython.longlong]])


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _align(p: mu8p, stop: mu8p, base: mu8p, grid: cython.longlong) -> mu8p:
    """Write zeros up to the next position of a grid, return it; NULL where that is behind *stop*."""
    n: cython.longlong = gap(grid, p - base)
    if n > stop - p:
        return cython.NULL
    memset(p, 0, n)
    return p + n


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _size(
    ops: i64p, end: i64p, columns: cursorp, largest: cython.longlong, at: cython.longlong
) -> cython.longlong:
    """Return the bytes that the ops write from byte *at* of the message.

    Negative: -1 a count does not fit its prefix, -2 more than *largest* bytes.
    """
    n: cython.longlong
    m: cython.longlong
    _k: cython.longlong
    total: cython.longlong = 0
    while ops < end:
        if ops[0] == code.FIXED:
            total += ops[1]
        elif ops[0] == code.BLOB:
            n = next_count(columns + ops[1]) + ops[4]
            if n > largest_count(ops[2]):
                return -1
            total += ops[2]
            if ops[5] and n:
                total += gap(ops[5], at + total)
            total += n * ops[3]
        elif ops[0] == code.SKIP:
            total += ops[2]
        elif ops[0] == code.STRINGS:
            total += ops[2]
            if ops[1] >= 0:
                n = next_count(columns + ops[1])
                if n > largest_count(ops[2]):
                    return -1
                for _k in range(n):
                    m = next_count(columns + ops[3])
                    if m > largest_count(ops[4]):
                        return -1
                    total += ops[4] + m
        elif ops[0] == code.REST:
            if ops[1] >= 0:
                total += next_count(columns + ops[1])
        elif ops[0] == code.ALIGN:
            total += gap(ops[1], at + total)
        elif ops[0] == code.EXPECT:
            total += ops[1]
        else:  # LIST, REPEAT
            n = ops[2]
            if ops[0] == code.LIST:
                total += ops[2]
                n = next_count(columns + ops[1]) if ops[1] >= 0 else 0
                if n > largest_count(ops[2]):
                    return -1
                if ops[5] and n:
                    total += gap(ops[5], at + total)
            if ops[3] == 1 and ops[6] == code.FIXED:
                total += n * ops[4]
            elif ops[3]:
                for _k in range(n):
                    m = _size(ops + 6, ops + 6 + 6 * ops[3], columns, largest, at + total)
                    if m < 0:
                        return m
                    total += m
                    if total > largest:
                        return -2
            ops += 6 * ops[3]
        if total > largest:
            return -2
        ops += 6
    return total


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _run(
    p: mu8p, turns: cython.longlong, size: cython.longlong, c: i64p, last: i64p, columns: cursorp
) -> cython.bint:
    """Write many turns of *size* bytes from their columns; bytes outside of all runs stay unchanged.

    Returns False where a column has fewer items.
    """
    d: u8p
    s: mu8p
    w: cython.longlong
    k: cython.longlong
    while c < last:
        s = p + c[0]
        w = c[1]
        d = columns[c[2]].data
        if c[3] * (turns - 1) + w > columns[c[2]].data_end - d:
            columns[c[2]].is_short = True
            return False
        if w == 8:
            for k in range(turns):
                memcpy(s + k * size, d + k * c[3], 8)
        elif w == 4:
            for k in range(turns):
                memcpy(s + k * size, d + k * c[3], 4)
        else:
            for k in range(turns):
                memcpy(s + k * size, d + k * c[3], w)
        columns[c[2]].data = d + w + c[4] * (turns - 1)
        c += 5
    return True


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put(p: mu8p, stop: mu8p, n: cython.longlong, column: cursorp) -> mu8p:
    """Write the next *n* bytes of a column; return where they end, NULL where it has fewer or there is no room."""
    d: u8p
    if n > stop - p:
        return cython.NULL
    d = take_bytes(column, n)
    if d == cython.NULL:
        return cython.NULL
    memcpy(p, d, n)
    return p + n


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _write(
    ops: i64p,
    end: i64p,
    copies: i64p,
    p: mu8p,
    stop: mu8p,
    base: mu8p,
    columns: cursorp,
) -> mu8p:
    """Write one message, return where the ops end; NULL where its columns are not those that ``_size`` measured."""
    n: cython.longlong
    m: cython.longlong
    _k: cython.longlong
    while ops < end:
        if ops[0] == code.FIXED:
            if ops[1] > stop - p:
                return cython.NULL
            memset(p, 0, ops[1])
            if not _run(p, 1, ops[1], copies + 5 * ops[2], copies + 5 * ops[3], columns):
                return cython.NULL
            p += ops[1]
        elif ops[0] == code.BLOB:
            n = next_count(columns + ops[1])
            if ops[2] > stop - p:
                return cython.NULL
            p = put_prefix(p, ops[2], n + ops[4])
            if ops[5] and n:
                p = _align(p, stop, base, ops[5])
                if p == cython.NULL:
                    return cython.NULL
            p = _put(p, stop, n * ops[3], columns + ops[1])
            if p == cython.NULL or ops[4] > stop - p:
                return cython.NULL
            memset(p, 0, ops[4])
            p += ops[4]
        elif ops[0] == code.SKIP:
            if ops[2] > stop - p:
                return cython.NULL
            p = put_prefix(p, ops[2], 0)
        elif ops[0] == code.STRINGS:
            n = next_count(columns + ops[1]) if ops[1] >= 0 else 0
            if ops[2] > stop - p:
                return cython.NULL
            p = put_prefix(p, ops[2], n)
            for _k in range(n):
                m = next_count(columns + ops[3])
                if ops[4] > stop - p:
                    return cython.NULL
                p = _put(put_prefix(p, ops[4], m), stop, m, columns + ops[3])
                if p == cython.NULL:
                    return cython.NULL
        elif ops[0] == code.REST:
            if ops[1] >= 0:
                p = _put(p, stop, next_count(columns + ops[1]), columns + ops[1])
                if p == cython.NULL:
                    return cython.NULL
        elif ops[0] == code.ALIGN:
            p = _align(p, stop, base, ops[1])
            if p == cython.NULL:
                return cython.NULL
        elif ops[0] == code.EXPECT:
            if ops[1] > stop - p:
                return cython.NULL
            memcpy(p, cython.address(ops[2]), ops[1])
            p += ops[1]
        else:  # LIST, REPEAT
            n = ops[2]
            if ops[0] == code.LIST:
                n = next_count(columns + ops[1]) if ops[1] >= 0 else 0
                if ops[2] > stop - p:
                    return cython.NULL
                p = put_prefix(p, ops[2], n)
                if ops[5] and n:
                    p = _align(p, stop, base, ops[5])
                    if p == cython.NULL:
                        return cython.NULL
            if ops[3] == 1 and ops[6] == code.FIXED:
                if n * ops[4] > stop - p:
                    return cython.NULL
                if n:
                    memset(p, 0, n * ops[4])
                    if not _run(p, n, ops[4], copies + 5 * ops[8], copies + 5 * ops[9], columns):
                        return cython.NULL
                p += n * ops[4]
            elif ops[3]:
                for _k in range(n):
                    p = _write(ops + 6, ops + 6 + 6 * ops[3], copies, p, stop, base, columns)
                    if p == cython.NULL:
                        return cython.NULL
            ops += 6 * ops[3]
        ops += 6
    return p


def encoded_sizes(
    ops: cython.const[cython.longlong][:, ::1],
    offsets: list,
    size: cython.longlong[::1],
    largest: cython.longlong,
):
    """Fill *size* with the bytes of each message to be encoded.

    offsets  int32 offsets of each counted column; of others an array that is not read
    size     int64[n]
    largest  int  greatest size of a message in bytes

    Returns how many messages were measured, and why it stopped: 0 all are, -1 a count does not fit its prefix, -2 the
    next one is too large. Raises IndexError for a column with too few or descending offsets.
    """
    i: cython.Py_ssize_t = 0
    why: cython.longlong = 0
    first: i64p
    last: i64p
    held: Columns
    if ops.shape[0] == 0:
        size[:] = 0
        return size.shape[0], 0
    first = cython.address(ops[0, 0])
    last = first + 6 * ops.shape[0]
    hold_columns(cython.address(held), offsets, offsets)
    with cython.nogil:
        while i < size.shape[0]:
            size[i] = _size(first, last, held.cursors, largest, 0)
            if size[i] < 0:
                why = size[i]
                break
            i += 1
    release_columns(cython.address(held))
    return i, why


def encode(
    ops: cython.const[cython.longlong][:, ::1],
    copies: cython.const[cython.longlong][:, ::1],
    data: list,
    offsets: list,
    start: cython.const[cython.longlong][::1],
    out: cython.uchar[::1],
):
    """Write every message to *out*, which has room for the sizes that ``encoded_sizes`` returned.

    data     contiguous array of the bytes of each column; of columns that only count an array that is not read
    offsets  as for ``encoded_sizes``
    start    int64[n]  start of each message in *out*

    Raises IndexError for a column with too few items, and where a message does not fit: nothing is written outside of *out*.
    """
    i: cython.Py_ssize_t
    p: mu8p
    base: mu8p
    stop: cython.longlong
    room: cython.longlong = out.shape[0]
    fits: cython.bint = True
    first: i64p
    cp: i64p
    held: Columns
    if ops.shape[0] == 0 or start.shape[0] == 0 or room == 0:
        return
    first = cython.address(ops[0, 0])
    cp = cython.address(copies[0, 0]) if copies.shape[0] else cython.NULL
    base = cython.address(out[0])
    hold_columns(cython.address(held), data, offsets)
    with cython.nogil:
        for i in range(start.shape[0]):
            stop = start[i + 1] if i + 1 < start.shape[0] else room
            fits = 0 <= start[i] <= stop <= room
            if not fits:
                break
            p = base + start[i]
            fits = _write(first, first + 6 * ops.shape[0], cp, p, base + stop, p, held.cursors) != cython.NULL
            if not fits:
                break
    release_columns(cython.address(held))
    if not fits:
        raise IndexError("a message does not fit into its place")
