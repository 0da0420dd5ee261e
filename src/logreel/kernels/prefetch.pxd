cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define LOGREEL_PREFETCH(p) __builtin_prefetch((p))
    #define LOGREEL_PREFETCH_WRITE(p) __builtin_prefetch((p), 1)
    #else
    #define LOGREEL_PREFETCH(p) ((void)(p))
    #define LOGREEL_PREFETCH_WRITE(p) ((void)(p))
    #endif
    """
    void prefetch "LOGREEL_PREFETCH" (const void* p) nogil
    void prefetch_write "LOGREEL_PREFETCH_WRITE" (const void* p) nogil
