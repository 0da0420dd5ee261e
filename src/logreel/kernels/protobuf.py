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

from cython.cimports.libc.string import memcpy
from cython.cimports.logreel.kernels import ops as code
from cython.cimports.logreel.kernels.before import moment_before, number_before
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
@cython.nogil
@cython.exceptval(check=False)
def _write_row(
    ops: i64p, n: cython.longlong, columns: cython.pointer[u8p], row: cython.longlong, p: mp
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
            v = whole(columns[op[2]] + row * width, op[3])
            if v != 0:
                p = number_before(number_before(p, v), cython.cast(cython.ulonglong, op[1]))
        elif op[0] == code.COLUMN_FIXED:
            v = whole(columns[op[2]] + row * op[3], op[3])
            if v != 0:
                p -= op[3]
                memcpy(p, cython.address(v), op[3])
                p = number_before(p, cython.cast(cython.ulonglong, op[1]))
        elif op[0] == code.COLUMN_SPAN:
            o = cython.cast(i64p, columns[op[5]]) + row
            if o[1] > o[0]:
                p = _span(p, op[1], columns[op[2]] + o[0] * op[3], (o[1] - o[0]) * op[3])
        elif op[0] == code.COLUMN_PACKED:
            o = cython.cast(i64p, columns[op[5]]) + row
            if o[1] > o[0]:
                end = p
                width = op[3] if op[3] > 0 else -op[3]
                d = columns[op[2]]
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
            o = cython.cast(i64p, columns[op[5]]) + row
            n -= op[4]
            i = o[1]
            while i > o[0]:
                i -= 1
                end = p
                p = _write_row(ops + 6 * n, op[4], columns, i, p)
                p = number_before(p, cython.cast(cython.ulonglong, end - p))
                p = number_before(p, cython.cast(cython.ulonglong, op[1]))
        elif op[0] == code.COLUMN_SPANS:
            o = cython.cast(i64p, columns[op[5]]) + row
            inner = cython.cast(i64p, columns[op[3]])
            i = o[1]
            while i > o[0]:
                i -= 1
                p = _span(p, op[1], columns[op[2]] + inner[i], inner[i + 1] - inner[i])
        else:  # TIME
            p = moment_before(p, cython.cast(i64p, columns[op[2]])[row], op[3] != 0)
    return p


def write_columns(
    ops: cython.const[cython.longlong][:, ::1],
    columns: cython.const[cython.ulonglong][::1],
    start: cython.longlong[::1],
    out: cython.uchar[::1],
):
    """Write n messages to the end of *out*; the caller has provided enough room.

    columns  uint64[c]     address of each column
    start    int64[n + 1]  set to the start of each message in *out*, and the end
    """
    row: cython.longlong = start.shape[0] - 1
    n: cython.longlong = ops.shape[0]
    none: cython.longlong = 0
    nothing: cython.ulonglong = 0
    base: mp
    p: mp
    first: i64p = cython.address(ops[0, 0]) if n else cython.address(none)
    places: cython.pointer[u8p] = cython.cast(
        cython.pointer[u8p], cython.address(columns[0]) if columns.shape[0] else cython.address(nothing)
    )
    start[row] = out.shape[0]
    if out.shape[0] == 0:
        start[:] = 0
        return
    base = cython.address(out[0])
    p = base + out.shape[0]
    with cython.nogil:
        while row > 0:
            row -= 1
            p = _write_row(first, n, places, row, p)
            start[row] = p - base


i32p = cython.typedef(cython.pointer[cython.const[cython.int]])

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
    first: cython.const[cython.longlong][::1],
    kind: cython.const[cython.int][::1],
    place: cython.const[cython.ulonglong][::1],
    start: cython.longlong[::1],
    out: cython.uchar[::1],
):
    """Write n messages to the end of *out*; the caller has provided enough room.

    first  int64[k + 1]  messages of kind j have the ops from first[j] to first[j + 1]
    kind   int32[n]      kind of each message
    place  uint64[n]     address of each message, which has the bytes that its ops read
    start  int64[n + 1]  set to the start of each message in *out*, and the end
    out    uint8[b]      at least ROOM bytes more than the messages
    """
    i: cython.longlong = kind.shape[0]
    k: cython.longlong
    none: cython.int = 0
    every: i32p = cython.address(ops[0, 0]) if ops.shape[0] else cython.address(none)
    base: mp = cython.address(out[0])
    p: mp = base + out.shape[0]
    start[i] = out.shape[0]
    with cython.nogil:
        while i > 0:
            i -= 1
            if i >= _AHEAD:
                prefetch_span(cython.cast(u8p, place[i - _AHEAD]), _LINE)
            k = kind[i]
            p = _write_fixed(every + 8 * first[k], first[k + 1] - first[k], cython.cast(u8p, place[i]), p)
            start[i] = p - base
