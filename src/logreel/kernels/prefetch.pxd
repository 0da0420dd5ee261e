cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define LOGREEL_PREFETCH(p) __builtin_prefetch((p))
    #define LOGREEL_PREFETCH_WRITE(p) __builtin_prefetch((p), 1)
    #else
    #define LOGREEL_PREFETCH(p) ((void)(p))
    #define LOGREEL_PREFETCH_WRITE(p) ((void)(p))
    #endif
    static inline void logreel_prefetch_span(const void* p, long long n) {
        long long i;
        for (i = 0; i < n && i < 512; i += 64) LOGREEL_PREFETCH((const char*)p + i);
    }
    """
    void prefetch "LOGREEL_PREFETCH" (const void* p) nogil
    void prefetch_write "LOGREEL_PREFETCH_WRITE" (const void* p) nogil
    # Prefetch the first cache lines of n bytes, at most 512 bytes.
    void prefetch_span "logreel_prefetch_span" (const void* p, long long n) nogil
