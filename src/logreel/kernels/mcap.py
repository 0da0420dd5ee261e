"""Kernels of MCAP: walk records, read, check and write message indexes.

    u8 kind | u64 length | content          message (kind 5): u16 key | u32 sequence | u64 time | u64 time | payload

Every length is compared with the bytes left before it is used. Kinds up to 15 have a least length; kind 0 is invalid.
Source: the MCAP specification, version 0.
"""

import cython

if not cython.compiled:
    raise ImportError("logreel.kernels is not compiled: run `pip install -e .` (needs gcc)")

from cython.cimports.libc.string import memcpy
from cython.cimports.logreel.kernels.loads import bytes_of, u16, u64
from cython.cimports.logreel.kernels.prefetch import prefetch, prefetch_span

u8p = cython.typedef(cython.pointer[cython.const[cython.uchar]])

END, CUT, BAD, STOP, FULL = 0, 1, 2, 3, 4
#: Bytes of kind and length; and of a message before its payload, including these.
HEAD = cython.declare(cython.longlong, 9)
MESSAGE_HEAD = cython.declare(cython.longlong, 31)
#: Number of messages that are prefetched ahead, where those of a channel are read.
AHEAD = cython.declare(cython.longlong, 12)
#: Bytes of an index record before its entries; and of an entry.
INDEX_HEAD = cython.declare(cython.longlong, 15)
ENTRY = cython.declare(cython.longlong, 16)
#: Number of consecutive records that are evidence enough for a position.
CHAIN = cython.declare(cython.longlong, 2)
MOST = cython.declare(cython.longlong, 9223372036854775807)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _time(p: u8p) -> cython.longlong:
    """Return a time in ns, limited to the maximum of int64."""
    v: cython.ulonglong = u64(p)
    return MOST if v > cython.cast(cython.ulonglong, MOST) else cython.cast(cython.longlong, v)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _least(kind: cython.longlong) -> cython.longlong:
    """Return the least size of the content of a kind; -1 for an invalid kind."""
    if kind == 5:
        return 22
    if kind == 7:
        return 6
    if kind == 6:
        return 40
    if kind == 3:
        return 14
    if kind == 4:
        return 16
    if kind == 1 or kind == 12:
        return 8
    if kind == 2 or kind == 13:
        return 20
    if kind == 8:
        return 64
    if kind == 9:
        return 36
    if kind == 10:
        return 48
    if kind == 11:
        return 46
    if kind == 14:
        return 17
    if kind == 15:
        return 4
    return -1 if kind == 0 else 0


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _judge(
    b: u8p, pos: cython.longlong, end: cython.longlong, length: cython.pointer[cython.longlong]
) -> cython.longlong:
    """Return 0 for a complete record at *pos*, 1 for one that ends after *end*, 2 for none."""
    v: cython.ulonglong
    least: cython.longlong
    if pos < end and b[pos] == 0:
        return 2
    if end - pos < HEAD:
        return 1
    least = _least(b[pos])
    v = u64(b + pos + 1)
    if v > cython.cast(cython.ulonglong, MOST) or cython.cast(cython.longlong, v) < least:
        return 2
    length[0] = cython.cast(cython.longlong, v)
    return 0 if length[0] <= end - pos - HEAD else 1


def walk(
    buf: cython.const[cython.uchar][::1],
    pos: cython.longlong,
    end: cython.longlong,
    key: cython.longlong[::1],
    time: cython.longlong[::1],
    data: cython.longlong[::1],
    size: cython.longlong[::1],
    note: cython.longlong[::1],
    stop: cython.ulonglong,
):
    """Follow the records from *pos*; collect messages and note the others.

    key   int64[n]  channel id of each message
    time  int64[n]  log time in ns, limited to the maximum of int64
    data  int64[n]  start of its payload
    size  int64[n]  bytes of its payload
    note  int64[m]  start of every other record
    stop  bit set of the kinds to stop at

    Returns why it stopped (END reached, CUT: the next record ends after *end*, BAD: no record, STOP: one of *stop*,
    FULL: no room), the position, and the number of messages and of notes.
    """
    b: u8p = bytes_of(buf)
    n: cython.Py_ssize_t = 0
    m: cython.Py_ssize_t = 0
    cap: cython.Py_ssize_t = key.shape[0]
    notecap: cython.Py_ssize_t = note.shape[0]
    length: cython.longlong = 0
    why: cython.longlong = 0
    kind: cython.longlong
    with cython.nogil:
        while pos < end:
            prefetch(b + pos + 2048)
            why = _judge(b, pos, end, cython.address(length))
            if why != 0:
                break
            kind = b[pos]
            if kind == 5 and length < 22:
                # It was another kind when it was judged: another process writes the file.
                why = 2
                break
            if kind < 64 and (stop >> cython.cast(cython.ulonglong, kind)) & 1:
                why = 3
                break
            if n == cap or m == notecap:
                why = 4
                break
            if kind == 5:
                key[n] = u16(b + pos + 9)
                time[n] = _time(b + pos + 15)
                data[n] = pos + MESSAGE_HEAD
                size[n] = length - 22
                n += 1
            else:
                note[m] = pos
                m += 1
            pos += HEAD + length
    return why, pos, n, m


def find_records(buf: cython.const[cython.uchar][::1], pos: cython.longlong, end: cython.longlong):
    """Return the first position from *pos* where a chain of records begins, or *end*.

    A chain is two complete records, or one that ends at *end* or before the header of another that *end* cuts: eight
    bytes of length are evidence. Kinds above 15 are not.
    """
    b: u8p = bytes_of(buf)
    at: cython.longlong
    count: cython.longlong
    length: cython.longlong = 0
    verdict: cython.longlong
    with cython.nogil:
        while pos < end:
            at = pos
            count = 0
            while at < end and count < CHAIN and 0 < b[at] <= 15:
                verdict = _judge(b, at, end, cython.address(length))
                if verdict == 2:
                    break
                if verdict == 1:
                    # Only behind a complete record, and with a complete header.
                    if count > 0 and end - at >= HEAD:
                        count = CHAIN
                    break
                at += HEAD + length
                count += 1
            if count == CHAIN or (count > 0 and at == end):
                break
            pos += 1
    return pos if pos < end else end


def read_index_entries(
    buf: cython.const[cython.uchar][::1],
    run: cython.const[cython.longlong][:, ::1],
    time: cython.longlong[::1],
    place: cython.uint[::1],
    good: cython.uchar[::1],
):
    """Read the entries of index records (kind 7: u16 key, u32 bytes of the entries, entries of two u64).

    run    int64[m, 5]  start of each record, its key, its number of entries, the unpacked size of the chunk, and the
                        index of its first entry in *time* and *place*
    time   int64[n]     ns
    place  uint32[n]    offset of each payload in its chunk
    good   uint8[m]     set to 0 where the record differs from *run* or an offset lies outside of the chunk, 2 where
                        offsets do not ascend, else 1
    """
    b: u8p = bytes_of(buf)
    p: u8p
    k: cython.Py_ssize_t
    i: cython.longlong
    n: cython.longlong
    to: cython.longlong
    v: cython.ulonglong
    before: cython.longlong
    length: cython.longlong = 0
    size: cython.longlong = buf.shape[0]
    with cython.nogil:
        for k in range(run.shape[0]):
            good[k] = 0
            n = run[k, 2]
            to = run[k, 4]
            if run[k, 0] < 0 or run[k, 0] > size or _judge(b, run[k, 0], size, cython.address(length)) != 0:
                continue
            p = b + run[k, 0]
            if p[0] != 7 or u16(p + 9) != run[k, 1] or length < 6 + 16 * n:
                continue
            if p[11] + 256 * (p[12] + 256 * (p[13] + cython.cast(cython.longlong, 256) * p[14])) != 16 * n:
                continue
            p += 15
            before = -1
            good[k] = 1
            for i in range(n):
                prefetch(p + 1024)
                time[to + i] = _time(p)
                v = u64(p + 8)
                if run[k, 3] < MESSAGE_HEAD or v > cython.cast(cython.ulonglong, run[k, 3] - MESSAGE_HEAD):
                    good[k] = 0
                    break
                if cython.cast(cython.longlong, v) <= before and good[k] == 1:
                    good[k] = 2
                before = cython.cast(cython.longlong, v)
                place[to + i] = cython.cast(cython.uint, v + MESSAGE_HEAD)
                p += 16


def count_messages(
    buf: cython.const[cython.uchar][::1],
    place: cython.const[cython.longlong][::1],
    count: cython.longlong[::1],
):
    """Count the messages of each key; the caller has checked that they exist.

    place  int64[n]  start of each message record
    count  int64[k]  counted up for each message of that key; keys are below k

    Returns the least and the greatest log time in ns.
    """
    i: cython.Py_ssize_t
    time: cython.longlong
    first: cython.longlong = MOST
    last: cython.longlong = 0
    with cython.nogil:
        for i in range(place.shape[0]):
            count[u16(cython.address(buf[place[i] + 9]))] += 1
            time = _time(cython.address(buf[place[i] + 15]))
            first = min(first, time)
            last = max(last, time)
    return first, last


def write_index(
    buf: cython.const[cython.uchar][::1],
    place: cython.const[cython.longlong][::1],
    count: cython.const[cython.longlong][::1],
    begin: cython.longlong[::1],
    out: cython.uchar[::1],
):
    """Write an index record for each key that has messages, in ascending order, as ``read_index_entries`` reads them.

    place  int64[n]  start of each message record
    count  int64[k]  number of messages of each key
    begin  int64[k]  set to the start of the record of each key in *out*, also for keys without messages
    out    uint8[b]  15 bytes for each key that has messages and 16 for each message
    """
    p: cython.pointer[cython.uchar] = cython.address(out[0])
    pos: cython.longlong = 0
    k: cython.Py_ssize_t
    i: cython.Py_ssize_t
    length: cython.longlong
    size: cython.uint
    key: cython.ushort
    with cython.nogil:
        for k in range(count.shape[0]):
            begin[k] = pos
            if count[k] > 0:
                key = cython.cast(cython.ushort, k)
                size = cython.cast(cython.uint, ENTRY * count[k])
                length = 6 + ENTRY * count[k]
                p[pos] = 7
                memcpy(p + pos + 1, cython.address(length), 8)
                memcpy(p + pos + 9, cython.address(key), 2)
                memcpy(p + pos + 11, cython.address(size), 4)
                pos += HEAD + length
        for i in range(place.shape[0]):
            k = u16(cython.address(buf[place[i] + 9]))
            pos = begin[k] + INDEX_HEAD
            memcpy(p + pos, cython.address(buf[place[i] + 15]), 8)
            memcpy(p + pos + 8, cython.address(place[i]), 8)
            begin[k] += ENTRY
        for k in range(count.shape[0]):
            begin[k] -= ENTRY * count[k]


def locate_messages(
    buf: cython.const[cython.uchar][::1],
    run: cython.const[cython.longlong][:, ::1],
    entry: cython.const[cython.uint][::1],
    time: cython.const[cython.longlong][::1],
    size: cython.uint[::1],
    good: cython.longlong[::1],
):
    """Compare the entries of an index with the messages in the chunks, and fill in their sizes, run by run.

    run    int64[r, 5]  first entry, entry after the last, position in *buf* that entries count from, end of the
                        bytes, and the key expected of all
    entry  uint32[n]    starts of payloads
    time   int64[n]     ns expected of each
    size   uint32[n]    set for correct entries
    good   int64[r]     set to the number of correct entries of the run
    """
    b: u8p = bytes_of(buf)
    k: cython.Py_ssize_t
    i: cython.longlong
    pos: cython.longlong
    length: cython.longlong = 0
    with cython.nogil:
        for k in range(run.shape[0]):
            good[k] = 0
            for i in range(run[k, 0], run[k, 1]):
                pos = run[k, 2] + entry[i] - MESSAGE_HEAD
                if i + AHEAD < run[k, 1] and run[k, 2] + entry[i + AHEAD] < run[k, 3]:
                    # Messages of a channel are not adjacent.
                    prefetch_span(b + run[k, 2] + entry[i + AHEAD] - MESSAGE_HEAD, MESSAGE_HEAD)
                if pos < run[k, 2] or run[k, 3] - pos < MESSAGE_HEAD:
                    continue
                if _judge(b, pos, run[k, 3], cython.address(length)) != 0 or b[pos] != 5 or length < 22:
                    continue
                if u16(b + pos + 9) != run[k, 4] or _time(b + pos + 15) != time[i]:
                    continue
                size[i] = cython.cast(cython.uint, length - 22)
                good[k] += 1
