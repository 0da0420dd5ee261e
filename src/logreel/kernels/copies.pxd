# Copies of runs of bytes from messages to columns, for layout.py. A row of *copies* has five numbers: from, width, column,
# step, tail; see there. The caller has checked that the bytes exist and that the columns have room.

from libc.string cimport memcpy
from logreel.kernels.debug cimport check
from logreel.kernels.transpose cimport transpose_rows

ctypedef const unsigned char* u8p
ctypedef unsigned char* mu8p
ctypedef const long long* i64p

# A column as it is filled: its next byte and the end of its bytes, its next offset, and the items that it still has room
# for, of columns that have no bytes.
cdef struct Target:
    mu8p data
    mu8p limit
    int* offset
    long long left

ctypedef Target* targetp


# Copy one turn: append every run of bytes to its column.
cdef inline void copy_turn(u8p p, i64p c, i64p last, targetp to) noexcept nogil:
    cdef mu8p d
    cdef long long w
    while c < last:
        w = c[1]
        d = to[c[2]].data
        check(b"column", w <= to[c[2]].limit - d)
        if w == 8:
            memcpy(d, p + c[0], 8)
        elif w == 4:
            memcpy(d, p + c[0], 4)
        elif w == 1:
            d[0] = p[c[0]]
        elif w == 2:
            memcpy(d, p + c[0], 2)
        else:
            memcpy(d, p + c[0], w)
        to[c[2]].data = d + w
        c += 5


# Return how many runs from *c* on are adjacent words of four bytes, each for a separate column.
cdef inline long long adjacent_words(i64p c, i64p last) noexcept nogil:
    cdef long long n = 0
    while c < last and c[1] == 4 and c[3] == 4:
        n += 1
        if c + 5 == last or c[5] != c[0] + 4:
            break
        c += 5
    return n


# Copy many turns of *n* adjacent words: four columns at once, the last four perhaps twice.
cdef inline void copy_words(u8p p, long long turns, long long size, i64p c, long long n, targetp to) noexcept nogil:
    cdef long long k
    cdef long long i
    for k in range(0, n, 4):
        i = 5 * (k if k <= n - 4 else n - 4)
        transpose_rows(
            p + c[i], size, turns, to[c[i + 2]].data, to[c[i + 7]].data, to[c[i + 12]].data, to[c[i + 17]].data)
    for k in range(n):
        to[c[5 * k + 2]].data += 4 * turns


# Copy many turns of *size* bytes: column by column, each in a loop of constant width.
cdef inline void copy_turns(
    u8p p, long long turns, long long size, i64p c, i64p last, targetp to) noexcept nogil:
    cdef mu8p d
    cdef u8p s
    cdef long long w
    cdef long long step
    cdef long long k
    while c < last:
        if turns >= 4:
            k = adjacent_words(c, last)
            if k >= 4:
                copy_words(p, turns, size, c, k, to)
                c += 5 * k
                continue
        s = p + c[0]
        w = c[1]
        d = to[c[2]].data
        step = c[3]
        check(b"column", w + step * (turns - 1) <= to[c[2]].limit - d)
        if w == 8:
            for k in range(turns):
                memcpy(d + k * step, s + k * size, 8)
        elif w == 4:
            for k in range(turns):
                memcpy(d + k * step, s + k * size, 4)
        elif w == 1:
            for k in range(turns):
                d[k * step] = s[k * size]
        elif w == 2:
            for k in range(turns):
                memcpy(d + k * step, s + k * size, 2)
        else:
            for k in range(turns):
                memcpy(d + k * step, s + k * size, w)
        # The next run of the same column starts one run later; the last one moves the cursor behind all turns.
        to[c[2]].data = d + w + c[4] * (turns - 1)
        c += 5
