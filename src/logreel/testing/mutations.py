"""Repeatable damage to files: ``mutate(data, seed)``."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

#: Sizes of sectors and pages.
SECTORS = (512, 4096)
_NUMBER = re.compile(rb"(?<=[\[a-z_])\d{1,5}(?=[\] ;_])")

Damage = Callable[[bytearray, random.Random], None]


def mutate(data: bytes, seed: int) -> bytes:
    """Return *data* with one to three kinds of damage, the same for the same *seed*; may be unchanged."""
    rng = random.Random(seed)
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if out:
            rng.choice(KINDS)(out, rng)
    return bytes(out)


def _random_position(out: bytearray, rng: random.Random) -> int:
    """Return a position: anywhere, near the start (definitions), or near the end (cuts)."""
    near = min(len(out), 2048)
    return rng.choice((rng.randrange(len(out)), rng.randrange(near), len(out) - 1 - rng.randrange(near)))


def _random_range(out: bytearray, rng: random.Random) -> slice:
    """Return a range of a few bytes up to most of the file."""
    begin = _random_position(out, rng)
    longest = len(out) - begin
    return slice(begin, begin + min(longest, rng.choice((1, 2, 3, 8, 40, 512, 1 + rng.randrange(longest)))))


def flip_bits(out: bytearray, rng: random.Random) -> None:
    for _ in range(rng.choice((1, 1, 2, 5, 20))):
        out[_random_position(out, rng)] ^= 1 << rng.randrange(8)


def set_bytes(out: bytearray, rng: random.Random) -> None:
    for _ in range(rng.choice((1, 1, 3, 10))):
        out[_random_position(out, rng)] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))


def truncate(out: bytearray, rng: random.Random) -> None:
    del out[_random_position(out, rng) :]


def stretch_length(out: bytearray, rng: random.Random) -> None:
    """Write an extreme value in place of a possible length, count or offset."""
    width = rng.choice((1, 2, 4, 8))
    at = min(_random_position(out, rng), max(0, len(out) - width))
    top = 256**width - 1
    rest = len(out) - at
    value = rng.choice(
        (0, 1, 2, 3, rest - width, rest, rest + 1, len(out), top // 2, top // 2 + 1, top - 1, top)
    )
    out[at : at + width] = min(max(value, 0), top).to_bytes(width, "little")


def duplicate(out: bytearray, rng: random.Random) -> None:
    part = _random_range(out, rng)
    out[part.stop : part.stop] = out[part]


def delete(out: bytearray, rng: random.Random) -> None:
    del out[_random_range(out, rng)]


def move(out: bytearray, rng: random.Random) -> None:
    part = _random_range(out, rng)
    moved = out[part]
    del out[part]
    at = rng.randrange(len(out) + 1)
    out[at:at] = moved


def insert(out: bytearray, rng: random.Random) -> None:
    at, size = _random_position(out, rng), rng.choice((1, 2, 3, 7, 64, 600))
    out[at:at] = rng.choice((rng.randbytes(size), bytes(size), bytes(out[:size])))


def blank_sector(out: bytearray, rng: random.Random) -> None:
    """Fill aligned sectors with zeros or ones; the file keeps its length."""
    size = rng.choice(SECTORS)
    begin = _random_position(out, rng) // size * size
    end = min(len(out), begin + size * rng.choice((1, 1, 2)))
    out[begin:end] = rng.choice((b"\x00", b"\xff")) * (end - begin)


def drop_sector(out: bytearray, rng: random.Random) -> None:
    size = rng.choice(SECTORS)
    begin = _random_position(out, rng) // size * size
    del out[begin : begin + size]


def change_number(out: bytearray, rng: random.Random) -> None:
    """Change a number in embedded text, such as the size of an array; the text keeps its length."""
    begin = _random_position(out, rng)
    match = _NUMBER.search(out, begin) or _NUMBER.search(out)
    if match:
        size = match.end() - match.start()
        digits = rng.choice((b"9" * size, b"0" * size, str(rng.randrange(10**size)).zfill(size).encode()))
        out[match.start() : match.end()] = digits


KINDS: tuple[Damage, ...] = (
    flip_bits,
    set_bytes,
    truncate,
    stretch_length,
    duplicate,
    delete,
    move,
    insert,
    blank_sector,
    drop_sector,
    change_number,
)
