"""Kernels of rosbag: walk records, locate the messages that an index names, and read the index records of chunks.

    record      u32 header size | header | u32 data size | data          header: { u32 field size | name = value } …
    chunk       record with op 5 and the fields ``compression`` and ``size``
    index data  record with op 4 and the fields ``conn`` and ``count``, one per connection behind its chunk; then its
                entries: u32 seconds, u32 nanoseconds, u32 offset in the unpacked chunk

Fields are recognised by name: op, conn, time (or sec and nsec), topic, md5, type, count, size, compression. Every
length is compared with the bytes left before it is used.
"""

import cython

if not cython.compiled:
    raise ImportError("logreel.kernels is not compiled: run `pip install -e .` (needs gcc)")

from cython.cimports.libc.string import memchr, memcmp
from cython.cimports.logreel.kernels.loads import bytes_of, u32
from cython.cimports.logreel.kernels.prefetch import prefetch

u8p = cython.typedef(cython.pointer[cython.const[cython.uchar]])

#: Number of records that are prefetched ahead.
AHEAD = cython.declare(cython.longlong, 12)

RecordHead = cython.struct(
    op=cython.longlong,  # -1: none
    conn=cython.longlong,  # -1: none
    time=cython.longlong,  # ns, -1: none
    stamp=cython.longlong,  # bytes from the start of the record to the value of "time", -1: none
    key=cython.ulonglong,  # of topic, md5 and type together
    named=cython.int,  # bit set of the fields present: topic 1, md5 2, type 4
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
def _record_head(
    b: u8p, pos: cython.longlong, end: cython.longlong, r: cython.pointer[RecordHead]
) -> cython.int:
    """Read the header of the record at *pos*; return 0 sound, 1 it ends after *end*, 2 not a record."""
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
def _fits(r: cython.pointer[RecordHead], named: cython.int) -> cython.bint:
    """Return whether a message record has a time and identifies its connection; other ops always do."""
    return r.op != 2 or (r.time >= 0 and (r.conn >= 0 or (r.named & named) == named))


def find_record(
    buf: cython.const[cython.uchar][::1], pos: cython.longlong, end: cython.longlong, longest: cython.longlong
):
    """Return the first position in [pos, end) of a complete record with an op from 1 to 7; *end* if none.

    longest  greatest size of its header in bytes
    """
    if pos >= end:
        return end
    b: u8p = bytes_of(buf)
    r: RecordHead
    n: cython.longlong
    with cython.nogil:
        while end - pos >= 16:
            n = u32(b + pos)
            if 8 <= n <= longest and _record_head(b, pos, end, cython.address(r)) == 0:
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
    named    fields that must identify the connection of a message without a number: bit set of topic 1, md5 2, type 4
    key   uint64[c]    the connection number, or a hash of topic, md5 and type for messages without a number
    time  int64[c]     ns
    data  int64[c]     start of the message's data
    size  int64[c]     bytes of the data
    note  int64[m, 2]  position and op of every other record

    A message record without a time, or without fields that identify its connection, is not accepted. Returns why it
    stopped (0 *end* reached, 1 a record ends after *end*, 2 not a record, 3 a record to stop at, 4 an array is full),
    the position, the number of messages and of notes.
    """
    b: u8p = bytes_of(buf)
    n: cython.longlong = 0
    m: cython.longlong = 0
    cap: cython.longlong = key.shape[0]
    notecap: cython.longlong = note.shape[0]
    r: RecordHead
    why: cython.int = 0
    with cython.nogil:
        while pos < end:
            if n >= cap or m >= notecap:
                why = 4
                break
            prefetch(b + pos + 1024)
            why = _record_head(b, pos, end, cython.address(r))
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
    b: u8p, pos: cython.longlong, end: cython.longlong, r: cython.pointer[RecordHead], last: u8p
) -> cython.bint:
    """Read the record at *pos* into *r* if its header equals that of *last*, read before, except for the time."""
    n: cython.longlong
    rest: cython.longlong
    if last == cython.NULL or r.stamp < 0:
        return False
    n = 4 + cython.cast(cython.longlong, u32(last))
    rest = r.stamp + 8
    # The header of *last* may have been overwritten meanwhile.
    if n < rest or end - pos < n + 4 or memcmp(b + pos, last, r.stamp) != 0:
        return False
    if memcmp(b + pos + rest, last + rest, n - rest) != 0:
        return False
    r.size = u32(b + pos + n)
    if r.size > end - pos - n - 4:
        return False
    r.data = pos + n + 4
    r.time = _time(b + pos + r.stamp)
    return True


def locate_messages(
    buf: cython.const[cython.uchar][::1],
    run: cython.const[cython.longlong][:, ::1],
    conn: cython.const[cython.uint][::1],
    entry: cython.uint[::1],
    time: cython.const[cython.longlong][::1],
    size: cython.uint[::1],
    good: cython.longlong[::1],
):
    """Replace positions of message records by positions of their data, and fill in their sizes, run by run.

    run    int64[r, 4]  first entry, entry after the last, position in *buf* that entries count from, end of the bytes
    conn   uint32[n]    connection expected of each
    entry  uint32[n]    ascending in each run; changed in place
    time   int64[n]     ns expected of each
    good   int64[r]     set to the number of correct entries of the run

    Where a position is that of another record, the next message record counts. No record may begin before the previous
    one ends. The first wrong entry of a run and those after it stay unchanged.
    """
    b: u8p = bytes_of(buf)
    last: u8p
    k: cython.Py_ssize_t
    i: cython.longlong
    hi: cython.longlong
    base: cython.longlong
    end: cython.longlong
    pos: cython.longlong
    after: cython.longlong
    r: RecordHead
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
                    if _record_head(b, pos, end, cython.address(r)) != 0:
                        break
                    hops = 0
                    last = b + pos
                    while r.op != 2 and hops < 64 and r.data + r.size < end:
                        pos = r.data + r.size
                        if _record_head(b, pos, end, cython.address(r)) != 0:
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


OK, NO_CHUNK, CUT, NO_INDEX = 0, 1, 2, 3
#: Compressions by their numbers in the output of ``read_chunk_headers``.
COMPRESSIONS = ("none", "bz2", "lz4", "zlib")

ChunkHead = cython.struct(
    op=cython.longlong,  # -1: none, as in the next four
    conn=cython.longlong,
    count=cython.longlong,
    size=cython.longlong,  # of the unpacked chunk
    packing=cython.longlong,  # number of its compression
    data=cython.longlong,  # start of the data
    stored=cython.longlong,  # bytes of the data
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
def _chunk_head(
    b: u8p, pos: cython.longlong, end: cython.longlong, r: cython.pointer[ChunkHead]
) -> cython.bint:
    """Read the header of the record at *pos*, whose data may end after *end*; return False if it is not a record."""
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


def read_chunk_headers(
    buf: cython.const[cython.uchar][::1],
    pos: cython.const[cython.longlong][::1],
    many: cython.const[cython.longlong][::1],
    chunk: cython.longlong[:, ::1],
    run: cython.longlong[:, ::1],
):
    """Read the headers of chunks, and of the index records behind each.

    pos    int64[k]     where the chunks begin
    many   int64[k]     number of index records with entries behind each, by the summary
    chunk  int64[k, 5]  set to start and size of the data, number of the compression, unpacked size, and end of the
                        index records
    run    int64[m, 3]  set to connection, number of entries and their start, of each index record that has entries

    Returns why it stopped (OK, NO_CHUNK, CUT: the chunk is cut, NO_INDEX: index records are missing or cut) and at
    which chunk. Some recorders state a larger size of an index record than they write, so the size is not used.
    """
    size: cython.longlong = buf.shape[0]
    b: u8p = bytes_of(buf)
    k: cython.Py_ssize_t = 0
    m: cython.Py_ssize_t = 0
    left: cython.longlong
    at: cython.longlong
    r: ChunkHead
    why: cython.int = 0
    with cython.nogil:
        while k < pos.shape[0] and why == 0:
            if (
                not _chunk_head(b, pos[k], size, cython.address(r))
                or r.op != 5
                or r.size < 0
                or r.packing < 0
            ):
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
                    or not _chunk_head(b, at, size, cython.address(r))
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


def read_index_entries(
    buf: cython.const[cython.uchar][::1],
    run: cython.const[cython.longlong][:, ::1],
    time: cython.longlong[::1],
    place: cython.uint[::1],
):
    """Read the entries of index records, whose positions and counts ``read_chunk_headers`` has checked.

    run    int64[m, 3]  number of entries, their start, and the unpacked size of the chunk
    time   int64[n]     ns, filled run after run
    place  uint32[n]    offset of each record in its chunk

    Returns the number of the first run with an offset outside of its chunk, or m.
    """
    b: u8p = bytes_of(buf)
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
