"""Iteration order of the C++ hash map in which the simulator's queries keep actors."""

from __future__ import annotations

from collections.abc import Iterator

#: Numbers of buckets of ``std::unordered_map`` of libstdc++ as it grows.
BUCKET_COUNTS = (
    *(1, 13, 29, 59, 127, 257, 541, 1109, 2357, 5087, 10273, 20753, 42043, 85229, 172933, 351061),
    *(712697, 1447153, 2938679, 5967347, 12117689),
)


class UnorderedIds:
    """Ids in the iteration order of ``std::unordered_map<uint32_t, …>`` of libstdc++; a number is its own hash.

    Buckets are in reverse order of their first use; within a bucket, the last id added comes first.
    """

    def __init__(self) -> None:
        self._size = 0
        self._ids: set[int] = set()
        #: Ids by bucket, both in reverse order of iteration.
        self._buckets: dict[int, list[int]] = {}

    def add(self, number: int) -> None:
        """Add an id, unless it is present."""
        if number in self._ids:
            return
        self._ids.add(number)
        if len(self._ids) > BUCKET_COUNTS[self._size] or not self._size:
            self._grow()
        self._put(number)

    def remove(self, number: int) -> None:
        """Remove an id, if it is present."""
        if number in self._ids:
            self._ids.remove(number)
            bucket = number % BUCKET_COUNTS[self._size]
            self._buckets[bucket].remove(number)
            if not self._buckets[bucket]:
                del self._buckets[bucket]

    def __iter__(self) -> Iterator[int]:
        for bucket in reversed(self._buckets.values()):
            yield from reversed(bucket)

    def _put(self, number: int) -> None:
        self._buckets.setdefault(number % BUCKET_COUNTS[self._size], []).append(number)

    def _grow(self) -> None:
        known = list(self)
        self._size = min(self._size + 1, len(BUCKET_COUNTS) - 1)
        self._buckets.clear()
        for number in known:
            self._put(number)
