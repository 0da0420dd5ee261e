"""Walk a chain of records whose first eight bytes tell their size and kind.

A record starts with a header word, read as one little-endian u64. Which bits mean what is a table, so that one loop
serves every format framed this way:

spec   int64[9]      see SPEC below
tags   int64[256, 5] per kind: action, least size, greatest size, least and greatest first payload byte
                     (0 refuse, 1 data, 2 note, 3 stop, 4 tolerate: noted, but no evidence of anything)
keys   int64[k, 4]   per key of a data record: channel, least size, greatest size, unused. Channel -1: not declared;
                     -2: known to be undeclared, tolerated

"size" is the number in the header; "next" is position + size + spec[SIZE_ADD].
"""

import cython

if not cython.compiled:
    raise ImportError("logreel.kernels is not compiled: run `pip install -e .` (needs gcc)")

from cython.cimports.libc.string import memcpy
from cython.cimports.logreel.kernels.prefetch import prefetch

u8p = cython.typedef(cython.pointer[cython.const[cython.uchar]])
i64p = cython.typedef(cython.pointer[cython.const[cython.longlong]])


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _word(p: u8p, left: cython.longlong) -> cython.ulonglong:
    """The header word; bytes past the end of the data read as zero."""
    v: cython.ulonglong = 0
    if left >= 8:
        memcpy(cython.address(v), p, 8)
    else:
        memcpy(cython.address(v), p, left)
    return v


# Verdicts of _judge, negative; anything else is the action of the record.
# -1 not acceptable, -2 plausible so far but its bytes end after *end*


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _judge(
    b: u8p,
    pos: cython.longlong,
    end: cython.longlong,
    spec: i64p,
    tags: i64p,
    keys: i64p,
    nkeys: cython.longlong,
    undeclared: cython.bint,
    next_out: cython.pointer[cython.longlong],
    key_out: cython.pointer[cython.longlong],
) -> cython.longlong:
    """Decide about the record at *pos*: its action (1 data, 2 note, 3 stop, 4 tolerated) or a negative verdict.

    undeclared  accept data records whose key is not declared

    spec: 0 header bytes, 1 size shift, 2 size mask, 3 size add, 4 tag shift, 5 key shift, 6 key mask,
          7 payload offset of data records, 8 bytes of header that a data record needs
    """
    left: cython.longlong = end - pos
    w: cython.ulonglong
    size: cython.longlong
    t: i64p
    k: i64p
    key: cython.longlong
    first: cython.longlong
    action: cython.longlong
    if left < spec[0]:
        return -2
    w = _word(b + pos, left)
    size = cython.cast(cython.longlong, (w >> spec[1]) & cython.cast(cython.ulonglong, spec[2]))
    t = tags + 5 * cython.cast(cython.longlong, (w >> spec[4]) & 255)
    action = t[0]
    if action == 0 or size < t[1] or size > t[2]:
        return -1
    next_out[0] = pos + size + spec[3]
    if action == 1:
        if left < spec[8]:
            return -2
        key = cython.cast(cython.longlong, (w >> spec[5]) & cython.cast(cython.ulonglong, spec[6]))
        k = keys + 4 * key
        key_out[0] = key
        if key >= nkeys or k[0] == -1:
            if not undeclared:
                return -1
        elif k[0] < 0:
            action = 4
        elif size < k[1] or size > k[2]:
            return -1
    elif left > spec[0]:
        first = b[pos + spec[0]]
        if size > 0 and (first < t[3] or first > t[4]):
            return -1
    if size + spec[3] > left:
        return -2
    return action


def walk(
    buf: cython.const[cython.uchar][::1],
    state: cython.longlong[::1],
    end: cython.longlong,
    block: cython.longlong,
    spec: cython.const[cython.longlong][::1],
    tags: cython.const[cython.longlong][:, ::1],
    keys: cython.const[cython.longlong][:, ::1],
    offset: cython.uint[::1],
    channel: cython.uint[::1],
    note: cython.longlong[::1],
):
    """Follow the chain from state[0]; collect data records of one block and note the others.

    state    int64[5]   position, start of the block, data records collected in it, notes collected, start of the
                        last record collected; updated in place
    end      int        where the part of the data ends that the chain may not cross
    block    int        full when the next record starts this many bytes or more after the start of the block
    offset   uint32[c]  payload start of each data record, relative to the start of the block
    channel  uint32[c]  its channel
    note     int64[m]   position of every other accepted record

    Returns why it stopped: 0 *end* reached, 1 the next record is one to stop at, 2 the next record is not acceptable,
    3 its bytes end after *end*, 4 the block is full and the next record is acceptable.
    """
    b: u8p = cython.address(buf[0])
    ps: i64p = cython.address(spec[0])
    pt: i64p = cython.address(tags[0, 0])
    pk: i64p = cython.address(keys[0, 0])
    nkeys: cython.longlong = keys.shape[0]
    po: cython.pointer[cython.uint] = cython.address(offset[0])
    pc: cython.pointer[cython.uint] = cython.address(channel[0])
    pn: cython.pointer[cython.longlong] = cython.address(note[0])
    cap: cython.longlong = offset.shape[0]
    notecap: cython.longlong = note.shape[0]
    pos: cython.longlong = state[0]
    base: cython.longlong = state[1]
    n: cython.longlong = state[2]
    m: cython.longlong = state[3]
    last: cython.longlong = state[4]
    stop: cython.longlong = base + block
    skip: cython.longlong = spec[7]
    # The fast lane below serves well-formed data records whose whole header word lies inside the part.
    size_shift: cython.ulonglong = spec[1]
    size_mask: cython.ulonglong = spec[2]
    size_add: cython.longlong = spec[3]
    tag_shift: cython.ulonglong = spec[4]
    key_shift: cython.ulonglong = spec[5]
    key_mask: cython.ulonglong = spec[6]
    fast: cython.longlong = end - 8
    nx: cython.longlong = 0
    key: cython.longlong = 0
    size: cython.longlong
    verdict: cython.longlong
    w: cython.ulonglong
    k: i64p
    why: cython.int = 0
    with cython.nogil:
        while pos < end:
            prefetch(b + pos + 2048)
            if pos <= fast and pos < stop and n < cap:
                memcpy(cython.address(w), b + pos, 8)
                key = cython.cast(cython.longlong, (w >> key_shift) & key_mask)
                size = cython.cast(cython.longlong, (w >> size_shift) & size_mask)
                if pt[5 * ((w >> tag_shift) & 255)] == 1 and key < nkeys:
                    k = pk + 4 * key
                    nx = pos + size + size_add
                    if k[0] >= 0 and size >= k[1] and size <= k[2] and nx <= end:
                        po[n] = cython.cast(cython.uint, pos + skip - base)
                        pc[n] = cython.cast(cython.uint, k[0])
                        n += 1
                        last = pos
                        pos = nx
                        continue
            verdict = _judge(b, pos, end, ps, pt, pk, nkeys, False, cython.address(nx), cython.address(key))
            if verdict < 0 or verdict == 3:
                why = 1 if verdict == 3 else (3 if verdict == -2 else 2)
                break
            # Only now: whoever closes a block may rely on its last record being sound.
            if pos >= stop or n >= cap or m >= notecap:
                why = 4
                break
            if verdict != 1:
                pn[m] = pos
                m += 1
            else:
                po[n] = cython.cast(cython.uint, pos + skip - base)
                pc[n] = cython.cast(cython.uint, pk[4 * key])
                n += 1
            last = pos
            pos = nx
    state[0] = pos
    state[2] = n
    state[3] = m
    state[4] = last
    return why


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _chain(
    b: u8p,
    pos: cython.longlong,
    end: cython.longlong,
    need: cython.longlong,
    spec: i64p,
    tags: i64p,
    keys: i64p,
    nkeys: cython.longlong,
) -> cython.bint:
    """True where *need* acceptable records follow each other, or fewer that lead convincingly to the end."""
    k: cython.longlong = 0
    nx: cython.longlong = pos
    key: cython.longlong = 0
    verdict: cython.longlong
    steps: cython.longlong = 0
    # What a stop record of the chain declares is not in force yet.
    declares: cython.bint = False
    while k < need:
        if pos == end:
            return k > 0
        verdict = _judge(b, pos, end, spec, tags, keys, nkeys, declares, cython.address(nx), cython.address(key))
        if verdict == -2:
            return k >= 2
        if verdict == -1:
            return False
        if verdict == 3:
            declares = True
        if verdict != 4:
            k += 1
        pos = nx
        steps += 1
        if steps == 16 * need:
            return False
    return True


def resync(
    buf: cython.const[cython.uchar][::1],
    pos: cython.longlong,
    end: cython.longlong,
    need: cython.longlong,
    spec: cython.const[cython.longlong][::1],
    tags: cython.const[cython.longlong][:, ::1],
    keys: cython.const[cython.longlong][:, ::1],
    last: cython.longlong,
):
    """The first position from *pos* on, and not after *last*, where a convincing chain of records starts; or -1.

    Convincing: *need* acceptable records in a row, fewer that end exactly at *end*, or at least two whole ones before
    a plausible record that *end* cuts.
    """
    b: u8p = cython.address(buf[0])
    ps: i64p = cython.address(spec[0])
    pt: i64p = cython.address(tags[0, 0])
    pk: i64p = cython.address(keys[0, 0])
    nkeys: cython.longlong = keys.shape[0]
    found: cython.longlong = -1
    with cython.nogil:
        while pos < end and pos <= last:
            if _chain(b, pos, end, need, ps, pt, pk, nkeys):
                found = pos
                break
            pos += 1
    return found


def group(
    offset: cython.const[cython.uint][::1],
    channel: cython.const[cython.uint][::1],
    n: cython.longlong,
    start: cython.longlong[::1],
    entry: cython.uint[::1],
    used: cython.longlong,
):
    """Append the *n* records of a block to *entry*, grouped by channel, file order kept inside a channel.

    start  int64[channels + 1]  row of the block's table, filled: where each channel's run begins in *entry*
    entry  uint32[e]            filled from *used* on

    Returns the new number of entries used. Every channel[i] must be < channels, and e >= used + n.
    """
    channels: cython.Py_ssize_t = start.shape[0] - 1
    i: cython.Py_ssize_t
    c: cython.longlong
    total: cython.longlong = used
    with cython.nogil:
        for i in range(channels + 1):
            start[i] = 0
        for i in range(n):
            start[channel[i]] += 1
        for i in range(channels):
            c = start[i]
            start[i] = total
            total += c
        for i in range(n):
            c = channel[i]
            entry[start[c]] = offset[i]
            start[c] += 1
        # every cursor now stands at the end of its run, which is the start of the next one
        for i in range(channels, 0, -1):
            start[i] = start[i - 1]
        start[0] = used
    return total
