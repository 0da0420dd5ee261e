"""Read indexes of blocks that carry a descriptor of varints, and look at the blocks that they name.

What a block is tells ``wire``. Every length is checked by subtraction, in 64 bits, before use.
"""

import cython

if not cython.compiled:
    raise ImportError("logreel.kernels is not compiled: run `pip install -e .` (needs gcc)")

from cython.cimports.libc.string import memcpy
from cython.cimports.logreel.kernels.prefetch import prefetch
from cython.cimports.logreel.kernels.varints import (
    Block,
    block,
    nanoseconds,
    none_before,
    skip,
    span,
    stamp,
    u8p,
    usual,
    varint,
)

i64p = cython.typedef(cython.pointer[cython.longlong])


def entries(
    buf: cython.const[cython.uchar][::1],
    pos: cython.longlong,
    end: cython.longlong,
    time: cython.longlong[::1],
    place: cython.longlong[::1],
):
    """Read an index: 1 key, 2 place of the descriptor, 3 { 1 time, 2 place } for each block, 4 bytes in all.

    time   int64[c]  ns
    place  int64[c]

    Returns the entries there are, of which those that fit are filled in, or -1 where the bytes are malformed; then
    key, place of the descriptor and bytes in all.
    """
    p: u8p = cython.address(buf[0])
    e: u8p = p + end
    e2: u8p
    n: cython.longlong = 0
    cap: cython.longlong = time.shape[0]
    pt: i64p = cython.address(time[0]) if cap else cython.NULL
    pp: i64p = cython.address(place[0]) if cap else cython.NULL
    tag: cython.ulonglong = 0
    v: cython.ulonglong = 0
    numbers: cython.ulonglong[5]
    where: cython.ulonglong
    seconds: cython.longlong
    nanos: cython.longlong
    p += pos
    with cython.nogil:
        numbers[1] = 0
        numbers[2] = 0
        numbers[4] = 0
        while p < e:
            p = varint(p, e, cython.address(tag))
            if p == cython.NULL:
                break
            if tag == 8 or tag == 16 or tag == 32:
                p = varint(p, e, cython.address(v))
                numbers[tag >> 3] = v
            elif tag == 26:
                p = span(p, e, cython.address(v))
                if p == cython.NULL:
                    break
                e2 = p + v
                where = 0
                seconds = 0
                nanos = 0
                while p < e2:
                    p = varint(p, e2, cython.address(tag))
                    if p == cython.NULL:
                        break
                    if tag == 16:
                        p = varint(p, e2, cython.address(where))
                    elif tag == 10:
                        p = span(p, e2, cython.address(v))
                        if p != cython.NULL:
                            if stamp(p, p + v, cython.address(seconds), cython.address(nanos)):
                                p += v
                            else:
                                p = cython.NULL
                    else:
                        p = skip(p, e2, tag)
                    if p == cython.NULL:
                        break
                if n < cap:
                    pt[n] = nanoseconds(seconds, nanos)
                    pp[n] = cython.cast(cython.longlong, where)
                n += 1
            else:
                p = skip(p, e, tag)
            if p == cython.NULL:
                break
    if p == cython.NULL:
        return -1, 0, 0, 0
    return n, numbers[1], numbers[2], numbers[4]


def verify(
    buf: cython.const[cython.uchar][::1],
    end: cython.longlong,
    key: cython.ulonglong,
    place: cython.const[cython.longlong][::1],
    time: cython.const[cython.longlong][::1],
):
    """How many data blocks at *place*, from the first, are whole, have this key and these times.

    Returns their number, the bytes of their payloads and those of the blocks.
    """
    b: u8p = cython.address(buf[0])
    n: cython.Py_ssize_t = place.shape[0]
    i: cython.Py_ssize_t
    good: cython.Py_ssize_t = 0
    payloads: cython.longlong = 0
    total: cython.longlong = 0
    r: Block
    with cython.nogil:
        for i in range(n):
            if i + 8 < n and place[i + 8] >= 0 and place[i + 8] < end:
                prefetch(b + place[i + 8])
            if place[i] < 0 or place[i] >= end or block(b, place[i], end, cython.address(r)) != 0:
                break
            if r.kind != 0 or r.key != key or r.time != time[i]:
                break
            payloads += r.size
            total += r.next - place[i]
            good += 1
    return good, payloads, total


def times(
    buf: cython.const[cython.uchar][::1], place: cython.const[cython.longlong][::1], out: cython.longlong[::1]
):
    """Fill *out*, int64[n], with the times in ns of the data blocks at *place*; zero where none is."""
    b: u8p = cython.address(buf[0])
    end: cython.longlong = buf.shape[0]
    n: cython.Py_ssize_t = place.shape[0]
    i: cython.Py_ssize_t
    d: cython.uint = 0
    last: cython.ulonglong[2]
    r: Block
    with cython.nogil:
        none_before(cython.address(last[0]))
        for i in range(n):
            if i + 32 < n and place[i + 32] >= 0 and place[i + 32] < end:
                prefetch(b + place[i + 32])
            if place[i] >= 0 and place[i] <= end - 64:
                memcpy(cython.address(d), b + place[i] + 8, 4)
                # Sizes matter for no time; they have been compared with what is there when the block was found.
                if b[place[i] + 7] == 0 and usual(
                    b + place[i] + 12, d, cython.address(r), cython.address(last[0])
                ):
                    out[i] = r.time
                    continue
            if (
                place[i] < 0
                or place[i] >= end
                or block(b, place[i], end, cython.address(r)) != 0
                or r.kind != 0
            ):
                out[i] = 0
            else:
                out[i] = r.time


def spans(
    buf: cython.const[cython.uchar][::1],
    place: cython.const[cython.longlong][::1],
    payload: cython.longlong[::1],
    size: cython.longlong[::1],
):
    """Fill where the payloads of the data blocks at *place* begin, and their bytes; both zero where none is."""
    b: u8p = cython.address(buf[0])
    end: cython.longlong = buf.shape[0]
    n: cython.Py_ssize_t = place.shape[0]
    i: cython.Py_ssize_t
    word: cython.ulonglong = 0
    d: cython.uint = 0
    with cython.nogil:
        for i in range(n):
            if i + 32 < n and place[i + 32] >= 0 and place[i + 32] < end:
                prefetch(b + place[i + 32])
            payload[i] = 0
            size[i] = 0
            if place[i] < 0 or place[i] > end - 12:
                continue
            memcpy(cython.address(word), b + place[i], 8)
            memcpy(cython.address(d), b + place[i] + 8, 4)
            if word <= cython.cast(cython.ulonglong, end - place[i] - 12) and d <= word:
                payload[i] = place[i] + 12 + d
                size[i] = cython.cast(cython.longlong, word) - d


def gather(
    buf: cython.const[cython.uchar][::1],
    entry: cython.const[cython.uint][::1],
    base: cython.longlong,
    size: cython.longlong,
    out: cython.uchar[::1],
    time: cython.longlong[::1],
):
    """Copy the payloads of the data blocks at *base* + *entry*, each of *size* bytes, and take their times.

    out   uint8[n * size]  one payload after another
    time  int64[n]         ns

    Returns the blocks done; fewer than n: the next one has a payload of another size, or is none.
    """
    b: u8p = cython.address(buf[0])
    end: cython.longlong = buf.shape[0]
    n: cython.Py_ssize_t = entry.shape[0]
    i: cython.Py_ssize_t
    done: cython.Py_ssize_t = 0
    place: cython.longlong
    ahead: cython.longlong
    d: cython.uint = 0
    last: cython.ulonglong[2]
    r: Block
    to: cython.pointer[cython.uchar]
    if n == 0 or size <= 0 or base < 0 or out.shape[0] < n * size or time.shape[0] < n:
        return 0
    to = cython.address(out[0])
    with cython.nogil:
        none_before(cython.address(last[0]))
        for i in range(n):
            place = base + entry[i]
            if i + 32 < n:
                ahead = base + entry[i + 32]
                if ahead < end:
                    prefetch(b + ahead)
            # Many are alike, and a copy of eight bytes is one instruction where the compiler knows of it.
            if place <= end - 64:
                memcpy(cython.address(d), b + place + 8, 4)
                if _size_is(b, place, end, d + size) and usual(
                    b + place + 12, d, cython.address(r), cython.address(last[0])
                ):
                    if size == 8:
                        memcpy(to, b + place + 12 + d, 8)
                    else:
                        memcpy(to, b + place + 12 + d, size)
                    time[i] = r.time
                    to += size
                    done = i + 1
                    continue
            if place >= end or block(b, place, end, cython.address(r)) != 0 or r.kind != 0 or r.size != size:
                break
            memcpy(to, b + r.payload, size)
            time[i] = r.time
            to += size
            done = i + 1
    return done


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _size_is(b: u8p, place: cython.longlong, end: cython.longlong, size: cython.longlong) -> cython.bint:
    """Whether the word of a data block at *place* tells of so many bytes, and they are there."""
    word: cython.ulonglong = 0
    memcpy(cython.address(word), b + place, 8)
    return word == cython.cast(cython.ulonglong, size) and size <= end - place - 12


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _numbers(p: u8p, e: u8p, out: i64p, cap: cython.longlong) -> cython.longlong:
    """How many further numbers a descriptor holds; the first *cap* of them are filled in."""
    n: cython.longlong = 0
    tag: cython.ulonglong = 0
    v: cython.ulonglong = 0
    stop: u8p
    while p < e:
        p = varint(p, e, cython.address(tag))
        if p == cython.NULL:
            return -1
        if tag == 24 or tag == 26:
            stop = e
            if tag == 26:
                p = span(p, e, cython.address(v))
                if p == cython.NULL:
                    return -1
                stop = p + v
            while p < stop:
                p = varint(p, stop, cython.address(v))
                if p == cython.NULL:
                    return -1
                if n < cap:
                    out[n] = cython.cast(cython.longlong, v)
                n += 1
                if tag == 24:
                    break
        else:
            p = skip(p, e, tag)
            if p == cython.NULL:
                return -1
    return n


def numbers(
    buf: cython.const[cython.uchar][::1],
    place: cython.const[cython.longlong][::1],
    out: cython.longlong[:, ::1],
):
    """Gather the further numbers of the data blocks at *place*.

    out  int64[n, k]  zeros, filled as far as a block has them

    Returns how many blocks have not exactly k of them.
    """
    b: u8p = cython.address(buf[0])
    end: cython.longlong = buf.shape[0]
    n: cython.Py_ssize_t = place.shape[0]
    k: cython.Py_ssize_t = out.shape[1]
    i: cython.Py_ssize_t
    odd: cython.Py_ssize_t = 0
    r: Block
    with cython.nogil:
        for i in range(n):
            if i + 8 < n and place[i + 8] >= 0 and place[i + 8] < end:
                prefetch(b + place[i + 8])
            if (
                place[i] < 0
                or place[i] >= end
                or block(b, place[i], end, cython.address(r)) != 0
                or r.kind != 0
            ):
                odd += 1
            elif _numbers(b + r.descriptor, b + r.payload, cython.address(out[i, 0]), k) != k:
                odd += 1
    return odd
