"""Messages of many channels in one order: a tournament between the next one of each.

queues  int64[k, 14]  what waits, a row per channel:
    0  address of int64 times, in the order wanted
    1  address of int64 row numbers in that order, or 0: rows follow each other
    2  the first row where they do
    3  how many there are
    4  address of the uint32 entries of the block table; 0: the messages do not lie in blocks
    5  address of int64 numbers that say where the channel's run of each block begins in the entries
    6  address of int64 rows before which the channel's run of each block ends
    7  address of the int64 starts of blocks
    8  address of the int32 chunks of blocks
    9  how many blocks there are
    10 address of a byte per block that is 0 while the block must not be read, or 0: all may be
    11 address of int64 payload starts by row, of messages that do not lie in blocks
    12 what to add to times
    13 rank among messages of one time
state   int64[k, 8]  of each: messages given out, the block of the next one, 0 to be looked up, 1 known or 2 none left;
                     and by what it is compared: time, rank, chunk, start; and its place in the entries

Nothing here checks bounds: callers pass tables that a scan has validated.
"""

import cython

if not cython.compiled:
    raise ImportError("logreel.kernels is not compiled: run `pip install -e .` (needs gcc)")

from cython.cimports.libc.string import memcpy
from cython.cimports.logreel.kernels.prefetch import prefetch

i64p = cython.typedef(cython.pointer[cython.const[cython.longlong]])
u32p = cython.typedef(cython.pointer[cython.const[cython.uint]])
i32p = cython.typedef(cython.pointer[cython.const[cython.int]])
u8p = cython.typedef(cython.pointer[cython.const[cython.uchar]])
statep = cython.typedef(cython.pointer[cython.longlong])

AHEAD = cython.declare(cython.longlong, 16)
LAST = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF)
SYNTHETIC = cython.declare(cython.longlong, -2)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _block(ends: i64p, blocks: cython.longlong, k: cython.longlong, row: cython.longlong) -> cython.longlong:
    """The block that a row lies in; *k* is a guess."""
    lo: cython.longlong
    hi: cython.longlong
    mid: cython.longlong
    if row < ends[k] and (k == 0 or row >= ends[k - 1]):
        return k
    lo, hi = 0, blocks - 1
    if row >= ends[k]:
        # The next block that has any is mostly near.
        lo = k + 1
        while lo + 1 < blocks and lo < k + 8 and ends[lo] <= row:
            lo += 1
    else:
        hi = k
    while lo < hi:
        mid = (lo + hi) // 2
        if ends[mid] <= row:
            lo = mid + 1
        else:
            hi = mid
    return lo


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _time(q: i64p, p: cython.longlong) -> cython.longlong:
    """The time at place *p* of a queue; a sum beyond 64 bits wraps around."""
    t: cython.ulonglong = cython.cast(
        cython.ulonglong, cython.cast(i64p, cython.cast(cython.size_t, q[0]))[p]
    )
    return cython.cast(cython.longlong, t + cython.cast(cython.ulonglong, q[12]))


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _look_up(q: i64p, s: statep, by_time: cython.bint, turned: cython.longlong) -> cython.bint:
    """Find the next message of a queue; False where its block must not be read yet.

    turned  -1 turns the order round, 0 does not
    """
    p: cython.longlong = q[3] - 1 - s[0] if turned else s[0]
    row: cython.longlong
    k: cython.longlong = s[1]
    ends: i64p
    if s[0] == q[3]:
        s[2], s[3], s[4] = 2, LAST, LAST
        return True
    row = q[2] + p
    if q[1]:
        row = cython.cast(i64p, cython.cast(cython.size_t, q[1]))[p]
    # Too many channels are read side by side for the processor to see what comes next.
    prefetch(cython.cast(i64p, cython.cast(cython.size_t, q[0])) + p + (-AHEAD if turned else AHEAD))
    s[3] = _time(q, p) ^ turned if by_time else 0
    s[4] = q[13] ^ turned
    if q[4] == 0:
        s[5] = SYNTHETIC ^ turned
        s[6] = cython.cast(i64p, cython.cast(cython.size_t, q[11]))[row] ^ turned
        s[7] = row
    else:
        ends = cython.cast(i64p, cython.cast(cython.size_t, q[6]))
        s[1] = k = _block(ends, q[9], k, row)
        if q[10] and cython.cast(u8p, cython.cast(cython.size_t, q[10]))[k] == 0:
            s[2] = 0
            return False
        s[7] = cython.cast(i64p, cython.cast(cython.size_t, q[5]))[k] + row - (ends[k - 1] if k else 0)
        prefetch(cython.cast(u32p, cython.cast(cython.size_t, q[4])) + s[7] + (-AHEAD if turned else AHEAD))
        s[5] = cython.cast(i32p, cython.cast(cython.size_t, q[8]))[k] ^ turned
        s[6] = (
            cython.cast(i64p, cython.cast(cython.size_t, q[7]))[k]
            + cython.cast(u32p, cython.cast(cython.size_t, q[4]))[s[7]]
        ) ^ turned
    s[2] = 1
    return True


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _before(a: statep, b: statep) -> cython.bint:
    if a[3] != b[3]:
        return a[3] < b[3]
    if a[4] != b[4]:
        return a[4] < b[4]
    if a[5] != b[5]:
        return a[5] < b[5]
    return a[6] < b[6]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _enter(tree: statep, up: i64p, s: statep, k: cython.longlong, i: cython.longlong) -> cython.void:
    """Let queue *i* play its way up among those that have entered, and wait where nobody has played yet."""
    node: cython.longlong = up[i]
    other: cython.longlong
    while node > 0:
        other = tree[node]
        if other < 0:
            tree[node] = i
            return
        if _before(s + 8 * other, s + 8 * i):
            tree[node] = i
            i = other
        node = up[k + node]
    tree[0] = i


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _play(tree: statep, up: i64p, s: statep, k: cython.longlong, i: cython.longlong) -> cython.void:
    """Let queue *i* play its way up; losers stay where they lost.

    Nobody can guess who wins: numbers are exchanged without a branch. Ties are rare enough for one.
    """
    node: cython.longlong = up[i]
    other: cython.longlong
    change: cython.longlong
    mine: cython.longlong = s[8 * i + 3]
    theirs: cython.longlong
    while node > 0:
        other = tree[node]
        theirs = s[8 * other + 3]
        change = -cython.cast(cython.longlong, theirs < mine)
        if theirs == mine and _before(s + 8 * other, s + 8 * i):
            change = -1
        tree[node] = other ^ ((other ^ i) & change)
        i ^= (other ^ i) & change
        mine ^= (theirs ^ mine) & change
        node = up[k + node]
    tree[0] = i


def merge(
    queues: cython.const[cython.longlong][:, ::1],
    state: cython.longlong[:, ::1],
    tree: cython.longlong[::1],
    up: cython.const[cython.longlong][::1],
    by_time: cython.bint,
    reverse: cython.bint,
    time: cython.longlong[::1],
    queue: cython.int[::1],
    chunk: cython.int[::1],
    start: cython.longlong[::1],
    at: cython.longlong[::1],
    n: cython.longlong,
):
    """Give out messages by time or by place, from number *n* on.

    tree     int64[k]  for the tournament
    up       int64[2k]  the node of the tree above each queue, then the node above each node; above the root is 0
    by_time  ties by rank, chunk and start; else only by these
    time     int64[m]  with what is to be added
    queue    int32[m]  the queue that it comes of
    chunk, start, at  of each message: its chunk, where it begins there, and its place in the entries (or its row)

    Returns how many there are now. Fewer than m mean that nothing is left, or that a block must be made readable: those
    of queues to be looked up.
    """
    k: cython.longlong = queues.shape[0]
    m: cython.longlong = time.shape[0]
    i: cython.longlong
    turned: cython.longlong = -1 if reverse else 0
    ready: cython.bint = True
    q: i64p
    s: statep
    t: statep
    if k == 0 or m == 0:
        return n
    q, s, t = cython.address(queues[0, 0]), cython.address(state[0, 0]), cython.address(tree[0])
    u: i64p = cython.address(up[0])
    with cython.nogil:
        for i in range(k):
            t[i] = -1
            if s[8 * i + 2] == 0 and not _look_up(q + 14 * i, s + 8 * i, by_time, turned):
                ready = False
        if ready:
            for i in range(k):
                _enter(t, u, s, k, i)
        while ready and n < m:
            i = t[0]
            if s[8 * i + 2] == 2:
                break
            time[n] = _time(q + 14 * i, q[14 * i + 3] - 1 - s[8 * i] if reverse else s[8 * i])
            queue[n] = cython.cast(cython.int, i)
            chunk[n] = cython.cast(cython.int, s[8 * i + 5] ^ turned)
            start[n] = s[8 * i + 6] ^ turned
            at[n] = s[8 * i + 7]
            n += 1
            s[8 * i] += 1
            ready = _look_up(q + 14 * i, s + 8 * i, by_time, turned)
            if ready:
                _play(t, u, s, k, i)
    return n


def measure_sizes(
    rules: cython.const[cython.longlong][:, ::1],
    queue: cython.const[cython.int][::1],
    start: cython.const[cython.longlong][::1],
    at: cython.const[cython.longlong][::1],
    size: cython.longlong[::1],
):
    """How large messages are.

    rules  int64[k, 7]  of each queue, how many bytes from an address on an unsigned number lies, and its size in bytes:
           address, bytes for each byte of *start*, bytes for each of *at*, bytes to add; bytes of the number (0: there is
           none, -1: nobody here knows); by what it is multiplied, and what is added to it then
    queue, start, at  of each message, as ``merge`` gives them

    Returns how many nobody here knows.
    """
    n: cython.Py_ssize_t = queue.shape[0]
    i: cython.Py_ssize_t
    unknown: cython.longlong = 0
    r: i64p
    v: cython.ulonglong
    p: cython.size_t
    with cython.nogil:
        for i in range(n):
            if i + AHEAD < n:
                r = cython.address(rules[queue[i + AHEAD], 0])
                p = cython.cast(cython.size_t, r[0] + r[1] * start[i + AHEAD] + r[2] * at[i + AHEAD] + r[3])
                prefetch(cython.cast(u8p, p))
            r = cython.address(rules[queue[i], 0])
            if r[4] < 0:
                unknown += 1
                continue
            p = cython.cast(cython.size_t, r[0] + r[1] * start[i] + r[2] * at[i] + r[3])
            v = 0
            if r[4] == 2:
                memcpy(cython.address(v), cython.cast(u8p, p), 2)
            elif r[4] == 4:
                memcpy(cython.address(v), cython.cast(u8p, p), 4)
            elif r[4]:
                memcpy(cython.address(v), cython.cast(u8p, p), r[4])
            size[i] = cython.cast(cython.longlong, v) * r[5] + r[6]
    return unknown
