"""Messages that come one by one, collected until they are written many at a time."""

import cython

if not cython.compiled:
    raise ImportError("logreel.kernels is not compiled: run `pip install -e .` (needs gcc)")

import numpy as np
from cython.cimports.cpython.bytes import PyBytes_AsString, PyBytes_Size
from cython.cimports.cpython.long import PyLong_AsLongLongAndOverflow
from cython.cimports.libc.string import memcpy
from cython.cimports.logreel.kernels.clock import clock_now


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
