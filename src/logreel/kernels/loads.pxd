# Little-endian numbers at any address; the caller has checked that the bytes exist. Another process may change the bytes
# of a mapped file at any moment: what is checked is what u32, u64 and prefix returned, never the bytes themselves.

from libc.string cimport memcpy

ctypedef const unsigned char* u8p


cdef extern from *:
    """
    static const unsigned char logreel_no_bytes[1] = {0};
    /* Without this a compiler may load a number twice, before and after it was checked; another process may change it. */
    #if defined(__GNUC__) || defined(__clang__)
    #define LOGREEL_LOADED(v) __asm__("" : "+r"(v))
    #else
    #define LOGREEL_LOADED(v) ((void)0)
    #endif
    """
    const unsigned char* NO_BYTES "logreel_no_bytes"
    # Make *v*, a local variable, a number that is loaded once, whatever happens to its place in memory.
    void loaded "LOGREEL_LOADED" (unsigned long long v) nogil


# Return where bytes begin; for no bytes, which have no first one, a valid address.
cdef inline u8p bytes_of(const unsigned char[::1] buf) noexcept nogil:
    return &buf[0] if buf.shape[0] else NO_BYTES


cdef inline int u16(u8p p) noexcept nogil:
    cdef unsigned short v = 0
    memcpy(&v, p, 2)
    return v


cdef inline unsigned int u32(u8p p) noexcept nogil:
    cdef unsigned int v = 0
    memcpy(&v, p, 4)
    loaded(v)
    return v


cdef inline unsigned long long u64(u8p p) noexcept nogil:
    cdef unsigned long long v = 0
    memcpy(&v, p, 8)
    loaded(v)
    return v


# Read an integer of |width| bytes as 64 bits; negative width: signed; 0: a flag, 0 or 1.
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


# Read a count of 1, 2 or 4 bytes, exactly once.
cdef inline long long prefix(u8p p, long long width) noexcept nogil:
    cdef unsigned int n
    if width == 4:
        n = u32(p)
    elif width == 1:
        n = p[0]
    else:
        n = <unsigned int>u16(p)
    loaded(n)
    return n


# Return the largest count that fits a prefix of 1, 2 or 4 bytes.
cdef inline long long largest_count(long long width) noexcept nogil:
    if width == 4:
        return 4294967295LL
    return 255 if width == 1 else 65535


# Write a count of 1, 2 or 4 bytes; return where it ends.
cdef inline unsigned char* put_prefix(unsigned char* p, long long width, long long n) noexcept nogil:
    cdef unsigned int v4 = <unsigned int>n
    cdef unsigned short v2 = <unsigned short>n
    if width == 4:
        memcpy(p, &v4, 4)
    elif width == 1:
        p[0] = <unsigned char>n
    else:
        memcpy(p, &v2, 2)
    return p + width


# Return the bytes from position *at* to the next one of a grid: its step, a power of two, plus 256 times its origin.
cdef inline long long gap(long long grid, long long at) noexcept nogil:
    return ((grid >> 8) - at) & ((grid & 255) - 1)
