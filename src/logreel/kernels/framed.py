"""Walk a chain of records whose headers tell size and kind at fixed places.

One loop serves every format framed this way: where the numbers lie and what they mean is a table.

spec   int64[8]      see SPEC below; int64[10] where keys are too wide for a table
tags   int64[256, 5] per kind: action, least size, greatest size, least and greatest first payload byte
                     (0 refuse, 1 data, 2 note, 3 stop, 4 tolerate: noted, but no evidence of anything). Of data not
                     the bytes but a width: if not 0, the payload is a u16 count and so many items of that many bytes,
                     and its size must agree
keys   int64[k, 4]   per key of a data record: channel, least size, greatest size, and the whole key where the row
                     number is only a digest of it, else 0. Channel -1: not declared; -2: known to be undeclared,
                     tolerated

SPEC   0 bytes of a header   1 place of the size in it   2 mask of the size   3 what the size does not count
       4 place of the kind   5 place of the key in data records   6 mask of the key   7 payload offset in data records
       8 multiplier and 9 shift that make a row number of a masked key: (key * multiplier mod 2**64) >> shift

"size" is the number in the header; the next record begins at position + size + SPEC[3]. Sizes are read as u32, keys as
u64, and masked, so that a header of two bytes costs the same as one of four.
"""

import cython

if not cython.compiled:
    raise ImportError("logreel.kernels is not compiled: run `pip install -e .` (needs gcc)")

from cython.cimports.libc.string import memcpy
from cython.cimports.logreel.kernels.loads import u16, u32, u64
from cython.cimports.logreel.kernels.prefetch import prefetch, prefetch_span

u8p = cython.typedef(cython.pointer[cython.const[cython.uchar]])
i64p = cython.typedef(cython.pointer[cython.const[cython.longlong]])


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _u64_at_end(p: u8p, left: cython.longlong) -> cython.ulonglong:
    """Eight bytes as a number where only *left* bytes are there; the missing ones read as zero."""
    v: cython.ulonglong = 0
    if left > 0:
        memcpy(cython.address(v), p, 8 if left >= 8 else left)
    return v


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _judge(
    b: u8p,
    pos: cython.longlong,
    end: cython.longlong,
    spec: i64p,
    nspec: cython.longlong,
    tags: i64p,
    keys: i64p,
    nkeys: cython.longlong,
    undeclared: cython.bint,
    next_out: cython.pointer[cython.longlong],
    key_out: cython.pointer[cython.longlong],
) -> cython.longlong:
    """The action of the record at *pos* (1 data, 2 note, 3 stop, 4 tolerated), or a negative verdict.

    undeclared  accept data records whose key is not declared

    Verdicts: -1 not acceptable; -2 acceptable as far as it goes, but its bytes end after *end*.
    """
    left: cython.longlong = end - pos
    size: cython.longlong
    t: i64p
    k: i64p
    word: cython.ulonglong
    key: cython.ulonglong
    first: cython.longlong
    action: cython.longlong
    if left < spec[0]:
        return -2
    size = _u64_at_end(b + pos + spec[1], left - spec[1]) & cython.cast(cython.ulonglong, spec[2])
    t = tags + 5 * cython.cast(cython.longlong, b[pos + spec[4]])
    action = t[0]
    if action == 0 or size < t[1] or size > t[2]:
        return -1
    next_out[0] = pos + size + spec[3]
    if action == 1:
        if left < spec[7]:
            return -2
        word = _u64_at_end(b + pos + spec[5], left - spec[5]) & cython.cast(cython.ulonglong, spec[6])
        key = word if nspec < 10 else word * cython.cast(cython.ulonglong, spec[8]) >> spec[9]
        if key >= cython.cast(cython.ulonglong, nkeys):
            key = nkeys
        k = keys + 4 * key
        key_out[0] = key
        if (
            key == cython.cast(cython.ulonglong, nkeys)
            or k[0] == -1
            or (k[3] != 0 and cython.cast(cython.ulonglong, k[3]) != word)
        ):
            if not undeclared:
                return -1
        elif k[0] < 0:
            action = 4
        elif size < k[1] or size > k[2]:
            return -1
        elif t[3] and left >= spec[7] + 2 and size != 2 + u16(b + pos + spec[7]) * t[3]:
            return -1
    elif left > spec[0] and size > 0:
        first = b[pos + spec[0]]
        if first < t[3] or first > t[4]:
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
    record: cython.ulonglong[::1],
    count: cython.longlong[::1],
    note: cython.longlong[::1],
    length: cython.uint[::1],
):
    """Follow the chain from state[0]; collect data records of one block and note the others.

    state   int64[5]   position, start of the block, data records collected in it, notes collected, start of the
                       last record collected; updated in place
    end     int        where the part of the data ends that the chain may not cross
    block   int        full when the next record starts this many bytes or more after the start of the block
    record  uint64[r]  channel << 32 | payload start relative to the block, of each data record
    count   int64[c]   data records of each channel in the block; counted up
    note    int64[m]   position of every other accepted record
    length  uint32[r]  size field of each data record; of no length where nobody wants them

    Returns why it stopped: 0 *end* reached, 1 the next record is one to stop at, 2 the next record is not acceptable,
    3 its bytes end after *end*, 4 the block is full and the next record is acceptable.
    """
    b: u8p = cython.address(buf[0])
    ps: i64p = cython.address(spec[0])
    pt: i64p = cython.address(tags[0, 0])
    pk: i64p = cython.address(keys[0, 0])
    nkeys: cython.longlong = keys.shape[0]
    pr: cython.pointer[cython.ulonglong] = cython.address(record[0])
    pc: cython.pointer[cython.longlong] = cython.address(count[0])
    pn: cython.pointer[cython.longlong] = cython.address(note[0])
    sized: cython.bint = length.shape[0] != 0
    pl: cython.pointer[cython.uint] = cython.address(length[0]) if sized else cython.NULL
    cap: cython.longlong = record.shape[0]
    notecap: cython.longlong = note.shape[0]
    pos: cython.longlong = state[0]
    base: cython.longlong = state[1]
    n: cython.longlong = state[2]
    m: cython.longlong = state[3]
    last: cython.longlong = state[4]
    stop: cython.longlong = base + block
    skip: cython.longlong = spec[7]
    to_size: cython.longlong = spec[1]
    to_kind: cython.longlong = spec[4]
    to_key: cython.longlong = spec[5]
    size_mask: cython.uint = cython.cast(cython.uint, spec[2])
    nspec: cython.longlong = spec.shape[0]
    key_mask: cython.ulonglong = cython.cast(cython.ulonglong, spec[6])
    # What most formats do without is left out of the fast lane.
    wide: cython.bint = nspec >= 10
    counted: cython.bint = False
    multiplier: cython.ulonglong = cython.cast(cython.ulonglong, spec[8]) if wide else 1
    shift: cython.longlong = spec[9] if wide else 0
    size_add: cython.longlong = spec[3]
    # The fast lane serves well-formed data records; reading a header there never passes the end of the part.
    fast: cython.longlong = end - spec[0] - 8
    is_data: cython.uchar[256]
    # Where the latest large record of a channel ended.
    ended: cython.longlong[64]
    again: cython.pointer[cython.longlong]
    i: cython.int
    nx: cython.longlong = 0
    word: cython.ulonglong
    row: cython.ulonglong
    key: cython.longlong = 0
    size: cython.longlong
    width: cython.longlong
    verdict: cython.longlong
    k: i64p
    why: cython.int = 0
    with cython.nogil:
        for i in range(256):
            is_data[i] = pt[5 * i] == 1
            counted = counted or (is_data[i] and pt[5 * i + 3] != 0)
            ended[i & 63] = end
        if fast > stop:
            fast = stop
        while pos < end:
            while pos < fast and n < cap:
                prefetch(b + pos + 2048)
                size = u32(b + pos + to_size) & size_mask
                if wide:
                    word = u64(b + pos + to_key) & key_mask
                    row = word * multiplier >> shift
                else:
                    row = u32(b + pos + to_key) & key_mask
                nx = pos + size + size_add
                if not is_data[b[pos + to_kind]] or row >= cython.cast(cython.ulonglong, nkeys) or nx > end:
                    break
                k = pk + 4 * row
                if k[0] < 0 or size < k[1] or size > k[2]:
                    break
                if wide and k[3] != 0 and cython.cast(cython.ulonglong, k[3]) != word:
                    break
                if counted:
                    width = pt[5 * b[pos + to_kind] + 3]
                    if width and size != 2 + u16(b + pos + skip) * width:
                        break
                pr[n] = cython.cast(cython.ulonglong, k[0]) << 32 | cython.cast(
                    cython.ulonglong, pos + skip - base
                )
                pc[k[0]] += 1
                if sized:
                    pl[n] = cython.cast(cython.uint, size)
                n += 1
                if size >= 1024:
                    # The fetch ahead does not reach over it. What is behind the next one of its channel is fetched where
                    # that will be if it comes as far on as this one did.
                    again = cython.address(ended[k[0] & 63])
                    if nx - again[0] < end - nx and again[0] < nx:
                        prefetch_span(b + nx + (nx - again[0]), 512)
                    again[0] = nx
                last = pos
                pos = nx
            if pos >= end:
                break
            verdict = _judge(
                b, pos, end, ps, nspec, pt, pk, nkeys, False, cython.address(nx), cython.address(key)
            )
            if verdict < 0 or verdict == 3:
                why = 1 if verdict == 3 else (3 if verdict == -2 else 2)
                break
            # Only now: whoever closes a block may rely on its last record being sound.
            if pos >= stop or n >= cap or m >= notecap:
                why = 4
                break
            if verdict == 1:
                k = pk + 4 * key
                pr[n] = cython.cast(cython.ulonglong, k[0]) << 32 | cython.cast(
                    cython.ulonglong, pos + skip - base
                )
                pc[k[0]] += 1
                if sized:
                    pl[n] = cython.cast(cython.uint, nx - pos - size_add)
                n += 1
            else:
                pn[m] = pos
                m += 1
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
    nspec: cython.longlong,
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
        verdict = _judge(
            b, pos, end, spec, nspec, tags, keys, nkeys, declares, cython.address(nx), cython.address(key)
        )
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
            if _chain(b, pos, end, need, ps, spec.shape[0], pt, pk, nkeys):
                found = pos
                break
            pos += 1
    return found
