"""Buffers that end exactly at a protected page: reading one byte too many ends the process."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np

PROT_NONE, PAGE = 0, mmap.PAGESIZE


def guarded(data: bytes, writeable: bool = False) -> np.ndarray:
    """Return *data* as uint8[n] that ends directly before the protected page."""
    pages = max(1, -(-len(data) // PAGE))
    area = mmap.mmap(-1, (pages + 1) * PAGE)
    whole = np.frombuffer(area, np.uint8)
    edge = whole.ctypes.data + pages * PAGE
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(edge), ctypes.c_size_t(PAGE), PROT_NONE):
        raise OSError(ctypes.get_errno(), "mprotect")
    view = whole[pages * PAGE - len(data) : pages * PAGE]
    view[:] = np.frombuffer(data, np.uint8)
    view.flags.writeable = writeable
    return view
