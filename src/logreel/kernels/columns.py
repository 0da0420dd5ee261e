"""Gather fixed-width fields of many messages into contiguous columns.

fields  int64[f, 5]  one row per run of bytes to copy: offset from the payload start, width, address of the
                     destination, bytes between two rows there, and a multiplier: 0 copies the bytes; otherwise the
                     run is an unsigned integer and the destination gets an int64, multiplied and held at the maximum

Nothing here checks bounds: callers pass only positions that a scan has validated against the data.
"""

import cython

if not cython.compiled:
    raise ImportError("logreel.kernels is not compiled: run `pip install -e .` (needs gcc)")

from cython.cimports.libc.string import memcpy
from cython.cimports.logreel.kernels.prefetch import prefetch, prefetch_write

u8p = cython.typedef(cython.pointer[cython.const[cython.uchar]])
mu8p = cython.typedef(cython.pointer[cython.uchar])
i64p = cython.typedef(cython.pointer[cython.const[cython.longlong]])
u32p = cython.typedef(cython.pointer[cython.const[cython.uint]])

TILE = cython.declare(cython.longlong, 256)
AHEAD = cython.declare(cython.longlong, 4)

off_t = cython.fused_type(cython.uint, cython.longlong)


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
    """n runs of w bytes from b + off[i] to d + step * i; constant widths, so that each copy is one or two moves."""
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
def _fields(
    b: u8p,
    off: cython.pointer[cython.const[off_t]],
    n: cython.longlong,
    f: i64p,
    fe: i64p,
    row: cython.longlong,
) -> cython.void:
    """Fill rows *row* … of the columns f … fe-1, a tile of messages at a time so that their bytes stay close.

    Destinations are many and far apart: each is asked for a few columns before it is written.
    """
    d: mu8p
    g: i64p
    q: cython.longlong
    z: cython.longlong
    m: cython.longlong
    while n > 0:
        m = n if n < TILE else TILE
        g = f
        while g < fe:
            if g + 5 * AHEAD < fe:
                d = (
                    cython.cast(mu8p, cython.cast(cython.ulonglong, g[5 * AHEAD + 2]))
                    + g[5 * AHEAD + 3] * row
                )
                z = g[5 * AHEAD + 3] * m
                if z > 1024:
                    z = 1024
                q = 0
                while q < z:
                    prefetch_write(d + q)
                    q += 64
            d = cython.cast(mu8p, cython.cast(cython.ulonglong, g[2])) + g[3] * row
            if g[4] == 0:
                _copy(b + g[0], off, m, g[1], d, g[3])
            else:
                _scaled(b + g[0], off, m, g[1], d, g[3], g[4])
            g += 5
        off += m
        row += m
        n -= m


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
    fields: cython.const[cython.longlong][:, ::1],
    warm: cython.bint,
):
    """Fill columns of several channels from blocks first … last-1, each block read from memory once.

    buf       uint8[b]             the bytes that the blocks lie in
    base      int64[blocks]        start of each block in *buf*
    start     int64[blocks, c+1]   where each channel's run begins in *entry*
    entry     uint32[e]            payload starts relative to the block
    channels  int64[k]             the channels wanted
    rows      int64[k]             next row of each channel's columns; advanced
    split     int64[k+1]           fields split[j] … split[j+1]-1 belong to channels[j]
    warm      bool                 pull each block into the cache first: pays when most of its bytes are wanted
    """
    b: u8p
    e: u32p = cython.address(entry[0])
    pf: i64p = cython.address(fields[0, 0])
    blk: cython.Py_ssize_t
    j: cython.Py_ssize_t
    s: cython.longlong
    m: cython.longlong
    q: cython.longlong
    z: cython.longlong
    with cython.nogil:
        for blk in range(first, last):
            b = cython.address(buf[0]) + base[blk]
            if warm:
                z = (base[blk + 1] if blk + 1 < base.shape[0] else buf.shape[0]) - base[blk]
                q = 0
                while q < z:
                    prefetch(b + q)
                    q += 64
            for j in range(channels.shape[0]):
                s = start[blk, channels[j]]
                m = start[blk, channels[j] + 1] - s
                if m:
                    _fields[cython.uint](b, e + s, m, pf + 5 * split[j], pf + 5 * split[j + 1], rows[j])
                    rows[j] += m


def gather_at(
    buf: cython.const[cython.uchar][::1],
    offset: cython.const[cython.longlong][::1],
    fields: cython.const[cython.longlong][:, ::1],
):
    """Fill columns from messages whose payloads start at offset[i], in that order."""
    with cython.nogil:
        _fields[cython.longlong](
            cython.address(buf[0]),
            cython.address(offset[0]),
            offset.shape[0],
            cython.address(fields[0, 0]),
            cython.address(fields[0, 0]) + 5 * fields.shape[0],
            0,
        )


def verify(
    start: cython.const[cython.longlong][:, ::1],
    base: cython.const[cython.longlong][::1],
    entry: cython.const[cython.uint][::1],
    least: cython.const[cython.longlong][::1],
    before: cython.longlong,
    limit: cython.longlong,
):
    """True when a block table read from elsewhere is safe to gather from.

    least   int64[c]  bytes from the payload start that reading a message of each channel needs
    before  int       bytes before the payload start that belong to its record
    limit   int       size of the data

    Checks that the runs tile *entry* in order and that every message lies between 0 and *limit*.
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
