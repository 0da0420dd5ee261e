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
from cython.cimports.logreel.kernels.varints import Block, block, span, u8p

i64p = cython.typedef(cython.pointer[cython.longlong])


def walk(
    buf: cython.const[cython.uchar][::1],
    state: cython.longlong[::1],
    end: cython.longlong,
    known: cython.const[cython.uchar][::1],
    key: cython.uint[::1],
    entry: cython.uint[::1],
    size: cython.longlong[::1],
    time: cython.longlong[::1],
    head: cython.uint[::1],
):
    """Follow the blocks from state[0] and collect those of data.

    state  int64[5]   position, blocks collected, what *entry* counts from (-1: nothing collected yet), and number and
                      bytes of data blocks passed over; updated in place
    known  uint8[k]   by key: 0 not declared, 1 collect, 2 pass over
    key    uint32[c]  of each block collected
    entry  uint32[c]  its payload start
    size   int64[c]   bytes of its payload
    time   int64[c]   ns
    head   uint32[c]  bytes of its descriptor, which ends where the payload begins

    Returns why it stopped: 0 *end* reached, 1 a block of another kind, 2 the next block is not acceptable, 3 its bytes
    end after *end*, 4 an array is full or the payload too far from the first one.
    """
    b: u8p = cython.address(buf[0])
    pn: cython.pointer[cython.const[cython.uchar]] = cython.address(known[0])
    nkeys: cython.ulonglong = known.shape[0]
    pk: cython.pointer[cython.uint] = cython.address(key[0])
    pe: cython.pointer[cython.uint] = cython.address(entry[0])
    psz: i64p = cython.address(size[0])
    pt: i64p = cython.address(time[0])
    ph: cython.pointer[cython.uint] = cython.address(head[0])
    cap: cython.longlong = key.shape[0]
    pos: cython.longlong = state[0]
    n: cython.longlong = state[1]
    base: cython.longlong = state[2]
    passed: cython.longlong = 0
    passed_bytes: cython.longlong = 0
    r: Block
    why: cython.int = 0
    with cython.nogil:
        while pos < end:
            prefetch(b + pos + 1024)
            why = block(b, pos, end, cython.address(r))
            if why == 0 and r.kind != 0:
                why = 1
            if why != 0:
                break
            if r.key >= nkeys or pn[r.key] == 0:
                why = 2
                break
            if pn[r.key] == 2:
                passed += 1
                passed_bytes += r.next - pos
                pos = r.next
                continue
            if n >= cap:
                why = 4
                break
            if base < 0:
                base = r.payload
            if (r.payload - base) >> 32 != 0:
                why = 4
                break
            pk[n] = cython.cast(cython.uint, r.key)
            pe[n] = cython.cast(cython.uint, r.payload - base)
            psz[n] = r.size
            pt[n] = r.time
            ph[n] = cython.cast(cython.uint, r.payload - r.descriptor)
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
    known: u8p,
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
        elif not declares and (r.key >= nkeys or known[r.key] == 0):
            return False
        pos = r.next
    return True


def resync(
    buf: cython.const[cython.uchar][::1],
    pos: cython.longlong,
    end: cython.longlong,
    known: cython.const[cython.uchar][::1],
    need: cython.int,
    last: cython.longlong,
    tail: cython.longlong,
):
    """The first position from *pos* to *last* where a chain of *need* blocks begins, or -1.

    Blocks of kind 1 must hold one field that fills them. Fewer blocks will do where they end exactly at *end* or with
    a block of kind 2, of which *tail* bytes are there, or two where *end* cuts the third.
    """
    b: u8p = cython.address(buf[0])
    pk: u8p = cython.address(known[0])
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


def group(
    n: cython.longlong,
    channel: cython.const[cython.int][::1],
    key: cython.const[cython.uint][::1],
    entry: cython.const[cython.uint][::1],
    size: cython.const[cython.longlong][::1],
    time: cython.const[cython.longlong][::1],
    head: cython.const[cython.uint][::1],
    start: cython.longlong[::1],
    to_entry: cython.uint[::1],
    to_size: cython.longlong[::1],
    to_time: cython.longlong[::1],
    to_head: cython.uint[::1],
    used: cython.longlong,
):
    """Append *n* collected blocks to the arrays ``to_…``, grouped by channel, file order kept inside a channel.

    channel  int32[k]      by key
    start    int64[c + 1]  filled: where each channel's run begins

    Returns the new number of entries used.
    """
    pc: cython.pointer[cython.const[cython.int]] = cython.address(channel[0])
    channels: cython.Py_ssize_t = start.shape[0] - 1
    ps: i64p = cython.address(start[0])
    c: cython.Py_ssize_t
    i: cython.longlong
    at: cython.longlong
    total: cython.longlong = used
    count: cython.longlong
    with cython.nogil:
        for c in range(channels + 1):
            ps[c] = 0
        for i in range(n):
            ps[pc[key[i]]] += 1
        for c in range(channels):
            count = ps[c]
            ps[c] = total
            total += count
        ps[channels] = total
        for i in range(n):
            c = pc[key[i]]
            at = ps[c]
            ps[c] = at + 1
            to_entry[at] = entry[i]
            to_size[at] = size[i]
            to_time[at] = time[i]
            to_head[at] = head[i]
        # Each start has moved to the end of its run, which is where the next one began.
        for c in range(channels, 0, -1):
            ps[c] = ps[c - 1]
        ps[0] = used
        ps[channels] = total
    return total
