"""Kernels of writers: put payloads into records, and collect single messages until many are written at a time.

A record is a copy of its channel's header, in which the size and the time are filled in, and the payload.

heads  uint8[h]     the headers of all channels, one after another
shape  int64[k, 5]  per channel: start of its header, bytes of it, offset of the size in it or -1, bytes of the size,
                    number to add to the bytes of the payload
stamp  int64[k, 2]  per channel: offset of the time in the header or -1, and how it is written: 0 u32 seconds and u32
                    nanoseconds, -1000 as u64 of us in the payload, -n as u64 of ns n times in a row, else that many
                    ns per unit of a float64
"""

import cython

if not cython.compiled:
    raise ImportError("logreel.kernels is not compiled: run `pip install -e .` (needs gcc)")

import numpy as np
from cython.cimports.cpython.bytes import PyBytes_AsString, PyBytes_Size
from cython.cimports.cpython.long import PyLong_AsLongLongAndOverflow
from cython.cimports.libc.string import memcpy
from cython.cimports.logreel.kernels.clock import clock_now
from cython.cimports.logreel.kernels.prefetch import prefetch_span

bytesp = cython.typedef(cython.pointer[cython.const[cython.uchar]])

AHEAD = cython.declare(cython.longlong, 8)
INSIDE = cython.declare(cython.longlong, -1000)
MOST = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF)


def count_channels(channel: cython.const[cython.int][::1], counts: cython.longlong[::1]):
    """Add to counts[k] how often k is in *channel*. Raises IndexError for what is no number of a channel."""
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
    """Whether every payload lies in its buffer.

    rooms  int64[b]  bytes of each buffer
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
            # Subtracted, so that no sum can overflow.
            if start[i] < 0 or size[i] < 0 or start[i] > room or size[i] > room - start[i]:
                ok = False
                break
    return ok


def record_offsets(
    channel: cython.const[cython.int][::1],
    size: cython.const[cython.longlong][::1],
    shape: cython.const[cython.longlong][:, ::1],
    place: cython.longlong[::1],
):
    """Where records of these payloads begin, one after another, and where the last one ends: n + 1 numbers."""
    n: cython.Py_ssize_t = channel.shape[0]
    i: cython.Py_ssize_t
    at: cython.longlong = 0
    with cython.nogil:
        for i in range(n):
            place[i] = at
            at += shape[channel[i], 1] + size[i]
        place[n] = at


def write_records(
    buffers: cython.const[cython.longlong][::1],
    which: cython.const[cython.int][::1],
    channel: cython.const[cython.int][::1],
    time: cython.const[cython.longlong][::1],
    start: cython.const[cython.longlong][::1],
    size: cython.const[cython.longlong][::1],
    heads: cython.const[cython.uchar][::1],
    shape: cython.const[cython.longlong][:, ::1],
    stamp: cython.const[cython.longlong][:, ::1],
    place: cython.const[cython.longlong][::1],
    out: cython.uchar[::1],
):
    """Write n records; nothing here checks bounds.

    buffers  int64[b]   addresses: payload i begins start[i] bytes behind that of its buffer
    which    int32[n]   number of the buffer, or int32[0]: all lie in the first
    channel  int32[n]
    time     int64[n]   ns
    place    int64[n]   where record i begins in *out*
    """
    n: cython.Py_ssize_t = channel.shape[0]
    i: cython.Py_ssize_t
    t: cython.longlong
    k: cython.longlong
    v: cython.ulonglong
    seconds: cython.longlong
    word: cython.uint
    number: cython.double
    several: cython.bint = which.shape[0] > 0
    p: cython.pointer[cython.uchar]
    b: cython.pointer[cython.const[cython.uchar]]
    if n == 0 or out.shape[0] == 0:
        return
    with cython.nogil:
        b = cython.cast(bytesp, cython.cast(cython.size_t, buffers[0]))
        for i in range(n):
            if i + AHEAD < n:
                if several:
                    b = cython.cast(bytesp, cython.cast(cython.size_t, buffers[which[i + AHEAD]]))
                prefetch_span(b + start[i + AHEAD], size[i + AHEAD])
            if several:
                b = cython.cast(bytesp, cython.cast(cython.size_t, buffers[which[i]]))
            k = channel[i]
            p = cython.address(out[0]) + place[i]
            memcpy(p, cython.address(heads[0]) + shape[k, 0], shape[k, 1])
            if shape[k, 2] >= 0:
                v = cython.cast(cython.ulonglong, size[i] + shape[k, 4])
                memcpy(p + shape[k, 2], cython.address(v), shape[k, 3])
            memcpy(p + shape[k, 1], b + start[i], size[i])
            if stamp[k, 0] >= 0:
                if stamp[k, 1] == INSIDE:
                    # Absurd times read as the greatest one there is; what stands there says more.
                    if shape[k, 1] + size[i] >= stamp[k, 0] + 8 and time[i] < MOST - 1000:
                        v = cython.cast(cython.ulonglong, time[i] // 1000)
                        memcpy(p + stamp[k, 0], cython.address(v), 8)
                elif stamp[k, 1] == 0:
                    seconds = time[i] // 1000000000
                    word = cython.cast(cython.uint, seconds)
                    memcpy(p + stamp[k, 0], cython.address(word), 4)
                    word = cython.cast(cython.uint, time[i] - seconds * 1000000000)
                    memcpy(p + stamp[k, 0] + 4, cython.address(word), 4)
                elif stamp[k, 1] < 0:
                    for t in range(-stamp[k, 1]):
                        memcpy(p + stamp[k, 0] + 8 * t, cython.address(time[i]), 8)
                else:
                    number = cython.cast(cython.double, time[i]) / stamp[k, 1]
                    memcpy(p + stamp[k, 0], cython.address(number), 8)


def now():
    """Seconds of the clock by which a Batch is due."""
    return clock_now()


@cython.cclass
class Batch:
    """Room for messages; ``add`` is one step to other threads, so it needs no lock.

    rows, room         how many messages it holds, and how many bytes of payloads
    channels           numbers below this are taken
    earliest, latest   times in ns that are taken
    largest            bytes of a payload that are taken
    due                once ``now()`` has come here, nothing is taken
    other              called by ``write`` with what is not taken
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
        self.take()

    def write(self, channel, time, data):
        """Take a message, or give it to *other*."""
        if not self._add(channel, time, data):
            self._other(channel, time, data)

    def add(self, channel, time, data):
        """Take a message; False, and nothing is done, where it must go another way.

        channel, time  numbers; other than plain integers are not taken
        data           its payload; other than bytes is not taken
        """
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

    def take(self):
        """What was collected since the last time: channel int32[n], time int64[n], data uint8[b], start and size.

        Payload i is data[start[i]:start[i] + size[i]]. None where there is nothing.
        """
        fresh_table: cython.longlong[:, ::1] = np.empty((4, self._rows), np.int64)
        fresh_data: cython.uchar[::1] = np.empty(self._room, np.uint8)
        # From here to the end of this stretch nothing runs that could let another thread in.
        table, data = self._table, self._data
        n: cython.Py_ssize_t = self._count
        used: cython.Py_ssize_t = self._used
        self._table, self._data = fresh_table, fresh_data
        self._count = self._used = 0
        if n == 0:
            return None
        channel, time, start, size = np.asarray(table)[:, :n]
        return channel.astype(np.int32), time, np.asarray(data)[:used], start, size
