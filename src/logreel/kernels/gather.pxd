# Adjacent numbers of messages at any positions, copied to as many columns: four messages with four numbers of four bytes
# at a time, or eight with eight of two. Each load has only bytes that are wanted, each store is 16 bytes of a column.

from logreel.kernels.transpose cimport transpose_rows

cdef extern from *:
    """
    #if defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 12)
    #define LOGREEL_SHUFFLE8(a, b, ...) __builtin_shufflevector((a), (b), __VA_ARGS__)
    #elif defined(__GNUC__)
    #define LOGREEL_SHUFFLE8(a, b, ...) __builtin_shuffle((a), (b), (logreel_halves){__VA_ARGS__})
    #endif
    #ifdef LOGREEL_SHUFFLE8
    typedef unsigned short logreel_halves __attribute__((vector_size(16)));
    static inline logreel_halves logreel_low(logreel_halves a, logreel_halves b) {
        return LOGREEL_SHUFFLE8(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
    }
    static inline logreel_halves logreel_high(logreel_halves a, logreel_halves b) {
        return LOGREEL_SHUFFLE8(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
    }
    #define LOGREEL_EIGHT(NAME, OFFSET)                                                                        \\
        static inline void NAME(const unsigned char* s, const OFFSET* from, long long i, unsigned char** d) {  \\
            logreel_halves r[8], t[8];                                                                         \\
            int k;                                                                                             \\
            for (k = 0; k < 8; k++) memcpy(&r[k], s + from[i + k], 16);                                        \\
            /* Three times the lower and the upper halves of rows that are four apart. */                      \\
            for (k = 0; k < 4; k++) {                                                                          \\
                t[2 * k] = logreel_low(r[k], r[k + 4]);                                                        \\
                t[2 * k + 1] = logreel_high(r[k], r[k + 4]);                                                   \\
            }                                                                                                  \\
            for (k = 0; k < 4; k++) {                                                                          \\
                r[2 * k] = logreel_low(t[k], t[k + 4]);                                                        \\
                r[2 * k + 1] = logreel_high(t[k], t[k + 4]);                                                   \\
            }                                                                                                  \\
            for (k = 0; k < 4; k++) {                                                                          \\
                t[2 * k] = logreel_low(r[k], r[k + 4]);                                                        \\
                t[2 * k + 1] = logreel_high(r[k], r[k + 4]);                                                   \\
            }                                                                                                  \\
            for (k = 0; k < 8; k++) memcpy(d[k] + 2 * i, &t[k], 16);                                           \\
        }
    #define LOGREEL_FOUR(NAME, OFFSET)                                                                         \\
        static inline void NAME(const unsigned char* s, const OFFSET* from, long long i, unsigned char** d) {  \\
            logreel_words a = logreel_words_at(s + from[i]), b = logreel_words_at(s + from[i + 1]);            \\
            logreel_words c = logreel_words_at(s + from[i + 2]), e = logreel_words_at(s + from[i + 3]);        \\
            logreel_words ab = LOGREEL_SHUFFLE(a, b, 0, 4, 1, 5), ba = LOGREEL_SHUFFLE(a, b, 2, 6, 3, 7);      \\
            logreel_words ce = LOGREEL_SHUFFLE(c, e, 0, 4, 1, 5), ec = LOGREEL_SHUFFLE(c, e, 2, 6, 3, 7);      \\
            logreel_put_words(d[0] + 4 * i, LOGREEL_SHUFFLE(ab, ce, 0, 1, 4, 5));                              \\
            logreel_put_words(d[1] + 4 * i, LOGREEL_SHUFFLE(ab, ce, 2, 3, 6, 7));                              \\
            logreel_put_words(d[2] + 4 * i, LOGREEL_SHUFFLE(ba, ec, 0, 1, 4, 5));                              \\
            logreel_put_words(d[3] + 4 * i, LOGREEL_SHUFFLE(ba, ec, 2, 3, 6, 7));                              \\
        }
    #else
    #define LOGREEL_EIGHT(NAME, OFFSET)                                                                        \\
        static inline void NAME(const unsigned char* s, const OFFSET* from, long long i, unsigned char** d) {  \\
            int j, k;                                                                                          \\
            for (j = 0; j < 8; j++)                                                                            \\
                for (k = 0; k < 8; k++) memcpy(d[k] + 2 * (i + j), s + from[i + j] + 2 * k, 2);                \\
        }
    #define LOGREEL_FOUR(NAME, OFFSET)                                                                         \\
        static inline void NAME(const unsigned char* s, const OFFSET* from, long long i, unsigned char** d) {  \\
            int j, k;                                                                                          \\
            for (j = 0; j < 4; j++)                                                                            \\
                for (k = 0; k < 4; k++) memcpy(d[k] + 4 * (i + j), s + from[i + j] + 4 * k, 4);                \\
        }
    #endif
    /* The last messages, some of which may have been copied already, make up the rest. */
    #define LOGREEL_ROWS(NAME, STEP, OFFSET, ROWS)                                                             \\
        static inline void NAME(const unsigned char* s, const OFFSET* from, long long n, unsigned char** d) {  \\
            long long i;                                                                                       \\
            for (i = 0; i + ROWS < n; i += ROWS) STEP(s, from, i, d);                                          \\
            STEP(s, from, n - ROWS, d);                                                                        \\
        }
    LOGREEL_FOUR(logreel_four_near, unsigned int)
    LOGREEL_FOUR(logreel_four_far, long long)
    LOGREEL_EIGHT(logreel_eight_near, unsigned int)
    LOGREEL_EIGHT(logreel_eight_far, long long)
    LOGREEL_ROWS(logreel_words_near, logreel_four_near, unsigned int, 4)
    LOGREEL_ROWS(logreel_words_far, logreel_four_far, long long, 4)
    LOGREEL_ROWS(logreel_halves_near, logreel_eight_near, unsigned int, 8)
    LOGREEL_ROWS(logreel_halves_far, logreel_eight_far, long long, 8)
    """
    # Copy four words of *n* (>= 4) messages at s + from[i] to four columns.
    void words_near "logreel_words_near" (
        const unsigned char* s, const unsigned int* start, long long n, unsigned char** d) nogil
    void words_far "logreel_words_far" (
        const unsigned char* s, const long long* start, long long n, unsigned char** d) nogil
    # Copy eight numbers of two bytes of *n* (>= 8) messages at s + from[i] to eight columns.
    void halves_near "logreel_halves_near" (
        const unsigned char* s, const unsigned int* start, long long n, unsigned char** d) nogil
    void halves_far "logreel_halves_far" (
        const unsigned char* s, const long long* start, long long n, unsigned char** d) nogil
