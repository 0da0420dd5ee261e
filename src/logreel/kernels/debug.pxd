# Checks of pointers, which Cython cannot check; nothing in a release build.

cdef extern from *:
    """
    #ifdef LOGREEL_DEBUG
    #include <stdio.h>
    #include <stdlib.h>
    #define LOGREEL_IS_DEBUG 1
    #define LOGREEL_CHECK(what, ok) do { \
        if (!(ok)) { fprintf(stderr, "logreel: %s out of bounds in %s\\n", what, __FILE__); abort(); } \
    } while (0)
    #else
    #define LOGREEL_IS_DEBUG 0
    #define LOGREEL_CHECK(what, ok) ((void)0)
    #endif
    """
    # Whether the kernel was built with LOGREEL_DEBUG=1.
    bint IS_DEBUG "LOGREEL_IS_DEBUG"
    # End the process of a debug build if *ok* is false; *what* names what is out of bounds.
    void check "LOGREEL_CHECK" (const char* what, bint ok) nogil
