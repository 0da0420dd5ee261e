"""NumPy array types used everywhere, and memory for columns."""

from __future__ import annotations

import _thread
import itertools
import os
from _thread import _local as Local  # noqa: N812
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from logreel.io.platform import has_limited_room, has_room, pool
from logreel.kernels import block_table as kernel

if np.intp(0).itemsize < 8:
    from logreel.io import narrow

    narrow.mend()

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

    from numpy.typing import NDArray


F64 = np.ndarray[tuple[Any, ...], np.dtype[np.float64]]
I64 = np.ndarray[tuple[Any, ...], np.dtype[np.int64]]
U32 = np.ndarray[tuple[Any, ...], np.dtype[np.uint32]]


def aligned(size: int) -> NDArray[np.uint8]:
    """Return uint8[size] with undefined content that begins at a multiple of 64 bytes."""
    room = np.empty(size + 64, np.uint8)
    return room[-room.ctypes.data % 64 :][:size]


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct *values*, ascending; np.unique imports numpy.ma, as long as opening a small log takes."""
    found = values if (values[1:] >= values[:-1]).all() else np.sort(values)
    first = np.ones(len(found), np.bool_)
    np.not_equal(found[1:], found[:-1], out=first[1:])
    return found[first]


def without(values: NDArray[Any], others: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct *values* that are not in *others*, ascending; np.setdiff1d imports numpy.ma, too."""
    values, others = distinct(values), np.sort(others)
    is_other: NDArray[np.bool_] = others.searchsorted(values, "left") < others.searchsorted(values, "right")
    return values[~is_other]


class GrowingArray:
    """Array to which rows are added one at a time, in constant time each."""

    __slots__ = ("_length", "_room")

    def __init__(self, dtype: Any, *width: int) -> None:
        self._room: NDArray[Any] = np.empty((16, *width), dtype)
        self._length = 0

    def append(self, row: Any) -> None:
        """Add a row."""
        if self._length == len(self._room):
            # Twice the room: to copy all rows for each new one would take time in the square of their number.
            self._room = np.concatenate([self._room, np.empty_like(self._room)])
        self._room[self._length] = row
        self._length += 1

    def __len__(self) -> int:
        return self._length

    @property
    def rows(self) -> NDArray[Any]:
        """All rows; a view, which is valid until the next one is added."""
        return self._room[: self._length]


def keep_freed_memory() -> None:
    """Let the C library keep the memory of freed arrays for the next ones, where it is glibc.

    It gives freed memory back to the system beyond a threshold, at first 128 kB, which rises with the largest block
    that was freed. Below it, arrays of some MB that are made piece after piece cost more time in page faults than to
    fill. The process keeps up to 48 MB more; no memory is touched here.
    """
    np.empty(24 << 20, np.uint8)


T = TypeVar("T")
#: Least number of values for a thread.
NUMBERS = 1 << 19
_here = Local()


def alone(work: Callable[[], T]) -> T:
    """Run ``work()`` without further threads, for callers that keep all processors busy themselves."""
    before = getattr(_here, "alone", False)
    _here.alone = True
    try:
        return work()
    finally:
        _here.alone = before


def shares(n: int, least: int, threads: int | None = None) -> list[slice]:
    """Return slices that split range(n) into one share per processor, each of at least *least*.

    threads  None: the number of processors, or one in ``alone``
    """
    if n < 2 * least:
        # Most are small, and the number of processors takes longer than some of them.
        return [slice(0, n)]
    threads = threads or (1 if getattr(_here, "alone", False) else os.cpu_count() or 1)
    count = max(1, min(threads, n // least))
    cuts = [n * i // count for i in range(count + 1)]
    return [slice(lo, hi) for lo, hi in itertools.pairwise(cuts)]


class _Helpers:
    """Threads that are kept for ``run``: a pool that is made and ended for each call costs more than small work."""

    def __init__(self) -> None:
        self._lock = _thread.allocate_lock()
        self._pool: Executor | None = None

    def submit(self, call: Callable[[], T]) -> Future[T]:
        with self._lock:
            if self._pool is None:
                self._pool = pool(os.cpu_count() or 1, "logreel-helper")
            helpers = self._pool
        # Without threads the call runs here and now, and may submit others.
        return helpers.submit(call)


def _after_fork() -> None:
    global _helpers
    # The child has none of the threads.
    _helpers = _Helpers()


_helpers = _Helpers()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def run(calls: Sequence[Callable[[], T]]) -> list[T]:
    """Return the values of all *calls*, at least one; the first runs in this thread, the others in helper threads.

    A call that no helper has begun by then runs in this thread too, so that calls may themselves call ``run``.
    """
    coming = [_helpers.submit(call) for call in calls[1:]]
    try:
        values = [calls[0]()]
        for call, future in zip(calls[1:], coming, strict=True):
            values.append(call() if future.cancel() else future.result())
        return values
    finally:
        for future in coming:
            if not future.cancel():
                # Helpers may write to memory of the caller: none is left running, also after an error.
                future.exception()


def run_many(calls: Sequence[Callable[[], T]], least: int) -> list[T]:
    """Return the values of all *calls*, in shares of at least *least* calls for a thread each."""
    parts = run([partial(_values, calls[share]) for share in shares(len(calls), least)])
    return [value for part in parts for value in part]


def _values(calls: Sequence[Callable[[], T]]) -> list[T]:
    return [call() for call in calls]


def ahead(items: Iterable[T], depth: int = 1) -> Iterator[T]:
    """Yield *items*, of which up to *depth* are produced ahead in a background thread."""
    source, end = iter(items), object()
    with pool(1) as reader:
        coming: deque[Future[Any]] = deque(reader.submit(next, source, end) for _ in range(depth))
        while (item := coming.popleft().result()) is not end:
            coming.append(reader.submit(next, source, end))
            yield item


def repeated(values: NDArray[Any], count: NDArray[np.int64]) -> NDArray[Any]:
    """Return *values* with each repeated *count* times, like ``np.repeat``."""
    if values.dtype.itemsize != 8:
        return np.repeat(values, count)
    count = np.ascontiguousarray(count, np.int64)
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(count)])
    source, out = np.ascontiguousarray(values).view(np.int64), np.empty(int(ends[-1]), values.dtype)
    parts = shares(len(out), NUMBERS)
    # For each share, the values that begin in it.
    cuts = [0, *(int(ends.searchsorted(part.stop)) for part in parts[:-1]), len(source)]

    target = out.view(np.int64)
    run(
        [
            partial(kernel.repeat, source[lo:hi], count[lo:hi], target[ends[lo] : ends[hi]])
            for lo, hi in itertools.pairwise(cuts)
        ]
    )
    return out


#: Seconds to wait for threads that were started to end.
PATIENCE = 10.0
#: Bytes of address space that a thread takes: its stack, and the memory that glibc reserves for its allocations.
THREAD_ROOM = 80 << 20


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
    if not has_room(size):
        raise MemoryError(f"less than {size >> 20} MiB of address space are left")


def _check_threads(number: int) -> None:
    from queue import Empty, SimpleQueue

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
