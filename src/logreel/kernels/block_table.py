"""Kernels of the block table: fill it, gather columns of fixed width, validate it, and digest payloads.

fields  FIELD[f]  one row per run of bytes to copy:
            offset  from the payload start
            width   bytes of the run
            out     offset of its column in the output arena
            step    bytes between two rows there
            mul     0 copies the bytes; otherwise the run is an unsigned integer of *width* bytes and the column gets
                    an int64, multiplied and limited to the maximum of int64

``gather_at`` checks where it reads and writes. ``gather_blocks`` checks where it writes, not what it reads: block tables
have only positions that a scan has validated.

Digests are for comparing payloads, not for signing. Words of eight bytes, the last one filled with zeros, go through
two chains. Each step of a chain can be undone, so two payloads of one size that differ in one word never have equal
digests; others are equal by chance once in 2**128.
"""

import cython

if not cython.compiled:
    raise ImportError("logreel.kernels is not compiled: run `pip install -e .` (needs gcc)")

from cython.cimports.libc.stdlib import free, malloc
from cython.cimports.libc.string import memchr, memcpy
from cython.cimports.logreel.kernels.gather import halves_far, halves_near, words_far, words_near
from cython.cimports.logreel.kernels.loads import bytes_of, whole
from cython.cimports.logreel.kernels.prefetch import prefetch, prefetch_span, prefetch_write

from logreel.errors import FileChangedError

u8p = cython.typedef(cython.pointer[cython.const[cython.uchar]])


def touch_pages(buf: cython.const[cython.uchar][::1], start: cython.longlong, end: cython.longlong):
    """Read one byte of each page of buf[start:end], so that a background thread can have them mapped."""
    b: u8p = bytes_of(buf)
    total: cython.ulonglong = 0
    with cython.nogil:
        while start < end:
            total += b[start]
            start += 4096
    return total


def group_records(
    record: cython.const[cython.ulonglong][::1],
    n: cython.longlong,
    count: cython.longlong[::1],
    start: cython.longlong[::1],
    entry: cython.uint[::1],
    used: cython.longlong,
    length: cython.const[cython.uint][::1],
    lengths: cython.uint[::1],
):
    """Append the *n* records of a block to *entry*, grouped by channel, in file order inside a channel.

    count  int64[c]      records of each channel, as ``walk`` counted them; set back to zero
    start  int64[c + 1]  row of the block's table, filled: where each channel's run begins in *entry*
    entry  uint32[e]     filled from *used* on; e >= used + n
    length, lengths      uint32[n] sizes of the records, and uint32[e] filled with them in the order of *entry*; both
                         empty where sizes are not wanted

    Returns the new number of used entries.
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
        # Now *count* contains the cursors.
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
    """Fill *out* with base[i] + values[first[i]:last[i]] for every i in turn.

    first, last, base  int64[b]
    out                int64[n]

    Returns how many numbers were filled; stops before an i that lies outside of *values* or *out*.
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
    """Fill *out* with each of *values* repeated *count* times.

    Returns how many numbers were filled; stops before a count that is negative or does not fit.
    """
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


def latest_times(
    buf: cython.const[cython.uchar][::1],
    base: cython.longlong,
    start: cython.const[cython.longlong][::1],
    entry: cython.const[cython.uint][::1],
    words: cython.const[cython.longlong][:, ::1],
    end: cython.longlong,
    window: cython.longlong,
    places: cython.const[cython.longlong][::1],
    out: cython.longlong[::1],
):
    """Fill *out* with the latest time, up to *end*, of the messages of a block before each place; 0 if none.

    Times of messages count that lie at most *window* bytes before any of the places, up to the one in question.

    base    start of the block in *buf*
    start   int64[c + 1]  where each channel's run begins in *entry*: a row of the block table
    words   int64[w, 4]   channels whose messages contain their time: channel, offset from the payload, bytes (1, 2, 4
                          or 8) of an unsigned number, ns per unit (above 0)
    end     ns; later times are ignored
    window  bytes, 1 or more
    places  int64[p]      positions in *buf*, ascending
    out     int64[p]      ns
    """
    b: u8p = bytes_of(buf)
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
                if places[j] - at > window:
                    continue
                v = whole(b + at + words[i, 1], words[i, 2])
                if v <= most and cython.cast(cython.longlong, v) * words[i, 3] > out[j]:
                    out[j] = cython.cast(cython.longlong, v) * words[i, 3]
        for j in range(1, p):
            if out[j] < out[j - 1]:
                out[j] = out[j - 1]


def text_lengths(chars: cython.const[cython.uchar][:, ::1], out: cython.longlong[::1]):
    """Fill *out*, int64[n], with the bytes before the first NUL of each row of *chars*, uint8[n, width]."""
    n: cython.Py_ssize_t = chars.shape[0]
    w: cython.Py_ssize_t = chars.shape[1]
    i: cython.Py_ssize_t
    row: u8p
    end: u8p
    if out.shape[0] != n:
        raise ValueError("there is no place for the length of each row")
    if w == 0:
        out[:] = 0
        return
    with cython.nogil:
        for i in range(n):
            row = cython.address(chars[i, 0])
            end = cython.cast(u8p, memchr(row, 0, w))
            out[i] = w if end == cython.NULL else end - row


def join_rows(
    chars: cython.const[cython.uchar][:, ::1],
    length: cython.const[cython.longlong][::1],
    out: cython.uchar[::1],
):
    """Copy the first length[i] bytes of each row of *chars*, uint8[n, width], to *out*, one after another.

    Returns how many bytes were copied; stops before a length that is negative or does not fit.
    """
    i: cython.Py_ssize_t
    at: cython.Py_ssize_t = 0
    with cython.nogil:
        for i in range(chars.shape[0] if chars.shape[0] < length.shape[0] else length.shape[0]):
            if length[i] < 0 or length[i] > chars.shape[1] or length[i] > out.shape[0] - at:
                break
            if length[i]:
                memcpy(cython.address(out[at]), cython.address(chars[i, 0]), length[i])
                at += length[i]
    return at


mu8p = cython.typedef(cython.pointer[cython.uchar])
u32p = cython.typedef(cython.pointer[cython.const[cython.uint]])

TILE = cython.declare(cython.longlong, 256)
AHEAD = cython.declare(cython.longlong, 4)
#: Messages of a channel that are prefetched from the next block.
EXPECTED = cython.declare(cython.longlong, 512)

off_t = cython.fused_type(cython.uint, cython.longlong)

Field = cython.struct(
    offset=cython.longlong,
    width=cython.longlong,
    out=cython.longlong,
    step=cython.longlong,
    mul=cython.longlong,
)
fieldp = cython.typedef(cython.pointer[cython.const[Field]])
#: NumPy dtype of a row of *fields*.
FIELD = [(name, "<i8") for name in ("offset", "width", "out", "step", "mul")]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _scaled(
    b: u8p,
    off: cython.pointer[cython.const[off_t]],
    n: cython.longlong,
    w: cython.longlong,
    d: mu8p,
    step: cython.longlong,
    mul: cython.longlong,
) -> cython.void:
    i: cython.longlong
    v: cython.ulonglong
    x: cython.longlong
    top: cython.ulonglong = cython.cast(cython.ulonglong, 9223372036854775807) // cython.cast(
        cython.ulonglong, mul
    )
    for i in range(n):
        v = 0
        if w == 8:
            memcpy(cython.address(v), b + off[i], 8)
        else:
            memcpy(cython.address(v), b + off[i], w)
        if v > top:
            x = 9223372036854775807
        else:
            x = cython.cast(cython.longlong, v * cython.cast(cython.ulonglong, mul))
        memcpy(d + step * i, cython.address(x), 8)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _copy(
    b: u8p,
    off: cython.pointer[cython.const[off_t]],
    n: cython.longlong,
    w: cython.longlong,
    d: mu8p,
    step: cython.longlong,
) -> cython.void:
    """Copy n runs of w bytes from b + off[i] to d + step * i; with constant widths a copy is one or two moves."""
    i: cython.longlong
    if step != w:
        for i in range(n):
            memcpy(d + step * i, b + off[i], w)
    elif w == 1:
        for i in range(n):
            d[i] = b[off[i]]
    elif w == 2:
        for i in range(n):
            memcpy(d + 2 * i, b + off[i], 2)
    elif w == 4:
        for i in range(n):
            memcpy(d + 4 * i, b + off[i], 4)
    elif w == 8:
        for i in range(n):
            memcpy(d + 8 * i, b + off[i], 8)
    elif w == 12:
        for i in range(n):
            memcpy(d + 12 * i, b + off[i], 12)
    elif w == 16:
        for i in range(n):
            memcpy(d + 16 * i, b + off[i], 16)
    else:
        for i in range(n):
            memcpy(d + w * i, b + off[i], w)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _adjacent(f: fieldp, fe: fieldp) -> cython.longlong:
    """Return how many fields from *f* on are adjacent numbers of its width, each for a column of its own."""
    n: cython.longlong = 1
    if f.mul or f.step != f.width:
        return 1
    while f + n < fe:
        if (
            f[n].mul
            or f[n].width != f.width
            or f[n].step != f.width
            or f[n].offset != f[n - 1].offset + f.width
        ):
            break
        n += 1
    return n


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _transpose(
    b: u8p,
    off: cython.pointer[cython.const[off_t]],
    n: cython.longlong,
    f: fieldp,
    count: cython.longlong,
    out: mu8p,
    row: cython.longlong,
) -> cython.void:
    """Fill n rows of *count* adjacent columns of two or four bytes, several at a time, the last ones perhaps twice."""
    d: cython.pointer[cython.uchar][8]
    w: cython.longlong = f.width
    few: cython.longlong = 16 // w
    k: cython.longlong = 0
    i: cython.longlong
    while k < count:
        if k > count - few:
            k = count - few
        for i in range(few):
            d[i] = out + f[k + i].out + w * row
        if off_t is cython.uint:
            if w == 4:
                words_near(b + f[k].offset, off, n, d)
            else:
                halves_near(b + f[k].offset, off, n, d)
        elif w == 4:
            words_far(b + f[k].offset, off, n, d)
        else:
            halves_far(b + f[k].offset, off, n, d)
        k += few


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _gather(
    b: u8p,
    off: cython.pointer[cython.const[off_t]],
    n: cython.longlong,
    f: fieldp,
    fe: fieldp,
    out: mu8p,
    row: cython.longlong,
) -> cython.void:
    """Fill rows *row* … of the columns f … fe-1, a tile of messages at a time so that their bytes stay close.

    Destinations are many and far apart: each is prefetched a few columns before it is written.
    """
    d: mu8p
    k: cython.longlong
    g: fieldp
    q: cython.longlong
    z: cython.longlong
    m: cython.longlong
    while n > 0:
        m = n if n < TILE else TILE
        g = f
        while g < fe:
            if g + AHEAD < fe:
                d = out + g[AHEAD].out + g[AHEAD].step * row
                z = g[AHEAD].step * m
                if z > 1024:
                    z = 1024
                q = 0
                while q < z:
                    prefetch_write(d + q)
                    q += 64
            if (g.width == 4 and m >= 4) or (g.width == 2 and m >= 8):
                k = _adjacent(g, fe)
                if k >= 16 // g.width:
                    _transpose[off_t](b, off, m, g, k, out, row)
                    g += k
                    continue
            d = out + g.out + g.step * row
            if g.mul == 0:
                _copy(b + g.offset, off, m, g.width, d, g.step)
            else:
                _scaled(b + g.offset, off, m, g.width, d, g.step, g.mul)
            g += 1
        off += m
        row += m
        n -= m


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _expect(
    b: u8p,
    e: u32p,
    start: cython.pointer[cython.const[cython.longlong]],
    channels: cython.const[cython.longlong][::1],
    f: fieldp,
    split: cython.pointer[cython.const[cython.longlong]],
) -> cython.void:
    """Prefetch the wanted bytes of the first messages of each channel in a block."""
    j: cython.Py_ssize_t
    i: cython.longlong
    m: cython.longlong
    lo: cython.longlong
    hi: cython.longlong
    g: fieldp
    for j in range(channels.shape[0]):
        if split[j] == split[j + 1]:
            continue
        g = f + split[j]
        lo = g.offset
        hi = lo
        while g < f + split[j + 1]:
            if g.offset < lo:
                lo = g.offset
            if g.offset + g.width > hi:
                hi = g.offset + g.width
            g += 1
        m = start[channels[j] + 1]
        if m > start[channels[j]] + EXPECTED:
            m = start[channels[j]] + EXPECTED
        for i in range(start[channels[j]], m):
            prefetch_span(b + e[i] + lo, hi - lo)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _are_inside(
    offset: cython.pointer[cython.const[cython.longlong]],
    n: cython.longlong,
    f: fieldp,
    fe: fieldp,
    size: cython.longlong,
) -> cython.bint:
    """Whether the columns f … fe-1 of the messages at *n* offsets lie in *size* bytes."""
    first: cython.longlong = offset[0]
    last: cython.longlong = offset[0]
    lo: cython.longlong = f.offset
    hi: cython.longlong = f.offset
    i: cython.longlong
    while f < fe:
        lo = f.offset if f.offset < lo else lo
        hi = f.offset + f.width if f.offset + f.width > hi else hi
        f += 1
    for i in range(n):
        first = offset[i] if offset[i] < first else first
        last = offset[i] if offset[i] > last else last
    return first >= 0 and first + lo >= 0 and last <= size - hi


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _fit(f: fieldp, fe: fieldp, rows: cython.longlong, size: cython.longlong) -> cython.bint:
    """Whether so many rows of the columns f … fe-1 lie in an arena of *size* bytes; by subtraction only."""
    width: cython.longlong
    while f < fe:
        width = f.width if f.mul == 0 else 8
        if f.width < 0 or f.step < 0 or f.out < 0 or f.out > size or width > size - f.out:
            return False
        if f.step and rows - 1 > (size - f.out - width) // f.step:
            return False
        f += 1
    return True


def gather_blocks(
    buf: cython.const[cython.uchar][::1],
    base: cython.const[cython.longlong][::1],
    start: cython.const[cython.longlong][:, ::1],
    entry: cython.const[cython.uint][::1],
    first: cython.Py_ssize_t,
    last: cython.Py_ssize_t,
    channels: cython.const[cython.longlong][::1],
    rows: cython.longlong[::1],
    split: cython.const[cython.longlong][::1],
    fields: cython.const[Field][::1],
    out: cython.uchar[::1],
    warm: cython.bint,
):
    """Fill columns of several channels from blocks first … last-1, reading each block from memory once.

    buf       uint8[b]             the bytes that contain the blocks
    base      int64[blocks]        start of each block in *buf*
    start     int64[blocks, c+1]   where each channel's run begins in *entry*
    entry     uint32[e]            payload starts relative to the block
    channels  int64[k]             the channels wanted
    rows      int64[k]             next row of each channel's columns; advanced
    split     int64[k+1]           fields split[j] … split[j+1]-1 belong to channels[j]
    fields    FIELD[f]             see above
    out       uint8[a]             the arena of all columns
    warm      bool                 pull each block into the cache first: pays when most of its bytes are wanted

    Raises IndexError where a column does not lie in *out*.
    """
    b: u8p
    e: u32p = cython.address(entry[0])
    none: Field
    pf: fieldp = cython.address(fields[0]) if fields.shape[0] else cython.address(none)
    po: mu8p = cython.address(out[0]) if out.shape[0] else cython.NULL
    blk: cython.Py_ssize_t
    j: cython.Py_ssize_t
    s: cython.longlong
    m: cython.longlong
    q: cython.longlong
    z: cython.longlong
    ok: cython.bint = True
    ends: cython.pointer[cython.longlong] = cython.cast(
        cython.pointer[cython.longlong], malloc((channels.shape[0] + 1) * cython.sizeof(cython.longlong))
    )
    if ends == cython.NULL:
        raise MemoryError
    with cython.nogil:
        for j in range(channels.shape[0]):
            m = rows[j]
            for blk in range(first, last):
                m += start[blk, channels[j] + 1] - start[blk, channels[j]]
            ends[j] = m
            ok = ok and _fit(pf + split[j], pf + split[j + 1], m, out.shape[0])
        for blk in range(first, last if ok else first):
            b = bytes_of(buf) + base[blk]
            if warm:
                z = (base[blk + 1] if blk + 1 < base.shape[0] else buf.shape[0]) - base[blk]
                q = 0
                while q < z:
                    prefetch(b + q)
                    q += 64
            elif blk + 1 < last:
                # The next block is somewhere else in memory: have its first messages on their way.
                _expect(
                    bytes_of(buf) + base[blk + 1],
                    e,
                    cython.address(start[blk + 1, 0]),
                    channels,
                    pf,
                    cython.address(split[0]),
                )
            for j in range(channels.shape[0]):
                s = start[blk, channels[j]]
                m = start[blk, channels[j] + 1] - s
                if m < 0 or m > ends[j] - rows[j]:
                    # The table lies in a mapped file that another process has overwritten.
                    ok = False
                elif m:
                    _gather[cython.uint](b, e + s, m, pf + split[j], pf + split[j + 1], po, rows[j])
                    rows[j] += m
        free(ends)
    if not ok:
        raise IndexError("a column does not lie in the arena")


def gather_at(
    buf: cython.const[cython.uchar][::1],
    offset: cython.const[cython.longlong][::1],
    fields: cython.const[Field][::1],
    out: cython.uchar[::1],
    row: cython.longlong = 0,
):
    """Fill columns, from row *row* on, from messages whose payloads start at offset[i], in that order.

    Raises IndexError where a column does not lie in *out*, and FileChangedError where a message does not lie in *buf*: its
    place was read from a mapped file that another process overwrites. Then nothing is written.
    """
    pf: fieldp
    if offset.shape[0] == 0 or fields.shape[0] == 0:
        return
    pf = cython.address(fields[0])
    if row < 0 or not _fit(pf, pf + fields.shape[0], row + offset.shape[0], out.shape[0]):
        raise IndexError("a column does not lie in the arena")
    if out.shape[0] == 0:
        return
    if not _are_inside(cython.address(offset[0]), offset.shape[0], pf, pf + fields.shape[0], buf.shape[0]):
        text = "bytes of messages changed while they were read; what was read is not valid"
        raise FileChangedError(text, hint="open the log again when nothing writes it")
    with cython.nogil:
        _gather[cython.longlong](
            bytes_of(buf),
            cython.address(offset[0]),
            offset.shape[0],
            pf,
            pf + fields.shape[0],
            cython.address(out[0]),
            row,
        )


def is_valid_table(
    start: cython.const[cython.longlong][:, ::1],
    base: cython.const[cython.longlong][::1],
    entry: cython.const[cython.uint][::1],
    least: cython.const[cython.longlong][::1],
    before: cython.longlong,
    limit: cython.longlong,
):
    """Return whether a block table from a file is safe to gather from.

    least   int64[c]  bytes from the payload start that are read of a message of each channel
    before  int       bytes before the payload start that belong to its record
    limit   int       size of the data

    Checks that the runs cover *entry* in order and that every message lies between 0 and *limit*.
    """
    blocks: cython.Py_ssize_t = start.shape[0]
    channels: cython.Py_ssize_t = start.shape[1] - 1
    i: cython.Py_ssize_t
    c: cython.Py_ssize_t
    k: cython.longlong
    at: cython.longlong = 0
    b: cython.longlong
    p: cython.longlong
    ok: cython.bint = True
    with cython.nogil:
        for i in range(blocks):
            b = base[i]
            if b < 0 or b > limit or start[i, 0] != at:
                ok = False
            for c in range(channels):
                if not ok or start[i, c + 1] < start[i, c] or start[i, c + 1] > entry.shape[0]:
                    ok = False
                    break
                for k in range(start[i, c], start[i, c + 1]):
                    p = b + entry[k]
                    if p < before or p > limit - least[c]:
                        ok = False
                at = start[i, c + 1]
            if not ok:
                break
    return ok and at == entry.shape[0]


#: Number of messages that are prefetched ahead.
DIGEST_AHEAD = cython.declare(cython.longlong, 8)
#: Odd, so that multiplication by them is invertible.
DIGEST_FIRST = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)
DIGEST_SECOND = cython.declare(cython.ulonglong, 0xC2B2AE3D27D4EB4F)


def digest_payloads(
    data: cython.const[cython.uchar][::1],
    start: cython.const[cython.longlong][::1],
    size: cython.const[cython.longlong][::1],
    out: cython.ulonglong[:, ::1],
):
    """Fill *out* with digests of n payloads.

    data   uint8[b]      payload i is data[start[i]:start[i] + size[i]]
    start  int64[n]
    size   int64[n]
    out    uint64[n, 2]  filled in place

    Returns how many were digested; fewer than n: the next one does not lie in *data*.
    """
    n: cython.Py_ssize_t = start.shape[0]
    i: cython.Py_ssize_t
    done: cython.Py_ssize_t = 0
    end: cython.longlong = data.shape[0]
    left: cython.longlong
    a: cython.ulonglong
    b: cython.ulonglong
    w: cython.ulonglong
    first: cython.ulonglong = DIGEST_FIRST
    second: cython.ulonglong = DIGEST_SECOND
    p: cython.pointer[cython.const[cython.uchar]]
    # Memory of 0 bytes may have no address.
    base: cython.pointer[cython.const[cython.uchar]]
    base = cython.address(data[0]) if end else cython.cast(cython.pointer[cython.const[cython.uchar]], b"")
    with cython.nogil:
        for i in range(n):
            if start[i] < 0 or start[i] > end or size[i] < 0 or size[i] > end - start[i]:
                break
            done = i + 1
            if i + DIGEST_AHEAD < n and 0 <= start[i + DIGEST_AHEAD] < end:
                prefetch_span(base + start[i + DIGEST_AHEAD], 64)
            p = base + start[i]
            left = size[i]
            a = cython.cast(cython.ulonglong, left) * second
            b = ~a
            while left > 0:
                w = 0
                if left >= 8:
                    memcpy(cython.address(w), p, 8)
                else:
                    memcpy(cython.address(w), p, left)
                a = (a ^ w) * first
                a ^= a >> 29
                b = (b + w) * second
                b ^= b >> 32
                p += 8
                left -= 8
            out[i, 0] = a
            out[i, 1] = b
    return done
