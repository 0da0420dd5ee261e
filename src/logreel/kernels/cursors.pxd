# Columns that are read from their beginning to their end: bytes, and for counted ones int32 offsets.

from libc.stdlib cimport free, malloc
from logreel.kernels.buffers cimport Buffers, hold_buffers, release_buffers

ctypedef const unsigned char* u8p
ctypedef const int* ci32p

# The next byte and the next offset of a column, and their ends; whether a count was asked for that it does not have.
cdef struct Cursor:
    u8p data
    u8p data_end
    ci32p count
    ci32p count_end
    bint is_short

ctypedef Cursor* cursorp

# The cursors of all columns, and the arrays that they point into.
cdef struct Columns:
    cursorp cursors
    Py_ssize_t count
    Buffers data
    Buffers offsets


# Bind arrays, those of the bytes and those of the offsets of each column, until release_columns.
cdef inline int hold_columns(Columns* held, list data, list offsets) except -1:
    cdef Py_ssize_t i
    cdef Py_ssize_t n = len(data)
    cdef cursorp c
    if len(offsets) != n:
        raise ValueError("data and offsets differ in length")
    held.offsets.views = NULL
    held.offsets.count = 0
    held.cursors = NULL
    held.count = 0
    hold_buffers(&held.data, data)
    try:
        hold_buffers(&held.offsets, offsets)
        held.cursors = c = <cursorp>malloc((n + 1) * sizeof(Cursor))
        if c == NULL:
            raise MemoryError
    except BaseException:
        release_columns(held)
        raise
    for i in range(n):
        c[i].data = <u8p>held.data.views[i].buf
        c[i].data_end = c[i].data + held.data.views[i].len
        c[i].count = <ci32p>held.offsets.views[i].buf
        c[i].count_end = c[i].count + held.offsets.views[i].len // 4
        c[i].is_short = False
    held.count = n
    return 0


# Release the arrays; raises IndexError if a column had too few or descending offsets.
cdef inline int release_columns(Columns* held) except -1:
    cdef Py_ssize_t i
    cdef bint is_short = False
    for i in range(held.count):
        is_short = is_short or held.cursors[i].is_short
    free(held.cursors)
    release_buffers(&held.data)
    release_buffers(&held.offsets)
    if is_short:
        raise IndexError("a column has too few items")
    return 0


# Return the next count of a column, and advance its cursor; 0 where it has none, which release_columns reports.
cdef inline long long next_count(cursorp c) noexcept nogil:
    cdef ci32p p = c.count
    if p + 1 >= c.count_end or p[1] < p[0]:
        c.is_short = True
        return 0
    c.count = p + 1
    return <long long>p[1] - p[0]


# Return the next n bytes of a column, and advance its cursor; NULL where it has fewer, which release_columns reports.
cdef inline u8p take_bytes(cursorp c, long long n) noexcept nogil:
    cdef u8p p = c.data
    if n < 0 or n > c.data_end - p:
        c.is_short = True
        return NULL
    c.data = p + n
    return p
