"""Block tables: the records of a block in the order of their channels, the latest times; pages mapped ahead."""

import cython

if not cython.compiled:
    raise ImportError("logreel.kernels is not compiled: run `pip install -e .` (needs gcc)")

from cython.cimports.logreel.kernels.loads import whole

u8p = cython.typedef(cython.pointer[cython.const[cython.uchar]])


def touch(buf: cython.const[cython.uchar][::1], start: cython.longlong, end: cython.longlong):
    """Read one byte of each page of buf[start:end], so that a thread of its own can have them mapped."""
    b: u8p = cython.address(buf[0])
    total: cython.ulonglong = 0
    with cython.nogil:
        while start < end:
            total += b[start]
            start += 4096
    return total


def group(
    record: cython.const[cython.ulonglong][::1],
    n: cython.longlong,
    count: cython.longlong[::1],
    start: cython.longlong[::1],
    entry: cython.uint[::1],
    used: cython.longlong,
    length: cython.const[cython.uint][::1],
    lengths: cython.uint[::1],
):
    """Append the *n* records of a block to *entry*, grouped by channel, file order kept inside a channel.

    count  int64[c]      as ``walk`` left it; set back to zero
    start  int64[c + 1]  row of the block's table, filled: where each channel's run begins in *entry*
    entry  uint32[e]     filled from *used* on; e >= used + n
    length, lengths      uint32[n] sizes of the records and uint32[e], which gets them in the order of *entry*; both
                         empty where nobody wants them

    Returns the new number of entries used.
    """
    channels: cython.Py_ssize_t = start.shape[0] - 1
    pr: cython.pointer[cython.const[cython.ulonglong]] = cython.address(record[0])
    pc: cython.pointer[cython.longlong] = cython.address(count[0])
    pe: cython.pointer[cython.uint] = cython.address(entry[0])
    sized: cython.bint = length.shape[0] >= n and lengths.shape[0] >= used + n
    pl: cython.pointer[cython.const[cython.uint]] = cython.address(length[0]) if sized else cython.NULL
    ps: cython.pointer[cython.uint] = cython.address(lengths[0]) if sized else cython.NULL
    c: cython.Py_ssize_t
    i: cython.longlong
    total: cython.longlong = used
    r: cython.ulonglong
    with cython.nogil:
        for c in range(channels):
            start[c] = total
            total += pc[c]
            pc[c] = start[c]
        start[channels] = total
        # count now holds the cursors
        for i in range(n):
            r = pr[i]
            pe[pc[r >> 32]] = cython.cast(cython.uint, r)
            if sized:
                ps[pc[r >> 32]] = pl[i]
            pc[r >> 32] += 1
        for c in range(channels):
            pc[c] = 0
    return total


def unroll(
    values: cython.const[cython.uint][::1],
    first: cython.const[cython.longlong][::1],
    last: cython.const[cython.longlong][::1],
    base: cython.const[cython.longlong][::1],
    out: cython.longlong[::1],
):
    """Fill *out* with base[i] + values[first[i]:last[i]] for every i, one after another.

    first, last, base  int64[b]
    out                int64[n]

    Returns the numbers filled; none beyond the ends of *values* and *out*.
    """
    b: cython.Py_ssize_t = first.shape[0]
    i: cython.Py_ssize_t
    k: cython.longlong
    n: cython.longlong = 0
    add: cython.longlong
    if last.shape[0] != b or base.shape[0] != b:
        return 0
    with cython.nogil:
        for i in range(b):
            if first[i] < 0 or last[i] > values.shape[0] or last[i] - first[i] > out.shape[0] - n:
                break
            add = base[i]
            for k in range(first[i], last[i]):
                out[n] = add + values[k]
                n += 1
    return n


def repeat(
    values: cython.const[cython.longlong][::1],
    count: cython.const[cython.longlong][::1],
    out: cython.longlong[::1],
):
    """Fill *out* with each of *values* as often as *count* says; returns the numbers filled, none beyond its end."""
    n: cython.Py_ssize_t = count.shape[0] if count.shape[0] < values.shape[0] else values.shape[0]
    i: cython.Py_ssize_t
    k: cython.longlong
    stop: cython.longlong
    at: cython.longlong = 0
    value: cython.longlong
    with cython.nogil:
        for i in range(n):
            if count[i] < 0 or count[i] > out.shape[0] - at:
                break
            value = values[i]
            stop = at + count[i]
            for k in range(at, stop):
                out[k] = value
            at = stop
    return at


def latest(
    buf: cython.const[cython.uchar][::1],
    base: cython.longlong,
    start: cython.const[cython.longlong][::1],
    entry: cython.const[cython.uint][::1],
    words: cython.const[cython.longlong][:, ::1],
    end: cython.longlong,
    places: cython.const[cython.longlong][::1],
    out: cython.longlong[::1],
):
    """Of the messages of a block before each place, the largest time that is not behind *end*; 0 where there is none.

    base    where in *buf* the block begins
    start   int64[c + 1]  where each channel's run begins in *entry*: a row of the block table
    words   int64[w, 4]   channels whose messages tell their time: number, offset from the payload, bytes (1, 2, 4 or 8) of
                          an unsigned number, ns of its unit (above 0)
    places  int64[p]      in *buf*, ascending
    out     int64[p]
    """
    b: u8p = cython.address(buf[0])
    p: cython.Py_ssize_t = places.shape[0]
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    k: cython.longlong
    at: cython.longlong
    v: cython.ulonglong
    most: cython.ulonglong
    with cython.nogil:
        for j in range(p):
            out[j] = 0
        for i in range(words.shape[0]):
            most = cython.cast(cython.ulonglong, end // words[i, 3] if end > 0 else 0)
            j = 0
            for k in range(start[words[i, 0]], start[words[i, 0] + 1]):
                at = base + entry[k]
                while j < p and places[j] <= at:
                    j += 1
                if j == p:
                    break
                v = whole(b + at + words[i, 1], words[i, 2])
                if v <= most and cython.cast(cython.longlong, v) * words[i, 3] > out[j]:
                    out[j] = cython.cast(cython.longlong, v) * words[i, 3]
        for j in range(1, p):
            if out[j] < out[j - 1]:
                out[j] = out[j - 1]
