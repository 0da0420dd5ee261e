"""Kernel that turns single messages of any layout into dicts.

ops  6 numbers each: code, name, a, b, c, body. *name* is the number of a name, -1: the value is not shown. *body* is the
     number of ops right after it that are the members of a STRUCT, or the item of an array.

        0 to 11                a number, by its place in ``layout.nodes.SCALARS``
        NUMBERS code  count    a list of numbers
        TIME    signed         seconds and nanoseconds, as ns
        TEXT    bytes          text up to the first NUL
        STRUCT                 a dict of the members that are shown
        ITEMS   count          a list of items of fixed size
        REPEAT  count least    a list of items of variable size
        STRING  prefix grid tail   a count of *prefix* bytes, then text, of which the last *tail* bytes are hidden
        BYTES   prefix         a count, then bytes
        COUNTED prefix code    a count, then a list of numbers
        LIST    prefix least grid  a count, then a list of items
        REST    text           all remaining bytes; *text*: characters, else opaque bytes
        NEED    bytes          so many bytes must remain: those of the numbers, times, texts and ITEMS up to the next NEED
        MOVE    bytes          skips bytes that a NEED has checked
        ALIGN   grid           padding up to the next position of a grid
        EXPECT  bytes value    that many bytes (at most 8), which must have this value

        *least* is the least size of an item. A *grid* is a number as in ``kernels.layout``; 0 means none.

layout/decode.py writes these ops; nothing here checks them.
"""

import cython

if not cython.compiled:
    raise ImportError("logreel.kernels is not compiled: run `pip install -e .` (needs gcc)")

from cython.cimports.cpython.buffer import Py_buffer, PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize
from cython.cimports.cpython.dict import PyDict_Copy, PyDict_SetItem
from cython.cimports.cpython.list import PyList_Append
from cython.cimports.cpython.ref import PyObject
from cython.cimports.cpython.unicode import PyUnicode_DecodeUTF8
from cython.cimports.libc.stdlib import free, malloc
from cython.cimports.libc.string import memchr, memcmp, memcpy
from cython.cimports.logreel.kernels import ops as code
from cython.cimports.logreel.kernels.debug import check
from cython.cimports.logreel.kernels.loads import NO_BYTES, gap, prefix, u16, u32, u64

u8p = cython.typedef(cython.pointer[cython.const[cython.uchar]])
charp = cython.typedef(cython.pointer[cython.const[cython.char]])
i64p = cython.typedef(cython.pointer[cython.const[cython.longlong]])
mi64p = cython.typedef(cython.pointer[cython.longlong])
objectsp = cython.typedef(cython.pointer[cython.pointer[PyObject]])

#: Op codes, for those who write ops.
NUMBERS, TIME, TEXT, STRUCT = code.VALUE_NUMBERS, code.VALUE_TIME, code.VALUE_TEXT, code.VALUE_STRUCT
ITEMS, REPEAT, STRING, BYTES = code.VALUE_ITEMS, code.VALUE_REPEAT, code.VALUE_STRING, code.VALUE_BYTES
COUNTED, LIST, REST = code.VALUE_COUNTED, code.VALUE_LIST, code.VALUE_REST
NEED, MOVE, ALIGN, EXPECT = code.VALUE_NEED, code.VALUE_MOVE, code.VALUE_ALIGN, code.VALUE_EXPECT
#: Why a message does not decode: it ends too early, has other bytes than expected, or too many items without bytes.
SHORT, OTHER, TOO_MANY = 1, 2, 3
#: As ``kernels.layout.SPARE``.
_SPARE = cython.declare(cython.longlong, 1 << 16)
#: Texts up to this size are copied to the stack before they are decoded.
SMALL = cython.declare(cython.longlong, 512)

#: A message, and where its next value begins.
Message = cython.struct(base=u8p, next=u8p, stop=u8p, data=cython.pointer[PyObject])
messagep = cython.typedef(cython.pointer[Message])


@cython.cfunc
@cython.inline
def _number(scalar: cython.longlong, p: u8p) -> object:
    f4: cython.float
    f8: cython.double
    if scalar == code.VALUE_FLOAT64:
        memcpy(cython.address(f8), p, 8)
        return f8
    if scalar == code.VALUE_FLOAT32:
        memcpy(cython.address(f4), p, 4)
        return cython.cast(cython.double, f4)
    if scalar == code.VALUE_UINT32:
        return u32(p)
    if scalar == code.VALUE_INT32:
        return cython.cast(cython.int, u32(p))
    if scalar == code.VALUE_UINT8:
        return cython.cast(cython.int, p[0])
    if scalar == code.VALUE_UINT64:
        return u64(p)
    if scalar == code.VALUE_INT64:
        return cython.cast(cython.longlong, u64(p))
    if scalar == code.VALUE_UINT16:
        return u16(p)
    if scalar == code.VALUE_INT16:
        return cython.cast(cython.int, cython.cast(cython.short, u16(p)))
    if scalar == code.VALUE_BOOL:
        return True if p[0] else False
    return cython.cast(cython.int, cython.cast(cython.schar, p[0]))


@cython.cfunc
@cython.inline
def _list_of_numbers(scalar: cython.longlong, width: cython.longlong, p: u8p, n: cython.longlong) -> list:
    _i: cython.longlong
    out: list = []
    for _i in range(n):
        PyList_Append(out, _number(scalar, p))
        p += width
    return out


@cython.cfunc
def _text(p: u8p, n: cython.longlong) -> object:
    small: cython.char[512]
    # The decoder reads its bytes several times, and another process may change those of a file meanwhile.
    if n <= SMALL:
        memcpy(small, p, n)
        return PyUnicode_DecodeUTF8(small, n, b"replace")
    copied: bytes = PyBytes_FromStringAndSize(cython.cast(charp, p), n)
    return copied.decode("utf-8", "replace")


@cython.final
@cython.cclass
class MessageDecoder:
    """A function from the bytes of a message to a dict.

    ops      a flat list of numbers, see above; the first op is a STRUCT, or ops without a value before it
    objects  names of members, and a dict with the names of each STRUCT
    refuse   called with the message, SHORT, OTHER or TOO_MANY, the position, the bytes that are needed there, and those
             that are expected: raises the error
    """

    _ops: mi64p
    _end: mi64p
    _objects: tuple
    _object: objectsp
    _refuse: object

    def __cinit__(self, ops: list, objects: tuple, refuse):
        i: cython.Py_ssize_t
        self._objects, self._refuse = objects, refuse
        self._ops = cython.cast(mi64p, malloc((len(ops) + 1) * cython.sizeof(cython.longlong)))
        self._object = cython.cast(
            objectsp, malloc((len(objects) + 1) * cython.sizeof(cython.pointer[PyObject]))
        )
        if self._ops == cython.NULL or self._object == cython.NULL:
            raise MemoryError
        for i in range(len(ops)):
            self._ops[i] = ops[i]
        self._end = self._ops + len(ops)
        for i in range(len(objects)):
            self._object[i] = cython.cast(cython.pointer[PyObject], objects[i])

    def __dealloc__(self):
        free(self._ops)
        free(self._object)

    @cython.cfunc
    def _fail(self, m: messagep, why: cython.int, need: cython.longlong, expected: bytes) -> cython.int:
        self._refuse(cython.cast(object, m.data), why, m.next - m.base, need, expected)
        raise ValueError("a message does not decode")

    @cython.cfunc
    @cython.inline
    @cython.exceptval(-1)
    def _need(self, m: messagep, n: cython.longlong) -> cython.int:
        return 0 if n <= m.stop - m.next else self._fail(m, SHORT, n, b"")

    @cython.cfunc
    @cython.inline
    @cython.exceptval(-1)
    def _count(self, m: messagep, width: cython.longlong) -> cython.longlong:
        """Read a count; *m* is then behind it."""
        self._need(m, width)
        n: cython.longlong = prefix(m.next, width)
        m.next += width
        return n

    @cython.cfunc
    @cython.exceptval(-1)
    def _step(self, m: messagep, op: i64p) -> cython.int:
        """Carry out an op without a value."""
        n: cython.longlong = op[2]
        if op[0] == code.VALUE_NEED:
            return self._need(m, n)
        if op[0] == code.VALUE_ALIGN:
            n = gap(n, m.next - m.base)
            self._need(m, n)
        elif op[0] == code.VALUE_EXPECT:
            self._need(m, n)
            if memcmp(m.next, cython.address(op[3]), n) != 0:
                self._fail(
                    m, OTHER, n, PyBytes_FromStringAndSize(cython.cast(charp, cython.address(op[3])), n)
                )
        m.next += n
        return 0

    @cython.cfunc
    def _value(self, m: messagep, op: i64p) -> object:
        """Return the value of an op, and move *m* behind it."""
        p: u8p = m.next
        nul: u8p
        n: cython.longlong = op[2]
        size: cython.longlong
        if op[0] <= code.VALUE_FLOAT64:
            check(b"message", n <= m.stop - p)
            m.next = p + n
            return _number(op[0], p)
        if op[0] == code.VALUE_STRUCT:
            return self._struct(m, op)
        if op[0] == code.VALUE_STRING:
            if op[3]:
                n = gap(op[3], p - m.base)
                self._need(m, n)
                m.next = p + n
            n = self._count(m, op[2])
            self._need(m, n)
            p = m.next
            m.next = p + n
            return _text(p, n - op[4] if n > op[4] else 0)
        if op[0] == code.VALUE_TIME:
            check(b"message", 8 <= m.stop - p)
            m.next = p + 8
            if n:
                return cython.cast(cython.longlong, cython.cast(cython.int, u32(p))) * 1000000000 + (
                    cython.cast(cython.int, u32(p + 4))
                )
            return cython.cast(cython.longlong, u32(p)) * 1000000000 + u32(p + 4)
        if op[0] == code.VALUE_NUMBERS:
            size = op[3] * op[4]
            check(b"message", size <= m.stop - p)
            m.next = p + size
            return _list_of_numbers(n, op[4], p, op[3])
        if op[0] == code.VALUE_TEXT:
            check(b"message", n <= m.stop - p)
            m.next = p + n
            nul = cython.cast(u8p, memchr(p, 0, n))
            return _text(p, n if nul == cython.NULL else nul - p)
        if op[0] == code.VALUE_COUNTED:
            n = self._count(m, n)
            size = n * op[4]
            self._need(m, size)
            p = m.next
            m.next = p + size
            return _list_of_numbers(op[3], op[4], p, n)
        if op[0] == code.VALUE_BYTES or op[0] == code.VALUE_REST:
            if op[0] == code.VALUE_REST:
                m.next = m.stop
                if n:
                    return _text(p, m.stop - p)
                return PyBytes_FromStringAndSize(cython.cast(charp, p), m.stop - p)
            n = self._count(m, n)
            self._need(m, n)
            p = m.next
            m.next = p + n
            return PyBytes_FromStringAndSize(cython.cast(charp, p), n)
        if op[0] == code.VALUE_LIST:
            n = self._count(m, n)
            if op[4] and n:
                m.next += gap(op[4], m.next - m.base)
            self._need(m, n * op[3])
            if op[3] == 0 and n > m.stop - m.base + _SPARE:
                self._fail(m, TOO_MANY, 0, b"")
        elif op[0] == code.VALUE_REPEAT:
            self._need(m, n * op[3])
        return self._list(m, op, n)

    @cython.cfunc
    def _list(self, m: messagep, op: i64p, n: cython.longlong) -> list:
        first: i64p = op + 6
        last: i64p = first + 6 * op[5]
        q: i64p
        _i: cython.longlong
        out: list = []
        for _i in range(n):
            q = first
            while q < last:
                if q[0] >= code.VALUE_NEED:
                    self._step(m, q)
                else:
                    PyList_Append(out, self._value(m, q))
                q += 6 + 6 * q[5]
        return out

    @cython.cfunc
    def _struct(self, m: messagep, op: i64p) -> dict:
        q: i64p = op + 6
        last: i64p = q + 6 * op[5]
        # A copy has the table of its names already.
        out: dict = PyDict_Copy(cython.cast(object, self._object[op[2]]))
        while q < last:
            if q[0] >= code.VALUE_NEED:
                self._step(m, q)
            else:
                value = self._value(m, q)
                if q[1] >= 0:
                    PyDict_SetItem(out, cython.cast(object, self._object[q[1]]), value)
            q += 6 + 6 * q[5]
        return out

    @cython.always_allow_keywords(False)
    def decode(self, data):
        """Return the values of one message, contiguous bytes; bytes after the last member are ignored."""
        view: Py_buffer
        m: Message
        op: i64p = self._ops
        PyObject_GetBuffer(data, cython.address(view), PyBUF_SIMPLE)
        try:
            m.data = cython.cast(cython.pointer[PyObject], data)
            m.base = m.next = cython.cast(u8p, view.buf) if view.len else NO_BYTES
            m.stop = m.base + view.len
            while op[0] >= code.VALUE_NEED:
                self._step(cython.address(m), op)
                op += 6
            return self._value(cython.address(m), op)
        finally:
            PyBuffer_Release(cython.address(view))
