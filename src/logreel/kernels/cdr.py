"""Kernel that writes messages in any encoding of CDR again without gaps, little-endian, as a Layout can describe them.

ops  int64[n, 6]: code, a, b, c, d, body: number of the ops right after it that are its body

     NUMBER   width count           numbers, aligned to their width
     NUMBERS  width                 a count, then so many numbers
     TEXT                           a count, then characters, the last of which is a NUL and left out
     WIDE                           the same of wide characters, which become UTF-8
     WCHAR    count                 wide characters, which become uint16
     LIST     least         body    a count, then the body so often; *least*: bytes that it takes at least
     REPEAT   count         body    the body so often
     BLOCK                  body    a size (DHEADER), then the body in so many bytes, the rest of which is passed
     DELIMITED              body    the same of MEMBERs, the last of which may be absent
     PARAMETERS version     body    MEMBERs with ids in any order: 1: up to a sentinel, 2: behind a size
     MEMBER   id default optional body   of these; *default*: bytes, zeros, that stand for an absent one
     OPTIONAL version id    body    a member that a parameter (1) or a flag (2) announces

     What is optional is written as a list of one item or none.

schemas/cdr.py writes these ops; nothing here checks them.
"""

import cython

if not cython.compiled:
    raise ImportError("logreel.kernels is not compiled: run `pip install -e .` (needs gcc)")

from cython.cimports.libc.string import memcpy, memset
from cython.cimports.logreel.kernels import ops as code
from cython.cimports.logreel.kernels.loads import NO_BYTES, u16, u32

u8p = cython.typedef(cython.pointer[cython.const[cython.uchar]])
mu8p = cython.typedef(cython.pointer[cython.uchar])
i64p = cython.typedef(cython.pointer[cython.const[cython.longlong]])

#: Op codes, for those who write ops.
NUMBER, NUMBERS, TEXT, WIDE, WCHAR = (
    code.CDR_NUMBER,
    code.CDR_NUMBERS,
    code.CDR_TEXT,
    code.CDR_WIDE,
    code.CDR_WCHAR,
)
LIST, REPEAT, BLOCK, DELIMITED = code.CDR_LIST, code.CDR_REPEAT, code.CDR_BLOCK, code.CDR_DELIMITED
PARAMETERS, MEMBER, OPTIONAL = code.CDR_PARAMETERS, code.CDR_MEMBER, code.CDR_OPTIONAL
#: What *left* says of a message that does not decode.
BAD = -1
#: Bytes that stand for absent members: a message may have so many, and so many more for each of its bytes.
FREE, FOR_EACH = 4096, 16
_FREE = cython.declare(cython.longlong, 4096)
_FOR_EACH = cython.declare(cython.longlong, 16)
#: Steps in the search for members of one message, for each of its bytes.
_STEPS = cython.declare(cython.longlong, 64)

#: A message: where its positions count from, its next byte and its end; how it is encoded; where the result goes.
State = cython.struct(
    base=u8p,
    next=u8p,
    stop=u8p,
    swap=cython.bint,
    most=cython.longlong,
    unit=cython.longlong,
    octets=cython.bint,
    out=mu8p,
    limit=mu8p,
    full=cython.bint,
    absent=cython.longlong,
    steps=cython.longlong,
)
statep = cython.typedef(cython.pointer[State])
#: A parameter: its id, whether it must be understood, its value, and where the next one begins.
Parameter = cython.struct(
    id=cython.longlong, must=cython.bint, value=u8p, size=cython.longlong, next=u8p, last=cython.bint
)
parameterp = cython.typedef(cython.pointer[Parameter])


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _align(s: statep, width: cython.longlong) -> cython.void:
    step: cython.longlong = width if width < s.most else s.most
    s.next += (s.base - s.next) & (step - 1)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _u32(s: statep, p: u8p) -> cython.longlong:
    v: cython.uint = u32(p)
    if s.swap:
        v = (v >> 24) | ((v >> 8) & 0xFF00) | ((v << 8) & 0xFF0000) | (v << 24)
    return v


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _u16(s: statep, p: u8p) -> cython.longlong:
    v: cython.longlong = u16(p)
    return ((v & 0xFF) << 8) | (v >> 8) if s.swap else v


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _count(s: statep) -> cython.longlong:
    """Read a number of 32 bits; -1 where there is none."""
    _align(s, 4)
    if s.stop - s.next < 4:
        return -1
    n: cython.longlong = _u32(s, s.next)
    s.next += 4
    return n


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _room(s: statep, n: cython.longlong) -> mu8p:
    """Return where *n* bytes of the result go; NULL where it is full."""
    p: mu8p = s.out
    if n > s.limit - p:
        s.full = True
        return cython.NULL
    s.out = p + n
    return p


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put_count(s: statep, n: cython.longlong) -> cython.bint:
    v: cython.uint = cython.cast(cython.uint, n)
    p: mu8p = _room(s, 4)
    if p == cython.NULL:
        return False
    memcpy(p, cython.address(v), 4)
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _zeros(s: statep, n: cython.longlong) -> cython.bint:
    """Write what stands for an absent member."""
    if n > s.absent:
        return False
    p: mu8p = _room(s, n)
    if p == cython.NULL:
        return False
    s.absent -= n
    memset(p, 0, n)
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _numbers(s: statep, width: cython.longlong, n: cython.longlong) -> cython.bint:
    _i: cython.longlong
    k: cython.longlong
    p: u8p
    d: mu8p
    if n == 0:
        return True
    _align(s, width)
    if n * width > s.stop - s.next:
        return False
    p = s.next
    d = _room(s, n * width)
    if d == cython.NULL:
        return False
    s.next = p + n * width
    if not s.swap or width == 1:
        memcpy(d, p, n * width)
        return True
    for _i in range(n):
        for k in range(width):
            d[k] = p[width - 1 - k]
        p += width
        d += width
    return True


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _unit(s: statep, p: u8p) -> cython.longlong:
    return _u32(s, p) if s.unit == 4 else _u16(s, p)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _wide(s: statep) -> cython.bint:
    """Write wide text as UTF-8; halves of surrogate pairs become U+FFFD."""
    n: cython.longlong = _count(s)
    size: cython.longlong
    i: cython.longlong = 0
    c: cython.longlong
    low: cython.longlong
    v: cython.uint
    p: u8p
    head: mu8p
    d: mu8p
    if n < 0:
        return False
    if s.octets:
        if n % s.unit:
            return False
        n = n // s.unit
    if n * s.unit > s.stop - s.next:
        return False
    p = s.next
    s.next = p + n * s.unit
    if n and _unit(s, p + (n - 1) * s.unit) == 0:
        n -= 1
    head = _room(s, 4)
    if head == cython.NULL:
        return False
    while i < n:
        c = _unit(s, p + i * s.unit)
        i += 1
        if 0xD800 <= c < 0xDC00 and i < n:
            low = _unit(s, p + i * s.unit)
            if 0xDC00 <= low < 0xE000:
                c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00)
                i += 1
        if c > 0x10FFFF:
            return False
        if 0xD800 <= c < 0xE000:
            c = 0xFFFD
        size = 1 if c < 0x80 else 2 if c < 0x800 else 3 if c < 0x10000 else 4
        d = _room(s, size)
        if d == cython.NULL:
            return False
        if size == 1:
            d[0] = cython.cast(cython.uchar, c)
        elif size == 2:
            d[0] = cython.cast(cython.uchar, 0xC0 | (c >> 6))
            d[1] = cython.cast(cython.uchar, 0x80 | (c & 0x3F))
        elif size == 3:
            d[0] = cython.cast(cython.uchar, 0xE0 | (c >> 12))
            d[1] = cython.cast(cython.uchar, 0x80 | ((c >> 6) & 0x3F))
            d[2] = cython.cast(cython.uchar, 0x80 | (c & 0x3F))
        else:
            d[0] = cython.cast(cython.uchar, 0xF0 | (c >> 18))
            d[1] = cython.cast(cython.uchar, 0x80 | ((c >> 12) & 0x3F))
            d[2] = cython.cast(cython.uchar, 0x80 | ((c >> 6) & 0x3F))
            d[3] = cython.cast(cython.uchar, 0x80 | (c & 0x3F))
    v = cython.cast(cython.uint, s.out - head - 4)
    memcpy(head, cython.address(v), 4)
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _wide_characters(s: statep, n: cython.longlong) -> cython.bint:
    i: cython.longlong
    c: cython.longlong
    v: cython.ushort
    d: mu8p
    _align(s, s.unit)
    if n * s.unit > s.stop - s.next:
        return False
    d = _room(s, 2 * n)
    if d == cython.NULL:
        return False
    for i in range(n):
        c = _unit(s, s.next)
        if c > 0xFFFF:
            return False
        v = cython.cast(cython.ushort, c)
        memcpy(d + 2 * i, cython.address(v), 2)
        s.next += s.unit
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _parameter(
    s: statep, version: cython.longlong, p: u8p, stop: u8p, least: cython.longlong, to: parameterp
) -> cython.bint:
    """Read the header of a parameter at *p*; False where its bytes do not lie before *stop*.

    least  0 for parameters of a list, which ends with a sentinel or, in version 2, at *stop*
    """
    head: cython.longlong
    length: cython.longlong
    more: cython.longlong
    p += (s.base - p) & 3
    to.last = version == 2 and stop - p < 4
    if to.last:
        to.next = stop
        return True
    if stop - p < 4:
        return False
    if version == 1:
        head = _u16(s, p)
        to.size = _u16(s, p + 2)
        to.must = (head & 0x4000) != 0
        to.id = head & 0x3FFF
        p += 4
        if to.id == 0x3F02 and least == 0:
            to.last = True
            to.next = p
            return True
        if to.id == 0x3F01:
            if stop - p < 8:
                return False
            head = _u32(s, p)
            to.size = _u32(s, p + 4)
            to.must = (head >> 30 & 1) != 0
            to.id = head & 0x0FFFFFFF
            p += 8
        elif to.id == 0x3F03:
            # Whoever reads it ignores it.
            to.id, to.must = -1, False
    else:
        head = _u32(s, p)
        to.must = (head >> 31) != 0
        to.id = head & 0x0FFFFFFF
        length = (head >> 28) & 7
        p += 4
        if length < 4:
            to.size = 1 << length
        else:
            if stop - p < 4:
                return False
            more = _u32(s, p)
            if length == 4:
                to.size = more
                p += 4
            else:
                # The size is the first number of the value itself.
                to.size = 4 + more * (1 if length == 5 else 4 if length == 6 else 8)
    if to.size > stop - p:
        return False
    to.value = p
    to.next = p + to.size
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _known(s: statep, op: i64p, last: i64p, wanted: cython.longlong) -> i64p:
    """Return the first MEMBER from *op* to *last* with an id; *last*: none."""
    while op < last and op[1] != wanted:
        s.steps -= 1
        op += 6 + 6 * op[5]
    return op


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _parameters(s: statep, version: cython.longlong, op: i64p, last: i64p) -> cython.bint:
    """Write the members of a list of parameters in the order of their definition."""
    n: cython.longlong
    first: u8p
    q: u8p
    begin: u8p
    end: u8p
    member: i64p = op
    at: Parameter
    wrapped: cython.bint
    if version == 2:
        n = _count(s)
        if n < 0 or n > s.stop - s.next:
            return False
        end = s.next + n
    else:
        end = s.stop
    # The list is checked, and its end found, before anything is taken from it.
    first = q = s.next
    while True:
        if not _parameter(s, version, q, end, 0, cython.address(at)):
            return False
        s.steps -= 1
        if at.last:
            break
        if at.must:
            member = _known(s, member, last, at.id)
            if member == last:
                member = _known(s, op, last, at.id)
                if member == last:
                    return False
        if s.steps < 0:
            return False
        q = at.next
    end = q if version == 1 else end
    s.next = at.next
    q = first
    while op < last:
        begin = q
        wrapped = False
        while True:
            s.steps -= 1
            if s.steps < 0:
                return False
            if (wrapped and q >= begin) or (q >= end and (wrapped or begin == first)):
                at.last = True
                break
            if q >= end:
                q = first
                wrapped = True
                continue
            if not _parameter(s, version, q, end, 0, cython.address(at)):
                return False
            if at.last:
                # Bytes before the end that are no parameter.
                q = end
                continue
            q = at.next
            if at.id == op[1]:
                break
        if at.last:
            q = begin
            if not _zeros(s, op[2]):
                return False
        elif (op[3] != 0 and not _put_count(s, 1)) or not _value(s, version, op, cython.address(at)):
            return False
        op += 6 + 6 * op[5]
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _value(s: statep, version: cython.longlong, op: i64p, at: parameterp) -> cython.bint:
    """Write the value of a parameter by the body of *op*, a MEMBER."""
    base: u8p = s.base
    stop: u8p = s.stop
    after: u8p = s.next
    done: cython.bint
    s.next, s.stop = at.value, at.value + at.size
    if version == 1:
        s.base = at.value
    done = _run(s, op + 6, op + 6 + 6 * op[5]) and s.next <= s.stop
    s.base, s.stop, s.next = base, stop, after
    return done


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _block(s: statep, op: i64p) -> cython.bint:
    """Write what lies behind a size."""
    n: cython.longlong = _count(s)
    stop: u8p = s.stop
    end: u8p
    member: i64p = op + 6
    last: i64p = member + 6 * op[5]
    if n < 0 or n > stop - s.next:
        return False
    s.stop = end = s.next + n
    if op[0] == code.CDR_BLOCK:
        if not _run(s, member, last):
            return False
    else:
        while member < last:
            if s.next >= end:
                if not _zeros(s, member[2]):
                    return False
            elif not _run(s, member + 6, member + 6 + 6 * member[5]):
                return False
            member += 6 + 6 * member[5]
    if s.next > end:
        return False
    s.next, s.stop = end, stop
    return True


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _optional(s: statep, op: i64p) -> cython.bint:
    at: Parameter
    flag: cython.longlong
    if op[1] == 2:
        if s.stop - s.next < 1:
            return False
        flag = s.next[0]
        s.next += 1
        if flag > 1 or not _put_count(s, flag):
            return False
        return flag == 0 or _run(s, op + 6, op + 6 + 6 * op[5])
    if not _parameter(s, 1, s.next, s.stop, 1, cython.address(at)) or at.id != op[2]:
        return False
    s.next = at.next
    if at.size == 0:
        return _put_count(s, 0)
    return _put_count(s, 1) and _value(s, 1, op, cython.address(at))


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _run(s: statep, op: i64p, last: i64p) -> cython.bint:
    """Carry out ops; False where the bytes do not fit, or the result is full."""
    n: cython.longlong
    _k: cython.longlong
    d: mu8p
    while op < last:
        if op[0] == code.CDR_NUMBER:
            if not _numbers(s, op[1], op[2]):
                return False
        elif op[0] == code.CDR_TEXT:
            n = _count(s)
            if n < 0 or n > s.stop - s.next or not _put_count(s, n - 1 if n else 0):
                return False
            d = _room(s, n - 1 if n else 0)
            if d == cython.NULL:
                return False
            memcpy(d, s.next, n - 1 if n else 0)
            s.next += n
        elif op[0] == code.CDR_NUMBERS:
            n = _count(s)
            if n < 0 or n > s.stop - s.next or not _put_count(s, n) or not _numbers(s, op[1], n):
                return False
        elif op[0] == code.CDR_LIST or op[0] == code.CDR_REPEAT:
            n = op[1]
            if op[0] == code.CDR_LIST:
                n = _count(s)
                if n < 0 or n * op[1] > s.stop - s.next or not _put_count(s, n):
                    return False
            for _k in range(n):
                if not _run(s, op + 6, op + 6 + 6 * op[5]):
                    return False
        elif op[0] == code.CDR_BLOCK or op[0] == code.CDR_DELIMITED:
            if not _block(s, op):
                return False
        elif op[0] == code.CDR_PARAMETERS:
            if not _parameters(s, op[1], op + 6, op + 6 + 6 * op[5]):
                return False
        elif op[0] == code.CDR_OPTIONAL:
            if not _optional(s, op):
                return False
        elif op[0] == code.CDR_WIDE:
            if not _wide(s):
                return False
        elif not _wide_characters(s, op[1]):
            return False
        op += 6 + 6 * op[5]
    return True


def rewrite(
    source: cython.const[cython.uchar][::1],
    start: cython.const[cython.longlong][::1],
    stop: cython.const[cython.longlong][::1],
    ops: cython.const[cython.longlong][:, ::1],
    how: tuple,
    out: cython.uchar[::1],
    places: cython.longlong[::1],
    left: cython.longlong[::1],
):
    """Write messages without gaps, one after another; return how many, fewer than all where *out* is full.

    source  uint8[b]
    start   int64[n]      message i is source[start[i]:stop[i]], the first four bytes of which are passed
    stop    int64[n]
    how     whether numbers are big-endian, the greatest alignment of numbers (8 or 4), the bytes of a wide character (2 or
            4), whether the count of wide text is one of bytes
    out     uint8[m]      20 times the bytes of a message and 8192 always hold it
    places  int64[n + 1]  set to where each message begins in *out*, and where the last one ends; those that do not
                          decode have no bytes there
    left    int64[n]      set to the bytes behind each message, BAD where it does not decode
    """
    rows: cython.Py_ssize_t = start.shape[0]
    size: cython.longlong = source.shape[0]
    room: cython.longlong = out.shape[0]
    i: cython.Py_ssize_t
    b: u8p = cython.address(source[0]) if size else NO_BYTES
    done: mu8p
    op: i64p
    last: i64p
    s: State
    if stop.shape[0] != rows or places.shape[0] != rows + 1 or left.shape[0] != rows or ops.shape[1] != 6:
        raise ValueError(
            "start, stop, places and left differ in length, or the program is not a table of ops"
        )
    if rows == 0:
        return 0
    if room == 0 or ops.shape[0] == 0:
        raise ValueError("there is no room, or no program")
    op = cython.address(ops[0, 0])
    last = op + 6 * ops.shape[0]
    s.swap, s.most, s.unit, s.octets = how[0], how[1], how[2], how[3]
    done = cython.address(out[0])
    s.limit = done + room
    places[0] = 0
    with cython.nogil:
        for i in range(rows):
            left[i] = -1
            if 0 <= start[i] and stop[i] - start[i] >= 4 and stop[i] <= size:
                s.base = s.next = b + start[i] + 4
                s.stop = b + stop[i]
                s.out = done
                s.full = False
                s.absent = _FREE + _FOR_EACH * (stop[i] - start[i])
                s.steps = _STEPS * (stop[i] - start[i]) + _FREE
                if _run(cython.address(s), op, last) and s.next <= s.stop:
                    left[i] = s.stop - s.next
                    done = s.out
                elif s.full:
                    break
            places[i + 1] = done - cython.address(out[0])
        else:
            i = rows
    return i
