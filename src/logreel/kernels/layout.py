"""Kernels of Layout programs: count and validate messages, and fill exact columns with them.

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

layout/program.py writes these tables; nothing here checks them. ``kernels.layout_encode`` reads columns where ``fill``
writes them.
"""

import cython

if not cython.compiled:
    raise ImportError("logreel.kernels is not compiled: run `pip install -e .` (needs gcc)")

from cython.cimports.libc.stdlib import free, malloc
from cython.cimports.libc.string import memcmp, memcpy
from cython.cimports.logreel.kernels import ops as code
from cython.cimports.logreel.kernels.copies import Target, copy_turn, copy_turns, targetp
from cython.cimports.logreel.kernels.loads import gap, prefix, u16
from cython.cimports.logreel.kernels.prefetch import prefetch_span

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
            if ops[1] > stop - p:
                return cython.NULL
            # Two bytes, as messages of ROS 2 begin with them, are compared without a call.
            if u16(p) != (ops[2] & 0xFFFF) if ops[1] == 2 else memcmp(p, cython.address(ops[2]), ops[1]) != 0:
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
def _bytes(d: mu8p, p: u8p, n: cython.longlong, end: u8p, limit: mu8p) -> cython.void:
    # Two moves are faster than a copy of unknown length, where neither side is too near its end.
    if n <= 16 and end - p >= 16 and limit - d >= 16:
        memcpy(d, p, 16)
    else:
        memcpy(d, p, n)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _end_item(column: targetp, n: cython.longlong) -> cython.void:
    """Write the next offset of a column, *n* items behind the last one."""
    o: i32p = column.offset
    o[1] = o[0] + cython.cast(cython.int, n)
    column.offset = o + 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _fill(
    ops: i64p, last: i64p, copies: i64p, p: u8p, stop: u8p, base: u8p, end: u8p, columns: targetp
) -> u8p:
    """Fill the columns with one message; return where the ops end, NULL if its bytes are not those that were counted.

    Another process may write the bytes at any moment, so every count is read once and checked again. A column has room
    for what was counted: no array gets more items than that, so the columns of its items need no check.
    """
    n: cython.longlong
    m: cython.longlong
    k: cython.longlong
    _k: cython.longlong
    t: cython.int
    d: mu8p
    o: i32p
    to: targetp
    while ops < last:
        if ops[0] == code.FIXED:
            if ops[1] > stop - p:
                return cython.NULL
            copy_turn(p, copies + 5 * ops[2], copies + 5 * ops[3], columns)
            p += ops[1]
        elif ops[0] == code.BLOB:
            if ops[2] > stop - p:
                return cython.NULL
            n = prefix(p, ops[2])
            p += ops[2]
            if ops[5] and n:
                p += gap(ops[5], p - base)
            to = columns + ops[1]
            d = to.data
            m = n - ops[4] if n > ops[4] else 0
            if n * ops[3] > stop - p or m * ops[3] > to.limit - d:
                return cython.NULL
            _end_item(to, m)
            m *= ops[3]
            _bytes(d, p, m, end, to.limit)
            to.data = d + m
            p += n * ops[3]
        elif ops[0] == code.SKIP:
            if ops[2] > stop - p:
                return cython.NULL
            n = prefix(p, ops[2])
            p += ops[2]
            if ops[5] and n:
                p += gap(ops[5], p - base)
            if n * ops[3] > stop - p:
                return cython.NULL
            p += n * ops[3]
            if ops[3] == 0:
                columns[ops[1]].left -= n
        elif ops[0] == code.STRINGS:
            if ops[2] > stop - p:
                return cython.NULL
            n = prefix(p, ops[2])
            p += ops[2]
            if n * ops[4] > stop - p:
                return cython.NULL
            if ops[1] < 0:
                for _k in range(n):
                    if ops[4] > stop - p:
                        return cython.NULL
                    m = prefix(p, ops[4])
                    p += ops[4]
                    if m > stop - p:
                        return cython.NULL
                    p += m
                ops += 6
                continue
            to = columns + ops[1]
            if n > to.left:
                return cython.NULL
            to.left -= n
            _end_item(to, n)
            to = columns + ops[3]
            o = to.offset
            d = to.data
            t = o[0]
            for k in range(n):
                if ops[4] > stop - p:
                    return cython.NULL
                m = prefix(p, ops[4])
                p += ops[4]
                if m > stop - p or m > to.limit - d:
                    return cython.NULL
                _bytes(d, p, m, end, to.limit)
                d += m
                p += m
                t += cython.cast(cython.int, m)
                o[k + 1] = t
            to.offset = o + n
            to.data = d
        elif ops[0] == code.REST:
            if ops[1] >= 0:
                to = columns + ops[1]
                n = stop - p
                if n > to.limit - to.data:
                    return cython.NULL
                _end_item(to, n)
                memcpy(to.data, p, n)
                to.data += n
            p = stop
        elif ops[0] == code.ALIGN:
            p += gap(ops[1], p - base)
            if p > stop:
                return cython.NULL
        elif ops[0] == code.EXPECT:
            if ops[1] > stop - p:
                return cython.NULL
            p += ops[1]
        else:  # LIST, REPEAT
            n = ops[2]
            if ops[0] == code.LIST:
                if ops[2] > stop - p:
                    return cython.NULL
                n = prefix(p, ops[2])
                p += ops[2]
                if ops[1] >= 0:
                    to = columns + ops[1]
                    if n > to.left:
                        return cython.NULL
                    to.left -= n
                    _end_item(to, n)
                if ops[5] and n:
                    p += gap(ops[5], p - base)
            if n * ops[4] > stop - p:
                return cython.NULL
            if ops[3] == 1 and ops[6] == code.FIXED:
                if n:
                    copy_turns(p, n, ops[4], copies + 5 * ops[8], copies + 5 * ops[9], columns)
                p += n * ops[4]
            elif ops[3]:
                for _k in range(n):
                    p = _fill(ops + 6, ops + 6 + 6 * ops[3], copies, p, stop, base, end, columns)
                    if p == cython.NULL:
                        return cython.NULL
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
    counts: cython.const[cython.longlong][::1],
):
    """Fill columns with messages that ``count`` found sound; return whether they still are what was counted.

    source, start, stop, ops  as for ``count``
    arena    uint8[a]  memory of all columns
    data     int64[c]  where in *arena* the bytes of each column begin
    limits   int64[c]  where they end: the bytes behind may be another thread's
    offsets  int64[c]  where in *arena* the int32 offsets of each column begin, of which the first is set
    counts   int64[c]  items of each column, as ``count`` counted them

    Where False is returned another process wrote the bytes meanwhile, and the columns are not to be used; nothing was read
    outside of the messages, nor written outside of the columns. Raises IndexError where a column does not lie in *arena*,
    or a message not in *source*; then nothing is written.
    """
    rows: cython.Py_ssize_t = start.shape[0]
    columns: cython.Py_ssize_t = data.shape[0]
    size: cython.longlong = arena.shape[0]
    room: cython.longlong = source.shape[0]
    i: cython.Py_ssize_t
    b: u8p
    a: mu8p
    first: i64p
    last: i64p
    cp: i64p
    to: targetp
    same: cython.bint = True
    if rows == 0 or ops.shape[0] == 0:
        return True
    if limits.shape[0] != columns or offsets.shape[0] != columns or counts.shape[0] != columns:
        raise ValueError("data, limits, offsets and counts differ in length")
    if stop.shape[0] != rows:
        raise ValueError("start and stop differ in length")
    for i in range(columns):
        if not (0 <= data[i] <= limits[i] <= size and 0 <= offsets[i] <= size):
            raise IndexError("a column does not lie in the arena")
    for i in range(rows):
        if not 0 <= start[i] <= stop[i] <= room:
            raise IndexError("a message does not lie in the source")
    a = cython.address(arena[0]) if size else cython.NULL
    to = cython.cast(targetp, malloc((columns + 1) * cython.sizeof(Target)))
    if to == cython.NULL:
        raise MemoryError
    for i in range(columns):
        to[i].data, to[i].limit = a + data[i], a + limits[i]
        to[i].offset, to[i].left = cython.cast(i32p, a + offsets[i]), counts[i]
    b = cython.address(source[0]) if room else cython.cast(u8p, b"")
    first = cython.address(ops[0, 0])
    last = first + 6 * ops.shape[0]
    cp = cython.address(copies[0, 0]) if copies.shape[0] else cython.NULL
    with cython.nogil:
        for i in range(rows):
            if i + AHEAD < rows:
                prefetch_span(b + start[i + AHEAD], stop[i + AHEAD] - start[i + AHEAD])
            same = (
                _fill(first, last, cp, b + start[i], b + stop[i], b + start[i], b + room, to) != cython.NULL
            )
            if not same:
                break
        for i in range(columns):
            # Items of columns with bytes are counted by these.
            same = same and to[i].data == to[i].limit and (to[i].left == 0 or data[i] != limits[i])
        free(to)
    return same
