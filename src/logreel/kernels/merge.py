"""Kernels that merge the messages of many channels into one order: a tournament between the next one of each.

Addresses in these tables are of arrays that the caller keeps alive. Nothing here checks bounds: callers pass tables
that a scan has validated.

queues  QUEUE[k]  the messages that wait, one row per channel:
    times      address of int64 times, in the order wanted
    rows       address of int64 row numbers in that order, or 0: consecutive rows
    first_row  the first row where they are consecutive
    count      number of messages
    entries    address of the uint32 entries of the block table; 0: the messages do not lie in blocks
    begins     address of int64 numbers: where the channel's run of each block begins in the entries
    ends       address of int64 rows before which the channel's run of each block ends
    bases      address of the int64 starts of blocks
    chunks     address of the int32 chunks of blocks
    blocks     number of blocks
    ready      address of a byte per block that is 0 while the block must not be read, or 0: all may be
    starts     address of int64 payload starts by row, of messages that do not lie in blocks
    shift      ns to add to times
    rank       order among messages of one time
state   STATE[k]  the progress of each: messages given out, block of the next one, known (0 to be looked up, 1 known,
                  2 none left); the keys it is compared by: time, rank, chunk, start; and its index in the entries
rules   RULE[k]   the size of a message is an unsigned number of *width* bytes at address + per_start * start +
                  per_at * at + offset, multiplied by *mul*, plus *add*; width 0: only *add*; -1: unknown here
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

Queue = cython.struct(
    times=cython.longlong,
    rows=cython.longlong,
    first_row=cython.longlong,
    count=cython.longlong,
    entries=cython.longlong,
    begins=cython.longlong,
    ends=cython.longlong,
    bases=cython.longlong,
    chunks=cython.longlong,
    blocks=cython.longlong,
    ready=cython.longlong,
    starts=cython.longlong,
    shift=cython.longlong,
    rank=cython.longlong,
)
State = cython.struct(
    done=cython.longlong,
    block=cython.longlong,
    known=cython.longlong,
    time=cython.longlong,
    rank=cython.longlong,
    chunk=cython.longlong,
    start=cython.longlong,
    at=cython.longlong,
)
Rule = cython.struct(
    address=cython.longlong,
    per_start=cython.longlong,
    per_at=cython.longlong,
    offset=cython.longlong,
    width=cython.longlong,
    mul=cython.longlong,
    add=cython.longlong,
)
queuep = cython.typedef(cython.pointer[cython.const[Queue]])
statep = cython.typedef(cython.pointer[State])
rulep = cython.typedef(cython.pointer[cython.const[Rule]])

#: NumPy dtypes of the rows of the tables; a memoryview compares them with the structs above.
QUEUE = [
    (name, "<i8")
    for name in (
        *("times", "rows", "first_row", "count", "entries", "begins", "ends"),
        *("bases", "chunks", "blocks", "ready", "starts", "shift", "rank"),
    )
]
STATE = [(name, "<i8") for name in ("done", "block", "known", "time", "rank", "chunk", "start", "at")]
RULE = [(name, "<i8") for name in ("address", "per_start", "per_at", "offset", "width", "mul", "add")]


AHEAD = cython.declare(cython.longlong, 16)
LAST = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF)
SYNTHETIC = cython.declare(cython.longlong, -2)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _block(ends: i64p, blocks: cython.longlong, k: cython.longlong, row: cython.longlong) -> cython.longlong:
    """Return the block of a row; *k* is a guess."""
    lo: cython.longlong
    hi: cython.longlong
    mid: cython.longlong
    if row < ends[k] and (k == 0 or row >= ends[k - 1]):
        return k
    lo, hi = 0, blocks - 1
    if row >= ends[k]:
        # The next block with messages of the channel is usually near.
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
def _time(q: queuep, p: cython.longlong) -> cython.longlong:
    """Return the shifted time of message *p* of a queue; a sum beyond 64 bits wraps around."""
    t: cython.ulonglong = cython.cast(
        cython.ulonglong, cython.cast(i64p, cython.cast(cython.size_t, q.times))[p]
    )
    return cython.cast(cython.longlong, t + cython.cast(cython.ulonglong, q.shift))


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _look_up(q: queuep, s: statep, by_time: cython.bint, turned: cython.longlong) -> cython.bint:
    """Find the next message of a queue; return False where its block must not be read yet.

    turned  -1 reverses the order, 0 does not
    """
    p: cython.longlong = q.count - 1 - s.done if turned else s.done
    row: cython.longlong
    k: cython.longlong = s.block
    ends: i64p
    if s.done == q.count:
        s.known, s.time, s.rank = 2, LAST, LAST
        return True
    row = q.first_row + p
    if q.rows:
        row = cython.cast(i64p, cython.cast(cython.size_t, q.rows))[p]
    # The processor cannot predict reads from so many channels.
    prefetch(cython.cast(i64p, cython.cast(cython.size_t, q.times)) + p + (-AHEAD if turned else AHEAD))
    s.time = _time(q, p) ^ turned if by_time else 0
    s.rank = q.rank ^ turned
    if q.entries == 0:
        s.chunk = SYNTHETIC ^ turned
        s.start = cython.cast(i64p, cython.cast(cython.size_t, q.starts))[row] ^ turned
        s.at = row
    else:
        ends = cython.cast(i64p, cython.cast(cython.size_t, q.ends))
        s.block = k = _block(ends, q.blocks, k, row)
        if q.ready and cython.cast(u8p, cython.cast(cython.size_t, q.ready))[k] == 0:
            s.known = 0
            return False
        s.at = cython.cast(i64p, cython.cast(cython.size_t, q.begins))[k] + row - (ends[k - 1] if k else 0)
        prefetch(
            cython.cast(u32p, cython.cast(cython.size_t, q.entries)) + s.at + (-AHEAD if turned else AHEAD)
        )
        s.chunk = cython.cast(i32p, cython.cast(cython.size_t, q.chunks))[k] ^ turned
        s.start = (
            cython.cast(i64p, cython.cast(cython.size_t, q.bases))[k]
            + cython.cast(u32p, cython.cast(cython.size_t, q.entries))[s.at]
        ) ^ turned
    s.known = 1
    return True


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _before(a: statep, b: statep) -> cython.bint:
    if a.time != b.time:
        return a.time < b.time
    if a.rank != b.rank:
        return a.rank < b.rank
    if a.chunk != b.chunk:
        return a.chunk < b.chunk
    return a.start < b.start


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _enter(
    tree: cython.pointer[cython.longlong], up: i64p, s: statep, k: cython.longlong, i: cython.longlong
) -> cython.void:
    """Enter queue *i* into the tournament: move up while it wins, wait at the first empty node."""
    node: cython.longlong = up[i]
    other: cython.longlong
    while node > 0:
        other = tree[node]
        if other < 0:
            tree[node] = i
            return
        if _before(s + other, s + i):
            tree[node] = i
            i = other
        node = up[k + node]
    tree[0] = i


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _play(
    tree: cython.pointer[cython.longlong], up: i64p, s: statep, k: cython.longlong, i: cython.longlong
) -> cython.void:
    """Move queue *i* up the tournament; losers stay at the nodes where they lost.

    Winners are unpredictable, so numbers are exchanged without a branch; only ties, which are rare, take one.
    """
    node: cython.longlong = up[i]
    other: cython.longlong
    change: cython.longlong
    mine: cython.longlong = s[i].time
    theirs: cython.longlong
    while node > 0:
        other = tree[node]
        theirs = s[other].time
        change = -cython.cast(cython.longlong, theirs < mine)
        if theirs == mine and _before(s + other, s + i):
            change = -1
        tree[node] = other ^ ((other ^ i) & change)
        i ^= (other ^ i) & change
        mine ^= (theirs ^ mine) & change
        node = up[k + node]
    tree[0] = i


def merge(
    queues: cython.const[Queue][::1],
    state: State[::1],
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
    """Fill the output arrays with messages by time or by position, from number *n* on.

    tree     int64[k]   state of the tournament
    up       int64[2k]  the node of the tree above each queue, then the node above each node; 0 above the root
    by_time  order by time, then rank, chunk and start; False: by rank, chunk and start
    time     int64[m]   ns, shifted
    queue    int32[m]   number of the queue
    chunk, start, at  of each message: its chunk, its start there, and its index in the entries (or its row)

    Returns the number of messages filled. Fewer than m: nothing is left, or blocks must be made readable, those of
    queues whose *known* is 0.
    """
    k: cython.longlong = queues.shape[0]
    m: cython.longlong = time.shape[0]
    i: cython.longlong
    turned: cython.longlong = -1 if reverse else 0
    ready: cython.bint = True
    q: queuep
    s: statep
    t: cython.pointer[cython.longlong]
    if k == 0 or m == 0:
        return n
    q, s, t = cython.address(queues[0]), cython.address(state[0]), cython.address(tree[0])
    u: i64p = cython.address(up[0])
    with cython.nogil:
        for i in range(k):
            t[i] = -1
            if s[i].known == 0 and not _look_up(q + i, s + i, by_time, turned):
                ready = False
        if ready:
            for i in range(k):
                _enter(t, u, s, k, i)
        while ready and n < m:
            i = t[0]
            if s[i].known == 2:
                break
            time[n] = _time(q + i, q[i].count - 1 - s[i].done if reverse else s[i].done)
            queue[n] = cython.cast(cython.int, i)
            chunk[n] = cython.cast(cython.int, s[i].chunk ^ turned)
            start[n] = s[i].start ^ turned
            at[n] = s[i].at
            n += 1
            s[i].done += 1
            ready = _look_up(q + i, s + i, by_time, turned)
            if ready:
                _play(t, u, s, k, i)
    return n


def measure_sizes(
    rules: cython.const[Rule][::1],
    queue: cython.const[cython.int][::1],
    start: cython.const[cython.longlong][::1],
    at: cython.const[cython.longlong][::1],
    size: cython.longlong[::1],
):
    """Fill *size*, int64[n], with the sizes of messages.

    rules             RULE[k], see above
    queue, start, at  of each message, as ``merge`` fills them

    Returns the number of messages whose size is unknown here.
    """
    n: cython.Py_ssize_t = queue.shape[0]
    i: cython.Py_ssize_t
    unknown: cython.longlong = 0
    r: rulep
    v: cython.ulonglong
    p: cython.size_t
    with cython.nogil:
        for i in range(n):
            if i + AHEAD < n:
                r = cython.address(rules[queue[i + AHEAD]])
                p = cython.cast(
                    cython.size_t,
                    r.address + r.per_start * start[i + AHEAD] + r.per_at * at[i + AHEAD] + r.offset,
                )
                prefetch(cython.cast(u8p, p))
            r = cython.address(rules[queue[i]])
            if r.width < 0:
                unknown += 1
                continue
            p = cython.cast(cython.size_t, r.address + r.per_start * start[i] + r.per_at * at[i] + r.offset)
            v = 0
            if r.width == 2:
                memcpy(cython.address(v), cython.cast(u8p, p), 2)
            elif r.width == 4:
                memcpy(cython.address(v), cython.cast(u8p, p), 4)
            elif r.width:
                memcpy(cython.address(v), cython.cast(u8p, p), r.width)
            size[i] = cython.cast(cython.longlong, v) * r.mul + r.add
    return unknown
