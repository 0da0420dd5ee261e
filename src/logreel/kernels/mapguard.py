"""Signal handler that lets a process survive when a file that it has mapped shrinks or cannot be read.

Reading a page of a mapped file that the file no longer has raises the signal SIGBUS, which ends a process. The handler
replaces the pages from there to the end of the mapped range by zeros, notes it, and returns; the interrupted load is
repeated and reads zeros, in any thread and any library. Whoever used the bytes must ask ``lost`` afterwards.

Signals that no watched range explains go to the handler that was there before. Reading costs nothing where nothing is
lost. A child process after ``fork`` has the handler and the ranges of its parent.
"""

import cython

if not cython.compiled:
    raise ImportError("logreel.kernels is not compiled: run `pip install -e .` (needs gcc)")

from cython.cimports.logreel.kernels.bus_handler import (
    CAN_GUARD,
    c_forget,
    c_install,
    c_is_same,
    c_losses,
    c_lost,
    c_watch,
)

#: Whether the platform has the signal.
AVAILABLE = bool(CAN_GUARD)


def install():
    """Take over the signal SIGBUS, unless this was done and nobody replaced the handler; return whether it is ours."""
    return c_install() == 0


def watch(data: cython.const[cython.uchar][::1]):
    """Watch the pages of a mapped range; return its number for ``lost`` and ``forget``, or -1 without memory.

    The range must stay mapped until ``forget``.
    """
    return c_watch(cython.address(data[0]), data.shape[0]) if data.shape[0] else -1


def lost(number: cython.longlong):
    """Return how many bytes after the start of the first page of a range the first replaced page is; -1: none is."""
    return c_lost(number)


def losses():
    """Return how often pages were replaced since the process began."""
    return c_losses()


def is_same(
    path: bytes, device: cython.longlong, inode: cython.longlong, size: cython.longlong, time: cython.longlong
):
    """Return whether *path* names a file with this device, inode, size and modification time in ns."""
    name: cython.p_const_char = path
    found: cython.int
    with cython.nogil:
        found = c_is_same(name, device, inode, size, time)
    return found != 0


def forget(number: cython.longlong):
    """End watching a range."""
    c_forget(number)
