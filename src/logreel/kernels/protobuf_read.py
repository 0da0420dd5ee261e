"""Kernel that reads protobuf messages into columns.

It reads what an encoder writes. A message with anything else is irregular, and the protobuf library has the last word on
it: bytes that are cut or malformed, groups, text that is not UTF-8, a single text, message or time that comes twice
(messages would be merged), and two members of a oneof. Fields that the tables do not name, or that have another wire
type, are skipped, as the library does.

Two passes read the same bytes: ``count`` finds what each column will hold, ``fill`` fills them. Other processes may
change the bytes of a file between both, so ``fill`` checks every write against the memory of its column.

bodies  int64[b, 3], a row for each message type at each place in the tree of types:
            first   row of its first field; its fields lie in the order of their numbers
            count   number of its fields
            scope   counter of its values: of messages (0), or of the items of a repeated field
fields  int64[f, 10]
            number
            code    VARINT   width: bytes of the number; negative: zigzag; 1: a flag
                    FIXED    width: 4 or 8
                    SPAN     width: 1 if it is text
                    MESSAGE  body: row in *bodies*
                    TIME     a message of seconds (1) and nanoseconds (2), as ns
            width
            column  of the values, or of the bytes of a span
            valid   column of flags that are set where there is a value, -1: none
            body
            bytes   counter of the bytes of a span
            scope   counter of the items if it is repeated, else -1
            mark    own number, below the number of marks
            oneof   mark that the members of a oneof have in common, else -1
scopes  int64[s, 2]  for each counter of values the first row in *ends*, and the number of rows
ends    int64[e, 2]  column of int32 offsets that get the state of a counter after each value
marks   int64[m]     memory of the kernel

A column of -1 is not read. The memory of columns must be zero. schemas/protobuf/layouts.py writes the tables; only
their sizes are checked here.
"""

import cython

if not cython.compiled:
    raise ImportError("logreel.kernels is not compiled: run `pip install -e .` (needs gcc)")

from cython.cimports.libc.string import memcpy
from cython.cimports.logreel.kernels import ops as code
from cython.cimports.logreel.kernels.buffers import Buffers, hold_buffers, is_inside, release_buffers
from cython.cimports.logreel.kernels.loads import bytes_of, u32, u64
from cython.cimports.logreel.kernels.varints import nanoseconds, skip, span, varint

u8p = cython.typedef(cython.pointer[cython.const[cython.uchar]])
mp = cython.typedef(cython.pointer[cython.uchar])
i64p = cython.typedef(cython.pointer[cython.const[cython.longlong]])
mi64p = cython.typedef(cython.pointer[cython.longlong])

#: Op codes, for those who write tables.
VARINT, FIXED, SPAN = code.READ_VARINT, code.READ_FIXED, code.READ_SPAN
MESSAGE, TIME = code.READ_MESSAGE, code.READ_TIME
_FIELD = cython.declare(cython.longlong, 10)
#: The largest seconds that fit 64 bits as ns, whatever the nanoseconds are.
_SECONDS = cython.declare(cython.longlong, 9223372032)
_HIGH_BITS = cython.declare(cython.ulonglong, 0x8080808080808080)

#: Tables, counters, and columns, none while counting.
State = cython.struct(
    bodies=i64p,
    fields=i64p,
    scopes=i64p,
    ends=i64p,
    counts=mi64p,
    marks=mi64p,
    serial=cython.longlong,
    is_counting=cython.bint,
    held=Buffers,
)
statep = cython.typedef(cython.pointer[State])


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put(
    s: statep, column: cython.longlong, row: cython.longlong, value: u8p, width: cython.longlong
) -> cython.bint:
    """Write a value of a column; False if it has no such row."""
    if column < 0:
        return True
    if column >= s.held.count or not is_inside(row * width, width, s.held.views[column].len):
        return False
    memcpy(cython.cast(mp, s.held.views[column].buf) + row * width, value, width)
    return True


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _end(s: statep, scope: cython.longlong) -> cython.bint:
    """End a value of a scope: what belongs to it ends here."""
    row: i64p
    end: cython.int
    i: cython.longlong
    s.counts[scope] += 1
    if not s.is_counting:
        for i in range(s.scopes[2 * scope + 1]):
            row = s.ends + 2 * (s.scopes[2 * scope] + i)
            end = cython.cast(cython.int, s.counts[row[1]])
            if not _put(s, row[0], s.counts[scope], cython.cast(u8p, cython.address(end)), 4):
                return False
    return True


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _is_utf8(p: u8p, n: cython.longlong) -> cython.bint:
    e: u8p = p + n
    c: cython.uint
    d: cython.uint
    more: cython.longlong
    while p < e:
        if e - p >= 8 and u64(p) & _HIGH_BITS == 0:
            p += 8
            continue
        c = p[0]
        p += 1
        if c < 128:
            continue
        if c < 0xC2 or c > 0xF4:
            return False
        more = 1 if c < 0xE0 else 2 if c < 0xF0 else 3
        if e - p < more:
            return False
        d = p[0]
        # No longer form of a shorter one, no half of a pair of UTF-16, nothing beyond U+10FFFF.
        if (
            d & 0xC0 != 0x80
            or (c == 0xE0 and d < 0xA0)
            or (c == 0xED and d > 0x9F)
            or (c == 0xF0 and d < 0x90)
            or (c == 0xF4 and d > 0x8F)
        ):
            return False
        if more > 1 and p[1] & 0xC0 != 0x80:
            return False
        if more > 2 and p[2] & 0xC0 != 0x80:
            return False
        p += more
    return True


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _take(s: statep, f: i64p, row: cython.longlong, value: u8p, width: cython.longlong) -> cython.bint:
    """Take a value of a field: of message or item *row*, or as the next item of a repeated field."""
    flag: cython.uchar = 1
    if f[7] < 0:
        if s.is_counting:
            return True
        if not _put(s, f[4], row, cython.address(flag), 1):
            return False
        return _put(s, f[3], row, value, width)
    if not s.is_counting and not _put(s, f[3], s.counts[f[7]], value, width):
        return False
    return _end(s, f[7])


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _take_varint(s: statep, f: i64p, row: cython.longlong, v: cython.ulonglong) -> cython.bint:
    width: cython.longlong = f[2]
    if width < 0:
        width = -width
        if width == 4:
            v = cython.cast(cython.uint, v)
        v = (v >> 1) ^ (0 - (v & 1))
    elif width == 1:
        v = v != 0
    return _take(s, f, row, cython.cast(u8p, cython.address(v)), width)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _take_fixed(s: statep, f: i64p, row: cython.longlong, p: u8p) -> cython.bint:
    # A copy, since another process may change the bytes.
    v: cython.ulonglong = u64(p) if f[2] == 8 else u32(p)
    return _take(s, f, row, cython.cast(u8p, cython.address(v)), f[2])


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _take_span(s: statep, f: i64p, row: cython.longlong, p: u8p, n: cython.longlong) -> cython.bint:
    at: cython.longlong = s.counts[f[6]]
    flag: cython.uchar = 1
    if s.is_counting:
        if f[2] and not _is_utf8(p, n):
            return False
    else:
        if f[7] < 0 and not _put(s, f[4], row, cython.address(flag), 1):
            return False
        if f[3] >= 0:
            if f[3] >= s.held.count or not is_inside(at, n, s.held.views[f[3]].len):
                return False
            memcpy(cython.cast(mp, s.held.views[f[3]].buf) + at, p, n)
    s.counts[f[6]] = at + n
    return f[7] < 0 or _end(s, f[7])


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _take_time(s: statep, f: i64p, row: cython.longlong, p: u8p, e: u8p) -> cython.bint:
    tag: cython.ulonglong = 0
    v: cython.ulonglong = 0
    seconds: cython.longlong = 0
    nanos: cython.longlong = 0
    ns: cython.longlong
    while p < e:
        p = varint(p, e, cython.address(tag))
        if p == cython.NULL:
            return False
        if tag == 8:
            p = varint(p, e, cython.address(v))
            seconds = cython.cast(cython.longlong, v)
        elif tag == 16:
            p = varint(p, e, cython.address(v))
            nanos = cython.cast(cython.int, cython.cast(cython.uint, v))
        else:
            p = skip(p, e, tag)
        if p == cython.NULL:
            return False
    # At the limits of 64 bits, the library decides.
    if seconds > _SECONDS or seconds < -_SECONDS:
        return False
    ns = nanoseconds(seconds, nanos)
    return _take(s, f, row, cython.cast(u8p, cython.address(ns)), 8)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _find(rows: i64p, n: cython.longlong, near: cython.longlong, number: cython.ulonglong) -> cython.longlong:
    """Return the row of a field, -1 for none; *near* is the row of the field before."""
    low: cython.longlong = 0
    middle: cython.longlong
    if near < n and rows[_FIELD * near] == cython.cast(cython.longlong, number):
        return near
    if near + 1 < n and rows[_FIELD * (near + 1)] == cython.cast(cython.longlong, number):
        return near + 1
    while low < n:
        middle = (low + n) // 2
        if rows[_FIELD * middle] < cython.cast(cython.longlong, number):
            low = middle + 1
        elif rows[_FIELD * middle] > cython.cast(cython.longlong, number):
            n = middle
        else:
            return middle
    return -1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _read(s: statep, body: cython.longlong, row: cython.longlong, p: u8p, e: u8p) -> cython.bint:
    """Read the message from p to e, value *row* of its scope; return whether it is regular and fits the columns."""
    tag: cython.ulonglong = 0
    v: cython.ulonglong = 0
    wire: cython.ulonglong
    rows: i64p = s.fields + _FIELD * s.bodies[3 * body]
    n: cython.longlong = s.bodies[3 * body + 1]
    k: cython.longlong = 0
    at: cython.longlong
    width: cython.longlong
    own: cython.longlong = s.serial
    flag: cython.uchar = 1
    f: i64p
    stop: u8p
    s.serial += 1
    while p < e:
        p = varint(p, e, cython.address(tag))
        if p == cython.NULL or tag >> 32 != 0 or tag >> 3 == 0:
            return False
        wire = tag & 7
        at = _find(rows, n, k, tag >> 3)
        if at < 0:
            p = skip(p, e, tag)
            if p == cython.NULL:
                return False
            continue
        k = at
        f = rows + _FIELD * k
        width = 8 if f[2] == 8 else 4
        if (
            wire == 2
            if f[1] >= code.READ_SPAN
            else wire == (0 if f[1] == code.READ_VARINT else 1 if width == 8 else 5)
        ):
            if f[9] >= 0:
                if s.marks[f[9]] == own:
                    return False
                s.marks[f[9]] = own
        elif wire != 2 or f[7] < 0 or f[1] >= code.READ_SPAN:
            p = skip(p, e, tag)
            if p == cython.NULL:
                return False
            continue
        if wire == 0:
            p = varint(p, e, cython.address(v))
            if p == cython.NULL or not _take_varint(s, f, row, v):
                return False
            continue
        if wire != 2:
            if e - p < width or not _take_fixed(s, f, row, p):
                return False
            p += width
            continue
        p = span(p, e, cython.address(v))
        if p == cython.NULL:
            return False
        stop = p + v
        if f[1] >= code.READ_SPAN and f[7] < 0:
            if s.marks[f[8]] == own:
                return False
            s.marks[f[8]] = own
        if f[1] == code.READ_SPAN:
            if not _take_span(s, f, row, p, stop - p):
                return False
        elif f[1] == code.READ_TIME:
            if not _take_time(s, f, row, p, stop):
                return False
        elif f[1] == code.READ_MESSAGE:
            if f[7] < 0:
                if not s.is_counting and not _put(s, f[4], row, cython.address(flag), 1):
                    return False
                if not _read(s, f[5], row, p, stop):
                    return False
            elif not _read(s, f[5], s.counts[f[7]], p, stop) or not _end(s, f[7]):
                return False
        elif f[1] == code.READ_FIXED:
            if (stop - p) % width:
                return False
            while p < stop:
                if not _take_fixed(s, f, row, p):
                    return False
                p += width
        else:
            while p < stop:
                p = varint(p, stop, cython.address(v))
                if p == cython.NULL or not _take_varint(s, f, row, v):
                    return False
        p = stop
    return True


@cython.cfunc
def _bind(
    s: statep,
    bodies: cython.const[cython.longlong][:, ::1],
    fields: cython.const[cython.longlong][:, ::1],
    scopes: cython.const[cython.longlong][:, ::1],
    ends: cython.const[cython.longlong][:, ::1],
    counts: cython.longlong[::1],
    marks: cython.longlong[::1],
) -> cython.bint:
    """Point at the tables; all have a row more than is used, so that none is empty."""
    if bodies.shape[1] != 3 or fields.shape[1] != _FIELD or scopes.shape[1] != 2 or ends.shape[1] != 2:
        raise ValueError("a table has another number of columns")
    s.bodies = cython.address(bodies[0, 0])
    s.fields = cython.address(fields[0, 0])
    s.scopes = cython.address(scopes[0, 0])
    s.ends = cython.address(ends[0, 0])
    s.counts = cython.address(counts[0])
    s.marks = cython.address(marks[0])
    s.serial = 0
    s.held.count = 0
    s.held.views = cython.NULL
    counts[:] = 0
    marks[:] = -1
    return True


def count(
    source: cython.const[cython.uchar][::1],
    start: cython.const[cython.longlong][::1],
    size: cython.const[cython.longlong][::1],
    bodies: cython.const[cython.longlong][:, ::1],
    fields: cython.const[cython.longlong][:, ::1],
    scopes: cython.const[cython.longlong][:, ::1],
    ends: cython.const[cython.longlong][:, ::1],
    counts: cython.longlong[::1],
    marks: cython.longlong[::1],
    irregular: cython.uchar[::1],
) -> int:
    """Set *counts* to what the columns will hold; return the number of irregular messages.

    source     uint8[b]
    start      int64[n]  message i begins at source[start[i]]
    size       int64[n]
    irregular  uint8[n]  set to 1 for these messages; if there are any, *counts* are of no use
    """
    s: State
    base: u8p = bytes_of(source)
    i: cython.longlong
    bad: cython.longlong = 0
    if size.shape[0] != start.shape[0] or irregular.shape[0] != start.shape[0]:
        raise ValueError("the arrays of messages differ in length")
    _bind(cython.address(s), bodies, fields, scopes, ends, counts, marks)
    s.is_counting = True
    with cython.nogil:
        for i in range(start.shape[0]):
            irregular[i] = not is_inside(start[i], size[i], source.shape[0]) or not _read(
                cython.address(s), 0, i, base + start[i], base + start[i] + size[i]
            )
            bad += irregular[i]
            _end(cython.address(s), 0)
    return bad


def fill(
    source: cython.const[cython.uchar][::1],
    start: cython.const[cython.longlong][::1],
    size: cython.const[cython.longlong][::1],
    bodies: cython.const[cython.longlong][:, ::1],
    fields: cython.const[cython.longlong][:, ::1],
    scopes: cython.const[cython.longlong][:, ::1],
    ends: cython.const[cython.longlong][:, ::1],
    counts: cython.longlong[::1],
    marks: cython.longlong[::1],
    columns: list,
) -> bool:
    """Fill *columns*, writable contiguous arrays of zeros; return False if the bytes differ from those counted."""
    s: State
    base: u8p = bytes_of(source)
    i: cython.longlong
    ok: cython.bint = True
    if size.shape[0] != start.shape[0]:
        raise ValueError("the arrays of messages differ in length")
    _bind(cython.address(s), bodies, fields, scopes, ends, counts, marks)
    s.is_counting = False
    hold_buffers(cython.address(s.held), columns)
    with cython.nogil:
        for i in range(start.shape[0]):
            ok = (
                is_inside(start[i], size[i], source.shape[0])
                and _read(cython.address(s), 0, i, base + start[i], base + start[i] + size[i])
                and _end(cython.address(s), 0)
            )
            if not ok:
                break
    release_buffers(cython.address(s.held))
    return ok
