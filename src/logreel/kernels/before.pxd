# Functions that write before a pointer, for messages written from the end to the start; the caller provides the room.

ctypedef unsigned char* mp


# Write a varint before p; return where it begins.
cdef inline mp number_before(mp p, unsigned long long v) noexcept nogil:
    cdef unsigned long long rest = v >> 7
    cdef long long n = 1
    cdef long long i
    if rest == 0:
        p -= 1
        p[0] = <unsigned char>v
        return p
    while rest:
        rest >>= 7
        n += 1
    p -= n
    for i in range(n - 1):
        p[i] = <unsigned char>(v | 128)
        v >>= 7
    p[n - 1] = <unsigned char>v
    return p


# Write seconds and nanoseconds as fields 1 and 2, except zeros, before p; return where they begin.
# one_sign: both have the sign of the time; otherwise nanoseconds are never negative.
cdef inline mp moment_before(mp p, long long time, bint one_sign) noexcept nogil:
    cdef long long seconds = time // 1000000000
    cdef long long nanos = time % 1000000000
    if nanos < 0 and not one_sign:
        seconds -= 1
        nanos += 1000000000
    if nanos != 0:
        p = number_before(p, <unsigned long long>nanos) - 1
        p[0] = 16
    if seconds != 0:
        p = number_before(p, <unsigned long long>seconds) - 1
        p[0] = 8
    return p
