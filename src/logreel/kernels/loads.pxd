# Little-endian numbers at any place, which the caller knows to be there.

from libc.string cimport memcpy

ctypedef const unsigned char* u8p


cdef inline int u16(u8p p) noexcept nogil:
    cdef unsigned short v = 0
    memcpy(&v, p, 2)
    return v


cdef inline unsigned int u32(u8p p) noexcept nogil:
    cdef unsigned int v = 0
    memcpy(&v, p, 4)
    return v


cdef inline unsigned long long u64(u8p p) noexcept nogil:
    cdef unsigned long long v = 0
    memcpy(&v, p, 8)
    return v


# A whole number of so many bytes, of 64 bits then; negative: one that has a sign; 0: a flag, which is 0 or 1.
cdef inline unsigned long long whole(u8p p, long long width) noexcept nogil:
    if width == 8 or width == -8:
        return u64(p)
    if width == 4:
        return u32(p)
    if width == -4:
        return <unsigned long long><long long><int>u32(p)
    if width == 2:
        return u16(p)
    if width == -2:
        return <unsigned long long><long long><short>u16(p)
    if width == -1:
        return <unsigned long long><long long><signed char>p[0]
    return p[0] if width else p[0] != 0


# A count of 1, 2 or 4 bytes.
cdef inline long long prefix(u8p p, long long width) noexcept nogil:
    if width == 4:
        return u32(p)
    if width == 1:
        return p[0]
    return u16(p)


# Bytes from a place to the next one of a grid: its step, a power of two, and 256 times its origin.
cdef inline long long gap(long long grid, long long at) noexcept nogil:
    return ((grid >> 8) - at) & ((grid & 255) - 1)
