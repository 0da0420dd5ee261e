# Memory of Python objects: address and size of each, bound once for a call or for the life of an object.

from cpython.buffer cimport Py_buffer, PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdlib cimport free, malloc

# A zeroed one holds nothing.
cdef struct Buffers:
    Py_buffer* views
    Py_ssize_t count


# Bind contiguous arrays; raises BufferError or ValueError for others. The arrays live until release_buffers.
cdef inline int hold_buffers(Buffers* held, list arrays) except -1:
    cdef Py_ssize_t n = len(arrays)
    held.count = 0
    held.views = <Py_buffer*>malloc((n + 1) * sizeof(Py_buffer))
    if held.views == NULL:
        raise MemoryError
    try:
        for one in arrays:
            PyObject_GetBuffer(one, &held.views[held.count], PyBUF_SIMPLE)
            held.count += 1
    except BaseException:
        release_buffers(held)
        raise
    return 0


cdef inline int release_buffers(Buffers* held) except -1:
    cdef Py_ssize_t i
    for i in range(held.count):
        PyBuffer_Release(&held.views[i])
    free(held.views)
    held.views = NULL
    held.count = 0
    return 0


# Return whether *size* bytes from byte *at* of a buffer of *room* bytes lie in it; no sum can overflow.
cdef inline bint is_inside(long long at, long long size, long long room) noexcept nogil:
    return 0 <= at <= room and 0 <= size <= room - at
