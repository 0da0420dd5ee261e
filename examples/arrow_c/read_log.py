"""Hand a channel of a log to the C function ``read_log``, without copying: read_log.py LIBRARY LOG TOPIC."""

import ctypes
import sys

import logreel


def main() -> int:
    library, path, topic = sys.argv[1:]
    read_log = ctypes.CDLL(library).read_log
    read_log.argtypes, read_log.restype = [ctypes.c_void_p], ctypes.c_int
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.argtypes, pointer_of.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    with logreel.open(path) as log:
        # The capsule owns the stream; read_log releases it, so that the capsule has nothing left to release.
        capsule = log[topic].__arrow_c_stream__()
        return read_log(pointer_of(capsule, b"arrow_array_stream"))


if __name__ == "__main__":
    sys.exit(main())
