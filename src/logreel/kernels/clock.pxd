cdef extern from *:
    """
    #ifdef _WIN32
    #include <windows.h>
    static inline double logreel_now(void) { return (double)GetTickCount64() * 1e-3; }
    #else
    #include <time.h>
    #ifdef CLOCK_MONOTONIC_COARSE
    #define LOGREEL_CLOCK CLOCK_MONOTONIC_COARSE
    #else
    #define LOGREEL_CLOCK CLOCK_MONOTONIC
    #endif
    static inline double logreel_now(void) {
        struct timespec t;
        clock_gettime(LOGREEL_CLOCK, &t);
        return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
    }
    #endif
    """
    # Seconds of a monotonic clock; coarse (some milliseconds) where that is cheaper to read.
    double clock_now "logreel_now" () nogil
