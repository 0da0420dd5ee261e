"""Kernels of pyramids: least and greatest value of groups of 16 rows, of 16 such groups, and so on, with their places.

A level has for each group of 16 items of the level below: *least* and *most*, float64, NaN if the group has no number;
*least_at* and *most_at*, uint8, which of the items that is, the first one of equals, NONE if the group has no number.
Levels follow each other in the arrays, the finest first; level k begins at begin[k] and ends at begin[k + 1].
Pyramids come from files that are not trusted: places outside of a group or a level lead to no row, never outside of an
array.
"""

import cython

if not cython.compiled:
    raise ImportError("logreel.kernels is not compiled: run `pip install -e .` (needs gcc)")

from cython.cimports.libc.math import NAN
from cython.cimports.logreel.kernels.extremes import extremes

FACTOR, NONE = 16, 255
#: Levels of a pyramid of 2^63 rows.
MOST_LEVELS = 16

_NONE = cython.declare(cython.uchar, 255)

Best = cython.struct(value=cython.double, level=cython.longlong, at=cython.longlong)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _first_bit(mask: cython.uint) -> cython.uchar:
    """Return the number of the lowest of the 16 bits of a mask that is set, by halves."""
    at: cython.uint = 0
    step: cython.uint
    step = cython.cast(cython.uint, (mask & 0xFF) == 0) << 3
    at += step
    mask >>= step
    step = cython.cast(cython.uint, (mask & 0xF) == 0) << 2
    at += step
    mask >>= step
    step = cython.cast(cython.uint, (mask & 3) == 0) << 1
    at += step
    mask >>= step
    return cython.cast(cython.uchar, at + cython.cast(cython.uint, (mask & 1) == 0))


def fold(
    low: cython.const[cython.double][::1],
    high: cython.const[cython.double][::1],
    least: cython.double[::1],
    most: cython.double[::1],
    least_at: cython.uchar[::1],
    most_at: cython.uchar[::1],
):
    """Fill a level from the one below.

    low, high  float64[n]: least and greatest values of the level below; the same array for the rows themselves
    others     [ceil(n / 16)]: filled

    Returns the number of groups; raises ValueError if an array is too small.
    """
    n: cython.Py_ssize_t = low.shape[0]
    groups: cython.Py_ssize_t = (n + 15) // 16
    i: cython.Py_ssize_t
    j: cython.Py_ssize_t
    end: cython.Py_ssize_t
    a: cython.double
    b: cython.double
    v: cython.double
    at_low: cython.uint
    at_high: cython.uint
    ai: cython.uchar
    bi: cython.uchar
    if (
        high.shape[0] < n
        or least.shape[0] < groups
        or most.shape[0] < groups
        or least_at.shape[0] < groups
        or most_at.shape[0] < groups
    ):
        raise ValueError("a level has a value and a place for each group")
    with cython.nogil:
        for i in range(groups):
            end = 16 if 16 * i + 16 <= n else n - 16 * i
            if end == 16 and extremes(
                cython.address(low[16 * i]),
                cython.address(high[16 * i]),
                cython.address(least[i]),
                cython.address(most[i]),
                cython.address(at_low),
                cython.address(at_high),
            ):
                least_at[i] = _first_bit(at_low)
                most_at[i] = _first_bit(at_high)
                continue
            # A group with NaN, or the last one: it starts with the first number, if it has any.
            a = low[16 * i]
            b = high[16 * i]
            ai = 0
            bi = 0
            for j in range(1, end):
                v = low[16 * i + j]
                # NaN compares false: it never replaces a number, and is replaced by the first one.
                if v < a or (a != a and v == v):
                    a = v
                    ai = cython.cast(cython.uchar, j)
                v = high[16 * i + j]
                if v > b or (b != b and v == v):
                    b = v
                    bi = cython.cast(cython.uchar, j)
            least[i] = a
            most[i] = b
            least_at[i] = ai if a == a else _NONE
            most_at[i] = bi if b == b else _NONE
    return groups


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _look(
    best: cython.pointer[Best],
    value: cython.double,
    level: cython.longlong,
    at: cython.longlong,
    sign: cython.double,
) -> cython.void:
    """Take a value if it is less than the best one so far, for sign -1 if it is greater."""
    if sign * value < sign * best.value or (best.value != best.value and value == value):
        best.value = value
        best.level = level
        best.at = at


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _row(
    level: cython.longlong,
    at: cython.longlong,
    begin: cython.const[cython.longlong][::1],
    place: cython.const[cython.uchar][::1],
    rows: cython.longlong,
) -> cython.longlong:
    """Return the row of the value of a group; -1 if the places in the pyramid lead to none."""
    step: cython.longlong
    count: cython.longlong
    while level > 0:
        level -= 1
        step = place[begin[level] + at]
        at = 16 * at + step
        count = begin[level] - begin[level - 1] if level > 0 else rows
        if step >= 16 or at >= count:
            return -1
    return at if at < rows else -1


def extrema(
    edge: cython.const[cython.longlong][::1],
    group: cython.const[cython.longlong][::1],
    raw: cython.const[cython.double][:, ::1],
    begin: cython.const[cython.longlong][::1],
    least: cython.const[cython.double][::1],
    most: cython.const[cython.double][::1],
    least_at: cython.const[cython.uchar][::1],
    most_at: cython.const[cython.uchar][::1],
    rows: cython.longlong,
    out: cython.longlong[:, ::1],
):
    """Find the first row with the least and the first with the greatest value of each range of rows.

    edge    int64[q + 1]  ascending rows: range i is edge[i] <= row < edge[i + 1]; the caller has checked that they ascend
                          from 0 or more to *rows* or less
    group   int64[g]      ascending numbers of the groups of 16 rows that hold an edge not at their begin
    raw     float64[g, 16]  the values of these rows
    begin   int64[k + 1]  where each level begins, and the last one ends; the caller has checked that level i has as
                          many groups as a pyramid of *rows* has, and that the arrays end not before begin[k]
    out     int64[q, 2]   filled: rows of least and greatest value, -1 for ranges without a number

    Raises ValueError if a group of an edge is missing.
    """
    q: cython.Py_ssize_t = edge.shape[0] - 1
    levels: cython.longlong = begin.shape[0] - 1
    i: cython.Py_ssize_t
    side: cython.Py_ssize_t
    k: cython.longlong
    j: cython.longlong
    a: cython.longlong
    b: cython.longlong
    inner: cython.longlong
    first: cython.longlong
    at: cython.longlong
    found: cython.Py_ssize_t = 0
    low: cython.Py_ssize_t
    missing: cython.bint = False
    best: Best[2]
    # Ends of the groups of each level that are looked at after those of coarser levels.
    tail: cython.longlong[16]
    top: cython.longlong
    if (
        out.shape[0] < q
        or out.shape[1] < 2
        or raw.shape[0] < group.shape[0]
        or raw.shape[1] < 16
        or levels > 16
    ):
        raise ValueError("arrays do not fit together")
    with cython.nogil:
        for i in range(q):
            best[0].value = best[1].value = NAN
            best[0].level = best[1].level = best[0].at = best[1].at = -1
            a = edge[i]
            b = edge[i + 1]
            # Rows up to the next group, one by one.
            first = a >> 4
            inner = (first + 1) << 4
            if a < b and (a & 15 or b < inner):
                while found < group.shape[0] and group[found] < first:
                    found += 1
                if found >= group.shape[0] or group[found] != first:
                    missing = True
                    break
                while a < b and a < inner:
                    _look(cython.address(best[0]), raw[found, a & 15], 0, a, 1)
                    _look(cython.address(best[1]), raw[found, a & 15], 0, a, -1)
                    a += 1
            # Rows behind the last whole group come last.
            tail[0] = b
            k = 0
            a = (a + 15) >> 4
            b = b >> 4
            top = 0
            # Up: groups to the next coarser one; here a and b are groups of level k, of which item k - 1 are groups.
            while a < b:
                if k + 1 >= levels or k + 1 >= 15 or (b >> 4) <= ((a + 15) >> 4):
                    for j in range(a, b):
                        _look(cython.address(best[0]), least[begin[k] + j], k + 1, j, 1)
                        _look(cython.address(best[1]), most[begin[k] + j], k + 1, j, -1)
                    break
                while a & 15:
                    _look(cython.address(best[0]), least[begin[k] + a], k + 1, a, 1)
                    _look(cython.address(best[1]), most[begin[k] + a], k + 1, a, -1)
                    a += 1
                k += 1
                tail[k] = b
                a = a >> 4
                b = b >> 4
                top = k
            # Down: the groups behind the last whole coarser one.
            for k in range(top, 0, -1):
                for j in range(tail[k] & ~cython.cast(cython.longlong, 15), tail[k]):
                    _look(cython.address(best[0]), least[begin[k - 1] + j], k, j, 1)
                    _look(cython.address(best[1]), most[begin[k - 1] + j], k, j, -1)
            b = edge[i + 1]
            if b & 15 and (edge[i] >> 4) != (b >> 4):
                low = found
                while low < group.shape[0] and group[low] < (b >> 4):
                    low += 1
                if low >= group.shape[0] or group[low] != (b >> 4):
                    missing = True
                    break
                found = low
                for j in range(b & ~cython.cast(cython.longlong, 15), b):
                    _look(cython.address(best[0]), raw[found, j & 15], 0, j, 1)
                    _look(cython.address(best[1]), raw[found, j & 15], 0, j, -1)
            for side in range(2):
                at = best[side].at
                if at >= 0:
                    at = _row(best[side].level, at, begin, least_at if side == 0 else most_at, rows)
                out[i, side] = at
    if missing:
        raise ValueError("the values of a group with an edge are missing")
    return q
