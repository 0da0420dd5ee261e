"""Kernels of framed formats (ULog, CARLA, Koblenz): walk records whose headers state size and kind at fixed offsets.

One loop serves every such format: the offsets and what the numbers mean are tables, whose columns are named below.

spec  SPEC[1]
      header      bytes of a header
      size_at     offset of the size in it
      size_mask   bits of the size; 0: records state no size, it is the *least* of their kind
      size_add    bytes of a record that the size does not count
      kind_at     offset of the kind
      key_at      offset of the key in data records
      key_mask    bits of the key
      payload_at  offset of the payload in data records
      multiplier, shift  for keys that are too wide to be row numbers of *keys*: the row number of a masked key is
                  (key * multiplier mod 2**64) >> shift; multiplier 0: it is the key itself

tags  TAG[256]  what is acceptable, by kind
      action         REFUSE, DATA, NOTE, STOP, or TOLERATE: noted, but no evidence of anything
      least, most    of the size
      first_least, first_most  of the first payload byte; of data instead *first_least* is a width: if not 0, the
                     payload is a u16 count and so many items of that many bytes, and its size must agree

keys  KEY[k]  what is declared, by key of a data record
      channel      UNDECLARED, or TOLERATED: known to be undeclared
      least, most  of the size
      whole        the whole key where the row number is only a digest of it, else 0

"size" is the number in the header; the next record begins at position + size + size_add. Sizes are read as u32, keys
as u64, and masked, so that a header of two bytes costs the same as one of four.
"""

import cython

if not cython.compiled:
    raise ImportError("logreel.kernels is not compiled: run `pip install -e .` (needs gcc)")

from cython.cimports.cpython.buffer import Py_buffer
from cython.cimports.libc.stdlib import free, malloc
from cython.cimports.libc.string import memcpy, memset
from cython.cimports.logreel.kernels import ops as code
from cython.cimports.logreel.kernels.buffers import Buffers, hold_buffers, release_buffers
from cython.cimports.logreel.kernels.loads import bytes_of, u16, u32, u64
from cython.cimports.logreel.kernels.prefetch import prefetch, prefetch_span

u8p = cython.typedef(cython.pointer[cython.const[cython.uchar]])

#: Codes of the tables and of ``walk``, for callers.
REFUSE, DATA, NOTE, STOP, TOLERATE = code.REFUSE, code.DATA, code.NOTE, code.STOP, code.TOLERATE
UNDECLARED, TOLERATED = code.UNDECLARED, code.TOLERATED
END, STOPPED, BAD, CUT, FULL = code.END, code.STOPPED, code.BAD, code.CUT, code.FULL

Spec = cython.struct(
    header=cython.longlong,
    size_at=cython.longlong,
    size_mask=cython.longlong,
    size_add=cython.longlong,
    kind_at=cython.longlong,
    key_at=cython.longlong,
    key_mask=cython.longlong,
    payload_at=cython.longlong,
    multiplier=cython.longlong,
    shift=cython.longlong,
)
Tag = cython.struct(
    action=cython.longlong,
    least=cython.longlong,
    most=cython.longlong,
    first_least=cython.longlong,
    first_most=cython.longlong,
)
Key = cython.struct(
    channel=cython.longlong, least=cython.longlong, most=cython.longlong, whole=cython.longlong
)
#: NumPy dtypes of the rows of the tables, those of the structs above.
SPEC = [
    (name, "<i8")
    for name in (
        *("header", "size_at", "size_mask", "size_add", "kind_at"),
        *("key_at", "key_mask", "payload_at", "multiplier", "shift"),
    )
]
TAG = [(name, "<i8") for name in ("action", "least", "most", "first_least", "first_most")]
KEY = [(name, "<i8") for name in ("channel", "least", "most", "whole")]

specp = cython.typedef(cython.pointer[cython.const[Spec]])
tagp = cython.typedef(cython.pointer[cython.const[Tag]])
keyp = cython.typedef(cython.pointer[cython.const[Key]])


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _u64_at_end(p: u8p, left: cython.longlong) -> cython.ulonglong:
    """Read eight bytes as a number where only *left* bytes exist; missing bytes read as zero."""
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
    spec: specp,
    tags: tagp,
    keys: keyp,
    nkeys: cython.longlong,
    undeclared: cython.bint,
    next_out: cython.pointer[cython.longlong],
    key_out: cython.pointer[cython.longlong],
) -> cython.longlong:
    """Return the action of the record at *pos*, or a negative verdict.

    undeclared  accept data records whose key is not declared

    Verdicts: -1 not acceptable; -2 acceptable as far as it can be read, but it ends after *end*.
    """
    left: cython.longlong = end - pos
    size: cython.longlong
    t: tagp
    k: keyp
    word: cython.ulonglong
    key: cython.ulonglong
    first: cython.longlong
    action: cython.longlong
    if left < spec.header:
        return -2
    t = tags + cython.cast(cython.longlong, b[pos + spec.kind_at])
    size = t.least
    if spec.size_mask != 0:
        size = _u64_at_end(b + pos + spec.size_at, left - spec.size_at) & cython.cast(
            cython.ulonglong, spec.size_mask
        )
    action = t.action
    if action == code.REFUSE or size < t.least or size > t.most:
        return -1
    next_out[0] = pos + size + spec.size_add
    if action == code.DATA:
        if left < spec.payload_at:
            return -2
        word = _u64_at_end(b + pos + spec.key_at, left - spec.key_at) & cython.cast(
            cython.ulonglong, spec.key_mask
        )
        key = word
        if spec.multiplier != 0:
            key = word * cython.cast(cython.ulonglong, spec.multiplier) >> spec.shift
        if key >= cython.cast(cython.ulonglong, nkeys):
            key = nkeys
        k = keys + key
        key_out[0] = key
        if (
            key == cython.cast(cython.ulonglong, nkeys)
            or k.channel == code.UNDECLARED
            or (k.whole != 0 and cython.cast(cython.ulonglong, k.whole) != word)
        ):
            if not undeclared:
                return -1
        elif k.channel < 0:
            action = code.TOLERATE
        elif size < k.least or size > k.most:
            return -1
        elif (
            t.first_least
            and left >= spec.payload_at + 2
            and size != 2 + u16(b + pos + spec.payload_at) * t.first_least
        ):
            return -1
    elif left > spec.header and size > 0:
        first = b[pos + spec.header]
        if first < t.first_least or first > t.first_most:
            return -1
    if size + spec.size_add > left:
        return -2
    return action


#: The tables of a call, bound.
Tables = cython.struct(held=Buffers, spec=specp, tags=tagp, keys=keyp, nkeys=cython.longlong)


@cython.cfunc
def hold_tables(tables: cython.pointer[Tables], spec, tags, keys) -> cython.int:
    """Bind tables. A memoryview of each would compare all names of columns, which takes longer than a short search."""
    v: cython.pointer[Py_buffer]
    hold_buffers(cython.address(tables.held), [spec, tags, keys])
    v = tables.held.views
    if (
        v[0].itemsize != cython.sizeof(Spec)
        or v[0].len < v[0].itemsize
        or v[1].itemsize != cython.sizeof(Tag)
        or v[1].len < 256 * v[1].itemsize
        or v[2].itemsize != cython.sizeof(Key)
    ):
        release_buffers(cython.address(tables.held))
        raise ValueError("spec, tags and keys are not framed.SPEC[1], framed.TAG[256] and framed.KEY[k]")
    tables.spec, tables.tags = cython.cast(specp, v[0].buf), cython.cast(tagp, v[1].buf)
    tables.keys, tables.nkeys = cython.cast(keyp, v[2].buf), v[2].len // v[2].itemsize
    return 0


@cython.cfunc
def _walk(
    buf: cython.const[cython.uchar][::1],
    state: cython.longlong[::1],
    end: cython.longlong,
    block: cython.longlong,
    tables: cython.pointer[Tables],
    record: cython.ulonglong[::1],
    count: cython.longlong[::1],
    note: cython.longlong[::1],
    length: cython.uint[::1],
) -> cython.longlong:
    """See ``walk``."""
    b: u8p = bytes_of(buf)
    ps: specp = tables.spec
    pt: tagp = tables.tags
    pk: keyp = tables.keys
    nkeys: cython.longlong = tables.nkeys
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
    skip: cython.longlong = ps.payload_at
    to_size: cython.longlong = ps.size_at
    to_kind: cython.longlong = ps.kind_at
    to_key: cython.longlong = ps.key_at
    size_mask: cython.uint = cython.cast(cython.uint, ps.size_mask)
    key_mask: cython.ulonglong = cython.cast(cython.ulonglong, ps.key_mask)
    # Keys too wide for a table and counted payloads are rare: the fast path tests for them only where declared.
    wide: cython.bint = ps.multiplier != 0
    counted: cython.bint = False
    by_kind: cython.bint = ps.size_mask == 0
    multiplier: cython.ulonglong = cython.cast(cython.ulonglong, ps.multiplier) if wide else 1
    shift: cython.longlong = ps.shift if wide else 0
    size_add: cython.longlong = ps.size_add
    # The fast path takes well-formed data records; reading a header there never passes the end of the part.
    fast: cython.longlong = end - ps.header - 8
    is_data: cython.uchar[256]
    # End of the latest large record of a channel.
    ended: cython.longlong[64]
    again: cython.pointer[cython.longlong]
    i: cython.int
    nx: cython.longlong = 0
    word: cython.ulonglong = 0
    row: cython.ulonglong
    key: cython.longlong = 0
    size: cython.longlong
    width: cython.longlong
    verdict: cython.longlong
    k: keyp
    why: cython.int = code.END
    with cython.nogil:
        for i in range(256):
            is_data[i] = pt[i].action == code.DATA
            counted = counted or (is_data[i] and pt[i].first_least != 0)
            ended[i & 63] = end
        if by_kind and not wide:
            # Only records with a mark in a wide key are so frequent that they need the fast path.
            fast = pos
        if fast > stop:
            fast = stop
        while pos < end:
            while pos < fast and n < cap:
                prefetch(b + pos + 2048)
                size = u32(b + pos + to_size) & size_mask
                if wide:
                    word = u64(b + pos + to_key) & key_mask
                    row = word * multiplier >> shift
                    if by_kind:
                        size = pt[b[pos + to_kind]].least
                else:
                    row = u32(b + pos + to_key) & key_mask
                nx = pos + size + size_add
                if not is_data[b[pos + to_kind]] or row >= cython.cast(cython.ulonglong, nkeys) or nx > end:
                    break
                k = pk + row
                if k.channel < 0 or size < k.least or size > k.most:
                    break
                if wide and k.whole != 0 and cython.cast(cython.ulonglong, k.whole) != word:
                    break
                if counted:
                    width = pt[b[pos + to_kind]].first_least
                    if width and size != 2 + u16(b + pos + skip) * width:
                        break
                pr[n] = cython.cast(cython.ulonglong, k.channel) << 32 | cython.cast(
                    cython.ulonglong, pos + skip - base
                )
                pc[k.channel] += 1
                if sized:
                    pl[n] = cython.cast(cython.uint, size)
                n += 1
                if size >= 1024:
                    # The prefetch does not reach beyond it. Prefetch behind the next record of this channel instead,
                    # assuming the same distance as between the last two.
                    again = cython.address(ended[k.channel & 63])
                    if nx - again[0] < end - nx and again[0] < nx:
                        prefetch_span(b + nx + (nx - again[0]), 512)
                    again[0] = nx
                last = pos
                pos = nx
            if pos >= end:
                break
            verdict = _judge(b, pos, end, ps, pt, pk, nkeys, False, cython.address(nx), cython.address(key))
            if verdict < 0 or verdict == code.STOP:
                why = code.STOPPED if verdict == code.STOP else (code.CUT if verdict == -2 else code.BAD)
                break
            # Checked last: a block is closed only after a sound record.
            if pos >= stop or n >= cap or m >= notecap:
                why = code.FULL
                break
            if verdict == code.DATA:
                k = pk + key
                pr[n] = cython.cast(cython.ulonglong, k.channel) << 32 | cython.cast(
                    cython.ulonglong, pos + skip - base
                )
                pc[k.channel] += 1
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


def walk(
    buf: cython.const[cython.uchar][::1],
    state: cython.longlong[::1],
    end: cython.longlong,
    block: cython.longlong,
    spec,
    tags,
    keys,
    record: cython.ulonglong[::1],
    count: cython.longlong[::1],
    note: cython.longlong[::1],
    length: cython.uint[::1],
):
    """Follow the chain of records from state[0]; collect data records of one block and note the others.

    state   int64[5]   position, start of the block, data records collected in it, notes collected, start of the
                       last record collected; updated in place
    end     int        end of the part of the data that the chain may not cross
    block   int        full when the next record starts this many bytes or more after the start of the block
    record  uint64[r]  channel << 32 | payload start relative to the block, of each data record
    count   int64[c]   data records of each channel in the block; counted up
    note    int64[m]   position of every other accepted record
    length  uint32[r]  size field of each data record; uint32[0] where sizes are not wanted

    Returns why it stopped: END *end* reached, STOPPED the next record is one to stop at, BAD the next record is not
    acceptable, CUT it ends after *end*, FULL the block is full and the next record is acceptable.
    """
    tables: Tables
    why: cython.longlong
    hold_tables(cython.address(tables), spec, tags, keys)
    why = _walk(buf, state, end, block, cython.address(tables), record, count, note, length)
    release_buffers(cython.address(tables.held))
    return why


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _chain(
    b: u8p,
    pos: cython.longlong,
    end: cython.longlong,
    need: cython.longlong,
    spec: specp,
    tags: tagp,
    keys: keyp,
    nkeys: cython.longlong,
) -> cython.bint:
    """Return whether *need* acceptable records follow each other, or fewer that lead convincingly to the end."""
    k: cython.longlong = 0
    nx: cython.longlong = pos
    key: cython.longlong = 0
    verdict: cython.longlong
    steps: cython.longlong = 0
    # Keys that a stop record of the chain declares are not in *keys* yet.
    declares: cython.bint = False
    while k < need:
        if pos == end:
            return k > 0
        verdict = _judge(
            b, pos, end, spec, tags, keys, nkeys, declares, cython.address(nx), cython.address(key)
        )
        if verdict == -2:
            return k >= 2
        if verdict == -1:
            return False
        if verdict == code.STOP:
            declares = True
        if verdict != code.TOLERATE:
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
    spec,
    tags,
    keys,
    last: cython.longlong,
):
    """Return the first position from *pos* to *last* where a convincing chain of records starts, or -1.

    Convincing: *need* acceptable records in a row, fewer that end exactly at *end*, or at least two complete ones
    before a plausible record that *end* cuts.
    """
    b: u8p = bytes_of(buf)
    tables: Tables
    found: cython.longlong = -1
    hold_tables(cython.address(tables), spec, tags, keys)
    with cython.nogil:
        while pos < end and pos <= last:
            if _chain(b, pos, end, need, tables.spec, tables.tags, tables.keys, tables.nkeys):
                found = pos
                break
            pos += 1
    release_buffers(cython.address(tables.held))
    return found


#: Bytes of a block that ``latest_before`` takes at a time: a bit for each is 64 KiB.
SPAN = cython.declare(cython.longlong, 1 << 19)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _last_bit(word: cython.ulonglong) -> cython.longlong:
    """Return the number of the highest bit of *word*, which is not 0."""
    n: cython.longlong = 0
    k: cython.longlong = 32
    while k:
        if word >> k:
            word >>= k
            n += k
        k >>= 1
    return n


def latest_before(
    base: cython.const[cython.longlong][::1],
    start: cython.const[cython.longlong][:, ::1],
    entry: cython.const[cython.uint][::1],
    among: cython.const[cython.longlong][::1],
    channel: cython.longlong,
    out: cython.longlong[::1],
):
    """Fill *out* with where the last payload of *among* begins before each message of *channel*; -1 where none does.

    base, start, entry  the block table, its blocks in the order of the file
    among               int64[k]  channels
    out                 int64[n]  for the messages of *channel* in order

    Marks the payloads of a part of a block in a bit for each byte, instead of sorting them. Returns how many numbers
    were filled; stops before a block whose runs do not lie in *entry* or in *out*.
    """
    k: cython.Py_ssize_t = among.shape[0]
    j: cython.Py_ssize_t
    blk: cython.Py_ssize_t
    n: cython.longlong = 0
    c: cython.longlong
    lo: cython.longlong
    at: cython.longlong
    word: cython.longlong
    least: cython.longlong
    last: cython.longlong = -1
    latest: cython.longlong
    bits: cython.ulonglong
    ok: cython.bint = 0 <= channel < start.shape[1] - 1
    for j in range(k):
        ok = ok and 0 <= among[j] < start.shape[1] - 1
    if not ok or base.shape[0] > start.shape[0]:
        return 0
    # The next entry of each channel in the block, that of *channel* last, and the end of its run.
    rest: cython.pointer[cython.longlong] = cython.cast(
        cython.pointer[cython.longlong], malloc(2 * (k + 1) * cython.sizeof(cython.longlong))
    )
    marks: cython.pointer[cython.ulonglong] = cython.cast(cython.pointer[cython.ulonglong], malloc(SPAN // 8))
    if rest == cython.NULL or marks == cython.NULL:
        free(rest)
        free(marks)
        raise MemoryError
    ends: cython.pointer[cython.longlong] = rest + k + 1
    with cython.nogil:
        for blk in range(base.shape[0]):
            for j in range(k + 1):
                c = channel if j == k else among[j]
                rest[j], ends[j] = start[blk, c], start[blk, c + 1]
                ok = ok and 0 <= rest[j] and ends[j] <= entry.shape[0]
            ok = ok and ends[k] - rest[k] <= out.shape[0] - n
            while ok:
                least = -1
                for j in range(k + 1):
                    if rest[j] < ends[j] and (least < 0 or entry[rest[j]] < least):
                        least = entry[rest[j]]
                if least < 0:
                    break
                lo = least & -64
                memset(marks, 0, SPAN // 8)
                latest = -1
                for j in range(k):
                    while rest[j] < ends[j]:
                        at = entry[rest[j]] - lo
                        if at >= SPAN:
                            break
                        if at >= 0:
                            marks[at >> 6] |= cython.cast(cython.ulonglong, 1) << (at & 63)
                            latest = at if at > latest else latest
                        rest[j] += 1
                least, word = last, 0
                while rest[k] < ends[k]:
                    at = entry[rest[k]] - lo
                    if at >= SPAN:
                        break
                    if at >= 0:
                        c = at >> 6
                        bits = marks[c] & ((cython.cast(cython.ulonglong, 1) << (at & 63)) - 1)
                        # Below the word of the message before, the answer is that of this message.
                        while bits == 0 and c > word:
                            c -= 1
                            bits = marks[c]
                        if bits:
                            least = base[blk] + lo + 64 * c + _last_bit(bits)
                        word = at >> 6
                    out[n] = least
                    n += 1
                    rest[k] += 1
                if latest >= 0:
                    last = base[blk] + lo + latest
            if not ok:
                break
        free(rest)
        free(marks)
    return n
