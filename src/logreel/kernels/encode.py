"""Write messages by a Layout program: size them first, then fill exact bytes. The way back of ``kernels.layout``.

The tables of ops and copies are those described there. Columns are read where that module fills them: each has a
cursor over its bytes, counted ones another over their int32 offsets. What is not shown is written as zeros, and hidden
arrays as empty ones.
"""

import cython

if not cython.compiled:
    raise ImportError("logreel.kernels is not compiled: run `pip install -e .` (needs gcc)")

from cython.cimports.libc.string import memcpy, memset
from cython.cimports.logreel.kernels.loads import gap

u8p = cython.typedef(cython.pointer[cython.const[cython.uchar]])
mu8p = cython.typedef(cython.pointer[cython.uchar])
i64p = cython.typedef(cython.pointer[cython.const[cython.longlong]])
i32p = cython.typedef(cython.pointer[cython.const[cython.int]])


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _most(width: cython.longlong) -> cython.longlong:
    """The largest count that a prefix of *width* bytes can hold."""
    if width == 4:
        return 4294967295
    return 255 if width == 1 else 65535


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _prefix(p: mu8p, width: cython.longlong, n: cython.longlong) -> mu8p:
    v4: cython.uint = cython.cast(cython.uint, n)
    v2: cython.ushort = cython.cast(cython.ushort, n)
    if width == 4:
        memcpy(p, cython.address(v4), 4)
    elif width == 1:
        p[0] = cython.cast(cython.uchar, n)
    else:
        memcpy(p, cython.address(v2), 2)
    return p + width


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _next(o: cython.pointer[i32p]) -> cython.longlong:
    """The next count of a column, whose cursor moves on."""
    p: i32p = o[0]
    o[0] = p + 1
    return cython.cast(cython.longlong, p[1]) - p[0]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _align(p: mu8p, base: mu8p, grid: cython.longlong) -> mu8p:
    """Zeros up to the next place of a grid."""
    n: cython.longlong = gap(grid, p - base)
    memset(p, 0, n)
    return p + n


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _size(
    ops: i64p, end: i64p, offsets: cython.pointer[i32p], largest: cython.longlong, at: cython.longlong
) -> cython.longlong:
    """Bytes of the ops, which begin at byte *at* of the message, or -1 where a count does not fit its prefix, -2 where they are more than *largest*."""
    n: cython.longlong
    m: cython.longlong
    _k: cython.longlong
    total: cython.longlong = 0
    while ops < end:
        if ops[0] == 0:  # FIXED
            total += ops[1]
        elif ops[0] == 1:  # BLOB
            n = _next(offsets + ops[1]) + ops[4]
            if n > _most(ops[2]):
                return -1
            total += ops[2]
            if ops[5] and n:
                total += gap(ops[5], at + total)
            total += n * ops[3]
        elif ops[0] == 2:  # SKIP
            total += ops[2]
        elif ops[0] == 5:  # STRINGS
            total += ops[2]
            if ops[1] >= 0:
                n = _next(offsets + ops[1])
                if n > _most(ops[2]):
                    return -1
                for _k in range(n):
                    m = _next(offsets + ops[3])
                    if m > _most(ops[4]):
                        return -1
                    total += ops[4] + m
        elif ops[0] == 6:  # REST
            if ops[1] >= 0:
                total += _next(offsets + ops[1])
        elif ops[0] == 7:  # ALIGN
            total += gap(ops[1], at + total)
        elif ops[0] == 8:  # EXPECT
            total += ops[1]
        else:  # LIST, REPEAT
            n = ops[2]
            if ops[0] == 3:
                total += ops[2]
                n = _next(offsets + ops[1]) if ops[1] >= 0 else 0
                if n > _most(ops[2]):
                    return -1
                if ops[5] and n:
                    total += gap(ops[5], at + total)
            if ops[3] == 1 and ops[6] == 0:
                total += n * ops[4]
            elif ops[3]:
                for _k in range(n):
                    m = _size(ops + 6, ops + 6 + 6 * ops[3], offsets, largest, at + total)
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
    p: mu8p, turns: cython.longlong, size: cython.longlong, c: i64p, last: i64p, data: cython.pointer[u8p]
) -> cython.void:
    """Many turns of *size* bytes, each of runs of bytes from their columns; what no run covers stays as it is."""
    d: u8p
    s: mu8p
    w: cython.longlong
    k: cython.longlong
    while c < last:
        s = p + c[0]
        w = c[1]
        d = data[c[2]]
        if w == 8:
            for k in range(turns):
                memcpy(s + k * size, d + k * c[3], 8)
        elif w == 4:
            for k in range(turns):
                memcpy(s + k * size, d + k * c[3], 4)
        else:
            for k in range(turns):
                memcpy(s + k * size, d + k * c[3], w)
        data[c[2]] = d + w + c[4] * (turns - 1)
        c += 5


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _write(
    ops: i64p,
    end: i64p,
    copies: i64p,
    p: mu8p,
    base: mu8p,
    data: cython.pointer[u8p],
    offsets: cython.pointer[i32p],
) -> mu8p:
    """Where the ops end. Checks nothing: _size has walked the same columns."""
    n: cython.longlong
    m: cython.longlong
    _k: cython.longlong
    while ops < end:
        if ops[0] == 0:  # FIXED
            memset(p, 0, ops[1])
            _run(p, 1, ops[1], copies + 5 * ops[2], copies + 5 * ops[3], data)
            p += ops[1]
        elif ops[0] == 1:  # BLOB
            n = _next(offsets + ops[1])
            p = _prefix(p, ops[2], n + ops[4])
            if ops[5] and n:
                p = _align(p, base, ops[5])
            n *= ops[3]
            memcpy(p, data[ops[1]], n)
            data[ops[1]] += n
            memset(p + n, 0, ops[4])
            p += n + ops[4]
        elif ops[0] == 2:  # SKIP
            p = _prefix(p, ops[2], 0)
        elif ops[0] == 5:  # STRINGS
            n = _next(offsets + ops[1]) if ops[1] >= 0 else 0
            p = _prefix(p, ops[2], n)
            for _k in range(n):
                m = _next(offsets + ops[3])
                p = _prefix(p, ops[4], m)
                memcpy(p, data[ops[3]], m)
                data[ops[3]] += m
                p += m
        elif ops[0] == 6:  # REST
            if ops[1] >= 0:
                n = _next(offsets + ops[1])
                memcpy(p, data[ops[1]], n)
                data[ops[1]] += n
                p += n
        elif ops[0] == 7:  # ALIGN
            p = _align(p, base, ops[1])
        elif ops[0] == 8:  # EXPECT
            memcpy(p, cython.address(ops[2]), ops[1])
            p += ops[1]
        else:  # LIST, REPEAT
            n = ops[2]
            if ops[0] == 3:
                n = _next(offsets + ops[1]) if ops[1] >= 0 else 0
                p = _prefix(p, ops[2], n)
                if ops[5] and n:
                    p = _align(p, base, ops[5])
            if ops[3] == 1 and ops[6] == 0:
                if n:
                    memset(p, 0, n * ops[4])
                    _run(p, n, ops[4], copies + 5 * ops[8], copies + 5 * ops[9], data)
                p += n * ops[4]
            elif ops[3]:
                for _k in range(n):
                    p = _write(ops + 6, ops + 6 + 6 * ops[3], copies, p, base, data, offsets)
            ops += 6 * ops[3]
        ops += 6
    return p


def sizes(
    ops: cython.const[cython.longlong][:, ::1],
    offsets: cython.ulonglong[::1],
    size: cython.longlong[::1],
    largest: cython.longlong,
):
    """Bytes of each message.

    offsets  uint64[c]  address of each counted column's int32 offsets; advanced
    size     int64[n]   set to the bytes of each message
    largest  int        bytes that one message may have

    Returns the messages sized, and why it stopped: 0 all are, -1 a count does not fit its prefix, -2 one is too large.
    """
    i: cython.Py_ssize_t = 0
    why: cython.longlong = 0
    first: i64p
    last: i64p
    po: cython.pointer[i32p]
    if ops.shape[0] == 0:
        size[:] = 0
        return size.shape[0], 0
    first = cython.address(ops[0, 0])
    last = first + 6 * ops.shape[0]
    po = cython.cast(cython.pointer[i32p], cython.address(offsets[0])) if offsets.shape[0] else cython.NULL
    with cython.nogil:
        while i < size.shape[0]:
            size[i] = _size(first, last, po, largest, 0)
            if size[i] < 0:
                why = size[i]
                break
            i += 1
    return i, why


def write(
    ops: cython.const[cython.longlong][:, ::1],
    copies: cython.const[cython.longlong][:, ::1],
    data: cython.ulonglong[::1],
    offsets: cython.ulonglong[::1],
    start: cython.const[cython.longlong][::1],
    out: cython.uchar[::1],
):
    """Write every message at its place in *out*, which has room for what ``sizes`` told.

    data     uint64[c]  address of each column's bytes; advanced
    offsets  uint64[c]  as above
    start    int64[n]   where each message begins
    """
    i: cython.Py_ssize_t
    p: mu8p
    first: i64p
    cp: i64p
    pd: cython.pointer[u8p]
    po: cython.pointer[i32p]
    if ops.shape[0] == 0 or start.shape[0] == 0 or out.shape[0] == 0:
        return
    first = cython.address(ops[0, 0])
    cp = cython.address(copies[0, 0]) if copies.shape[0] else cython.NULL
    pd = cython.cast(cython.pointer[u8p], cython.address(data[0])) if data.shape[0] else cython.NULL
    po = cython.cast(cython.pointer[i32p], cython.address(offsets[0])) if offsets.shape[0] else cython.NULL
    with cython.nogil:
        for i in range(start.shape[0]):
            p = cython.address(out[0]) + start[i]
            _write(first, first + 6 * ops.shape[0], cp, p, p, pd, po)
