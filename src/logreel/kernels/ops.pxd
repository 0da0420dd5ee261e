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

# Of layout_decode, see its docstring: numbers in the order of layout.nodes.SCALARS, then the other ops.
cdef enum:
    VALUE_BOOL = 0
    VALUE_CHAR = 1
    VALUE_INT8 = 2
    VALUE_UINT8 = 3
    VALUE_INT16 = 4
    VALUE_UINT16 = 5
    VALUE_INT32 = 6
    VALUE_UINT32 = 7
    VALUE_INT64 = 8
    VALUE_UINT64 = 9
    VALUE_FLOAT32 = 10
    VALUE_FLOAT64 = 11
    VALUE_NUMBERS = 12
    VALUE_TIME = 13
    VALUE_TEXT = 14
    VALUE_STRUCT = 15
    VALUE_ITEMS = 16
    VALUE_REPEAT = 17
    VALUE_STRING = 18
    VALUE_BYTES = 19
    VALUE_COUNTED = 20
    VALUE_LIST = 21
    VALUE_REST = 22
    # From here on ops without a value.
    VALUE_NEED = 32
    VALUE_MOVE = 33
    VALUE_ALIGN = 34
    VALUE_EXPECT = 35

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

# Of protobuf_read.
cdef enum:
    READ_VARINT = 0
    READ_FIXED = 1
    READ_SPAN = 2
    READ_MESSAGE = 3
    READ_TIME = 4

# Of cdr, see its docstring.
cdef enum:
    CDR_NUMBER = 0
    CDR_NUMBERS = 1
    CDR_TEXT = 2
    CDR_WIDE = 3
    CDR_WCHAR = 4
    CDR_LIST = 5
    CDR_REPEAT = 6
    CDR_BLOCK = 7
    CDR_DELIMITED = 8
    CDR_PARAMETERS = 9
    CDR_MEMBER = 10
    CDR_OPTIONAL = 11
