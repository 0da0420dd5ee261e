"""Columns to protobuf messages.

Messages are written from the last to the first and each from its end, so that the length of what is nested is known
when it is put before it: one pass, no measuring.

ops  int64[m, 6]  code, tag, column, more, body, other column; the ops of a body stand before their own op

  0 VARINT    tag and number, unless it is 0; more: bytes of a number in the column, negative for signed ones
  1 FIXED     tag and *more* bytes, unless all are 0
  2 SPAN      tag, length and bytes, unless there are none; more: bytes of an item, column: items, other: their offsets
  3 PACKED    the same of numbers as varints; more: as of VARINT
  4 MESSAGE   tag, length and *body* ops
  5 MESSAGES  the same for each item; other: offsets of the items
  6 SPANS     a span for each item, also an empty one; other: offsets of the items; more: column of the spans' offsets
  7 TIME      seconds and nanoseconds as fields 1 and 2; more: 1 if both have one sign

A tag is the varint itself as a number. Row i of a column belongs to row i of what it is in; offsets are int64[n + 1].
"""

import cython

if not cython.compiled:
    raise ImportError("logreel.kernels is not compiled: run `pip install -e .` (needs gcc)")

from cython.cimports.libc.string import memcpy
from cython.cimports.logreel.kernels.before import moment_before, number_before
from cython.cimports.logreel.kernels.loads import whole

u8p = cython.typedef(cython.pointer[cython.const[cython.uchar]])
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
def _write(ops: i64p, n: cython.longlong, columns: cython.pointer[u8p], row: cython.longlong, p: mp) -> mp:
    """Put the fields of *n* ops before p; gives where they begin."""
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
        if op[0] == 0:  # VARINT
            width = op[3] if op[3] > 0 else -op[3]
            v = whole(columns[op[2]] + row * width, op[3])
            if v != 0:
                p = number_before(number_before(p, v), cython.cast(cython.ulonglong, op[1]))
        elif op[0] == 1:  # FIXED
            v = whole(columns[op[2]] + row * op[3], op[3])
            if v != 0:
                p -= op[3]
                memcpy(p, cython.address(v), op[3])
                p = number_before(p, cython.cast(cython.ulonglong, op[1]))
        elif op[0] == 2:  # SPAN
            o = cython.cast(i64p, columns[op[5]]) + row
            if o[1] > o[0]:
                p = _span(p, op[1], columns[op[2]] + o[0] * op[3], (o[1] - o[0]) * op[3])
        elif op[0] == 3:  # PACKED
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
        elif op[0] == 4:  # MESSAGE
            end = p
            n -= op[4]
            p = _write(ops + 6 * n, op[4], columns, row, p)
            p = number_before(p, cython.cast(cython.ulonglong, end - p))
            p = number_before(p, cython.cast(cython.ulonglong, op[1]))
        elif op[0] == 5:  # MESSAGES
            o = cython.cast(i64p, columns[op[5]]) + row
            n -= op[4]
            i = o[1]
            while i > o[0]:
                i -= 1
                end = p
                p = _write(ops + 6 * n, op[4], columns, i, p)
                p = number_before(p, cython.cast(cython.ulonglong, end - p))
                p = number_before(p, cython.cast(cython.ulonglong, op[1]))
        elif op[0] == 6:  # SPANS
            o = cython.cast(i64p, columns[op[5]]) + row
            inner = cython.cast(i64p, columns[op[3]])
            i = o[1]
            while i > o[0]:
                i -= 1
                p = _span(p, op[1], columns[op[2]] + inner[i], inner[i + 1] - inner[i])
        else:  # TIME
            p = moment_before(p, cython.cast(i64p, columns[op[2]])[row], op[3] != 0)
    return p


def write(
    ops: cython.const[cython.longlong][:, ::1],
    columns: cython.const[cython.ulonglong][::1],
    start: cython.longlong[::1],
    out: cython.uchar[::1],
):
    """Write n messages to the end of *out*, whose room nothing here checks.

    columns  uint64[c]     address of each column
    start    int64[n + 1]  set to where each message begins in *out*, and the end
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
            p = _write(first, n, places, row, p)
            start[row] = p - base
