"""Kernels of Layout programs: count and validate messages, fill exact columns with them, and encode columns.

ops     int64[n, 6]  one row per op; its body, where it has one, is the rows right after it

        FIXED   nbytes first last               copies first … last-1, then skip nbytes
        BLOB    column prefix item tail grid    a count of *prefix* bytes, then count * item bytes, of which the last
                                                *tail* are hidden
        SKIP    column prefix item -    grid    as BLOB, not copied; where *item* is 0 the column only counts
        LIST    column prefix nbody least grid  a count, then the body count times; column -1: hidden
        REPEAT  -      count  nbody least       the body count times
        STRINGS column prefix text prefix       a count, then that many BLOBs of single bytes; column -1: hidden
        REST    column                          all remaining bytes; column -1: hidden
        ALIGN   grid                            padding up to the next position of a grid
        EXPECT  nbytes value                    that many bytes (at most 8), which must have this value

        *least* is the least size of one turn of the body in bytes; where it is 0 the body is empty. A *grid* is a step
        (a power of two) plus 256 times the byte of the message from which its positions count; 0 means no grid.
        Nothing is aligned behind a count of 0.
copies  int64[m, 5]  from (bytes from the start of the run), width, column, step (bytes that one turn adds to the
                     column), tail (step on the last run of the column, else 0)

layout/program.py writes these tables; nothing here checks them. ``encode`` reads columns where ``fill`` writes
them: each column has a cursor over its bytes, counted ones another over their int32 offsets. Hidden bytes are encoded as
zeros, hidden arrays as empty ones.
"""

import cython

if not cython.compiled:
    raise ImportError("logreel.kernels is not compiled: run `pip install -e .` (needs gcc)")

from cython.cimports.libc.stdlib import free, malloc
from cython.cimports.libc.string import memcmp, memcpy, memset
from cython.cimports.logreel.kernels import ops as code
from cython.cimports.logreel.kernels.cursors import (
    Columns,
    cursorp,
    hold_columns,
    next_count,
    release_columns,
    take_bytes,
)
from cython.cimports.logreel.kernels.debug import check
from cython.cimports.logreel.kernels.loads import gap, largest_count, prefix, put_prefix
from cython.cimports.logreel.kernels.prefetch import prefetch_span
from cython.cimports.logreel.kernels.transpose import transpose_rows

u8p = cython.typedef(cython.pointer[cython.const[cython.uchar]])
i64p = cython.typedef(cython.pointer[cython.const[cython.longlong]])
mi64p = cython.typedef(cython.pointer[cython.longlong])

#: Op codes, for those who compile programs.
FIXED, BLOB, SKIP, LIST, REPEAT = code.FIXED, code.BLOB, code.SKIP, code.LIST, code.REPEAT
STRINGS, REST, ALIGN, EXPECT = code.STRINGS, code.REST, code.ALIGN, code.EXPECT
#: What *status* says of a message, see ``count``.
OK, SHORT, LEFTOVER, TOO_MANY = 0, 1, 2, 3
#: A message may have as many items without bytes as it has bytes, plus this many: nothing else limits a count.
SPARE = 1 << 16
_SPARE = cython.declare(cython.longlong, 1 << 16)
#: Maximum of 32-bit offsets.
_MOST = cython.declare(cython.longlong, (1 << 31) - 1)
#: Number of messages that are prefetched ahead: messages of a channel are not adjacent.
AHEAD = cython.declare(cython.longlong, 12)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _count(
    ops: i64p,
    end: i64p,
    p: u8p,
    stop: u8p,
    base: u8p,
    counts: mi64p,
    sign: cython.longlong,
) -> u8p:
    """Return where the ops end, or NULL where the bytes are too few; add sign * elements to counts[column]."""
    n: cython.longlong
    m: cython.longlong
    t: cython.longlong
    _k: cython.longlong
    q: u8p
    while ops < end:
        if ops[0] == code.FIXED:
            if ops[1] > stop - p:
                return cython.NULL
            p += ops[1]
        elif ops[0] == code.BLOB or ops[0] == code.SKIP:
            if ops[2] > stop - p:
                return cython.NULL
            n = prefix(p, ops[2])
            p += ops[2]
            if ops[5] and n:
                p += gap(ops[5], p - base)
            if n * ops[3] > stop - p:
                return cython.NULL
            p += n * ops[3]
            if ops[0] == code.BLOB:
                counts[ops[1]] += sign * (n - ops[4] if n > ops[4] else 0)
            elif ops[3] == 0:
                counts[ops[1]] += sign * n
        elif ops[0] == code.STRINGS:
            if ops[2] > stop - p:
                return cython.NULL
            n = prefix(p, ops[2])
            p += ops[2]
            if n * ops[4] > stop - p:
                return cython.NULL
            t = 0
            q = p
            for _k in range(n):
                if ops[4] > stop - q:
                    return cython.NULL
                m = prefix(q, ops[4])
                q += ops[4]
                if m > stop - q:
                    return cython.NULL
                q += m
                t += m
            p = q
            if ops[1] >= 0:
                counts[ops[1]] += sign * n
                counts[ops[3]] += sign * t
        elif ops[0] == code.REST:
            if ops[1] >= 0:
                counts[ops[1]] += sign * (stop - p)
            p = stop
        elif ops[0] == code.ALIGN:
            p += gap(ops[1], p - base)
            if p > stop:
                return cython.NULL
        elif ops[0] == code.EXPECT:
            if ops[1] > stop - p or memcmp(p, cython.address(ops[2]), ops[1]) != 0:
                return cython.NULL
            p += ops[1]
        else:  # LIST, REPEAT
            n = ops[2]
            if ops[0] == code.LIST:
                if ops[2] > stop - p:
                    return cython.NULL
                n = prefix(p, ops[2])
                p += ops[2]
                if ops[5] and n:
                    p += gap(ops[5], p - base)
            if n * ops[4] > stop - p:
                return cython.NULL
            if ops[0] == code.LIST and ops[1] >= 0:
                counts[ops[1]] += sign * n
            if ops[3] == 1 and ops[6] == code.FIXED:
                # The least of a body of one run is its size, so it has been checked above.
                p += n * ops[4]
            elif ops[3]:
                for _k in range(n):
                    p = _count(ops + 6, ops + 6 + 6 * ops[3], p, stop, base, counts, sign)
                    if p == cython.NULL:
                        return cython.NULL
            ops += 6 * ops[3]
        ops += 6
    return p


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _without_bytes(ops: i64p, end: i64p, counts: mi64p) -> cython.longlong:
    """Return the number of items counted so far in lists of items without bytes; -1 without such lists."""
    total: cython.longlong = 0
    found: cython.bint = False
    while ops < end:
        if (ops[0] == code.LIST and ops[1] >= 0 and ops[4] == 0) or (ops[0] == code.SKIP and ops[3] == 0):
            found = True
            total += counts[ops[1]]
        ops += 6
    return total if found else -1


def count(
    source: cython.const[cython.uchar][::1],
    start: cython.const[cython.longlong][::1],
    stop: cython.const[cython.longlong][::1],
    ops: cython.const[cython.longlong][:, ::1],
    counts: cython.longlong[::1],
    status: cython.uchar[::1],
):
    """Check messages; return how many decode, and add to *counts* what each column needs for exactly these.

    source  uint8[b]
    start   int64[n]  message i is source[start[i]:stop[i]]
    stop    int64[n]
    counts  int64[c]  items of each LIST, BLOB, STRINGS and REST column; counted up
    status  uint8[n]  set to OK, SHORT (or not inside *source*), LEFTOVER (decodes, with bytes left over), or TOO_MANY
                      (more items without bytes than SPARE allows); messages with an odd status do not decode
    """
    rows: cython.Py_ssize_t = start.shape[0]
    size: cython.longlong = source.shape[0]
    good: cython.Py_ssize_t = 0
    before: cython.longlong
    now: cython.longlong
    allowed: cython.longlong
    i: cython.Py_ssize_t
    b: u8p
    q: u8p
    first: i64p
    last: i64p
    c: mi64p
    if stop.shape[0] != rows or status.shape[0] != rows or ops.shape[1] != 6:
        raise ValueError("start, stop and status differ in length, or the program is not a table of ops")
    if rows == 0:
        return 0
    # Memory of 0 bytes may have no address.
    b = cython.address(source[0]) if size else cython.cast(u8p, b"")
    first = cython.address(ops[0, 0]) if ops.shape[0] else cython.NULL
    last = first + 6 * ops.shape[0]
    c = cython.address(counts[0]) if counts.shape[0] else cython.NULL
    before = _without_bytes(first, last, c)
    with cython.nogil:
        for i in range(rows):
            if i + AHEAD < rows and 0 <= start[i + AHEAD] < size:
                prefetch_span(b + start[i + AHEAD], 128)
            if start[i] < 0 or stop[i] < start[i] or stop[i] > size:
                status[i] = 1
                continue
            q = _count(first, last, b + start[i], b + stop[i], b + start[i], c, 1)
            if q == cython.NULL:
                # The same walk again with the opposite sign restores the counts; only damaged messages pay for it.
                _count(first, last, b + start[i], b + stop[i], b + start[i], c, -1)
                status[i] = 1
                continue
            if before >= 0:
                now = _without_bytes(first, last, c)
                allowed = stop[i] - start[i] + _SPARE
                if now - before > (allowed if allowed < _MOST else _MOST):
                    _count(first, last, b + start[i], b + stop[i], b + start[i], c, -1)
                    status[i] = 3
                    continue
                before = now
            good += 1
            status[i] = 0 if q == b + stop[i] else 2
    return good


mu8p = cython.typedef(cython.pointer[cython.uchar])
i32p = cython.typedef(cython.pointer[cython.int])


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _copy(p: u8p, c: i64p, last: i64p, data: cython.pointer[mu8p]) -> cython.void:
    """Copy one turn: append every run of bytes to its column."""
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
    """Return how many runs from *c* on are adjacent words of four bytes, each for a separate column."""
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
    """Copy many turns of *n* adjacent words: four columns at once, the last four perhaps twice."""
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
    """Copy many turns of *size* bytes: column by column, each in a loop of constant width."""
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
        # The next run of the same column starts one run later; the last one moves the cursor behind all turns.
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
    """Fill the columns with one message, return where the ops end; ``_count`` has checked the same bytes."""
    n: cython.longlong
    m: cython.longlong
    k: cython.longlong
    _k: cython.longlong
    t: cython.int
    d: mu8p
    o: i32p
    while ops < last:
        if ops[0] == code.FIXED:
            _copy(p, copies + 5 * ops[2], copies + 5 * ops[3], data)
            p += ops[1]
        elif ops[0] == code.BLOB:
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
        elif ops[0] == code.SKIP:
            n = prefix(p, ops[2])
            p += ops[2]
            if ops[5] and n:
                p += gap(ops[5], p - base)
            p += n * ops[3]
        elif ops[0] == code.STRINGS:
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
        elif ops[0] == code.REST:
            if ops[1] >= 0:
                n = stop - p
                o = offsets[ops[1]]
                o[1] = o[0] + cython.cast(cython.int, n)
                offsets[ops[1]] = o + 1
                memcpy(data[ops[1]], p, n)
                data[ops[1]] += n
            p = stop
        elif ops[0] == code.ALIGN:
            p += gap(ops[1], p - base)
        elif ops[0] == code.EXPECT:
            p += ops[1]
        else:  # LIST, REPEAT
            n = ops[2]
            if ops[0] == code.LIST:
                n = prefix(p, ops[2])
                p += ops[2]
                if ops[1] >= 0:
                    o = offsets[ops[1]]
                    o[1] = o[0] + cython.cast(cython.int, n)
                    offsets[ops[1]] = o + 1
                if ops[5] and n:
                    p += gap(ops[5], p - base)
            if ops[3] == 1 and ops[6] == code.FIXED:
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
    arena: cython.uchar[::1],
    data: cython.const[cython.longlong][::1],
    limits: cython.const[cython.longlong][::1],
    offsets: cython.const[cython.longlong][::1],
):
    """Fill columns with messages that ``count`` found sound.

    source, start, stop, ops  as for ``count``
    arena    uint8[a]  memory of all columns
    data     int64[c]  where in *arena* the bytes of each column begin
    limits   int64[c]  where they end: the bytes behind may be another thread's
    offsets  int64[c]  where in *arena* the int32 offsets of each column begin, of which the first is set

    Raises IndexError where a column does not lie in *arena*; then nothing is written.
    """
    rows: cython.Py_ssize_t = start.shape[0]
    columns: cython.Py_ssize_t = data.shape[0]
    size: cython.longlong = arena.shape[0]
    i: cython.Py_ssize_t
    b: u8p
    a: mu8p
    first: i64p
    last: i64p
    cp: i64p
    pd: cython.pointer[mu8p]
    if rows == 0 or ops.shape[0] == 0:
        return
    if limits.shape[0] != columns or offsets.shape[0] != columns:
        raise ValueError("data, limits and offsets differ in length")
    for i in range(columns):
        if not (0 <= data[i] <= limits[i] <= size and 0 <= offsets[i] <= size):
            raise IndexError("a column does not lie in the arena")
    a = cython.address(arena[0]) if size else cython.NULL
    # The cursors of all columns: over their bytes, their limits, and over their offsets.
    pd = cython.cast(cython.pointer[mu8p], malloc((3 * columns + 1) * cython.sizeof(mu8p)))
    if pd == cython.NULL:
        raise MemoryError
    for i in range(columns):
        pd[i], pd[columns + i], pd[2 * columns + i] = a + data[i], a + limits[i], a + offsets[i]
    b = cython.address(source[0]) if source.shape[0] else cython.cast(u8p, b"")
    first = cython.address(ops[0, 0])
    last = first + 6 * ops.shape[0]
    cp = cython.address(copies[0, 0]) if copies.shape[0] else cython.NULL
    with cython.nogil:
        for i in range(rows):
            if i + AHEAD < rows:
                prefetch_span(b + start[i + AHEAD], stop[i + AHEAD] - start[i + AHEAD])
            _fill(
                first,
                last,
                cp,
                b + start[i],
                b + stop[i],
                b + start[i],
                b + source.shape[0],
                pd,
                pd + columns,
                cython.cast(cython.pointer[i32p], pd + 2 * columns),
            )
        free(pd)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _align(p: mu8p, base: mu8p, grid: cython.longlong) -> mu8p:
    """Write zeros up to the next position of a grid, return it."""
    n: cython.longlong = gap(grid, p - base)
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
) -> cython.void:
    """Write many turns of *size* bytes from their columns; bytes outside of all runs stay unchanged."""
    d: u8p
    s: mu8p
    w: cython.longlong
    k: cython.longlong
    while c < last:
        s = p + c[0]
        w = c[1]
        d = columns[c[2]].data
        check(b"column to encode", c[3] * (turns - 1) + w <= columns[c[2]].data_end - d)
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


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _write(
    ops: i64p,
    end: i64p,
    copies: i64p,
    p: mu8p,
    base: mu8p,
    columns: cursorp,
) -> mu8p:
    """Write one message, return where the ops end; ``_size`` has checked the same columns."""
    n: cython.longlong
    m: cython.longlong
    _k: cython.longlong
    while ops < end:
        if ops[0] == code.FIXED:
            memset(p, 0, ops[1])
            _run(p, 1, ops[1], copies + 5 * ops[2], copies + 5 * ops[3], columns)
            p += ops[1]
        elif ops[0] == code.BLOB:
            n = next_count(columns + ops[1])
            p = put_prefix(p, ops[2], n + ops[4])
            if ops[5] and n:
                p = _align(p, base, ops[5])
            n *= ops[3]
            memcpy(p, take_bytes(columns + ops[1], n), n)
            memset(p + n, 0, ops[4])
            p += n + ops[4]
        elif ops[0] == code.SKIP:
            p = put_prefix(p, ops[2], 0)
        elif ops[0] == code.STRINGS:
            n = next_count(columns + ops[1]) if ops[1] >= 0 else 0
            p = put_prefix(p, ops[2], n)
            for _k in range(n):
                m = next_count(columns + ops[3])
                p = put_prefix(p, ops[4], m)
                memcpy(p, take_bytes(columns + ops[3], m), m)
                p += m
        elif ops[0] == code.REST:
            if ops[1] >= 0:
                n = next_count(columns + ops[1])
                memcpy(p, take_bytes(columns + ops[1], n), n)
                p += n
        elif ops[0] == code.ALIGN:
            p = _align(p, base, ops[1])
        elif ops[0] == code.EXPECT:
            memcpy(p, cython.address(ops[2]), ops[1])
            p += ops[1]
        else:  # LIST, REPEAT
            n = ops[2]
            if ops[0] == code.LIST:
                n = next_count(columns + ops[1]) if ops[1] >= 0 else 0
                p = put_prefix(p, ops[2], n)
                if ops[5] and n:
                    p = _align(p, base, ops[5])
            if ops[3] == 1 and ops[6] == code.FIXED:
                if n:
                    memset(p, 0, n * ops[4])
                    _run(p, n, ops[4], copies + 5 * ops[8], copies + 5 * ops[9], columns)
                p += n * ops[4]
            elif ops[3]:
                for _k in range(n):
                    p = _write(ops + 6, ops + 6 + 6 * ops[3], copies, p, base, columns)
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
    """
    i: cython.Py_ssize_t
    p: mu8p
    base: mu8p
    room: cython.longlong = out.shape[0]
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
            check(b"message to encode", 0 <= start[i] <= room)
            p = base + start[i]
            p = _write(first, first + 6 * ops.shape[0], cp, p, p, held.cursors)
            check(b"message to encode", p - base <= room)
    release_columns(cython.address(held))
