# Varints, and BDDF blocks, whose descriptors are built from them. Every length is checked by subtraction, in 64 bits,
# before use.

from libc.string cimport memcpy, memset
from logreel.kernels.loads cimport u32, u64

ctypedef const unsigned char* u8p

cdef struct Block:
    int kind
    long long next  # where the next block begins
    long long descriptor
    long long payload
    long long size  # of the payload
    unsigned long long key
    long long time  # ns, limited to the range of int64


# Read the varint at p; return where it ends, NULL if it is cut or has more than 64 bits.
cdef inline u8p varint(u8p p, u8p e, unsigned long long* out) noexcept nogil:
    cdef unsigned long long v = 0
    cdef unsigned int shift = 0
    cdef unsigned char c
    while p < e:
        c = p[0]
        if shift == 63 and c > 1:
            return NULL
        v |= <unsigned long long>(c & 127) << shift
        p += 1
        if c < 128:
            out[0] = v
            return p
        shift += 7
    return NULL


# Return the bytes of a varint.
cdef inline long long varint_length(unsigned long long v) noexcept nogil:
    cdef long long n = 1
    while v > 127:
        v >>= 7
        n += 1
    return n


# Write a varint at p; return where it ends.
cdef inline unsigned char* put_varint(unsigned char* p, unsigned long long v) noexcept nogil:
    while v > 127:
        p[0] = <unsigned char>(v | 128)
        v >>= 7
        p += 1
    p[0] = <unsigned char>v
    return p + 1


# Read the length at p, whose bytes must fit before e; return where they begin, or NULL.
cdef inline u8p span(u8p p, u8p e, unsigned long long* out) noexcept nogil:
    p = varint(p, e, out)
    if p == NULL or out[0] > <unsigned long long>(e - p):
        return NULL
    return p


# Return where the value after a tag ends, NULL if it is cut or of an unknown wire type.
cdef inline u8p skip(u8p p, u8p e, unsigned long long tag) noexcept nogil:
    cdef unsigned long long v = 0
    if tag >> 3 == 0 or tag >> 32 != 0:
        return NULL
    if tag & 7 == 0:
        return varint(p, e, &v)
    if tag & 7 == 1:
        return p + 8 if e - p >= 8 else NULL
    if tag & 7 == 5:
        return p + 4 if e - p >= 4 else NULL
    if tag & 7 == 2:
        p = span(p, e, &v)
        return p + v if p != NULL else NULL
    return NULL


cdef inline long long nanoseconds(long long seconds, long long nanos) noexcept nogil:
    if seconds > 9223372036LL or (seconds == 9223372036LL and nanos > 854775807):
        return 0x7FFFFFFFFFFFFFFFLL
    if seconds < -9223372037LL or (seconds == -9223372037LL and nanos < 145224192):
        return -0x7FFFFFFFFFFFFFFFLL - 1
    if seconds == -9223372037LL:
        return (seconds + 1) * 1000000000 + (nanos - 1000000000)
    return seconds * 1000000000 + nanos


# Return a time in ns as whole seconds, rounded down.
cdef inline long long whole_seconds(long long time) noexcept nogil:
    return time // 1000000000 - (time % 1000000000 < 0)


# Return the nanoseconds of a time beyond `whole_seconds`, never negative.
cdef inline long long further_nanos(long long time) noexcept nogil:
    return time % 1000000000 + (1000000000 if time % 1000000000 < 0 else 0)


# Return the bytes of a time { 1 seconds, 2 nanoseconds }, without those that are 0.
cdef inline long long stamp_length(long long seconds, long long nanos) noexcept nogil:
    cdef long long n = 0
    if seconds != 0:
        n += 1 + varint_length(<unsigned long long>seconds)
    if nanos != 0:
        n += 1 + varint_length(<unsigned long long>nanos)
    return n


# Read a time { 1 seconds, 2 nanoseconds }; False if it is malformed or has 10**9 nanoseconds or more.
cdef inline bint stamp(u8p p, u8p e, long long* seconds, long long* nanos) noexcept nogil:
    cdef unsigned long long tag = 0
    cdef unsigned long long v = 0
    while p < e:
        p = varint(p, e, &tag)
        if p == NULL:
            return False
        if tag == 8:
            p = varint(p, e, &v)
            seconds[0] = <long long>v
        elif tag == 16:
            p = varint(p, e, &v)
            if v >= 1000000000:
                return False
            nanos[0] = <long long>v
        else:
            p = skip(p, e, tag)
        if p == NULL:
            return False
    return True


# Return the number of a varint of up to five bytes in a word whose other bytes are 0.
cdef inline unsigned long long folded(unsigned long long w) noexcept nogil:
    w = (w & 0x007F007F007FULL) | ((w & 0x7F007F00ULL) >> 1)
    return (w & 0x3FFFULL) | ((w >> 2) & 0xFFFC000ULL) | ((w >> 4) & 0x7F0000000ULL)


cdef inline void none_before(unsigned long long* last) noexcept nogil:
    # No varint of five bytes equals this word.
    last[0] = ~0ULL
    last[1] = 0


# Read a descriptor in the usual form: a key below 128 or none, then a time with seconds of five bytes, nothing else.
# False for any other descriptor, sound or not. 24 bytes must be readable at p. *last* caches the bytes of the previous
# seconds, which seldom change, and their value in ns; initialise it with `none_before`.
cdef inline bint usual(u8p p, unsigned int d, Block* r, unsigned long long* last) noexcept nogil:
    cdef unsigned long long w = 0
    cdef unsigned long long v = 0
    cdef unsigned long long nanos
    cdef unsigned int bits
    memcpy(&w, p, 8)
    r.key = 0
    if w & 0x80FF == 8:
        r.key = (w >> 8) & 127
        p += 2
        d -= 2
        memcpy(&w, p, 8)
    # What is left of d: 18, length, 8, five bytes, 16, one to five bytes.
    if d < 10 or d > 14 or w & 0xFFFFFF != (0x080012 | (d - 2) << 8):
        return False
    w >>= 24
    memcpy(&v, p + 8, 8)
    bits = 8 * (d - 9)
    if v & 255 != 16:
        return False
    if w != last[0]:
        if w & 0x8080808080ULL != 0x0080808080ULL or folded(w) > 9223372035ULL:
            return False
        last[0] = w
        last[1] = folded(w) * 1000000000
    v = (v >> 8) & ((1ULL << bits) - 1)
    if v & 0x8080808080ULL != (0x80808080ULL & ((1ULL << (bits - 8)) - 1)):
        return False
    nanos = folded(v)
    if nanos >= 1000000000:
        return False
    r.time = <long long>(last[1] + nanos)
    return True


# The common bits of descriptors of one shape: all except the key below 128, if any, and the nanoseconds.
cdef struct Shape:
    unsigned int d
    unsigned int limit
    unsigned long long head
    unsigned long long head_mask
    unsigned long long tail
    unsigned long long tail_mask
    unsigned long long key_mask
    int top


# Reset to the shape that matches no descriptor.
cdef inline void no_shape(Shape* s) noexcept nogil:
    memset(s, 0, sizeof(Shape))


# Compute the shape of a descriptor that `usual` accepts.
cdef inline void shape_of(u8p p, unsigned int d, Shape* s) noexcept nogil:
    cdef unsigned long long w = 0
    cdef unsigned long long v = 0
    cdef unsigned long long more = 0x8080808080ULL
    cdef int at = 8
    cdef int n = <int>d - 9
    memcpy(&w, p, 8)
    memcpy(&v, p + 8, 8)
    s.d = d
    s.head_mask = 0xFFFFFFFFFFFFFFFFULL
    s.key_mask = 0
    if w & 0x80FF == 8:
        s.head_mask ^= 0x7F00
        s.key_mask = 127
        at = 24
        n -= 2
    # Of the nanoseconds only the continuation bits; the two highest bytes prove that they are below 10**9.
    s.tail_mask = ((1ULL << at) - 1) | (more & ((1ULL << 8 * n) - 1)) << at
    s.head = w & s.head_mask
    s.tail = v & s.tail_mask
    s.top = at + 24
    s.limit = 0x03DC if n == 5 else 0x10000


# Return whether the descriptor is sound and of the shape; set its key. 16 bytes must be readable at p.
cdef inline bint alike(u8p p, unsigned int d, const Shape* s, unsigned long long* key) noexcept nogil:
    cdef unsigned long long w = 0
    cdef unsigned long long v = 0
    if d != s.d:
        return False
    memcpy(&w, p, 8)
    memcpy(&v, p + 8, 8)
    key[0] = (w >> 8) & s.key_mask
    return w & s.head_mask == s.head and v & s.tail_mask == s.tail and ((v >> s.top) & 0xFFFF) < s.limit


# Read key and time of a data block; False if the descriptor is malformed.
cdef inline bint descriptor(u8p p, u8p e, Block* r) noexcept nogil:
    cdef unsigned long long tag = 0
    cdef unsigned long long v = 0
    cdef long long seconds = 0
    cdef long long nanos = 0
    r.key = 0
    while p < e:
        p = varint(p, e, &tag)
        if p == NULL:
            return False
        if tag == 8:
            p = varint(p, e, &r.key)
        elif tag == 18:
            p = span(p, e, &v)
            if p == NULL or not stamp(p, p + v, &seconds, &nanos):
                return False
            p += v
        else:
            p = skip(p, e, tag)
        if p == NULL:
            return False
    r.time = nanoseconds(seconds, nanos)
    return True


# Read the block at pos; return 0 sound, 2 not a block, 3 it ends after end.
cdef inline int block(u8p b, long long pos, long long end, Block* r) noexcept nogil:
    cdef unsigned long long word = 0
    cdef unsigned int d = 0
    cdef long long size
    cdef unsigned long long[2] last
    cdef u8p p
    if end - pos < 8:
        return 3
    word = u64(b + pos)
    r.kind = <int>(word >> 56)
    size = <long long>(word & 0xFFFFFFFFFFFFFFULL)
    if r.kind != 0:
        if size > end - pos - 8:
            return 3
        r.next = pos + 8 + size
        return 0
    if end - pos < 12:
        return 3
    d = u32(b + pos + 8)
    if d < 2 or d > size:
        return 2
    if d > end - pos - 12:
        return 3
    r.descriptor = pos + 12
    p = b + pos + 12
    none_before(last)
    if not (end - pos >= 36 and usual(p, d, r, last)) and not descriptor(p, p + d, r):
        return 2
    if size > end - pos - 12:
        return 3
    r.payload = pos + 12 + d
    r.size = size - d
    r.next = pos + 12 + size
    return 0
