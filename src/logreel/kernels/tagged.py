"""Walk records whose headers are lists of ``name=value`` fields.

    u32 header size | header | u32 data size | data          header: { u32 field size | name = value } …

Fields that matter are recognised by name: op, conn, time (or sec and nsec), topic, md5, type. Every length is checked
against what is left before it is used.
"""

import cython

if not cython.compiled:
    raise ImportError("logreel.kernels is not compiled: run `pip install -e .` (needs gcc)")

from cython.cimports.libc.string import memchr, memcmp
from cython.cimports.logreel.kernels.loads import u32
from cython.cimports.logreel.kernels.prefetch import prefetch

u8p = cython.typedef(cython.pointer[cython.const[cython.uchar]])

#: Records ahead of the walk whose first bytes are asked for.
AHEAD = cython.declare(cython.longlong, 12)

Head = cython.struct(
    op=cython.longlong,  # -1: none
    conn=cython.longlong,  # -1: none
    time=cython.longlong,  # ns, -1: none
    stamp=cython.longlong,  # bytes from the start of the record to the value of "time", -1: none
    key=cython.ulonglong,  # of topic, md5 and type together
    named=cython.int,  # bit set of those of them that are there
    data=cython.longlong,  # start of the data
    size=cython.longlong,  # of the data
)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _time(p: u8p) -> cython.longlong:
    return cython.cast(cython.longlong, u32(p)) * 1000000000 + u32(p + 4)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _hash(p: u8p, n: cython.longlong, seed: cython.ulonglong) -> cython.ulonglong:
    h: cython.ulonglong = seed
    i: cython.longlong
    for i in range(n):
        h = (h ^ p[i]) * cython.cast(cython.ulonglong, 1099511628211)
    return h


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _head(b: u8p, pos: cython.longlong, end: cython.longlong, r: cython.pointer[Head]) -> cython.int:
    """Read the header of the record at *pos*: 0 fine, 1 its bytes end after *end*, 2 it is no record."""
    n: cython.longlong
    p: u8p
    e: u8p
    f: cython.longlong
    fields: cython.int = 0
    sec: cython.longlong = -1
    nsec: cython.longlong = -1
    r.op = -1
    r.conn = -1
    r.time = -1
    r.stamp = -1
    r.key = 0
    r.named = 0
    if end - pos < 4:
        return 1
    n = u32(b + pos)
    if n > end - pos - 4:
        return 1
    p = b + pos + 4
    e = p + n
    while p < e:
        if e - p < 4:
            return 2
        f = u32(p)
        p += 4
        fields += 1
        if f > e - p or fields > 256:
            return 2
        if f == 4 and memcmp(p, cython.cast(cython.p_char, b"op="), 3) == 0:
            r.op = p[3]
        elif f == 9 and memcmp(p, cython.cast(cython.p_char, b"conn="), 5) == 0:
            r.conn = u32(p + 5)
        elif f == 13 and memcmp(p, cython.cast(cython.p_char, b"time="), 5) == 0:
            r.time = _time(p + 5)
            r.stamp = p + 5 - (b + pos)
        elif f == 8 and memcmp(p, cython.cast(cython.p_char, b"sec="), 4) == 0:
            sec = u32(p + 4)
        elif f == 9 and memcmp(p, cython.cast(cython.p_char, b"nsec="), 5) == 0:
            nsec = u32(p + 5)
        elif f >= 6 and memcmp(p, cython.cast(cython.p_char, b"topic="), 6) == 0:
            r.key = r.key ^ _hash(p + 6, f - 6, cython.cast(cython.ulonglong, 14695981039346656037))
            r.named = r.named | 1
        elif f >= 4 and memcmp(p, cython.cast(cython.p_char, b"md5="), 4) == 0:
            r.key = r.key ^ _hash(p + 4, f - 4, cython.cast(cython.ulonglong, 7664345821815920749))
            r.named = r.named | 2
        elif f >= 5 and memcmp(p, cython.cast(cython.p_char, b"type="), 5) == 0:
            r.key = r.key ^ _hash(p + 5, f - 5, cython.cast(cython.ulonglong, 3202034522624059733))
            r.named = r.named | 4
        elif memchr(p, 61, f) == cython.NULL:
            return 2
        p += f
    if r.op < 0:
        return 2
    if sec >= 0 and nsec >= 0:
        r.time = sec * 1000000000 + nsec
        r.stamp = -1
    pos += 4 + n
    if end - pos < 4:
        return 1
    r.size = u32(b + pos)
    r.data = pos + 4
    return 1 if r.size > end - pos - 4 else 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _fits(r: cython.pointer[Head], named: cython.int) -> cython.bint:
    """Whether a record has what its op needs, as far as it is known here."""
    return r.op != 2 or (r.time >= 0 and (r.conn >= 0 or (r.named & named) == named))


def find(
    buf: cython.const[cython.uchar][::1], pos: cython.longlong, end: cython.longlong, longest: cython.longlong
):
    """The first position in [pos, end) where a whole record of an op from 1 to 7 begins; *end* if there is none.

    longest  bytes that its header may have
    """
    if pos >= end:
        return end
    b: u8p = cython.address(buf[0])
    r: Head
    n: cython.longlong
    with cython.nogil:
        while end - pos >= 16:
            n = u32(b + pos)
            if 8 <= n <= longest and _head(b, pos, end, cython.address(r)) == 0:
                if 1 <= r.op <= 7 and _fits(cython.address(r), 7):
                    break
            pos += 1
    return pos if end - pos >= 16 else end


def walk(
    buf: cython.const[cython.uchar][::1],
    pos: cython.longlong,
    end: cython.longlong,
    key: cython.ulonglong[::1],
    time: cython.longlong[::1],
    data: cython.longlong[::1],
    size: cython.longlong[::1],
    note: cython.longlong[:, ::1],
    foreign: cython.ulonglong,
    named: cython.int,
):
    """Follow the records from *pos*; collect the message records (op 2) and note the others.

    foreign  bit set of ops to stop at
    named    what must tell the connection of a message that has no number: bit set of topic 1, md5 2, type 4
    key   uint64[c]    the connection number, or a hash of topic, md5 and type where there is none
    time  int64[c]     ns
    data  int64[c]     start of the message's data
    size  int64[c]     bytes of it
    note  int64[m, 2]  position and op of every other record

    A message record without time, or without what tells its connection, is no record. Returns why it stopped (0 *end*
    reached, 1 a record ends after *end*, 2 no record, 3 a record to stop at, 4 an array is full), the position, the
    messages and the notes collected.
    """
    b: u8p = cython.address(buf[0])
    n: cython.longlong = 0
    m: cython.longlong = 0
    cap: cython.longlong = key.shape[0]
    notecap: cython.longlong = note.shape[0]
    r: Head
    why: cython.int = 0
    with cython.nogil:
        while pos < end:
            if n >= cap or m >= notecap:
                why = 4
                break
            prefetch(b + pos + 1024)
            why = _head(b, pos, end, cython.address(r))
            if why != 2 and not _fits(cython.address(r), named):
                why = 2
            # Ops above 63 are unknown, and foreign where any unknown one is.
            if (
                why != 2
                and r.op >= 0
                and (foreign >> cython.cast(cython.ulonglong, r.op if r.op < 63 else 63)) & 1
            ):
                why = 3
            if why != 0:
                break
            if r.op == 2:
                key[n] = cython.cast(cython.ulonglong, r.conn) if r.conn >= 0 else r.key
                time[n] = r.time
                data[n] = r.data
                size[n] = r.size
                n += 1
            else:
                note[m, 0] = pos
                note[m, 1] = r.op
                m += 1
            pos = r.data + r.size
    return why, pos, n, m


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _like(
    b: u8p, pos: cython.longlong, end: cython.longlong, r: cython.pointer[Head], last: u8p
) -> cython.bint:
    """Read the header of the record at *pos* if it is that of *last*, which *r* tells of, but for the time."""
    n: cython.longlong
    rest: cython.longlong
    if last == cython.NULL or r.stamp < 0:
        return False
    n = 4 + cython.cast(cython.longlong, u32(last))
    rest = r.stamp + 8
    if end - pos < n + 4 or memcmp(b + pos, last, r.stamp) != 0:
        return False
    if memcmp(b + pos + rest, last + rest, n - rest) != 0:
        return False
    r.size = u32(b + pos + n)
    if r.size > end - pos - n - 4:
        return False
    r.data = pos + n + 4
    r.time = _time(b + pos + r.stamp)
    return True


def locate(
    buf: cython.const[cython.uchar][::1],
    run: cython.const[cython.longlong][:, ::1],
    conn: cython.const[cython.uint][::1],
    entry: cython.uint[::1],
    time: cython.const[cython.longlong][::1],
    size: cython.uint[::1],
    good: cython.longlong[::1],
):
    """Turn positions of message records into positions of their data, and fill their sizes, run by run.

    run    int64[r, 4]  first entry, entry after the last, what entries count from in *buf*, where the bytes end
    conn   uint32[n]    connection that each must have
    entry  uint32[n]    ascending in each run; changed in place
    time   int64[n]     ns that each must have
    good   int64[r]     set to how many entries of the run were right

    A position may be that of another record: the next message record counts. None may begin before the one before it
    ends. The first wrong one of a run and those after it are left as they were.
    """
    b: u8p = cython.address(buf[0])
    last: u8p
    k: cython.Py_ssize_t
    i: cython.longlong
    hi: cython.longlong
    base: cython.longlong
    end: cython.longlong
    pos: cython.longlong
    after: cython.longlong
    r: Head
    hops: cython.int
    with cython.nogil:
        for k in range(run.shape[0]):
            i = run[k, 0]
            hi = run[k, 1]
            base = run[k, 2]
            end = run[k, 3]
            after = base
            last = cython.NULL
            while i < hi:
                if i + AHEAD < hi and base + entry[i + AHEAD] < end:
                    prefetch(b + base + entry[i + AHEAD])
                    prefetch(b + base + entry[i + AHEAD] + 64)
                pos = base + entry[i]
                if pos < after or pos >= end:
                    break
                if not _like(b, pos, end, cython.address(r), last):
                    if _head(b, pos, end, cython.address(r)) != 0:
                        break
                    hops = 0
                    last = b + pos
                    while r.op != 2 and hops < 64 and r.data + r.size < end:
                        pos = r.data + r.size
                        if _head(b, pos, end, cython.address(r)) != 0:
                            break
                        last = b + pos
                        hops += 1
                if r.op != 2 or r.time != time[i] or r.conn != conn[i]:
                    break
                after = r.data + r.size
                entry[i] = cython.cast(cython.uint, r.data - base)
                size[i] = cython.cast(cython.uint, r.size)
                i += 1
            good[k] = i - run[k, 0]
