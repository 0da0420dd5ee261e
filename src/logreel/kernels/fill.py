"""Fill exact columns with messages that ``kernels.layout`` has counted and found sound, by the tables described there."""

import cython

if not cython.compiled:
    raise ImportError("logreel.kernels is not compiled: run `pip install -e .` (needs gcc)")

from cython.cimports.libc.string import memcpy
from cython.cimports.logreel.kernels.loads import gap, prefix
from cython.cimports.logreel.kernels.prefetch import prefetch_span
from cython.cimports.logreel.kernels.transpose import transpose_rows

u8p = cython.typedef(cython.pointer[cython.const[cython.uchar]])
mu8p = cython.typedef(cython.pointer[cython.uchar])
i64p = cython.typedef(cython.pointer[cython.const[cython.longlong]])
i32p = cython.typedef(cython.pointer[cython.int])

#: Messages ahead of the walk whose bytes are asked for: between two of a channel lie those of others.
AHEAD = cython.declare(cython.longlong, 12)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _copy(p: u8p, c: i64p, last: i64p, data: cython.pointer[mu8p]) -> cython.void:
    """One turn: every run of bytes to the end of its column."""
    d: mu8p
    w: cython.longlong
    while c < last:
        w = c[1]
        d = data[c[2]]
        if w == 8:
            memcpy(d, p + c[0], 8)
        elif w == 4:
            memcpy(d, p + c[0], 4)
        elif w == 1:
            d[0] = p[c[0]]
        elif w == 2:
            memcpy(d, p + c[0], 2)
        else:
            memcpy(d, p + c[0], w)
        data[c[2]] = d + w
        c += 5


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _words(c: i64p, last: i64p) -> cython.longlong:
    """How many runs from *c* on are neighbouring words of four bytes, each to a column of its own."""
    n: cython.longlong = 0
    while c < last and c[1] == 4 and c[3] == 4:
        n += 1
        if c + 5 == last or c[5] != c[0] + 4:
            break
        c += 5
    return n


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _copy_words(
    p: u8p,
    turns: cython.longlong,
    size: cython.longlong,
    c: i64p,
    n: cython.longlong,
    data: cython.pointer[mu8p],
) -> cython.void:
    """Many turns of *n* neighbouring words: four columns at once, the last four perhaps twice."""
    k: cython.longlong
    i: cython.longlong
    for k in range(0, n, 4):
        i = 5 * (k if k <= n - 4 else n - 4)
        transpose_rows(
            p + c[i], size, turns, data[c[i + 2]], data[c[i + 7]], data[c[i + 12]], data[c[i + 17]]
        )
    for k in range(n):
        data[c[5 * k + 2]] += 4 * turns


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _copy_turns(
    p: u8p,
    turns: cython.longlong,
    size: cython.longlong,
    c: i64p,
    last: i64p,
    data: cython.pointer[mu8p],
) -> cython.void:
    """Many turns of *size* bytes: column by column, each in a loop of constant width."""
    d: mu8p
    s: u8p
    w: cython.longlong
    step: cython.longlong
    k: cython.longlong
    while c < last:
        if turns >= 4:
            k = _words(c, last)
            if k >= 4:
                _copy_words(p, turns, size, c, k, data)
                c += 5 * k
                continue
        s = p + c[0]
        w = c[1]
        d = data[c[2]]
        step = c[3]
        if w == 8:
            for k in range(turns):
                memcpy(d + k * step, s + k * size, 8)
        elif w == 4:
            for k in range(turns):
                memcpy(d + k * step, s + k * size, 4)
        elif w == 1:
            for k in range(turns):
                d[k * step] = s[k * size]
        elif w == 2:
            for k in range(turns):
                memcpy(d + k * step, s + k * size, 2)
        else:
            for k in range(turns):
                memcpy(d + k * step, s + k * size, w)
        # The next run of the same column starts one run further; after the last, all turns are behind.
        data[c[2]] = d + w + c[4] * (turns - 1)
        c += 5


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _bytes(d: mu8p, p: u8p, n: cython.longlong, end: u8p, limit: mu8p) -> cython.void:
    # Two moves are faster than a copy of unknown length, where neither side is too near its end.
    if n <= 16 and end - p >= 16 and limit - d >= 16:
        memcpy(d, p, 16)
    else:
        memcpy(d, p, n)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _fill(
    ops: i64p,
    last: i64p,
    copies: i64p,
    p: u8p,
    stop: u8p,
    base: u8p,
    end: u8p,
    data: cython.pointer[mu8p],
    limits: cython.pointer[mu8p],
    offsets: cython.pointer[i32p],
) -> u8p:
    """Where the ops end. Checks nothing: _count has walked the same bytes."""
    n: cython.longlong
    m: cython.longlong
    k: cython.longlong
    _k: cython.longlong
    t: cython.int
    d: mu8p
    o: i32p
    while ops < last:
        if ops[0] == 0:  # FIXED
            _copy(p, copies + 5 * ops[2], copies + 5 * ops[3], data)
            p += ops[1]
        elif ops[0] == 1:  # BLOB
            n = prefix(p, ops[2])
            p += ops[2]
            if ops[5] and n:
                p += gap(ops[5], p - base)
            m = n - ops[4] if n > ops[4] else 0
            o = offsets[ops[1]]
            o[1] = o[0] + cython.cast(cython.int, m)
            offsets[ops[1]] = o + 1
            m *= ops[3]
            d = data[ops[1]]
            _bytes(d, p, m, end, limits[ops[1]])
            data[ops[1]] = d + m
            p += n * ops[3]
        elif ops[0] == 2:  # SKIP
            n = prefix(p, ops[2])
            p += ops[2]
            if ops[5] and n:
                p += gap(ops[5], p - base)
            p += n * ops[3]
        elif ops[0] == 5:  # STRINGS
            n = prefix(p, ops[2])
            p += ops[2]
            if ops[1] < 0:
                for _k in range(n):
                    p += ops[4] + prefix(p, ops[4])
                ops += 6
                continue
            o = offsets[ops[1]]
            o[1] = o[0] + cython.cast(cython.int, n)
            offsets[ops[1]] = o + 1
            o = offsets[ops[3]]
            d = data[ops[3]]
            t = o[0]
            for k in range(n):
                m = prefix(p, ops[4])
                p += ops[4]
                _bytes(d, p, m, end, limits[ops[3]])
                d += m
                p += m
                t += cython.cast(cython.int, m)
                o[k + 1] = t
            offsets[ops[3]] = o + n
            data[ops[3]] = d
        elif ops[0] == 6:  # REST
            if ops[1] >= 0:
                n = stop - p
                o = offsets[ops[1]]
                o[1] = o[0] + cython.cast(cython.int, n)
                offsets[ops[1]] = o + 1
                memcpy(data[ops[1]], p, n)
                data[ops[1]] += n
            p = stop
        elif ops[0] == 7:  # ALIGN
            p += gap(ops[1], p - base)
        elif ops[0] == 8:  # EXPECT
            p += ops[1]
        else:  # LIST, REPEAT
            n = ops[2]
            if ops[0] == 3:
                n = prefix(p, ops[2])
                p += ops[2]
                if ops[1] >= 0:
                    o = offsets[ops[1]]
                    o[1] = o[0] + cython.cast(cython.int, n)
                    offsets[ops[1]] = o + 1
                if ops[5] and n:
                    p += gap(ops[5], p - base)
            if ops[3] == 1 and ops[6] == 0:
                if n:
                    _copy_turns(p, n, ops[4], copies + 5 * ops[8], copies + 5 * ops[9], data)
                p += n * ops[4]
            elif ops[3]:
                for _k in range(n):
                    p = _fill(
                        ops + 6, ops + 6 + 6 * ops[3], copies, p, stop, base, end, data, limits, offsets
                    )
            ops += 6 * ops[3]
        ops += 6
    return p


def fill(
    source: cython.const[cython.uchar][::1],
    start: cython.const[cython.longlong][::1],
    stop: cython.const[cython.longlong][::1],
    ops: cython.const[cython.longlong][:, ::1],
    copies: cython.const[cython.longlong][:, ::1],
    data: cython.ulonglong[::1],
    limits: cython.const[cython.ulonglong][::1],
    offsets: cython.ulonglong[::1],
):
    """Fill the columns with messages that ``count`` found sound.

    data     uint64[c]  address of each column's bytes; advanced
    limits   uint64[c]  address where they end: what lies behind may be another thread's
    offsets  uint64[c]  address of each column's int32 offsets, of which the first is set; advanced
    """
    rows: cython.Py_ssize_t = start.shape[0]
    i: cython.Py_ssize_t
    b: u8p
    first: i64p
    last: i64p
    cp: i64p
    pd: cython.pointer[mu8p]
    pl: cython.pointer[mu8p]
    po: cython.pointer[i32p]
    if rows == 0 or ops.shape[0] == 0:
        return
    b = cython.address(source[0]) if source.shape[0] else cython.cast(u8p, b"")
    first = cython.address(ops[0, 0])
    last = first + 6 * ops.shape[0]
    cp = cython.address(copies[0, 0]) if copies.shape[0] else cython.NULL
    pd = cython.cast(cython.pointer[mu8p], cython.address(data[0])) if data.shape[0] else cython.NULL
    pl = cython.cast(cython.pointer[mu8p], cython.address(limits[0])) if limits.shape[0] else cython.NULL
    po = cython.cast(cython.pointer[i32p], cython.address(offsets[0])) if offsets.shape[0] else cython.NULL
    with cython.nogil:
        for i in range(rows):
            if i + AHEAD < rows:
                prefetch_span(b + start[i + AHEAD], stop[i + AHEAD] - start[i + AHEAD])
            _fill(first, last, cp, b + start[i], b + stop[i], b + start[i], b + source.shape[0], pd, pl, po)
