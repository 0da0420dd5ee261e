# Codes that kernels and their callers exchange, op codes of programs among them; each kernel exports its codes to Python.

# Of framed: actions for kinds, channels of keys without one, and why walk stopped.
cdef enum:
    REFUSE = 0
    DATA = 1
    NOTE = 2
    STOP = 3
    TOLERATE = 4
cdef enum:
    UNDECLARED = -1
    TOLERATED = -2
cdef enum:
    END = 0
    STOPPED = 1
    BAD = 2
    CUT = 3
    FULL = 4

# Of layout, see its docstring.
cdef enum:
    FIXED = 0
    BLOB = 1
    SKIP = 2
    LIST = 3
    REPEAT = 4
    STRINGS = 5
    REST = 6
    ALIGN = 7
    EXPECT = 8

# Of protobuf.write_columns.
cdef enum:
    COLUMN_VARINT = 0
    COLUMN_FIXED = 1
    COLUMN_SPAN = 2
    COLUMN_PACKED = 3
    COLUMN_MESSAGE = 4
    COLUMN_MESSAGES = 5
    COLUMN_SPANS = 6
    COLUMN_TIME = 7

# Of protobuf.write_fixed.
cdef enum:
    FIXED_WORDS = 0
    FIXED_LONGS = 1
    FIXED_VARINTS = 2
    FIXED_SPAN = 3
    FIXED_PACKED = 4
    FIXED_MESSAGE = 5
    FIXED_MESSAGES = 6
    FIXED_TIME = 7
