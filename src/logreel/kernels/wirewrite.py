"""Make blocks that carry a descriptor of varints, and the entries of an index of them.

What a block is tells ``wire``. Nothing here checks what it writes to: callers measure first.
"""

import cython

if not cython.compiled:
    raise ImportError("logreel.kernels is not compiled: run `pip install -e .` (needs gcc)")

from cython.cimports.libc.string import memcpy
from cython.cimports.logreel.kernels.prefetch import prefetch, prefetch_span
from cython.cimports.logreel.kernels.varints import Block, block, skip, u8p, varint

mp = cython.typedef(cython.pointer[cython.uchar])
i64p = cython.typedef(cython.pointer[cython.const[cython.longlong]])
AHEAD = cython.declare(cython.longlong, 8)
SECOND = cython.declare(cython.longlong, 1000000000)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.inline
def _length(v: cython.ulonglong) -> cython.longlong:
    """Bytes of a varint."""
    n: cython.longlong = 1
    while v > 127:
        v >>= 7
        n += 1
    return n


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.inline
def _put(p: mp, v: cython.ulonglong) -> mp:
    """Write a varint; gives where it ends."""
    while v > 127:
        p[0] = cython.cast(cython.uchar, v | 128)
        v >>= 7
        p += 1
    p[0] = cython.cast(cython.uchar, v)
    return p + 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.inline
def _seconds(time: cython.longlong) -> cython.longlong:
    """Whole seconds before *time* ns."""
    return time // SECOND - (time % SECOND < 0)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.inline
def _nanos(time: cython.longlong) -> cython.longlong:
    """What *time* ns has beyond whole seconds, never negative."""
    return time % SECOND + (SECOND if time % SECOND < 0 else 0)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.inline
def _stamp_length(seconds: cython.longlong, nanos: cython.longlong) -> cython.longlong:
    n: cython.longlong = 0
    if seconds != 0:
        n += 1 + _length(cython.cast(cython.ulonglong, seconds))
    if nanos != 0:
        n += 1 + _length(cython.cast(cython.ulonglong, nanos))
    return n


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.inline
def _packed_length(row: i64p, count: cython.longlong) -> cython.longlong:
    n: cython.longlong = 0
    j: cython.longlong
    for j in range(count):
        n += _length(cython.cast(cython.ulonglong, row[j]))
    return n


def sizes(
    channel: cython.const[cython.int][::1],
    time: cython.const[cython.longlong][::1],
    size: cython.const[cython.longlong][::1],
    series: cython.const[cython.longlong][:, ::1],
    numbers: cython.const[cython.longlong][:, ::1],
    out: cython.longlong[::1],
):
    """Fill *out*, int64[n], with the bytes of each descriptor.

    channel  int32[n]
    time     int64[n]     ns
    size     int64[n]     payload bytes
    series   int64[c, 2]  per channel: key, and how many further numbers its blocks have
    numbers  int64[n, k]  the further numbers of each message
    """
    i: cython.Py_ssize_t
    seconds: cython.longlong
    inner: cython.longlong
    n: cython.longlong
    k: cython.longlong
    none: cython.longlong = 0
    rows: i64p = (
        cython.address(numbers[0, 0]) if numbers.shape[0] * numbers.shape[1] else cython.address(none)
    )
    width: cython.Py_ssize_t = numbers.shape[1]
    with cython.nogil:
        for i in range(channel.shape[0]):
            seconds = _seconds(time[i])
            # The time takes fewer than 128 bytes.
            n = 2 + _stamp_length(seconds, _nanos(time[i]))
            if series[channel[i], 0] != 0:
                n += 1 + _length(cython.cast(cython.ulonglong, series[channel[i], 0]))
            k = series[channel[i], 1]
            if k != 0:
                inner = _packed_length(rows + i * width, k)
                n += 1 + _length(cython.cast(cython.ulonglong, inner)) + inner
            out[i] = n


def compose(
    data: cython.const[cython.uchar][::1],
    channel: cython.const[cython.int][::1],
    time: cython.const[cython.longlong][::1],
    start: cython.const[cython.longlong][::1],
    size: cython.const[cython.longlong][::1],
    series: cython.const[cython.longlong][:, ::1],
    numbers: cython.const[cython.longlong][:, ::1],
    head: cython.const[cython.longlong][::1],
    place: cython.const[cython.longlong][::1],
    out: cython.uchar[::1],
):
    """Write n data blocks.

    data   uint8[b]  payload i is data[start[i]:start[i] + size[i]]
    head   int64[n]  what ``sizes`` gave
    place  int64[n]  where block i begins in *out*

    The others are as for ``sizes``.
    """
    n: cython.Py_ssize_t = channel.shape[0]
    i: cython.Py_ssize_t
    j: cython.longlong
    k: cython.longlong
    seconds: cython.longlong
    nanos: cython.longlong
    word: cython.ulonglong
    d: cython.uint
    p: mp
    none: cython.longlong = 0
    rows: i64p = (
        cython.address(numbers[0, 0]) if numbers.shape[0] * numbers.shape[1] else cython.address(none)
    )
    width: cython.Py_ssize_t = numbers.shape[1]
    if n == 0:
        return
    # One byte of its own stands for no bytes, whose memory may have no address.
    b: u8p = cython.address(data[0]) if data.shape[0] else cython.cast(u8p, b"")
    with cython.nogil:
        for i in range(n):
            if i + AHEAD < n:
                prefetch_span(b + start[i + AHEAD], size[i + AHEAD])
            p = cython.address(out[0]) + place[i]
            word = cython.cast(cython.ulonglong, head[i] + size[i])
            memcpy(p, cython.address(word), 8)
            d = cython.cast(cython.uint, head[i])
            memcpy(p + 8, cython.address(d), 4)
            p += 12
            if series[channel[i], 0] != 0:
                p[0] = 8
                p = _put(p + 1, cython.cast(cython.ulonglong, series[channel[i], 0]))
            seconds = _seconds(time[i])
            nanos = _nanos(time[i])
            p[0] = 18
            p[1] = cython.cast(cython.uchar, _stamp_length(seconds, nanos))
            p += 2
            if seconds != 0:
                p[0] = 8
                p = _put(p + 1, cython.cast(cython.ulonglong, seconds))
            if nanos != 0:
                p[0] = 16
                p = _put(p + 1, cython.cast(cython.ulonglong, nanos))
            k = series[channel[i], 1]
            if k != 0:
                p[0] = 26
                p = _put(p + 1, cython.cast(cython.ulonglong, _packed_length(rows + i * width, k)))
                for j in range(k):
                    p = _put(p, cython.cast(cython.ulonglong, rows[i * width + j]))
            memcpy(p, b + start[i], size[i])


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _entry(p: u8p, e: u8p, place: cython.longlong, out: mp, write: cython.bint) -> cython.longlong:
    """Bytes of the entry for a block whose descriptor is from p to e; written to *out* if asked, as it stands there."""
    n: cython.longlong = 0
    part: cython.int
    tag: cython.ulonglong = 0
    q: u8p
    first: u8p
    for part in range(3):
        if part == 1:
            n += 1 + _length(cython.cast(cython.ulonglong, place))
            if write:
                out[0] = 16
                out = _put(out + 1, cython.cast(cython.ulonglong, place))
            continue
        q = p
        while q < e:
            first = q
            q = varint(q, e, cython.address(tag))
            if q != cython.NULL:
                q = skip(q, e, tag)
            if q == cython.NULL:
                return -1
            # Times come before the place of the block, further numbers behind it: there they have the same tags.
            if (tag == 18) if part == 0 else (tag == 24 or tag == 26):
                n += q - first
                if write:
                    memcpy(out, first, q - first)
                    if part == 0:
                        out[0] = 10
                    out += q - first
    return n


def entries(
    buf: cython.const[cython.uchar][::1],
    place: cython.const[cython.longlong][::1],
    out: cython.uchar[::1],
    base: cython.longlong = 0,
):
    """Write the index entries, 3 { 1 time, 2 place, 3 further numbers }, of the data blocks at *place*.

    out   uint8[m]; of 0 bytes: nothing is written
    base  where in the file *buf* begins; what is written counts from the beginning of the file

    Returns the bytes of all entries and those of the payloads; -1 where no data block is at one of the places.
    """
    b: u8p = cython.address(buf[0])
    end: cython.longlong = buf.shape[0]
    n: cython.Py_ssize_t = place.shape[0]
    i: cython.Py_ssize_t
    write: cython.bint = out.shape[0] > 0
    none: cython.uchar = 0
    p: mp = cython.address(out[0]) if write else cython.address(none)
    size: cython.longlong
    total: cython.longlong = 0
    payloads: cython.longlong = 0
    r: Block
    with cython.nogil:
        for i in range(n):
            if i + AHEAD < n and 0 <= place[i + AHEAD] < end:
                prefetch(b + place[i + AHEAD])
            if (
                place[i] < 0
                or place[i] >= end
                or block(b, place[i], end, cython.address(r)) != 0
                or r.kind != 0
            ):
                total = -1
                break
            size = _entry(b + r.descriptor, b + r.payload, base + place[i], p, False)
            if size < 0:
                total = -1
                break
            if write:
                p[0] = 26
                p = _put(p + 1, cython.cast(cython.ulonglong, size))
                _entry(b + r.descriptor, b + r.payload, base + place[i], p, True)
                p += size
            total += 1 + _length(cython.cast(cython.ulonglong, size)) + size
            payloads += r.size
    return total, payloads
