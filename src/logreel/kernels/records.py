"""Kernels of writers: put payloads into records, and collect single messages until many are written at a time.

A record is a copy of its channel's header, in which the size and the time are filled in, and the payload.

heads    uint8[h]   the headers of all channels, one after another
headers  HEADER[k]  one row per channel:
    start       of its header in *heads*
    size        bytes of the header
    size_at     offset in it of the size of the payload, or -1
    size_width  bytes of that size
    size_add    number to add to the bytes of the payload
    time_at     offset of the time in the header, or -1
    form        how it is written: 0 u32 seconds and u32 nanoseconds, -1000 as u64 of us in the payload, -n as u64 of
                ns n times in a row, n as a float64 of n ns per unit
"""

import cython

if not cython.compiled:
    raise ImportError("logreel.kernels is not compiled: run `pip install -e .` (needs gcc)")

import numpy as np
from cython.cimports.cpython.bytes import PyBytes_AsString, PyBytes_Size
from cython.cimports.cpython.long import PyLong_AsLongLongAndOverflow
from cython.cimports.libc.string import memcpy
from cython.cimports.logreel.kernels.buffers import Buffers, hold_buffers, is_inside, release_buffers
from cython.cimports.logreel.kernels.clock import clock_now
from cython.cimports.logreel.kernels.debug import IS_DEBUG
from cython.cimports.logreel.kernels.loads import bytes_of
from cython.cimports.logreel.kernels.prefetch import prefetch_span

bytesp = cython.typedef(cython.pointer[cython.const[cython.uchar]])
Header = cython.struct(
    start=cython.longlong,
    size=cython.longlong,
    size_at=cython.longlong,
    size_width=cython.longlong,
    size_add=cython.longlong,
    time_at=cython.longlong,
    form=cython.longlong,
)
headerp = cython.typedef(cython.pointer[cython.const[Header]])

#: NumPy dtype of the rows of *headers*; a memoryview compares it with the struct above.
HEADER = [(name, "<i8") for name in ("start", "size", "size_at", "size_width", "size_add", "time_at", "form")]

#: Whether this is a debug build, which checks bounds.
DEBUG = bool(IS_DEBUG)

AHEAD = cython.declare(cython.longlong, 8)
INSIDE = cython.declare(cython.longlong, -1000)
#: The form of times in the payload, for callers.
MICROSECONDS_INSIDE = -1000
MOST = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF)


def count_channels(channel: cython.const[cython.int][::1], counts: cython.longlong[::1]):
    """Add to counts[k] how often k is in *channel*; raise IndexError for a number that is not a channel."""
    i: cython.Py_ssize_t
    k: cython.longlong
    ok: cython.bint = True
    with cython.nogil:
        for i in range(channel.shape[0]):
            k = channel[i]
            if k < 0 or k >= counts.shape[0]:
                ok = False
                break
            counts[k] += 1
    if not ok:
        raise IndexError("there is no channel of this number")


def payloads_inside(
    rooms: cython.const[cython.longlong][::1],
    which: cython.const[cython.int][::1],
    start: cython.const[cython.longlong][::1],
    size: cython.const[cython.longlong][::1],
):
    """Return whether every payload lies in its buffer.

    rooms  int64[b]  size of each buffer in bytes
    which  int32[n]  number of the buffer, or int32[0]: all lie in the first
    """
    n: cython.Py_ssize_t = start.shape[0]
    i: cython.Py_ssize_t
    room: cython.longlong = rooms[0]
    several: cython.bint = which.shape[0] > 0
    ok: cython.bint = True
    with cython.nogil:
        for i in range(n):
            if several:
                if which[i] < 0 or which[i] >= rooms.shape[0]:
                    ok = False
                    break
                room = rooms[which[i]]
            if not is_inside(start[i], size[i], room):
                ok = False
                break
    return ok


def record_offsets(
    channel: cython.const[cython.int][::1],
    size: cython.const[cython.longlong][::1],
    headers: cython.const[Header][::1],
    place: cython.longlong[::1],
):
    """Fill *place*, int64[n + 1], with the starts of consecutive records of these payloads, and the end."""
    n: cython.Py_ssize_t = channel.shape[0]
    i: cython.Py_ssize_t
    at: cython.longlong = 0
    with cython.nogil:
        for i in range(n):
            place[i] = at
            at += headers[channel[i]].size + size[i]
        place[n] = at


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _are_sound(headers: headerp, n: cython.longlong, room: cython.longlong) -> cython.bint:
    """Return whether all headers lie in *room* bytes, and what is filled in lies in them."""
    i: cython.longlong
    h: headerp
    width: cython.longlong
    for i in range(n):
        h = headers + i
        if not is_inside(h.start, h.size, room):
            return False
        if h.size_at >= 0 and not (h.size_width <= 8 and is_inside(h.size_at, h.size_width, h.size)):
            return False
        width = -8 * h.form if h.form < 0 else 8
        if h.time_at >= 0 and h.form != INSIDE and not is_inside(h.time_at, width, h.size):
            return False
    return True


def write_records(
    buffers: list,
    which: cython.const[cython.int][::1],
    channel: cython.const[cython.int][::1],
    time: cython.const[cython.longlong][::1],
    start: cython.const[cython.longlong][::1],
    size: cython.const[cython.longlong][::1],
    heads: cython.const[cython.uchar][::1],
    headers: cython.const[Header][::1],
    place: cython.const[cython.longlong][::1],
    out: cython.uchar[::1],
):
    """Write n records.

    buffers  payload i begins at byte start[i] of its buffer
    which    int32[n]   number of the buffer, or int32[0]: all lie in the first
    channel  int32[n]
    time     int64[n]   ns
    place    int64[n]   start of record i in *out*

    Raises IndexError for a payload outside of its buffer, a record outside of *out*, or a number that is no channel.
    """
    n: cython.Py_ssize_t = channel.shape[0]
    held: Buffers
    ok: cython.bint
    if n == 0:
        return
    if time.shape[0] < n or start.shape[0] < n or size.shape[0] < n or place.shape[0] < n:
        raise ValueError("the arrays of messages differ in length")
    if (which.shape[0] and which.shape[0] < n) or not buffers or headers.shape[0] == 0:
        raise IndexError("there is no buffer or no header of a message")
    hold_buffers(cython.address(held), buffers)
    with cython.nogil:
        ok = _are_sound(cython.address(headers[0]), headers.shape[0], heads.shape[0]) and _write(
            cython.address(held), which, channel, time, start, size, heads, headers, place, out
        )
    release_buffers(cython.address(held))
    if not ok:
        raise IndexError("a record or its payload lies outside of its buffer")


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _write(
    held: cython.pointer[Buffers],
    which: cython.const[cython.int][::1],
    channel: cython.const[cython.int][::1],
    time: cython.const[cython.longlong][::1],
    start: cython.const[cython.longlong][::1],
    size: cython.const[cython.longlong][::1],
    heads: cython.const[cython.uchar][::1],
    headers: cython.const[Header][::1],
    place: cython.const[cython.longlong][::1],
    out: cython.uchar[::1],
) -> cython.bint:
    """Write the records up to one that does not lie in its buffer; return whether all were written."""
    n: cython.Py_ssize_t = channel.shape[0]
    i: cython.Py_ssize_t
    k: cython.longlong
    t: cython.longlong
    end: cython.longlong = out.shape[0]
    head: headerp
    v: cython.ulonglong
    seconds: cython.longlong
    word: cython.uint
    number: cython.double
    several: cython.bint = which.shape[0] > 0
    room: cython.longlong = held.views[0].len
    b: bytesp = cython.cast(bytesp, held.views[0].buf)
    h: bytesp = bytes_of(heads)
    # Memory of 0 bytes may have no address, and nothing may be copied there, not even 0 bytes.
    none: cython.uchar = 0
    o: cython.pointer[cython.uchar] = cython.address(out[0]) if end else cython.address(none)
    p: cython.pointer[cython.uchar]
    for i in range(n):
        if i + AHEAD < n:
            if not several:
                prefetch_span(b + start[i + AHEAD], size[i + AHEAD])
            elif 0 <= which[i + AHEAD] < held.count:
                prefetch_span(
                    cython.cast(bytesp, held.views[which[i + AHEAD]].buf) + start[i + AHEAD], size[i + AHEAD]
                )
        if several:
            if not 0 <= which[i] < held.count:
                return False
            b = cython.cast(bytesp, held.views[which[i]].buf)
            room = held.views[which[i]].len
        k = channel[i]
        if k < 0 or k >= headers.shape[0]:
            return False
        head = cython.address(headers[k])
        if not is_inside(start[i], size[i], room) or not is_inside(place[i], head.size + size[i], end):
            return False
        p = o + place[i]
        memcpy(p, h + head.start, head.size)
        if head.size_at >= 0:
            v = cython.cast(cython.ulonglong, size[i] + head.size_add)
            memcpy(p + head.size_at, cython.address(v), head.size_width)
        memcpy(p + head.size, b + start[i], size[i])
        if head.time_at >= 0:
            if head.form == INSIDE:
                # Times too large for int64 were read as its maximum: keep the original bytes.
                if head.size + size[i] >= head.time_at + 8 and time[i] < MOST - 1000:
                    v = cython.cast(cython.ulonglong, time[i] // 1000)
                    memcpy(p + head.time_at, cython.address(v), 8)
            elif head.form == 0:
                seconds = time[i] // 1000000000
                word = cython.cast(cython.uint, seconds)
                memcpy(p + head.time_at, cython.address(word), 4)
                word = cython.cast(cython.uint, time[i] - seconds * 1000000000)
                memcpy(p + head.time_at + 4, cython.address(word), 4)
            elif head.form < 0:
                for t in range(-head.form):
                    memcpy(p + head.time_at + 8 * t, cython.address(time[i]), 8)
            else:
                number = cython.cast(cython.double, time[i]) / head.form
                memcpy(p + head.time_at, cython.address(number), 8)
    return True


def now():
    """Return the seconds of the clock that ``Batch.due`` refers to."""
    return clock_now()


@cython.cclass
class Batch:
    """Buffer for messages, which threads share: a call of ``add``, ``write`` or ``take`` is atomic to other threads.

    Where Python has a global lock, that is because no Python code runs within; a critical section costs nothing there.

    rows, room         capacity in messages, and in bytes of payloads
    channels           messages of channel numbers below this are accepted
    earliest, latest   range of accepted times in ns
    largest            greatest accepted payload in bytes
    due                from this time of ``now()`` on nothing is accepted
    other              called by ``write`` with messages that are not accepted
    """

    channels = cython.declare(cython.longlong, visibility="public")
    earliest = cython.declare(cython.longlong, visibility="public")
    latest = cython.declare(cython.longlong, visibility="public")
    largest = cython.declare(cython.longlong, visibility="public")
    due = cython.declare(cython.double, visibility="public")
    _other: object
    _rows: cython.Py_ssize_t
    _room: cython.Py_ssize_t
    _count: cython.Py_ssize_t
    _used: cython.Py_ssize_t
    _table: cython.longlong[:, ::1]
    _data: cython.uchar[::1]

    def __init__(self, rows, room, other=None):
        self._other, self._rows, self._room = other, rows, room
        self.channels, self.earliest, self.latest, self.largest, self.due = 0, 0, 0, 0, 0.0
        self._count = self._used = 0
        self._table, self._data = self._fresh(rows, room)

    def write(self, channel, time, data):
        """Add a message, or pass it to *other* if it is not accepted."""
        with cython.critical_section(self):
            is_added = self._add(channel, time, data)
        if not is_added:
            self._other(channel, time, data)

    def add(self, channel, time, data):
        """Add a message; return False, and change nothing, if it is not accepted.

        channel, time  accepted only as ``int``, no other type
        data           its payload, accepted only as ``bytes``
        """
        with cython.critical_section(self):
            return self._add(channel, time, data)

    @cython.cfunc
    @cython.inline
    def _add(self, channel, time, data) -> cython.bint:
        k: cython.longlong
        t: cython.longlong
        far: cython.int = 0
        beyond: cython.int = 0
        n: cython.Py_ssize_t
        i: cython.Py_ssize_t
        if type(data) is not bytes or type(channel) is not int or type(time) is not int:
            return False
        if clock_now() >= self.due:
            return False
        i, n = self._count, PyBytes_Size(data)
        if i == self._rows or n > self._room - self._used or n > self.largest:
            return False
        k = PyLong_AsLongLongAndOverflow(channel, cython.address(far))
        t = PyLong_AsLongLongAndOverflow(time, cython.address(beyond))
        if far or beyond or k < 0 or k >= self.channels or t < self.earliest or t > self.latest:
            return False
        self._table[0, i], self._table[1, i], self._table[2, i], self._table[3, i] = k, t, self._used, n
        if n:
            memcpy(cython.address(self._data[self._used]), PyBytes_AsString(data), n)
        self._used += n
        self._count = i + 1
        return True

    @cython.cfunc
    def _fresh(self, rows: cython.Py_ssize_t, room: cython.Py_ssize_t) -> tuple:
        return np.empty((4, rows), np.int64), np.empty(room, np.uint8)

    def take(self, last=False):
        """Return the messages since the last call: channel int32[n], time int64[n], data uint8[b], start, size.

        last  True: no message is accepted any more, and no memory is kept for any

        Payload i is data[start[i]:start[i] + size[i]]. Returns None if there are no messages.
        """
        fresh_table: cython.longlong[:, ::1]
        fresh_data: cython.uchar[::1]
        fresh_table, fresh_data = self._fresh(0, 0) if last else self._fresh(self._rows, self._room)
        n: cython.Py_ssize_t
        used: cython.Py_ssize_t
        with cython.critical_section(self):
            table, data = self._table, self._data
            n, used = self._count, self._used
            self._table, self._data = fresh_table, fresh_data
            self._count = self._used = 0
            if last:
                self._rows = self._room = 0
        if n == 0:
            return None
        channel, time, start, size = np.asarray(table)[:, :n]
        return channel.astype(np.int32), time, np.asarray(data)[:used], start, size
