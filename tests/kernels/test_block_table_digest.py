"""Digests of payloads against the same arithmetic in plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from logreel.kernels.block_table import digest_payloads
from support.harness.guard import guarded

MASK = 2**64 - 1
FIRST, SECOND = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F


def plainly(data: bytes) -> tuple[int, int]:
    a = len(data) * SECOND & MASK
    b = a ^ MASK
    for at in range(0, len(data), 8):
        w = int.from_bytes(data[at : at + 8].ljust(8, b"\0"), "little")
        a = (a ^ w) * FIRST & MASK
        a ^= a >> 29
        b = (b + w) * SECOND & MASK
        b ^= b >> 32
    return a, b


def digests(data: np.ndarray, start: list[int], size: list[int]) -> tuple[int, list[tuple[int, int]]]:
    out = np.zeros((len(start), 2), np.uint64)
    n = digest_payloads(data, np.array(start, np.int64), np.array(size, np.int64), out)
    return n, [(int(a), int(b)) for a, b in out[:n]]


def test_digests_equal_plain_python() -> None:
    rng = np.random.default_rng(3)
    data = rng.integers(0, 256, 4000, np.uint8)
    size = [*range(40), *rng.integers(0, 300, 60).tolist()]
    start = [int(rng.integers(0, 4000 - n)) for n in size]
    n, found = digests(data, start, size)
    assert n == len(size)
    assert found == [plainly(data[a : a + k].tobytes()) for a, k in zip(start, size, strict=True)]


def test_digests_do_not_read_beyond_payloads() -> None:
    for size in range(20):
        data = guarded(bytes(range(size)))
        assert digests(data, [0, size], [size, 0]) == (2, [plainly(bytes(range(size))), plainly(b"")])


@pytest.mark.parametrize(
    ("start", "size"), [(-1, 1), (0, 11), (11, 0), (10, 1), (0, -1), (2**62, 2**62), (1, 2**63 - 1)]
)
def test_payloads_outside_of_the_data_are_refused(start: int, size: int) -> None:
    assert digests(np.zeros(10, np.uint8), [3, start, 3], [4, size, 4])[0] == 1


def test_every_bit_changes_the_digest() -> None:
    sound = bytes(range(50))
    found = {plainly(sound)}
    for bit in range(400):
        changed = bytearray(sound)
        changed[bit // 8] ^= 1 << bit % 8
        _, (one,) = digests(np.frombuffer(bytes(changed), np.uint8), [0], [50])
        found.add(one)
    assert len(found) == 401
    assert len({plainly(bytes(n)) for n in range(60)}) == 60
