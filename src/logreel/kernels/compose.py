"""Put payloads into records: before each a copy of its channel's head, in which the size and the time are filled in.

heads  uint8[h]     the heads of all channels, one after another
shape  int64[k, 5]  per channel: start of its head, bytes of it, place of the size in the head or -1, bytes of the size,
                    what to add to the payload's bytes
stamp  int64[k, 2]  per channel: place of the time in the head or -1, and how it is written: 0 u32 seconds and u32
                    nanoseconds, -1000 as u64 of us in the payload, -n as u64 of ns n times in a row, else that many
                    ns per unit of a float64
"""

import cython

if not cython.compiled:
    raise ImportError("logreel.kernels is not compiled: run `pip install -e .` (needs gcc)")

from cython.cimports.libc.string import memcpy
from cython.cimports.logreel.kernels.prefetch import prefetch_span

bytesp = cython.typedef(cython.pointer[cython.const[cython.uchar]])

AHEAD = cython.declare(cython.longlong, 8)
INSIDE = cython.declare(cython.longlong, -1000)
MOST = cython.declare(cython.longlong, 0x7FFFFFFFFFFFFFFF)


def tally(channel: cython.const[cython.int][::1], counts: cython.longlong[::1]):
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


def inside(
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


def places(
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


def compose(
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
