# Op codes of the programs that kernels interpret; each kernel exports its codes to Python.

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
