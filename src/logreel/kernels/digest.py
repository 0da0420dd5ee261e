"""Digests that tell payloads apart by their bytes: for comparing, not for signing.

Words of eight bytes, the last one filled with zeros, go through two chains side by side. Each step of a chain can be
undone, so two payloads of one size that differ in one word never have equal digests; others have by chance in 2**-128.
"""

import cython

if not cython.compiled:
    raise ImportError("logreel.kernels is not compiled: run `pip install -e .` (needs gcc)")

from cython.cimports.libc.string import memcpy
from cython.cimports.logreel.kernels.prefetch import prefetch_span

#: Messages ahead whose bytes are asked for.
AHEAD = cython.declare(cython.longlong, 8)
#: Odd, so that multiplying by them can be undone.
FIRST = cython.declare(cython.ulonglong, 0x9E3779B97F4A7C15)
SECOND = cython.declare(cython.ulonglong, 0xC2B2AE3D27D4EB4F)


def digest(
    data: cython.const[cython.uchar][::1],
    start: cython.const[cython.longlong][::1],
    size: cython.const[cython.longlong][::1],
    out: cython.ulonglong[:, ::1],
):
    """Digest n payloads.

    data   uint8[b]      payload i is data[start[i]:start[i] + size[i]]
    start  int64[n]
    size   int64[n]
    out    uint64[n, 2]  filled in place

    Returns how many were digested; fewer than n: that one does not lie in *data*.
    """
    n: cython.Py_ssize_t = start.shape[0]
    i: cython.Py_ssize_t
    done: cython.Py_ssize_t = 0
    end: cython.longlong = data.shape[0]
    left: cython.longlong
    a: cython.ulonglong
    b: cython.ulonglong
    w: cython.ulonglong
    first: cython.ulonglong = FIRST
    second: cython.ulonglong = SECOND
    p: cython.pointer[cython.const[cython.uchar]]
    # One byte of its own stands for no bytes, whose memory may have no address.
    base: cython.pointer[cython.const[cython.uchar]]
    base = cython.address(data[0]) if end else cython.cast(cython.pointer[cython.const[cython.uchar]], b"")
    with cython.nogil:
        for i in range(n):
            if start[i] < 0 or start[i] > end or size[i] < 0 or size[i] > end - start[i]:
                break
            done = i + 1
            if i + AHEAD < n and 0 <= start[i + AHEAD] < end:
                prefetch_span(base + start[i + AHEAD], 64)
            p = base + start[i]
            left = size[i]
            a = cython.cast(cython.ulonglong, left) * second
            b = ~a
            while left > 0:
                w = 0
                if left >= 8:
                    memcpy(cython.address(w), p, 8)
                else:
                    memcpy(cython.address(w), p, left)
                a = (a ^ w) * first
                a ^= a >> 29
                b = (b + w) * second
                b ^= b >> 32
                p += 8
                left -= 8
            out[i, 0] = a
            out[i, 1] = b
    return done
