"""Follow the index records behind chunks of ``name=value`` records, and take in their entries.

A chunk is a record (op 5) with fields ``compression`` and ``size``; behind it stands an index record (op 4) with
``conn`` and ``count`` for each connection in it, then its entries: u32 seconds, u32 nanoseconds, u32 place in the chunk.
Every length is checked against what is left before it is used.
"""

import cython

if not cython.compiled:
    raise ImportError("logreel.kernels is not compiled: run `pip install -e .` (needs gcc)")

from cython.cimports.libc.string import memchr, memcmp
from cython.cimports.logreel.kernels.loads import u32
from cython.cimports.logreel.kernels.prefetch import prefetch

u8p = cython.typedef(cython.pointer[cython.const[cython.uchar]])

OK, NO_CHUNK, CUT, NO_INDEX = 0, 1, 2, 3
#: What ``follow`` gives for the compression of a chunk, in this order.
COMPRESSIONS = ("none", "bz2", "lz4", "zlib")

Head = cython.struct(
    op=cython.longlong,  # -1: none, as with the others
    conn=cython.longlong,
    count=cython.longlong,
    size=cython.longlong,  # of the unpacked chunk
    packing=cython.longlong,  # number of its compression
    data=cython.longlong,  # start of the data
    stored=cython.longlong,  # bytes of it
)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _packing(p: u8p, n: cython.longlong) -> cython.longlong:
    if n == 4 and memcmp(p, cython.cast(cython.p_char, b"none"), 4) == 0:
        return 0
    if n == 3 and memcmp(p, cython.cast(cython.p_char, b"bz2"), 3) == 0:
        return 1
    if n == 3 and memcmp(p, cython.cast(cython.p_char, b"lz4"), 3) == 0:
        return 2
    if n == 4 and memcmp(p, cython.cast(cython.p_char, b"zlib"), 4) == 0:
        return 3
    return -1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _head(b: u8p, pos: cython.longlong, end: cython.longlong, r: cython.pointer[Head]) -> cython.bint:
    """Read the header of the record at *pos*, whose data may end later than *end*; False if it is none."""
    n: cython.longlong
    f: cython.longlong
    p: u8p
    e: u8p
    r.op = -1
    r.conn = -1
    r.count = -1
    r.size = -1
    r.packing = -1
    if pos < 0 or end - pos < 8:
        return False
    n = u32(b + pos)
    if n > end - pos - 8:
        return False
    p = b + pos + 4
    e = p + n
    while p < e:
        if e - p < 4:
            return False
        f = u32(p)
        p += 4
        if f > e - p:
            return False
        if f == 4 and memcmp(p, cython.cast(cython.p_char, b"op="), 3) == 0:
            r.op = p[3]
        elif f == 9 and memcmp(p, cython.cast(cython.p_char, b"conn="), 5) == 0:
            r.conn = u32(p + 5)
        elif f == 10 and memcmp(p, cython.cast(cython.p_char, b"count="), 6) == 0:
            r.count = u32(p + 6)
        elif f == 9 and memcmp(p, cython.cast(cython.p_char, b"size="), 5) == 0:
            r.size = u32(p + 5)
        elif f >= 12 and memcmp(p, cython.cast(cython.p_char, b"compression="), 12) == 0:
            r.packing = _packing(p + 12, f - 12)
        elif memchr(p, 61, f) == cython.NULL:
            return False
        p += f
    r.data = pos + 8 + n
    r.stored = u32(b + pos + 4 + n)
    return True


def follow(
    buf: cython.const[cython.uchar][::1],
    pos: cython.const[cython.longlong][::1],
    many: cython.const[cython.longlong][::1],
    chunk: cython.longlong[:, ::1],
    run: cython.longlong[:, ::1],
):
    """Read the headers of chunks and of the index records behind each.

    pos    int64[k]     where the chunks begin
    many   int64[k]     index records with entries behind each, as far as the summary tells
    chunk  int64[k, 5]  set to start and size of the data, number of the compression, unpacked size, and where the
                        index records end
    run    int64[m, 3]  set to connection, entries, and where they begin, of each index record with entries in turn

    Returns why it stopped (0 all read, 1 no chunk, 2 the chunk is cut, 3 index records are missing or cut) and at
    which chunk. Some recorders state a larger size of an index record than they write: the count is what counts.
    """
    size: cython.longlong = buf.shape[0]
    b: u8p = cython.address(buf[0])
    k: cython.Py_ssize_t = 0
    m: cython.Py_ssize_t = 0
    left: cython.longlong
    at: cython.longlong
    r: Head
    why: cython.int = 0
    with cython.nogil:
        while k < pos.shape[0] and why == 0:
            if not _head(b, pos[k], size, cython.address(r)) or r.op != 5 or r.size < 0 or r.packing < 0:
                why = 1
                break
            if r.stored > size - r.data:
                why = 2
                break
            chunk[k, 0] = r.data
            chunk[k, 1] = r.stored
            chunk[k, 2] = r.packing
            chunk[k, 3] = r.size
            at = r.data + r.stored
            left = many[k]
            while left > 0:
                if (
                    m >= run.shape[0]
                    or not _head(b, at, size, cython.address(r))
                    or r.op != 4
                    or r.conn < 0
                    or r.count < 0
                    or r.count * 12 > size - r.data
                ):
                    why = 3
                    break
                at = r.data + r.count * 12
                if r.count > 0:
                    run[m, 0] = r.conn
                    run[m, 1] = r.count
                    run[m, 2] = r.data
                    m += 1
                    left -= 1
            if why == 0:
                chunk[k, 4] = at
                k += 1
    return why, k


def entries(
    buf: cython.const[cython.uchar][::1],
    run: cython.const[cython.longlong][:, ::1],
    time: cython.longlong[::1],
    place: cython.uint[::1],
):
    """Take in the entries of index records; positions and counts are those that ``follow`` gave.

    run    int64[m, 3]  entries, where they begin, and the bytes that the chunk unpacks to
    time   int64[n]     ns, filled run after run
    place  uint32[n]    where each record begins in its chunk

    Returns the first run with a place outside of its chunk, or m.
    """
    b: u8p = cython.address(buf[0])
    p: u8p
    k: cython.Py_ssize_t
    _i: cython.longlong
    at: cython.longlong = 0
    v: cython.longlong
    outside: cython.Py_ssize_t = run.shape[0]
    with cython.nogil:
        for k in range(run.shape[0]):
            p = b + run[k, 1]
            for _i in range(run[k, 0]):
                prefetch(p + 1024)
                time[at] = cython.cast(cython.longlong, u32(p)) * 1000000000 + u32(p + 4)
                v = u32(p + 8)
                place[at] = cython.cast(cython.uint, v)
                if v >= run[k, 2] and outside > k:
                    outside = k
                p += 12
                at += 1
    return outside
