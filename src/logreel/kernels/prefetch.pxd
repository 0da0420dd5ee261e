cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define LOGREEL_PREFETCH(p) __builtin_prefetch((p))
    #else
    #define LOGREEL_PREFETCH(p) ((void)(p))
    #endif
    """
    void prefetch "LOGREEL_PREFETCH" (const void* p) nogil
