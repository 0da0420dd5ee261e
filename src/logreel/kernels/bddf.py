"""Kernels of BDDF: walk blocks, read and verify indexes, gather payloads, and write blocks and index entries.

    block       u64: kind in the highest byte, size in the others
    kind 0      then u32 d, descriptor of d bytes, payload of size - d bytes: data
    others      then *size* bytes, which the caller interprets
    descriptor  tag-value pairs: 1 varint key, 2 { 1 varint seconds, 2 varint nanoseconds }, 3 further int64 numbers

Unknown tags are skipped by their wire type. Every length read is checked by subtraction, in 64 bits, before use.
``write_blocks`` does not check the room in its output: callers measure first, from arrays of their own.
"""

import cython

if not cython.compiled:
    raise ImportError("logreel.kernels is not compiled: run `pip install -e .` (needs gcc)")

from cython.cimports.libc.string import memcpy
from cython.cimports.logreel.kernels.buffers import is_inside
from cython.cimports.logreel.kernels.loads import bytes_of, u32, u64
from cython.cimports.logreel.kernels.prefetch import prefetch, prefetch_span
from cython.cimports.logreel.kernels.varints import (
    Block,
    Shape,
    alike,
    block,
    further_nanos,
    nanoseconds,
    no_shape,
    none_before,
    put_varint,
    shape_of,
    skip,
    span,
    stamp,
    stamp_length,
    u8p,
    usual,
    varint,
    varint_length,
    whole_seconds,
)

i64p = cython.typedef(cython.pointer[cython.longlong])


def walk(
    buf: cython.const[cython.uchar][::1],
    state: cython.longlong[::1],
    end: cython.longlong,
    known: cython.const[cython.int][::1],
    record: cython.ulonglong[::1],
    count: cython.longlong[::1],
):
    """Follow the blocks from state[0] and collect data blocks.

    state   int64[5]   position, blocks collected, position that starts count from (-1: *position*), and number and
                       bytes of skipped data blocks; updated in place
    known   int32[k]   by key: channel, -1 not declared, -2 skip
    record  uint64[r]  channel << 32 | start of each block collected
    count   int64[c]   blocks of each channel; counted up

    Returns why it stopped: 0 *end* reached, 1 a block of another kind, 2 the next block is not acceptable, 3 it ends
    after *end*, 4 *record* is full or the block starts 4 GiB or more behind the first one.
    """
    b: u8p = bytes_of(buf)
    pk: cython.pointer[cython.const[cython.int]] = cython.address(known[0])
    nkeys: cython.ulonglong = known.shape[0]
    pr: cython.pointer[cython.ulonglong] = cython.address(record[0])
    pc: i64p = cython.address(count[0])
    cap: cython.longlong = record.shape[0]
    pos: cython.longlong = state[0]
    n: cython.longlong = state[1]
    base: cython.longlong = state[2]
    passed: cython.longlong = 0
    passed_bytes: cython.longlong = 0
    channel: cython.longlong
    word: cython.ulonglong = 0
    d: cython.uint = 0
    last: cython.ulonglong[2]
    fast: cython.longlong
    key: cython.ulonglong = 0
    shape: Shape
    r: Block
    why: cython.int = 0
    with cython.nogil:
        none_before(cython.address(last[0]))
        no_shape(cython.address(shape))
        if base < 0:
            base = pos
        fast = end - 64
        if (fast - base) >> 32 > 0:
            fast = base + (cython.cast(cython.longlong, 1) << 32)
        while pos < end:
            # The fast path takes data blocks in the usual form; all others go through the full checks below.
            while pos < fast and n < cap:
                prefetch(b + pos + 2048)
                word = u64(b + pos)
                d = u32(b + pos + 8)
                if word > cython.cast(cython.ulonglong, end - pos - 12) or d > word:
                    break
                if not alike(b + pos + 12, d, cython.address(shape), cython.address(key)):
                    if not usual(b + pos + 12, d, cython.address(r), cython.address(last[0])):
                        break
                    shape_of(b + pos + 12, d, cython.address(shape))
                    key = r.key
                if key >= nkeys or pk[key] < 0:
                    break
                channel = pk[key]
                pr[n] = cython.cast(cython.ulonglong, channel) << 32 | cython.cast(
                    cython.ulonglong, pos - base
                )
                pc[channel] += 1
                n += 1
                pos += 12 + cython.cast(cython.longlong, word)
            if pos >= end:
                break
            why = block(b, pos, end, cython.address(r))
            if why == 0 and r.kind != 0:
                why = 1
            if why != 0:
                break
            channel = pk[r.key] if r.key < nkeys else -1
            if channel < 0:
                if channel == -1:
                    why = 2
                    break
                passed += 1
                passed_bytes += r.next - pos
                pos = r.next
                continue
            if n >= cap or (pos - base) >> 32 != 0:
                why = 4
                break
            pr[n] = cython.cast(cython.ulonglong, channel) << 32 | cython.cast(cython.ulonglong, pos - base)
            pc[channel] += 1
            n += 1
            pos = r.next
    state[0] = pos
    state[1] = n
    state[2] = base
    state[3] += passed
    state[4] += passed_bytes
    return why


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _framed(b: u8p, pos: cython.longlong, end: cython.longlong) -> cython.bint:
    """Return whether there are no bytes, or one length-delimited field numbered 1 to 4 fills them exactly."""
    v: cython.ulonglong = 0
    p: u8p = b + pos
    if pos == end:
        return True
    if p[0] & 7 != 2 or p[0] < 10 or p[0] > 34:
        return False
    p = span(p + 1, b + end, cython.address(v))
    return p != cython.NULL and p + v == b + end


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _chain(
    b: u8p,
    pos: cython.longlong,
    end: cython.longlong,
    need: cython.int,
    known: cython.pointer[cython.const[cython.int]],
    nkeys: cython.ulonglong,
    tail: cython.longlong,
) -> cython.bint:
    k: cython.int
    why: cython.int
    declares: cython.bint = False
    d: cython.uint = 0
    r: Block
    for k in range(need):
        if pos == end:
            return k > 0
        if end - pos >= 13 and b[pos + 7] == 0:
            # Real descriptors have some 20 bytes; a search must not read a megabyte again from every position.
            d = u32(b + pos + 8)
            if d > 4096 or (b[pos + 12] != 8 and b[pos + 12] != 18 and b[pos + 12] != 26):
                return False
        why = block(b, pos, end, cython.address(r))
        if why == 3:
            return k >= 2
        if why != 0:
            return False
        if r.kind == 2:
            return k > 0 and end - pos >= tail
        if r.kind == 1:
            if not _framed(b, pos + 8, r.next):
                return False
            declares = True
        elif r.kind != 0:
            return False
        elif not declares and (r.key >= nkeys or known[r.key] == -1):
            return False
        pos = r.next
    return True


def resync(
    buf: cython.const[cython.uchar][::1],
    pos: cython.longlong,
    end: cython.longlong,
    known: cython.const[cython.int][::1],
    need: cython.int,
    last: cython.longlong,
    tail: cython.longlong,
):
    """Return the first position from *pos* to *last* where a chain of *need* blocks begins, or -1.

    Blocks of kind 1 must contain one field that fills them. Fewer blocks are enough where they end exactly at *end*, or
    before a block of kind 2 of which *tail* bytes exist; two are enough where *end* cuts the third.
    """
    b: u8p = bytes_of(buf)
    pk: cython.pointer[cython.const[cython.int]] = cython.address(known[0])
    nkeys: cython.ulonglong = known.shape[0]
    found: cython.longlong = -1
    with cython.nogil:
        # The highest byte of the word is the kind: 0 or 1 where a chain begins.
        while pos <= last and end - pos >= 8:
            if b[pos + 7] <= 1 and _chain(b, pos, end, need, pk, nkeys, tail):
                found = pos
                break
            pos += 1
    return found


def read_index_entries(
    buf: cython.const[cython.uchar][::1],
    pos: cython.longlong,
    end: cython.longlong,
    time: cython.longlong[::1],
    place: cython.longlong[::1],
):
    """Read an index: 1 key, 2 position of the descriptor, 3 { 1 time, 2 position } for each block, 4 total bytes.

    time   int64[c]  ns
    place  int64[c]  positions of blocks in the file

    Returns the number of entries, of which the first c are filled in, or -1 where the bytes are malformed; then key,
    position of the descriptor and total bytes.
    """
    p: u8p = bytes_of(buf)
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


def verify_blocks(
    buf: cython.const[cython.uchar][::1],
    end: cython.longlong,
    key: cython.ulonglong,
    place: cython.const[cython.longlong][::1],
    time: cython.const[cython.longlong][::1],
):
    """Check that the data blocks at *place* are complete and have this key and these times, up to the first wrong one.

    Returns the number of correct blocks, the bytes of their payloads and of the blocks.
    """
    b: u8p = bytes_of(buf)
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


def block_times(
    buf: cython.const[cython.uchar][::1], place: cython.const[cython.longlong][::1], out: cython.longlong[::1]
):
    """Fill *out*, int64[n], with the times in ns of the data blocks at *place*; 0 where there is no data block."""
    b: u8p = bytes_of(buf)
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
                d = u32(b + place[i] + 8)
                # The size is not needed here; it was checked when the block was found.
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


def payload_ranges(
    buf: cython.const[cython.uchar][::1],
    place: cython.const[cython.longlong][::1],
    payload: cython.longlong[::1],
    size: cython.longlong[::1],
):
    """Fill start and size of the payloads of the data blocks at *place*; both 0 where there is no data block."""
    b: u8p = bytes_of(buf)
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
            word = u64(b + place[i])
            d = u32(b + place[i] + 8)
            if word <= cython.cast(cython.ulonglong, end - place[i] - 12) and d <= word:
                payload[i] = place[i] + 12 + d
                size[i] = cython.cast(cython.longlong, word) - d


def gather_payloads(
    buf: cython.const[cython.uchar][::1],
    entry: cython.const[cython.uint][::1],
    base: cython.longlong,
    size: cython.longlong,
    out: cython.uchar[::1],
    time: cython.longlong[::1],
):
    """Copy the payloads of the data blocks at *base* + *entry*, each of *size* bytes, and fill their times.

    out   uint8[n * size]  one payload after another
    time  int64[n]         ns

    Returns the number of blocks copied; fewer than n: the next one has another size, or is not a data block.
    """
    b: u8p = bytes_of(buf)
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
            # Most blocks have the usual descriptor; a copy of constant 8 bytes is one instruction.
            if place <= end - 64:
                d = u32(b + place + 8)
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
    """Return whether the data block at *place* has *size* bytes, all of them before *end*."""
    word: cython.ulonglong = 0
    word = u64(b + place)
    return word == cython.cast(cython.ulonglong, size) and size <= end - place - 12


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _numbers(p: u8p, e: u8p, out: i64p, cap: cython.longlong) -> cython.longlong:
    """Return the number of further numbers in a descriptor, -1 if malformed; the first *cap* are filled in."""
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


def gather_numbers(
    buf: cython.const[cython.uchar][::1],
    place: cython.const[cython.longlong][::1],
    out: cython.longlong[:, ::1],
):
    """Gather the further numbers of the data blocks at *place*.

    out  int64[n, k]  zeros, of which the numbers present are filled in

    Returns the number of blocks that do not have exactly k of them.
    """
    b: u8p = bytes_of(buf)
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


mp = cython.typedef(cython.pointer[cython.uchar])
ci64p = cython.typedef(cython.pointer[cython.const[cython.longlong]])
AHEAD = cython.declare(cython.longlong, 8)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
@cython.inline
def _packed_length(row: ci64p, count: cython.longlong) -> cython.longlong:
    n: cython.longlong = 0
    j: cython.longlong
    for j in range(count):
        n += varint_length(cython.cast(cython.ulonglong, row[j]))
    return n


def descriptor_sizes(
    channel: cython.const[cython.int][::1],
    time: cython.const[cython.longlong][::1],
    size: cython.const[cython.longlong][::1],
    series: cython.const[cython.longlong][:, ::1],
    numbers: cython.const[cython.longlong][:, ::1],
    out: cython.longlong[::1],
):
    """Fill *out*, int64[n], with the size of each descriptor in bytes.

    channel  int32[n]
    time     int64[n]     ns
    size     int64[n]     payload bytes
    series   int64[c, 2]  per channel: key, and number of further numbers of its blocks
    numbers  int64[n, k]  the further numbers of each message
    """
    i: cython.Py_ssize_t
    seconds: cython.longlong
    inner: cython.longlong
    n: cython.longlong
    k: cython.longlong
    none: cython.longlong = 0
    rows: ci64p = (
        cython.address(numbers[0, 0]) if numbers.shape[0] * numbers.shape[1] else cython.address(none)
    )
    width: cython.Py_ssize_t = numbers.shape[1]
    with cython.nogil:
        for i in range(channel.shape[0]):
            seconds = whole_seconds(time[i])
            # The time takes fewer than 128 bytes.
            n = 2 + stamp_length(seconds, further_nanos(time[i]))
            if series[channel[i], 0] != 0:
                n += 1 + varint_length(cython.cast(cython.ulonglong, series[channel[i], 0]))
            k = series[channel[i], 1]
            if k != 0:
                inner = _packed_length(rows + i * width, k)
                n += 1 + varint_length(cython.cast(cython.ulonglong, inner)) + inner
            out[i] = n


def write_blocks(
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
    head   int64[n]  sizes of the descriptors, see ``descriptor_sizes``
    place  int64[n]  start of block i in *out*

    The others are as for ``descriptor_sizes``. Raises IndexError for a payload that does not lie in *data*; the blocks before
    it are written.
    """
    n: cython.Py_ssize_t = channel.shape[0]
    inside: cython.bint = True
    i: cython.Py_ssize_t
    j: cython.longlong
    k: cython.longlong
    seconds: cython.longlong
    nanos: cython.longlong
    word: cython.ulonglong
    d: cython.uint
    p: mp
    none: cython.longlong = 0
    rows: ci64p = (
        cython.address(numbers[0, 0]) if numbers.shape[0] * numbers.shape[1] else cython.address(none)
    )
    width: cython.Py_ssize_t = numbers.shape[1]
    if n == 0:
        return
    # Memory of 0 bytes may have no address.
    b: u8p = cython.address(data[0]) if data.shape[0] else cython.cast(u8p, b"")
    with cython.nogil:
        for i in range(n):
            if i + AHEAD < n:
                prefetch_span(b + start[i + AHEAD], size[i + AHEAD])
            inside = is_inside(start[i], size[i], data.shape[0])
            if not inside:
                break
            p = cython.address(out[0]) + place[i]
            word = cython.cast(cython.ulonglong, head[i] + size[i])
            memcpy(p, cython.address(word), 8)
            d = cython.cast(cython.uint, head[i])
            memcpy(p + 8, cython.address(d), 4)
            p += 12
            if series[channel[i], 0] != 0:
                p[0] = 8
                p = put_varint(p + 1, cython.cast(cython.ulonglong, series[channel[i], 0]))
            seconds = whole_seconds(time[i])
            nanos = further_nanos(time[i])
            p[0] = 18
            p[1] = cython.cast(cython.uchar, stamp_length(seconds, nanos))
            p += 2
            if seconds != 0:
                p[0] = 8
                p = put_varint(p + 1, cython.cast(cython.ulonglong, seconds))
            if nanos != 0:
                p[0] = 16
                p = put_varint(p + 1, cython.cast(cython.ulonglong, nanos))
            k = series[channel[i], 1]
            if k != 0:
                p[0] = 26
                p = put_varint(p + 1, cython.cast(cython.ulonglong, _packed_length(rows + i * width, k)))
                for j in range(k):
                    p = put_varint(p, cython.cast(cython.ulonglong, rows[i * width + j]))
            memcpy(p, b + start[i], size[i])
    if not inside:
        raise IndexError("a payload does not lie in its buffer")


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _entry(p: u8p, e: u8p, place: cython.longlong, out: mp, end: mp) -> cython.longlong:
    """Return the size of the index entry of the descriptor p … e, -1 if malformed.

    out, end  where it is written; -1 as well if it needs more room: another process may have made the descriptor longer.
              NULL: it is only measured
    """
    n: cython.longlong = 0
    part: cython.int
    tag: cython.ulonglong = 0
    q: u8p
    first: u8p
    for part in range(3):
        if part == 1:
            n += 1 + varint_length(cython.cast(cython.ulonglong, place))
            if out != cython.NULL:
                if 1 + varint_length(cython.cast(cython.ulonglong, place)) > end - out:
                    return -1
                out[0] = 16
                out = put_varint(out + 1, cython.cast(cython.ulonglong, place))
            continue
        q = p
        while q < e:
            first = q
            q = varint(q, e, cython.address(tag))
            if q != cython.NULL:
                q = skip(q, e, tag)
            if q == cython.NULL:
                return -1
            # The entry has the time first, then the position of the block, then the further numbers with their tags.
            if (tag == 18) if part == 0 else (tag == 24 or tag == 26):
                n += q - first
                if out != cython.NULL:
                    if q - first > end - out:
                        return -1
                    memcpy(out, first, q - first)
                    if part == 0:
                        out[0] = 10
                    out += q - first
    return n


def write_index_entries(
    buf: cython.const[cython.uchar][::1],
    place: cython.const[cython.longlong][::1],
    out: cython.uchar[::1],
    base: cython.longlong = 0,
):
    """Write the index entries, 3 { 1 time, 2 position, 3 further numbers }, of the data blocks at *place*.

    out   uint8[m]; uint8[0]: nothing is written
    base  position of *buf* in the file; positions written count from the beginning of the file

    Returns the bytes of all entries, -1 where one of the places has no data block or *out* no room for its entry, and the
    bytes of the payloads.
    """
    b: u8p = bytes_of(buf)
    end: cython.longlong = buf.shape[0]
    n: cython.Py_ssize_t = place.shape[0]
    i: cython.Py_ssize_t
    write: cython.bint = out.shape[0] > 0
    none: cython.uchar = 0
    p: mp = cython.address(out[0]) if write else cython.address(none)
    last: mp = p + out.shape[0]
    size: cython.longlong
    head: cython.longlong
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
            size = _entry(b + r.descriptor, b + r.payload, base + place[i], cython.NULL, cython.NULL)
            head = 1 + varint_length(cython.cast(cython.ulonglong, size))
            if size < 0 or (write and head + size > last - p):
                total = -1
                break
            if write:
                p[0] = 26
                p = put_varint(p + 1, cython.cast(cython.ulonglong, size))
                # Of the same size, unless the bytes are being overwritten.
                if _entry(b + r.descriptor, b + r.payload, base + place[i], p, p + size) != size:
                    total = -1
                    break
                p += size
            total += head + size
            payloads += r.size
    return total, payloads
