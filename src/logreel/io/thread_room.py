"""Whether threads can be started: libraries wait forever for one that cannot, or end the process."""

from __future__ import annotations

import _thread
import mmap
import sys
from queue import Empty, SimpleQueue

#: Seconds to wait for threads that were started to end.
PATIENCE = 10.0
#: Bytes of address space that a thread takes: its stack, and the memory that glibc reserves for its allocations.
THREAD_ROOM = 80 << 20


def has_limited_room() -> bool:
    """Return whether the address space of this process is limited, as ``ulimit -v`` does it."""
    if sys.platform == "win32":
        return False
    import resource

    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def check_arrow_threads() -> None:
    """Raise MemoryError or RuntimeError ("can't start new thread") if Arrow could not start its threads.

    To call before ``pyarrow.dataset`` reads: it does not report a refused thread, but waits for what that thread would
    have done. With a limited address space, Arrow gets one thread to read and one to decode. Takes 0.3 ms.
    """
    import pyarrow as pa

    if has_limited_room():
        pa.set_cpu_count(1)
        pa.set_io_thread_count(1)
        _check_address_space(2 * THREAD_ROOM)
    _check_threads(pa.cpu_count() + pa.io_thread_count())


def _check_address_space(size: int) -> None:
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    try:
        mmap.mmap(-1, size, flags, mmap.PROT_READ).close()
    except OSError:
        raise MemoryError(f"less than {size >> 20} MiB of address space are left") from None


def _check_threads(number: int) -> None:
    gate, ended = _thread.allocate_lock(), SimpleQueue[None]()

    def wait() -> None:
        with gate:
            ended.put(None)

    started = 0
    with gate:
        # Not threading.Thread: its start() waits forever if the thread dies for want of memory.
        while started < number:
            _thread.start_new_thread(wait, ())
            started += 1
    try:
        for _ in range(started):
            ended.get(timeout=PATIENCE)
    except Empty:
        raise RuntimeError("can't start new thread") from None
