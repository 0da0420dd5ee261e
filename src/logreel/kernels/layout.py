"""Walk messages by a Layout program: count and validate them. ``kernels.fill`` then fills exact columns.

ops     int64[n, 6]  one row per op; its body, where it has one, is the rows right after it

        FIXED   nbytes first last           copies first … last-1, then on by nbytes
        BLOB    column prefix item tail grid   a count of *prefix* bytes, then count * item bytes, of which the last
                                            *tail* are not shown
        SKIP    column prefix item -    grid   the same, not copied; a column that only counts, where *item* is 0
        LIST    column prefix nbody least grid  a count, then the body count times; column -1: not shown
        REPEAT  -      count  nbody least   the body count times
        STRINGS column prefix text prefix   a count, then that many BLOBs of single bytes; column -1: not shown
        REST    column                      all that is left; column -1: not shown
        ALIGN   grid                        on to the next place of a grid
        EXPECT  nbytes value                that many bytes (at most 8), which must have this value

        *least* is the fewest bytes one turn of the body takes; where it is 0 the body is empty. A *grid* is a step, a power of two, and
        256 times the byte of the message from which its places count; 0 is none. Behind a count of 0 nothing is aligned.
copies  int64[m, 5]  from (bytes from the start of the run), width, column, step (bytes that one turn adds to the
                     column), tail (step on the last run of the column, else 0)

layout/program.py writes these tables; nothing here checks them.
"""

import cython

if not cython.compiled:
    raise ImportError("logreel.kernels is not compiled: run `pip install -e .` (needs gcc)")

from cython.cimports.libc.string import memcmp
from cython.cimports.logreel.kernels.loads import gap, prefix
from cython.cimports.logreel.kernels.prefetch import prefetch_span

u8p = cython.typedef(cython.pointer[cython.const[cython.uchar]])
i64p = cython.typedef(cython.pointer[cython.const[cython.longlong]])
mi64p = cython.typedef(cython.pointer[cython.longlong])

OK, SHORT, LEFTOVER, TOO_MANY = 0, 1, 2, 3
#: A message may hold as many items without bytes as it has bytes, and this many more: nothing else bounds a count.
SPARE = 1 << 16
_SPARE = cython.declare(cython.longlong, 1 << 16)
#: What 32-bit offsets can tell.
_MOST = cython.declare(cython.longlong, (1 << 31) - 1)
#: Messages ahead of the walk whose first bytes are asked for: between two of a channel lie those of others.
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
    """Where the ops end, or NULL where the bytes do; counts[column] += sign * elements on the way."""
    n: cython.longlong
    m: cython.longlong
    t: cython.longlong
    _k: cython.longlong
    q: u8p
    while ops < end:
        if ops[0] == 0:  # FIXED
            if ops[1] > stop - p:
                return cython.NULL
            p += ops[1]
        elif ops[0] == 1 or ops[0] == 2:  # BLOB, SKIP
            if ops[2] > stop - p:
                return cython.NULL
            n = prefix(p, ops[2])
            p += ops[2]
            if ops[5] and n:
                p += gap(ops[5], p - base)
            if n * ops[3] > stop - p:
                return cython.NULL
            p += n * ops[3]
            if ops[0] == 1:
                counts[ops[1]] += sign * (n - ops[4] if n > ops[4] else 0)
            elif ops[3] == 0:
                counts[ops[1]] += sign * n
        elif ops[0] == 5:  # STRINGS
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
        elif ops[0] == 6:  # REST
            if ops[1] >= 0:
                counts[ops[1]] += sign * (stop - p)
            p = stop
        elif ops[0] == 7:  # ALIGN
            p += gap(ops[1], p - base)
            if p > stop:
                return cython.NULL
        elif ops[0] == 8:  # EXPECT
            if ops[1] > stop - p or memcmp(p, cython.address(ops[2]), ops[1]) != 0:
                return cython.NULL
            p += ops[1]
        else:  # LIST, REPEAT
            n = ops[2]
            if ops[0] == 3:
                if ops[2] > stop - p:
                    return cython.NULL
                n = prefix(p, ops[2])
                p += ops[2]
                if ops[5] and n:
                    p += gap(ops[5], p - base)
            if n * ops[4] > stop - p:
                return cython.NULL
            if ops[0] == 3 and ops[1] >= 0:
                counts[ops[1]] += sign * n
            if ops[3] == 1 and ops[6] == 0:
                # A body of one run of bytes was checked as a whole: its least is its size.
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
    """Items counted so far of lists whose items take no bytes, or -1 where there are no such lists."""
    total: cython.longlong = 0
    found: cython.bint = False
    while ops < end:
        if (ops[0] == 3 and ops[1] >= 0 and ops[4] == 0) or (ops[0] == 2 and ops[3] == 0):
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
    """Messages that decode; what each column needs for exactly these is added to *counts*.

    source  uint8[b]
    start   int64[n]  message i is source[start[i]:stop[i]]
    stop    int64[n]
    counts  int64[c]  items of each LIST, BLOB, STRINGS and REST column, added to
    status  uint8[n]  set to 0 sound, 1 short (or not inside *source*), 2 sound with bytes left over, 3 with more items
                      without bytes than SPARE allows; 1 and 3 are odd: these messages do not decode
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
    # One byte of its own stands for an empty source, whose memory may have no address.
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
                # The same walk back leaves the counts as they were, and costs nothing where all is well.
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
