"""Kernels that write protobuf messages: from columns, and from messages of fixed size.

Messages are written from the last to the first, and each from its end to its start, so that the length of nested
messages is known when it is written before them: one pass, no measuring.

ops of write_columns  int64[m, 6]: code, tag, column, more, body, other column; ops of a body stand before their own op

  VARINT    tag and number, unless it is 0; more: bytes of a number in the column, negative if signed
  FIXED     tag and *more* bytes, unless all are 0
  SPAN      tag, length and bytes, unless empty; more: bytes of an item, column: items, other: their offsets
  PACKED    tag, length and numbers as varints, unless empty; more: as of VARINT, other: offsets of the numbers
  MESSAGE   tag, length and *body* ops
  MESSAGES  as MESSAGE for each item; other: offsets of the items
  SPANS     as SPAN for each item, also empty ones; other: offsets of the items, more: column of byte offsets
  TIME      seconds and nanoseconds as fields 1 and 2; more: 1 if both have the same sign

Tags are the varint as a number. Row i of a column belongs to row i of its message; offsets are int64[n + 1].
Columns are arrays; before anything is written, all are compared with what the ops read of them.

ops of write_fixed  int32[m, 8]: code, tag, tag bytes, offset, more, count, step, body;
                    ops of a body stand before their own op

  WORDS     *count* fields of 4 bytes each, except those that are 0
  LONGS     *count* fields of 8 bytes each, except those that are 0
  VARINTS   *count* fields of a number each, except those that are 0; more: its bytes, negative if signed, 0 for a flag
  SPAN      the next *count* bytes
  PACKED    *count* numbers as varints; more: as of VARINTS
  MESSAGE   *body* ops; their offsets count from the same byte as its own
  MESSAGES  *count* messages of *body* ops, *step* bytes apart; offsets of the body count from each of them
  TIME      u32 seconds and nanoseconds as fields 1 and 2, without a tag; more: 1 if both are i32 with the same sign

Offsets are bytes from the start of the message. Tags are the varint in the last bytes of an int32. The fields of one op
are adjacent and so are their numbers: the tag is that of the last one, *step* the difference between two.
"""

import cython

if not cython.compiled:
    raise ImportError("logreel.kernels is not compiled: run `pip install -e .` (needs gcc)")

from cython.cimports.cpython.buffer import Py_buffer
from cython.cimports.libc.string import memcpy
from cython.cimports.logreel.kernels import ops as code
from cython.cimports.logreel.kernels.before import moment_before, number_before
from cython.cimports.logreel.kernels.buffers import Buffers, hold_buffers, is_inside, release_buffers
from cython.cimports.logreel.kernels.loads import u32, u64, whole
from cython.cimports.logreel.kernels.prefetch import prefetch_span

u8p = cython.typedef(cython.pointer[cython.const[cython.uchar]])
#: Op codes, for those who compile programs.
COLUMN_VARINT, COLUMN_FIXED, COLUMN_SPAN, COLUMN_PACKED = (
    code.COLUMN_VARINT,
    code.COLUMN_FIXED,
    code.COLUMN_SPAN,
    code.COLUMN_PACKED,
)
COLUMN_MESSAGE, COLUMN_MESSAGES, COLUMN_SPANS, COLUMN_TIME = (
    code.COLUMN_MESSAGE,
    code.COLUMN_MESSAGES,
    code.COLUMN_SPANS,
    code.COLUMN_TIME,
)
FIXED_WORDS, FIXED_LONGS, FIXED_VARINTS, FIXED_SPAN = (
    code.FIXED_WORDS,
    code.FIXED_LONGS,
    code.FIXED_VARINTS,
    code.FIXED_SPAN,
)
FIXED_PACKED, FIXED_MESSAGE, FIXED_MESSAGES, FIXED_TIME = (
    code.FIXED_PACKED,
    code.FIXED_MESSAGE,
    code.FIXED_MESSAGES,
    code.FIXED_TIME,
)

mp = cython.typedef(cython.pointer[cython.uchar])
#: Bytes of the longest varint.
LONGEST = cython.declare(cython.longlong, 10)
i64p = cython.typedef(cython.pointer[cython.const[cython.longlong]])


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _span(p: mp, tag: cython.longlong, data: u8p, size: cython.longlong) -> mp:
    p -= size
    memcpy(p, data, size)
    return number_before(
        number_before(p, cython.cast(cython.ulonglong, size)), cython.cast(cython.ulonglong, tag)
    )


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _at(columns: cython.pointer[Py_buffer], k: cython.longlong) -> u8p:
    """Return where column *k* begins."""
    return cython.cast(u8p, columns[k].buf)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _varint_size(v: cython.ulonglong) -> cython.longlong:
    n: cython.longlong = 1
    while v > 127:
        v >>= 7
        n += 1
    return n


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _offsets(held: cython.pointer[Buffers], k: cython.longlong, rows: cython.longlong) -> i64p:
    """Return column *k* if it is that of the offsets of *rows* rows, in ascending order; else NULL."""
    o: i64p
    i: cython.longlong
    if k < 0 or k >= held.count or rows >= held.views[k].len // 8:
        return cython.NULL
    o = cython.cast(i64p, held.views[k].buf)
    if o[0] < 0:
        return cython.NULL
    for i in range(rows):
        if o[i + 1] < o[i]:
            return cython.NULL
    return o


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _has(
    held: cython.pointer[Buffers], k: cython.longlong, items: cython.longlong, width: cython.longlong
) -> cython.bint:
    """Return whether column *k* has so many items of a width."""
    if width < 0:
        width = -width
    return 0 <= k < held.count and (width == 0 or items <= held.views[k].len // width)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _room(
    ops: i64p, n: cython.longlong, held: cython.pointer[Buffers], rows: cython.longlong
) -> cython.longlong:
    """Return the most bytes that *n* ops write for *rows* rows; -1 if they read beyond the end of a column."""
    op: i64p
    o: i64p
    inner: i64p
    items: cython.longlong
    more: cython.longlong
    total: cython.longlong = 0
    while n > 0:
        n -= 1
        op = ops + 6 * n
        if op[0] == code.COLUMN_TIME:
            if not _has(held, op[2], rows, 8):
                return -1
            total += rows * 2 * (1 + LONGEST)
            continue
        items, more = rows, LONGEST
        if op[0] == code.COLUMN_VARINT or op[0] == code.COLUMN_FIXED:
            if op[3] == 0 or not _has(held, op[2], rows, op[3]):
                return -1
            if op[0] == code.COLUMN_FIXED:
                more = op[3]
        elif op[0] == code.COLUMN_MESSAGE:
            n -= op[4]
            more = _room(ops + 6 * n, op[4], held, rows)
            if more < 0:
                return -1
            total += more
            more = LONGEST
        else:
            o = _offsets(held, op[5], rows)
            if o == cython.NULL:
                return -1
            if op[0] == code.COLUMN_SPAN or op[0] == code.COLUMN_PACKED:
                if op[3] == 0 or not _has(held, op[2], o[rows], op[3]):
                    return -1
                total += (o[rows] - o[0]) * (op[3] if op[0] == code.COLUMN_SPAN else LONGEST)
            else:
                items = o[rows] - o[0]
                if op[0] == code.COLUMN_SPANS:
                    inner = _offsets(held, op[3], o[rows])
                    if inner == cython.NULL or not _has(held, op[2], inner[o[rows]], 1):
                        return -1
                    total += inner[o[rows]] - inner[o[0]]
                else:
                    n -= op[4]
                    more = _room(ops + 6 * n, op[4], held, o[rows])
                    if more < 0:
                        return -1
                    total += more
                    more = LONGEST
        total += items * (_varint_size(cython.cast(cython.ulonglong, op[1])) + more)
    return total


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _write_row(
    ops: i64p, n: cython.longlong, columns: cython.pointer[Py_buffer], row: cython.longlong, p: mp
) -> mp:
    """Write the fields of *n* ops before p; return where they begin."""
    op: i64p
    o: i64p
    inner: i64p
    d: u8p
    end: mp
    v: cython.ulonglong
    i: cython.longlong
    width: cython.longlong
    while n > 0:
        n -= 1
        op = ops + 6 * n
        if op[0] == code.COLUMN_VARINT:
            width = op[3] if op[3] > 0 else -op[3]
            v = whole(_at(columns, op[2]) + row * width, op[3])
            if v != 0:
                p = number_before(number_before(p, v), cython.cast(cython.ulonglong, op[1]))
        elif op[0] == code.COLUMN_FIXED:
            v = whole(_at(columns, op[2]) + row * op[3], op[3])
            if v != 0:
                p -= op[3]
                memcpy(p, cython.address(v), op[3])
                p = number_before(p, cython.cast(cython.ulonglong, op[1]))
        elif op[0] == code.COLUMN_SPAN:
            o = cython.cast(i64p, _at(columns, op[5])) + row
            if o[1] > o[0]:
                p = _span(p, op[1], _at(columns, op[2]) + o[0] * op[3], (o[1] - o[0]) * op[3])
        elif op[0] == code.COLUMN_PACKED:
            o = cython.cast(i64p, _at(columns, op[5])) + row
            if o[1] > o[0]:
                end = p
                width = op[3] if op[3] > 0 else -op[3]
                d = _at(columns, op[2])
                i = o[1]
                while i > o[0]:
                    i -= 1
                    p = number_before(p, whole(d + i * width, op[3]))
                p = number_before(p, cython.cast(cython.ulonglong, end - p))
                p = number_before(p, cython.cast(cython.ulonglong, op[1]))
        elif op[0] == code.COLUMN_MESSAGE:
            end = p
            n -= op[4]
            p = _write_row(ops + 6 * n, op[4], columns, row, p)
            p = number_before(p, cython.cast(cython.ulonglong, end - p))
            p = number_before(p, cython.cast(cython.ulonglong, op[1]))
        elif op[0] == code.COLUMN_MESSAGES:
            o = cython.cast(i64p, _at(columns, op[5])) + row
            n -= op[4]
            i = o[1]
            while i > o[0]:
                i -= 1
                end = p
                p = _write_row(ops + 6 * n, op[4], columns, i, p)
                p = number_before(p, cython.cast(cython.ulonglong, end - p))
                p = number_before(p, cython.cast(cython.ulonglong, op[1]))
        elif op[0] == code.COLUMN_SPANS:
            o = cython.cast(i64p, _at(columns, op[5])) + row
            inner = cython.cast(i64p, _at(columns, op[3]))
            i = o[1]
            while i > o[0]:
                i -= 1
                p = _span(p, op[1], _at(columns, op[2]) + inner[i], inner[i + 1] - inner[i])
        else:  # TIME
            p = moment_before(p, cython.cast(i64p, _at(columns, op[2]))[row], op[3] != 0)
    return p


def write_columns(
    ops: cython.const[cython.longlong][:, ::1],
    columns: list,
    start: cython.longlong[::1],
    out: cython.uchar[::1],
):
    """Write n messages to the end of *out*.

    columns  contiguous arrays
    start    int64[n + 1]  set to the start of each message in *out*, and the end

    Raises IndexError where a column is too short for its offsets, or *out* may be; then nothing is written.
    """
    row: cython.longlong = start.shape[0] - 1
    n: cython.longlong = ops.shape[0]
    none: cython.longlong = 0
    room: cython.longlong
    held: Buffers
    base: mp
    p: mp
    first: i64p = cython.address(ops[0, 0]) if n else cython.address(none)
    start[row] = out.shape[0]
    if out.shape[0] == 0:
        start[:] = 0
    hold_buffers(cython.address(held), columns)
    with cython.nogil:
        room = _room(first, n, cython.address(held), row)
        if 0 <= room <= out.shape[0] and out.shape[0]:
            base = cython.address(out[0])
            p = base + out.shape[0]
            while row > 0:
                row -= 1
                p = _write_row(first, n, held.views, row, p)
                start[row] = p - base
    release_buffers(cython.address(held))
    if room < 0 or room > out.shape[0]:
        raise IndexError(
            "a column does not have the rows of its messages" if room < 0 else "out is too small"
        )


i32p = cython.typedef(cython.pointer[cython.const[cython.int]])

Kind = cython.struct(
    first=cython.longlong, count=cython.longlong, reads=cython.longlong, writes=cython.longlong
)
kindp = cython.typedef(cython.pointer[cython.const[Kind]])
#: NumPy dtype of the rows of *kinds*; a memoryview compares it with the struct above.
KIND = [(name, "<i8") for name in ("first", "count", "reads", "writes")]
#: Bytes of *out* that must be free before the first message.
ROOM = 4
_AHEAD = cython.declare(cython.longlong, 8)
_LINE = cython.declare(cython.longlong, 128)
_SECOND = cython.declare(cython.longlong, 1000000000)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _tagged(p: mp, tag: cython.int, size: cython.int) -> mp:
    memcpy(p - 4, cython.address(tag), 4)
    return p - size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _bytes(width: cython.longlong) -> cython.longlong:
    return width if width > 0 else -width if width else 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _write_fixed(ops: i32p, n: cython.longlong, b: u8p, p: mp) -> mp:
    """Write the fields of *n* ops before p; return where they begin."""
    op: i32p
    d: u8p
    end: mp
    tag: cython.int
    word: cython.uint
    v: cython.ulonglong
    i: cython.longlong
    width: cython.longlong
    while n > 0:
        n -= 1
        op = ops + 8 * n
        tag = op[1]
        d = b + op[3]
        i = op[5]
        if op[0] == code.FIXED_WORDS:
            while i > 0:
                i -= 1
                word = u32(d + 4 * i)
                if word != 0:
                    p -= 4
                    memcpy(p, cython.address(word), 4)
                    p = _tagged(p, tag, op[2])
                tag -= op[6]
        elif op[0] == code.FIXED_LONGS:
            while i > 0:
                i -= 1
                v = u64(d + 8 * i)
                if v != 0:
                    p -= 8
                    memcpy(p, cython.address(v), 8)
                    p = _tagged(p, tag, op[2])
                tag -= op[6]
        elif op[0] == code.FIXED_VARINTS:
            width = op[4]
            d += i * _bytes(width)
            while i > 0:
                i -= 1
                d -= _bytes(width)
                v = whole(d, width)
                if v != 0:
                    p = _tagged(number_before(p, v), tag, op[2])
                tag -= op[6]
        elif op[0] == code.FIXED_SPAN:
            p -= i
            memcpy(p, d, i)
            p = _tagged(number_before(p, i), tag, op[2])
        elif op[0] == code.FIXED_PACKED:
            end = p
            width = op[4]
            d += i * _bytes(width)
            while i > 0:
                i -= 1
                d -= _bytes(width)
                p = number_before(p, whole(d, width))
            p = _tagged(number_before(p, end - p), tag, op[2])
        elif op[0] == code.FIXED_MESSAGE:
            end = p
            n -= op[7]
            p = _write_fixed(ops + 8 * n, op[7], b, p)
            p = _tagged(number_before(p, end - p), tag, op[2])
        elif op[0] == code.FIXED_MESSAGES:
            n -= op[7]
            while i > 0:
                i -= 1
                end = p
                p = _write_fixed(ops + 8 * n, op[7], d + i * op[6], p)
                p = _tagged(number_before(p, end - p), tag, op[2])
        elif op[4]:  # TIME
            i = cython.cast(cython.int, u32(d))
            p = moment_before(p, i * _SECOND + cython.cast(cython.int, u32(d + 4)), True)
        else:
            i = u32(d)
            p = moment_before(p, i * _SECOND + u32(d + 4), False)
    return p


def write_fixed(
    ops: cython.const[cython.int][:, ::1],
    kinds: cython.const[Kind][::1],
    kind: cython.const[cython.int][::1],
    buffers: list,
    which: cython.const[cython.int][::1],
    place: cython.const[cython.longlong][::1],
    start: cython.longlong[::1],
    out: cython.uchar[::1],
):
    """Write n messages to the end of *out*.

    kinds    KIND[k]       what messages of a kind are written with:
                 first   their first op
                 count   number of their ops
                 reads   bytes of a message
                 writes  most bytes that are written
    kind     int32[n]      kind of each message
    buffers  message i begins at byte place[i] of its buffer
    which    int32[n]      number of the buffer, or int32[0]: all lie in the first
    place    int64[n]
    start    int64[n + 1]  set to the start of each message in *out*, and the end
    out      uint8[b]      at least ROOM bytes more than the messages may need

    Raises IndexError for a message outside of its buffer, and where *out* may be too small.
    """
    i: cython.longlong = kind.shape[0]
    held: Buffers
    ok: cython.bint
    if start.shape[0] != i + 1 or place.shape[0] != i or (which.shape[0] and which.shape[0] != i):
        raise ValueError("the arrays of messages differ in length")
    start[i] = out.shape[0]
    if i == 0:
        return
    if not buffers or kinds.shape[0] == 0:
        raise IndexError("there is no buffer or no kind of a message")
    hold_buffers(cython.address(held), buffers)
    with cython.nogil:
        ok = _write_all(ops, kinds, kind, cython.address(held), which, place, start, out)
    release_buffers(cython.address(held))
    if not ok:
        raise IndexError("a message lies outside of its buffer, or out is too small")


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _write_all(
    ops: cython.const[cython.int][:, ::1],
    kinds: cython.const[Kind][::1],
    kind: cython.const[cython.int][::1],
    held: cython.pointer[Buffers],
    which: cython.const[cython.int][::1],
    place: cython.const[cython.longlong][::1],
    start: cython.longlong[::1],
    out: cython.uchar[::1],
) -> cython.bint:
    """Write messages from the last one on; return False at one that does not lie in its buffer or in *out*."""
    i: cython.longlong = kind.shape[0]
    k: cython.longlong
    w: cython.longlong = 0
    none: cython.int = 0
    room: cython.longlong
    row: kindp
    every: i32p = cython.address(ops[0, 0]) if ops.shape[0] else cython.address(none)
    several: cython.bint = which.shape[0] > 0
    base: mp
    p: mp
    # ROOM, as a number that the compiler knows.
    if out.shape[0] < 4:
        return False
    for k in range(kinds.shape[0]):
        if not is_inside(kinds[k].first, kinds[k].count, ops.shape[0]) or kinds[k].reads < 0:
            return False
    base = cython.address(out[0])
    p = base + out.shape[0]
    while i > 0:
        i -= 1
        if i >= _AHEAD:
            if several:
                w = which[i - _AHEAD]
            if 0 <= w < held.count:
                prefetch_span(cython.cast(u8p, held.views[w].buf) + place[i - _AHEAD], _LINE)
        k = kind[i]
        if several:
            w = which[i]
        if k < 0 or k >= kinds.shape[0] or w < 0 or w >= held.count:
            return False
        row = cython.address(kinds[k])
        room = held.views[w].len
        if place[i] < 0 or place[i] > room - row.reads or row.writes > p - base - 4:
            return False
        p = _write_fixed(every + 8 * row.first, row.count, cython.cast(u8p, held.views[w].buf) + place[i], p)
        start[i] = p - base
    return True
