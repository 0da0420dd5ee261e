# What is put before a place, for those who write from the end to the start; the caller knows that there is room.

ctypedef unsigned char* mp


# A number of variable length. Gives where it begins.
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


# Seconds and nanoseconds as fields 1 and 2, those that are not 0; with one sign, or such that the latter have none.
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
