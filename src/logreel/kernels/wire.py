"""Walk blocks that begin with a 64-bit word and carry a descriptor of varints, and read such descriptors.

    block       u64: kind in the highest byte, size in the others
    kind 0      then u32 d, descriptor of d bytes, payload of size - d bytes: data
    others      then *size* bytes; what they mean is for the caller to say
    descriptor  tag-value pairs: 1 varint key, 2 { 1 varint seconds, 2 varint nanoseconds }, 3 further int64 numbers

Tags that are not known are skipped by their wire type. Every length is checked by subtraction, in 64 bits, before use.
"""

import cython

if not cython.compiled:
    raise ImportError("logreel.kernels is not compiled: run `pip install -e .` (needs gcc)")

from cython.cimports.libc.string import memcpy
from cython.cimports.logreel.kernels.prefetch import prefetch
from cython.cimports.logreel.kernels.varints import (
    Block,
    Shape,
    alike,
    block,
    no_shape,
    none_before,
    shape_of,
    span,
    u8p,
    usual,
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
    """Follow the blocks from state[0] and collect those of data.

    state   int64[5]   position, blocks collected, what starts count from (-1: *position*), and number and bytes of
                       data blocks passed over; updated in place
    known   int32[k]   by key: channel, -1 not declared, -2 pass over
    record  uint64[r]  channel << 32 | start of each block collected
    count   int64[c]   blocks of each channel; counted up

    Returns why it stopped: 0 *end* reached, 1 a block of another kind, 2 the next block is not acceptable, 3 its bytes
    end after *end*, 4 *record* is full or the block too far from the first one.
    """
    b: u8p = cython.address(buf[0])
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
            # The fast lane is for data blocks as writers put them; what it does not take is judged with care.
            while pos < fast and n < cap:
                prefetch(b + pos + 2048)
                memcpy(cython.address(word), b + pos, 8)
                memcpy(cython.address(d), b + pos + 8, 4)
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
    """True where one length-delimited field of a low number fills the bytes exactly, or there are none."""
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
            memcpy(cython.address(d), b + pos + 8, 4)
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
    """The first position from *pos* to *last* where a chain of *need* blocks begins, or -1.

    Blocks of kind 1 must hold one field that fills them. Fewer blocks will do where they end exactly at *end* or with
    a block of kind 2, of which *tail* bytes are there, or two where *end* cuts the third.
    """
    b: u8p = cython.address(buf[0])
    pk: cython.pointer[cython.const[cython.int]] = cython.address(known[0])
    nkeys: cython.ulonglong = known.shape[0]
    found: cython.longlong = -1
    with cython.nogil:
        # The highest byte of the word is the kind, and that of data blocks at least is certain.
        while pos <= last and end - pos >= 8:
            if b[pos + 7] <= 1 and _chain(b, pos, end, need, pk, nkeys, tail):
                found = pos
                break
            pos += 1
    return found
