"""Files are written in parallel, decoded by one thread at a time, and all stop when one fails."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from logreel.outputs.write import FILES, DecodeLock, run_parallel


def test_only_one_thread_decodes_at_a_time() -> None:
    decode_lock, busy, most = DecodeLock(), 0, 0

    def items() -> Iterator[int]:
        nonlocal busy, most
        for i in range(300):
            busy += 1
            most = max(most, busy)
            busy -= 1
            yield i

    got = run_parallel([lambda: list(decode_lock.each(items()))] * 6, decode_lock)
    assert got == [list(range(300))] * 6
    assert most == 1


def test_files_are_written_in_parallel() -> None:
    decode_lock, together = DecodeLock(), threading.Barrier(FILES)
    assert run_parallel([lambda: together.wait(30) >= 0] * FILES, decode_lock) == [True] * FILES


def test_the_first_failure_stops_the_other_tasks() -> None:
    decode_lock, failed = DecodeLock(), threading.Event()

    def endless() -> int:
        def items() -> Iterator[int]:
            i = 0
            while True:
                yield (i := i + 1)

        return sum(decode_lock.each(items()))

    def full() -> int:
        failed.set()
        raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space left"):
        run_parallel([endless, full, full, endless], decode_lock)
    assert failed.is_set()
