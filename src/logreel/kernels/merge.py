"""Kernels that merge the messages of many channels into one order: a tournament between the next one of each.

``Queues`` and ``SizeRules`` keep the arrays that they are given, and compare their lengths when they are added, so that
no message can lie outside of them.
"""

import cython

if not cython.compiled:
    raise ImportError("logreel.kernels is not compiled: run `pip install -e .` (needs gcc)")

from cython.cimports.libc.stdlib import calloc, free
from cython.cimports.libc.string import memcpy
from cython.cimports.logreel.kernels.buffers import is_inside
from cython.cimports.logreel.kernels.loads import NO_BYTES, bytes_of
from cython.cimports.logreel.kernels.prefetch import prefetch

i64p = cython.typedef(cython.pointer[cython.const[cython.longlong]])
u32p = cython.typedef(cython.pointer[cython.const[cython.uint]])
i32p = cython.typedef(cython.pointer[cython.const[cython.int]])
u8p = cython.typedef(cython.pointer[cython.const[cython.uchar]])

#: Messages that wait; see ``Queues.add``.
Queue = cython.struct(
    times=i64p,
    rows=i64p,
    first_row=cython.longlong,
    count=cython.longlong,
    entries=u32p,
    begins=i64p,
    ends=i64p,
    bases=i64p,
    chunks=i32p,
    blocks=cython.longlong,
    ready=u8p,
    starts=i64p,
    shift=cython.longlong,
    rank=cython.longlong,
)
#: Progress of a queue: messages given out, block of the next one, known (0 to be looked up, 1 known, 2 none left); the
#: keys it is compared by: time, rank, chunk, start; and its index in the entries.
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
#: The size of a message is an unsigned number of *width* bytes at byte per_start * start + per_at * at + offset of
#: *data*, multiplied by *mul*, plus *add*; width 0: only *add*; -1: unknown here.
Rule = cython.struct(
    data=u8p,
    room=cython.longlong,
    per_start=cython.longlong,
    per_at=cython.longlong,
    offset=cython.longlong,
    width=cython.longlong,
    mul=cython.longlong,
    add=cython.longlong,
)
queuep = cython.typedef(cython.pointer[Queue])
statep = cython.typedef(cython.pointer[State])
rulep = cython.typedef(cython.pointer[Rule])
mi64p = cython.typedef(cython.pointer[cython.longlong])

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
    t: cython.ulonglong = cython.cast(cython.ulonglong, q.times[p])
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
    if q.rows != cython.NULL:
        row = q.rows[p]
    # The processor cannot predict reads from so many channels.
    prefetch(q.times + p + (-AHEAD if turned else AHEAD))
    s.time = _time(q, p) ^ turned if by_time else 0
    s.rank = q.rank ^ turned
    if q.entries == cython.NULL:
        s.chunk = SYNTHETIC ^ turned
        s.start = q.starts[row] ^ turned
        s.at = row
    else:
        ends = q.ends
        s.block = k = _block(ends, q.blocks, k, row)
        if q.ready != cython.NULL and q.ready[k] == 0:
            s.known = 0
            return False
        s.at = q.begins[k] + row - (ends[k - 1] if k else 0)
        prefetch(q.entries + s.at + (-AHEAD if turned else AHEAD))
        s.chunk = q.chunks[k] ^ turned
        s.start = (q.bases[k] + q.entries[s.at]) ^ turned
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


@cython.cclass
class Queues:
    """Messages of some channels, and how far they were merged.

    up       int64[2k]  the node of the tournament above each queue, then the node above each node; 0 above the root
    by_time  order by time, then rank, chunk and start; False: by rank, chunk and start
    reverse  in reverse order
    """

    _queues: queuep
    _state: statep
    _tree: mi64p
    _up: mi64p
    _count: cython.Py_ssize_t
    _added: cython.Py_ssize_t
    _by_time: cython.bint
    _turned: cython.longlong
    _held: list

    def __cinit__(self, up: cython.const[cython.longlong][::1], by_time: bool, reverse: bool):
        i: cython.Py_ssize_t
        k: cython.Py_ssize_t = up.shape[0] // 2
        self._count, self._added, self._held = k, 0, []
        self._by_time, self._turned = by_time, -1 if reverse else 0
        self._queues = cython.cast(queuep, calloc(k + 1, cython.sizeof(Queue)))
        self._state = cython.cast(statep, calloc(k + 1, cython.sizeof(State)))
        self._tree = cython.cast(mi64p, calloc(k + 1, cython.sizeof(cython.longlong)))
        self._up = cython.cast(mi64p, calloc(2 * k + 1, cython.sizeof(cython.longlong)))
        if not (self._queues and self._state and self._tree and self._up):
            raise MemoryError
        for i in range(2 * k):
            if up[i] < 0 or up[i] >= k:
                raise IndexError("a node above a queue is not in the tournament")
            self._up[i] = up[i]

    def __dealloc__(self):
        free(self._queues)
        free(self._state)
        free(self._tree)
        free(self._up)

    @cython.cfunc
    def _add(
        self,
        times,
        rows,
        first_row: cython.longlong,
        shift: cython.longlong,
        rank: cython.longlong,
        limit: cython.longlong,
    ) -> queuep:
        """Add a queue whose rows are below *limit*; return it, without the places of its messages."""
        q: queuep = self._queues + self._added
        t: cython.const[cython.longlong][::1] = times
        some: cython.const[cython.longlong][::1]
        n: cython.Py_ssize_t = t.shape[0]
        i: cython.Py_ssize_t
        if self._added == self._count:
            raise IndexError("more queues than the tournament has")
        self._held.append((times, rows))
        q.count, q.first_row, q.shift, q.rank = n, first_row, shift, rank
        q.times = cython.address(t[0]) if n else cython.NULL
        q.rows = cython.NULL
        if rows is None:
            if n and not (0 <= first_row <= limit - n):
                raise IndexError("there are no such rows")
        else:
            some = rows
            if some.shape[0] != n:
                raise ValueError("times and rows differ in length")
            for i in range(n):
                if some[i] < 0 or some[i] >= limit:
                    raise IndexError("there is no such row")
            q.rows = cython.address(some[0]) if n else cython.NULL
        self._added += 1
        return q

    def add(self, times, rows, first_row, shift, rank, entries, begins, ends, bases, chunks, ready):
        """Add messages that lie in blocks.

        times      int64[n]   in the order wanted
        rows       int64[n]   row numbers in that order, or None: consecutive rows, from *first_row* on
        shift      ns to add to times
        rank       order among messages of one time
        entries    uint32[e]  entries of the block table
        begins     int64[b]   where the channel's run of each block begins in the entries
        ends       int64[b]   rows before which the channel's run of each block ends
        bases      int64[b]   starts of blocks
        chunks     int32[b]   chunks of blocks
        ready      uint8[b]   0 while the block must not be read, or None: all may be
        """
        e: cython.const[cython.uint][::1] = entries
        b: cython.const[cython.longlong][::1] = begins
        d: cython.const[cython.longlong][::1] = ends
        s: cython.const[cython.longlong][::1] = bases
        c: cython.const[cython.int][::1] = chunks
        y: cython.const[cython.uchar][::1]
        n: cython.Py_ssize_t = b.shape[0]
        k: cython.Py_ssize_t
        row: cython.longlong = 0
        q: queuep
        if d.shape[0] != n or s.shape[0] != n or c.shape[0] != n:
            raise ValueError("the arrays of blocks differ in length")
        for k in range(n):
            if d[k] < row or not is_inside(b[k], d[k] - row, e.shape[0]):
                raise IndexError("a run of messages does not lie in the entries")
            row = d[k]
        q = self._add(times, rows, first_row, shift, rank, row)
        self._held.append((entries, begins, ends, bases, chunks, ready))
        q.blocks = n
        # A queue with entries is one of messages in blocks.
        q.entries = cython.address(e[0]) if e.shape[0] else cython.cast(u32p, NO_BYTES)
        if n:
            q.begins, q.ends = cython.address(b[0]), cython.address(d[0])
            q.bases, q.chunks = cython.address(s[0]), cython.address(c[0])
            if ready is not None:
                y = ready
                if y.shape[0] != n:
                    raise ValueError("the arrays of blocks differ in length")
                q.ready = cython.address(y[0])

    def add_starts(self, times, rows, first_row, shift, rank, starts):
        """Add messages that do not lie in blocks; *starts*, int64[m]: of the payload of each row."""
        v: cython.const[cython.longlong][::1] = starts
        q: queuep = self._add(times, rows, first_row, shift, rank, v.shape[0])
        self._held.append(starts)
        q.starts = cython.address(v[0]) if v.shape[0] else cython.NULL

    def waiting(self):
        """Return the numbers of the queues that wait for a block to become ready, and the block of each."""
        i: cython.Py_ssize_t
        found = []
        for i in range(self._count):
            if self._state[i].known == 0:
                found.append((i, self._state[i].block))
        return found

    def merge(
        self,
        time: cython.longlong[::1],
        queue: cython.int[::1],
        chunk: cython.int[::1],
        start: cython.longlong[::1],
        at: cython.longlong[::1],
        n: cython.longlong,
    ):
        """Fill the arrays with the next messages, from number *n* on.

        time     int64[m]   ns, shifted
        queue    int32[m]   number of the queue
        chunk, start, at  of each message: its chunk, its start there, and its index in the entries (or its row)

        Returns the number of messages filled. Fewer than m: nothing is left, or blocks must be made ready, see
        ``waiting``.
        """
        k: cython.longlong = self._count
        m: cython.longlong = time.shape[0]
        i: cython.longlong
        by_time: cython.bint = self._by_time
        turned: cython.longlong = self._turned
        ready: cython.bint = True
        q: queuep = self._queues
        s: statep = self._state
        t: mi64p = self._tree
        u: i64p = self._up
        if queue.shape[0] != m or chunk.shape[0] != m or start.shape[0] != m or at.shape[0] != m or n < 0:
            raise ValueError("the arrays of messages differ in length")
        if self._added != k:
            raise ValueError("fewer queues than the tournament has")
        if k == 0 or m == 0:
            return n
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
                time[n] = _time(q + i, q[i].count - 1 - s[i].done if turned else s[i].done)
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


@cython.cclass
class SizeRules:
    """Where the sizes of the messages of queues are found; at most *count* rules, by number of the queue."""

    _rules: rulep
    _room: cython.Py_ssize_t
    _count: cython.Py_ssize_t
    _held: list

    def __cinit__(self, count: cython.Py_ssize_t):
        self._room, self._count, self._held = count, 0, []
        self._rules = cython.cast(rulep, calloc(count + 1, cython.sizeof(Rule)))
        if self._rules == cython.NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self._rules)

    @cython.cfunc
    def _add(self, data) -> rulep:
        r: rulep = self._rules + self._count
        b: cython.const[cython.uchar][::1]
        if self._count == self._room:
            raise IndexError("there is no room for another rule")
        if data is not None:
            b = data
            r.data, r.room = bytes_of(b), b.shape[0]
            self._held.append(data)
        self._count += 1
        return r

    def add_unknown(self):
        """Add a rule that is unknown here."""
        self._add(None).width = -1

    def add_constant(self, size: cython.longlong):
        """Add the same size for all messages."""
        self._add(None).add = size

    def add_field(
        self,
        data,
        offset: cython.longlong,
        width: cython.longlong,
        mul: cython.longlong,
        add: cython.longlong,
    ):
        """Add an unsigned number of *width* bytes at *offset* from the start of a message in *data*, times mul plus add."""
        r: rulep
        if not 1 <= width <= 8:
            raise ValueError("a number has 1 to 8 bytes")
        r = self._add(data)
        r.per_start, r.offset, r.width, r.mul, r.add = 1, offset, width, mul, add

    def add_stored(self, values, width: cython.longlong):
        """Add numbers of *width* bytes, one for each entry or row; *values*: their bytes."""
        r: rulep
        if not 1 <= width <= 8:
            raise ValueError("a number has 1 to 8 bytes")
        r = self._add(values)
        r.per_at, r.width, r.mul = width, width, 1

    def measure(
        self,
        queue: cython.const[cython.int][::1],
        start: cython.const[cython.longlong][::1],
        at: cython.const[cython.longlong][::1],
        size: cython.longlong[::1],
    ):
        """Fill *size*, int64[n], with the sizes of messages.

        queue, start, at  of each message, as ``Queues.merge`` fills them

        Returns the number of messages whose size is unknown here. Raises IndexError where a number lies outside of its
        array.
        """
        n: cython.Py_ssize_t = queue.shape[0]
        i: cython.Py_ssize_t
        unknown: cython.longlong = 0
        ok: cython.bint = True
        r: rulep
        v: cython.ulonglong
        p: cython.longlong
        if start.shape[0] != n or at.shape[0] != n or size.shape[0] != n:
            raise ValueError("the arrays of messages differ in length")
        with cython.nogil:
            for i in range(n):
                if queue[i] < 0 or queue[i] >= self._count:
                    ok = False
                    break
                if i + AHEAD < n and 0 <= queue[i + AHEAD] < self._count:
                    r = self._rules + queue[i + AHEAD]
                    prefetch(r.data + (r.per_start * start[i + AHEAD] + r.per_at * at[i + AHEAD] + r.offset))
                r = self._rules + queue[i]
                if r.width < 0:
                    unknown += 1
                    continue
                v = 0
                if r.width:
                    p = r.per_start * start[i] + r.per_at * at[i] + r.offset
                    if not is_inside(p, r.width, r.room):
                        ok = False
                        break
                    if r.width == 2:
                        memcpy(cython.address(v), r.data + p, 2)
                    elif r.width == 4:
                        memcpy(cython.address(v), r.data + p, 4)
                    else:
                        memcpy(cython.address(v), r.data + p, r.width)
                size[i] = cython.cast(cython.longlong, v) * r.mul + r.add
        if not ok:
            raise IndexError("the size of a message lies outside of its array")
        return unknown
